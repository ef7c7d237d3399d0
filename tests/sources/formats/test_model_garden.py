import dataclasses
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from support import conversions, write_vocab
from support.conversions import VOCAB, arrays_of, convert, outputs, to_tf1

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.trained_models import load_encoder
from official_bert.sources import formats
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.pretrained import ModelFiles
from tools.golden.transformers_process import SIZES

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "model_garden"
NAME = "encoder_v2"


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(BertConfig(**SIZES).to_json_string())
    return path


def run(name, config_file, **flags):
    vocab = write_vocab(config_file.parent, VOCAB)
    flags = {"to": "tf1", "vocab_file": vocab, **flags}
    flags["output"] = config_file.parent / "out"
    return convert(input=GOLDEN / name, bert_config_file=config_file, **flags)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("encoder_v1", "sequence_output", "pooled_output"),
        ("encoder_v2", "sequence_output", "pooled_output"),
        ("pretrainer_v1", "masked_lm", "classification"),
        ("pretrainer_v2", "mlm_logits", "next_sentence"),
    ],
)
def test_model_has_equal_outputs_here(config_file, capsys, name, first, second):
    # This model has a pooler that it does not use.
    skip = "_pooler_layer" if name == "pretrainer_v2" else None
    head = "encoder" if name.startswith("encoder") else "pretraining"
    found = outputs(run(name, config_file, skip=skip), head).values()
    left_out = "Left out: model/encoder_network/_pooler_layer/bias, "
    assert (left_out in capsys.readouterr().out) == (skip is not None)
    recorded = np.load(GOLDEN / "outputs.npz")
    for values, key in zip(found, (first, second), strict=True):
        expected = recorded[f"{name}/{key}"]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-5)


def test_weights_are_loaded_with_a_config_in_another_directory(config_file):
    vocab = write_vocab(config_file.parent, VOCAB)
    files = ModelFiles(str(config_file), vocab, str(GOLDEN / NAME))
    bert = load_encoder(files).bert
    inputs = conversions.batch()
    del inputs["masked_lm_positions"]
    expected = np.load(GOLDEN / "outputs.npz")[f"{NAME}/sequence_output"]
    found = bert(**inputs).sequence_output
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    conversions.change_json(config_file, num_hidden_layers=1)
    files = dataclasses.replace(files)  # Files are read once.
    with pytest.raises(InputError, match="unused: encoder/_transformer_lay"):
        load_encoder(files)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 4}, r"wrong shape.*\[8, 2, 4\].*\[8, 4, 2"),
        ({"num_hidden_layers": 1}, "no counterpart: encoder/_trans"),
    ],
)
def test_config_of_another_model_is_an_error(config_file, changes, message):
    conversions.change_json(config_file, **changes)
    with pytest.raises(InputError, match=message):
        run(NAME, config_file)


def test_optimizer_state_is_left_out(config_file, tmp_path):
    """With the names of old and new Keras 2 optimizers."""
    stored = arrays_of(GOLDEN / NAME)
    end = "/.ATTRIBUTES/VARIABLE_VALUE"
    slot = "encoder/_pooler_layer/kernel/.OPTIMIZER_SLOT/optimizer/m"
    extra = ["save_counter", "global_step", "optimizer/iter", slot]
    for name in [*extra, "optimizer/_variables/1"]:
        stored[f"{name}{end}"] = np.zeros([8, 8])
    tf1.write(str(tmp_path / "run"), stored)
    out = run(tmp_path / "run", config_file)
    assert len(arrays_of(out)) == 5 + 2 * 16 + 2
    odd = {**stored, f"encoder/odd{end}": np.zeros(3)}
    tf1.write(str(tmp_path / "run"), odd)
    with pytest.raises(InputError, match="no counterpart: encoder/odd"):
        run(tmp_path / "run", config_file, overwrite=True)


def test_checkpoints_of_tf2_are_told_from_those_of_tf1(tmp_path):
    path = str(tmp_path / "tf2")
    # The name shares its start with that of the object graph.
    tf.train.Checkpoint(_CHECK=tf.Variable(1.0)).write(path)
    assert formats.find(path, "").format.name == "model_garden"
    tf1.write(str(tmp_path / "tf1"), {"_CHECK": 1.0})
    assert formats.find(str(tmp_path / "tf1"), "").format.name == "tf1"
    tf.train.Checkpoint(x=tf.Variable(1.0)).save(str(tmp_path / "run" / "x"))
    assert formats.find(str(tmp_path / "run"), "").format.name == "model_garden"


def test_unsuitable_flags_are_an_error(config_file, tmp_path):
    with pytest.raises(InputError, match=r"classification_hea.*same weight"):
        run("pretrainer_v2", config_file)
    with pytest.raises(InputError, match="format of --input, model_garden"):
        run(NAME, config_file, input_format="tf1", to="huggingface")
    with pytest.raises(InputError, match="needs a TF1 checkpoint"):
        to_tf1(GOLDEN / NAME, tmp_path / "out", strip_optimizer=True)
