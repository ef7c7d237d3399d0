"""The user's own data in one command: settings that --train_file detects."""

import csv
import json
import logging

import numpy as np
import pytest
from support import binary_tables, command_lines, tiny
from support.run_outputs import read_json, read_json_lines

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.io import files
from official_bert.options import RunClassifier
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.tasks import detection


def complete(folder, name, text, *flags):
    """Writes a training file; returns the detected options."""
    (folder / name).write_text(text, encoding="utf-8")
    options = tiny.parse(folder, f"--train_file={folder / name}", *flags)
    found, _ = detection.detect_omitted(options)
    return found


def table(*rows, header="review,stars"):
    return "\n".join([*filter(None, [header]), *rows]) + "\n"


REVIEWS = [f"it is good {i},{i % 2}" for i in range(20)]


def test_train_file_sets_actions_and_defaults(tmp_path):
    (tmp_path / "a.csv").write_text(table(*REVIEWS), encoding="utf-8")
    found, rows = run_classifier.resolve(
        tiny.parse(tmp_path, f"--train_file={tmp_path}/a.csv")
    )
    assert len(rows) == len(REVIEWS)
    actions = (found.do_train, found.do_eval, found.do_predict)
    assert actions == (True, True, False)
    assert (found.task_name, found.task_type) == ("csv", "classification")
    assert (found.text_a_column, found.label_column) == ("review", "stars")
    assert found.pad_to == "bucket"
    assert found.max_seq_length == 8
    assert found.has_header is True
    assert found.adam_bias_correction


@pytest.mark.parametrize(
    ("hidden_size", "rate", "rate_of_pairs"),
    [(16, 1e-3, 1e-3), (128, 7e-4, 3e-4), (768, 5e-5, 5e-5)],
)
def test_default_rate_for_own_data_depends_on_the_model_and_pairs(
    tmp_path, hidden_size, rate, rate_of_pairs
):
    (tmp_path / "a.csv").write_text(table(*REVIEWS), encoding="utf-8")
    config = {**tiny.CONFIG, "hidden_size": hidden_size}
    (tmp_path / "wide.json").write_text(json.dumps(config), encoding="utf-8")

    def rate_with(*flags):
        flags = (
            f"--train_file={tmp_path}/a.csv",
            f"--bert_config_file={tmp_path}/wide.json",
            "--max_seq_length=8",
            *flags,
        )
        return tiny.parse(tmp_path, *flags).resolve().learning_rate

    assert rate_with() == rate_with("--task_name=ner") == rate
    assert rate_with("--text_b_column=stars") == rate_of_pairs
    assert rate_with("--task_type=embedding") == rate_of_pairs
    assert rate_with("--learning_rate=2e-5") == 2e-5


@pytest.mark.parametrize("name", ["a.xlsx", "a.parquet", "a.arrow"])
def test_binary_table_is_read_like_a_csv_file(tmp_path, name):
    path = tmp_path / name
    rows = [(f"it is good {i}", i % 2) for i in range(20)]
    binary_tables.write(path, ("review", "stars"), rows)
    (tmp_path / "a.csv").write_text(table(*REVIEWS), encoding="utf-8")
    (expected, csv_rows), (found, rows) = (
        run_classifier.resolve(tiny.parse(tmp_path, f"--train_file={file}"))
        for file in (tmp_path / "a.csv", path)
    )
    for option in ("task_type", "text_a_column", "label_column", "has_header"):
        assert getattr(found, option) == getattr(expected, option)
    held_out = tasks.get(expected, csv_rows).data.held_out_files()
    assert tasks.get(found, rows).data.held_out_files() == held_out


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


def test_given_flags_override_detected_values(tmp_path):
    flags = [
        *("--text_column=stars", "--label_column=review", "--pad_to=max"),
        *("--task_type=multilabel", "--max_seq_length=32", "--nodo_eval"),
    ]
    found = complete(tmp_path, "a.csv", table(*REVIEWS), *flags)
    assert (found.text_a_column, found.label_column) == ("stars", "review")
    assert (found.task_type, found.pad_to) == ("multilabel", "max")
    assert (found.max_seq_length, found.do_eval) == (32, False)


@pytest.mark.parametrize(
    ("name", "flags", "message"),
    [
        ("a.xls", [], "Save it as .xlsx"),
        ("a.json", [], "one JSON object per line"),
        ("a.json", ["--task_name=ner"], "one JSON object per line"),
        ("a.ann", ["--task_name=ner"], r"Convert it with anntoconll\.py"),
        ("a.txt", [], "--task_name=ner"),
    ],
)
def test_other_formats_are_an_error_with_advice(tmp_path, name, flags, message):
    with pytest.raises(InputError, match=rf"{name} must end in .*{message}"):
        complete(tmp_path, name, "a", *flags)


def test_task_name_is_required_without_train_file(tmp_path):
    with pytest.raises(InputError, match="--task_name=MRPC needs --data_dir"):
        tiny.parse(tmp_path, "--do_train", "--task_name=MRPC")
    with pytest.raises(InputError, match="--train_file or --data_dir is req"):
        tiny.parse(tmp_path, "--do_train")


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


@pytest.mark.parametrize(
    ("header", "row", "columns"),
    [
        ("id,text,label,date", "{i},good cat {i},x,2020", ("text", "label")),
        ("what,mood", "good cat {i},x", ("what", "mood")),
        ("a,b,sure", "good {i},x,1", ("a", "b")),  # The column of weights.
        ("Unnamed: 0.1,a,b", "{i},good cat {i},x", ("a", "b")),
        (",0,1", "{i},good cat {i},x", ("0", "1")),
        ("0.5,good cat {i}", "1.5,bad dog {i}", ("1", "0")),
        # Dates, amounts and ids are not texts.
        ("day,to pay,a,label", "2020-01-0{i},${i},so {i},x", ("a", "label")),
        ("uid,said,label", "u{i},好{i}天,x", ("said", "label")),
    ],
)
def test_columns_are_detected(tmp_path, header, row, columns):
    rows = [row.format(i=i) for i in range(9)]
    text = table(*rows, header=header.format(i="?"))
    flags = ["--weight_column=sure"] * ("sure" in header)
    found = complete(tmp_path, "a.csv", text, *flags)
    assert (found.text_a_column, found.label_column) == columns


LIST = """text,label\ngood {i},"['pos', 'film']"\n"""
COLUMNS = ("--text_column=text", "--label_column=label")
SAME_COLUMN = ("--text_column=text", "--label_column=text")
LABEL_AS_TEXT = (*COLUMNS, "--text_b_column=label")
LABEL_AS_WEIGHT = (*COLUMNS, "--weight_column=label")
TEXT_TWICE = (*COLUMNS, "--text_b_column=text")
PAIR = ["--text_b_column=c"]
GOOD_AND_BAD = ["good", "very good", "bad", "very bad"]
REGRESSION, MULTILABEL = ["--task_type=regression"], ["--task_type=multilabel"]


@pytest.mark.parametrize(
    ("lines", "flags", "message"),
    [
        ("a,b,label\nc {i},d {i},1", [], "--text_column .*--text_b_column"),
        ("up,on,c,label\nd {i},e {i},f,1", PAIR, r"columns: up, on, label\.$"),
        ("text,u,v\ngood {i},1,2", [], "--label_column .* columns: u, v"),
        ("question,A,B,x\ngood {i},c,d,A", [], "--task_name=choices"),
        ("text\ngood {i}", [], "csv: .* a column of labels.* one column"),
        ("uid,said,label\nu{i},so,x", [], "--text_column .*: uid, said, label"),
        ("text|label\ngood {i}|x", [], "one column.* '|' seems to separate"),
        ("# by me\ntext,label\ngood {i},x", [], "csv:2: .* title or a comment"),
        ("My films,\ngood {i},x", [], "csv:1: .* single cell, 'My films'"),
        (",My films\ngood {i},x", [], "csv:1: .* single cell, 'My films'"),
        ("text,label\na {i},$1{i}.5", [], r"csv:2: .* '\$10\.5' .* 9 such"),
        ("text;label\na {i};{i},5", [], "csv: 'label': .*'0,5'.* point"),
        ("text;label\na {i};{i},5", REGRESSION, r"csv:2: .* 1399\.5, without"),
        ("text,label\na {i},1", SAME_COLUMN, "--text_column=text must differ"),
        ("text,label\na {i},1", LABEL_AS_TEXT, "--text_b_column=label must d"),
        ("text,label\na {i},{i}", LABEL_AS_WEIGHT, "--weight_column=label mu"),
        ("text,label\na {i},1", TEXT_TWICE, "--text_b_column=text must differ"),
        ("label,text\na {i},b", COLUMNS, "'label' .* 9 .* 'text' .* swapped"),
        ("text,label\na {i},{i}x", COLUMNS, "'label' of .*--dev_share=0"),
        ("text,label\na {i},[]", [], "csv:2: column 'label' must .* write a,b"),
        (LIST, [], "csv:2: column 'label' must .* write a,b"),
        (LIST, MULTILABEL, "csv:2: column 'label' must .* such as a,b"),
        ('text,label\na {i},"[1, 2]"', MULTILABEL, "csv:2: .* such as a,b"),
    ],
)
def test_ambiguous_tables_are_an_error(tmp_path, lines, flags, message):
    header, row = lines.rsplit("\n", 1)
    text = table(*(row.format(i=i) for i in range(9)), header=header)
    with pytest.raises(InputError, match=message):
        tasks.get(complete(tmp_path, "a.csv", text, *flags))


def lists(separator):
    labels = (f'"x{separator}y"', "x", "y")
    return [f"{text},{label}" for text in "abc" for label in labels]


EMPTY = ["NaN,x", "a,x", ",y", "b,nan", "c,y", "d,nan"]
EMPTY += ["e,NA", "f,n/a", "g,<NA>", r"h,\N", "i,None", "j,none"]
STACK_OVERFLOW = [f"{i},{t}" for t in ("<x><y>", "<x>", "<y>") for i in "abc"]
WORDS = [
    f"{i} {t},{t}" for t in ("x y z", "x", "y z", "z x", "x y") for i in "ab"
]
GOOD = [f"naïve “{i}” b'{i}' 好,{i % 2}" for i in range(8)]
EXCEL = [*GOOD, "#NAME?,1", "#REF!,0", "a,#N/A", "b,#DIV/0!"]
ENCODED = ["trÃ¨s,0", "câ\x80\x99est,1", "tr\ufffds,0", "b'good',1", *GOOD]
SEVERAL = ["a,x", "b,y", 'c,"x,y"', "d,x", "e,y", "f,nan", "g,"]
# Without agreement, the label is - or, at Hugging Face, -1.
SNLI = [f"text {i},{'enc-'[i % 4]}" for i in range(16)]
SNLI_IDS = [f"text {i},{i % 4 - 1}" for i in range(16)]
# Empty texts and labels that differ in case have their own warnings.
AMBIGUOUS = ["a,x", "a,y", "b,x", "b,y", "c,x", "c,X", ",x", ",y"]


@pytest.mark.parametrize(
    ("rows", "flags", "message"),
    [
        (lists(","), [], "Labels such as 'x,y' contain ','"),
        (lists(";"), [], "Labels such as 'x;y' contain ';'"),
        (lists(";"), MULTILABEL, "Labels such as 'x;y' contain ';'"),
        (EMPTY, [], "2 of 12 texts are empty"),
        (
            EMPTY,
            [],
            "7 of 12 labels are empty, or look like missing values (NaN",
        ),
        (EMPTY, [], ": lines 5, 7, 8, 9, 10, 11, 12. Correct or remove"),
        (EXCEL, [], "2 of 12 texts are empty, or look like missing values"),
        (EXCEL, [], "#REF!, -, ? or -1): lines 12, 13. Correct"),
        (SEVERAL, MULTILABEL, "1 of 7 labels are empty, or look like missing"),
        (ENCODED, [], "4 of 12 texts have a wrong encoding (U+FFFD"),
        (ENCODED, [], "for é, or b'...'): lines 2, 3, 4, 5. Correct"),
        (AMBIGUOUS, [], "(number of such texts: 2, such as 'a')"),
        (REVIEWS, [], "(otherwise: --task_type=regression)"),
        (lists("#"), [], "Labels such as 'x#y' contain '#'"),
        (STACK_OVERFLOW, [], "Labels such as '<x><y>' contain '>'"),
        (WORDS, [], "Labels such as 'x y z' contain ' '"),
        (SNLI, [], "4 of 16 labels are empty, or look like missing values"),
        (SNLI_IDS, [], "4 of 16 labels are empty, or look like missing values"),
    ],
)
def test_data_that_make_results_unreliable_are_reported(
    tmp_path, caplog, rows, flags, message
):
    caplog.set_level(logging.INFO, logger="absl")
    text = table(*rows, header="text,label")
    tasks.get(complete(tmp_path, "a.csv", text, "--dev_share=0.5", *flags))
    assert message in caplog.text


@pytest.mark.parametrize(
    "labels",
    [["+", "-"], ["-1", "0", "1"], ["-2", "-1", "0", "1", "2"], GOOD_AND_BAD],
)
def test_usual_labels_are_not_reported(tmp_path, caplog, labels):
    rows = [f"naïve “text” {i},{labels[i % len(labels)]}" for i in range(24)]
    text = table(*rows, header="text,label")
    tasks.get(complete(tmp_path, "a.csv", text, "--task_type=classification"))
    assert not caplog.messages


PRODIGY = [
    {"text": f"it is {i}", "label": "xy"[i % 2], "answer": answer}
    for i, answer in enumerate(["accept", "accept", "reject", "ignore"] * 6)
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_examples_that_were_rejected_in_prodigy_are_left_out(
    tmp_path, caplog, name
):
    text = "".join(json.dumps(row) + "\n" for row in PRODIGY)
    if name == "a.csv":
        lines = [",".join(row.values()) for row in PRODIGY]
        text = table(*lines, header="text,label,answer")
    flag = f"--dev_file={tmp_path / name}"
    task = tasks.get(complete(tmp_path, name, text, *COLUMNS, flag))
    assert "12 of 24 rows are left out" in caplog.text
    for split in ("train", "dev"):
        texts = {example.text_a for example in task.data.read(split)}
        assert texts == {f"it is {i}" for i in range(24) if i % 4 < 2}
    caplog.set_level("INFO", logger="absl")
    task = tasks.get(complete(tmp_path, name, text, "--label_column=answer"))
    assert task.labels == ("accept", "ignore", "reject")
    assert "--text_column=text --label_column=answer (not used: label)" in (
        caplog.text
    )


def test_pairs_that_were_rejected_in_prodigy_are_left_out(tmp_path):
    pairs = ("a,b,accept", "c,d,reject", "e,f,ignore", "g,h,accept")
    text = table(*pairs, header="query,positive,answer")
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    flags = (f"--train_file={tmp_path}/a.csv", "--task_type=embedding")
    _, rows = detection.detect_omitted(tiny.parse(tmp_path, *flags))
    assert [row.cells["query"] for row in rows] == ["a", "g"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["good", "bad"], "classification"),
        (["1", "5", "3"] * 9, "classification"),
        ([True, False], "classification"),
        (["1.0", "0.0", ""] * 9, "classification"),
        ([f"{n}_{n}" for n in range(1000)], "classification"),
        (["1.5", "2"], "regression"),
        ([0.25, 1], "regression"),
        (list(range(1000)), "regression"),
        ([["a"], []], "multilabel"),
    ],
)
def test_task_type_follows_from_the_labels(labels, expected):
    assert detection.infer_task_type(labels) == expected


def test_listed_integers_are_classes(tmp_path):
    (tmp_path / "labels").write_text("\n".join(map(str, range(20))))
    rows = [f"it is good {i},{i}" for i in range(20)]
    found = complete(
        tmp_path, "a.csv", table(*rows), f"--label_file={tmp_path}/labels"
    )
    assert found.task_type == "classification"


def test_evaluating_on_the_training_file_is_a_warning(tmp_path, caplog):
    path = tmp_path / "a.csv"
    path.write_text(table(*REVIEWS))
    fingerprints = {"training data": [files.fingerprint(str(path))]}
    (tmp_path / "out").mkdir()
    record = json.dumps({"fingerprints": fingerprints})
    (tmp_path / "out" / "train_options.json").write_text(record)
    flags = (f"--train_file={path}", f"--dev_file={path}", "--nodo_train")
    options = tiny.parse(tmp_path, *flags, "--do_eval")
    options, _ = detection.detect_omitted(options)
    label_file = tmp_path / "labels.txt"
    label_file.write_text("0\n1\n")
    options = options.replace(label_file=str(label_file))
    tasks.get(options).data.read("dev")
    assert f"{path} is the training data" in caplog.text


def test_ids_as_labels_give_a_warning(tmp_path, caplog):
    for step, is_warned in ((1.5, False), (2, True)):
        rows = [f"it is {i},{i * step}" for i in range(300)]
        text = table(*rows, header="text,label")
        found = complete(tmp_path, "a.csv", text)
        assert found.task_type == "regression"
        assert ("like an id" in caplog.text) == is_warned


@pytest.mark.parametrize("split", ["dev", "test"])
def test_labelled_texts_of_training_data_are_a_warning(tmp_path, caplog, split):
    rows = [f"it is {i},{i % 2}" for i in range(8)]
    other = tmp_path / "other.csv"
    other.write_text("text,label\nnew,1\nit is 3,0\nit is 5,1\n")
    text = table(*rows, header="text,label")
    flag = f"--{split}_file={other}"
    task = tasks.get(complete(tmp_path, "a.csv", text, flag))
    task.data.read(split)
    assert "other.csv: 2 of 3 texts are also in the training" in caplog.text
    assert "overestimate the model: lines 3, 4. Remove" in caplog.text


def test_held_out_examples_of_a_finetuned_model_are_a_warning(tmp_path, caplog):
    checkpoint = tmp_path / "earlier" / "model.ckpt-1"
    checkpoint.parent.mkdir()
    tf1.write(str(checkpoint), {"a": np.zeros(1, np.float32)})
    flag = f"--init_checkpoint={checkpoint}"
    # The first is as in a KerasHub preset.
    for text, is_finetuned in (("{}", False), ('{"kind": "text"}', True)):
        (checkpoint.parent / "task.json").write_text(text)
        tasks.get(complete(tmp_path, "a.csv", table(*REVIEWS), flag))
        assert ("was fine-tuned. " in caplog.text) == is_finetuned


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--dev_share=0 --eval_every=5", "--dev_share=0.0 .*--dev_file"),
        ("--nodo_train --do_eval", "--dev_file .*out/dev.jsonl"),
        ("--dev_share=0 --sweep=seed=1..2", "--dev_share=0.0 .*--dev_file"),
        ("--output_dir=.", "--output_dir=. has a file dev.jsonl"),
        ("--output_dir=jsonl", "--output_dir=jsonl has a file dev.jsonl"),
    ],
)
def test_evaluation_without_its_own_examples_is_an_error(
    tmp_path, monkeypatch, line, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(table(*REVIEWS))
    (tmp_path / "jsonl").mkdir()
    for folder in (tmp_path, tmp_path / "jsonl"):
        (folder / "dev.jsonl").write_text("{}\n")
    record = '{"options": {"task_name": "jsonl", "dev_share": 0.1}}'
    (tmp_path / "jsonl" / "train_options.json").write_text(record)
    with pytest.raises(InputError, match=message):
        tiny.parse(tmp_path, "--train_file=a.csv", *line.split())


@pytest.mark.trains
@pytest.mark.slow
def test_two_commands_train_and_predict(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["good", "bad"] * 79
    rows = [f'1,"{w} cat,\nsun ""{i}""",{w}' for i, w in enumerate(words)]
    rows += ["x,?,good", "y,!,bad"]
    (tmp_path / "a.csv").write_text(table(*rows, header="id,text,mood"))
    flags = ("--learning_rate=2e-3", "--num_train_epochs=10")
    run_classifier.main(tiny.parse(tmp_path, "--train_file=a.csv", *flags))
    output = tmp_path / "out"
    results = read_json(output / "eval_results.json")
    assert results["accuracy"] > 0.9
    shown = capsys.readouterr().out
    assert "accuracy" in shown
    assert "0.5000" in shown
    assert "predict.py --model_dir=" in shown
    assert "dev.jsonl" in shown
    held_out = read_json_lines(output / "dev.jsonl")
    assert len(held_out) == 16
    texts = [row["text"] for row in held_out]
    long = {f'{w} cat,\nsun "{i}"' for i, w in enumerate(words)}
    assert set(texts) < {"?", "!"} | long
    assert sum(row["mood"] == "good" for row in held_out) == 8
    assert all(row["id"] in ("1", "x", "y") for row in held_out)
    with open(output / "dev_errors.csv", newline="") as file:
        wrong = [row["text"] for row in csv.DictReader(file)]
    answers = Predictor.from_dir(str(output))(texts)
    moods = [row["mood"] for row in held_out]
    assert {*wrong} == {
        text
        for text, answer, mood in zip(texts, answers, moods, strict=True)
        if answer["label"] != mood
    }
    # Without training, the held-out rows are read from the output directory.
    (tmp_path / "a.csv").unlink()
    line = f"--do_eval --output_dir={output}"
    command_lines.run(run_classifier, line)
    found = read_json(output / "eval_results.json")
    assert found["accuracy"] == results["accuracy"]
    # The results of another file do not replace those of held-out rows.
    (tmp_path / "new.csv").write_text("id,text,mood\n1,good cat,bad\n")
    line = f"--do_eval --dev_file=new.csv --output_dir={output}"
    command_lines.run(run_classifier, line)
    assert read_json(output / "eval_results_new.json")["accuracy"] == 0.0
    assert read_json(output / "eval_results.json") == found
    line = f"--test_file=new.csv --output_dir={output}"
    (tmp_path / "new.csv").write_text("id,text,mood\n1,good cat,\n")
    command_lines.run(run_classifier, line)
    assert len((output / "test_results_new.tsv").read_text().splitlines()) == 1
    predicted = (output / "test_new_predictions.tsv").read_text().splitlines()
    assert len(predicted) == 2  # With the header.
    assert not (output / "test_results.tsv").exists()
    with pytest.raises(InputError, match="typo must contain a fine-tuned mod"):
        command_lines.parse(RunClassifier, "--do_eval --output_dir=typo")


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_without_evaluation_all_examples_are_used(tmp_path, capsys, caplog):
    path = tmp_path / "a.csv"
    path.write_text(table(*REVIEWS))
    flags = (f"--train_file={path}", "--dev_share=0", "--num_train_epochs=2")
    run_classifier.main(tiny.parse(tmp_path, *flags))
    assert "training steps is only 1. Add examples" in caplog.text
    assert "No pre-trained weights are given" in caplog.text
    shown = capsys.readouterr().out
    assert "--input_file=new.csv" in shown
    assert "dev.jsonl" not in shown
