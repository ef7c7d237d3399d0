import pytest
from support.own_tables import text_task, texts

from official_bert.tasks import data_summary
from official_bert.tasks.choice import ChoiceExample, ChoiceTask
from official_bert.tasks.conll import Sentence
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask

LENGTHS = {"50%": 7, "90%": 1200, "99%": 9, "max": 9, "full": 0.125}


def table(caplog, task, data, metadata=None):
    """Returns the rows of the logged table, split at spaces."""
    caplog.set_level("INFO", logger="absl")
    caplog.clear()
    data_summary.log(task, data, metadata or {"num_records": 3}, 8)
    first, *lines = caplog.records[0].getMessage().splitlines()
    assert first == "The data:"
    assert all(len(line) <= 80 for line in lines)
    return [line.split() for line in lines]


def test_table_of_data_has_examples_labels_and_lengths(caplog):
    data = {"train": texts("b", "a", "b"), "test": texts(None, None)}
    metadata = {"num_records": 3, "lengths": LENGTHS}
    assert table(caplog, text_task(labels=("a", "b", "c")), data, metadata) == [
        ["train", "test"],
        ["examples", "3", "2"],
        ["label", "b", "2", "-"],
        ["label", "a", "1", "-"],
        ["label", "c", "0", "-"],
        ["tokens,", "50%", "7"],
        ["tokens,", "90%", "1,200"],
        ["tokens,", "99%", "9"],
        ["tokens,", "max", "9"],
        ["8", "tokens", "or", "more", "12.5%"],
    ]
    assert "Up to 12% of the texts are truncated to 8 tokens" in caplog.text
    metadata["num_records"] = 5
    windows = text_task(long_documents=LongDocuments("windows"))
    rows = table(caplog, windows, data, metadata)
    assert rows[4] == ["windows", "5"]
    assert "truncated" not in caplog.text


TAGGED = Sentence(["x", "y"], ["B-X", "O"], ["x", "y"])
CHOICES = [ChoiceExample("", "", "abc", number) for number in range(3)]


@pytest.mark.parametrize(
    ("task", "examples", "labels"),
    [
        (text_task("multilabel"), texts(("a", "b"), ("a",), ()), "a 2 b 1"),
        (text_task("regression", ()), texts(1.0, 2.0, 3.0), ""),
        (ChoiceTask(num_choices=3), CHOICES, "0 1 1 1 2 1"),
        (TaggingTask(labels=("B-X", "O")), [TAGGED], "B-X 1 O 1"),
        (SquadTask(), [None, None, None], ""),
    ],
)
def test_every_task_counts_its_labels(caplog, task, examples, labels):
    rows = table(caplog, task, {"train": examples})
    found = [" ".join(row[1:]) for row in rows if row[0] == "label"]
    assert " ".join(found) == labels
    assert len(caplog.messages) == 1


def test_only_ten_of_many_labels_are_shown_with_a_warning(caplog):
    labels = tuple(f"label{number:03}" + "x" * 50 for number in range(120))
    splits = ("train", "dev", "dev_mismatched", "test", "test_mismatched")
    data = dict.fromkeys(splits, texts(*labels))
    rows = table(caplog, text_task(labels=labels), data)
    assert sum(row[0] == "label" for row in rows) == 10
    assert ["and", "110", "more", "labels"] in rows
    assert "120 different labels" in caplog.records[1].getMessage()


@pytest.mark.parametrize(
    ("train", "dev", "warning"),
    [
        ("abcdefa", None, "6 different labels"),
        ("abcabcabc", None, None),
        ("ab", None, None),
        ("abab", "ab", None),
        ("abab", "a", "dev has no examples of b"),
        (("Yes", "no", "yes") * 2, None, ": 'Yes' / 'yes'."),
        (("1", "0", "1.0") * 2, None, ": '1' / '1.0'."),
        (("true", "false", "1") * 2, None, ": 'true' / '1'."),
        (("yes", "no", "yes\u200b") * 2, None, r": 'yes' / 'yes\u200b'."),
        (("a  b", "no", "a b") * 2, None, ": 'a  b' / 'a b'."),
        (("yes", "no", '"yes"') * 2, None, """: 'yes' / '"yes"'."""),
        (("é", "no", "e\u0301") * 2, None, r": '\xe9' / 'e\u0301'."),
        (("not_ok", "ok", "not-ok") * 2, None, ": 'not_ok' / 'not-ok'."),
        (("1", "-1", "'1") * 2, None, """: '1' / "'1"."""),
        (("❤", "no", "❤\ufe0f") * 2, None, ": '❤' / '❤\ufe0f'."),
        (("Yes", "No") * 2, None, None),
    ],
)
def test_odd_labels_are_a_warning(caplog, train, dev, warning):
    data = {"train": texts(*train)} | ({"dev": texts(*dev)} if dev else {})
    table(caplog, text_task(labels=tuple({*train})), data)
    assert len(caplog.messages) == 1 + (warning is not None)
    assert (warning or "") in caplog.messages[-1]


def test_label_without_training_examples_is_a_warning(caplog):
    table(caplog, text_task(), {"train": texts("a", "a")})
    assert "train has no examples of b: they are not lea" in caplog.messages[-1]
