"""Random texts of unusual characters, and recorded results."""

import sys
import unicodedata

import pytest
from support import odd_texts, recorded_texts


@pytest.fixture
def odd_vocab(make_vocab):
    """A vocabulary file that splits some words of `random_texts`."""
    return make_vocab("[UNK]", "[MASK]", *odd_texts.TOKENS)


@pytest.fixture(scope="session")
def random_texts():
    return odd_texts.random_texts(3000, "[MASK]", "\ud800")


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
