"""Masked words are predicted, and texts are scored."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from scipy import special
from support import recorded, tiny

from official_bert.errors import InputError
from official_bert.inference import masked_lm, trained_models
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import Predict

TOKENS = tiny.VOCAB
# The embedding table has a few more rows than there are tokens.
CONFIG = dataclasses.replace(
    recorded.SMALL_CONFIG, max_position_embeddings=12, vocab_size=20
)
KEPT = ("[MASK]",)


@pytest.fixture(scope="module")
def model():
    return recorded.assign(PretrainingModel(CONFIG), 3)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocab")
    return tiny.tokenizer(folder, never_split=KEPT)


def test_incomplete_or_fine_tuned_run_directory_is_an_error(tmp_path):
    def load(directory):
        options = Predict(model_dir=str(directory), fill_mask=True).resolve()
        trained_models.load_masked_lm(options.model_files)

    tiny.save_both(tmp_path)
    folder = tmp_path / "pretrained"
    for name, message in (
        ("model.ckpt-3.index", "checkpoint"),
        ("vocab.txt", r"vocab\.txt.*--vocab_file"),
        ("bert_config.json", r"bert_config\.json"),
    ):
        (folder / name).unlink()
        with pytest.raises(InputError, match=message):
            load(folder)
    with pytest.raises(InputError, match="fine-tuned"):
        load(tmp_path / "tuned")


def log_probabilities(model, ids, position):
    """Returns the log-probabilities of one position of one text."""
    batch = {
        "input_ids": [ids],
        "input_mask": [[1] * len(ids)],
        "segment_ids": [[0] * len(ids)],
        "masked_lm_positions": [[position]],
    }
    output = model({name: tf.constant(value) for name, value in batch.items()})
    logits = output.masked_lm_logits[0, 0, : len(TOKENS)]
    return special.log_softmax(logits.numpy().astype(np.float64))


def encode(text):
    return [TOKENS.index(t) for t in ["[CLS]", *text.split(), "[SEP]"]]


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 2, 9])
def test_guesses_do_not_depend_on_the_batch(model, tokenizer, batch_size):
    texts = [
        "it [MASK] is it sun [MASK] ?",
        "[MASK]",
        "red cat [MASK] [MASK] ? it [MASK] ?",
        "[MASK] cat ?",
    ]
    filler = masked_lm.FillMask(model, tokenizer, 4, batch_size)
    found = filler.answer([filler.parse(text, "") for text in texts])
    for text, answer in zip(texts, found, strict=True):
        ids = encode(text)
        blanks = [n for n, i in enumerate(ids) if TOKENS[i] == "[MASK]"]
        for position, guesses in zip(blanks, answer["guesses"], strict=True):
            expected = log_probabilities(model, ids, position)
            best = np.argsort(-expected)[:4]
            assert [g["token"] for g in guesses] == [TOKENS[i] for i in best]
            np.testing.assert_allclose(
                [g["probability"] for g in guesses],
                np.exp(expected[best]),
                rtol=2e-5,
            )


@pytest.mark.slow
@pytest.mark.parametrize("block", [3, 4096])
def test_score_sums_over_masked_tokens(model, tokenizer, block, monkeypatch):
    monkeypatch.setattr(masked_lm, "_BLOCK", block)
    texts = ["it is bad what is it ?", "cat", "red cat is ?"]
    scorer = masked_lm.Scorer(model, tokenizer, batch_size=4)
    given = [texts[0], *({"text": text} for text in texts[1:])]
    found = scorer.answer([scorer.parse(item, "") for item in given])
    for text, answer in zip(texts, found, strict=True):
        ids = encode(text)
        total = 0.0
        for position in range(1, len(ids) - 1):
            masked = [*ids]
            masked[position] = TOKENS.index("[MASK]")
            total += log_probabilities(model, masked, position)[ids[position]]
        assert answer == pytest.approx(
            {
                "pseudo_log_likelihood": total,
                "num_tokens": len(text.split()),
                "perplexity": np.exp(-total / len(text.split())),
            },
            rel=1e-5,
        )


def test_copies_of_a_token_and_blank_lines_are_not_guessed(model, tmp_path):
    twice = tiny.tokenizer(tmp_path, "cat", "", "", never_split=KEPT)
    [guesses] = masked_lm.fill(model, twice, "[MASK]", num_guesses=99)
    assert sorted(guess.token for guess in guesses) == sorted(TOKENS)
    assert sum(guess.probability for guess in guesses) == pytest.approx(1)


@pytest.mark.parametrize(
    ("answerer", "given", "message"),
    [
        (masked_lm.FillMask, "The cat is", "^f:3: .*The cat is"),
        (masked_lm.FillMask, "the [MASK]" * 9, "^f:3: 20 .* 12 positions"),
        (masked_lm.Scorer, "", "^f:3: .*''"),
        (masked_lm.Scorer, "the [MASK]", r"^f:3: .*the \[MASK\]"),
        (masked_lm.Scorer, "cat " * 11, "^f:3: 13 .* 12 positions"),
        (masked_lm.Scorer, ["a", "b"], "^f:3: must be a text"),
        (masked_lm.Scorer, {"a": "b"}, "^f:3: must be a text"),
    ],
)
def test_invalid_text_is_an_error(model, tokenizer, answerer, given, message):
    with pytest.raises(InputError, match=message):
        answerer(model, tokenizer).parse(given, "f:3")


def test_other_objects_than_model_and_tokenizer_are_errors(model, tokenizer):
    with pytest.raises(TypeError, match=r"be a PretrainingModel.*<Bert name"):
        masked_lm.fill(model.bert, tokenizer, "the [MASK]")
    with pytest.raises(TypeError, match=r"be a Tokenizer.*'bert_tiny_demo'"):
        masked_lm.fill(model, "bert_tiny_demo", "the [MASK]")


def test_number_of_guesses_must_be_positive(model, tokenizer):
    with pytest.raises(InputError, match=r"`num_guesses`.* 0"):
        masked_lm.fill(model, tokenizer, "the [MASK]", 0)


@pytest.mark.parametrize(
    ("answerer", "text"),
    [(masked_lm.FillMask, "[MASK] {}"), (masked_lm.Scorer, "good {}")],
)
def test_warning_says_once_that_words_are_unknown(
    model, tokenizer, caplog, answerer, text
):
    asked = answerer(model, tokenizer)
    for words, count in (("cat", 0), ("žluťoučký kůň", 1), ("žluťoučký", 1)):
        asked.answer([asked.parse(text.format(words), "a")])
        assert caplog.text.count("% of the first tokens are [UNK]") == count
