r"""How results vary with the seed, in the 2018 release and with --train_file.

  python -m benchmarks.finetuning_stability DATA_DIR OUTPUT_DIR \
    [--model=bert_tiny_demo] [--learning_rate=3e-4] \
    [--tasks STS-B MRPC RTE CoLA] [--seeds=20] [--figure=stability.png] \
    [--matmul_precision=float32]

Each task is fine-tuned as the 2018 release does it (--task_name), with
--learning_rate, and with the defaults of --train_file. DATA_DIR contains
`glue/MRPC` and so on. Prints, for each task and setting, the lowest, median and
highest metric on the development set, in percent, and the number of failed
runs. A run has failed if its metric is more than 10 points below the higher one
of the two medians, or below the metric of always predicting the most frequent
label. With --figure, draws the metric of each run. Finished runs are not
repeated.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.pretraining_gain import FLAGS, TASKS, sweep
from official_bert.metrics import classification
from official_bert.plots import figures

# The accuracy of the most frequent label. Correlations are 0 without a model.
MAJORITY = {"MRPC": 68.4, "RTE": 52.7}
PAIR = {"text_column": "sentence1", "text_b_column": "sentence2"}
# {task: the flags of its table}
TABLES: dict[str, dict[str, Any]] = {
    "STS-B": {**PAIR, "label_column": "score", "task_type": "regression"},
    "MRPC": {
        "text_column": "#1 String",
        "text_b_column": "#2 String",
        "label_column": "Quality",
    },
    "RTE": {**PAIR, "label_column": "label"},
    "CoLA": {"has_header": False, "text_column": 3, "label_column": 1},
}
SETTINGS = "2018", "own data"


def metrics(
    name: str, setting: str, arguments: argparse.Namespace
) -> list[float]:
    """Returns the metric of each seed, in percent."""
    task = TASKS[name]
    data_dir = os.path.join(arguments.data_dir, task.directory)
    flags: dict[str, Any] = {
        "model": arguments.model,
        "matmul_precision": arguments.matmul_precision,
    }
    if setting == "2018":
        flags |= {**FLAGS, **task.flags, "task_name": name}
        flags |= {"data_dir": data_dir, "do_eval": True}
        flags["learning_rate"] = arguments.learning_rate
    else:
        flags |= TABLES[name]
        flags |= {f"{s}_file": f"{data_dir}/{s}.tsv" for s in ("train", "dev")}
    runs = sweep(
        os.path.join(arguments.output_dir, name, setting.replace(" ", "_")),
        flags,
        seed=range(1, arguments.seeds + 1),
    )
    results = [run["results"] for run in runs]
    if name == "CoLA":
        return [100 * matthews(r["confusion_matrix"]) for r in results]
    return [100 * r[task.metrics[0]] for r in results]


def matthews(confusion_matrix: Sequence[Sequence[int]]) -> float:
    """Returns Matthews' correlation, which own tables lack."""
    classes = [(0, 0), (0, 1), (1, 0), (1, 1)]
    answers = np.repeat(classes, np.ravel(confusion_matrix), axis=0)
    return classification.matthews(*answers.T)["matthews_correlation"]


def rows(name: str, by_setting: Mapping[str, Sequence[float]]) -> list[str]:
    """Returns the rows of a task: {setting: metrics} in a table."""
    best = max(float(np.median(values)) for values in by_setting.values())
    limit = max(best - 10, MAJORITY.get(name, 0.0))
    lines = []
    for label, values in by_setting.items():
        low, median, high = np.percentile(values, [0, 50, 100])
        failed = sum(value < limit for value in values)
        lines.append(
            f"| {name} | {label} | {low:.1f} | {median:.1f} | {high:.1f} "
            f"| {failed} of {len(values)} |"
        )
    return lines


def draw(path: str, measured: Mapping[str, Mapping[str, list[float]]]) -> None:
    """Draws {task: {setting: metrics}}, a panel for each task."""
    with figures.figure(9.6, 3.0) as figure:
        panels = figure.subplots(1, len(measured))
        for panel, (name, by_setting) in zip(
            np.atleast_1d(panels), measured.items(), strict=True
        ):
            for x, values in enumerate(by_setting.values()):
                spread = np.linspace(-0.2, 0.2, len(values))
                panel.plot(x + spread, values, "o", alpha=0.6, markersize=4)
                median = float(np.median(values))
                panel.hlines(median, x - 0.3, x + 0.3, colors="black")
            metric = TASKS[name].metrics[0].split("_")[0].title()
            panel.set_title(f"{name}, {metric} (%)")
            panel.set_xticks(range(len(by_setting)), list(by_setting))
        figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir")
    parser.add_argument("output_dir")
    parser.add_argument("--model", default="bert_tiny_demo")
    parser.add_argument("--learning_rate", default="3e-4")
    parser.add_argument(
        "--tasks", nargs="+", default=list(TABLES), choices=TABLES
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--matmul_precision", default="float32")
    parser.add_argument("--figure", help="a PNG file")
    arguments = parser.parse_args()
    measured: dict[str, dict[str, list[float]]] = {}
    print("| task | setting | lowest | median | highest | failed runs |")
    print("|---" * 6 + "|")
    for name in arguments.tasks:
        measured[name] = {
            setting: metrics(name, setting, arguments) for setting in SETTINGS
        }
        print(*rows(name, measured[name]), sep="\n", flush=True)
    if arguments.figure:
        draw(arguments.figure, measured)


if __name__ == "__main__":
    main()
