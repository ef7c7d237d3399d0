"""Hyperparameter sweeps: the grid search of appendix A.3 of the paper."""

import collections
import itertools
import os
import shutil
import signal
import statistics
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from absl import logging

from official_bert import plots, tasks
from official_bert.errors import InputError, bullet_list
from official_bert.io import files, json_files, processes, tables
from official_bert.options import RunClassifier, cli, sweep_values
from official_bert.runs import file_names
from official_bert.tasks.task import Task
from official_bert.training import finetuning_run, reporting, resuming
from official_bert.training.eval_history import score

Setting = dict[str, Any]
Result = tuple[Setting, dict[str, Any]]
Runs = Sequence[tuple[Setting, RunClassifier]]

# Flags whose values give repetitions of the same run, which are aggregated.
_REPETITIONS = ("seed", "fold")


def run(task: Task, options: RunClassifier) -> str:
    """Runs every combination of `--sweep` and writes a table of the results.

    Each run is a process of its own, so that its memory is freed and its
    failure does not end the sweep. It has its own directory in `output_dir`. A
    finished run is not repeated, but missing predictions and plots are added.
    `sweep.tsv` has a line for each combination, aggregated over seeds, best
    first; `sweep.json` has all results. An `InputError` at the end lists the
    runs that failed. Returns the directory of the best run.
    """
    # This checks all values before the first run.
    runs = [(s, run_options(s, options)) for s in combinations(options)]
    _require_data(runs)
    results: list[Result] = []
    failures: list[str] = []
    for result in run_all(task, runs, failures):
        results.append(result)
        _write_results(options.output_dir, results, task.main_metric)
    if results:
        _, best_group = _ranked(results, task.main_metric)[0]
        best, _ = max(best_group, key=lambda r: score(r[1], task.main_metric))
        [best_options] = [o for setting, o in runs if setting == best]
        reporting.print_next_command(task, best_options)
    require_no_failures(runs, failures)
    return str(best_options.output_dir)


def run_all(task: Task, runs: Runs, failures: list[str]) -> Iterator[Result]:
    """Starts the runs that are not finished; yields the result of each run.

    Adds a line to `failures` for each run that fails. Raises `InputError`
    before the first run if an earlier one had other flags or data.
    """
    for _, options in runs:
        # A moved file, or one of `finetune`, is compared by its content.
        names = {*options.names(changes_results=True)} - {"train_file"}
        require_same_run(task, options, names)
    for number, (setting, options) in enumerate(runs, start=1):
        directory = options.output_dir
        logging.info(f"Run {number} of {len(runs)}: {directory}")
        if failure := _run_unless_done(options, runs):
            logging.error(f"{directory}: {failure}")
            failures.append(f"{directory}: {failure}")
            continue
        path = options.run_directory.file(file_names.METRICS)
        yield setting, json_files.read_object(path)


def require_no_failures(runs: Runs, failures: Sequence[str]) -> None:
    """Raises `InputError`, which lists the runs that failed, if any."""
    if failures:
        raise InputError(
            f"{len(failures)} of {len(runs)} runs failed and are not in the "
            f"results:{bullet_list(failures)}\n"
            "The messages above say why. Run the same command again to repeat "
            "these runs. If training diverged, use a lower learning rate or a "
            "longer warm-up."
        )


def _require_data(runs: Runs) -> None:
    """Raises `InputError` for faulty data once, instead of in each run."""
    seen = set()
    fields = RunClassifier.fields()
    for setting, options in runs:
        names = [n for n in setting if fields[n].metadata["heading"] == "Data"]
        values = tuple(setting[name] for name in names)
        if values not in seen:
            seen.add(values)
            tasks.get(options).data.read_all(options.used_splits)


def _run_unless_done(options: RunClassifier, runs: Runs) -> str:
    """Trains, evaluates, predicts and plots, unless already done.

    Returns how the run failed, or "". `runs` are all runs of the sweep.
    """
    if options.run_directory.has(file_names.METRICS):
        if not options.do_predict or _has_predicted(options):
            if options.plots:
                plots.write(options.output_dir)
            return ""
        # --fold is for training.
        options = options.replace(do_train=False, do_eval=False, fold="")
    elif options.teacher:
        _copy_records(runs, options)
    name = options.command.removesuffix(".py")
    flags = [*options.flags(), *cli.global_flags()]
    status = processes.wait(processes.start_command(name, flags))
    if status < 0:
        name = signal.Signals(-status).name
        out_of_memory = status == -signal.SIGKILL
        reason = ", possibly because memory ran out" if out_of_memory else ""
        return f"killed by {name}{reason}"
    if status - 128 in (signal.SIGINT, signal.SIGTERM):
        return "stopped before its end"
    return f"exit status {status}" if status else ""


def _copy_records(runs: Runs, options: RunClassifier) -> None:
    """Copies the training records of another run, with a teacher's answers.

    The run replaces them if its data or settings differ.
    """
    paths = [other.training_records for _, other in runs]
    done = [path for path in paths if files.exists(f"{path}.json")]
    target = options.training_records
    if not done or files.exists(target):
        return
    files.make_directory(options.output_dir)
    for ending in ("", ".json"):
        with (
            files.open_binary(done[0] + ending) as source,
            files.writing(target + ending) as file,
        ):
            shutil.copyfileobj(source, file)


def _has_predicted(options: RunClassifier) -> bool:
    directory = options.run_directory
    variant = directory.variant_of_results("test", options.test_file)
    splits = [s + variant for s in tasks.get(options).data.splits("test")]
    return all(
        directory.has(file_names.scores(split))
        or directory.has(file_names.predictions(split, "txt"))
        for split in splits
    )


def run_options(
    setting: Setting, options: RunClassifier, **changes: Any
) -> RunClassifier:
    """Returns the options of a run, in a directory named after the setting.

    `changes` are values of other flags.
    """
    name = ",".join(f"{key}={value}" for key, value in setting.items())
    changes["output_dir"] = os.path.join(options.output_dir, name)
    changes |= {"sweep": "", "do_eval": True, **setting}
    return options.replace(**changes).resolve()


def require_same_run(
    task: Task, options: RunClassifier, names: Collection[str]
) -> None:
    """Raises `InputError` if an earlier run had other named flags or data."""
    data_files = finetuning_run.data_files(task, options, options.do_eval)
    changes = resuming.changed_inputs(options, names, data_files)
    if changes:
        raise InputError(
            f"{options.output_dir} holds a run with other flags or data:"
            f"{bullet_list(changes)}\nChoose another --output_dir, or remove "
            "that directory to repeat the run."
        )


def combinations(options: RunClassifier) -> Iterator[Setting]:
    """Yields the flags of each run of a sweep."""
    values = sweep_values.parse(options.sweep, type(options))
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _ranked(
    results: Sequence[Result], metric: str
) -> list[tuple[tuple[str, ...], list[Result]]]:
    """Groups results by the flags in `_names`; the best mean is first."""
    groups: dict[Any, list[Result]] = collections.defaultdict(list)
    for setting, result in results:
        values = (str(setting[name]) for name in _names(setting))
        groups[tuple(values)].append((setting, result))

    def mean(values: tuple[str, ...]) -> list[float]:
        scores = (score(result, metric) for _, result in groups[values])
        return [statistics.mean(column) for column in zip(*scores, strict=True)]

    return [(v, groups[v]) for v in sorted(groups, key=mean, reverse=True)]


def _names(setting: Setting) -> list[str]:
    """Returns the flags whose values the table compares."""
    return [name for name in setting if name not in _REPETITIONS]


def _write_results(
    directory: str, results: Sequence[Result], metric: str
) -> None:
    entries = [
        {"setting": setting, "results": result} for setting, result in results
    ]
    json_files.write(os.path.join(directory, file_names.SWEEP_RESULTS), entries)
    names = _names(results[0][0])
    rows = [(*names, f"best {metric}", "mean", "deviation", "runs")]
    for values, group in _ranked(results, metric):
        scores = [result[metric] for _, result in group]
        cells = [f"{max(scores):.4f}", f"{statistics.mean(scores):.4f}", "-"]
        if len(scores) > 1:
            cells[-1] = f"{statistics.stdev(scores):.4f}"
        rows.append((*values, *cells, str(len(scores))))
    write_table(os.path.join(directory, file_names.SWEEP_TABLE), rows)


def write_table(path: str, rows: Sequence[Sequence[str]]) -> None:
    """Writes and logs a table of results."""
    text = tables.to_tsv(rows)
    files.write_text(path, text)
    logging.info(f"Results in {path}:\n{text.expandtabs(16)}")
