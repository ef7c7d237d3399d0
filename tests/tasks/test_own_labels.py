"""Labels as names, lists, or vectors of 0 and 1, also in several columns."""

import json

import numpy as np
import pytest
from support import command_lines, own_tables, tiny, write_json_lines
from support.run_outputs import read_json

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.tasks import detection

COLUMNS = ["--label_column=toxic,rude,insult"]
MULTILABEL, CLASSIFICATION, REGRESSION = (
    [f"--task_type={name}"]
    for name in ("multilabel", "classification", "regression")
)


def write(folder, split, labels):
    """Writes a table; labels are JSON values, CSV cells or rows of bits."""
    rows = [(f"text {split} {n}", label) for n, label in enumerate(labels)]
    if not isinstance(labels[0], str):
        path = folder / f"{split}.jsonl"
        lines = [json.dumps({"text": a, "label": b}) for a, b in rows]
    else:
        path = folder / f"{split}.csv"
        has_columns = labels[0][0] != '"' and "," in labels[0]
        names = "toxic,rude,insult" if has_columns else "label"
        lines = [f"text,{names}", *(f"{a},{b}" for a, b in rows)]
    path.write_text("\n".join(lines) + "\n")
    return f"--{split}_file={path}"


def options(folder, flags, **labels):
    """Returns the options of a command whose files have these labels."""
    files = [write(folder, split, cells) for split, cells in labels.items()]
    return tiny.parse(folder, *files, *flags)


def make(folder, flags=(), **labels):
    return tasks.get(
        *detection.detect_omitted(options(folder, flags, **labels))
    )


def labels_of(task, split):
    examples = sorted(task.data.read(split), key=lambda e: e.text_a)
    return [example.label for example in examples]


BITS = [(1, 0, 1), (0, 1, 0), (0, 0, 0), (1, 1, 1)]
NAMES = ("label_0", "label_1", "label_2")


def named(names):
    return [tuple(np.compress(bits, [*names])) for bits in BITS]


def text(template, separator):
    """Returns the vectors as cells of a CSV file."""
    return [f'"{template.format(separator.join(map(str, b)))}"' for b in BITS]


@pytest.mark.parametrize(
    ("cells", "flags"),
    [
        (BITS, []),
        (BITS, MULTILABEL),
        ([[*map(float, bits)] for bits in BITS], []),
        ([[*map(bool, bits)] for bits in BITS], []),
        ([[*map(str, bits)] for bits in BITS], []),
        (text("[{}]", ", "), []),
        (text("[{}]", ", "), MULTILABEL),
        (text("({})", ", "), []),
        (text("[{}.]", ". "), []),  # str(np.array([1.0, 0.0, 1.0]))
        ([f'"{[*map(bool, bits)]}"' for bits in BITS], []),
        (text("{}", ","), []),
        (text("{}", ","), MULTILABEL),
        (text("{}", ";"), MULTILABEL),
        (text("{}", " "), []),
    ],
)
def test_vectors_of_equal_length_are_multilabel(tmp_path, cells, flags):
    flags = [*flags, "--dev_share=0"]
    task = make(tmp_path, flags, train=cells)
    assert (task.task_type, task.labels) == ("multilabel", NAMES)
    assert labels_of(task, "train") == named(NAMES)
    (tmp_path / "labels").write_text("z\ny\nx\n")
    flags = [*flags, f"--label_file={tmp_path / 'labels'}"]
    task = make(tmp_path, flags, train=cells, dev=cells, test=cells)
    assert task.labels == ("z", "y", "x")
    for split in ("train", "dev", "test"):
        assert labels_of(task, split) == named("zyx")


ONE_HOT = [[1, 0], [0, 1], [1, 0]]


def test_one_hot_vectors_are_classes_in_classification(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    flags = [*CLASSIFICATION, "--dev_share=0"]
    task = make(tmp_path, flags, train=ONE_HOT)
    assert labels_of(task, "train") == ["label_0", "label_1", "label_0"]
    rows = ["1,0,0", "0,0,1", "1,0,0"]
    for labels, flags in ((ONE_HOT, []), (rows, COLUMNS)):
        caplog.clear()
        assert make(tmp_path, flags, train=labels).task_type == "multilabel"
        hint = "--task_type=classification for one label per text"
        assert hint in caplog.text


@pytest.mark.parametrize(
    ("cells", "task_type", "labels"),
    [
        ([["b"], ["a"], ["b"]], "classification", ["b", "a", "b"]),
        ([[0], [1], [0]], "classification", ["0", "1", "0"]),
        ([["1"], "0", ["1"]], "classification", ["1", "0", "1"]),
        ([[0.5], [1.5], [2]], "regression", [0.5, 1.5, 2.0]),
        ([["b"], ["a"], []], "multilabel", [("b",), ("a",), ()]),
        # Digits in lists of different lengths are names.
        ([["0", "1"], ["2"]], "multilabel", [("0", "1"), ("2",)]),
    ],
)
def test_lists_with_one_label_each_are_single_labels(
    tmp_path, caplog, cells, task_type, labels
):
    caplog.set_level("INFO", logger="absl")
    task = make(tmp_path, ["--dev_share=0"], train=cells, test=[*cells])
    assert task.task_type == task_type
    assert labels_of(task, "train") == labels_of(task, "test") == labels
    if task_type == "classification":
        assert "(otherwise: --task_type=" in caplog.text
        task = make(tmp_path, ["--dev_share=0"], train=cells, dev=[["a", "b"]])
        with pytest.raises(InputError, match=r"dev\.jsonl:1: .*=multilabel"):
            task.data.read("dev")


@pytest.mark.parametrize(
    ("cells", "flags", "message"),
    [
        ([[0.2, 0.8], [1, 0]], [], "jsonl:1: .* probabilities of labels are n"),
        (['"[0.2, 0.8]"'], [], "csv:2: .* probabilities of labels are not"),
        (['"(18, 25)"', '"(25, 35)"'], [], "csv:2: .*ranges .* as 18-25"),
        ([[3], [0, 2]], [], "jsonl:1: .*; ids .* not supported. .*[3]"),
        ([[0], [1]], MULTILABEL, "jsonl:1: .*; ids .* not supported"),
        (['"[2, 3]"'], [], "csv:2: .*; ids .* not supported"),
        ([[1, 0, 1], [1, 0]], [], r"jsonl:2: .* 3 labels; .* \[1, 0\]"),
        ([["1", "0", "1"], ["1"]], [], "jsonl:1: .* a 0 or 1 for each label"),
        ([[1, 0], None], [], "jsonl:2: .* each of the 2 labels.*: None"),
        ([[1, 0], []], [], r"jsonl:2: .* each of the 2 labels.*: \[\]"),
        ([[1, 0], [1, None]], [], "jsonl:2: .* each of the 2 labels"),
        ([[1, 0], ["a"]], [], "jsonl:2: .* each of the 2 labels"),
        (['"[1, 0]"', ""], [], "csv:3: .* each of the 2 labels"),
        (['"[1, 0]"', "[1. nan]"], [], r"csv:3: .* 2 labels.*'\[1. nan\]'"),
        ([[0, 0], [0, 0]], [], "column 'label' .* only empty cells and zer"),
        ([[[1, 0], [0, 1]]], [], "jsonl:1: .* a list of names"),
        ([{"a": 1, "b": 0}], [], "jsonl:1: .* not a list or an object. If"),
        ([{"a": 1, "b": 0}], MULTILABEL, "jsonl:1: .* must be a list of names"),
        (["\"{'a': 1, 'b': 0}\""], [], "csv:2: .* not a list or an object"),
        (
            BITS,
            CLASSIFICATION,
            r"jsonl:1: .* exactly one label. .*=multilabel.*: \['label_0', ",
        ),
        ([["a", "b"]], CLASSIFICATION, "jsonl:1: .* single name.*=multilabel"),
        (BITS, REGRESSION, "jsonl:1: .* must be a number"),
        ([0, 1], MULTILABEL, "jsonl:1: .* must be a list of names"),
        (["0", "1"], MULTILABEL, "csv' .* only 0, 1. .*=classification"),
        ([["0"], ["1"]], MULTILABEL, "jsonl' .* only 0, 1. .*=classification"),
        # An empty cell may mean that a text has none of several labels.
        (['"a,b"', '"c,d"', ""], [], "csv:4: .* fill it in, .*=multilabel"),
    ],
)
def test_other_lists_are_an_error_with_advice(tmp_path, cells, flags, message):
    with pytest.raises(InputError, match=message):
        make(tmp_path, flags, train=cells)


PREDEFINED = [["b", "c"], ["a"], ["c"]]


@pytest.mark.parametrize(
    ("train", "split", "cells", "message"),
    [
        (PREDEFINED, "dev", BITS, "dev.jsonl:1: .* set --label_file"),
        (PREDEFINED, "test", BITS, "test.jsonl:1: .* set --label_file"),
        (BITS, "dev", [[1, 0]], "dev.jsonl:1: .* 0 or 1 for each of the 3 lab"),
        (BITS, "dev", [[1, 0, -1]], "dev.jsonl:1: .* 0 or 1 for each of the 3"),
        (BITS, "test", [[1, 0]], "test.jsonl:1: .* 0 or 1 for each of the 3"),
        (BITS, "test", [[1, 0, 0.5], [0.5, 1, 0]], "test.jsonl: .*Received: "),
        (BITS, "dev", [["label_0"]], [("label_0",)]),
        (BITS, "test", [[-1, -1, -1]], [None]),
        (BITS, "test", [None, [1, 0, 0]], [None, ("label_0",)]),
    ],
)
def test_other_files_have_the_vectors_of_the_training_data(
    tmp_path, train, split, cells, message
):
    task = make(tmp_path, ["--dev_share=0"], **{"train": train, split: cells})
    if isinstance(message, list):
        assert labels_of(task, split) == message
        return
    with pytest.raises(InputError, match=message):
        task.data.read(split)


ROWS = [",".join(map(str, bits)) for bits in BITS]
NUMBERS = ["--label_column=1,2,3"]


@pytest.mark.parametrize(
    ("flags", "label_file", "labels"),
    [
        (COLUMNS, "", "toxic rude insult"),
        (COLUMNS, "insult toxic rude", "insult toxic rude"),
        (["--label_column=insult, toxic"], "", "insult toxic"),
        (NUMBERS, "", "toxic rude insult"),
    ],
)
@pytest.mark.parametrize("values", ["0 1", "False True"])
def test_one_column_per_label_is_multilabel(
    tmp_path, caplog, flags, label_file, labels, values
):
    caplog.set_level("INFO", logger="absl")
    if label_file:
        (tmp_path / "labels").write_text(label_file.replace(" ", "\n"))
        flags = [*flags, f"--label_file={tmp_path / 'labels'}"]
    words = dict(zip("01", values.split(), strict=True))
    rows = [",".join(words[bit] for bit in row.split(",")) for row in ROWS]
    splits = dict.fromkeys(("train", "dev", "test"), rows)
    task = make(tmp_path, flags, **splits)
    assert "for one label per text" not in caplog.text
    assert task.task_type == "multilabel"
    assert task.labels == (*labels.split(),)
    for split in splits if len(task.labels) == 3 else ():
        assert labels_of(task, split) == named(("toxic", "rude", "insult"))


@pytest.mark.parametrize("names", ["", "x y z"])
def test_columns_without_a_header_have_numbers_or_given_names(tmp_path, names):
    path, label_file = tmp_path / "train.csv", tmp_path / "labels"
    path.write_text("".join(f"text,{row}\n" for row in ROWS))
    label_file.write_text(names.replace(" ", "\n"))
    flags = [*NUMBERS, "--text_column=0", f"--train_file={path}"]
    flags += [f"--label_file={label_file}"] if names else []
    task = make(tmp_path, [*flags, "--dev_share=0"])
    assert task.labels == (*(names or "1 2 3").split(),)
    expected = named(task.labels)
    assert sorted(labels_of(task, "train")) == sorted(expected)


def test_json_objects_may_have_a_key_per_label(tmp_path):
    rows = [{"text": "a", "toxic": 1, "rude": False}, {"text": "b", "rude": 1}]
    path = tmp_path / "train.jsonl"
    write_json_lines(path, rows)
    flags = f"--train_file={path} --dev_share=0 --label_column=toxic,rude"
    with pytest.raises(InputError, match=r"jsonl:2: .* a column 'toxic'"):
        make(tmp_path, flags.split())


CONFLICT = ["--label_column=toxic,text", "--text_column=text"]


@pytest.mark.parametrize(
    ("flags", "train", "others", "message"),
    [
        (["--label_column=toxic,rde"], ROWS, {}, "'rde' .*column.* 'rude'"),
        (["--label_column=rude,rude"], ROWS, {}, "'rude' twice"),
        (CONFLICT, ROWS, {}, "--text_column=text must differ"),
        (COLUMNS, [*ROWS, "0,0.7,1"], {}, "csv:6: .*'rude' must be 1 or 0"),
        (COLUMNS, [*ROWS, "0,,1"], {}, "csv:6: .*'rude' .*: correct the cell"),
        (COLUMNS, ["a,b,c"], {}, "csv:2: .*'toxic' .* a single column"),
        (COLUMNS, ROWS, {"dev": ["-1,-1,-1"]}, "dev.csv:2: .*'toxic'"),
        (COLUMNS, ROWS, {"test": ["2,2,2", "3,3,3"]}, "1 or 0.*: 2, 3"),
        ([*COLUMNS, *CLASSIFICATION], ROWS, {}, "csv:2: .* exactly one"),
        ([*COLUMNS, *REGRESSION], ROWS, {}, "--label_column to one of these"),
        ([], ROWS, {}, "--label_column must .*--label_column=toxic,insult"),
        # Not those of the known labels.
        ([*COLUMNS, "--label_file=other"], ROWS, {}, "toxic, rude, other. .*:"),
    ],
)
def test_wrong_columns_of_labels_are_an_error(
    tmp_path, monkeypatch, flags, train, others, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").write_text("toxic\nrude\nother\n")
    with pytest.raises(InputError, match=message):
        make(tmp_path, flags, train=train, **others).data.read_all(others)


def test_test_data_may_lack_all_labels_but_not_some(tmp_path, caplog):
    other = tmp_path / "other.csv"
    flags = [*COLUMNS, f"--test_file={other}"]
    other.write_text("text\nnew\n")
    [example] = make(tmp_path, flags, train=ROWS).data.read("test")
    assert example.label is None
    other.write_text("text,toxic\nnew,1\n")
    message = r"other\.csv: .* a column 'rude'"
    with pytest.raises(InputError, match=message):
        make(tmp_path, flags, train=ROWS).data.read("test")
    (tmp_path / "labels").write_text("toxic\nrude\ninsult\n")
    later = [*flags, "--nodo_train", "--nodo_eval"]
    later.append(f"--label_file={tmp_path / 'labels'}")
    with pytest.raises(InputError, match=message):
        make(tmp_path, later, train=ROWS).data.read("test")
    # In Kaggle's test_labels.csv, -1 means that a row was not judged.
    other.write_text("text,toxic,rude,insult\nnew,-1,-1,-1\nold,0,1,0\n")
    found = labels_of(make(tmp_path, flags, train=ROWS), "test")
    assert found == [None, ("rude",)]
    assert "1 of 2 rows have no known label" in caplog.text


def test_column_name_may_contain_a_comma(tmp_path):
    path, other = tmp_path / "train.csv", tmp_path / "other.csv"
    path.write_text('text,"toxic, or not"\na,yes\nb,no\n')
    other.write_text("text\nnew\n")
    flags = [f"--train_file={path}", f"--test_file={other}", "--dev_share=0"]
    task = make(tmp_path, [*flags, "--label_column=toxic, or not"])
    assert labels_of(task, "train") == ["yes", "no"]
    assert labels_of(task, "test") == [None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "flags", "dev_file"),
    [
        (ROWS * 4, [*COLUMNS, "--dev_share=0.25"], []),
        (BITS * 4, [], ["--dev_file=vectors.jsonl"]),
    ],
)
@pytest.mark.usefixtures("without_learning")
def test_model_is_evaluated_with_the_same_labels(
    tmp_path, monkeypatch, cells, flags, dev_file
):
    monkeypatch.chdir(tmp_path)
    labels = ["rude", "toxic", "insult"]
    (tmp_path / "labels").write_text("\n".join(labels))
    write(tmp_path, "vectors", BITS)
    flags = ["--label_file=labels", *flags, *dev_file]
    run_classifier.main(options(tmp_path, flags, train=cells))
    output = tmp_path / "out"
    assert read_json(output / "task.json")["labels"] == labels
    results = read_json(output / "eval_results.json")
    (output / "eval_results.json").unlink()
    line = " ".join(["--do_eval", f"--output_dir={output}", *dev_file])
    command_lines.run(run_classifier, line)
    assert read_json(output / "eval_results.json") == results


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["b", 2, "a", True, 10], "10 2 a b true"),
        (["10", "9", "-1"], "-1 9 10"),
        ([["b", 2], [], "b,c", "y, z,", ""], "2 b c y z"),
    ],
)
def test_labels_of_the_training_data_are_sorted(tmp_path, cells, labels):
    rows = [{"text": f"a {n}", "label": c} for n, c in enumerate(cells)]
    write_json_lines(tmp_path / "train.jsonl", rows)
    is_multilabel = isinstance(cells[0], list)
    task_type = "multilabel" if is_multilabel else "classification"
    task = own_tables.make(tmp_path, "jsonl", task_type=task_type)
    assert task.labels == (*labels.split(),)
    found = {example.label for example in task.data.read("train")}
    lists = {("b", "2"), (), ("b", "c"), ("y", "z")}
    assert found == (lists if is_multilabel else {*task.labels})
