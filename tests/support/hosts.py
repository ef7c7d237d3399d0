"""A command in several processes, as if on several hosts."""

import json
import os
import pathlib
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def start(command, given):
    """Starts the processes of one run.

    Args:
        command: Such as `run_pretraining.py`.
        given: The options of each process; None for a host that never comes.
    """
    sockets = [socket.create_server(("localhost", 0)) for _ in given]
    hosts = [f"localhost:{s.getsockname()[1]}" for s in sockets]
    for opened in sockets:
        opened.close()
    running = []
    for index, options in enumerate(given):
        if options is None:
            continue
        config = {
            "cluster": {"worker": hosts},
            "task": {"type": "worker", "index": index},
        }
        options = {
            **options,
            "distribution_strategy": "multi_worker_mirrored",
        }
        running.append(
            subprocess.Popen(
                [
                    sys.executable,
                    ROOT / command,
                    *(f"--{key}={value}" for key, value in options.items()),
                ],
                env={**os.environ, "TF_CONFIG": json.dumps(config)},
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return running


def wait(running):
    """Returns the exit status of each process, and what it wrote."""
    told = [process.communicate(timeout=300)[1] for process in running]
    return [process.returncode for process in running], told
