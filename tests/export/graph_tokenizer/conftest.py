"""Vocabularies, and texts that are treated in every way there is."""

import json
import lzma
import random

import pytest
from recorded import EXTRACT

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
def make_vocab(tmp_path):
    """A function of tokens that returns a vocabulary file with them."""

    def make(*tokens: str) -> str:
        path = tmp_path / "vocab.txt"
        path.write_text("".join(f"{t}\n" for t in tokens), encoding="utf-8")
        return str(path)

    return make


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


@pytest.fixture(scope="session")
def extract():
    """Recorded results that are kept with the tests."""
    path = EXTRACT / "tokenization.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def vocab_files(shared_data, tmp_path_factory):
    """{name: file} of the released vocabularies."""
    folder = shared_data / "vocab"
    unpacked = tmp_path_factory.mktemp("vocab") / "multi_cased.txt"
    unpacked.write_bytes(
        lzma.decompress((folder / "multi_cased.txt.xz").read_bytes())
    )
    return {
        "uncased": str(folder / "uncased.txt"),
        "cased": str(folder / "cased.txt"),
        "chinese": str(folder / "chinese.txt"),
        "multi_cased": str(unpacked),
    }
