"""Tokenizers of small vocabularies."""

import pytest
from support import tiny

from official_bert.tokenization import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


@pytest.fixture
def make_tokenizer(make_vocab):
    """Returns a function of tokens, or of a text whose letters are tokens."""

    def make(tokens, do_lower_case=True):
        if isinstance(tokens, str):
            letters = sorted(set(tokens) - {" "})
            tokens = [t for letter in letters for t in (letter, f"##{letter}")]
        return Tokenizer(make_vocab(*SPECIAL, *tokens), do_lower_case)

    return make


@pytest.fixture
def tokenizer(tmp_path):
    """The tokenizer of `tiny.VOCAB`."""
    return tiny.tokenizer(tmp_path)
