"""The hosts of a run: the environment variable `TF_CONFIG`."""

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
_LAST_PORT = 2**16 - 1


def require() -> None:
    """Raises `InputError` unless `TF_CONFIG` names hosts, and one as this."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
    except ValueError:
        raise _error("a JSON object", text) from None
    if not isinstance(config, dict):
        raise _error("a JSON object", text)
    _require_hosts(config.get("cluster"), text)
    _require_task(config.get("task"), config["cluster"], text)


def is_chief(resolved_strategy: str) -> bool:
    """Whether this process is the one that writes to the output folder."""
    if resolved_strategy != "multi_worker_mirrored":
        return True
    config = json.loads(os.environ["TF_CONFIG"])
    chief = "chief" if "chief" in config["cluster"] else "worker"
    task = config["task"]
    return (task["type"], task["index"]) == (chief, 0)


def hosts() -> list[str]:
    """Returns HOST:PORT of all hosts that `TF_CONFIG` names."""
    jobs = json.loads(os.environ["TF_CONFIG"])["cluster"].values()
    return [host for job in jobs for host in job]


def _is_address(host: Any) -> bool:
    match = _ADDRESS.fullmatch(host) if isinstance(host, str) else None
    return match is not None and 0 < int(match[1]) <= _LAST_PORT


def _require_hosts(cluster: Any, text: str) -> None:
    if not isinstance(cluster, dict) or not (
        {"worker"} <= set(cluster) <= {"worker", "chief"}
    ):
        raise _error("with `cluster`, of `worker` and perhaps `chief`", text)
    for job, given in cluster.items():
        is_list = isinstance(given, list) and given
        if not is_list or not all(map(_is_address, given)):
            raise _error(f"with a list of HOST:PORT in `{job}`", text)
    every = [host for given in cluster.values() for host in given]
    if len(set(every)) != len(every) or len(cluster.get("chief", [])) > 1:
        raise _error("without any HOST:PORT twice, or a second chief", text)


def _require_task(task: Any, cluster: dict[str, list[str]], text: str) -> None:
    if not isinstance(task, dict) or task.get("type") not in cluster:
        raise _error(f"with a `task` whose `type` is one of {[*cluster]}", text)
    number, hosts = task.get("index"), cluster[task["type"]]
    if type(number) is not int or not 0 <= number < len(hosts):
        raise _error(
            f"with a `task` whose `index` is from 0 to {len(hosts) - 1}", text
        )


def _error(what: str, text: str) -> InputError:
    return InputError(
        "--distribution_strategy=multi_worker_mirrored: the environment "
        f"variable TF_CONFIG must be {what}. Received: {text!r}. Set it on "
        f"every host, with the index of each, such as {_EXAMPLE}."
    )
