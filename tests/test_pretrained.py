"""Models by name: directories of all formats, the Hub's protocol, errors."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from support import command_lines, conversions, hub_server

from official_bert import pretrained
from official_bert.checkpoints import tf1
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling.encoder import Bert
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import (
    ExtractFeatures,
    Predict,
    RunClassifierWithTfhub,
    RunPretraining,
)
from official_bert.tokenization import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[1]
FORMATS = ["tf1", "huggingface", "keras_hub"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """{format: directory} of one random pre-trained model."""
    folder = tmp_path_factory.mktemp("models")
    conversions.released(folder / "tf1", "masked_lm", hidden_dropout_prob=0.1)
    for name in FORMATS[1:]:
        conversions.convert(input=folder / "tf1", output=folder / name, to=name)
    return {name: folder / name for name in FORMATS}


def weights_of(model):
    return {path: w.numpy() for path, w in tf1.by_name(model.weights).items()}


@pytest.mark.parametrize("name", FORMATS)
def test_model_of_any_format_has_the_weights_of_the_original(models, name):
    stored = conversions.arrays_of(models["tf1"])
    bert = Bert.from_pretrained(str(models[name]))
    for path, array in weights_of(bert).items():
        if not path.startswith("bert/pooler/"):
            np.testing.assert_array_equal(array, stored[path])
    model = PretrainingModel.from_pretrained(str(models[name]))
    path = "cls/predictions/output_bias"
    np.testing.assert_array_equal(weights_of(model)[path], stored[path])
    config_file = str(models["tf1"] / "bert_config.json")
    expected = BertConfig.from_json_file(config_file).to_dict()
    found = model.config.to_dict()
    del expected["initializer_range"]  # Not in KerasHub's presets.
    assert expected.items() <= found.items()
    tokenizer = Tokenizer.from_pretrained(str(models[name]))
    assert tokenizer.tokenize("AB c") == ["[UNK]", "c"]


def test_missing_heads_are_newly_initialized_with_a_warning(models, caplog):
    PretrainingModel.from_pretrained(str(models["huggingface"]))
    assert "newly initialized" in caplog.text
    assert "cls/seq_relationship/output_bias" in caplog.text
    assert "cls/predictions" not in caplog.text


def test_casing_follows_files_then_name_then_vocabulary(tmp_path, models):
    def casing(name="model", vocab=("a", "b"), tokenizer_config=None):
        folder = tmp_path / name
        shutil.copytree(models["tf1"], folder, dirs_exist_ok=True)
        (folder / "vocab.txt").write_text("[UNK]\n" + "\n".join(vocab))
        if tokenizer_config:
            (folder / "tokenizer_config.json").write_text(tokenizer_config)
        return pretrained.find(str(folder)).do_lower_case

    assert casing()
    assert not casing(vocab=("A", "b"))
    assert casing("uncased_L-2_H-128_A-2", ("A", "b"))
    assert not casing("cased_L-12_H-768_A-12")
    assert not casing("cased", tokenizer_config='{"do_lower_case": false}')


def test_exact_gelu_of_hugging_face_models_is_kept(tmp_path, models):
    for name, expected in [("gelu", "gelu_erf"), ("gelu_new", "gelu")]:
        folder = tmp_path / name
        shutil.copytree(models["huggingface"], folder)
        conversions.change_json(folder / "config.json", hidden_act=name)
        bert = Bert.from_pretrained(str(folder))
        assert bert.config.hidden_act == expected


def test_vocabulary_is_read_from_tokenizer_json(tmp_path, models):
    folder = tmp_path / "model"
    shutil.copytree(models["huggingface"], folder)
    (folder / "vocab.txt").unlink()
    with pytest.raises(InputError, match="no vocabulary"):
        Tokenizer.from_pretrained(str(folder))
    tokens = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3}
    (folder / "tokenizer.json").write_text(
        json.dumps({"model": {"type": "WordPiece", "vocab": tokens}})
    )
    tokenizer = Tokenizer.from_pretrained(str(folder))
    assert tokenizer.vocab == tokens


@pytest.mark.parametrize(
    ("options_class", "line"),
    [
        (
            RunPretraining,
            "--input_file=a --output_dir=b --do_train --max_seq_length=6",
        ),
        (
            ExtractFeatures,
            "--input_file=a --output_file=b --max_seq_length=6 --layers=-1",
        ),
        (Predict, "--input_file=a --fill_mask"),
    ],
)
def test_model_gives_the_flags_that_are_omitted(
    tmp_path, monkeypatch, models, options_class, line
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("a")
    directory = models["tf1"]
    line += f" --model={directory}"
    found = command_lines.parse(options_class, line)
    assert found.bert_config_file == str(directory / "bert_config.json")
    assert found.vocab_file == str(directory / "vocab.txt")
    assert found.init_checkpoint == str(directory / "bert_model.ckpt")
    shutil.copy(directory / "vocab.txt", tmp_path / "other.txt")
    found = command_lines.parse(options_class, f"{line} --vocab_file=other.txt")
    assert found.vocab_file == "other.txt"


@pytest.mark.parametrize(
    ("options_class", "output"),
    [(RunPretraining, "--output_dir=a"), (ExtractFeatures, "--output_file=a")],
)
def test_omitted_model_is_an_error_that_names_both_flags(options_class, output):
    with pytest.raises(InputError, match="--model or --bert_config_file"):
        command_lines.parse(options_class, f"--input_file=a {output}")


def test_model_without_vocabulary_needs_the_flag(tmp_path, models):
    shutil.copytree(models["tf1"], tmp_path / "model")
    (tmp_path / "model" / "vocab.txt").unlink()
    line = f"--input_file=a --output_file=b --model={tmp_path / 'model'}"
    with pytest.raises(InputError, match="--vocab_file is required"):
        command_lines.parse(ExtractFeatures, line)


def test_module_does_not_take_a_model():
    with pytest.raises(InputError, match="--model=a is not supported"):
        RunClassifierWithTfhub(
            model="a",
            bert_hub_module_handle="gs://a",
            task_name="mrpc",
            data_dir=".",
            output_dir="a",
            do_train=True,
        )


def test_list_shows_all_released_models(capsys):
    with pytest.raises(SystemExit) as stop:
        command_lines.parse(ExtractFeatures, "--model=list")
    assert not stop.value.code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 34
    row = "cased_L-24_H-1024_A-16 24 1024 16 cased google-bert/bert-large-cased"
    assert row.split() in [line.split() for line in lines]


class Hub:
    """A server of models, and processes that use it with an empty cache."""

    def __init__(self, server, folder, models):
        self.server, self.folder = server, folder
        self.models = models

    def add(self, repository, source="huggingface", *without):
        """Adds a repository with the files of a directory."""
        root = self.server.root / repository
        shutil.copytree(
            self.models[source], root, ignore=shutil.ignore_patterns(*without)
        )
        return root

    def run(self, *arguments, **environment):
        """Runs Python in a process that uses the server."""
        self.server.requests.clear()
        return subprocess.run(
            [sys.executable, *arguments],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "HF_ENDPOINT": self.server.address,
                "HF_HOME": str(self.folder / "hub"),
                "XDG_CACHE_HOME": str(self.folder / "cache"),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def find(self, model, **environment):
        """Finds a model and downloads its weights; returns files or error."""
        lines = [
            "import sys",
            "from official_bert import pretrained",
            "found = pretrained.find(sys.argv[1])",
            "pretrained.download_weights(sys.argv[1], found.init_checkpoint)",
            "print(*found, sep='\\n')",
        ]
        done = self.run("-c", "\n".join(lines), model, **environment)
        if done.returncode:
            return done.stderr.splitlines()[-1]
        return pretrained.ModelFiles(*done.stdout.splitlines())


@pytest.fixture
def hub(tmp_path, models):
    (tmp_path / "served").mkdir()
    with hub_server.serving(tmp_path / "served") as server:
        yield Hub(server, tmp_path, models)


RELEASED = "uncased_L-2_H-128_A-2"
REPOSITORY = f"google/bert_{RELEASED}"


def test_released_model_is_downloaded_once_and_found_offline(hub, models):
    hub.add(REPOSITORY)
    found = hub.find(RELEASED)
    weights = pathlib.Path(found.init_checkpoint, "model.safetensors")
    expected = (models["huggingface"] / "model.safetensors").read_bytes()
    assert weights.read_bytes() == expected
    gets = [path for method, path in hub.server.requests if method == "GET"]
    assert sum(path.endswith("model.safetensors") for path in gets) == 1
    assert hub.find(f"{REPOSITORY}@{hub_server.COMMIT}") == found
    assert not any("resolve" in path for _, path in hub.server.requests)
    assert hub.find(RELEASED, HF_HUB_OFFLINE="1") == found
    assert hub.server.requests == []


@pytest.mark.parametrize(
    ("source", "weights"),
    [
        ("tf1", "bert_model.ckpt.data-00000-of-00001"),
        ("keras_hub", "model.weights.h5"),
    ],
)
def test_repository_of_any_format_is_downloaded(hub, models, source, weights):
    hub.add("owner/name", source)
    found = hub.find("owner/name")
    assert pathlib.Path(found.vocab_file).exists()
    directory = pathlib.Path(found.init_checkpoint)
    if source == "tf1":
        directory = directory.parent
    expected = (models[source] / weights).read_bytes()
    assert (directory / weights).read_bytes() == expected


def test_download_that_ends_early_is_completed_by_the_next_run(hub, models):
    hub.add("owner/name")
    hub.server.cut_after = 1000
    assert "owner/name cannot be downloaded" in hub.find("owner/name")
    hub.server.cut_after = None
    found = hub.find("owner/name")
    weights = pathlib.Path(found.init_checkpoint, "model.safetensors")
    expected = (models["huggingface"] / "model.safetensors").read_bytes()
    assert weights.read_bytes() == expected


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


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("owner/other", "owner/other is neither a directory nor a repository"),
        ("owner/private", "owner/private requires permission"),
        ("owner/gpt", '`model_type` must be "bert".*"gpt2"'),
        ("owner/empty", "owner/empty has no weights"),
        ("owner/gpt@v2", "owner/gpt has no revision v2"),
        ("uncased_L-2_H-129_A-2", "Did you mean uncased_L-2_H-128_A-2?"),
        ("a/b/c", "'a/b/c' must be a directory, the name of a released mod"),
        ("", "'' must be a directory"),
    ],
)
def test_model_that_cannot_be_used_is_an_error(hub, model, message):
    hub.server.restricted = ("owner/private",)
    gpt = hub.add("owner/gpt")
    conversions.change_json(gpt / "config.json", model_type="gpt2")
    hub.add("owner/empty", "huggingface", "*.safetensors")
    error = hub.find(model)
    assert error.startswith("official_bert.errors.InputError: ")
    assert re.search(message, error)


def test_missing_network_is_an_error_unless_the_model_is_cached(hub):
    error = hub.find(REPOSITORY, HF_HUB_OFFLINE="1")
    assert f"{REPOSITORY} cannot be downloaded" in error
    assert "HF_HUB_OFFLINE" in error


@pytest.mark.slow
def test_conversion_takes_a_repository(hub, models, tmp_path):
    hub.add("owner/name")
    command = str(ROOT / "convert_checkpoint.py")
    output = tmp_path / "converted"
    line = ["--input=owner/name", "--to=tf1", f"--output={output}"]
    done = hub.run(command, *line)
    assert done.returncode == 0, done.stderr
    expected = conversions.arrays_of(models["tf1"])
    for name, array in conversions.arrays_of(output).items():
        if not name.startswith("bert/pooler/"):
            np.testing.assert_array_equal(array, expected[name])
