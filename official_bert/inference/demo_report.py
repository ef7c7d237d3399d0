"""The report of `demo.py`.

Accuracies are compared with those of models that were not pre-trained, and of
baselines that always give the most frequent answer.
"""

import json
from collections import Counter
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.inputs import records
from official_bert.inputs.records import RecordFiles
from official_bert.inputs.schemas import pretraining_schema
from official_bert.metrics.classification import accuracy_and_f1
from official_bert.options import Demo
from official_bert.options.demo import FINETUNED, PREDICTIONS
from official_bert.tasks import tables


def write(options: Demo) -> str:
    """Writes `report.txt` and returns its text."""
    lines = [*_pretraining(options), "", *_finetuning(options.output_dir)]
    text = "\n".join(["", *lines]) + "\n"
    files.write_text(f"{options.output_dir}/report.txt", text)
    return text


def _pretraining(options: Demo) -> list[str]:
    directory = options.output_dir
    schema = pretraining_schema(
        options.max_seq_length, options.max_predictions_per_seq
    )
    train = RecordFiles([f"{directory}/train.tfrecord"], schema)
    held_out = RecordFiles([f"{directory}/held_out.tfrecord"], schema)
    token_id, token_accuracy = most_frequent_label(
        train, held_out, "masked_lm_ids", "masked_lm_weights"
    )
    label, label_accuracy = most_frequent_label(
        train, held_out, "next_sentence_labels"
    )
    token = list(files.read_lines(f"{directory}/vocab.txt"))[token_id]
    baseline = f"always {token!r}, {('IsNext', 'NotNext')[label]}"
    lines = [
        "Accuracy on held-out documents   masked LM   next sentence",
        _row("this model", *_accuracies(f"{directory}/model")),
        _row("before training", *_accuracies(f"{directory}/untrained")),
        _row(baseline, token_accuracy, label_accuracy),
        "",
    ]
    for answer in _answers(f"{directory}/model_answers.jsonl"):
        (guesses,) = answer["guesses"]
        shown = (f"{g['token']} {g['probability']:.0%}" for g in guesses)
        lines += [answer["input"], "    " + "  ".join(shown)]
    return lines


def most_frequent_label(
    train: RecordFiles,
    held_out: RecordFiles,
    feature: str,
    weight: str | None = None,
) -> tuple[int, float]:
    """Returns the most frequent training label and its held-out accuracy.

    The labels are `feature`, without those whose `weight` is 0.
    """
    answer = int(np.bincount(_labels(train, feature, weight)).argmax())
    labels = _labels(held_out, feature, weight)
    return answer, float(np.mean(labels == answer))


def _labels(data: RecordFiles, feature: str, weight: str | None) -> np.ndarray:
    labels = []
    for serialized in tf.data.TFRecordDataset(list(data.names)).batch(1000):
        batch = records.parse(data.schema, serialized)
        values = batch[feature].numpy()
        labels.append(values[batch[weight].numpy() > 0] if weight else values)
    return np.concatenate([part.ravel() for part in labels])


def _accuracies(directory: str) -> list[float]:
    lines = files.read_text(f"{directory}/eval_results.txt").splitlines()
    results = dict(line.split(" = ") for line in lines)
    names = ("masked_lm_accuracy", "next_sentence_accuracy")
    return [float(results[name]) for name in names]


def _answers(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files.read_lines(path)]


def _finetuning(directory: str) -> list[str]:
    expected = _column(f"{directory}/signatures/test.tsv", "label")
    learned = _column(f"{directory}/signatures/train.tsv", "label")
    ((most_frequent, _),) = Counter(learned).most_common(1)
    predicted = {
        name: _column(f"{directory}/{output}/{PREDICTIONS}", "prediction")
        for name, output in FINETUNED.items()
    }
    predicted[f"always {most_frequent!r}"] = [most_frequent] * len(expected)
    lines = ["Does the summary belong?          accuracy       F1 of yes"]
    targets = [label == "yes" for label in expected]
    for name, labels in predicted.items():
        scores = accuracy_and_f1(targets, [label == "yes" for label in labels])
        lines.append(_row(name, scores["accuracy"], scores["f1"]))
    lines.append("")
    for answer in _answers(f"{directory}/finetuned_answers.jsonl"):
        share = answer["probabilities"][answer["label"]]
        verdict = f"    {answer['label']} {share:.0%}"
        lines += ["  ".join(answer["input"].values()), verdict]
    return lines


def _column(path: str, name: str) -> list[str]:
    return [row.name(name) for row in tables.read(path, "tsv")]


def _row(name: str, first: float, second: float) -> str:
    return f"  {name}".ljust(33) + f"{first:9.1%}{second:16.1%}"
