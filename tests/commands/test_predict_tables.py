"""predict.py: tables, and the columns of a tagger's files."""

import csv
import json
import os

import numpy as np
import pytest
from support import binary_tables, tiny, write_json_lines
from support.predictions import assert_equal_answers, check, predictor_of

from official_bert.commands import predict
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import Predict
from official_bert.tasks.choice import ChoiceColumns, ChoiceTask
from official_bert.tasks.tagging import TaggingTask

TABLES = {
    "a.csv": 'id,review,2020\n1,"good, ""red"" cat",5\n2,bad dog,1\n',
    "a.tsv": 'id\treview\tstars\n1\tgood, "red" cat\t5\n2\tbad dog\t1\n',
    "a.jsonl": '{"id": 1, "review": "good, \\"red\\" cat"}\n'
    '{"review": "bad dog", "stars": 1}\n',
}


COLUMN_NAMES = ("id", "review", "2020")


@pytest.mark.parametrize("name", TABLES)
def test_own_tables_are_read_with_the_columns_of_training(name, own_model, ask):
    model_dir = own_model("review")
    found = ask(TABLES[name].encode(), name, model_dir=model_dir)
    for answer in found:
        answer["input"] = answer["input"]["review"]
    check(found, ['good, "red" cat', "bad dog"], model_dir)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.xlsx", "a.parquet", "a.arrow"])
def test_binary_tables_are_read_with_the_columns_of_training(
    name, own_model, folder, capsys
):
    model_dir = own_model("review")
    rows = [(1, "good cat"), (2, "bad\ndog")]
    binary_tables.write(folder / name, ("id", "review"), rows)
    flags = {"model_dir": model_dir, "input_file": name}
    predict.main(Predict(**flags))
    found = [json.loads(x) for x in capsys.readouterr().out.splitlines()]
    for number, answer in enumerate(found, start=1):
        assert str(answer["input"].pop("id")) == str(number)
        answer["input"] = answer["input"]["review"]
    check(found, ["good cat", "bad\ndog"], model_dir)
    predict.main(Predict(**flags, output_file="b.csv"))
    assert [row["review"] for row in read_table("b.csv")] == [
        r for _, r in rows
    ]


def read_table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PROBABILITIES = ["probability_no", "probability_yes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task_type", "added"),
    [
        ("classification", ["predicted_label", *PROBABILITIES]),
        ("multilabel", ["predicted_labels", *PROBABILITIES]),
        ("regression", ["predicted_score"]),
    ],
)
def test_csv_output_adds_predictions(own_model, folder, task_type, added):
    model_dir = own_model("review", task_type=task_type)
    (folder / "a.csv").write_text(TABLES["a.csv"])
    flags = {"model_dir": model_dir, "chunk_size": 1}
    predict.main(Predict(input_file="a.csv", output_file="b.csv", **flags))
    rows, table = read_table("b.csv"), read_table("a.csv")
    assert [list(row) for row in rows] == [[*COLUMN_NAMES, *added]] * 2
    assert [{name: row[name] for name in COLUMN_NAMES} for row in rows] == table
    answers = predictor_of(model_dir)([row["review"] for row in table])
    for row, answer in zip(rows, answers, strict=True):
        if task_type == "regression":
            expected = pytest.approx(answer["score"])
            assert float(row["predicted_score"]) == expected
            continue
        probabilities = [float(row[name]) for name in PROBABILITIES]
        expected = [answer["probabilities"][name] for name in ("no", "yes")]
        assert probabilities == pytest.approx(expected, abs=1e-6)
        if task_type == "classification":
            assert row["predicted_label"] == answer["label"]
    again = Predict(input_file="b.csv", output_file="c.csv", **flags)
    message = f"already has the columns .*{added[0]}"
    with pytest.raises(InputError, match=message):
        predict.main(again)
    assert not os.path.exists("c.csv")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task_type", "threshold"),
    [("classification", ""), ("classification", "no=0.45"), ("multilabel", "")],
)
def test_output_is_sorted_by_the_distance_to_the_nearest_threshold(
    own_model, folder, task_type, threshold
):
    model_dir = own_model("review", task_type=task_type)
    texts = tiny.texts(12, 3, 8)
    write_json_lines(folder / "a.jsonl", [{"review": text} for text in texts])
    flags = {"model_dir": model_dir, "chunk_size": 5, "threshold": threshold}
    files = {"input_file": "a.jsonl", "output_file": "b.csv"}
    predict.main(Predict(**flags, **files, sort_by="uncertainty"))
    rows = read_table("b.csv")
    assert sorted(row["review"] for row in rows) == sorted(texts)
    scores = [[float(row[name]) for name in PROBABILITIES] for row in rows]
    limits = [0.45, 0.55] if threshold else [0.5, 0.5]
    distances = np.abs(np.subtract(scores, limits)).min(axis=1)
    assert len(np.unique(distances.round(4))) > 6
    assert (np.diff(distances) >= -2e-6).all()
    if threshold:
        labels = ["no" if no >= 0.45 else "yes" for no, _ in scores]
        assert [row["predicted_label"] for row in rows] == labels


@pytest.mark.parametrize(
    ("task_type", "threshold", "message"),
    [
        ("classification", "0.3", "=0.3 must name labels .* no, yes"),
        ("classification", "no=0.3,yes=0.3", "must name labels .* of the two"),
        ("classification", "maybe=0.3", "must name labels .* no, yes"),
        ("multilabel", "maybe=0.3", "must name labels .* no, yes"),
        ("regression", "0.3", "is not supported by a model for regression"),
    ],
)
def test_threshold_of_other_labels_is_an_error(
    own_model, folder, task_type, threshold, message
):
    model_dir = own_model("review", task_type=task_type)
    (folder / "a.csv").write_text(TABLES["a.csv"])
    options = Predict(
        model_dir=model_dir, input_file="a.csv", threshold=threshold
    )
    with pytest.raises(InputError, match=message):
        predict.main(options)


OBJECTS = [
    {"review": "good cat", "year": 2020, "tags": ["a", None], "old": True},
    {"old": None, "review": 'a "red" dog'},
]


def test_csv_output_of_json_lines_has_the_keys_of_the_first_object(
    own_model, folder
):
    model_dir = own_model("review", task_type="regression")
    path = folder / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, OBJECTS)))
    flags = {"model_dir": model_dir, "chunk_size": 1}
    files = {"input_file": "a.jsonl", "output_file": "b.csv"}
    predict.main(Predict(**flags, **files))
    first, second = read_table("b.csv")
    assert list(first) == [*OBJECTS[0], "predicted_score"]
    expected = ["good cat", "2020", '["a", null]', "true"]
    assert [*first.values()][:4] == expected
    assert [*second.values()][:4] == ['a "red" dog', "", "", ""]
    for line, message in [
        ('{"review": "x", "new": 1}', "must have all keys.* one: new"),
        ('"x"', r"a\.jsonl:3: must be an object"),
    ]:
        path.write_text("\n".join([*map(json.dumps, OBJECTS), line]))
        with pytest.raises(InputError, match=message):
            predict.main(Predict(**flags, **files))


def test_csv_output_has_separator_and_mark_of_input(own_model, folder, caplog):
    model_dir = own_model("review", task_type="regression")
    rows = ["1;good, red", "2;bäd", "3; ", "4;"]
    (folder / "a.csv").write_text("\n".join(["\ufeffid;review", *rows]))
    files = {"input_file": "a.csv", "output_file": "b.csv"}
    predict.main(Predict(model_dir=model_dir, chunk_size=1, **files))
    header, *lines = (folder / "b.csv").read_text().splitlines()
    assert header == "\ufeffid;review;predicted_score"
    assert [line.rpartition(";")[0] for line in lines] == rows
    assert "Empty texts: a.csv:4, a.csv:5. Their" in caplog.text
    (folder / "a.jsonl").write_text('{"review": " "}\n')
    predict.main(Predict(model_dir=model_dir, input_file="a.jsonl"))
    assert "Empty texts: a.jsonl:1. Their" in caplog.text


def test_column_flag_must_name_a_key_of_each_object(tuned, ask):
    data = b'{"text": "cat", "review": "bad"}\n'
    with pytest.raises(InputError, match=r"'reviews' \(--text_column\)"):
        ask(data, "a.jsonl", model_dir=tuned, text_a_column="reviews")
    [found] = ask(data, "a.jsonl", model_dir=tuned, text_a_column="review")
    found["input"] = "bad"
    check([found], ["bad"], tuned)


@pytest.mark.slow
def test_column_flags_override_those_of_training(tuned, own_model, ask):
    table = b"7\tgood cat\tit is rain\t1\n", "a.tsv"
    columns = {"text_a_column": "1", "text_b_column": "2"}
    [found] = ask(*table, model_dir=tuned, has_header=False, **columns)
    cells = {"0": "7", "1": "good cat", "2": "it is rain", "3": "1"}
    assert found["input"] == cells
    found["input"] = ["good cat", "it is rain"]
    check([found], [["good cat", "it is rain"]], tuned)
    own = own_model("3")
    [found] = ask(*table, model_dir=own, has_header=False)
    found["input"] = "1"
    check([found], ["1"], own)
    # Without --has_header, tables have a header if they had one in training.
    own = own_model("0", has_header=False)
    [found] = ask(*table, model_dir=own, text_a_column="1")
    assert found["input"] == cells


CHOICES = "question,A,B,C\nis it ?,cat,dog,sun\nis it red ?,sun,rain,\n"


@pytest.mark.slow
@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_tables_of_choices_are_read_with_the_columns_of_training(
    has_header, is_recorded, folder, ask
):
    names = ("A,B,C", "question") if has_header else ("1,2,3", "0")
    required = (names[1], *names[0].split(",")) if is_recorded else ()
    columns = ChoiceColumns("context", *names, has_header, required)
    task = ChoiceTask(num_choices=3, columns=columns)
    model_dir = tiny.save_finetuned(folder / "own", task)
    lines = CHOICES if has_header else CHOICES.partition("\n")[2]
    found = ask(lines.encode(), "a.csv", model_dir=model_dir)
    expected = Predictor.from_dir(model_dir)(
        [
            {"question": "is it ?", "choices": ["cat", "dog", "sun"]},
            {"question": "is it red ?", "choices": ["sun", "rain"]},
        ]
    )
    for answer in found:
        del answer["input"]
    assert_equal_answers(found, expected, atol=1e-6)
    flags = {"model_dir": model_dir, "input_file": "a.csv"}
    predict.main(Predict(**flags, output_file="b.csv"))
    if not has_header:
        return
    for name in required:
        other = lines.replace(name, "other", 1).encode()
        with pytest.raises(InputError, match=f"must have a column '{name}'"):
            ask(other, "other.csv", model_dir=model_dir)
    added = ["predicted_choice", "predicted_text", "probability"]
    for row, answer in zip(read_table("b.csv"), expected, strict=True):
        assert list(row) == ["question", "A", "B", "C", *added]
        assert row["predicted_text"] == answer["text"]
        assert row["predicted_choice"] == str(answer["choice"])
        best = pytest.approx(max(answer["probabilities"]), abs=1e-6)
        assert float(row["probability"]) == best
    message = "--text_column=A is not supported by a model"
    with pytest.raises(InputError, match=message):
        Predict(**flags, text_a_column="A").resolve()


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """The run directory of a tagger that was trained on words in column 1."""
    task = TaggingTask(labels=("N", "V"), token_column=1, document_context=True)
    return tiny.save_finetuned(tmp_path_factory.mktemp("tagger") / "out", task)


# The last tag is unknown to the model.
COLUMNS = b"1\tgood\tN\n2\tcat?\tV\n\n1\train\tNEW\n"
SENTENCES = [
    {"tokens": ["good", "cat?"], "after": ["rain"]},
    {"tokens": ["rain"], "before": ["good", "cat?"]},
]


ROWS = ["1\tgood\tN", "2\tcat?\tV", "1\train\tNEW"]
TABLES_OF_WORDS = {
    "numbers.csv": "sentence_id,word,tag\n1,good,N\n1,cat,N\n2,rain,V\n",
    "numbers.tsv": "Sentence #\tWord\n1\tgood\n\tcat\n2\train\n",
    "blank_lines.tsv": "word\tner\ngood\tN\ncat\tN\n\nrain\tV\n",
    "texts.tsv": "id\ttext\n1\tgood cat\n2\train\n",
    "texts.csv": "sentence_id,text,label\n1,good cat,N\n2,rain,\n",
    "chinese.csv": "sentence_id,word\n1,北京\n1,好\n2,上海\n",
    "review.csv": "id,review\n1,good cat\n2,rain\n",
    "tsv.txt": "sentence_id\tword\n1\tgood\n1\tcat\n2\train\n",
}
FLAGS_OF_TABLES = {
    "review.csv": {"text_a_column": "review"},
    "tsv.txt": {"input_format": "tsv"},
}


@pytest.mark.parametrize("name", TABLES_OF_WORDS)
def test_tagger_reads_tables_of_words_or_texts(tagger, ask, name, caplog):
    caplog.set_level("INFO", logger="absl")
    flags = FLAGS_OF_TABLES.get(name, {})
    table = TABLES_OF_WORDS[name].encode()
    found = ask(table, name, model_dir=tagger, **flags)
    words = [["good", "cat"], ["rain"]]
    if name == "chinese.csv":
        words = [["北京", "好"], ["上海"]]
    assert [answer["tokens"] for answer in found] == words
    is_text = "text" in name or "review" in name
    items = [*map(" ".join, words)] if is_text else words
    assert [answer.pop("input") for answer in found] == items
    assert_equal_answers(found, predictor_of(tagger)(items))
    [message] = [m for m in caplog.messages if "--text_column=" in m]
    assert "--label_column" not in message


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("a.csv", "word\ngood\ncat\n", "sentence_id; .* 2 words in 1 sent"),
        ("a.csv", "review\ngood cat\n", r"'good cat'}\. Set --text_column and"),
        (
            "a.jsonl",
            '{"sent_id": 1, "word": "cat"}',
            "l:1: .* word 'cat'.* .csv",
        ),
    ],
)
def test_table_without_sentences_is_an_error(tagger, ask, name, table, message):
    with pytest.raises(InputError, match=message):
        ask(table.encode(), name, model_dir=tagger)


@pytest.mark.parametrize(
    ("name", "options", "items"),
    [
        ("a.txt", {}, SENTENCES),
        ("a.tsv", {"chunk_size": 1}, SENTENCES),
        ("a.conll", {}, SENTENCES),
        ("a.csv", {"input_format": "conll"}, SENTENCES),
        ("a.txt", {"input_format": "lines"}, ROWS),
    ],
)
def test_tagger_reads_columns_as_in_training(tagger, ask, name, options, items):
    found = ask(COLUMNS, name, model_dir=tagger, **options)
    words = [i if isinstance(i, str) else i["tokens"] for i in items]
    assert [answer.pop("input") for answer in found] == words
    expected = json.loads(json.dumps(predictor_of(tagger)(items)))
    assert_equal_answers(found, expected, atol=1e-6)
