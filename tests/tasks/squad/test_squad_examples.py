import gzip
import logging
import pathlib
import random

import pytest

from official_bert.errors import InputError
from official_bert.tasks.squad.examples import Paragraph, read_examples
from official_bert.tasks.task import shuffle_examples

CONTEXT = "John  Smith\tlived\nhere(1895-1943)."


def test_words_are_separated_by_five_characters_only():
    paragraph = Paragraph(" a\tb\r\nc\u202fd\xa0e\u2028f ")
    assert paragraph.words == ["a", "b", "c", "d\xa0e\u2028f"]
    words = [paragraph.word_at(offset) for offset in range(14)]
    assert words == [-1, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3]
    for blank in ("", " ", "\n\t"):
        assert Paragraph(blank).words == []


@pytest.mark.parametrize(
    ("context", "answer", "start", "expected"),
    [
        (CONTEXT, "1895", 23, (3, 3)),
        (CONTEXT, "John  Smith\tlived", 0, (0, 2)),
        # Offsets count characters, also those beyond 16 bits.
        ("\U0001f600 \U0001f600 here", "here", 4, (2, 2)),
        # As in the original, an empty answer at 0 ends at the last word.
        ("a b", "", 0, (0, 1)),
        # An impossible question.
        (CONTEXT, None, 0, (-1, -1)),
    ],
)
def test_answers_are_found_by_offset(read, context, answer, start, expected):
    [example] = read((context, ("q", "?", answer, start)))
    assert example.answer == (answer or "", *expected, answer is None)


def test_is_impossible_may_be_a_number_as_in_the_original(read):
    [example] = read(("a b", ("q", "q?", "a", 0)), is_impossible=1)
    assert example.answer.is_impossible


def test_equal_ids_are_an_error_only_for_predicting(read):
    twice = (CONTEXT, ("1", "q", "Smith", 6), ("1", "r", "Smith", 6))
    assert len(read(twice)) == 2
    with pytest.raises(InputError, match=r"qas\[1\] .*'1', as in .*qas\[0\]"):
        read(twice, is_training=False)


def test_questions_with_a_wrong_answer_offset_are_skipped(read, caplog):
    caplog.set_level(logging.WARNING, logger="absl")
    # As in the original, an offset before the first word is wrong, too.
    found = read(
        (CONTEXT, ("1", "q", "Smith", 0), ("2", "q", "Smith", 6)),
        ("  ab cd", ("3", "q", "ab", 0), ("4", "q", "ab", 2)),
        ("a b", *((str(i), "q", "b", 0) for i in range(5, 15))),
    )
    assert [example.qas_id for example in found] == ["2", "4"]
    assert "paragraphs[0].qas[0] (question '1') is skipped" in caplog.text
    assert caplog.text.count(" is skipped") == 10
    assert "12 questions are skipped" in caplog.text


def test_byte_order_marks_gzip_and_numeric_ids_are_read(write_squad, tmp_path):
    ignored = {"is_impossible": "no"}  # Not read in SQuAD 1.1.
    path = pathlib.Path(write_squad(("a b", (7, "q", "a", 0)), **ignored))
    packed = tmp_path / "squad.json.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
    [example] = read_examples(
        str(packed), is_training=True, version_2_with_negative=False
    )
    assert example.qas_id == "7"


def assert_error(path, message):
    with pytest.raises(InputError, match=message):
        read_examples(path, is_training=True, version_2_with_negative=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": {}}', "`data` of type list"),
        ('{"version": "1"}', "`data`.*only version"),
        ("[]", r"\(root\): .*`data` of type list.*\[\]"),
        ('{"data": []}', "questions"),
        ('{"data": [{}]}', r"data\[0\]: .*`paragraphs`"),
        (
            '{"data": [{"paragraphs": []}, {"paragraphs": [{"qas": []}]}]}',
            r"data\[1\]\.paragraphs\[0\]: .*`context`",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [null]}]}]}',
            r"data\[0\]\.paragraphs\[0\]\.qas\[0\]: .*`id`.*None",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": '
            '[{"id": 1, "question": "q", "answers": []}]}]}]}',
            r"qas\[0\] .*`is_impossible`.* omit --version_2_with_negative",
        ),
        ('{"data": \n[{"paragraphs": [}\n]}', r"a\.json:2: .*column 18"),
    ],
)
def test_malformed_files_are_reported_with_position(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content)
    assert_error(str(path), message)


def answer(text, start):
    return {"answers": [{"text": text, "answer_start": start}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": 3}, r"qas\[0\] .*`question`.*'3'"),
        ({"is_impossible": "no"}, "question 'q1'.*`is_impossible`.*'no'"),
        ({"answers": []}, "exactly one answer.*: 0"),
        ({"answers": [{}, {}]}, r"question 'q1'\): .*one.*Remove all but"),
        ({"answers": [{"text": "a"}]}, r"answers\[0\].*`answer_start`"),
        (answer("a", "1"), "`answer_start` of type int.*'1'"),
        (answer("a", 3), r"3 characters.*'a' at answer_start=3\."),
        (answer("bb", 2), "3 characters"),
        (answer("", -9), "answer_start=-9"),
        (answer("x", 0), "usable answers"),
    ],
)
def test_malformed_question_is_reported_by_id(write_squad, changes, message):
    assert_error(write_squad(("a b", ("q1", "q", "a", 0)), **changes), message)


def test_training_examples_are_shuffled_as_in_the_original():
    names = [str(i) for i in range(10)]
    expected = list(names)
    random.Random(12345).shuffle(expected)
    assert shuffle_examples(names) == expected
    assert names == sorted(names)
