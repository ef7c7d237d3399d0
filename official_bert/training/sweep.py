"""Many runs of one command: the grid of appendix A.3 of the paper."""

import dataclasses
import itertools
import os
import statistics
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
from absl import logging

from official_bert import cli, files, json_files, plots, tasks
from official_bert.errors import InputError, bullet_list
from official_bert.options import RunClassifier, RunClassifierWithTfhub
from official_bert.options.training import DeviceOptions
from official_bert.tasks import tables
from official_bert.tasks.task import Task
from official_bert.training import finetune, loop

Setting = Mapping[str, Any]
# What a run was told, and what its evaluation found.
Result = tuple[Setting, Mapping[str, Any]]

# What a sweep says of each run itself, and what makes another table of it.
_NOT_VARIED = {
    "sweep",
    "output_dir",
    "do_train",
    "do_eval",
    "task_name",
    "task_type",
}

_RESULTS = "eval_results.json"

# What changes no result. A sweep may be moved, as a whole.
_MAY_CHANGE = {
    "output_dir",
    "plots",
    "do_predict",
    "jit_compile",
    *(field.name for field in dataclasses.fields(DeviceOptions)),
}

# What a run notes as its TF Hub module has it, whatever it was told.
_OF_A_MODULE = {"vocab_file", "do_lower_case", "init_checkpoint"}


def run(task: Task, options: RunClassifier) -> None:
    """Runs every combination that `--sweep` asks for, and writes a table.

    Each run has its folder in `output_dir`; of those that have results already
    only what is missing is done: predictions, pictures. `sweep.tsv` has one
    line for each combination, over its seeds, the best first; `sweep.json` has
    all there is. A run whose loss diverges is left out, and the others go on.

    Raises:
        InputError: `--sweep` cannot be understood, or a run's folder is that of
            a run with other flags; or, in the end, runs diverged.
    """
    if options.resolved_strategy == "multi_worker_mirrored":
        raise InputError(
            "--sweep must run on one host. Received: --distribution_strategy="
            "multi_worker_mirrored. Give each host its own part of the sweep."
        )
    settings = list(combinations(options.sweep, options))
    # All of them before the first runs: this checks the values.
    runs = [_options_of(setting, options) for setting in settings]
    for its_options in runs:
        _require_same_flags(its_options)
    results: list[Result] = []
    diverged = []
    for number, its_options in enumerate(runs):
        folder = its_options.output_dir
        logging.info("Run %d of %d: %s", number + 1, len(runs), folder)
        try:
            _do_what_is_missing(its_options)
        except loop.DivergedError as error:
            logging.error("%s: %s", folder, error)
            diverged.append(folder)
            continue
        path = os.path.join(folder, _RESULTS)
        results.append((settings[number], json_files.read_object(path)))
        # After each, so that one can look on.
        _write(options.output_dir, results, task.main_metric)
    if diverged:
        raise InputError(
            "The loss of all runs of a sweep must be finite. Received: other "
            f"losses in {len(diverged)} of {len(runs)}, which the table leaves "
            f"out:{bullet_list(diverged)}"
        )


def _do_what_is_missing(options: RunClassifier) -> None:
    """Trains and measures, or does what else was not asked for then."""
    if files.exists(os.path.join(options.output_dir, _RESULTS)):
        if not options.do_predict or _has_predicted(options):
            if options.plots:
                plots.write(options.output_dir)
            return
        options = dataclasses.replace(options, do_train=False, do_eval=False)
    keras.backend.clear_session()
    # Some flags are the task's.
    finetune.run(tasks.get(options), options)


def _has_predicted(options: RunClassifier) -> bool:
    """Whether there are predictions of all that `--do_predict` predicts."""

    def has(name: str) -> bool:
        return files.exists(os.path.join(options.output_dir, name))

    return all(
        has(tables.scores_name(split)) or has(f"{split}_predictions.txt")
        for split in tasks.get(options).splits("test")
    )


def _options_of(setting: Setting, options: RunClassifier) -> RunClassifier:
    """Returns the options of one run, whose folder is called what it is."""
    name = ",".join(f"{key}={value}" for key, value in setting.items())
    folder = os.path.join(options.output_dir, name)
    return dataclasses.replace(
        options, output_dir=folder, sweep="", do_eval=True, **setting
    )


def _require_same_flags(options: RunClassifier) -> None:
    """Compares with what the run in a folder was told, whether it ended or not.

    Flags that there were not then are those of a later version.
    """
    path = os.path.join(options.output_dir, "train_options.json")
    if not files.exists(path):
        return
    told = json_files.read_object(path).get("options", {})
    left_out = {*_MAY_CHANGE}
    if isinstance(options, RunClassifierWithTfhub):
        left_out |= _OF_A_MODULE
    for name, now in dataclasses.asdict(options).items():
        before = told.get(name, now)
        if before != now and name not in left_out:
            raise InputError(
                f"{options.output_dir}: a run that is there must have had the "
                f"flags of this sweep. Received: --{name}={now!r}, and "
                f"{before!r} in its train_options.json. Choose another "
                "--output_dir, or remove the folder to run it anew."
            )


def combinations(sweep: str, options: RunClassifier) -> Iterator[Setting]:
    """Yields the flags of each run.

    Args:
        sweep: Such as `learning_rate=5e-5,3e-5;seed=1..5`.
        options: Whose flags they replace.

    Raises:
        InputError: It names no flag, or a value that is not of its kind.
    """
    kinds = {
        name: cli.plain_type(kind)
        for name, kind in typing.get_type_hints(type(options)).items()
    }
    values: dict[str, list[Any]] = {}
    for part in filter(None, sweep.split(";")):
        name, equals, texts = part.strip().partition("=")
        if not equals or name not in kinds or name in _NOT_VARIED:
            raise InputError(
                "--sweep must be flags and their values, such as "
                "learning_rate=5e-5,3e-5;seed=1..5. Received: "
                f"{part!r}, which begins with no flag that can be varied."
            )
        if name in values:
            raise InputError(
                "--sweep must name a flag once, with all its values. Received: "
                f"`{name}` twice. Write {name}=A,B in place of "
                f"{name}=A;{name}=B."
            )
        values[name] = list(_values(name, texts, kinds[name]))
        if len(set(values[name])) < len(values[name]):
            raise InputError(
                "--sweep must have each value of a flag once. Received: "
                f"{part!r}, which is {values[name]}. Leave out what is twice."
            )
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _values(name: str, texts: str, kind: Any) -> Iterator[Any]:
    for text in texts.split(","):
        first, dots, last = text.partition("..")
        try:
            if dots and kind is int:
                found = [*range(int(first), int(last) + 1)]
            elif kind is bool:
                found = [{"true": True, "false": False}[text.lower()]]
            else:
                found = [kind(text) if kind in (int, float) else text]
        except (KeyError, ValueError):
            raise InputError(
                f"--sweep: `{name}` must be of type {kind.__name__}. "
                f"Received: {text!r}."
            ) from None
        if not found:
            raise InputError(
                f"--sweep: a range of `{name}` must go up, such as 1..5. "
                f"Received: {text!r}."
            )
        yield from found


def _write(folder: str, results: Sequence[Result], metric: str) -> None:
    """Writes both files."""
    done = [
        {"setting": dict(setting), "results": dict(result)}
        for setting, result in results
    ]
    json_files.write(os.path.join(folder, "sweep.json"), done)
    groups: dict[tuple[tuple[str, Any], ...], list[float]] = {}
    for setting, result in results:
        key = tuple((k, v) for k, v in setting.items() if k != "seed")
        groups.setdefault(key, []).append(result[metric])
    ranked = sorted(groups.items(), key=lambda item: -statistics.mean(item[1]))
    names = [name for name, _ in ranked[0][0]]
    lines = ["\t".join([*names, f"best {metric}", "mean", "deviation", "runs"])]
    for key, scores in ranked:
        deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
        numbers = (max(scores), statistics.mean(scores), deviation)
        cells = [str(value) for _, value in key]
        cells += [f"{number:.4f}" for number in numbers]
        lines.append("\t".join([*cells, str(len(scores))]))
    text = "\n".join(lines) + "\n"
    files.write_text(os.path.join(folder, "sweep.tsv"), text)
    logging.info("So far:\n%s", text.expandtabs(16))
