import os

import pytest

from official_bert.errors import InputError
from official_bert.tasks import conll
from official_bert.tasks.conll import ConllData

CONLL = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
. . O O

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER

-DOCSTART- -X- -X- O

BRUSSELS NNP B-NP B-LOC
"""


@pytest.fixture
def write(tmp_path):
    """A function that writes the file of a split and returns its path."""

    def write_file(text, split="train"):
        path = tmp_path / f"{split}.txt"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_file


def read(path, token_column=0, tag_column=-1):
    folder, name = os.path.split(path)
    data = ConllData(folder, token_column, tag_column)
    return data.read_in_order(name.removesuffix(".txt"))


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        (CONLL, (0, -1), True),
        (CONLL.replace("Peter", "Peter A"), (0, -1), True),  # Damaged.
        ("a B-PER x\nb O x\n", (0, 1), True),
        ("a x\nb y\nc z\n\nd x\ne y\nf z\n", (0, -1), True),  # No tags.
        ("a\nb\nc\n\nd\ne\nf\n", (0, -1), True),  # Words alone.
        ("Hello there\nGood morning\n\nAll right\n", (0, -1), False),
        ("one\ntwo\nthree\n", (0, -1), False),
        ("Vitamin O\nis what Peter sells in\nBrussels\n", (0, -1), False),
        ("\n", (0, -1), False),
    ],
)
def test_conll_files_are_recognized(write, text, columns, expected):
    labels = ("B-ORG", "B-PER", "I-PER", "B-LOC", "O")
    data = ConllData("", *columns, labels)
    assert data.recognizes(write(text)) == expected


def words_and_tags(sentences):
    return [(list(s.words), s.tags and list(s.tags)) for s in sentences]


def test_each_sentence_refers_to_its_document(write):
    sentences = read(write(CONLL))
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
    # Otherwise, the size of this `repr` would grow quadratically.
    assert "EU" not in repr(second)


def test_columns_are_chosen_by_number(write):
    path = write(CONLL)
    for token, tag, expected in (
        (0, 1, ("EU", "NNP")),
        (1, 3, ("NNP", "B-ORG")),
        (2, -1, ("B-NP", "B-ORG")),
    ):
        first = read(path, token_column=token, tag_column=tag)[0]
        assert (first.words[0], first.tags[0]) == expected


def test_lines_with_a_tab_are_split_at_tabs_and_others_at_spaces(write):
    path = write(
        "\ufeffNew York \t B\n \t \n  a   B  \nb\xa0c\u2028d O\n\n\n\n"
        "x O\r\n\r\ny B"
    )
    assert words_and_tags(read(path)) == [
        (["New York"], ["B"]),
        (["a", "b\xa0c\u2028d"], ["B", "O"]),
        (["x"], ["O"]),
        (["y"], ["B"]),
    ]


@pytest.mark.parametrize(
    ("text", "tag", "message"),
    [
        ("a\nb\n", -1, "column -1"),
        ("a\nb\n", 1, "column 1"),
        ("a X\nb Y\n", 2, "column 2"),
        ("a\t\nb\t\n", 1, "tag must not be empty"),
    ],
)
def test_test_data_may_lack_tags(write, text, tag, message):
    sentences = read(write(text, "test"), tag_column=tag)
    assert words_and_tags(sentences) == [(["a", "b"], None)]
    with pytest.raises(InputError, match=rf"dev.txt:1: .*{message}"):
        read(write(text, "dev"), tag_column=tag)


def test_predictions_become_the_last_column(write):
    path = write("\ufeff-DOCSTART- O\n\na b\tO\n\n\nc  O \r\n \nd O")
    text = conll.with_predictions(path, [["X"], ["Y"], ["Z"]])
    expected = "-DOCSTART- O O\n\na b\tO\tX\n\n\nc  O Y\n\nd O Z\n"
    assert text == expected


@pytest.mark.parametrize(
    ("names", "split", "expected"),
    [
        (["train.txt", "eng.train"], "train", "train.txt"),
        (["eng.testa", "valid.txt"], "dev", "valid.txt"),
        (["valid.txt", "dev.txt"], "dev", "dev.txt"),
        (["eng.testa", "eng.testb"], "dev", "eng.testa"),
        (["eng.testa", "eng.testb"], "test", "eng.testb"),
    ],
)
def test_first_known_file_name_is_read(tmp_path, names, split, expected):
    for name in names:
        (tmp_path / name).touch()
    assert ConllData(str(tmp_path)).path(split) == str(tmp_path / expected)
