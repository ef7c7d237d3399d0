r"""Fine-tuning from pre-trained weights against random weights.

  python -m benchmarks.pretraining_gain \
    FOLDER VOCAB_FILE BERT_CONFIG_FILE INIT_CHECKPOINT OUTPUT_DIR

FOLDER contains the data of the tasks (`glue/MRPC`, ..., `pos`, `squad`). Each
row of the table is one command for random weights and one for INIT_CHECKPOINT,
with three seeds each; SQuAD takes a command for each seed. Finished runs are
not repeated. For two layers of 128 it takes about an hour on two cores.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

SEEDS = (1, 2, 3)
COMMON = {
    "learning_rate": 3e-4,
    "train_batch_size": 32,
    "eval_batch_size": 32,
    "save_checkpoints_steps": 100000,
    "pad_to": "bucket",
    "do_train": True,
}

# {task: (folder, flags, metric)}.
TASKS: Mapping[str, tuple[str, Mapping[str, Any], Sequence[str]]] = {
    "SST-2": ("glue/SST-2", {"num_train_epochs": 1}, ["accuracy"]),
    "MRPC": ("glue/MRPC", {}, ["f1", "accuracy"]),
    "STS-B": (
        "glue/STS-B",
        {"num_train_epochs": 10},
        ["pearson", "spearmanr"],
    ),
    "CoLA": ("glue/CoLA", {}, ["matthews_correlation"]),
    "RTE": ("glue/RTE", {"max_seq_length": 256}, ["accuracy"]),
    "POS": ("pos", {"tag_column": 1}, ["accuracy"]),
}
SQUAD = {"num_train_epochs": 0.1, "eval_pad_to": "bucket", "do_eval": True}


def run(script: str, flags: Mapping[str, Any]) -> None:
    """Prints a command and runs it."""
    words = [f"--{name}={value}" for name, value in flags.items()]
    print("python", script, *words, flush=True)
    subprocess.run([sys.executable, script, *words], check=True)


def classify(
    task: str, folder: str, flags: Mapping[str, Any], output: str
) -> list[dict[str, Any]]:
    """Returns the metric for each seed."""
    place, more, _ = TASKS[task]
    path = os.path.join(output, "sweep.json")
    seeds = "..".join(map(str, (SEEDS[0], SEEDS[-1])))
    if not os.path.exists(path) or len(read(path)) < len(SEEDS):
        run(
            "run_classifier.py",
            {
                "task_name": task,
                "data_dir": os.path.join(folder, place),
                "output_dir": output,
                "sweep": f"seed={seeds}",
                **flags,
                **more,
            },
        )
    return [entry["results"] for entry in read(path)]


def answer(
    folder: str, flags: Mapping[str, Any], output: str
) -> list[dict[str, Any]]:
    """Returns the F1 of SQuAD 1.1 for each seed."""
    results = []
    for seed in SEEDS:
        path = os.path.join(output, f"seed={seed}")
        if not os.path.exists(os.path.join(path, "eval_results.json")):
            run(
                "run_squad.py",
                {
                    "train_file": f"{folder}/squad/train-v1.1.json",
                    "predict_file": f"{folder}/squad/dev-v1.1.json",
                    "output_dir": path,
                    "seed": seed,
                    **flags,
                    **SQUAD,
                },
            )
        results.append(read(os.path.join(path, "eval_results.json")))
    return results


def read(path: str) -> Any:
    """Reads a JSON file."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def shown(results: Sequence[Mapping[str, Any]], metric: str) -> str:
    """Returns mean and standard deviation in percent."""
    percent = 1 if metric == "exact_match" or "total" in results[0] else 100
    values = [percent * result[metric] for result in results]
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def main(
    folder: str,
    vocab_file: str,
    bert_config_file: str,
    init_checkpoint: str,
    output_dir: str,
) -> None:
    """Runs what is missing, then prints the table."""
    flags = {
        **COMMON,
        "vocab_file": vocab_file,
        "bert_config_file": bert_config_file,
    }
    starts: dict[str, dict[str, Any]] = {
        "random": {},
        "pre-trained": {"init_checkpoint": init_checkpoint},
    }
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for task in (*TASKS, "SQuAD"):
        found[task] = {}
        for start, init in starts.items():
            output = os.path.join(output_dir, task, start)
            found[task][start] = (
                answer(folder, {**flags, **init}, output)
                if task == "SQuAD"
                else classify(task, folder, {**flags, **init}, output)
            )
    print(f"\n{'task':6} {'metric':21} {'random':>13} {'pre-trained':>13}")
    for task, by_start in found.items():
        metrics = ["exact_match", "f1"] if task == "SQuAD" else TASKS[task][2]
        for metric in metrics:
            cells = [shown(by_start[start], metric) for start in starts]
            print(f"{task:6} {metric:21} {cells[0]:>13} {cells[1]:>13}")


if __name__ == "__main__":
    main(*sys.argv[1:])
