"""What `demo.py` shows in the end: what was learned, and what was known before.

Accuracies stand beside those of models that know nothing but how often things
occur, and of models that were not pre-trained.
"""

import json
from collections import Counter
from typing import Any

from official_bert import files
from official_bert.inference import baselines
from official_bert.inputs.records import RecordFiles
from official_bert.inputs.schemas import pretraining_schema
from official_bert.metrics.classification import accuracy_and_f1
from official_bert.options import Demo
from official_bert.options.demo import FINETUNED, PREDICTIONS
from official_bert.tasks import tables


def write(options: Demo) -> str:
    """Returns what was learned, and keeps it in `report.txt`."""
    lines = [*_pretraining(options), "", *_finetuning(options.output_dir)]
    text = "\n".join(["", *lines]) + "\n"
    files.write_text(f"{options.output_dir}/report.txt", text)
    return text


def _pretraining(options: Demo) -> list[str]:
    """Returns accuracies with and without pre-training, and guesses."""
    folder = options.output_dir
    schema = pretraining_schema(
        options.max_seq_length, options.max_predictions_per_seq
    )
    train, held_out = (
        RecordFiles([f"{folder}/{name}.tfrecord"], schema)
        for name in ("train", "held_out")
    )
    word = baselines.always_the_same(
        train, held_out, "masked_lm_ids", "masked_lm_weights"
    )
    pair = baselines.always_the_same(train, held_out, "next_sentence_labels")
    piece = list(files.read_lines(f"{folder}/vocab.txt"))[word.answer]
    label = ("IsNext", "NotNext")[pair.answer]
    lines = [
        "Accuracy on held-out documents   masked LM   next sentence",
        _row("this model", *_accuracies(f"{folder}/model")),
        _row("before training", *_accuracies(f"{folder}/untrained")),
        _row(f"always {piece!r}, {label}", word.accuracy, pair.accuracy),
        "",
    ]
    for answer in _answers(f"{folder}/model_answers.jsonl"):
        (guesses,) = answer["guesses"]
        shown = (f"{g['piece']} {g['probability']:.0%}" for g in guesses)
        lines += [answer["input"], "    " + "  ".join(shown)]
    return lines


def _accuracies(folder: str) -> list[float]:
    """Reads those of masked LM and next sentence from `eval_results.txt`."""
    lines = files.read_text(f"{folder}/eval_results.txt").splitlines()
    results = dict(line.split(" = ") for line in lines)
    names = ("masked_lm_accuracy", "next_sentence_accuracy")
    return [float(results[name]) for name in names]


def _answers(path: str) -> list[dict[str, Any]]:
    """Reads what `predict.py` wrote."""
    return [json.loads(line) for line in files.read_lines(path)]


def _finetuning(folder: str) -> list[str]:
    """Returns scores with and without pre-training, and answers."""
    expected = _column(f"{folder}/signatures/test.tsv", "label")
    learned = _column(f"{folder}/signatures/train.tsv", "label")
    ((commonest, _),) = Counter(learned).most_common(1)
    predicted = {
        name: _column(f"{folder}/{output}/{PREDICTIONS}", "prediction")
        for name, output in FINETUNED.items()
    }
    predicted[f"always {commonest!r}"] = [commonest] * len(expected)
    lines = ["Does the summary belong?          accuracy       F1 of yes"]
    targets = [label == "yes" for label in expected]
    for name, labels in predicted.items():
        scores = accuracy_and_f1(targets, [label == "yes" for label in labels])
        lines.append(_row(name, scores["accuracy"], scores["f1"]))
    lines.append("")
    for answer in _answers(f"{folder}/finetuned_answers.jsonl"):
        share = answer["probabilities"][answer["label"]]
        verdict = f"    {answer['label']} {share:.0%}"
        lines += ["  ".join(answer["input"].values()), verdict]
    return lines


def _column(path: str, name: str) -> list[str]:
    """Reads a column of a TSV file."""
    return [row.name(name) for row in tables.read(path, "tsv")]


def _row(name: str, first: float, second: float) -> str:
    return f"  {name}".ljust(33) + f"{first:9.1%}{second:16.1%}"
