"""Column files: read, complained about, written back."""

import pytest

from official_bert.errors import InputError
from official_bert.tasks.conll import (
    ConllData,
    with_predictions,
)

CONLL = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
. . O O

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER

-DOCSTART- -X- -X- O

BRUSSELS NNP B-NP B-LOC
"""


def words_and_tags(sentences):
    return [(list(s.words), s.tags and list(s.tags)) for s in sentences]


def read(path, token=0, tag=-1, needs_tags=True, labels=None):
    data = ConllData("", token, tag)
    return data.read_file(path, needs_tags=needs_tags, labels=labels)


def test_the_shared_task_of_2003(write):
    sentences = read(write("train.txt", CONLL))
    assert words_and_tags(sentences) == [
        (["EU", "rejects", "."], ["B-ORG", "O", "O"]),
        (["Peter", "Blackburn"], ["B-PER", "I-PER"]),
        (["BRUSSELS"], ["B-LOC"]),
    ]
    first, second, third = sentences
    assert first.document == ["EU", "rejects", ".", "Peter", "Blackburn"]
    assert second.document is first.document
    assert (first.start, second.start, third.start) == (0, 3, 0)
    assert third.document == ["BRUSSELS"]
    assert "EU" not in repr(second)  # Else the length of all is a square.


@pytest.mark.parametrize(
    ("tag", "expected"),
    [(1, "NNP"), (2, "B-NP"), (3, "B-ORG"), (-1, "B-ORG")],
)
def test_columns_by_number(write, tag, expected):
    assert read(write("a", CONLL), tag=tag)[0].tags[0] == expected


def test_the_word_may_stand_anywhere(write):
    path = write("a", "1 In ADP\n2 it PRON\n")
    assert words_and_tags(read(path, token=1)) == [
        (["In", "it"], ["ADP", "PRON"])
    ]


def test_what_divides_lines(write):
    """Tabs where there are any; else spaces, but no other whitespace."""
    path = write(
        "a",
        "\ufeffNew York\tB\n \t \n  a   B  \nb\xa0c\u2028d O\n\n\n\nx O\r\n\r\n"
        "y B",
    )
    assert words_and_tags(read(path)) == [
        (["New York"], ["B"]),
        (["a", "b\xa0c\u2028d"], ["B", "O"]),
        (["x"], ["O"]),
        (["y"], ["B"]),
    ]


@pytest.mark.parametrize(
    ("text", "tag"), [("a\nb\n", -1), ("a\nb\n", 1), ("a X\nb Y\n", 2)]
)
def test_test_data_may_lack_tags(write, text, tag):
    path = write("a", text)
    assert words_and_tags(read(path, tag=tag, needs_tags=False)) == [
        (["a", "b"], None)
    ]
    with pytest.raises(InputError, match=r"a:1: a line must have a word in"):
        read(path, tag=tag)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a O\n\nb X O\n", "a:3: all lines must have 2 .* Received: 3"),
        ("a O\nb\n", "a:2: all lines must have 2 .* Received: 1"),
        ("# a comment\na O\n", r"a:2: all lines must have 3 "),
        ("a\tO\n\tO\n", "a:2: a word must not be empty"),
        ("a\tO\nb\t\n", "a:2: the tag must not be empty"),
        ("", "a: must hold words"),
        ("\n-DOCSTART- O\n\n", "a: must hold words"),
    ],
)
def test_errors_name_the_line(write, text, message):
    with pytest.raises(InputError, match=message):
        read(write("a", text))


@pytest.mark.parametrize("tag", ["Q", "o", ""])
def test_an_unknown_tag(write, tag):
    path = write("a", f"a\tO\n\nb\t{tag}\n")
    with pytest.raises(InputError, match=f"a:3: .* one of O, P. .*: '{tag}'"):
        read(path, labels=("O", "P"))


def test_a_missing_word_column(write):
    with pytest.raises(InputError, match=r"a:1: .* word in column 2"):
        read(write("a", "a O\n"), token=2, needs_tags=False)


def test_predictions_become_the_last_column(write):
    path = write("a", CONLL)
    answers = [["X", "Y", "Z"], ["U", "V"], ["W"]]
    text = with_predictions(path, answers)
    assert text == (
        "-DOCSTART- -X- -X- O O\n\nEU NNP B-NP B-ORG X\nrejects VBZ B-VP O Y\n"
        ". . O O Z\n\nPeter NNP B-NP B-PER U\nBlackburn NNP I-NP I-PER V\n\n"
        "-DOCSTART- -X- -X- O O\n\nBRUSSELS NNP B-NP B-LOC W\n"
    )
    again = read(write("b", text))
    assert [s.tags for s in again] == answers
    assert [s.words for s in again] == [s.words for s in read(path)]


def test_predictions_of_odd_lines(write):
    """As many lines; tabs and spaces as they are."""
    path = write("a", "\ufeffa b\tO\n\n\nc  O \r\n \nd O")
    text = with_predictions(path, [["X"], ["Y"], ["Z"]])
    assert text == "a b\tO\tX\n\n\nc  O Y\n\nd O Z\n"
