import json

import pytest

from official_bert.errors import InputError
from official_bert.options.training import DeviceOptions

HOSTS = ["a:1", "b:2"]
CHIEF = {"chief": ["c:3"], "worker": HOSTS}


def make(cluster, task_type, index):
    return {"cluster": cluster, "task": {"type": task_type, "index": index}}


def test_chief_is_the_chief_or_the_first_worker(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert DeviceOptions(distribution_strategy="mirrored").is_chief
    for is_chief, *config in [
        (True, {"worker": HOSTS}, "worker", 0),
        (False, {"worker": HOSTS}, "worker", 1),
        (False, CHIEF, "worker", 0),
        (True, CHIEF, "chief", 0),
    ]:
        monkeypatch.setenv("TF_CONFIG", json.dumps(make(*config)))
        options = DeviceOptions(
            distribution_strategy="multi_worker_mirrored"
        ).resolve()
        assert options.is_chief is is_chief


@pytest.mark.parametrize(
    "config",
    [
        "",
        "{",
        "[]",
        {},
        {"cluster": {"worker": HOSTS}},
        make({"ps": HOSTS, "worker": HOSTS}, "worker", 0),
        make({"worker": "a:1"}, "worker", 0),
        make({"worker": {"a:1": "b:2"}}, "worker", 0),
        make({"worker": ["a"]}, "worker", 0),
        make({"worker": []}, "worker", 0),
        make({"worker": [7]}, "worker", 0),
        make({"worker": ["a:65536"]}, "worker", 0),
        make({"worker": ["a:1", "a:1"]}, "worker", 0),
        make({"worker": HOSTS, "chief": ["c:1", "d:1"]}, "worker", 0),
        make({"worker": HOSTS}, "chief", 0),
        make({"worker": HOSTS}, "worker", 2),
        make({"worker": HOSTS}, "worker", "0"),
    ],
)
def test_invalid_tf_config_is_an_error(monkeypatch, config):
    text = config if isinstance(config, str) else json.dumps(config)
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError, match="TF_CONFIG"):
        DeviceOptions(distribution_strategy="multi_worker_mirrored").resolve()
    DeviceOptions(distribution_strategy="mirrored").resolve()
