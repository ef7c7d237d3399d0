r"""How results vary with the seed, in the 2018 release and with --train_file.

  python -m benchmarks.finetuning_stability DATA_DIR OUTPUT_DIR \
    [--tasks STS-B MRPC RTE CoLA] [--seeds=20] [--figure=stability.png]

The model is `bert_tiny_demo`. With --train_file, Adam's bias is corrected, and
the learning rate is higher for single texts. DATA_DIR contains `glue/MRPC` and
so on. Prints, for each task and setting, the lowest, median and highest metric
on the development set, in percent, and the number of failed runs. A run has
failed if its metric is more than 10 points below the higher one of the two
medians, or below the metric of always predicting the most frequent label. With
--figure, draws the metric of each run. Finished runs are not repeated.
"""

import argparse
import os
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.pretraining_gain import FLAGS, TASKS, sweep
from official_bert.plots import figures

# The accuracy of the most frequent label. Correlations are 0 without a model.
MAJORITY = {"MRPC": 68.4, "RTE": 52.7}
# {setting: {task: its learning rate}}. CoLA has single texts, the others pairs.
RATES = {"STS-B": 3e-4, "MRPC": 3e-4, "RTE": 3e-4, "CoLA": 3e-4}
SETTINGS = {"2018": RATES, "own data": {**RATES, "CoLA": 7e-4}}


def metrics(
    name: str, setting: str, arguments: argparse.Namespace
) -> list[float]:
    """Returns the metric of each seed, in percent."""
    task = TASKS[name]
    flags = {
        **FLAGS,
        "model": "bert_tiny_demo",
        "task_name": name,
        "data_dir": os.path.join(arguments.data_dir, task.directory),
        "num_train_epochs": 3,
        **task.flags,
        "learning_rate": SETTINGS[setting][name],
        "adam_bias_correction": setting == "own data",
    }
    runs = sweep(
        os.path.join(arguments.output_dir, name, setting.replace(" ", "_")),
        flags,
        seed=range(1, arguments.seeds + 1),
    )
    return [100 * run["results"][task.metrics[0]] for run in runs]


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
    parser.add_argument(
        "--tasks", nargs="+", default=list(RATES), choices=RATES
    )
    parser.add_argument("--seeds", type=int, default=20)
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
