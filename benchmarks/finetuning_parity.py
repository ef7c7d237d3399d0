r"""Fine-tuning compared with Hugging Face's Trainer, from the same weights.

  python -m benchmarks.finetuning_parity DATA_DIR MODEL TORCH_PYTHON \
    [--tasks MRPC RTE CoLA STS-B SST-2] [--seeds=3] [--num_train_epochs=3]

DATA_DIR contains `glue/MRPC` and so on. MODEL is a directory of transformers,
and TORCH_PYTHON a Python with torch, transformers and accelerate. Both sides
get the same tokens, batch size, learning rate, warm-up, decay and number of
epochs, dropout as in MODEL's config, and bias correction in Adam. Initial
output layers, orders of examples and dropout masks are different draws. Prints
a row for each task: the metric, as mean and standard deviation over the seeds,
the difference with its standard error over pairs of seeds, and the minutes of
a run, start-up included.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks import padding
from benchmarks.pretraining_gain import TASKS
from official_bert.io import files, json_files
from official_bert.tasks import glue
from official_bert.tasks.text import TextTask
from official_bert.tokenization import Tokenizer

TRAINER = os.path.join(os.path.dirname(__file__), "parity_trainer.py")
BATCH_SIZE, LENGTH = 32, 128
LEARNING_RATE, WARMUP_PROPORTION = 5e-5, 0.1


class Run(NamedTuple):
    """The result of a run: the main metric, in percent, and minutes."""

    metric: float
    minutes: float


def our_run(name: str, seed: int, arguments: Any, scratch: str) -> Run:
    metric = TASKS[name].metrics[0]
    output_dir = os.path.join(scratch, "ours")
    flags = {
        "task_name": name,
        "data_dir": os.path.join(arguments.data_dir, TASKS[name].directory),
        "model": arguments.model,
        "output_dir": output_dir,
        "seed": seed,
        "max_seq_length": LENGTH,
        "train_batch_size": BATCH_SIZE,
        "eval_batch_size": BATCH_SIZE,
        "save_checkpoints_steps": 1000000,
        "pad_to": "bucket",
        "learning_rate": LEARNING_RATE,
        "warmup_proportion": WARMUP_PROPORTION,
        "num_train_epochs": arguments.num_train_epochs,
    }
    switches = ["--do_train", "--do_eval", "--adam_bias_correction"]
    words = [f"--{flag}={value}" for flag, value in flags.items()]
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "run_classifier.py", *switches, *words],
        check=True,
        capture_output=True,
    )
    minutes = (time.perf_counter() - start) / 60
    results = json_files.read(os.path.join(output_dir, "eval_results.json"))
    return Run(100 * results[metric], minutes)


def trainer_run(name: str, seed: int, arguments: Any, scratch: str) -> Run:
    task = _task(name, arguments.data_dir)
    tokenizer: Any = Tokenizer.from_pretrained(arguments.model)
    features: Any
    for split in ("train", "dev"):
        examples, rows = task.data.read(split), []
        for features in task.featurize(examples, tokenizer, LENGTH):
            rows += padding.unpadded(features, LENGTH)
        padding.save_rows(os.path.join(scratch, f"{split}.json"), rows)
    settings = {
        "seed": seed,
        "per_device_train_batch_size": BATCH_SIZE,
        "per_device_eval_batch_size": BATCH_SIZE,
        "learning_rate": LEARNING_RATE,
        "warmup_steps": WARMUP_PROPORTION,  # Less than 1: a share.
        "num_train_epochs": arguments.num_train_epochs,
    }
    files.write_text(
        os.path.join(scratch, "settings.json"), json.dumps(settings)
    )
    start = time.perf_counter()
    subprocess.run(
        [arguments.torch_python, TRAINER, arguments.model, scratch],
        check=True,
        capture_output=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.getcwd()},
    )
    minutes = (time.perf_counter() - start) / 60
    logits = np.load(os.path.join(scratch, "logits.npy"))
    # The development set is one block of features.
    results = task.metrics(examples, task.answers(features, list(logits)))
    return Run(100 * results[TASKS[name].metrics[0]], minutes)


def _task(name: str, data_dir: str) -> TextTask:
    directory = os.path.join(data_dir, TASKS[name].directory)
    return glue.make_task(name.lower().replace("-", ""), directory)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir")
    parser.add_argument("model")
    parser.add_argument("torch_python")
    names = [name for name, task in TASKS.items() if "glue" in task.directory]
    parser.add_argument("--tasks", nargs="+", default=names, choices=names)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--num_train_epochs", type=float, default=3)
    arguments = parser.parse_args()
    print("task    ours          Trainer       difference    minutes  Trainer")
    for name in arguments.tasks:
        pairs = []
        for seed in range(1, arguments.seeds + 1):
            with tempfile.TemporaryDirectory() as scratch:
                ours = our_run(name, seed, arguments, scratch)
                peer = trainer_run(name, seed, arguments, scratch)
                pairs.append((ours, peer))
        metrics = np.array([[run.metric for run in pair] for pair in pairs])
        columns = [*metrics.T, metrics[:, 0] - metrics[:, 1]]
        cells = [f"{column.mean():6.1f}" for column in columns]
        if len(pairs) > 1:
            spreads = [column.std(ddof=1) for column in columns]
            spreads[2] /= len(pairs) ** 0.5
            for side, spread in enumerate(spreads):
                cells[side] += f" ±{spread:4.1f}"
        minutes = [
            statistics.fmean(pair[side].minutes for pair in pairs)
            for side in (0, 1)
        ]
        print(
            f"{name:6}",
            *(f"{cell:13}" for cell in cells),
            *(f"{value:8.2f}" for value in minutes),
            flush=True,
        )


if __name__ == "__main__":
    main()
