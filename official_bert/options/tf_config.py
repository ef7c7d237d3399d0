"""The environment variable `TF_CONFIG`: the hosts that train together."""

import json
import os
import re
from typing import Any

from official_bert.errors import InputError

_EXAMPLE = (
    '{"cluster": {"worker": ["host0:12345", "host1:12345"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
_ADDRESS = re.compile(r"\S+:(\d+)")


def is_chief() -> bool:
    """Whether this host is the `chief` or, without one, worker 0."""
    config = json.loads(os.environ["TF_CONFIG"])
    chief = "chief" if "chief" in config["cluster"] else "worker"
    return (config["task"]["type"], config["task"]["index"]) == (chief, 0)


def hosts() -> list[str]:
    """Returns HOST:PORT of all hosts in `TF_CONFIG`."""
    cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
    return [host for job in cluster.values() for host in job]


def require() -> None:
    """Raises `InputError` unless `TF_CONFIG` lists the hosts and this host."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        is_valid = _is_valid(json.loads(text))
    except (AttributeError, KeyError, TypeError, ValueError):
        is_valid = False
    if not is_valid:
        raise InputError(
            "--distribution_strategy=multi_worker_mirrored needs the "
            "environment variable TF_CONFIG: a list `worker` of different "
            "HOST:PORT, optionally a `chief`, and the `type` and `index` of "
            f"this host. Received: {text!r}. For example: {_EXAMPLE}."
        )


def _is_valid(config: Any) -> bool:
    cluster, task = config["cluster"], config["task"]
    addresses = [address for job in cluster.values() for address in job]
    return (
        {"worker"} <= set(cluster) <= {"worker", "chief"}
        and all(isinstance(job, list) and job for job in cluster.values())
        and len(cluster.get("chief", [])) <= 1
        and len(set(addresses)) == len(addresses)
        and all(map(_is_address, addresses))
        and type(task["index"]) is int
        and 0 <= task["index"] < len(cluster[task["type"]])
    )


def _is_address(host: Any) -> bool:
    match = _ADDRESS.fullmatch(host)  # A TypeError, unless it is a string.
    return match is not None and 0 < int(match[1]) < 2**16
