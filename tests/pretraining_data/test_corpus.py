import itertools

import numpy as np
import pytest
from support import SPECIAL

from official_bert.io import files
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import corpus
from official_bert.pretraining_data.job import Job

TOKENS = [*SPECIAL, *"abcd", "bc"]
LINES = ["a b", "", "", "c", "b", "\u200b", "", "a", "", "\u200b", "d a", "b"]
DOCUMENTS = [["a b"], ["c", "b"], ["a"], ["d a", "b"]]


@pytest.fixture
def job(make_vocab):
    unused = dict.fromkeys(("input_file", "output_file"), "none")
    vocab_file = make_vocab(*TOKENS)
    return Job(CreatePretrainingData(vocab_file=vocab_file, **unused))


def blocks(job, lines, size=2048):
    for start in range(0, len(lines), size):
        yield corpus.tokenize(job, lines[start : start + size])


def documents_of(text):
    def sentence(start, end):
        ids = text.tokens(np.array([start]), np.array([end]))
        return " ".join(TOKENS[i] for i in ids)

    return [
        list(itertools.starmap(sentence, itertools.pairwise(document)))
        for document in text
    ]


@pytest.mark.parametrize(
    ("texts", "documents"),
    [
        (["\na b\nc\n\n \t\nd\n\n"], [["a b", "c"], ["d"]]),
        (["a\n", "b\n\nc"], [["a", "b"], ["c"]]),  # Ends of files do not.
        # A line without tokens is not blank: the tokenizer removes U+200B.
        (["a\n\u200b\nb\n"], [["a", "b"]]),
        # Carriage returns do not end lines.
        (["a\r\n\r\nb\rc\r\n"], [["a"], ["bc"]]),
    ],
)
def test_blank_lines_separate_documents(tmp_path, job, texts, documents):
    lines = []
    for text in texts:
        (tmp_path / "text").write_bytes(text.encode())
        lines += files.read_lines(str(tmp_path / "text"))
    assert documents_of(corpus.in_memory(blocks(job, lines))) == documents


@pytest.mark.parametrize("size", range(1, 13))
def test_documents_do_not_depend_on_the_size_of_blocks(job, size):
    text = corpus.in_memory(blocks(job, LINES, size))
    assert documents_of(text) == DOCUMENTS
    assert text.sentences[-1] == 8


def test_stored_corpus_equals_the_one_in_memory(job, tmp_path):
    directory = str(tmp_path)
    corpus.store(blocks(job, LINES), directory)
    with corpus.stored(directory) as text:
        assert documents_of(text) == DOCUMENTS
        tokens = text.tokens(np.array([4, 0, 2]), np.array([6, 1, 2]))
        assert tokens.tolist() == [5, 8, 5]
        # Parts have at least this many sentences, and cover all documents.
        assert list(text.parts(1)) == [(0, 1), (1, 2), (2, 3), (3, 4)]
        assert list(text.parts(2)) == [(0, 2), (2, 4)]
        assert list(text.parts(100)) == [(0, 4)]


def test_blocks_are_limited_in_lines_and_in_characters():
    short = [str(number) for number in range(5000)]
    long = ["x" * 400_000] * 5
    for lines, largest in ((short, 2048), (long, 2)):
        parts = list(corpus.blocks_of_lines(lines))
        assert [line for part in parts for line in part] == lines
        assert max(map(len, parts)) == largest


def test_blocks_of_whole_documents_end_with_a_blank_line():
    lines = ["a", ""] * 18_000 + ["b"] * 20_000
    parts = list(corpus.blocks_of_lines(lines, whole_documents=True))
    assert [line for part in parts for line in part] == lines
    assert [len(part) for part in parts] == [16_384, 16_384, 23_232]
