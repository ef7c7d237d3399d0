"""A BiLSTM over a frozen BERT, and over one that is trained, by command."""

import json
import random
import shutil

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

import run_classifier
from official_bert.checkpoints import run_directory
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import RunClassifier

CONFIG = {
    "vocab_size": 9,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}
WORDS = ["red", "blue", "sun", "rain", "##s"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]


def sentence(rng):
    """Colours and weather, one tag each."""
    words = [rng.choice(WORDS[:4]) for _ in range(rng.randint(1, 9))]
    tags = {"red": "C", "blue": "C", "sun": "W", "rain": "W"}
    return "".join(f"{word} {tags[word]}\n" for word in words)


@pytest.fixture
def folder(tmp_path):
    rng = random.Random(0)
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "vocab.txt").write_text("".join(f"{v}\n" for v in VOCAB))
    for name, number in (("train", 96), ("dev", 24), ("test", 24)):
        text = "\n".join(sentence(rng) for _ in range(number))
        (tmp_path / f"{name}.txt").write_text(text)
    model = PretrainingModel(BertConfig.from_dict(CONFIG))
    recorded.set_weights(model.trainable_variables, 3)
    arrays = {w.path: w.numpy() for w in model.trainable_variables}
    run_directory.save(str(tmp_path / "pre"), 0, arrays, None, keep=1)
    return tmp_path


def options(folder, name="out", **changes):
    return RunClassifier(
        **{
            "task_name": "tagging",
            "data_dir": str(folder),
            "bert_config_file": str(folder / "bert_config.json"),
            "vocab_file": str(folder / "vocab.txt"),
            "init_checkpoint": str(folder / "pre"),
            "output_dir": str(folder / name),
            "max_seq_length": 12,
            "train_batch_size": 8,
            "num_train_epochs": 1.0,
            "learning_rate": 1e-2,
            "do_train": True,
            "bilstm_size": 16,
            **changes,
        }
    )


def run(folder, name="out", **changes):
    run_classifier.main(options(folder, name, **changes))
    return folder / name


def weights(folder):
    reader = tf.train.load_checkpoint(run_directory.latest(str(folder)))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


@pytest.mark.slow
def test_bert_stays_as_it_is_and_what_is_above_it_learns(folder):
    out = run(
        folder,
        feature_layers="weighted_sum_all",
        num_train_epochs=6.0,
        pad_to="bucket",
        do_eval=True,
        do_predict=True,
    )
    before, after = weights(folder / "pre"), weights(out)
    bert = {name for name in before if name.startswith("bert/")}
    for name in bert:
        np.testing.assert_array_equal(after[name], before[name], name)
    moments = {name for name in after if name.endswith(("adam_m", "adam_v"))}
    above = set(after) - bert - moments - {"global_step"}
    assert {name.partition("/")[0] for name in above} == {
        "bilstm",
        "features",
        "output_weights",
        "output_bias",
    }
    assert len(moments) == 2 * len(above)
    assert np.any(after["features/layer_weights"])
    assert after["features/scale"] != [1]
    assert np.any(after["output_bias"])
    results = json.loads((out / "eval_results.json").read_text())
    assert results["accuracy"] > 0.9

    lines = (out / "test_predictions.txt").read_text().splitlines()
    predicted = [line.split()[2] for line in lines if line]
    sentences = (folder / "test.txt").read_text().split("\n\n")
    items = [
        [line.split()[0] for line in text.splitlines()] for text in sentences
    ]
    again = Predictor.from_dir(str(out))(items)
    assert [tag for answer in again for tag in answer["tags"]] == predicted


@pytest.mark.slow
@pytest.mark.parametrize(
    "feature_layers",
    [pytest.param("none", marks=pytest.mark.slow), "concat_last_4"],
)
def test_a_run_goes_on_where_it_stopped(folder, feature_layers):
    given = {
        "feature_layers": feature_layers,
        "save_checkpoints_steps": 5,
        "keep_checkpoint_max": 9,
    }
    whole = run(folder, "whole", **given)
    shutil.copytree(whole, folder / "resumed")
    for path in (folder / "resumed").glob("model.ckpt-1[02].*"):
        path.unlink()
    (folder / "resumed" / "checkpoint").unlink()
    assert run_directory.latest(str(folder / "resumed")).endswith("-5")
    resumed = weights(run(folder, "resumed", **given))
    expected = weights(whole)
    assert set(resumed) == set(expected)
    assert expected["global_step"] == 12
    for name, array in expected.items():
        np.testing.assert_array_equal(resumed[name], array, name)


@pytest.mark.slow
def test_a_bilstm_above_a_trained_bert(folder):
    before, after = weights(folder / "pre"), weights(run(folder))
    for name, array in before.items():
        if name.startswith("bert/") and "pooler" not in name:
            assert np.any(after[name] != array), name
    assert after["bilstm/layer_1/backward/kernel"].shape == (32, 64)
    described = json.loads((folder / "out" / "task.json").read_text())
    assert described["top"] == {"feature_layers": "none", "bilstm_size": 16}


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"jit_compile": True},
        {"mixed_precision": "bfloat16"},
        {"gradient_accumulation_steps": 2, "remat": True},
        {"distribution_strategy": "mirrored"},
    ],
    ids=str,
)
@pytest.mark.parametrize("feature_layers", ["none", "weighted_sum_last_4"])
def test_it_learns_however_it_is_computed(folder, feature_layers, changes):
    out = run(
        folder,
        feature_layers=feature_layers,
        num_train_epochs=6.0,
        do_eval=True,
        learning_rate=3e-3 if feature_layers == "none" else 1e-2,
        **changes,
    )
    results = json.loads((out / "eval_results.json").read_text())
    assert results["accuracy"] > 0.8  # Guessing gives 0.5.


@pytest.mark.slow
def test_a_folder_holds_one_kind_of_model(folder):
    """Also where the weights would fit."""
    run(folder, feature_layers="last")
    with pytest.raises(InputError, match="another task, whose `top`"):
        run(folder, feature_layers="second_to_last")


@pytest.mark.slow
def test_what_is_above_bert_can_be_swept(folder):
    run(
        folder,
        sweep="feature_layers=none,embeddings;bilstm_size=0,4",
        bilstm_size=None,
    )
    table = (folder / "out" / "sweep.tsv").read_text().splitlines()
    assert len(table) == 1 + 4
    for layers in ("none", "embeddings"):
        for size in (0, 4):
            name = f"feature_layers={layers},bilstm_size={size}"
            found = weights(folder / "out" / name)
            assert ("bilstm/layer_0/forward/bias" in found) == (size > 0)
            has_moments = "bert/encoder/layer_0/output/dense/bias/adam_m"
            assert (has_moments in found) == (layers == "none")


def test_the_size_of_2018s_paper_is_the_default(folder):
    assert options(folder, bilstm_size=None).bilstm_units == 0
    given = {"feature_layers": "last", "bilstm_size": None}
    assert options(folder, **given).bilstm_units == 768
    assert (
        options(folder, feature_layers="last", bilstm_size=0).bilstm_units == 0
    )
    with pytest.raises(InputError, match="--feature_layers="):
        options(folder, feature_layers="first")
