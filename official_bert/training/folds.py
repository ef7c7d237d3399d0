"""Cross-validation: `--folds`."""

import os
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import logging

from official_bert.io import files, json_files, tables
from official_bert.io.rows import Row
from official_bert.options import RunClassifier
from official_bert.runs import file_names
from official_bert.tasks.held_out import assign_folds
from official_bert.tasks.task import Task
from official_bert.training import reporting, sweep

# Results that are no metrics; `loss` is another mean of the same losses.
_OTHER_RESULTS = ("global_step", "loss")


def run(task: Task, options: RunClassifier) -> Task:
    """Trains a model for each fold, on the examples of the other folds.

    Each run is a process of its own, as in a sweep, and evaluates its model on
    its fold. `folds.tsv` has the mean and the standard deviation of each
    metric. For own texts, there are also the files of `_write_answers`. Returns
    the task, calibrated on the answers of these models. Raises `InputError` if
    a run fails.
    """
    names = [f"{n}of{options.folds}" for n in range(1, options.folds + 1)]
    others = {"folds": 0, "do_predict": False, "test_file": None}
    runs = [
        (setting, sweep.run_options(setting, options, **others))
        for setting in ({"fold": name} for name in names)
    ]
    # Otherwise, the last run would find the changes after all folds.
    fixed = options.names(on_resume="fixed")
    fixed += options.names(on_resume="if_steps_left")
    sweep.require_same_run(task, options, fixed)
    rows, examples, folds = [], [], []
    if options.has_own_texts:
        rows = [*task.data.rows("train")]
        examples = task.data.examples(rows, "train")
        texts = [task.data.held_out_together(example) for example in examples]
        labels = [example.label for example in examples]
        folds = assign_folds(texts, labels, options.folds)
    failures: list[str] = []
    results = [result for _, result in sweep.run_all(task, runs, failures)]
    sweep.require_no_failures(runs, failures)
    table = [("metric", "mean", "deviation", *names)]
    table += _metric_rows([reporting.numbers(result) for result in results])
    sweep.write_table(options.run_directory.file(file_names.FOLDS_TABLE), table)
    if rows:
        directories = [fold_options.output_dir for _, fold_options in runs]
        answers = _read_answers(directories, folds)
        _write_answers(task, options.output_dir, rows, folds, examples, answers)
        task = task.calibrate(examples, [*answers], fits=True).task
    return task


def _metric_rows(results: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Returns each metric with its mean, deviation and value in each fold.

    Folds without a class may lack a metric, such as `roc_auc`.
    """
    rows = []
    for name in {n: None for result in results for n in result}:
        values = [result[name] for result in results if name in result]
        if name in _OTHER_RESULTS:
            continue
        deviation = statistics.stdev(values) if len(values) > 1 else None
        numbers = [statistics.mean(values), deviation]
        numbers += [result.get(name) for result in results]
        cells = ("-" if n is None else f"{n:.4f}" for n in numbers)
        rows.append((name, *cells))
    return rows


def _read_answers(directories: Sequence[str], folds: Sequence[int]) -> Any:
    """Returns answers [N, C] of the models that were not trained on the row."""
    answers: dict[int, Any] = {}
    for fold, directory in enumerate(directories, start=1):
        text = files.read_text(
            os.path.join(directory, file_names.scores("dev"))
        )
        scores = [line.split("\t") for line in text.splitlines()]
        indices = np.flatnonzero(np.equal(folds, fold))
        pairs = zip(indices, np.array(scores, np.float32), strict=True)
        answers |= {int(index): row for index, row in pairs}
    return np.stack([answers[index] for index in range(len(folds))])


def _write_answers(
    task: Task,
    directory: str,
    rows: Sequence[Row],
    folds: Sequence[int],
    examples: Sequence[Any],
    answers: Any,
) -> None:
    """Writes the answer for each row, and the labels that may be wrong.

    `out_of_fold.jsonl` has all rows. `suspect_labels.tsv` has those whose label
    differs from the answer; the least probable labels are first.
    """
    objects = (
        {
            "row": number,
            "fold": fold,
            "input": {name: row.cells[name] for name in row.columns},
            **task.answer_to_json(example, answer),
        }
        for number, (row, fold, example, answer) in enumerate(
            zip(rows, folds, examples, answers, strict=True), start=1
        )
    )
    path = os.path.join(directory, file_names.OUT_OF_FOLD)
    files.write_text(path, json_files.to_lines(objects))
    wrong = [*task.wrong_answers(examples, answers)]
    if suspects := task.data.wrong_rows(wrong, "label_probability"):
        path = os.path.join(directory, file_names.SUSPECT_LABELS)
        files.write_text(path, tables.to_tsv(suspects))
        logging.info(
            f"{len(wrong)} of {len(rows)} labels differ from the prediction of "
            f"a model that was not trained on them: {path}"
        )
