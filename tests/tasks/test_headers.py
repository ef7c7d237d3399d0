"""Whether the first line of a table is its header."""

import pytest
from support import tiny
from support.own_tables import REVIEWS, table

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.options import Predict
from official_bert.tasks import detection, headers
from official_bert.tasks.predict_inputs import table_inputs


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
    assert headers.looks_like_header(rows[0], rows[1:]) is expected


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
    with pytest.raises(InputError, match=r"dev.csv: .* 'review' .*: 1, good\."):
        task.data.read("dev")
    options = options.replace(do_eval=False)
    task = tasks.get(*detection.detect_omitted(options))
    assert len(task.data.read("train")) == 2
    assert "train.csv:1: this line is the header" in caplog.text


def test_column_given_by_number_has_its_name_in_other_tables(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    (tmp_path / "train.csv").write_text("id,a,b,y\n7,good,x,1\n8,bad,z,0\n")
    (tmp_path / "dev.csv").write_text("b,y,a\nx,0,bad cat\n")
    flags = {"text_a_column": "1", "label_column": "3", "has_header": True}
    options = tiny.options(tmp_path, task_name="csv", **flags)
    task = tasks.get(*detection.detect_omitted(options))
    assert [e.text_a for e in task.data.read("dev")] == ["bad cat"]
    assert task.to_json()["columns"] == {"names": ["a"], "has_header": True}
    assert "--text_column=1 is the column 'a'" in caplog.text


def test_columns_listed_by_number_have_their_names_in_other_tables(tmp_path):
    (tmp_path / "train.csv").write_text(
        'text,a,"b,c",d\ngood,1,0,1\nbad,0,0,1\n'
    )
    (tmp_path / "dev.csv").write_text('d,text,a,"b,c"\n0,fine,1,1\n')
    flags = {"has_header": True, "task_name": "csv", "task_type": "auto"}
    options = tiny.options(tmp_path, label_column="1,3", **flags)
    task = tasks.get(*detection.detect_omitted(options))
    assert task.labels == ("a", "d")
    assert [e.label for e in task.data.read("dev")] == [("a",)]
    # A name with a comma cannot be in a list.
    options = tiny.options(tmp_path, label_column="1,2", **flags)
    assert detection.detect_omitted(options)[0].label_column == "1,2"


@pytest.mark.parametrize(
    ("first", "has_header", "warns"),
    [
        ("review,stars", None, True),
        ("review,stars", False, False),
        ("bad,1", None, True),
        ("bad rain,1", None, False),
        ("bad,1\ngood,5", None, False),
    ],
)
def test_header_that_the_training_data_lacked_gives_a_warning(
    first, has_header, warns, tmp_path, caplog
):
    (tmp_path / "a.csv").write_text(f"{first}\ngood red cat,5\nbad dog,1\n")
    options = Predict(input_file=str(tmp_path / "a.csv"), has_header=has_header)
    inputs = [*table_inputs(options, ("0",), trained_header=False)]
    assert len(inputs) == 3 + first.count("\n")
    assert ("a.csv:1: this line is an example" in caplog.text) == warns
