"""Several processes that run one command as if on several hosts."""

import json
import os
import pathlib
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def start(command, options_of_hosts):
    """Starts one process per host and returns them.

    Args:
        command: Such as `run_pretraining.py`.
        options_of_hosts: The options of each process; None for a host that is
            in the cluster but never starts.
    """
    sockets = [socket.create_server(("localhost", 0)) for _ in options_of_hosts]
    hosts = [f"localhost:{s.getsockname()[1]}" for s in sockets]
    for opened in sockets:
        opened.close()
    processes = []
    for index, options in enumerate(options_of_hosts):
        if options is None:
            continue
        config = {
            "cluster": {"worker": hosts},
            "task": {"type": "worker", "index": index},
        }
        flags = {**options, "distribution_strategy": "multi_worker_mirrored"}
        processes.append(
            subprocess.Popen(
                [
                    sys.executable,
                    ROOT / command,
                    *(f"--{key}={value}" for key, value in flags.items()),
                ],
                env={**os.environ, "TF_CONFIG": json.dumps(config)},
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return processes


def wait(processes):
    """Returns the exit status and the stderr of each process."""
    errors = [process.communicate(timeout=300)[1] for process in processes]
    return [process.returncode for process in processes], errors
