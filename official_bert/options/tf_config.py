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


def is_chief(strategy: str) -> bool:
    """Whether this process writes to the run directory.

    Args:
        strategy: The value of --distribution_strategy.
    """
    if strategy != "multi_worker_mirrored":
        return True
    config = json.loads(os.environ["TF_CONFIG"])
    chief = "chief" if "chief" in config["cluster"] else "worker"
    return (config["task"]["type"], config["task"]["index"]) == (chief, 0)


def hosts() -> list[str]:
    """Returns HOST:PORT of all hosts in `TF_CONFIG`."""
    jobs = json.loads(os.environ["TF_CONFIG"])["cluster"].values()
    return [host for job in jobs for host in job]


def require() -> None:
    """Raises `InputError` unless `TF_CONFIG` lists the hosts and this host."""
    text = os.environ.get("TF_CONFIG", "")
    if fault := _find_fault(text):
        raise InputError(
            "--distribution_strategy=multi_worker_mirrored: in the environment "
            f"variable TF_CONFIG={text}, {fault}. Set it on each host, with "
            f"the host's own index, for example {_EXAMPLE}."
        )


def _find_fault(text: str) -> str | None:
    try:
        config = json.loads(text)
    except ValueError:
        config = None
    if not isinstance(config, dict):
        return "the value must be a JSON object"
    cluster, task = config.get("cluster"), config.get("task")
    if not isinstance(cluster, dict) or "worker" not in cluster:
        return "`cluster` must have `worker`"
    if not set(cluster) <= {"worker", "chief"}:
        return "`cluster` must have only `worker` and `chief`"
    for job, addresses in cluster.items():
        is_list = isinstance(addresses, list) and addresses
        if not is_list or not all(map(_is_address, addresses)):
            return f"`{job}` must be a list of HOST:PORT"
    every = [address for addresses in cluster.values() for address in addresses]
    if len(set(every)) != len(every) or len(cluster.get("chief", [])) > 1:
        return "each HOST:PORT must be unique, and `chief` at most one"
    if not isinstance(task, dict) or task.get("type") not in cluster:
        return f"`type` in `task` must be one of {', '.join(cluster)}"
    index, num_hosts = task.get("index"), len(cluster[task["type"]])
    if type(index) is not int or not 0 <= index < num_hosts:
        return f"`index` in `task` must be from 0 to {num_hosts - 1}"
    return None


def _is_address(host: Any) -> bool:
    match = _ADDRESS.fullmatch(host) if isinstance(host, str) else None
    return match is not None and 0 < int(match[1]) < 2**16
