"""The paper's ablations by command: --nsp and --left_to_right."""

import json
import random

import numpy as np
import pytest
from support import (
    SPECIAL,
    command_lines,
    pretraining_records,
    pretraining_runs,
    review_runs,
    tiny,
)
from support.pretraining_runs import results
from support.run_outputs import read_json, weights

from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import Predict
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.training import loop

WORDS = [f"w{n}" for n in range(20)]
VOCAB = [*SPECIAL, *WORDS]
CONFIG = {**tiny.CONFIG, "vocab_size": len(VOCAB), "num_hidden_layers": 2}
SIZES = {"max_seq_length": 16, "max_predictions_per_seq": 4}
DATA = {"next": {}, "sop": {"nsp": "sop"}, "none": {"nsp": "none"}}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Records of documents that count up: w3 w4 w5 ..., three words a line."""
    rng = random.Random(0)
    starts = [rng.randint(0, 5) for _ in range(60)]
    documents = [
        "\n".join(" ".join(WORDS[n : n + 3]) for n in range(s, s + 12, 3))
        for s in starts
    ]
    folder, text = tmp_path_factory.mktemp("inputs"), "\n\n".join(documents)
    pretraining_records.write_inputs(folder, text, WORDS)
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    settings = {**SIZES, "masked_lm_prob": 0.2, "short_seq_prob": 0.0}
    for name, changes in DATA.items():
        pretraining_records.make(folder, folder / name, **settings | changes)
    return folder


def run(inputs, output, data, **changes):
    settings = {
        "vocab_file": str(inputs / "vocab.txt"),
        "input_file": str(inputs / data),
        **SIZES,
        "train_batch_size": 16,
        "num_train_steps": 4,
        "num_warmup_steps": 1,
        "learning_rate": 5e-3,
        "save_checkpoints_steps": 1000,
        "eval_batch_size": 16,
        "max_eval_steps": 10,
        "do_train": True,
        "do_eval": True,
    }
    pretraining_runs.run(inputs, output, **settings | changes)
    return results(output)


@pytest.fixture(scope="module")
def left_to_right(inputs, tmp_path_factory):
    output = tmp_path_factory.mktemp("left_to_right")
    flags = {"nsp": "sop", "left_to_right": True, "num_train_steps": 150}
    run(inputs, output, "sop", **flags)
    return output


LM_RESULTS = {"global_step", "loss", "masked_lm_accuracy", "masked_lm_loss"}
ORDER_RESULTS = {"sentence_order_accuracy", "sentence_order_loss"}


@pytest.mark.slow
def test_without_next_sentences_all_other_weights_are_trained(inputs, tmp_path):
    found = run(inputs, tmp_path / "none", "none", nsp="none")
    assert set(found) == LM_RESULTS
    before, after = weights(tmp_path / "none", 0), weights(tmp_path / "none")
    slots = {name for name in after if name.endswith(("/adam_m", "/adam_v"))}
    names = after.keys() - slots - {"global_step"}
    assert len(slots) == 2 * (len(names) - 4)
    untrained = ("bert/pooler/", "cls/seq_relationship/")
    for name in names:
        is_same = np.array_equal(before[name], after[name])
        assert is_same == name.startswith(untrained), name
    # The checkpoint initializes a model with next sentence prediction.
    flags = {"init_checkpoint": str(tmp_path / "none" / "model.ckpt-4")}
    found = run(inputs, tmp_path / "next", "next", do_train=False, **flags)
    assert "next_sentence_loss" in found


@pytest.mark.trains
@pytest.mark.slow
def test_left_to_right_model_learns_the_next_token_and_the_order(left_to_right):
    """The last token, which is pooled, attends to all others."""
    found = results(left_to_right)
    names = {name.removeprefix("masked_") for name in LM_RESULTS}
    assert set(found) == names | ORDER_RESULTS | {"lm_perplexity"}
    assert found["lm_perplexity"] == pytest.approx(np.exp(found["lm_loss"]))
    # Words count up; the beginning and the end of a segment are random.
    assert 0.6 < found["lm_accuracy"] < 0.95
    assert found["lm_loss"] < 0.5 * np.log(len(VOCAB))
    assert found["sentence_order_accuracy"] > 0.95
    config = read_json(left_to_right / "bert_config.json")
    assert config == {**CONFIG, **config, "is_left_to_right": True}
    assert "cls/predictions/output_bias" in weights(left_to_right)


@pytest.mark.slow
def test_left_to_right_must_match_the_trained_model(inputs, left_to_right):
    flags = {"nsp": "sop", "do_train": False}
    with pytest.raises(InputError, match=r"`is_left_to_right` .*True"):
        run(inputs, left_to_right, "sop", **flags)
    # The config in the output directory implies the flag.
    flags["bert_config_file"] = str(left_to_right / "bert_config.json")
    assert "lm_loss" in run(inputs, left_to_right, "sop", **flags)


@pytest.mark.parametrize("folder", ["", "best"])
def test_config_of_the_other_direction_is_an_error(inputs, tmp_path, folder):
    # Other keys of the config beside the checkpoint do not matter.
    (tmp_path / "bert_config.json").write_text('{"is_left_to_right": true}')
    checkpoint = tmp_path / folder / "a.ckpt"
    checkpoint.parent.mkdir(exist_ok=True)
    tf1.write(str(checkpoint), {"a": np.zeros(3, np.float32)})
    files = command_lines.files_of_model(inputs, checkpoint)
    with pytest.raises(InputError, match="is_left_to_right=True"):
        Predict(score=True, **files).resolve()


@pytest.mark.trains
@pytest.mark.slow
def test_left_to_right_model_is_tuned(
    inputs, left_to_right, tmp_path, caplog, monkeypatch
):
    """The label depends on the first word, and the last token is pooled."""
    rng = random.Random(1)
    for name, number in (("train", 200), ("dev", 50)):
        rows = ["text,label"]
        for _ in range(number):
            first = rng.choice(WORDS[:4])
            words = [first, *rng.choices(WORDS[4:], k=rng.randint(1, 7))]
            rows.append(f"{' '.join(words)},{WORDS.index(first) % 2}")
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")

    flags = {
        "task_name": "csv",
        "data_dir": str(tmp_path),
        "init_checkpoint": str(left_to_right),
        "may_skip": "^cls/",
        "max_seq_length": 16,
        "learning_rate": 1e-3,
        "save_checkpoints_steps": 1000,
        "do_train": True,
    }
    output = tmp_path / "out"
    changes = {"do_eval": True, "left_to_right": True, "num_train_epochs": 12.0}
    review_runs.run(inputs, output, **flags, **changes)
    assert not [r for r in caplog.records if "is_left_to_right" in r.msg]
    assert read_json(output / "eval_results.json")["accuracy"] > 0.9
    assert read_json(output / "bert_config.json")["is_left_to_right"] is True
    predictor = Predictor.from_dir(str(output))
    answers = predictor([f"{word} w9 w8 w7 w6" for word in WORDS[:4]])
    assert [answer["label"] for answer in answers] == ["0", "1", "0", "1"]
    # Without the flag a model is trained for both directions, with a warning.
    monkeypatch.setattr(loop, "train", lambda *_: None)
    review_runs.run(inputs, tmp_path / "both", num_train_epochs=0.1, **flags)
    [warning] = [r for r in caplog.records if "is_left_to_right" in r.msg]
    assert warning.levelname == "WARNING"
