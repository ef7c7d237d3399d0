"""Models are downloaded from a server that stands for the Hugging Face Hub."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from support import ROOT, conversions, hub_server
from support.processes import started

from official_bert import Embedder
from official_bert.errors import InputError
from official_bert.sources import pretrained

FIND = """
import dataclasses, json, sys
from official_bert.errors import InputError
from official_bert.sources import pretrained
for model in sys.argv[1:]:
    try:
        found = pretrained.find(model)
        pretrained.download_weights(model, found.init_checkpoint)
        print(json.dumps(dataclasses.astuple(found)))
    except InputError as error:
        print(json.dumps(str(error)))
"""


class Hub:
    """A server of models, and processes that use it with an empty cache."""

    def __init__(self, server, folder, models):
        self.server, self.folder, self.models = server, folder, models

    def add(self, repository, source="huggingface", *without):
        """Adds a repository with the files of a directory."""
        ignore = shutil.ignore_patterns(*without)
        root = self.server.root / repository
        return shutil.copytree(self.models[source], root, ignore=ignore)

    def run(self, *arguments, **environment):
        self.server.requests.clear()
        env = os.environ | self.server.environment(self.folder) | environment
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        with started(*arguments, env=env, **pipes) as self.process:
            streams = self.process.communicate()
        status = self.process.returncode
        return subprocess.CompletedProcess(arguments, status, *streams)

    def find_all(self, *models, **environment):
        """Finds models and downloads their weights; yields files or errors."""
        done = self.run("-c", FIND, *models, **environment)
        for found in map(json.loads, done.stdout.splitlines()):
            is_error = isinstance(found, str)
            yield found if is_error else pretrained.ModelFiles(*found)

    def find(self, model, **environment):
        """Returns what `find_all` yields for a single model."""
        [found] = self.find_all(model, **environment)
        return found

    def has(self, found, source="huggingface", name="model.safetensors"):
        """Whether the found files contain the weights of a model."""
        directory = pathlib.Path(found.init_checkpoint)
        path = (directory if directory.is_dir() else directory.parent) / name
        return path.read_bytes() == (self.models[source] / name).read_bytes()


@pytest.fixture
def hub(directory, models):
    os.mkdir("served")
    with hub_server.serving(directory / "served") as server:
        yield Hub(server, directory, models)


RELEASED = "uncased_L-2_H-128_A-2"
REPOSITORY = f"google/bert_{RELEASED}"


@pytest.mark.slow
def test_released_model_is_downloaded_once_and_found_offline(hub):
    assert f"{RELEASED}.zip, and pass" in hub.find(RELEASED, HF_HUB_OFFLINE="1")
    hub.add(REPOSITORY)
    found = hub.find(RELEASED)
    assert hub.has(found)
    gets = [path for method, path in hub.server.requests if method == "GET"]
    assert sum(path.endswith("model.safetensors") for path in gets) == 1
    assert hub.find(f"{REPOSITORY}@{hub_server.COMMIT}") == found
    assert not any("resolve" in path for _, path in hub.server.requests)
    assert hub.find(RELEASED, HF_HUB_OFFLINE="1") == found
    assert hub.server.requests == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "weights"),
    [
        ("tf1", "bert_model.ckpt.data-00000-of-00001"),
        ("keras_hub", "model.weights.h5"),
    ],
)
def test_repository_of_any_format_is_downloaded(hub, source, weights):
    hub.add("owner/name", source)
    found = hub.find("owner/name")
    assert pathlib.Path(found.vocab_file).exists()
    assert hub.has(found, source, weights)


@pytest.mark.slow
def test_embedding_model_is_downloaded_with_all_folders(hub):
    golden = ROOT / "tests" / "golden" / "sentence_transformers"
    root = shutil.copytree(golden, hub.server.root / "owner" / "name")
    modules = (root / "modules.json").read_text().replace('""', '"0_BERT"')
    modules = modules.replace("2_Dense", "2_Dense_5")
    (root / "modules.json").write_text(modules)
    (root / "2_Dense").rename(root / "2_Dense_5")
    (root / "0_BERT").mkdir()
    for name in (
        *("config.json", "model.safetensors", "sentence_bert_config.json"),
        *("tokenizer.json", "tokenizer_config.json"),
    ):
        (root / name).rename(root / "0_BERT" / name)
    code = (
        "from official_bert import Embedder; "
        "print(Embedder.from_pretrained('owner/name').settings)"
    )
    expected = Embedder.from_pretrained(golden).settings
    assert hub.run("-c", code).stdout.strip() == str(expected)


@pytest.mark.slow
def test_killed_or_cut_download_is_completed_by_the_next_run(hub, directory):
    weights = hub.add("owner/name") / "model.safetensors"
    # huggingface_hub writes 10 MiB at a time.
    weights.write_bytes(os.urandom(25 * 2**20))
    sizes = []

    def kill():
        deadline = time.monotonic() + 60
        while not sum(sizes) and time.monotonic() < deadline:
            partial = directory.rglob("*.incomplete")
            sizes[:] = [path.stat().st_size for path in partial]
            time.sleep(0.01)
        hub.process.kill()

    hub.server.cut_after, hub.server.at_cut = 15 * 2**20, kill
    assert [*hub.find_all("owner/name")] == []
    assert hub.process.returncode == -signal.SIGKILL
    assert 0 < sum(sizes) < weights.stat().st_size
    error = hub.find("owner/name", HF_HUB_OFFLINE="1")
    assert "owner/name cannot be downloaded" in error
    assert "HF_HUB_OFFLINE" in error
    hub.server.cut_after, hub.server.at_cut = 1000, lambda: None
    assert "owner/name cannot be downloaded" in hub.find("owner/name")
    hub.server.cut_after = None
    completed = hub.find("owner/name").init_checkpoint
    names = os.listdir(completed)
    assert {*names, "README.md"} == {*os.listdir(weights.parent)}
    for name in names:
        expected = (weights.parent / name).read_bytes()
        assert pathlib.Path(completed, name).read_bytes() == expected


@pytest.mark.slow
def test_weights_that_are_only_a_pickle_are_an_error(hub):
    for repository, message in [
        ("owner/name", "owner/name/pytorch_model.bin is a pickle.*safe_serial"),
        (REPOSITORY, f"bert_models/2020_02_20/{RELEASED}.zip"),
    ]:
        folder = hub.add(repository, "huggingface", "*.safetensors")
        (folder / "pytorch_model.bin").write_bytes(b"pickle")
        assert re.search(message, hub.find(repository))
    with pytest.raises(InputError, match="is a pickle"):
        pretrained.find(str(folder))
    assert not any(path.endswith(".bin") for _, path in hub.server.requests)


def test_repository_that_cannot_be_used_is_an_error(hub):
    hub.server.restricted = ("owner/private",)
    gpt = hub.add("owner/gpt")
    conversions.change_json(gpt / "config.json", model_type="gpt2")
    hub.add("owner/empty", "huggingface", "*.safetensors")
    messages = {
        "owner/other": "owner/other is neither a directory nor a repository",
        "owner/private": "owner/private requires permission",
        "owner/gpt": '`model_type` must be "bert".*"gpt2"',
        "owner/empty": "owner/empty has no weights",
        "owner/gpt@v2": "owner/gpt has no revision v2",
    }
    errors = hub.find_all(*messages)
    for error, message in zip(errors, messages.values(), strict=True):
        assert re.search(message, error)


@pytest.mark.slow
def test_missing_column_is_an_error_before_weights_are_downloaded(hub):
    hub.add("owner/name")
    pathlib.Path("a.csv").write_text("text,label\ngood,1\nbad,0\n")
    line = ["--train_file=a.csv", "--output_dir=out", "--text_column=txet"]
    command = str(ROOT / "run_classifier.py")
    done = hub.run(command, "--model=owner/name", *line)
    assert "'txet' (--text_column)" in done.stderr
    assert done.returncode == 1
    gets = [path for method, path in hub.server.requests if method == "GET"]
    assert any(path.endswith("config.json") for path in gets)
    assert not any(path.endswith("model.safetensors") for path in gets)


@pytest.mark.slow
def test_conversion_takes_a_repository(hub, models, directory):
    hub.add("owner/name")
    line = ["--input=owner/name", "--to=tf1", "--output=converted"]
    done = hub.run(str(ROOT / "convert_checkpoint.py"), *line)
    assert done.returncode == 0, done.stderr
    expected = conversions.arrays_of(models["tf1"])
    for name, array in conversions.arrays_of(directory / "converted").items():
        if not name.startswith("bert/pooler/"):
            np.testing.assert_array_equal(array, expected[name])
