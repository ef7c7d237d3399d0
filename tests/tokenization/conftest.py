"""Random texts of unusual characters."""

import pytest
from support import odd_texts


@pytest.fixture
def odd_vocab(make_vocab):
    """A vocabulary file that splits some words of `random_texts`."""
    return make_vocab("[UNK]", "[MASK]", *odd_texts.TOKENS)


@pytest.fixture(scope="session")
def random_texts():
    return odd_texts.random_texts(3000, "[MASK]", "\ud800")
