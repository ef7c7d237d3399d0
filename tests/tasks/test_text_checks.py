"""Warnings of texts and labels that make results unreliable."""

import pytest
from support import tiny, write_json
from support.own_tables import REVIEWS, complete, table

from official_bert import tasks
from official_bert.io import files
from official_bert.tasks import detection

EMPTY = ["NaN,x", "a,x", ",y", "b,nan", "c,y", "d,nan"]
EMPTY += ["e,NA", "f,n/a", "g,<NA>", r"h,\N", "i,None", "j,none"]
GOOD = [f"naïve “{i}” b'{i}' 好,{i % 2}" for i in range(8)]
EXCEL = [*GOOD, "#NAME?,1", "#REF!,0", "a,#N/A", "b,#DIV/0!"]
ENCODED = ["trÃ¨s,0", "câ\x80\x99est,1", "tr\ufffds,0", "b'good',1", *GOOD]
ESCAPED = ["so good.\\n\\nBuy it,1", r"caf\u00e9,0", 'a \\"b\\" c,1', *GOOD]
ESCAPED += ["R&#39;n&amp;B,1", r"in C:\new and \nu; R&B,1"]
SEVERAL = ["a,x", "b,y", 'c,"x,y"', "d,x", "e,y", "f,nan", "g,"]

# Without agreement, the label is - or, at Hugging Face, -1.
SNLI = [f"text {i},{'enc-'[i % 4]}" for i in range(16)]
SNLI_IDS = [f"text {i},{i % 4 - 1}" for i in range(16)]

SCORES = [*(f"text {i},{i % 5 + 0.5}" for i in range(8)), "a,-999", "b,99"]

# Empty texts and labels that differ in case have their own warnings.
AMBIGUOUS = ["a,x", "a,y", "b,x", "b,y", "c,x", "c,X", ",x", ",y"]
EMPTY_IN_PAIRS = ["a,,x", ",b,y", "c,d,x", "e,f,y"]


MISSING = "are empty, or look like missing values (NaN, NA, None, #REF!"


@pytest.mark.parametrize(
    ("rows", "messages"),
    [
        (
            EMPTY,
            [
                f"2 of 12 texts {MISSING}",
                f"7 of 12 labels {MISSING}",
                ": lines 5, 7, 8, 9, 10, 11, 12. Correct or remove",
            ],
        ),
        (EXCEL, [f"2 of 12 texts {MISSING}", "? or -1): lines 12, 13. Corr"]),
        (SEVERAL, [f"1 of 7 labels {MISSING}"]),
        (ENCODED, ["4 of 12 texts have a wrong enc", "'): lines 2, 3, 4, 5."]),
        (ESCAPED, ["4 of 13 texts have escaped cha", "): lines 2, 3, 4, 13."]),
        (AMBIGUOUS, ["(number of such texts: 2, such as 'a')"]),
        (SNLI, [f"4 of 16 labels {MISSING}"]),
        (SNLI_IDS, [f"4 of 16 labels {MISSING}"]),
        (SCORES, ["2 of 10 labels look like missing", "others: lines 10, 11."]),
        (EMPTY_IN_PAIRS, [f"2 of 4 texts {MISSING}): lines 2, 3."]),
    ],
)
def test_data_that_make_results_unreliable_are_reported(
    tmp_path, caplog, rows, messages
):
    flags = ["--task_type=multilabel"] * (rows is SEVERAL)
    header = "text,label"
    if rows is EMPTY_IN_PAIRS:
        header = "one,two,label"
        flags = ["--text_column=one", "--text_b_column=two"]
    text = table(*rows, header=header)
    tasks.get(complete(tmp_path, "a.csv", text, "--dev_share=0.5", *flags))
    for message in messages:
        assert message in caplog.text


GOOD_AND_BAD = ["good", "very good", "bad", "very bad"]


@pytest.mark.parametrize(
    ("labels", "task_type"),
    [
        (["+", "-"], "classification"),
        (["-1", "0", "1"], "classification"),
        (["-2", "-1", "0", "1", "2"], "classification"),
        (GOOD_AND_BAD, "classification"),
        (["0.5", "40", "99"], "regression"),  # 99 is like the others.
    ],
)
def test_usual_labels_are_not_reported(tmp_path, caplog, labels, task_type):
    rows = [f"naïve “text” {i},{labels[i % len(labels)]}" for i in range(24)]
    text = table(*rows, header="text,label")
    tasks.get(complete(tmp_path, "a.csv", text, f"--task_type={task_type}"))
    assert not caplog.messages


@pytest.mark.parametrize(
    ("numbers", "is_reported"),
    [
        (["250", "1.019", "2.400", "999"], True),
        (["250", "1.019", "2.400", "1000"], False),
        (["250", "1.019", "2.4", "999"], False),
        (["2", "0.125", "0.250", "1"], False),
        (["2.000", "1.125", "1.250", "1.000"], False),
    ],
)
def test_points_that_may_separate_thousands_are_reported(
    tmp_path, caplog, numbers, is_reported
):
    rows = [f"text {i},{numbers[i % len(numbers)]}" for i in range(24)]
    text = table(*rows, header="text,label")
    tasks.get(complete(tmp_path, "a.csv", text, "--task_type=regression"))
    message = "has 250 and 1.019, which is read as 1.019"
    assert (message in caplog.text) == is_reported
    assert len(caplog.messages) == is_reported


@pytest.mark.parametrize("split", ["dev", "test"])
def test_texts_of_training_data_and_empty_texts_are_warnings(
    tmp_path, caplog, split
):
    rows = [f"it is {i},{i % 2}" for i in range(8)]
    other = tmp_path / "other.csv"
    other.write_text("text,label\nnew,1\nit is 3,0\nit is 5,1\n ,1\n")
    text = table(*rows, header="text,label")
    flag = f"--{split}_file={other}"
    task = tasks.get(complete(tmp_path, "a.csv", text, flag))
    task.data.read(split)
    assert "other.csv: 2 of 4 texts are also in the training" in caplog.text
    assert "overestimate the model: lines 3, 4. Remove" in caplog.text
    assert f"Empty texts: {split}-5. Their predictions are" in caplog.text


def test_evaluating_on_the_training_file_is_a_warning(tmp_path, caplog):
    path = tmp_path / "a.csv"
    path.write_text(table(*REVIEWS))
    fingerprints = {"training data": [files.fingerprint(str(path))]}
    path = path.rename(tmp_path / "b.csv")
    record = {"fingerprints": fingerprints}
    write_json(tmp_path / "out" / "train_options.json", record)
    flags = (f"--train_file={path}", f"--dev_file={path}", "--nodo_train")
    options = tiny.parse(tmp_path, *flags, "--do_eval")
    options, _ = detection.detect_omitted(options)
    label_file = tmp_path / "labels.txt"
    label_file.write_text("0\n1\n")
    options = options.replace(label_file=str(label_file))
    tasks.get(options).data.read("dev")
    assert f"{path} is the training data" in caplog.text
