r"""Fine-tuning compared with Hugging Face's Trainer, from the same weights.

  python -m benchmarks.finetuning_parity DATA_DIR MODEL TORCH_PYTHON \
    [--tasks MRPC RTE CoLA STS-B SST-2 POS SQuAD] [--seeds 1 2 3] \
    [--num_train_epochs=3] [--runs=FILE]

DATA_DIR contains `glue/MRPC`, ..., `pos` and `squad`. MODEL is a directory of
transformers, and TORCH_PYTHON a Python with torch, transformers and accelerate.
The Trainer gets our initial output layer, batches and learning rates of all
steps, and our dropout before the output layer, so that only dropout masks
differ. Both sides have the dropout of MODEL's config and bias correction in
Adam. SST-2 and SQuAD have one epoch; SQuAD has the first 10,000 questions.
Prints a row for each task: the metric here, in float32 and with
--matmul_precision=bfloat16, and with the Trainer, as mean and standard
deviation over the seeds; the difference of the two in float32 with its standard
error over pairs of seeds; and the minutes of a run, start-up included. `--runs`
names a file of finished runs, one JSON object per line: runs in it are not
repeated, new ones are appended.
"""

import argparse
import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import padding
from benchmarks.pretraining_gain import TASKS
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.io import files, json_files
from official_bert.modeling.finetuning_models import build_model
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import RunClassifier, RunSquad
from official_bert.sources import heads, pretrained
from official_bert.tasks import glue, record_files
from official_bert.tasks.conll import ConllData
from official_bert.tasks.squad.task import SquadData, SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tokenization import Tokenizer
from official_bert.training import checkpointing

TRAINER = os.path.join(os.path.dirname(__file__), "parity_trainer.py")
BATCH_SIZE, LENGTH, STRIDE = 32, 128, 64
NUM_QUESTIONS = 10000  # Of SQuAD.
LEARNING_RATE, WARMUP_PROPORTION = 5e-5, 0.1


class Run(NamedTuple):
    """The result of a run: the main metric, in percent, and minutes."""

    metric: float
    minutes: float


def our_run(
    name: str,
    seed: int,
    arguments: Any,
    scratch: str,
    matmul_precision: str = "float32",
) -> Run:
    output_dir = os.path.join(scratch, "ours")
    flags = {
        "model": arguments.model,
        "output_dir": output_dir,
        "seed": seed,
        "max_seq_length": LENGTH,
        "train_batch_size": BATCH_SIZE,
        "save_checkpoints_steps": 1000000,
        "pad_to": "bucket",
        "learning_rate": LEARNING_RATE,
        "warmup_proportion": WARMUP_PROPORTION,
        "num_train_epochs": epochs(name, arguments),
        "matmul_precision": matmul_precision,
    }
    if name == "SQuAD":
        script, files_of_squad = "run_squad.py", squad_files(arguments, scratch)
        paths = zip(("train_file", "predict_file"), files_of_squad, strict=True)
        flags |= {**dict(paths), "doc_stride": STRIDE, "eval_pad_to": "bucket"}
    else:
        script, task = "run_classifier.py", TASKS[name]
        flags["data_dir"] = os.path.join(arguments.data_dir, task.directory)
        flags |= {**task.flags, "task_name": name, "max_seq_length": LENGTH}
    switches = ["--do_train", "--do_eval", "--adam_bias_correction"]
    words = [f"--{flag}={value}" for flag, value in flags.items()]
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, script, *switches, *words],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    minutes = (time.perf_counter() - start) / 60
    results = json_files.read(os.path.join(output_dir, "eval_results.json"))
    return Run(percent(name, results), minutes)


def trainer_run(name: str, seed: int, arguments: Any, scratch: str) -> Run:
    task = make_task(name, arguments, scratch)
    tokenizer: Any = Tokenizer.from_pretrained(arguments.model)
    # Draws the output layer and the order of examples as our run does.
    checkpointing.set_seed(seed)
    model = build_model(task.head, pretrained.find(arguments.model).config)
    layer = {"weight": model.output_weights, "bias": model.output_bias}
    np.savez(os.path.join(scratch, "output_layer.npz"), **layer)
    checkpointing.set_seed(seed)
    rows, rates = training_steps(
        name, task, tokenizer, seed, arguments, scratch
    )
    padding.save_rows(os.path.join(scratch, "train.json"), rows)
    examples, rows = task.data.read("dev"), []
    features: Any
    for features in task.featurize(examples, tokenizer, LENGTH):
        rows += padding.unpadded(features, LENGTH)
    padding.save_rows(os.path.join(scratch, "dev.json"), rows)
    kind = heads.KINDS[task.head.kind]
    settings = {
        "suffix": kind.suffix,
        "num_labels": task.head.num_outputs,
        "dropout": kind.dropout,
        "rates": rates,
        "seed": seed,
        "per_device_train_batch_size": BATCH_SIZE,
        "per_device_eval_batch_size": BATCH_SIZE,
    }
    files.write_text(
        os.path.join(scratch, "settings.json"), json.dumps(settings)
    )
    start = time.perf_counter()
    subprocess.run(
        [arguments.torch_python, TRAINER, arguments.model, scratch],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.getcwd()},
    )
    minutes = (time.perf_counter() - start) / 60
    logits = np.load(os.path.join(scratch, "logits.npy"))
    # The development set is one block of features.
    results = task.metrics(examples, task.answers(features, list(logits)))
    return Run(percent(name, results), minutes)


def training_steps(
    name: str,
    task: Any,
    tokenizer: Tokenizer,
    seed: int,
    arguments: Any,
    scratch: str,
) -> tuple[list[dict[str, np.ndarray]], list[float]]:
    """Returns the rows of our batches, in order, and the learning rates."""
    examples = task.data.read("train")
    path = os.path.join(scratch, "train.tf_record")
    metadata = record_files.write_records(
        path, task, examples, tokenizer, LENGTH
    )
    num_examples = len(examples)
    if task.epoch_has_all_features:
        num_examples = metadata["num_records"]
    num_steps = int(num_examples / BATCH_SIZE * epochs(name, arguments))
    batches = datasets.finetuning_batches(
        RecordFiles([path], task.schema(LENGTH)),
        BATCH_SIZE,
        seed=seed,
        num_examples=num_steps * BATCH_SIZE,
        pad_to="bucket",
    )
    rows = []
    for batch in batches.as_numpy_iterator():
        for number, mask in enumerate(batch["input_mask"]):
            rows.append({k: v[number][: mask.sum()] for k, v in batch.items()})
    schedule = LinearWarmupDecay(
        LEARNING_RATE, num_steps, int(num_steps * WARMUP_PROPORTION)
    )
    return rows, [float(schedule(step)) for step in range(num_steps)]


def epochs(name: str, arguments: Any) -> float:
    return 1 if name in ("SST-2", "SQuAD") else arguments.num_train_epochs


def percent(name: str, results: dict[str, float]) -> float:
    """Returns the last metric of SQuAD, F1, or the first one of a task."""
    if name == "SQuAD":
        return results["f1"]
    return 100 * results[TASKS[name].metrics[0]]


def make_task(name: str, arguments: Any, scratch: str) -> Any:
    directory = os.path.join(arguments.data_dir, TASKS[name].directory)
    if name == "SQuAD":
        train_file, dev_file = squad_files(arguments, scratch)
        options = RunSquad(train_file=train_file, predict_file=dev_file)
        return SquadTask(data=SquadData(options), doc_stride=STRIDE)
    if name == "POS":
        tags = ConllData(directory, tag_column=TASKS[name].flags["tag_column"])
        tags = dataclasses.replace(tags, labels=tags.training_labels())
        return TaggingTask(labels=tuple(tags.labels), data=tags)
    return glue.make(RunClassifier(task_name=name, data_dir=directory))


def squad_files(arguments: Any, scratch: str) -> tuple[str, str]:
    """Writes the first questions of SQuAD 1.1; returns the two paths."""
    directory = os.path.join(arguments.data_dir, TASKS["SQuAD"].directory)
    content = json_files.read(os.path.join(directory, "train-v1.1.json"))
    left = NUM_QUESTIONS
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"] = paragraph["qas"][:left]
            left -= len(paragraph["qas"])
    path = os.path.join(scratch, "train.json")
    files.write_text(path, json.dumps(content))
    return path, os.path.join(directory, "dev-v1.1.json")


SIDES: dict[str, Callable[..., Run]] = {
    "ours": our_run,
    "bfloat16": functools.partial(our_run, matmul_precision="bfloat16"),
    "Trainer": trainer_run,
}


def cells(runs: list[list[Run]]) -> list[str]:
    """Returns the cells of a row: metrics, their difference, minutes."""
    metrics = np.array([[run.metric for run in row] for row in runs])
    columns = [*metrics.T, metrics[:, 0] - metrics[:, -1]]
    cells = [f"{column.mean():6.1f}" for column in columns]
    if len(runs) > 1:
        spreads = [column.std(ddof=1) for column in columns]
        spreads[-1] /= len(runs) ** 0.5
        for side, spread in enumerate(spreads):
            cells[side] += f" ±{spread:4.1f}"
    minutes = np.array([[run.minutes for run in row] for row in runs])
    return [
        *(f"{cell:13}" for cell in cells),
        *(f"{value:8.2f}" for value in minutes.mean(axis=0)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir")
    parser.add_argument("model")
    parser.add_argument("torch_python")
    parser.add_argument(
        "--tasks", nargs="+", default=list(TASKS), choices=TASKS
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--num_train_epochs", type=float, default=3)
    parser.add_argument("--runs")
    arguments = parser.parse_args()
    path = arguments.runs
    lines = files.read_lines(path) if path and files.exists(path) else []
    finished = {}
    for line in lines:
        run = json.loads(line)
        finished[run["task"], run["seed"], run["side"]] = run

    def result(name: str, seed: int, side: str) -> Run:
        if (name, seed, side) not in finished:
            with tempfile.TemporaryDirectory() as scratch:
                run = SIDES[side](name, seed, arguments, scratch)
            key = {"task": name, "seed": seed, "side": side}
            line = json.dumps({**key, **run._asdict()})
            print(line, file=sys.stderr, flush=True)
            if path:
                with open(path, "a", encoding="utf-8") as file:
                    file.write(line + "\n")
            return run
        run = finished[name, seed, side]
        return Run(run["metric"], run["minutes"])

    titles = [f"{title:13}" for title in (*SIDES, "difference")]
    print("task  ", *titles, "minutes:", *(f"{side:8}" for side in SIDES))
    for name in arguments.tasks:
        runs = [
            [result(name, seed, side) for side in SIDES]
            for seed in arguments.seeds
        ]
        print(name.ljust(6), *cells(runs), flush=True)


if __name__ == "__main__":
    main()
