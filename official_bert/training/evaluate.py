"""Evaluation and prediction of fine-tuned models."""

import contextlib
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import logging

from official_bert import tasks
from official_bert.io import files, json_files, tables
from official_bert.runs import file_names
from official_bert.sources import task_file
from official_bert.tasks import record_files
from official_bert.tasks.calibration import NO_CALIBRATION
from official_bert.tasks.task import Calibrated
from official_bert.training import reporting

if TYPE_CHECKING:
    from official_bert.training.finetuning_run import FinetuningRun

# {mode of `DataSet.splits`: text of the progress bar}
_DESCRIPTIONS = {"dev": "Evaluating", "test": "Predicting"}


def evaluate(
    run: "FinetuningRun", split: str, *, is_final: bool
) -> dict[str, Any]:
    """Returns the metrics of a fine-tuned model on a development set.

    With `is_final`, also writes the features to a TFRecord file, and a table of
    wrong answers, and calibrates the model.
    """
    task, examples = run.task, run.examples[split]
    records = split if is_final else None
    answers, losses = _run_model(run, "dev", examples, records)
    results = losses | _metrics(run, "dev", examples, answers)
    if is_final:
        if run.options.fold:
            texts = task.prediction_files(split, examples, answers)
            files.write_texts(run.directory, texts)
        task, answers, metrics = _calibrate(run, examples, answers)
        results |= metrics
        wrong = task.wrong_answers(examples, answers)
        if rows := task.data.wrong_rows(wrong, "probability"):
            name = file_names.DEV_ERRORS + _variant(run) + ".csv"
            files.write_texts(run.directory, {name: tables.to_csv(rows)})
    predictions = task.predictions(answers)
    reporting.warn_of_one_class(split, task, predictions, examples)
    return results


def _calibrate(
    run: "FinetuningRun", examples: Sequence[Any], answers: list[Any]
) -> Calibrated:
    """Calibrates a model for own data on the evaluation data of its run.

    Writes the calibration to `task.json`. For benchmarks, for an unfinished
    run, and if the data or the length of the inputs are not those of the run,
    applies the stored one instead.
    """
    options, directory = run.options, run.options.output_dir
    stored = task_file.read(directory)
    now = {**run.task.to_json(), "max_seq_length": options.max_seq_length}
    names = "max_seq_length", "long_documents"  # Those of `predict.py`.
    is_other = any(stored.get(name) != now.get(name) for name in names)
    is_other |= bool(_variant(run))
    is_other |= not options.do_train and options.run_directory.is_unfinished
    if not options.train_file or is_other:
        return _apply_calibration(run, examples, answers)
    result = run.task.calibrate(examples, answers, fits=True)
    calibrated = result.task.to_json()
    if options.is_chief and "calibration" in calibrated:
        stored["calibration"] = calibrated["calibration"]
        json_files.write(task_file.path_in(directory), stored)
    return result


def _apply_calibration(
    run: "FinetuningRun", examples: Sequence[Any], answers: list[Any]
) -> Calibrated:
    """Applies the calibration in `task.json`, if any."""
    task, directory = run.task, run.options.output_dir
    if content := task_file.read(directory):
        stored, _ = tasks.load(content, directory)
        task = task.with_calibration(stored.calibration)
    return task.calibrate(examples, answers, fits=False)


def _variant(run: "FinetuningRun", split: str = "dev") -> str:
    names = f"{split}_file", "corpus_file"
    paths = (getattr(run.options, name) for name in names)
    return run.options.run_directory.variant_of_results(split, *paths)


def write_results(run: "FinetuningRun", global_step: int) -> None:
    """Evaluates all development sets; writes and prints the metrics."""
    splits = run.task.data.splits("dev")
    metrics = {split: evaluate(run, split, is_final=True) for split in splits}
    mismatched = {split: metrics[split] for split in splits if split != "dev"}
    results = {"global_step": global_step, **metrics["dev"], **mismatched}
    main_results = reporting.original_results(results, run.task.main_metric)
    names = run.task.data.results_names(file_names.EVAL_RESULTS)
    if variant := _variant(run):
        names = [file_names.EVAL_RESULTS + variant]
        logging.info(
            "The evaluated file is not that of the run. Its results are in "
            f"{os.path.join(run.directory, names[0])}.json"
        )
    else:
        reporting.write_summary(run.options, main_results)
    for name in names:
        path = os.path.join(run.directory, name)
        json_files.write(f"{path}.json", results)
        reporting.write_eval_results(f"{path}.txt", main_results)
    for split in splits:
        _print_metrics(run, split, metrics[split])


def _print_metrics(
    run: "FinetuningRun", split: str, metrics: Mapping[str, Any]
) -> None:
    """Prints the metrics of a split and of its baseline, on the chief."""
    if run.options.is_chief:
        examples, training = run.examples[split], run.examples.get("train")
        baseline = run.task.baseline(training, examples) if training else {}
        title = f"{split}, {len(examples):,} examples"
        name = run.task.baseline_name
        reporting.print_metrics(title, metrics, baseline, name)
        reporting.warn_unless_better(
            split, run.task, run.options, metrics, baseline
        )


def predict(run: "FinetuningRun") -> None:
    """Predicts all test sets and writes the task's prediction files."""
    if variant := _variant(run, "test"):
        logging.info(
            "The predicted file is not that of the run. The names of its "
            f"results contain {variant}"
        )
    for split in run.task.data.splits("test"):
        examples = run.examples[split]
        answers, _ = _run_model(run, "test", examples, split)
        metrics = _metrics(run, "test", examples, answers)
        task, answers, calibrated = _apply_calibration(run, examples, answers)
        metrics |= calibrated
        named = split + variant
        texts = task.prediction_files(named, examples, answers)
        results_name = named.replace("test", file_names.PREDICT_RESULTS, 1)
        results = json_files.to_text(metrics) if metrics else ""
        for name in run.task.data.results_names(results_name):
            texts[f"{name}.json"] = results
        files.write_texts(run.directory, texts)
        if metrics:
            _print_metrics(run, split, metrics)


def mine_negatives(run: "FinetuningRun", number: int) -> None:
    """Writes the training pairs with the negatives that the model finds."""
    task: Any = run.task  # An `EmbeddingTask`.
    pairs = run.examples["train"]
    corpus = run.examples.get("corpus", ())
    texts = itertools.chain(corpus, *(pair.texts for pair in pairs))
    passages = task.passages(texts)
    answers, _ = _run_model(
        run, "dev", passages, description="Mining negatives"
    )
    rows = task.with_negatives(pairs, corpus, passages, answers, number)
    path = os.path.join(run.directory, file_names.MINED)
    files.write_text(path, tables.to_csv(rows))
    logging.info(f"Wrote {path}, a --train_file with negatives")


def _metrics(
    run: "FinetuningRun", mode: str, examples: Sequence[Any], answers: Any
) -> dict[str, Any]:
    """Returns the metrics; a search also finds passages of --corpus_file."""
    task: Any = run.task
    if corpus := run.examples.get("corpus"):
        passages = task.passages(corpus)
        examples = [*examples, *passages]
        found, _ = _run_model(
            run, mode, passages, description="Encoding the corpus"
        )
        answers = [*answers, *found]
    return task.metrics(examples, answers)


def _run_model(
    run: "FinetuningRun",
    mode: str,
    examples: Sequence[Any],
    split: str | None = None,
    description: str | None = None,
) -> tuple[list[Any], dict[str, float]]:
    """Returns answers without calibration, and the mean losses.

    If `split` is given, writes the features to its records. `description` is
    the text of the progress bar; None: that of `mode`.
    """
    task = run.task.with_calibration(NO_CALIBRATION)
    forward, length = run.forwards[mode], run.options.max_seq_length
    answers: list[Any] = []
    losses = [np.zeros((0, 2))]
    writing: Any = contextlib.nullcontext()
    if split:
        path = os.path.join(run.directory, file_names.records(split))
        writing = files.writing(path)
    with writing as file:
        for features in task.featurize(examples, run.tokenizer, length):
            if file:
                if not answers:
                    features.warn_if_unknown(run.tokenizer, f" of {split}")
                record_files.write_features(file, features, length)
            outputs = forward.run(features, description or _DESCRIPTIONS[mode])
            answers += task.answers(features, outputs.logits)
            loss_sums = outputs.losses * task.loss_unit
            losses.append(np.stack([loss_sums, outputs.weights], 1))
    return answers, _mean_losses(np.concatenate(losses), forward.batch_size)


def _mean_losses(losses: np.ndarray, batch_size: int) -> dict[str, float]:
    """Returns `eval_loss`, the mean, and `loss`, the mean of batch means.

    The original implementation reports both. Without labels, returns {}.
    `losses` is [N, 2]: the sums of losses and of weights of each feature.
    """
    sums, weights = losses.T
    if not weights.any():
        return {}
    starts = np.arange(0, len(sums), batch_size)
    batch_weights = np.add.reduceat(weights, starts)
    means = np.add.reduceat(sums, starts) / np.maximum(batch_weights, 1.0)
    return {
        "eval_loss": float(sums.sum() / weights.sum()),
        "loss": float(means.mean()),
    }
