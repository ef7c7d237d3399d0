"""SQuAD files, released tokenizers and features."""

import functools
import json

import pytest

from official_bert.tasks.squad.squad_examples import read_examples
from official_bert.tasks.squad.squad_task import SquadTask
from official_bert.tokenization import Tokenizer


@pytest.fixture
def write_squad(tmp_path):
    """Returns a function that writes paragraphs and returns the file's path.

    A paragraph is a context and its questions: (id, question, answer or None,
    offset of the answer).
    """

    def make_question(name, question, text, start):
        answers = [{"text": text, "answer_start": start}]
        return {
            "id": name,
            "question": question,
            "is_impossible": text is None,
            "answers": [] if text is None else answers,
        }

    def write(*paragraphs, **changes):
        nodes = [
            {
                "context": context,
                "qas": [make_question(*q) | changes for q in questions],
            }
            for context, *questions in paragraphs
        ]
        path = tmp_path / "squad.json"
        path.write_text(json.dumps({"data": [{"paragraphs": nodes}]}))
        return str(path)

    return write


@pytest.fixture
def read(write_squad):
    """Returns a function that writes paragraphs and reads them as SQuAD 2.0."""

    def read_back(*paragraphs, is_training=True):
        return read_examples(
            write_squad(*paragraphs),
            is_training=is_training,
            version_2_with_negative=True,
        )

    return read_back


@pytest.fixture(scope="session")
def released_tokenizer(vocab_files):
    """Returns a function of a released vocabulary's name and the casing."""

    @functools.cache
    def make(name, do_lower_case):
        return Tokenizer(vocab_files[name], do_lower_case)

    return make


@pytest.fixture
def featurize():
    """Returns a function that makes features of windows 3 tokens apart."""

    def make(examples, tokenizer, length, stride=3):
        task = SquadTask(doc_stride=stride, max_query_length=3)
        [features] = task.featurize(examples, tokenizer, length)
        return features

    return make
