"""Lines of text become documents of sentences of tokens."""

import itertools

import numpy as np
import pytest

from official_bert import files
from official_bert.errors import InputError
from official_bert.pretraining_data import corpus
from official_bert.tokenization import BatchTokenizer

TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "b",
    "c",
    "d",
    "bc",
]


@pytest.fixture
def tokenizer(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS))
    return BatchTokenizer(str(tmp_path / "vocab.txt"))


def blocks(tokenizer, lines, size=2048):
    for start in range(0, len(lines), size):
        yield corpus.tokenize_block(tokenizer, lines[start : start + size])


def read(tmp_path, tokenizer, *texts):
    """Returns documents of sentences of tokens."""
    names = []
    for i, text in enumerate(texts):
        path = tmp_path / f"{i}.txt"
        path.write_bytes(text.encode())
        names.append(str(path))
    lines = [line for name in names for line in files.read_lines(name)]
    return documents_of(corpus.in_memory(blocks(tokenizer, lines)))


def documents_of(text):
    documents = []
    for index in range(text.num_documents):
        offsets = text.document(index)
        documents.append(
            [
                [TOKENS[i] for i in text.tokens(*np.array([[start], [end]]))]
                for start, end in itertools.pairwise(offsets)
            ]
        )
    return documents


def test_blank_lines_separate_documents(tmp_path, tokenizer):
    assert read(tmp_path, tokenizer, "\na b\nc\n\n \t\nd\n\n") == [
        [["a", "b"], ["c"]],
        [["d"]],
    ]


def test_end_of_a_file_does_not_end_a_document(tmp_path, tokenizer):
    assert read(tmp_path, tokenizer, "a\n", "b\n\nc") == [
        [["a"], ["b"]],
        [["c"]],
    ]


def test_line_without_tokens_does_not_end_a_document(tmp_path, tokenizer):
    # The tokenizer removes U+200B.
    assert read(tmp_path, tokenizer, "a\n\u200b\nb\n") == [[["a"], ["b"]]]


def test_carriage_returns_do_not_end_lines(tmp_path, tokenizer):
    assert read(tmp_path, tokenizer, "a\r\n\r\nb\rc\r\n") == [[["a"]], [["bc"]]]


LINES = ["a b", "", "", "c", "b", "\u200b", "", "a", "", "\u200b", "d a", "b"]
DOCUMENTS = [
    [["a", "b"]],
    [["c"], ["b"]],
    [["a"]],
    [["d", "a"], ["b"]],
]


@pytest.mark.parametrize("size", range(1, 13))
def test_documents_do_not_depend_on_the_size_of_blocks(tokenizer, size):
    text = corpus.in_memory(blocks(tokenizer, LINES, size))
    assert documents_of(text) == DOCUMENTS
    assert text.sentences[-1] == 8


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_stored_corpus_equals_the_one_in_memory(tokenizer, tmp_path, scheme):
    directory = f"{scheme}{tmp_path}"
    corpus.store(blocks(tokenizer, LINES), directory)
    with corpus.stored(directory) as text:
        assert documents_of(text) == DOCUMENTS
        tokens = text.tokens(np.array([4, 0, 2]), np.array([6, 1, 2]))
        assert tokens.tolist() == [5, 8, 5]


def test_parts_cover_all_documents(tokenizer):
    text = corpus.in_memory(blocks(tokenizer, LINES))
    assert list(text.parts(1)) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert list(text.parts(3)) == [(0, 2), (2, 4)]
    assert list(text.parts(100)) == [(0, 4)]


def test_corpus_without_text_is_an_error(tokenizer):
    text = corpus.in_memory(blocks(tokenizer, ["", "\u200b"]))
    with pytest.raises(InputError, match=r"^x\.txt: .* text"):
        corpus.require_text(text, ["x.txt"])


def test_blocks_are_limited_in_lines_and_in_characters():
    short = [str(number) for number in range(5000)]
    long = ["x" * 400_000] * 5
    for lines, most in ((short, 2048), (long, 2)):
        made = list(corpus.blocks_of_lines(lines))
        assert [line for block in made for line in block] == lines
        assert max(map(len, made)) == most
