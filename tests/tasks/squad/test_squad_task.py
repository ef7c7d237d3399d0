import json

import numpy as np
import pytest
from support import binary_tables

from official_bert.errors import InputError
from official_bert.io import files
from official_bert.options import Predict, RunSquad
from official_bert.tasks.squad.decoding import DecodingOptions, SquadAnswer
from official_bert.tasks.squad.task import SquadData, SquadTask
from official_bert.tasks.task import TransformersModel

LABELED = ("a b", (7, "q", "a", 0), ("8", "q", None, 0))


def data(predict_file):
    return SquadData(RunSquad(predict_file=str(predict_file)))


def test_questions_with_numeric_ids_are_scored(write_squad):
    task = SquadTask(data=data(write_squad(LABELED)))
    answers = [SquadAnswer(text, [], 0.0) for text in ("a", "")]
    results = task.metrics(task.data.read("dev"), answers)
    assert results["exact_match"] == results["best_f1"] == 100.0
    assert results["missing"] == []


@pytest.mark.parametrize("version_2", [False, True])
def test_baseline_of_version_2_is_no_answer(write_squad, version_2):
    decoding = DecodingOptions(version_2_with_negative=version_2)
    questions = ("x y", (7, "q", "x", 0), ("8", "q", None, 0))
    task = SquadTask(data=data(write_squad(questions)), decoding=decoding)
    found = task.baseline([], task.data.read("dev"))
    assert (found.get("HasAns_f1"), found.get("NoAns_f1")) == (
        (0.0, 100.0) if version_2 else (None, None)
    )
    assert task.baseline_name == "always no answer"


@pytest.mark.parametrize(
    "answers", [None, {"text": ["a"]}, ["a"], [{"answer_start": 0}]]
)
def test_files_without_answers_can_only_be_predicted(write_squad, answers):
    file = write_squad(LABELED, answers=answers, is_impossible=None)
    task = SquadTask(data=data(file))
    with pytest.raises(InputError, match=r"json: question '7' .*`answers`"):
        task.data.read("dev")
    examples = task.data.read("test")
    assert [example.qas_id for example in examples] == ["7", "8"]
    assert task.metrics(examples, [SquadAnswer("a", [], None)] * 2) == {}


def test_questions_are_pairs_or_objects_of_strings():
    task = SquadTask()
    texts = np.array(["q", "a b"])  # Of a type derived from `str`.
    keys = ("question", "context")
    for value in (list(texts), dict(zip(keys, texts, strict=True))):
        example = task.parse(value, "item 1")
        assert (example.question_text, example.paragraph.text) == ("q", "a b")


def test_shown_answers_are_cut_from_the_context(make_tokenizer):
    task = SquadTask(max_query_length=4, num_shown=3)
    example = task.parse(["q", "b (A\n  b) b"], "item 1")
    tokenizer = make_tokenizer("abq()")
    [features] = task.featurize([example], tokenizer, 16)
    logits = np.zeros((16, 2))
    logits[5, 0] = logits[6, 1] = 9.0  # [CLS] q [SEP] b ( a b ) b
    [answer] = task.answers(features, [logits])
    found = task.answer_to_json(example, answer)
    assert (found["answer"], found["start"], found["end"]) == ("A\n  b", 3, 8)
    # `predictions.json` has the original's single space.
    assert (answer.text, answer.n_best[0]["text"]) == ("A b", "A b")
    assert found["probability"] == found["n_best"][0]["probability"] > 0.9
    best = [(c["text"], c["start"], c["end"]) for c in found["n_best"]]
    assert best == [("A\n  b", 3, 8), ("A", 3, 4), ("A\n  b)", 3, 9)]


def test_padding_is_no_answer_of_a_model_of_transformers(make_tokenizer):
    task = SquadTask.of_transformers(TransformersModel("model", (), None, 64))
    example = task.parse(["a", "b"], "")
    [features] = task.featurize([example], make_tokenizer("ab"), 64)
    logits = np.zeros((64, 2), np.float32)
    logits[5:] = 9.0  # [CLS] a [SEP] b [SEP], then padding.
    [answer] = task.answers(features, [logits])
    assert answer.text == "b"


def test_position_is_that_of_the_predicted_tokens(make_tokenizer):
    """Also if the text occurs earlier in the same word."""
    task = SquadTask(max_query_length=4)
    example = task.parse(["q", "北京a北京b北京"], "item 1")
    [features] = task.featurize([example], make_tokenizer("abq北京"), 16)
    logits = np.zeros((16, 2))
    logits[6, 0] = logits[7, 1] = 9.0
    [answer] = task.answers(features, [logits])
    found = task.answer_to_json(example, answer)
    assert (found["answer"], found["start"], found["end"]) == ("北京", 3, 5)


@pytest.mark.parametrize("version_2", [False, True])
def test_prediction_files_replace_those_of_an_earlier_run(
    read, make_tokenizer, tmp_path, version_2
):
    decoding = DecodingOptions(version_2_with_negative=version_2)
    task = SquadTask(max_query_length=4, decoding=decoding)
    # The first question has no window.
    questions = (" \n", ("1", "q", None, 0)), ("a b", ("2", "q", None, 0))
    examples = read(*questions, is_training=False)
    tokenizer = make_tokenizer("abq")
    [features] = task.featurize(examples, tokenizer, 16)
    answers = task.answers(features, [np.zeros((16, 2))])
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "null_odds.json").write_text("{}")
    texts = task.prediction_files("test", examples, answers)
    files.write_texts(str(folder), texts)
    names = ["predictions.json", "nbest_predictions.json", "null_odds.json"]
    columns = zip(names, [*zip(*answers, strict=True)][:3], strict=True)
    assert {p.name: json.loads(p.read_text()) for p in folder.iterdir()} == {
        name: dict(zip("12", column, strict=True))
        for name, column in columns
        if version_2 or name != "null_odds.json"
    }


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.xlsx", "a.parquet"])
def test_questions_may_be_rows_of_a_table(tmp_path, name):
    path, names, row = tmp_path / name, ("question", "context"), ("q", "a b")
    if name in ("a.csv", "a.tsv"):
        lines = map(("," if name == "a.csv" else "\t").join, (names, row))
        path.write_text("\n".join(lines))
    else:
        binary_tables.write(path, names, [row])
    [found] = SquadTask().read_inputs(Predict(input_file=str(path)))
    assert found.value == found.shown == dict(zip(names, row, strict=True))


def test_lines_of_tsv_are_pairs_without_a_header(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("q\ta b\n")
    assert SquadTask().read_inputs(Predict(input_file=str(path))) is None
