"""Model Garden checkpoints in, against recorded outputs of its models."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from support.conversions import VOCAB, arrays_of, convert, outputs
from support.transformers_process import SIZES

from official_bert.checkpoints import tf1
from official_bert.config import BertConfig
from official_bert.errors import InputError

pytest.importorskip("safetensors")

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "model_garden"
UNTRAINED = "_pooler_layer"
NAME = "encoder_v2"


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(BertConfig(**SIZES).to_json_string())
    return path


def run(name, config_file, **flags):
    output = config_file.parent / "out"
    vocab = config_file.parent / "vocab.txt"
    vocab.write_text("\n".join(VOCAB) + "\n")
    convert(
        input=GOLDEN / name,
        output=output,
        bert_config_file=config_file,
        vocab_file=vocab,
        **{"to": "tf1", **flags},
    )
    return output


def assert_close(found, recorded, name):
    expected = np.load(GOLDEN / "outputs.npz")[recorded]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", ["encoder_v1", "encoder_v2"])
def test_encoder_has_the_same_outputs_here(config_file, name):
    found = outputs(run(name, config_file), "encoder")
    assert_close(found["last_hidden_state"], f"{name}/sequence_output", name)
    assert_close(found["pooler_output"], f"{name}/pooled_output", name)


@pytest.mark.parametrize("name", ["pretrainer_v1", "pretrainer_v2"])
def test_pretrainer_has_the_same_outputs_here(config_file, name, capsys):
    is_new = name.endswith("2")
    flags = {"skip": UNTRAINED} if is_new else {}
    found = outputs(run(name, config_file, **flags), "pretraining")
    left_out = "Left out: model/encoder_network/_pooler_layer/bias, "
    assert (left_out in capsys.readouterr().out) == is_new
    masked_lm = "mlm_logits" if is_new else "masked_lm"
    next_sentence = "next_sentence" if is_new else "classification"
    assert_close(found["prediction_logits"], f"{name}/{masked_lm}", name)
    assert_close(
        found["seq_relationship_logits"], f"{name}/{next_sentence}", name
    )


def test_second_pooler_is_an_error(config_file):
    with pytest.raises(InputError, match=r"classification_hea.*one weight"):
        run("pretrainer_v2", config_file)


def test_config_of_another_model_is_an_error(config_file):
    given = json.loads(config_file.read_text())
    given["num_attention_heads"] = 4
    config_file.write_text(json.dumps(given))
    with pytest.raises(
        InputError, match=r"wrong shape.*\[8, 2, 4\].*\[8, 4, 2"
    ):
        run("encoder_v2", config_file)
    given["num_hidden_layers"] = 1
    config_file.write_text(json.dumps(given))
    with pytest.raises(InputError, match="no counterpart: _transformer_layers"):
        run("encoder_v2", config_file)


def test_optimizer_state_is_left_out(config_file, tmp_path):
    """With the names of old and new Keras 2 optimizers."""
    stored = {
        name: tf1.read_array(tf1.open_reader(str(GOLDEN / NAME)), NAME, name)
        for name, _ in tf.train.list_variables(str(GOLDEN / NAME))
    }
    end = "/.ATTRIBUTES/VARIABLE_VALUE"
    slot = "/.OPTIMIZER_SLOT/optimizer/m"
    extra = [
        "save_counter",
        "global_step",
        "optimizer/iter",
        "optimizer/_variables/1",
        f"encoder/_pooler_layer/kernel{slot}",
    ]
    stored |= {f"{name}{end}": np.zeros([8, 8]) for name in extra}
    tf1.write(str(tmp_path / "run"), stored)
    out = run(tmp_path / "run", config_file)
    assert len(arrays_of(out)) == 5 + 2 * 16 + 2
    odd = {**stored, f"encoder/odd{end}": np.zeros(3)}
    tf1.write(str(tmp_path / "run"), odd)
    with pytest.raises(InputError, match="no counterpart: odd"):
        run(tmp_path / "run", config_file, overwrite=True)


def test_input_format_must_be_that_of_the_files(config_file):
    with pytest.raises(InputError, match="with TF2's object graph"):
        run("encoder_v2", config_file, input_format="tf1", to="huggingface")


def test_model_garden_checkpoint_cannot_be_stripped(config_file):
    with pytest.raises(InputError, match="needs a TF1 checkpoint"):
        convert(
            input=GOLDEN / "encoder_v2",
            output=config_file.parent / "out",
            to="tf1",
            strip_optimizer=True,
        )
