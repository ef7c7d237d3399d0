"""Tokenizers with a vocabulary of a few pieces, and folders of column files."""

import pytest

from official_bert.tokenization import BatchTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


@pytest.fixture
def make_tokenizer(tmp_path):
    """A function of pieces."""

    def make(*pieces, do_lower_case=True):
        path = tmp_path / "vocab.txt"
        lines = "".join(f"{piece}\n" for piece in [*SPECIAL, *pieces])
        path.write_text(lines, encoding="utf-8")
        return BatchTokenizer(str(path), do_lower_case=do_lower_case)

    return make


@pytest.fixture
def write(tmp_path):
    """A function of name and text that writes a file and returns its path."""

    def write_file(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_file
