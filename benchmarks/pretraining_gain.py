r"""Fine-tuning from a pre-trained model, compared with random weights.

  python -m benchmarks.pretraining_gain DATA_DIR OUTPUT_DIR --figure=gain.png

DATA_DIR contains the data of the tasks: `glue/MRPC`, ..., `pos`, `squad`. For
each task, a grid of batch sizes and learning rates is searched with one seed.
The three best settings are then trained with all seeds, and the row of the
table has the one with the best mean. The default grid is from Turc et al.
(2019), and training takes four epochs. SQuAD has one setting and two epochs.

With --figure, SST-2 and POS are also trained with few examples, and the figure
has their accuracies. Finished runs are not repeated.
"""

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from official_bert.io import files, json_files
from official_bert.plots import figures

FEW = (100, 1000, 10000)
NUM_FINALISTS = 3  # Settings of the grid that are trained with all seeds.
STARTS = {"random": {"init_checkpoint": ""}, "pre-trained": {}}
COLORS = {"random": "#8a94a3", "pre-trained": "#1d5fbf"}
FLAGS: dict[str, Any] = {
    "do_train": True,
    "pad_to": "bucket",
    "eval_batch_size": 32,
    "save_checkpoints_steps": 1000000,
    "keep_checkpoint_max": 1,
}
FEW_SETTING = {"train_batch_size": 32, "learning_rate": 3e-4}
SQUAD_SETTING = {"train_batch_size": 8, "learning_rate": 3e-4}


class Task(NamedTuple):
    """A directory of data, metrics and flags. The first metric is maximized."""

    directory: str
    metrics: Sequence[str]
    flags: Mapping[str, Any] = {}


TASKS = {
    "STS-B": Task("glue/STS-B", ["pearson", "spearmanr"]),
    "MRPC": Task("glue/MRPC", ["accuracy", "f1"]),
    "RTE": Task("glue/RTE", ["accuracy"], {"max_seq_length": 256}),
    "CoLA": Task("glue/CoLA", ["matthews_correlation"]),
    "POS": Task("pos", ["accuracy"], {"tag_column": 1}),
    "SST-2": Task("glue/SST-2", ["accuracy"]),
    # bert_tiny_demo was mostly pre-trained on 128 tokens.
    "SQuAD": Task(
        "squad",
        ["exact_match", "f1"],
        {"max_seq_length": 128, "doc_stride": 64, "max_query_length": 32},
    ),
}

Results = list[dict[str, float]]


def run(script: str, flags: Mapping[str, Any]) -> None:
    words = [f"--{name}={value}" for name, value in flags.items()]
    print("python", script, *words, flush=True)
    subprocess.run([sys.executable, script, *words], check=True)


def flags_of(
    name: str, start: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Returns the flags that all runs of a task have."""
    flags = {**FLAGS, "model": arguments.model}
    return {**flags, **TASKS[name].flags, **STARTS[start]}


def sweep(output_dir: str, flags: Mapping[str, Any], **values: Any) -> Any:
    """Runs `run_classifier.py --sweep`; returns its settings and results."""
    parts = (f"{name}={','.join(map(str, values[name]))}" for name in values)
    flags = {**flags, "sweep": ";".join(parts), "output_dir": output_dir}
    run("run_classifier.py", flags)
    return json_files.read(os.path.join(output_dir, "sweep.json"))


def search_grid(
    name: str, output_dir: str, start: str, arguments: argparse.Namespace
) -> tuple[dict[str, Any], Results]:
    """Returns the best setting of the grid, and its results for each seed.

    One seed is not enough to choose a setting: some runs learn nothing.
    """
    task = TASKS[name]
    flags = {
        **flags_of(name, start, arguments),
        "task_name": name,
        "data_dir": os.path.join(arguments.data_dir, task.directory),
        "num_train_epochs": 4,
    }
    grid = {
        "train_batch_size": arguments.batch_sizes,
        "learning_rate": arguments.learning_rates,
    }

    def metric(run: Any) -> float:
        return float(run["results"][task.metrics[0]])

    runs = sweep(output_dir, flags, **grid, seed=[1])
    runs.sort(key=metric, reverse=True)
    seeds = range(1, arguments.seeds + 1)
    finals = []
    for finalist in runs[:NUM_FINALISTS]:
        setting = {key: [finalist["setting"][key]] for key in grid}
        finals.append(sweep(output_dir, flags, **setting, seed=seeds))
    best = max(finals, key=lambda runs: statistics.mean(map(metric, runs)))
    best_setting = {key: best[0]["setting"][key] for key in grid}
    return best_setting, [run["results"] for run in best]


def train_squad(
    name: str, output_dir: str, start: str, arguments: argparse.Namespace
) -> tuple[dict[str, Any], Results]:
    """Returns the setting of SQuAD 1.1, and its results for each seed."""
    data_dir = os.path.join(arguments.data_dir, TASKS[name].directory)
    flags = {
        **flags_of(name, start, arguments),
        **SQUAD_SETTING,
        "do_eval": True,
        "eval_pad_to": "bucket",
        "train_file": f"{data_dir}/train-v1.1.json",
        "predict_file": f"{data_dir}/dev-v1.1.json",
        "num_train_epochs": 2,
    }
    results = []
    for seed in range(1, arguments.seeds + 1):
        directory = os.path.join(output_dir, f"seed={seed}")
        path = os.path.join(directory, "eval_results.json")
        if not os.path.exists(path):
            run(
                "run_squad.py", {**flags, "output_dir": directory, "seed": seed}
            )
        results.append(json_files.read(path))
    return SQUAD_SETTING, results


def with_few_examples(
    name: str, start: str, arguments: argparse.Namespace
) -> list[list[float]]:
    """Returns the accuracies for each number of examples in `FEW`."""
    output_dir = os.path.join(arguments.output_dir, "few", name)
    accuracies = []
    for number in FEW:
        part = os.path.join(output_dir, "data", str(number))
        source = os.path.join(arguments.data_dir, TASKS[name].directory)
        more_flags = write_part(source, part, number)
        flags = {
            **flags_of(name, start, arguments),
            **FEW_SETTING,
            "task_name": name,
            "data_dir": part,
            "num_train_epochs": max(4, 10000 // number),
            **more_flags,
        }
        output = os.path.join(output_dir, start, str(number))
        runs = sweep(output, flags, seed=range(1, arguments.seeds + 1))
        accuracies.append([run["results"]["accuracy"] for run in runs])
    return accuracies


def write_part(source: str, directory: str, number: int) -> dict[str, str]:
    """Writes the first training examples of a task, and its development set.

    Returns more flags of the task.
    """
    if os.path.exists(f"{source}/train.tsv"):  # GLUE: a header, then examples.
        lines = files.read_lines(f"{source}/train.tsv")
        head = itertools.islice(lines, number + 1)
        files.write_text(f"{directory}/train.tsv", "\n".join(head) + "\n")
        shutil.copy(f"{source}/dev.tsv", directory)
        return {}
    text = files.read_text(f"{source}/train.txt")
    sentences = text.split("\n\n")[:number]
    few = "".join(f"{sentence}\n\n" for sentence in sentences)
    files.write_text(f"{directory}/train.txt", few)
    shutil.copy(f"{source}/dev.txt", directory)
    # A small number of sentences may not contain all tags.
    tags = sorted({line.split("\t")[1] for line in text.split("\n") if line})
    files.write_text(f"{directory}/tags.txt", "\n".join(tags) + "\n")
    return {"label_file": f"{directory}/tags.txt"}


def draw(path: str, curves: Mapping[str, Mapping[str, Any]]) -> None:
    """Draws {task: {start: accuracies for each number of examples}}."""
    with figures.figure(7.2, 3.0) as figure:
        panels = figure.subplots(1, len(curves))
        for panel, (task, by_start) in zip(panels, curves.items(), strict=True):
            for start, accuracies in by_start.items():
                percent = [[100 * value for value in a] for a in accuracies]
                panel.errorbar(
                    FEW,
                    [statistics.mean(values) for values in percent],
                    [statistics.stdev(values) for values in percent],
                    marker="o",
                    color=COLORS[start],
                    label=start,
                )
            panel.set(title=f"{task}, accuracy (%)", xscale="log")
            panel.set_xlabel("training examples")
            panel.set_xticks(FEW, [f"{number:,}" for number in FEW])
            panel.minorticks_off()
        panels[0].legend()
        figure.savefig(path, dpi=110)


def mean_and_deviation(results: Results, metric: str) -> str:
    """Returns the mean in percent, and the standard deviation over seeds."""
    factor = 1 if "exact_match" in results[0] else 100
    values = [factor * result[metric] for result in results]
    text = f"{statistics.mean(values):.1f}"
    if len(values) > 1:
        text += f" ± {statistics.stdev(values):.1f}"
    return text


def rows(name: str, measured: Mapping[str, Any]) -> list[str]:
    """Returns a row of the table for each metric of a task."""
    lines = []
    for metric in TASKS[name].metrics:
        cells = [name, metric]
        for start in STARTS:
            setting, results = measured[start]
            batch, rate = setting.values()
            cells.append(mean_and_deviation(results, metric))
            cells.append(f"{batch}, {rate:g}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data_dir")
    parser.add_argument("output_dir")
    parser.add_argument("--model", default="bert_tiny_demo")
    parser.add_argument(
        "--tasks", nargs="*", choices=TASKS, default=list(TASKS)
    )
    parser.add_argument(
        "--batch_sizes", nargs="+", type=int, default=[8, 16, 32, 64, 128]
    )
    parser.add_argument(
        "--learning_rates",
        nargs="+",
        type=float,
        default=[3e-4, 1e-4, 5e-5, 3e-5],
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--figure", help="a PNG file")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    table = [
        "| task | metric | random weights | batch, rate |"
        " pre-trained | batch, rate |",
        "|---" * 6 + "|",
    ]
    for name in arguments.tasks:
        measure = train_squad if name == "SQuAD" else search_grid
        measured = {}
        for start in STARTS:
            output_dir = os.path.join(arguments.output_dir, name, start)
            measured[start] = measure(name, output_dir, start, arguments)
        table += rows(name, measured)
        print("\n".join(table), flush=True)
    if arguments.figure:
        curves = {
            name: {
                start: with_few_examples(name, start, arguments)
                for start in STARTS
            }
            for name in ("SST-2", "POS")
        }
        draw(arguments.figure, curves)


if __name__ == "__main__":
    main()
