import json
import pathlib

import pytest
from support import ROOT, command_lines

from official_bert import options
from official_bert.errors import InputError
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.sources import pretrained
from official_bert.tokenization import Tokenizer

DIRECTORY = ROOT / "data" / "bert_tiny"


@pytest.fixture(autouse=True)
def offline_directory(tmp_path, monkeypatch):
    """The current directory, with a text and an empty cache; no network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("a")


def test_files_take_at_most_10_mb():
    sizes = [path.stat().st_size for path in DIRECTORY.iterdir()]
    assert sum(sizes) <= 10_000_000


def test_config_is_that_of_the_smallest_released_model():
    config = json.loads((DIRECTORY / "config.json").read_text())
    assert config["hidden_act"] == "gelu_pytorch_tanh"
    recipe = ROOT / "recipes" / "bert_tiny" / "bert_config.json"
    expected = json.loads(recipe.read_text())
    found = pretrained.find("bert_tiny_demo").config.to_dict()
    assert expected.items() <= found.items()
    assert expected["hidden_dropout_prob"] == 0.0


def test_name_loads_weights_as_float32_with_tokenizer():
    model = PretrainingModel.from_pretrained("bert_tiny_demo")
    assert {w.dtype for w in model.trainable_variables} == {"float32"}
    tokenizer = Tokenizer.from_pretrained("bert_tiny_demo")
    assert len(tokenizer.vocab) == 30522
    assert tokenizer.tokenize("Caf\u00e9s") == ["cafes"]


OUTPUT = "--output_file=b"
COMMANDS = [
    (options.CreatePretrainingData, f"--input_file=a {OUTPUT}"),
    (options.RunPretraining, "--input_file=a --output_dir=b --do_train"),
    (
        options.RunClassifier,
        "--task_name=rte --data_dir=. --output_dir=b --do_train",
    ),
    (options.RunSquad, "--train_file=a --output_dir=b --do_train"),
    (options.ExportTfhub, "--export_path=b"),
    (options.ExtractFeatures, f"--input_file=a {OUTPUT}"),
    (options.Predict, "--fill_mask"),
    (options.Predict, "--score"),
    (options.VisualizeAttention, f"--text_a=a {OUTPUT}"),
]
DEFAULTS = COMMANDS[-4:]


@pytest.mark.parametrize(("options_class", "line"), COMMANDS)
def test_command_accepts_the_name(options_class, line):
    found = command_lines.parse(options_class, f"{line} --model=bert_tiny_demo")
    assert pathlib.Path(found.vocab_file).read_text().count("\n") == 30522
    if options_class is not options.CreatePretrainingData:
        assert found.init_checkpoint == str(DIRECTORY)
        found.download_weights()


def test_conversion_accepts_the_name():
    line = "--input=bert_tiny_demo --to=tf1 --output=b"
    found = command_lines.parse(options.ConvertCheckpoint, line)
    assert found.input == str(DIRECTORY)


@pytest.mark.parametrize(("options_class", "line"), DEFAULTS)
def test_demo_model_is_the_default_and_is_logged(options_class, line, caplog):
    caplog.set_level("INFO", logger="absl")
    found = command_lines.parse(options_class, line)
    assert found.init_checkpoint == str(DIRECTORY)
    assert "Using --model=bert_tiny_demo" in caplog.text
    if options_class is options.ExtractFeatures:
        assert found.layer_indexes == [-1, -2]


@pytest.mark.parametrize("flag", ["vocab_file", "init_checkpoint", "model"])
@pytest.mark.parametrize(("options_class", "line"), DEFAULTS)
def test_default_model_is_not_used_with_model_flags(options_class, line, flag):
    value = "" if flag == "model" else "a"
    with pytest.raises(InputError, match=r"required|must be given"):
        command_lines.parse(options_class, f"{line} --{flag}={value}")
