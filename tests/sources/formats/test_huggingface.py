"""Conversion to and from Hugging Face directories, compared with transformers.

`tests/golden/transformers` holds models that transformers saved. A Python with
transformers is used, too, if TRANSFORMERS_PYTHON names one.
"""

import json
import pathlib
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support import ROOT
from support.conversions import (
    HEADS,
    VOCAB,
    arrays_of,
    assert_arrays,
    assert_equal_files,
    change_json,
    outputs,
    released,
    to_hf,
    to_tf1,
)
from support.processes import python_with, run_offline
from support.run_outputs import read_json

from official_bert import Bert, PretrainingModel
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.sources import weight_names
from official_bert.sources.formats.huggingface import weights as hf_weights
from tools.golden import transformers_process

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "transformers"

every_head = pytest.mark.parametrize("head", HEADS)
WORDS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture
def hf_model(tmp_path):
    """A pre-training model saved by transformers, without vocab.txt."""
    return shutil.copytree(GOLDEN / "pretraining", tmp_path / "hf_model")


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_names_and_shapes_are_those_of_transformers(head):
    # A BertModel by itself is its own root.
    is_root = "." in head.architecture or not head.scopes
    expected = {
        f"bert.{name}" if is_root else name: tuple(shape)
        for name, shape in read_json(GOLDEN / "names.json")[
            head.architecture
        ].items()
    }
    config = BertConfig(**transformers_process.SIZES)
    num_classes = 1 if head.name == "multiple_choice" else 3
    shapes = weight_names.shapes(config, num_classes)
    names = hf_weights.NAMES
    found = {
        names.rename(name): names.shape(name, shapes[name], config)
        for name in weight_names.names_of_model(shapes, head)
        if head.has_pooler
        or head.name == "encoder"
        or not name.startswith(weight_names.POOLER)
    }
    assert found == expected


def test_transformers_model_has_the_same_outputs_here(hf_model, tmp_path):
    folder = to_tf1(hf_model)
    assert_same_outputs(hf_model, folder, "pretraining")
    assert (folder / "vocab.txt").read_text().split() == VOCAB


@every_head
def test_model_is_unchanged_after_conversion_and_back(tmp_path, head, capsys):
    choices = 1 if head == "multiple_choice" else 3
    # The config of the released Chinese model has such an unknown key.
    arrays = released(tmp_path / "a", head, choices, hidden_dropout_prob=0.25)
    change_json(tmp_path / "a" / "bert_config.json", pooler_type="first_token")
    hf = to_hf(tmp_path / "a", head, do_lower_case=False)
    assert "largest difference 0" in capsys.readouterr().out
    back = to_tf1(hf)
    assert_arrays(back, arrays)
    assert_equal_files(tmp_path / "a", back, "vocab.txt")
    config = read_json(tmp_path / "a" / "bert_config.json")
    assert read_json(back / "bert_config.json") == config
    assert read_json(hf / "tokenizer_config.json")["do_lower_case"] is False


@pytest.mark.parametrize("head", ["encoder", "pretraining"])
def test_files_of_other_versions_are_converted(tmp_path, head, capsys):
    """Old names and other prefixes, buffers, tied copies, several files."""
    arrays = released(tmp_path / "a", head)
    folder = to_hf(tmp_path / "a", head)
    stored = load_file(folder / "model.safetensors")
    stored["bert.embeddings.position_ids"] = np.arange(12)[None]
    names = {"Norm.weight": "Norm.gamma", "Norm.bias": "Norm.beta"}
    if head == "encoder":
        names["bert."] = ""
    else:
        decoder = "cls.predictions.decoder"
        stored[f"{decoder}.weight"] = stored[WORDS].copy()
        stored[f"{decoder}.bias"] = stored.pop("cls.predictions.bias")
        prefix = "model._orig_mod.module."  # torch.compile, DataParallel.
        names |= {"bert.": f"{prefix}bert.", "cls.": f"{prefix}cls."}
    for new, old in names.items():
        stored = {n.replace(new, old): a for n, a in stored.items()}
    (folder / "model.safetensors").unlink()
    shards = {}
    for number in range(3):
        shard = dict(list(stored.items())[number::3])
        save_file(shard, folder / f"{number}.safetensors")
        shards |= dict.fromkeys(shard, f"{number}.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": shards}))
    capsys.readouterr()
    assert_arrays(to_tf1(folder), arrays)
    printed = capsys.readouterr().out
    assert f"\ninput  {len(arrays) + 1:7} " in printed  # Without copies.
    assert "Left out: bert.embeddings.position_ids." in printed


def test_bfloat16_becomes_float32(tmp_path):
    released(tmp_path / "a", "encoder")
    path = to_hf(tmp_path / "a") / "model.safetensors"
    stored = load_file(path)
    name = "bert.pooler.dense.bias"
    expected = np.array([0.5, -1.25, 0, 3, 1, 2, -7, 256], np.float32)
    half = (expected.view(np.uint32) >> 16).astype(np.uint16)
    save_file({**stored, name: half}, path)
    # NumPy has no bfloat16: change the header, which follows its length.
    data = path.read_bytes().replace(b'"U16"', b'"BF16"')
    length = int.from_bytes(data[:8], "little") + 1
    path.write_bytes(length.to_bytes(8, "little") + data[8:])
    found = arrays_of(to_tf1(tmp_path / "hf"))["bert/pooler/dense/bias"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("head", ["masked_lm", "question_answering"])
def test_missing_pooler_is_newly_initialized(tmp_path, capsys, head):
    arrays = released(tmp_path / "a", head)
    path = to_hf(tmp_path / "a", head) / "model.safetensors"
    kept = {n: a for n, a in load_file(path).items() if "pooler" not in n}
    save_file(kept, path)
    found = arrays_of(to_tf1(tmp_path / "hf"))
    printed = capsys.readouterr().out
    assert "Newly initialized: bert/pooler/dense/kernel" in printed
    assert sorted(found) == sorted(arrays)
    kernel = found["bert/pooler/dense/kernel"]
    assert 0.2 < kernel.std() < 0.7
    # These values must not change. The last one replaces a too large value.
    drawn = np.float32([0.06286511, -0.06605243, 0.32021132, 0.16448481])
    np.testing.assert_array_equal([*kernel[0, :3], kernel[1, 4]], drawn)
    assert np.abs(kernel).max() <= 1.0  # Two deviations.


@pytest.mark.slow
def test_both_forms_of_gelu_are_converted(tmp_path, hf_model):
    released(tmp_path / "a", "encoder")
    change_json(hf_model / "config.json", hidden_act="gelu")
    ours = to_tf1(hf_model)
    assert read_json(ours / "bert_config.json")["hidden_act"] == "gelu_erf"
    for folder, name in (tmp_path / "a", "gelu_pytorch_tanh"), (ours, "gelu"):
        config = read_json(to_hf(folder, overwrite=True) / "config.json")
        assert config["hidden_act"] == name


EXTRA_TOKEN = {token: number for number, token in enumerate([*VOCAB, "t"])}
GAP = {"[PAD]": 0, "[UNK]": 2}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("config", {"model_type": "roberta"}, 'type` must be "bert".*roberta'),
        ("config", {"layer_norm_eps": 1e-5}, "`layer_norm_eps` must be 1e-12"),
        ("config", {"is_decoder": True}, "`is_decoder` must be false"),
        ("config", {"tie_word_embeddings": False}, "`tie_word_.* be true"),
        ("config", {"hidden_act": "silu"}, "`hidden_act` must be one of"),
        ("config", {"hidden_act": ["gelu"]}, "`hidden_act` must be one of"),
        ("config", {"architectures": [{}]}, "`architectures` must be a str"),
        ("config", {"problem_type": 3}, "`problem_type` must be a str"),
        ("config", {"hidden_size": 9}, "multiple of num_attention_heads=2"),
        ("config", {"id2label": {"0": "a", "2": "b"}}, "without gaps"),
        ("config", {"id2label": [1]}, r"`id2label` .*\[1\]"),
        ("config", {"id2label": {"0": "a", "1": "a"}}, "different labels"),
        ("config", {"intermediate_size": 20}, "wrong shape: .*by the model's"),
        ("config", {"num_hidden_layers": 3}, r"missing: bert\.encoder.*\.2\."),
        ("config", {"num_hidden_layers": 1}, r"no counterpart: bert\..*\.1\."),
        ("config", {"vocab_size": 23}, r"wrong shape: .*word_.*\[23, 8\]"),
        ("tokenizer", {"model": {"vocab": GAP}}, "without gaps"),
        ("tokenizer", {"model": {"type": "BPE"}}, "`model.type` must .*BPE"),
        ("tokenizer", {"model": {"vocab": EXTRA_TOKEN}}, "25 tokens"),
        ("tokenizer", {"model": {"vocab": {"[PAD]": "0"}}}, "must be an int"),
        ("tokenizer", {"model": {"vocab": {"a\nb": 0}}}, "line breaks"),
        ("tokenizer", {"model": {"vocab": ["a"]}}, "`vocab` must be an object"),
        ("tokenizer", {"model": ["a"]}, "`model` must be an object"),
        ("tokenizer", {"normalizer": 5}, "`normalizer.type` must be"),
        ("tokenizer", {"added_tokens": 5}, "`added_tokens` must be a list"),
        (
            "tokenizer",
            {"added_tokens": [{"content": ["a"], "id": 0}]},
            "`content` must be a str",
        ),
        ("tokenizer_config", {"do_lower_case": "false"}, "must be a bool"),
        ("tokenizer_config", {"strip_accents": [1]}, "must be a bool"),
    ],
)
def test_model_or_tokenizer_other_than_bert_is_an_error(
    hf_model, tmp_path, name, changes, message
):
    change_json(hf_model / f"{name}.json", **changes)
    with pytest.raises(InputError, match=message):
        to_tf1(hf_model)
    assert not (tmp_path / "b").exists()


def test_ignored_setting_is_reported(hf_model, caplog):
    change_json(hf_model / "config.json", classifier_dropout=0.1)
    to_tf1(hf_model)
    assert "`classifier_dropout`" not in caplog.text
    change_json(hf_model / "config.json", classifier_dropout=0.3)
    to_tf1(hf_model, "c")
    assert "`classifier_dropout` is 0.3" in caplog.text


@pytest.mark.parametrize("size", [0, 7, 200, -1])
def test_truncated_weights_are_an_error(hf_model, size):
    path = hf_model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match="must be a complete safetensors file"):
        to_tf1(hf_model)


def test_pointer_of_git_lfs_is_an_error_that_says_so(hf_model):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1a\n"
    (hf_model / "model.safetensors").write_text(pointer)
    with pytest.raises(InputError, match=r"safetensors: .*`git lfs pull`"):
        to_tf1(hf_model)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cls.predictions.decoder.weight", "Untied"),
        ("bert.embeddings.LayerNorm.beta", "must be stored only once"),
        ("crf.transitions", r"no counterpart: crf\.transitions"),
    ],
)
def test_unknown_or_repeated_array_is_an_error_unless_skipped(
    hf_model, capsys, name, message
):
    path = hf_model / "model.safetensors"
    save_file({**load_file(path), name: np.ones((24, 8), np.float32)}, path)
    with pytest.raises(InputError, match=message):
        to_tf1(hf_model)
    if "beta" not in name:
        to_tf1(hf_model, skip=rf"^{name}$")
        assert f"Left out: {name}." in capsys.readouterr().out


def test_untied_output_weights_are_an_error_in_masked_lm(hf_model):
    path = hf_model / "model.safetensors"
    output = {"cls.predictions.decoder.weight": np.ones((24, 8), np.float32)}
    save_file({**load_file(path), **output}, path)
    with pytest.raises(InputError, match="Untied output weights"):
        PretrainingModel.from_pretrained(hf_model)
    Bert.from_pretrained(hf_model)


def test_missing_shard_is_named(hf_model):
    (hf_model / "model.safetensors").unlink()
    index = hf_model / "model.safetensors.index.json"
    for name, message in (("1.st", r"1\.st"), ("../1.st", "beside it")):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(InputError, match=message):
            to_tf1(hf_model)


@pytest.fixture(scope="module")
def transformers():
    """Runs `transformers_process.py` in a Python that has transformers."""
    python = python_with("torch, transformers", "TRANSFORMERS_PYTHON")
    program = transformers_process.__file__
    return lambda *arguments: run_offline(python, program, *arguments)


@pytest.mark.nightly
@every_head
def test_transformers_computes_equal_outputs(tmp_path, transformers, head):
    released(tmp_path / "a", head, 1 if head == "multiple_choice" else 3)
    hf = to_hf(tmp_path / "a", head)
    transformers("run", HEADS[head].architecture, hf)
    loading = read_json(hf / "loading.json")
    assert loading["missing_keys"] == []
    assert all("pooler" in name for name in loading["unexpected_keys"])
    assert_same_outputs(hf, tmp_path / "a", head)


@pytest.mark.nightly
def test_transformers_has_equal_outputs_with_the_demo(tmp_path, transformers):
    directory = ROOT / "data" / "bert_tiny"
    hf = shutil.copytree(directory, tmp_path / "hf")
    transformers("run", "BertForPreTraining", hf)
    assert read_json(hf / "loading.json")["missing_keys"] == []
    assert_same_outputs(hf, to_tf1(hf), "pretraining")


@pytest.mark.nightly
@pytest.mark.parametrize("gelu", ["gelu_new", "gelu"])
@every_head
def test_files_of_transformers_have_the_same_outputs_here(
    tmp_path, transformers, head, gelu
):
    name = HEADS[head].architecture
    transformers("make", name, tmp_path / "hf", gelu)
    to_tf1(tmp_path / "hf")
    assert_same_outputs(tmp_path / "hf", tmp_path / "b", head)


def assert_same_outputs(hf, tf1_directory, head):
    found = outputs(tf1_directory, head)
    recorded = np.load(hf / "outputs.npz")
    assert set(found) <= set(recorded)
    for name, values in found.items():
        expected = recorded[name]
        # Rounding errors grow with the values; logits of the demo reach 14.
        tolerance = max(1e-5, 2e-6 * np.abs(expected).max())
        np.testing.assert_allclose(values, expected, rtol=0, atol=tolerance)
