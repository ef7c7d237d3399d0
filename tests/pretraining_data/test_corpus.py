"""What ends a document, what does not, and what is read back."""

import itertools

import numpy as np
import pytest

from official_bert import files
from official_bert.errors import InputError
from official_bert.pretraining_data import corpus
from official_bert.tokenization import BatchTokenizer

PIECES = [
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
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES))
    return BatchTokenizer(str(tmp_path / "vocab.txt"))


def blocks(tokenizer, lines, size=2048):
    for start in range(0, len(lines), size):
        yield corpus.tokenize_block(tokenizer, lines[start : start + size])


def read(tmp_path, tokenizer, *texts):
    """Returns documents, sentences, pieces."""
    names = []
    for i, text in enumerate(texts):
        path = tmp_path / f"{i}.txt"
        path.write_bytes(text.encode())
        names.append(str(path))
    lines = [line for name in names for line in files.read_lines(name)]
    return spelled_out(corpus.in_memory(blocks(tokenizer, lines)))


def spelled_out(text):
    documents = []
    for index in range(text.num_documents):
        offsets = text.document(index)
        documents.append(
            [
                [PIECES[i] for i in text.pieces(*np.array([[start], [end]]))]
                for start, end in itertools.pairwise(offsets)
            ]
        )
    return documents


def test_blank_lines_part_documents(tmp_path, tokenizer):
    assert read(tmp_path, tokenizer, "\na b\nc\n\n \t\nd\n\n") == [
        [["a", "b"], ["c"]],
        [["d"]],
    ]


def test_the_end_of_a_file_does_not(tmp_path, tokenizer):
    assert read(tmp_path, tokenizer, "a\n", "b\n\nc") == [
        [["a"], ["b"]],
        [["c"]],
    ]


def test_a_line_without_pieces_is_left_out_and_does_not_either(
    tmp_path, tokenizer
):
    # U+200B vanishes when it is tokenized, as it does in BERT.
    assert read(tmp_path, tokenizer, "a\n\u200b\nb\n") == [[["a"], ["b"]]]


def test_carriage_returns_make_no_lines(tmp_path, tokenizer):
    assert read(tmp_path, tokenizer, "a\r\n\r\nb\rc\r\n") == [[["a"]], [["bc"]]]


LINES = ["a b", "", "", "c", "b", "\u200b", "", "a", "", "\u200b", "d a", "b"]
DOCUMENTS = [
    [["a", "b"]],
    [["c"], ["b"]],
    [["a"]],
    [["d", "a"], ["b"]],
]


@pytest.mark.parametrize("size", range(1, 13))
def test_blocks_may_end_anywhere(tokenizer, size):
    text = corpus.in_memory(blocks(tokenizer, LINES, size))
    assert spelled_out(text) == DOCUMENTS
    assert text.num_pieces == 8


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_give_the_same(tokenizer, tmp_path, scheme):
    folder = f"{scheme}{tmp_path}"
    corpus.store(blocks(tokenizer, LINES), folder)
    with corpus.stored(folder) as text:
        assert spelled_out(text) == DOCUMENTS
        pieces = text.pieces(np.array([4, 0, 2]), np.array([6, 1, 2]))
        assert pieces.tolist() == [5, 8, 5]


def test_parts_cover_all_documents(tokenizer):
    text = corpus.in_memory(blocks(tokenizer, LINES))
    assert list(text.parts(1)) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert list(text.parts(3)) == [(0, 2), (2, 4)]
    assert list(text.parts(100)) == [(0, 4)]


def test_no_text(tokenizer):
    text = corpus.in_memory(blocks(tokenizer, ["", "\u200b"]))
    with pytest.raises(InputError, match=r"must hold text.*none in x\.txt"):
        corpus.require_text(text, ["x.txt"])


def test_blocks_are_bounded_in_lines_and_in_characters():
    """A line may be a whole article."""
    short = [str(number) for number in range(5000)]
    long = ["x" * 400_000] * 5
    for lines, most in ((short, 2048), (long, 2)):
        made = list(corpus.blocks_of_lines(lines))
        assert [line for block in made for line in block] == lines
        assert max(map(len, made)) == most
