"""Files in SQuAD's format, and tokenizers, small and released ones."""

import functools
import json
import lzma

import pytest

from official_bert.tasks.squad.squad_examples import read_examples
from official_bert.tokenization import BatchTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


@pytest.fixture
def write_squad(tmp_path):
    """A function of paragraphs that writes them and returns the file's name.

    Each is a context and its questions: (id, question, answer or None, start).
    """

    def write(*paragraphs, **changes):
        nodes = [
            {
                "context": context,
                "qas": [
                    {
                        "id": name,
                        "question": question,
                        "is_impossible": answer is None,
                        "answers": [
                            {"text": text, "answer_start": start}
                            for text in [answer]
                            if text is not None
                        ],
                        **changes,
                    }
                    for name, question, answer, start in questions
                ],
            }
            for context, *questions in paragraphs
        ]
        path = tmp_path / "squad.json"
        content = {
            "version": "1",
            "data": [{"title": "t", "paragraphs": nodes}],
        }
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def read(write_squad):
    """Does the same and reads them, for training on SQuAD 2.0."""

    def read_back(*paragraphs, is_training=True, version_2=True):
        return read_examples(
            write_squad(*paragraphs),
            is_training=is_training,
            version_2_with_negative=version_2,
        )

    return read_back


@pytest.fixture
def make_tokenizer(tmp_path):
    """A function of pieces, or of a text to take its characters for these."""

    def make(pieces, do_lower_case=True):
        if isinstance(pieces, str):
            letters = sorted(set(pieces) - {" "})
            pieces = [p for letter in letters for p in (letter, f"##{letter}")]
        path = tmp_path / "vocab.txt"
        lines = "".join(f"{piece}\n" for piece in [*SPECIAL, *pieces])
        path.write_text(lines, encoding="utf-8")
        return BatchTokenizer(str(path), do_lower_case=do_lower_case)

    return make


@pytest.fixture(scope="session")
def released_tokenizer(shared_data, tmp_path_factory):
    """A function of a released vocabulary's name and of the casing."""
    unpacked = tmp_path_factory.mktemp("vocab") / "multi_cased.txt"
    packed = shared_data / "vocab" / "multi_cased.txt.xz"
    unpacked.write_bytes(lzma.decompress(packed.read_bytes()))

    @functools.cache
    def make(name, do_lower_case):
        path = shared_data / "vocab" / f"{name}.txt"
        return BatchTokenizer(
            str(path if path.exists() else unpacked), do_lower_case
        )

    return make
