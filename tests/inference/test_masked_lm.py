"""Filling in blanks, and knowing nothing but frequencies."""

import json

import numpy as np
import pytest
import recorded
import tensorflow as tf

from official_bert.checkpoints import numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import baselines, masked_lm
from official_bert.inputs import records
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.tokenization import FullTokenizer

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    ".",
]
CONFIG = {
    "vocab_size": 16,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
}


@pytest.fixture
def model():
    model = PretrainingModel(BertConfig.from_dict(CONFIG))
    recorded.set_weights(model.trainable_variables, 3)
    return model


@pytest.fixture
def tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n")
    return FullTokenizer(str(path), never_split=("[MASK]",))


def test_guesses_are_the_likeliest_pieces(model, tokenizer):
    first, second = masked_lm.fill(
        model, tokenizer, "The [MASK] sat on the [MASK].", num_guesses=11
    )
    for guesses in (first, second):
        assert sorted(guess.piece for guess in guesses) == sorted(PIECES)
        chances = [guess.probability for guess in guesses]
        assert chances == sorted(chances, reverse=True)
        assert sum(chances) == pytest.approx(1)
    # [CLS] the [MASK] sat on the [MASK] . [SEP]
    ids = [PIECES.index(p) for p in ["[CLS]", "the", "[MASK]", "sat", "on"]]
    ids += [PIECES.index(p) for p in ["the", "[MASK]", ".", "[SEP]"]]
    logits = model(
        {
            "input_ids": tf.constant([ids]),
            "input_mask": tf.ones([1, 9], tf.int32),
            "segment_ids": tf.zeros([1, 9], tf.int32),
            "masked_lm_positions": tf.constant([[2, 6]]),
        }
    ).masked_lm_logits[0, :, : len(PIECES)]
    best = np.argmax(logits, -1)
    assert [first[0].piece, second[0].piece] == [PIECES[i] for i in best]


def test_a_text_without_blanks_is_refused(model, tokenizer):
    with pytest.raises(InputError, match=r"must hold a \[MASK\]"):
        masked_lm.fill(model, tokenizer, "The cat sat.")


def test_a_text_too_long_is_refused(model, tokenizer):
    with pytest.raises(InputError, match="must not exceed"):
        masked_lm.fill(model, tokenizer, "the [MASK]" * 9)


def test_loading_what_training_left(model, tokenizer, tmp_path):
    arrays = {w.path: w.numpy() for w in model.trainable_variables}
    with pytest.raises(InputError, match="must hold a checkpoint"):
        masked_lm.load(str(tmp_path), do_lower_case=True)
    arrays["global_step"] = np.int64(5)
    resume = numbered.Resume(seed=1, examples_seen=0)
    numbered.save(str(tmp_path), 5, arrays, resume, keep=1)
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    loaded, its_tokenizer = masked_lm.load(str(tmp_path), do_lower_case=True)
    text = "A [MASK]."
    assert masked_lm.fill(loaded, its_tokenizer, text) == masked_lm.fill(
        model, tokenizer, text
    )


def test_the_baseline_counts_in_training_and_measures_elsewhere(tmp_path):
    schema = {
        "labels": records.Feature(2),
        "weights": records.Feature(2, is_float=True),
    }

    def write(name, *rows):
        path = str(tmp_path / name)
        with tf.io.TFRecordWriter(path) as writer:
            for labels, weights in rows:
                values = {"labels": labels, "weights": weights}
                writer.write(records.encode(schema, values))
        return records.RecordFiles([path], schema)

    train = write("a", ([3, 7], [1, 0]), ([3, 7], [1, 0]), ([7, 5], [1, 1]))
    held_out = write("b", ([3, 3], [1, 0]), ([5, 4], [1, 1]), ([3, 3], [0, 1]))
    baseline = baselines.always_the_same(train, held_out, "labels", "weights")
    assert baseline == (3, 0.5)
