"""A vocabulary, and texts that are treated in every way there is."""

import random

import pytest

MARKS = ("[UNK]", "[CLS]", "[SEP]")
TOKENS = [
    *("a", "##a", "ab", "##bc", "σ", "##σ", "##ς", "ς", "é", "##\u1161"),
    *("\u1112", "中", ".", "!", "[", "##2", "x", "##x", "i", "##\u302e"),
    *("##\U0001d16d", "##😀", "##'", "'", "\u302e"),
]
ALPHABET = (
    "aAbBcC12xX.!-[]'`$ \t\n\r\x00\x0b\x1c\x7f\x85\xa0\xad😀"
    "éÉİßςσΣΣ中\uf900\u3000\u2028\u200b\u200d\ufffd\ue000€—한가≠\u1b06"
    "\u0300\u0301\u0323\u0345\u034f\u0e31\u302e\u302f\u0cc0"
    "\U0001d165\U0001d16d\U0001d15e\U00020000\U0002ceb0"
)


@pytest.fixture
def odd_vocab(make_vocab):
    """A vocabulary file that cuts words of `ALPHABET` here and there."""
    return make_vocab(*MARKS, *TOKENS)


@pytest.fixture(scope="session")
def random_texts():
    """A function of their number that returns texts of `ALPHABET`."""

    def draw(num_texts: int, seed: int = 0) -> list[str]:
        rng = random.Random(seed)
        lengths = rng.choices([0, 1, 3, 8, 30], k=num_texts)
        return ["".join(rng.choices(ALPHABET, k=length)) for length in lengths]

    return draw
