"""Vectors of lines: values, order, memory."""

import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from support import recorded, tiny, untrained_models

from official_bert.config import BertConfig
from official_bert.inference import feature_extraction
from official_bert.inference.feature_extraction import FeatureExtractor
from official_bert.modeling.encoder import Bert

CONFIG = BertConfig.from_dict({**tiny.CONFIG, "num_hidden_layers": 3})
# Each line, and its tokens if `max_seq_length` is 16.
LINES = {
    "good cat": "[CLS] good cat [SEP]",
    "": "[CLS] [SEP]",
    "red sun ? ||| it is rain": "[CLS] red sun ? [SEP] it is rain [SEP]",
    "what " * 30: f"[CLS] {'what ' * 14}[SEP]",
    "cat ||| dog ||| sun": "[CLS] cat [UNK] [UNK] [UNK] dog [SEP] sun [SEP]",
    "bad": "[CLS] bad [SEP]",
    "rain " * 9 + "||| " + "dog " * 11: (
        f"[CLS] {'rain ' * 7}[SEP] {'dog ' * 6}[SEP]"
    ),
}


@pytest.fixture(scope="module")
def bert():
    return recorded.assign(Bert(CONFIG), 3)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return untrained_models.tokenizer(tmp_path_factory.mktemp("vocab"))


@pytest.fixture
def make(bert, tokenizer):
    def made(layers=(-1,), pooling="none", normalize=False, batch_size=3):
        return FeatureExtractor(
            bert,
            tokenizer,
            layers=layers,
            pooling=pooling,
            normalize=normalize,
            max_seq_length=16,
            batch_size=batch_size,
        )

    return made


def alone(bert, tokens):
    """Returns all layers' float64 outputs for one sequence, [L, S, H]."""
    ids = [[tiny.VOCAB.index(token) for token in tokens]]
    # The first [SEP] belongs to text A.
    length_a = tokens.index("[SEP]") + 1
    segments = [[0] * length_a + [1] * (len(tokens) - length_a)]
    output = bert(tf.constant(ids), None, tf.constant(segments))
    layers = [layer[0] for layer in output.encoder_outputs]
    return np.asarray(layers, np.float64)


POOLED = {
    "cls": lambda vectors: vectors[:, 0],
    "mean": lambda vectors: vectors.mean(axis=1),
    "max": lambda vectors: vectors.max(axis=1),
    "none": lambda vectors: vectors.transpose(1, 0, 2),
}


@pytest.mark.parametrize("is_normalized", [False, True])
@pytest.mark.parametrize("pooling", POOLED)
def test_vectors_equal_those_of_the_line_alone(
    bert, make, pooling, is_normalized
):
    found = list(make([-1, 0, -3], pooling, is_normalized).stream(LINES))
    assert [line.number for line in found] == list(range(7))
    for line, tokens in zip(found, LINES.values(), strict=True):
        assert line.tokens == tokens.split()
        expected = POOLED[pooling](alone(bert, tokens.split())[[-1, 0, 0]])
        if is_normalized:
            expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
        np.testing.assert_allclose(line.values, expected, atol=1e-5)
        assert line.values.dtype == np.float32
        if pooling == "none":
            assert line.values.flags.owndata  # Keeps no batch alive.


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        (" a ||| b ||| c ", ("a ||| b", "c")),
        ("x|||y", ("x|||y", "")),
        (" ||| only b", ("||| only b", "")),
        ("only a ||| ", ("only a |||", "")),
        ("a |||  b", ("a", " b")),
        ("\t", ("", "")),
    ],
)
def test_last_separator_of_a_line_separates_the_texts(line, pair):
    assert feature_extraction.split_pair(line) == pair


def texts(number, seed=0):
    random = np.random.RandomState(seed)
    for _ in range(number):
        yield " ".join(random.choice(tiny.WORDS, random.randint(0, 20)))


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_order_and_vectors_do_not_depend_on_batches_and_chunks(
    make, batch_size, monkeypatch
):
    expected = list(make([-1], "mean").stream(texts(40)))
    monkeypatch.setattr(feature_extraction, "_CHUNK_LINES", 9)
    found = list(make([-1], "mean", batch_size=batch_size).stream(texts(40)))
    assert [line.number for line in found] == list(range(40))
    for line, other in zip(found, expected, strict=True):
        assert line.tokens == other.tokens
        np.testing.assert_allclose(line.values, other.values, atol=1e-5)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(make, monkeypatch):
    monkeypatch.setattr(feature_extraction, "_CHUNK_BYTES", 2**16)

    extractor = make([-1, -2], batch_size=8)

    def peak(number):
        tracemalloc.start()
        lines = extractor.stream(texts(number))
        num_bytes = sum(line.values.nbytes for line in lines)
        _, found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found, num_bytes

    peak(200)  # Allocates what is allocated once.
    few, _ = peak(300)
    many, num_bytes = peak(3000)
    assert num_bytes > 2**22
    assert many < few + 2**18


def test_input_is_read_chunk_by_chunk(make, monkeypatch):
    monkeypatch.setattr(feature_extraction, "_CHUNK_LINES", 50)
    lines = texts(20_000)
    next(make([-1], "cls").stream(lines))
    assert 10_000 < len(list(lines)) < 20_000
