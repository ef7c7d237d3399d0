"""Several processes that run one command as if on several hosts."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading

from support import ROOT


def tf_config(hosts, index):
    """Returns the TF_CONFIG of one of several workers."""
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": {"worker": hosts}, "task": task})


@contextlib.contextmanager
def started(command, options_of_hosts):
    """Starts one process per host; kills those that run at the end.

    `options_of_hosts` has None for a host that is in the cluster but never
    starts.
    """
    sockets = [socket.create_server(("localhost", 0)) for _ in options_of_hosts]
    hosts = [f"localhost:{s.getsockname()[1]}" for s in sockets]
    for opened in sockets:
        opened.close()
    processes = []
    for index, options in enumerate(options_of_hosts):
        if options is None:
            continue
        flags = {**options, "distribution_strategy": "multi_worker_mirrored"}
        line = [f"--{key}={value}" for key, value in flags.items()]
        processes.append(
            subprocess.Popen(
                [sys.executable, ROOT / command, *line],
                env={**os.environ, "TF_CONFIG": tf_config(hosts, index)},
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def read_until(process, pattern):
    """Reads stderr until a pattern matches; returns the text.

    Reads single characters, because the line of a progress bar ends only after
    ten seconds. `$` matches the end of a line, not of the text read so far. A
    process that writes no such text for five minutes is killed.
    """
    text = ""
    timer = threading.Timer(300, process.kill)
    timer.start()
    try:
        while not re.search(pattern, text + " ", re.MULTILINE):
            new = process.stderr.read(1)
            assert new, text
            text += new
    finally:
        timer.cancel()
    return text


def wait(processes, status=0):
    """Returns the stderr of each process, all of which must end with status."""
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert {process.returncode for process in processes} == {status}, errors
    return errors


def run(command, options_of_hosts, status=0):
    """Runs a command on all hosts; returns the stderr of each."""
    with started(command, options_of_hosts) as processes:
        return wait(processes, status)
