"""The output of a run besides checkpoints: options, results, next command."""

import collections
import contextlib
import errno
import os
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert.errors import bullet_list, listed, suppress_broken_pipe
from official_bert.io import files
from official_bert.io.rows import to_bit, to_number
from official_bert.options import FinetuningOptions, RunClassifier
from official_bert.options.training import TrainingOptions
from official_bert.runs import checkpoints, file_names
from official_bert.sources import checkpoint_paths
from official_bert.tasks.documents import (
    MAX_SHARE_TRUNCATED,
    warn_of_truncation,
)
from official_bert.tasks.own_texts import MAX_SHARE_OF_LABEL
from official_bert.tasks.task import Task

# Maximum number of labels in the table of the data.
_MAX_LABELS = 10
# Maximum number of types of tags in the table of metrics.
_MAX_TYPES = 20


def write_eval_options(options: TrainingOptions) -> None:
    """Writes the options of a run that only evaluates or predicts."""
    if options.is_chief:
        path = options.run_directory.file(file_names.EVAL_OPTIONS)
        files.write_text(path, options.to_json())


def log_data(
    task: Task,
    data: Mapping[str, Sequence[Any]],
    metadata: Mapping[str, Any],
    max_seq_length: int,
) -> None:
    """Logs a table of the data; warns of odd labels and of truncation.

    `data` is {split: examples}; `metadata` is the metadata of the training
    records, {} without training.
    """
    counts = {
        split: Counter(
            label for example in examples for label in task.labels_of(example)
        )
        for split, examples in data.items()
    }
    total = Counter(dict.fromkeys(getattr(task, "labels", ()), 0))
    for count in counts.values():
        total.update(count)
    rows = {"": list(data)}
    rows["examples"] = [f"{len(examples):,}" for examples in data.values()]
    rows |= _label_rows(counts, total)
    num_texts = sum(len(data.get(name, ())) for name in ("train", "unlabeled"))
    if metadata and metadata["num_records"] != num_texts:
        rows["windows"] = [f"{metadata['num_records']:,}"]
    for name, value in metadata.get("lengths", {}).items():
        if name == "full":
            rows[f"{max_seq_length} tokens or more"] = [f"{value:.1%}"]
        else:
            rows[f"tokens, {name}"] = [f"{value:,}"]
    widths = [max(len(split), 7) + 1 for split in data]
    lines = ["The data:"]
    for name, cells in rows.items():
        columns = map(str.rjust, cells, widths)
        lines.append(f"  {name[:20]:20}{''.join(columns)}")
    logging.info("\n".join(lines))
    share_full = metadata.get("lengths", {}).get("full", 0.0)
    if task.truncates and share_full > MAX_SHARE_TRUNCATED:
        warn_of_truncation(
            f"Up to {100 * share_full:.0f}% of the",
            max_seq_length,
            ". Use --long_document=windows (for texts with labels) or, if "
            "the model has more positions, a larger --max_seq_length",
        )
    if task.kind != "choice":  # Its labels are the numbers of choices.
        _warn_of_labels(counts.get("train", Counter()))
    if task.kind == "text":
        _warn_of_missing_labels(counts, total)


def _label_rows(
    counts: Mapping[str, Counter[Any]], total: Counter[Any]
) -> dict[str, list[str]]:
    rows = {
        f"label {label}": [
            f"{count[label]:,}" if count else "-" for count in counts.values()
        ]
        for label, _ in total.most_common(_MAX_LABELS)
    }
    if len(total) > _MAX_LABELS:
        rows[f"and {len(total) - _MAX_LABELS:,} more labels"] = []
    return rows


def _warn_of_missing_labels(
    counts: Mapping[str, Counter[Any]], total: Counter[Any]
) -> None:
    consequences = {
        "train": "they are not learned. Add examples",
        "dev": "macro_f1 counts an F1 of 0 for each. Evaluate on more "
        "examples (--dev_share, --dev_file)",
    }
    for split, consequence in consequences.items():
        found = counts.get(split)
        missing = [label for label in total if found and not found[label]]
        if missing:
            logging.warning(
                f"{split} has no examples of {listed(sorted(missing))}: "
                f"{consequence}"
            )


def _warn_of_labels(counts: Counter[Any]) -> None:
    """Warns if labels are spelled in several ways, or if there are many."""
    spellings: dict[Any, list[str]] = collections.defaultdict(list)
    for label in map(str, counts):
        plain = _plain(label)
        bit, number = to_bit(plain), to_number(plain)
        key = plain if number is None else number
        spellings[key if bit is None else bit].append(label)
    if similar := [_spelled(s) for s in spellings.values() if len(s) > 1]:
        logging.warning(
            "These labels are different classes, but differ only in case, "
            "spaces, hyphens, quotes, invisible characters, Unicode "
            "normalization, or the form of a number or truth value: "
            f"{listed(similar)}. If they mean the same, write them alike"
        )
    if len(counts) > 100 or len(counts) > max(2, counts.total() / 2):
        logging.warning(
            f"The training data has {len(counts)} different labels, such as "
            f"{listed(list(counts)[:3])}. If they are not classes, choose "
            "another column of labels. If they are numbers, use "
            "--task_type=regression."
        )


def _spelled(labels: Sequence[str]) -> str:
    """Returns labels for a message; with code points if they look alike."""
    forms = {unicodedata.normalize("NFC", label) for label in labels}
    return " / ".join(map(repr if len(forms) == len(labels) else ascii, labels))


def _plain(label: str) -> str:
    """Returns a label without what is hard to see in a table."""
    characters = unicodedata.normalize("NFKC", label.casefold())
    characters = characters.replace("\ufe0f", "")  # Only colors an emoji.
    visible = (c for c in characters if unicodedata.category(c) != "Cf")
    text = "".join(visible).strip("\"'")
    return " ".join(re.sub(r"(?<=[^\W_])[-_](?=[^\W_])", " ", text).split())


def warn_of_one_class(
    split: str, task: Task, predictions: Sequence[Any], examples: Sequence[Any]
) -> None:
    """Warns if a model predicts the same class for everything.

    If the other labels are rare, more training is not the remedy.
    """
    classes = set(map(str, predictions))
    if len(classes) != 1 or len(predictions) == 1:
        return
    [predicted] = classes
    are_same = [predicted in task.labels_of(example) for example in examples]
    is_none = predicted == "[]"  # In multi-label tasks.
    has_rare_labels = is_none or np.mean(are_same) > MAX_SHARE_OF_LABEL
    advice = (
        "If most labels are the same, add examples of the others. Otherwise, "
        "train for more steps or with another learning rate"
    )
    if _has_class_weights(task) and has_rare_labels:
        advice = (
            "The other labels are rare. Add examples of them, or train with "
            "--class_weights=balanced (or larger weights)"
        )
        others = [x for x in getattr(task, "labels", ()) if x != predicted]
        if is_none or len(others) == 1:
            threshold = "0.2" if is_none else f"{others[0]}=0.2"
            flag = shlex.quote(f"--threshold={threshold}")
            advice += f", or predict with a lower threshold: predict.py {flag}"
    logging.warning(
        f"{split}: all {len(predictions)} predictions are {predicted!r}. "
        f"{advice}."
    )


def _has_class_weights(task: Task) -> bool:
    return task.supports(RunClassifier.fields()["class_weights"])


def warn_unless_better(
    split: str,
    task: Task,
    options: FinetuningOptions,
    metrics: Mapping[str, Any],
    baseline: Mapping[str, Any],
) -> None:
    """Warns if the main metric of a model is not better than the baseline's.

    If labels are rare, more training is not the remedy.
    """
    metric, more_steps = task.main_metric, options.more_steps
    if not (metric in baseline and metrics[metric] <= baseline[metric] < 1):
        return
    has_rare_labels = baseline.get("accuracy", 0.0) > MAX_SHARE_OF_LABEL
    has_rare_labels |= baseline.get("micro_f1") == 0.0
    advice = f"more steps{f' ({more_steps})' * bool(more_steps)}"
    if _has_class_weights(task) and has_rare_labels:
        advice = "--class_weights=balanced, because labels are rare,"
        if options.is_set("class_weights"):
            advice = (
                "larger --class_weights for the rare labels, a lower "
                "--threshold of predict.py (for two labels, or several per "
                "text),"
            )
    logging.warning(
        f"{split}: {metric} is not better than the baseline. Try {advice} or "
        "another --learning_rate (1e-4 to 3e-4 for small models, 2e-5 for "
        "Base), and make sure that the model is pre-trained."
    )


@suppress_broken_pipe("stdout", errno.EIO)
def print_metrics(
    title: str,
    metrics: Mapping[str, Any],
    baseline: Mapping[str, Any] | None = None,
    baseline_name: str = "",
) -> None:
    """Prints the metrics that are numbers, and those of a baseline, if any.

    The F1 of the types of tags follows, the most frequent type first.
    """
    shown = numbers(metrics) | _type_scores(metrics)
    if "eval_loss" in shown:
        shown.pop("loss", None)  # Another mean of the same losses.
    columns = {"model": shown}
    if baseline:
        columns["baseline"] = numbers(baseline) | _type_scores(baseline)
    rows = {title: list(columns)}
    for name in shown:
        rows[name] = [_cell(column.get(name)) for column in columns.values()]
    width = max(24, len(title))
    print()
    for name, cells in rows.items():
        print(name.ljust(width) + "".join(f" {cell:>9}" for cell in cells))
    if baseline:
        print(f"Baseline: {baseline_name}.")


def _type_scores(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Returns {"f1 TYPE": F1} of the types with the largest support."""
    types = metrics.get("per_type", {})
    by_support = sorted(types, key=lambda name: -types[name]["support"])
    shown = by_support[:_MAX_TYPES]
    return {f"f1 {name}".rstrip(): types[name]["f1"] for name in shown}


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def write_eval_results(path: str, results: Mapping[str, Any]) -> None:
    """Writes {name: number} in the format of `eval_results.txt`."""
    lines = [f"{name} = {results[name]!s}\n" for name in sorted(results)]
    files.write_text(path, "".join(lines))


def write_summary(directory: str, results: Mapping[str, Any]) -> None:
    """Writes results as TensorBoard events to `DIRECTORY/eval`."""
    writer = tf.summary.create_file_writer(
        os.path.join(directory, file_names.EVENTS)
    )
    with contextlib.closing(writer), writer.as_default():
        for name, value in results.items():
            if name != "global_step":
                tf.summary.scalar(name, value, step=results["global_step"])


def original_results(
    results: Mapping[str, Any], main_metric: str
) -> dict[str, Any]:
    """Returns the results that the original implementation reports.

    The main metric replaces the accuracy of tasks that have none. Tagging of
    entities adds their precision, recall and F1.
    """
    names = ["accuracy" if "accuracy" in results else main_metric]
    if "precision" in results:
        names += ["precision", "recall", "f1"]
    selected = {f"eval_{name}": np.float32(results[name]) for name in names}
    for name in ("eval_loss", "loss"):
        if name in results:
            selected[name] = np.float32(results[name])
    return {**selected, "global_step": results["global_step"]}


def numbers(results: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the results that are numbers, as Python numbers."""
    return {
        name: value.item() if isinstance(value, np.floating) else value
        for name, value in results.items()
        if isinstance(value, int | float | np.floating)
    }


@suppress_broken_pipe("stdout", errno.EIO)
def print_next_command(task: Task, options: FinetuningOptions) -> None:
    """Prints the files of the run and, after training, the next command."""
    has_files = options.do_train or options.do_predict
    if not (has_files and options.is_chief):
        return
    directory, run = options.output_dir, options.run_directory
    model = checkpoints.latest(checkpoint_paths.find(directory))
    ending = task.data.input_ending or task.input_ending
    print(
        f"\nThe model is {model or options.init_checkpoint}. Some other files "
        f"in {directory}:{bullet_list(run.result_names())}"
    )
    if not options.do_train:
        return
    if file_names.TEMPORARY in directory:
        print(
            "\nThe directory is temporary: it is removed with the Predictor. "
            "To keep the model, pass output_dir."
        )
        return
    print(
        f"\nPredict new examples{task.input_hint}:\n  python predict.py "
        f"--model_dir={shlex.quote(directory)} --input_file=new.{ending}"
    )
