"""Random texts of characters of every class and special case."""

import random

# They split some words of `ALPHABET`.
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


def random_texts(number, *more):
    """Returns texts of `ALPHABET` and of `more` strings."""
    rng = random.Random(0)
    lengths = rng.choices([0, 1, 3, 8, 30], k=number)
    return ["".join(rng.choices([*ALPHABET, *more], k=n)) for n in lengths]
