"""Reading: where answers stand, and what is wrong with a file."""

import gzip
import json
import logging
import pathlib
import random

import pytest

from official_bert.errors import InputError
from official_bert.tasks.squad.squad_examples import (
    Paragraph,
    read_examples,
)
from official_bert.tasks.task import shuffle_examples

CONTEXT = "John  Smith\tlived\nhere(1895-1943)."


def test_words_are_cut_at_five_spaces_only():
    paragraph = Paragraph.from_text(" a\tb\r\nc\u202fd\xa0e\u2028f ")
    assert paragraph.doc_tokens == ["a", "b", "c", "d\xa0e\u2028f"]
    assert paragraph.starts.tolist() == [1, 3, 6, 8]
    assert [paragraph.word_at(i) for i in (0, 1, 2, 7, 8, 13)] == [
        *(-1, 0, 0, 2, 3, 3)
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_paragraph_may_be_blank(text):
    assert Paragraph.from_text(text).doc_tokens == []


def test_an_answer_is_found_by_its_characters(read):
    [example] = read((CONTEXT, ("q1", "When?", "1895", CONTEXT.index("1895"))))
    assert example.doc_tokens == ["John", "Smith", "lived", "here(1895-1943)."]
    assert (example.start_position, example.end_position) == (3, 3)
    assert example.orig_answer_text == "1895"
    assert not example.is_impossible


def test_characters_beyond_two_bytes_count_once(read):
    context = "\U0001f600 \U0001f600 here"
    [example] = read((context, ("q", "Where?", "here", 4)))
    assert example.start_position == 2


def test_questions_share_their_paragraph(read):
    one, two, three = read(
        ("a b", ("1", "q", "a", 0), ("2", "q", "b", 2)),
        ("a b", ("3", "q", "a", 0)),
    )
    assert one.paragraph is two.paragraph is not three.paragraph


def test_an_impossible_question_needs_no_answer(read):
    [example] = read((CONTEXT, ("q", "Why?", None, 0)))
    assert example.is_impossible
    assert (example.start_position, example.end_position) == (-1, -1)
    assert example.orig_answer_text == ""


def test_answers_are_not_read_for_predicting(write_squad):
    path = write_squad(("a b", ("q", "q?", "zzz", 99)), is_impossible=None)
    for version_2 in (False, True):
        [example] = read_examples(
            path, is_training=False, version_2_with_negative=version_2
        )
        assert example.orig_answer_text is example.start_position is None
        assert not example.is_impossible


def test_questions_to_be_answered_have_ids_of_their_own(write_squad, read):
    """In training nothing is kept by them."""
    twice = (CONTEXT, ("1", "q", "Smith", 6), ("1", "r", "Smith", 6))
    assert len(read(twice)) == 2
    with pytest.raises(InputError, match=r"qas\[1\]: .* '1', as in .*qas\[0\]"):
        read_examples(
            write_squad(twice), is_training=False, version_2_with_negative=False
        )


def test_an_answer_that_is_elsewhere_is_left_out(read, caplog):
    caplog.set_level(logging.WARNING)
    found = read((CONTEXT, ("1", "q", "Smith", 0), ("2", "q", "Smith", 6)))
    assert [example.qas_id for example in found] == ["2"]
    assert "qas[0] (question '1') is left out" in caplog.text


def test_an_answer_may_span_any_spaces(read):
    [example] = read((CONTEXT, ("1", "q", "John  Smith\tlived", 0)))
    assert (example.start_position, example.end_position) == (0, 2)


# What the 2018 release was seen to do.
def test_an_empty_answer_at_the_start_ends_at_the_last_word(read):
    [example] = read(("a b", ("1", "q", "", 0)))
    assert (example.start_position, example.end_position) == (0, 1)


def test_an_answer_that_starts_before_the_first_word_is_left_out(read):
    found = read(("  ab cd", ("1", "q", "ab", 0), ("2", "q", "ab", 2)))
    assert [example.qas_id for example in found] == ["2"]


def test_marks_gzip_and_numbers_are_read(write_squad, tmp_path):
    path = write_squad(("a b", (7, "q", "a", 0)))
    content = b"\xef\xbb\xbf" + pathlib.Path(path).read_bytes()
    packed = tmp_path / "squad.json.gz"
    packed.write_bytes(gzip.compress(content))
    [example] = read_examples(
        str(packed), is_training=True, version_2_with_negative=False
    )
    assert example.qas_id == "7"


def check(path, message, version_2=True):
    with pytest.raises(InputError, match=message):
        read_examples(path, is_training=True, version_2_with_negative=version_2)


def test_broken_json_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"data":\n[{"paragraphs": [}\n]}')
    check(str(path), r"a\.json:2: must be valid JSON.*column 18")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], r"\(root\): must have a field `data`, a list.*\[\]"),
        ({"version": "1"}, "`data`.*only version"),
        ({"data": {}}, "`data` must be a list"),
        ({"data": []}, "must hold questions"),
        ({"data": [{}]}, r"data\[0\]: must have a field `paragraphs`"),
        (
            {"data": [{"paragraphs": []}, {"paragraphs": [{"qas": []}]}]},
            r"data\[1\]\.paragraphs\[0\]: must have a field `context`",
        ),
        (
            {"data": [{"paragraphs": [{"context": "a", "qas": [None]}]}]},
            r"data\[0\]\.paragraphs\[0\]\.qas\[0\]: .* `id`.*None",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_place(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    check(str(path), message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": 3}, r"qas\[0\]: `question` must be a string.*'3'"),
        ({"is_impossible": "no"}, "`is_impossible` must be true or false"),
        ({"answers": []}, "exactly one answer.*Received: 0"),
        ({"answers": [{}, {}]}, r"question 'q1'\): must have exactly one"),
        ({"answers": [{"text": "a"}]}, r"answers\[0\].* `answer_start`"),
        (
            {"answers": [{"text": "a", "answer_start": "1"}]},
            "`answer_start` must be an integer",
        ),
        (
            {"answers": [{"text": "a", "answer_start": 3}]},
            r"within the context's 3 char.*'a' at answer_start=3\.",
        ),
        (
            {"answers": [{"text": "bb", "answer_start": 2}]},
            "within the context's 3 char",
        ),
        ({"answers": [{"text": "", "answer_start": -9}]}, "must lie within"),
        ({"answers": [{"text": "x", "answer_start": 0}]}, "usable answers"),
    ],
)
def test_what_is_wrong_is_named_with_its_question(
    write_squad, changes, message
):
    check(write_squad(("a b", ("q1", "q", "a", 0)), **changes), message)


def test_is_impossible_is_needed_in_version_2_only(write_squad):
    path = write_squad(("a b", ("q1", "q", "a", 0)))
    text = pathlib.Path(path).read_text().replace("is_imp", "was_imp")
    pathlib.Path(path).write_text(text)
    check(path, "question 'q1'.*must have a field `is_impossible`")
    [_] = read_examples(path, is_training=True, version_2_with_negative=False)


def test_the_training_order_is_fixed(read):
    names = [str(i) for i in range(10)]
    examples = read(("a b", *((name, "q", "a", 0) for name in names)))
    expected = list(names)
    random.Random(12345).shuffle(expected)  # As in the 2018 release.
    assert [
        example.qas_id for example in shuffle_examples(examples)
    ] == expected
    assert [example.qas_id for example in examples] == names
