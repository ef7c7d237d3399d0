"""The task: which files can be evaluated, and answers without a window."""

import json
import pathlib

import numpy as np
import pytest
from support import tiny

from official_bert.errors import InputError
from official_bert.options import RunSquad
from official_bert.tasks.squad.squad_decoding import DecodingOptions
from official_bert.tasks.squad.squad_task import SquadAnswer, SquadTask, make
from official_bert.tasks.task import Outputs

KNOWN = ("a b", (7, "q", "a", 0), ("8", "q", None, 0))


def without_answers(path, *kept, answers=None):
    """Takes the answers of questions away, or puts others in their place."""
    path = pathlib.Path(path)
    content = json.loads(path.read_text())
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                if question["id"] not in kept:
                    del question["answers"]
                    if answers is not None:
                        question["answers"] = answers
    path.write_text(json.dumps(content))
    return str(path)


def test_numbered_questions_are_scored(write_squad):
    task = SquadTask(predict_file=write_squad(KNOWN))
    examples = task.examples("dev")
    answers = [SquadAnswer(text, [], 0.0) for text in ("a", "")]
    results = task.metrics(examples, answers)
    assert results["exact_match"] == results["best_f1"] == 100.0
    assert results["missing"] == []


@pytest.mark.parametrize(
    ("kept", "answers", "place"),
    [
        ((), None, r"qas\[0\] \(question '7'\)"),
        ((7,), None, r"qas\[1\] \(question '8'\)"),
        ((7,), {"text": ["a"]}, r"qas\[1\] \(question '8'\)"),
        ((7,), ["a"], r"qas\[1\] \(question '8'\)"),
        ((7,), [{"answer_start": 0}], r"qas\[1\] \(question '8'\)"),
    ],
    ids=["none", "some", "no list", "no objects", "no text"],
)
def test_without_all_answers_files_are_predicted_only(
    write_squad, kept, answers, place
):
    path = without_answers(write_squad(KNOWN), *kept, answers=answers)
    task = SquadTask(predict_file=path)
    with pytest.raises(
        InputError, match=rf"squad.json: data.*{place}: .*`answers`"
    ):
        task.examples("dev")
    examples = task.examples("test")
    assert [example.qas_id for example in examples] == ["7", "8"]
    answered = [SquadAnswer("a", [], None)] * 2
    assert task.metrics(examples, answered) == {}


@pytest.mark.parametrize("version_2", [False, True])
def test_without_any_window_all_files_are_written(
    read, make_tokenizer, tmp_path, version_2
):
    task = SquadTask(
        decoding=DecodingOptions(version_2_with_negative=version_2),
        max_query_length=4,
    )
    examples = read((" \n", ("1", "q", None, 0)), is_training=False)
    answers = answer_all(task, examples, make_tokenizer("q"))
    folder = tmp_path / "out"
    folder.mkdir()
    task.write_predictions(str(folder), "test", examples, answers)
    text = "" if version_2 else "empty"
    best = {
        "text": text,
        "probability": 1.0,
        "start_logit": 0.0,
        "end_logit": 0.0,
    }
    expected = {"predictions.json": text, "nbest_predictions.json": [best]}
    if version_2:
        expected["null_odds.json"] = 1e6
    assert expected == {
        path.name: json.loads(path.read_text())["1"]
        for path in folder.iterdir()
    }


def answer_all(task, examples, tokenizer):
    """Featurizes and decodes, with equal logits."""
    [features] = task.featurize(examples, tokenizer, 16, is_training=False)
    zeros = np.zeros(len(features.lengths))
    logits = [np.zeros((16, 2), np.float32)] * len(zeros)
    return task.answers(features, Outputs(logits, zeros, zeros))


def test_the_command_alone_shows_how_far_it_is(
    write_squad, make_tokenizer, tmp_path, capsys
):
    (tmp_path / "bert_config.json").write_text(json.dumps(tiny.CONFIG))
    tokenizer = make_tokenizer("abq")
    options = RunSquad(
        bert_config_file=str(tmp_path / "bert_config.json"),
        vocab_file=str(tmp_path / "vocab.txt"),
        output_dir=str(tmp_path / "out"),
        do_predict=True,
        predict_file=write_squad(KNOWN),
        max_seq_length=16,
        max_query_length=4,
    )
    task = make(options)
    examples = task.examples("test")
    answers = answer_all(task, examples, tokenizer)
    shown = capsys.readouterr().err
    assert "Tokenizing: 100%" in shown
    assert "Decoding: 100%" in shown
    again = SquadTask.from_json(task.to_json())
    assert answer_all(again, examples, tokenizer) == answers
    assert capsys.readouterr().err == ""
