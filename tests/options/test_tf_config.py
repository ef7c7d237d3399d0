"""A TF_CONFIG that names this host among others, or one clear error."""

import json

import pytest

from official_bert.errors import InputError
from official_bert.options import tf_config
from official_bert.options.training import DeviceOptions, StepOptions

HOSTS = ["a:1", "b:2"]


def set_config(monkeypatch, jobs, task):
    text = json.dumps({"cluster": jobs, "task": task})
    monkeypatch.setenv("TF_CONFIG", text)


@pytest.mark.parametrize(
    ("jobs", "task", "is_chief"),
    [
        ({"worker": HOSTS}, ("worker", 0), True),
        ({"worker": HOSTS}, ("worker", 1), False),
        ({"chief": ["c:3"], "worker": HOSTS}, ("worker", 0), False),
        ({"chief": ["c:3"], "worker": HOSTS}, ("chief", 0), True),
    ],
)
def test_who_writes(monkeypatch, jobs, task, is_chief):
    set_config(monkeypatch, jobs, {"type": task[0], "index": task[1]})
    DeviceOptions(distribution_strategy="multi_worker_mirrored")
    assert tf_config.is_chief("multi_worker_mirrored") is is_chief


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "TF_CONFIG must be a JSON object. Received: ''"),
        ("{", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ("{}", "with `cluster`"),
        ({"cluster": {"ps": HOSTS, "worker": HOSTS}}, "with `cluster`"),
        ({"cluster": {"worker": "a:1"}}, "a list of HOST:PORT in `worker`"),
        ({"cluster": {"worker": ["a"]}}, "a list of HOST:PORT in `worker`"),
        ({"cluster": {"worker": []}}, "a list of HOST:PORT in `worker`"),
        ({"cluster": {"worker": [7]}}, "a list of HOST:PORT in `worker`"),
        ({"cluster": {"worker": ["a:65536"]}}, "a list of HOST:PORT"),
        ({"cluster": {"worker": ["a:1", "a:1"]}}, "twice"),
        ({"cluster": {"worker": HOSTS}}, "`type` is one of .'worker'"),
        (
            {"cluster": {"worker": HOSTS}, "task": {"type": "chief"}},
            "`type` is one of .'worker'",
        ),
        (
            {
                "cluster": {"worker": HOSTS},
                "task": {"type": "worker", "index": 2},
            },
            "`index` is from 0 to 1",
        ),
        (
            {
                "cluster": {"worker": HOSTS},
                "task": {"type": "worker", "index": "0"},
            },
            "`index` is from 0 to 1",
        ),
    ],
)
def test_what_is_wrong(monkeypatch, text, message):
    if text is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        if not isinstance(text, str):
            text = json.dumps(text)
        monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError, match=message) as error:
        DeviceOptions(distribution_strategy="multi_worker_mirrored")
    assert '"index": 0' in str(error.value)
    DeviceOptions(distribution_strategy="mirrored")


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ({}, 1),
        ({"iterations_per_loop": 20}, 20),
        ({"use_tpu": True}, 1000),
        ({"distribution_strategy": "tpu", "iterations_per_loop": 7}, 7),
    ],
)
def test_steps_per_call(given, steps):
    assert StepOptions(**given).steps_per_call == steps
