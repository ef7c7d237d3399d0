"""The user's own data in one command: settings that --train_file detects."""

import csv
import json

import pytest
from support import binary_tables, command_lines, tiny
from support.own_tables import REVIEWS, complete, table
from support.run_outputs import read_json, read_json_lines

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import RunClassifier
from official_bert.tasks import detection


def test_train_file_sets_actions_and_defaults(tmp_path):
    (tmp_path / "a.csv").write_text(table(*REVIEWS), encoding="utf-8")
    found, rows = run_classifier.complete_options(
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
        files = (f"--train_file={tmp_path}/a.csv", "--max_seq_length=8")
        config_file = f"--bert_config_file={tmp_path}/wide.json"
        options = tiny.parse(tmp_path, *files, config_file, *flags)
        return options.resolve().learning_rate

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
        run_classifier.complete_options(
            tiny.parse(tmp_path, f"--train_file={file}")
        )
        for file in (tmp_path / "a.csv", path)
    )
    for option in ("task_type", "text_a_column", "label_column", "has_header"):
        assert getattr(found, option) == getattr(expected, option)
    held_out = tasks.get(expected, csv_rows).data.held_out
    examples = tasks.get(found, rows).data.held_out
    assert [e[1:] for e in examples] == [e[1:] for e in held_out]


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
TENSOR = 'text,label\ngood {i},"tensor([1, 0, 1])"\n'
COLUMNS = ("--text_column=text", "--label_column=label")
SAME_COLUMN = ("--text_column=text", "--label_column=text")
LABEL_AS_TEXT = (*COLUMNS, "--text_b_column=label")
LABEL_AS_WEIGHT = (*COLUMNS, "--weight_column=label")
TEXT_TWICE = (*COLUMNS, "--text_b_column=text")
PAIR = ["--text_b_column=c"]
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
        ("text,label\na {i},$1{i}.5", [], r"csv:2: .* '\$10\.5'\. 9 of 9 rows"),
        ("text;label\na {i};{i},5", [], "csv: 'label': .*'0,5'.* point"),
        ("text;label\na {i};{i},5", REGRESSION, r"csv:2: .* 1399\.5, without"),
        ("text,label\na {i},1", SAME_COLUMN, "--text_column=text must differ"),
        ("text,label\na {i},1", LABEL_AS_TEXT, "--text_b_column=label must d"),
        ("text,label\na {i},{i}", LABEL_AS_WEIGHT, "--weight_column=label mu"),
        ("text,label\na {i},1", TEXT_TWICE, "--text_b_column=text must differ"),
        ("label,text\na {i},b", COLUMNS, "'label' .* 9 .* 'text' .* swapped"),
        ("text,label\na {i},{i}x", COLUMNS, "'label' of .*--dev_share=0"),
        ("text,label\na {i},[]", [], "csv:2: column 'label' must .* write a,b"),
        ('text,label\na {i},"1,0{i},1"', [], "csv: 'label': .*'1,00,1'.* sev"),
        (LIST, [], "csv:2: column 'label' must .* write a,b"),
        (TENSOR, [], "csv:2: column 'label' must .* write a,b"),
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


STACK_OVERFLOW = [f"{i},{t}" for t in ("<x><y>", "<x>", "<y>") for i in "abc"]
WORDS = [
    f"{i} {t},{t}" for t in ("x y z", "x", "y z", "z x", "x y") for i in "ab"
]


@pytest.mark.parametrize(
    ("rows", "flags", "message"),
    [
        (lists(","), [], "Labels such as 'x,y' contain ','"),
        (lists(";"), [], "Labels such as 'x;y' contain ';'"),
        (lists(";"), MULTILABEL, "Labels such as 'x;y' contain ';'"),
        (lists("#"), [], "Labels such as 'x#y' contain '#'"),
        (lists("、"), [], "Labels such as 'x、y' contain '、'"),
        (STACK_OVERFLOW, [], "Labels such as '<x><y>' contain '>'"),
        (WORDS, [], "Labels such as 'x y z' contain ' '"),
        (REVIEWS, [], "(otherwise: --task_type=regression)"),
    ],
)
def test_labels_that_may_be_lists_or_numbers_are_reported(
    tmp_path, caplog, rows, flags, message
):
    caplog.set_level("INFO", logger="absl")
    complete(tmp_path, "a.csv", table(*rows, header="text,label"), *flags)
    assert message in caplog.text


def test_lists_of_at_most_one_label_are_reported(tmp_path, caplog):
    labels = (["a"], ["b"], ["a"], [])
    rows = [{"text": f"it is {i}", "label": labels[i % 4]} for i in range(12)]
    text = "\n".join(map(json.dumps, rows))
    options = complete(tmp_path, "a.jsonl", text)
    assert options.task_type == "multilabel"
    assert "3 of 12 texts have no label in column 'label'" in caplog.text


@pytest.mark.parametrize("flags", [[], MULTILABEL])
def test_spaces_around_labels_give_no_warning(tmp_path, caplog, flags):
    labels = ("good", " good", "bad", "bad ")
    rows = [f"it is {i},{labels[i % 4]}" for i in range(12)]
    complete(tmp_path, "a.csv", table(*rows, header="text,label"), *flags)
    assert not caplog.records


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
    text = table(*(f"it is good {i},{i}" for i in range(20)))
    flag = f"--label_file={tmp_path}/labels"
    assert complete(tmp_path, "a.csv", text, flag).task_type == "classification"


def test_ids_as_labels_give_a_warning(tmp_path, caplog):
    for step, is_warned in ((1.5, False), (2, True)):
        rows = [f"it is {i},{i * step}" for i in range(300)]
        text = table(*rows, header="text,label")
        found = complete(tmp_path, "a.csv", text)
        assert found.task_type == "regression"
        assert ("like an id" in caplog.text) == is_warned


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
