"""SQuAD files, released tokenizers and features."""

import functools

import pytest
from support import squad_files

from official_bert.tasks.squad.examples import read_examples
from official_bert.tasks.squad.task import SquadTask
from official_bert.tokenization import Tokenizer


@pytest.fixture
def write_squad(tmp_path):
    """Returns a function that writes paragraphs and returns the file's path."""
    return functools.partial(squad_files.write, tmp_path / "squad.json")


@pytest.fixture
def read(write_squad):
    """Returns a function that writes paragraphs and reads them as SQuAD 2.0."""

    def read_back(*paragraphs, is_training=True, **changes):
        return read_examples(
            write_squad(*paragraphs, **changes),
            is_training=is_training,
            version_2_with_negative=True,
        )

    return read_back


@pytest.fixture(scope="session")
def released_tokenizer(vocab_files):
    """Returns a function of a vocabulary's name and `do_lower_case`."""

    @functools.cache
    def make(name, do_lower_case):
        return Tokenizer(vocab_files[name], do_lower_case)

    return make


@pytest.fixture
def featurize():
    """Returns a function that makes features; windows are 3 tokens apart."""

    def make(examples, tokenizer, length, stride=3):
        task = SquadTask(doc_stride=stride, max_query_length=3)
        [features] = task.featurize(examples, tokenizer, length)
        return features

    return make
