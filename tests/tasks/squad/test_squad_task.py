"""SQuAD's task: files without answers, questions without windows."""

import json
import pathlib

import numpy as np
import pytest
from support import tiny

from official_bert.errors import InputError
from official_bert.options import RunSquad
from official_bert.tasks.squad.squad_decoding import (
    DecodingOptions,
    SquadAnswer,
)
from official_bert.tasks.squad.squad_task import SquadTask, make
from official_bert.tasks.task import Outputs

LABELLED = ("a b", (7, "q", "a", 0), ("8", "q", None, 0))


def test_questions_with_numeric_ids_are_scored(write_squad):
    task = SquadTask(predict_file=write_squad(LABELLED))
    answers = [SquadAnswer(text, [], 0.0) for text in ("a", "")]
    results = task.metrics(task.examples("dev"), answers)
    assert results["exact_match"] == results["best_f1"] == 100.0
    assert results["missing"] == []


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (0, {}),
        (1, {}),
        (1, {"answers": {"text": ["a"]}}),
        (1, {"answers": ["a"]}),
        (1, {"answers": [{"answer_start": 0}]}),
    ],
    ids=["first", "second", "no list", "no objects", "no text"],
)
def test_files_without_all_answers_can_only_be_predicted(
    write_squad, number, changes
):
    path = pathlib.Path(write_squad(LABELLED))
    content = json.loads(path.read_text())
    question = content["data"][0]["paragraphs"][0]["qas"][number]
    del question["answers"]
    question.update(changes)
    path.write_text(json.dumps(content))
    task = SquadTask(predict_file=str(path))
    place = rf"squad.json: data.*qas\[{number}\] \(question '{7 + number}'\)"
    with pytest.raises(InputError, match=rf"{place}: .*`answers`"):
        task.examples("dev")
    examples = task.examples("test")
    assert [example.qas_id for example in examples] == ["7", "8"]
    assert task.metrics(examples, [SquadAnswer("a", [], None)] * 2) == {}


def answer(task, examples, tokenizer):
    """Featurizes examples and decodes equal logits."""
    [features] = task.featurize(examples, tokenizer, 16, is_training=False)
    zeros = np.zeros(len(features.lengths))
    logits = [np.zeros((16, 2), np.float32)] * len(zeros)
    return task.answers(features, Outputs(logits, zeros, zeros))


@pytest.mark.parametrize(
    ("version_2", "text", "odds"),
    [(False, "empty", {}), (True, "", {"null_odds.json": {"1": 1e6}})],
)
def test_all_files_are_written_without_any_window(
    read, make_tokenizer, tmp_path, version_2, text, odds
):
    decoding = DecodingOptions(version_2_with_negative=version_2)
    task = SquadTask(max_query_length=4, decoding=decoding)
    examples = read((" \n", ("1", "q", None, 0)), is_training=False)
    answers = answer(task, examples, make_tokenizer("q"))
    for path in tmp_path.iterdir():
        path.unlink()
    task.write_predictions(str(tmp_path), "test", examples, answers)
    candidate = {"text": text, "probability": 1.0}
    candidate |= {"start_logit": 0.0, "end_logit": 0.0}
    assert {
        path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()
    } == {
        "predictions.json": {"1": text},
        "nbest_predictions.json": {"1": [candidate]},
        **odds,
    }


def test_only_the_command_shows_progress(
    write_squad, make_tokenizer, tmp_path, capsys
):
    (tmp_path / "bert_config.json").write_text(json.dumps(tiny.CONFIG))
    tokenizer = make_tokenizer("abq")
    task = make(
        RunSquad(
            bert_config_file=str(tmp_path / "bert_config.json"),
            vocab_file=str(tmp_path / "vocab.txt"),
            output_dir=str(tmp_path / "out"),
            do_predict=True,
            predict_file=write_squad(LABELLED),
            max_seq_length=16,
            max_query_length=4,
        )
    )
    examples = task.examples("test")
    answers = answer(task, examples, tokenizer)
    shown = capsys.readouterr().err
    assert "Tokenizing: 100%" in shown
    assert "Decoding: 100%" in shown
    loaded = SquadTask.from_json(task.to_json())
    assert answer(loaded, examples, tokenizer) == answers
    assert capsys.readouterr().err == ""
