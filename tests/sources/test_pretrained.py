import dataclasses
import json
import os
import pathlib
import pickle
import shutil
import tempfile

import keras
import numpy as np
import pytest
from support import command_lines, conversions

from official_bert import Embedder
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.trained_models import load_encoder
from official_bert.modeling.encoder import Bert
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import ExtractFeatures
from official_bert.sources import checkpoint_paths, formats, pretrained
from official_bert.tokenization import Tokenizer

pytestmark = pytest.mark.usefixtures("directory")


def weights_of(model):
    return {weight.path: weight.numpy() for weight in model.weights}


@pytest.mark.parametrize("name", conversions.FORMATS)
def test_model_of_any_format_has_the_weights_of_its_source(models, name):
    stored, directory = conversions.arrays_of(models["tf1"]), str(models[name])
    bert = Bert.from_pretrained(directory)
    for path, array in weights_of(bert).items():
        if not path.startswith("bert/pooler/"):
            np.testing.assert_array_equal(array, stored[path])
    model = PretrainingModel.from_pretrained(directory)
    path = "cls/predictions/output_bias"
    np.testing.assert_array_equal(weights_of(model)[path], stored[path])
    config_file = str(models["tf1"] / "bert_config.json")
    expected = BertConfig.from_json_file(config_file).to_dict()
    found = model.config.to_dict()
    del expected["initializer_range"]  # Not in KerasHub's presets.
    assert expected.items() <= found.items()
    tokenizer = Tokenizer.from_pretrained(directory)
    assert tokenizer.tokenize("AB c") == ["[UNK]", "c"]


def test_frozen_and_renamed_encoders_have_the_same_weights(models):
    directory, ids = str(models["tf1"]), np.array([[1, 2]])
    frozen = Bert.from_pretrained(directory, trainable=False)
    renamed = Bert.from_pretrained(directory, name="encoder")
    expected = Bert.from_pretrained(directory)(ids).pooled_output
    inputs = keras.Input([None], dtype="int32")
    outputs = [bert(inputs).pooled_output for bert in (frozen, renamed)]
    model = keras.Model(inputs, outputs)
    for found in model(ids):
        np.testing.assert_array_equal(found, expected)
    trained = {w.path.split("/")[0] for w in model.trainable_variables}
    assert trained == {"encoder"}


@pytest.mark.parametrize("model_class", [Bert, PretrainingModel])
def test_saved_model_has_its_tokenizer(models, model_class, monkeypatch):
    tokenizer = Tokenizer.from_pretrained(models["tf1"], do_lower_case=False)
    model = model_class.from_pretrained(models["tf1"], name="mine")
    for weight in model.weights:
        weight.assign_add(np.ones(weight.shape))
    model.save_pretrained("saved", tokenizer)
    loaded = model_class.from_pretrained("saved", name="mine")
    for path, array in weights_of(model).items():
        np.testing.assert_array_equal(weights_of(loaded)[path], array)
    assert loaded.config == model.config
    found = pretrained.find("saved")
    assert (found.vocab_file, found.do_lower_case) == ("saved/vocab.txt", False)
    assert Tokenizer.from_pretrained("saved").vocab == tokenizer.vocab
    monkeypatch.setenv("HOME", os.getcwd())
    model_class(model.config).save_pretrained("~/new/model")
    assert os.path.exists("new/model/bert_model.ckpt.index")
    other = model_class(dataclasses.replace(model.config, vocab_size=9))
    for tokenizer_of_another_model in (None, tokenizer):
        with pytest.raises(InputError, match=r"vocab\.txt: \d+ tokens exceed"):
            other.save_pretrained("saved", tokenizer_of_another_model)
    with pytest.raises(InputError, match="must be a `Tokenizer`"):
        model.save_pretrained("saved", "bert_tiny_demo")


def test_saved_model_has_the_outputs_of_its_lora_layers(models):
    ids = np.array([[1, 2, 3]])
    bert = Bert.from_pretrained(models["tf1"], name="mine")
    before = bert(ids).pooled_output
    for layer in (bert.encoder.layers[0].attention.query, bert.pooler):
        layer.enable_lora(2, lora_alpha=6)
        layer.lora_kernel_b.assign(layer.lora_kernel_b + 0.25)
    expected = bert(ids).pooled_output
    assert np.abs(expected - before).max() > 0.01
    bert.save_pretrained("saved")
    loaded = Bert.from_pretrained("saved")
    np.testing.assert_allclose(loaded(ids).pooled_output, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "config"),
    [("tf1", "bert_config.json"), ("huggingface", "config.json")],
)
def test_config_with_fewer_layers_is_an_error(models, directory, name, config):
    shutil.copytree(models[name], "model")
    conversions.change_json(directory / "model" / config, num_hidden_layers=1)
    message = "unused: bert.encoder.layer.1"
    with pytest.raises(InputError, match=message):
        load_encoder(pretrained.find("model"))
    with pytest.raises(InputError, match=message):
        Bert.from_pretrained("model")


def test_files_that_are_named_like_the_prefix_do_not_matter(models):
    shutil.copytree(models["tf1"], "model")
    prefix = "model/bert_model.ckpt"
    shutil.copy(f"{prefix}.data-00000-of-00001", prefix)
    assert checkpoint_paths.beside(prefix, "vocab.txt") == "model/vocab.txt"


def test_checkpoint_without_a_config_is_an_error(models):
    shutil.copytree(models["tf1"], "run")
    os.remove("run/bert_config.json")
    with pytest.raises(InputError, match=r"^run: .* no bert_config.json"):
        pretrained.find("run")
    pathlib.Path("run/task.json").write_text('{"hub_module": "m"}')
    with pytest.raises(InputError, match="trained from a TF Hub module"):
        pretrained.find("run")


def test_error_in_a_translated_vocabulary_names_the_model(models):
    shutil.copytree(models["huggingface"], "tokens_were_added")
    with open("tokens_were_added/vocab.txt", "a") as file:
        file.write("new\n")
    with pytest.raises(InputError, match=r"^tokens_were_added: 25 "):
        Embedder.from_pretrained("tokens_were_added")


def test_model_is_not_saved_in_a_run_directory(models):
    os.mkdir("run")
    pathlib.Path("run/train_options.json").write_text("{}")
    with pytest.raises(InputError, match="run is a run directory"):
        Bert.from_pretrained(models["tf1"]).save_pretrained("run")
    assert os.listdir("run") == ["train_options.json"]


def test_checkpoint_with_its_config_comes_before_other_formats(models):
    for name in ("tf1", "huggingface"):
        shutil.copytree(models[name], "model", dirs_exist_ok=True)
    assert formats.find("model", "").format.name == "tf1"
    assert pretrained.find("model").init_checkpoint == "model/bert_model.ckpt"
    os.remove("model/bert_config.json")
    assert formats.find("model", "").format.name == "huggingface"
    assert pretrained.find("model").init_checkpoint == "model"


def test_missing_heads_are_newly_initialized_with_a_warning(models, caplog):
    PretrainingModel.from_pretrained(str(models["huggingface"]))
    assert "newly initialized" in caplog.text
    assert "cls/seq_relationship/output_bias" in caplog.text
    assert "cls/predictions" not in caplog.text


def test_best_checkpoint_has_the_config_of_its_run(models):
    shutil.copytree(models["tf1"], "run/best")
    for name in ("bert_config.json", "vocab.txt"):
        os.rename(f"run/best/{name}", f"run/{name}")
    found = pretrained.find("run/best/")
    assert found.bert_config_file == "run/bert_config.json"
    assert found.vocab_file == "run/vocab.txt"


def test_casing_follows_files_then_name_then_vocabulary(directory, models):
    def casing(name="model", vocab="a b", config="{}"):
        shutil.copytree(models["tf1"], name, dirs_exist_ok=True)
        lines = "\n".join(["[UNK]", *vocab.split()])
        (directory / name / "vocab.txt").write_text(lines)
        (directory / name / "tokenizer_config.json").write_text(config)
        lower = pretrained.find(name).do_lower_case
        assert pretrained.run_files(name).do_lower_case == lower
        return lower

    assert casing()
    assert not casing(vocab="A b")
    assert not casing(vocab="Москва река")
    assert not casing(vocab="में")  # Lower-casing removes the vowel signs.
    assert casing("uncased_L-2_H-128_A-2", "A b")
    assert not casing("cased_L-12_H-768_A-12")
    assert not casing("cased", config='{"do_lower_case": false}')
    remote = f"file://{directory}/cased"
    assert not pretrained.find(remote).do_lower_case


@pytest.mark.parametrize(
    ("vocab", "expected"),
    [
        ("über straße", ["über", "[UNK]", "[UNK]"]),  # Uncased, with accents.
        ("uber strasse", ["uber", "[UNK]", "[UNK]"]),
        ("Über straße", ["Über", "[UNK]", "[UNK]"]),
        ("में der A", ["[UNK]", "में", "A"]),  # Few tokens have a case.
        (" में" * 200 + " der", ["[UNK]", "में", "[UNK]"]),
    ],
)
def test_accents_are_removed_unless_the_vocabulary_has_them(
    models, vocab, expected
):
    shutil.copytree(models["tf1"], "model")
    tokens = ["[UNK]", "[CLS]", "[SEP]", *vocab.split()]
    pathlib.Path("model/vocab.txt").write_text("\n".join(tokens))
    line = "--input_file=model/vocab.txt --output_file=b --model=model"
    line += " --max_seq_length=6 --layers=-1"
    files = command_lines.parse(ExtractFeatures, line).model_files
    for tokenizer in (
        files.tokenizer,
        pretrained.run_files("model").tokenizer,
        Tokenizer.from_pretrained("model"),
    ):
        assert tokenizer.tokenize("Über में A") == expected
    stripped = command_lines.parse(
        ExtractFeatures, f"{line} --strip_accents=true"
    )
    assert "में" not in stripped.model_files.tokenizer.tokenize("में")


def test_vocabulary_is_read_from_tokenizer_json(models):
    shutil.copytree(models["huggingface"], "model")
    os.remove("model/vocab.txt")
    for load in (Tokenizer.from_pretrained, Embedder.from_pretrained):
        with pytest.raises(InputError, match=r"neither vocab\.txt"):
            load("model")
    tokens = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3}
    content = {
        "model": {"type": "WordPiece", "vocab": tokens},
        "normalizer": {"type": "BertNormalizer"},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
    }
    pathlib.Path("model/tokenizer.json").write_text(json.dumps(content))
    assert Tokenizer.from_pretrained("model").vocab == tokens


def test_model_sets_the_flags_that_are_omitted(models):
    pathlib.Path("a").write_text("a")
    flags = "--input_file=a --output_file=b --max_seq_length=6 --layers=-1"

    def parse(name, more=""):
        line = f"{flags} --model={models[name]} {more}"
        return command_lines.parse(ExtractFeatures, line)

    found, model = parse("tf1"), models["tf1"]
    assert found.bert_config_file == str(model / "bert_config.json")
    assert found.vocab_file == str(model / "vocab.txt")
    assert found.init_checkpoint == str(model / "bert_model.ckpt")
    assert found.model_files.settings.strip_accents is None
    shutil.copy(model / "vocab.txt", "b.txt")
    assert parse("tf1", "--vocab_file=b.txt").vocab_file == "b.txt"
    # Flags change the tokenizer of the model.
    more = "--strip_accents=false --never_split=[MASK]"
    settings = parse("huggingface", more).model_files.settings
    contents = [token.content for token in settings.added_tokens]
    assert (settings.strip_accents, contents) == (False, ["[MASK]"])


def test_model_needs_no_writable_cache(models, directory, monkeypatch):
    expected = pretrained.find(models["huggingface"])
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    found = pretrained.find(models["huggingface"])
    assert found.config == expected.config
    assert found.tokenizer.vocab == expected.tokenizer.vocab
    monkeypatch.setattr(tempfile, "tempdir", str(directory / "missing"))
    with pytest.raises(InputError, match=r"/dev/null/.*set XDG_CACHE_HOME\."):
        pretrained.find(models["huggingface"])


@pytest.mark.parametrize("name", conversions.FORMATS)
def test_other_processes_receive_the_files_of_a_model(models, name):
    found = pretrained.find(models[name])
    tokenizer = found.tokenizer  # Kept, as `source` is.
    received = pickle.loads(pickle.dumps(found))
    assert received == found
    assert received.tokenizer.vocab == tokenizer.vocab
    assert received.source == found.source


def test_model_without_vocabulary_needs_one_which_shows_its_casing(models):
    shutil.copytree(models["tf1"], "model")
    os.remove("model/vocab.txt")
    for token, is_uncased in (("cat", True), ("Cat", False)):
        pathlib.Path("other.txt").write_text(f"{token}\n")
        found = pretrained.find("model", "other.txt")
        assert (found.vocab_file, found.do_lower_case) == ("", is_uncased)
    pathlib.Path("a").write_text("a")
    line = "--input_file=a --output_file=b --model=model --layers=-1"
    line += " --max_seq_length=6"
    with pytest.raises(InputError, match="--vocab_file is required"):
        command_lines.parse(ExtractFeatures, line)
    given = command_lines.parse(
        ExtractFeatures, f"{line} --vocab_file=other.txt"
    )
    assert given.model_files.vocab_file == "other.txt"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("uncased_L-2_H-129_A-2", r"Did you mean uncased_L-2_H-128_A-2\?"),
        ("bert-base-cased", r"Did you mean cased_L-12_H-768_A-12\?"),
        ("./nope", "'./nope' must be a directory, the name of a released"),
        ("a/b/c", "'a/b/c' must be a directory, the name of a released mod"),
        ("", "'' must be a directory"),
        ("bert_model.ckpt", "For a checkpoint, pass its direct"),
        ("model.keras", "model.keras is a Keras file"),
        ("model.weights.h5", "model.weights.h5 is a Keras file"),
        ("export/1", "^export/1 is a SavedModel.* Pass the run directory"),
        ("export", "^export/1 is a SavedModel"),
        ("optimum", "optimum/openvino_model.bin was written by Optimum"),
        ("empty", r"^empty must have config.json.* Received: no files\."),
        ("notes.txt", r"^notes.txt must have .* Received: a file\."),
        ("a/b--c", "a/b--c is neither a directory nor a valid name .*Cannot"),
    ],
)
def test_unknown_name_or_a_file_is_an_error(model, message):
    pathlib.Path("export/1").mkdir(parents=True)
    pathlib.Path("export/1/saved_model.pb").touch()
    pathlib.Path("optimum").mkdir()
    pathlib.Path("empty").mkdir()
    for name in (
        "notes.txt",
        *("bert_model.ckpt.index", "model.keras", "model.weights.h5"),
        *("optimum/openvino_model.bin", "optimum/openvino_model.xml"),
    ):
        pathlib.Path(name).touch()
    with pytest.raises(InputError, match=message):
        pretrained.find(model)
