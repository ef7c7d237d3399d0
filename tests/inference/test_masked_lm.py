"""Filling in blanks, scoring texts, and the baseline of the demo."""

import json

import numpy as np
import pytest
import tensorflow as tf
from support import record_files, recorded

from official_bert.checkpoints import run_directory
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import demo_report, masked_lm
from official_bert.inference.trained_models import ModelFiles, load_masked_lm
from official_bert.inputs import records, schemas
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.tokenization import BatchTokenizer

TOKENS = [
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


@pytest.fixture(scope="module")
def model():
    model = PretrainingModel(BertConfig.from_dict(CONFIG))
    recorded.set_weights(model.trainable_variables, 3)
    return model


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return write_vocab(tmp_path_factory.mktemp("vocab"), TOKENS)


def write_vocab(directory, tokens):
    path = directory / "vocab.txt"
    path.write_text("\n".join(tokens) + "\n")
    return BatchTokenizer(str(path), never_split=("[MASK]",))


@pytest.mark.parametrize(
    ("text", "num_guesses", "message"),
    [
        ("The cat sat.", 5, "^text: .*The cat sat"),
        ("the [MASK]" * 9, 5, "^text: 20 .* 12 positions"),
        ("the [MASK]", 0, "`num_guesses`.* 0"),
    ],
)
def test_text_that_cannot_be_filled_is_an_error(
    model, tokenizer, text, num_guesses, message
):
    with pytest.raises(InputError, match=message):
        masked_lm.fill(model, tokenizer, text, num_guesses)


def test_model_is_loaded_from_a_run_directory_or_from_files(
    model, tokenizer, tmp_path
):
    folder = str(tmp_path)
    write_vocab(tmp_path, TOKENS)
    with pytest.raises(InputError, match=r"bert_config\.json"):
        masked_lm.load(folder, do_lower_case=True)
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(InputError, match="checkpoint"):
        masked_lm.load(folder, do_lower_case=True)
    arrays = {w.path: w.numpy() for w in model.trainable_variables}
    arrays["global_step"] = np.int64(5)
    resume = run_directory.ResumeState(seed=1, examples_seen=0)
    prefix = run_directory.save(folder, 5, arrays, resume, keep=1)
    loaded = masked_lm.load(folder, do_lower_case=True)
    text = "A [MASK]."
    expected = masked_lm.fill(model, tokenizer, text)
    assert masked_lm.fill(*loaded, text) == expected
    loaded = load_masked_lm(
        ModelFiles(
            str(tmp_path / "bert_config.json"),
            str(tmp_path / "vocab.txt"),
            do_lower_case=True,
            checkpoint=prefix,
        )
    )
    assert masked_lm.fill(*loaded, text) == expected
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(InputError, match=r"vocab\.txt.*--vocab_file"):
        masked_lm.load(folder, do_lower_case=True)
    (tmp_path / "task.json").write_text("{}")
    with pytest.raises(InputError, match="fine-tuned"):
        masked_lm.load(folder, do_lower_case=True)


TEXTS = [
    "the [MASK] sat on the [MASK] .",
    "[MASK]",
    "the cat [MASK] [MASK] . the [MASK] .",
    "a [MASK] sat .",
    "[MASK] cat .",
]


def log_probabilities(model, ids, place):
    """Returns the log-probabilities of one position, the head in float64."""
    weights = {
        w.path.removeprefix("cls/predictions/"): w.numpy().astype(np.float64)
        for w in model.trainable_variables
    }
    ids = tf.constant([ids])
    x = model.bert(ids, tf.ones_like(ids), tf.zeros_like(ids))
    x = x.sequence_output[0, place].numpy().astype(np.float64)
    x = x @ weights["transform/dense/kernel"] + weights["transform/dense/bias"]
    x *= 0.5 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    x = (x - x.mean()) / np.sqrt(x.var() + 1e-12)
    x = x * weights["transform/LayerNorm/gamma"]
    x += weights["transform/LayerNorm/beta"]
    logits = weights["bert/embeddings/word_embeddings"] @ x
    logits = (logits + weights["output_bias"])[: len(TOKENS)]
    return logits - np.log(np.exp(logits).sum())


def packed(text):
    pieces = [word if word in TOKENS else "[UNK]" for word in text.split()]
    return [TOKENS.index(p) for p in ["[CLS]", *pieces, "[SEP]"]]


@pytest.mark.parametrize("batch_size", [1, 2, 9])
def test_guesses_do_not_depend_on_the_batch(model, tokenizer, batch_size):
    filler = masked_lm.FillMask(model, tokenizer, 4, batch_size)
    found = filler.answer([filler.parse(text, "") for text in TEXTS])
    for text, answer in zip(TEXTS, found, strict=True):
        ids = packed(text)
        blanks = [n for n, i in enumerate(ids) if TOKENS[i] == "[MASK]"]
        assert len(answer["guesses"]) == len(blanks)
        for place, guesses in zip(blanks, answer["guesses"], strict=True):
            expected = log_probabilities(model, ids, place)
            best = np.argsort(-expected)[:4]
            assert [g["token"] for g in guesses] == [TOKENS[i] for i in best]
            np.testing.assert_allclose(
                [g["probability"] for g in guesses],
                np.exp(expected[best]),
                rtol=2e-5,
            )


@pytest.mark.parametrize("block", [3, 4096])
def test_score_is_the_sum_over_masked_tokens(
    model, tokenizer, block, monkeypatch
):
    monkeypatch.setattr(masked_lm, "_BLOCK", block)
    texts = ["the cat sat on the mat .", "cat", "the mat sat .", "a cat ."]
    scorer = masked_lm.Scorer(model, tokenizer, batch_size=4)
    found = scorer.answer([scorer.parse(text, "") for text in texts])
    for text, answer in zip(texts, found, strict=True):
        ids = packed(text)
        total = 0.0
        for place in range(1, len(ids) - 1):
            masked = [*ids]
            masked[place] = TOKENS.index("[MASK]")
            total += log_probabilities(model, masked, place)[ids[place]]
        assert answer["num_tokens"] == len(ids) - 2 == len(text.split())
        assert answer["pseudo_log_likelihood"] == pytest.approx(total, rel=1e-5)
        assert answer["perplexity"] == pytest.approx(
            np.exp(-total / len(text.split())), rel=1e-5
        )


def test_token_listed_twice_has_one_probability(model, tmp_path):
    twice = write_vocab(tmp_path, [*TOKENS[:6], "the", *TOKENS[6:]])
    [guesses] = masked_lm.fill(model, twice, "[MASK]", num_guesses=99)
    assert sorted(guess.token for guess in guesses) == sorted(TOKENS)
    assert sum(guess.probability for guess in guesses) == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "^f:3: .*''"),
        ("the [MASK]", r"^f:3: .*the \[MASK\]"),
        ("cat " * 11, "^f:3: 13 .* 12 positions"),
        (["a", "b"], "^f:3: must be a text"),
        ({"a": "b"}, "^f:3: must be a text"),
    ],
)
def test_text_that_cannot_be_scored_is_an_error(
    model, tokenizer, given, message
):
    scorer = masked_lm.Scorer(model, tokenizer)
    with pytest.raises(InputError, match=message):
        scorer.parse(given, "f:3")
    assert scorer.parse({"text": "cat"}, "") == scorer.parse("cat", "")


def test_baseline_is_the_most_frequent_training_label(tmp_path):
    schema = {
        "labels": schemas.Feature(2),
        "weights": schemas.Feature(2, is_float=True),
    }

    def write(name, *rows):
        examples = [
            {"labels": labels, "weights": [float(w) for w in weights]}
            for labels, weights in rows
        ]
        path = record_files.write(tmp_path / name, examples)
        return records.RecordFiles([path], schema)

    train = write("a", ([3, 7], [1, 0]), ([3, 7], [1, 0]), ([7, 5], [1, 1]))
    held_out = write("b", ([3, 3], [1, 0]), ([5, 4], [1, 1]), ([3, 3], [0, 1]))
    baseline = demo_report.most_frequent_label(
        train, held_out, "labels", "weights"
    )
    assert baseline == (3, 0.5)
