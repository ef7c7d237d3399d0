"""Whether the first line of a table is its header."""

import pytest
from support import tiny
from support.own_tables import REVIEWS, make, table

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.tasks import detection


@pytest.mark.parametrize(
    ("first", "others", "expected"),
    [
        ("text,label", ["good,pos", "bad,neg"], True),
        (",text,label", ["0,good,pos", "1,bad,neg"], True),
        ("How good is it, from 1 to 5?,text", ["1,a", "5,b"], True),
        ("text,label,,", ["good,pos,,", "bad,neg,,"], True),
        ("0,1", ["good,pos", "bad,neg"], True),
        (",0,1", ["0,good,pos", "1,bad,neg"], True),
        ("0,1", ["1,7", "2,8"], False),
        ("1,good", ["0,bad"], False),
        ("fine,pos", ["good,pos", "bad,neg"], False),
        ("fine,1", ["good,1", "bad,0"], False),
        ("it was a long and boring film,sad", ["so good,fun"], False),
        # Joined files, and an example that occurs twice.
        ("text,label", ["good,pos", "text,label", "bad,neg"], True),
        ("good,pos", ["bad,neg", "good,pos", "fine,pos"], False),
    ],
)
def test_header_is_distinguished_from_data(first, others, expected):
    rows = [line.split(",") for line in (first.replace(", ", " "), *others)]
    assert detection.looks_like_header(rows[0], rows[1:]) is expected


@pytest.mark.parametrize("header", ["review,stars", None])
def test_header_of_several_files_is_detected(tmp_path, header):
    for number in range(3):
        text = table(*REVIEWS[number::3], header=header)
        (tmp_path / f"{number}.csv").write_text(text, encoding="utf-8")
    options = tiny.parse(tmp_path, f"--train_file={tmp_path}/[0-2].csv")
    found, rows = detection.detect_omitted(options)
    assert found.has_header == bool(header)
    assert found.text_a_column == ("review" if header else "0")
    assert len(rows) == len(REVIEWS)
    if not header:
        (tmp_path / "2.csv").write_text(table(*REVIEWS[2::3]))
        with pytest.raises(InputError, match=r"2\.csv:1: .*/0\.csv has none"):
            detection.detect_omitted(options)
        detection.detect_omitted(options.replace(has_header=False))


def test_columns_given_by_number_do_not_lose_the_first_row(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    for split in ("train", "dev"):
        (tmp_path / f"{split}.csv").write_text("1,good\n0,bad\n1,fine\n")
    flags = {"text_a_column": "1", "label_column": "0", "task_name": "csv"}
    options = tiny.options(tmp_path, **flags)
    task = tasks.get(*detection.detect_omitted(options))
    assert len(task.data.read("train")) == len(task.data.read("dev")) == 3
    assert "train.csv:1: this line is data" in caplog.text
    (tmp_path / "train.csv").write_text("stars,review\n1,good\n0,bad\n")
    task = tasks.get(*detection.detect_omitted(options))
    assert len(task.data.read("train")) == 2
    assert "train.csv:1: this line is the header" in caplog.text


@pytest.mark.parametrize("first", ["text", "text,label", "so bad", ""])
def test_header_that_only_the_test_data_has_is_a_warning(
    tmp_path, caplog, first
):
    (tmp_path / "train.csv").write_text("so good,y\nvery bad,n\n")
    label = ",y" * ("," in first)
    (tmp_path / "test.csv").write_text(
        f"{first}\nnot good{label}\nvery odd{label}\n"
    )
    flags = {"text_a_column": "0", "label_column": "1", "has_header": False}
    assert len(make(tmp_path, **flags).data.read("test")) == 2 + bool(first)
    is_warned = "test.csv:1: this line is an example, too" in caplog.text
    assert is_warned == first.startswith("text")
