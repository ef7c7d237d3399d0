"""Random texts of unusual characters, and recorded results."""

import random
import sys
import unicodedata

import pytest
from support import recorded_texts

TOKENS = [
    *("[UNK]", "[MASK]", "a", "##a", "ab", "##bc", "σ", "##σ", "##ς", "é"),
    *("##\u1161", "\u1112", "中", ".", "!", "[", "##2", "x", "##x", "i"),
]
# Characters of every class and special case.
ALPHABET = (
    "aAbBcC12xX.!-[]'`$ \t\n\r\x00\x0b\x1c\x7f\x85\xa0\xad"
    "éÉİßςσΣ中\uf900\u3000\u2028\u200b\u200d\ufffd\ue000\ud800€—한가"
    "\u0300\u0301\u0345\u0e31\u302e\U0001d165\U0001d16d\U00020000\U0002ceb0"
)


@pytest.fixture
def odd_vocab(make_vocab):
    """A vocabulary file that splits some words of `ALPHABET`."""
    return make_vocab(*TOKENS)


@pytest.fixture(scope="session")
def random_texts():
    """3000 texts of `ALPHABET`."""
    rng = random.Random(0)
    texts = []
    for _ in range(3000):
        length = rng.choice([1, 3, 8, 30])
        chars = rng.choices(ALPHABET, k=length)
        if rng.random() < 0.2:
            chars.insert(rng.randrange(length), "[MASK]")
        texts.append("".join(chars))
    return texts


@pytest.fixture(scope="session")
def all_records(golden):
    """Recorded strings and tokens that this Python can reproduce."""
    path = golden / "tokenization" / "tokenized.jsonl.gz"
    every = list(recorded_texts.lines(path))
    # `pydiff` lists versions of Python with other results, such as "3.10.13";
    # Unicode tables change only between minor versions.
    running = f"{sys.version_info.major}.{sys.version_info.minor}."
    kept = [
        record
        for record in every
        if not any(v.startswith(running) for v in record.get("pydiff", []))
    ]
    assert len(kept) == len(every) or unicodedata.unidata_version != "14.0.0"
    return kept


@pytest.fixture
def recorded(request, make_vocab):
    """Some records, the name of a vocabulary, its file and `do_lower_case`.

    The parameter starts with "complete", or with "extract" for the records that
    are kept with the tests, and ends with the vocabulary.
    """
    source, name = request.param.split()
    if source == "complete":
        records = request.getfixturevalue("all_records")
        vocab_file = request.getfixturevalue("vocab_files")[name]
    else:
        extract = request.getfixturevalue("tokenization_extract")
        records = extract["records"]
        vocab_file = make_vocab(*extract["vocabularies"][name])
    return records, name, vocab_file, name != "multi_cased"
