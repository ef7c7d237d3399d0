r"""Seconds of one step in this project and in others, best of five or more.

  python -m benchmarks.step [--peer NAME=PYTHON ...] [--cells tiny mini ...]
    [--kinds forward ...]

Each step runs in a separate process, this project and the peers in turn, on all
cores. NAME is `transformers`, `KerasHub` or `Model Garden`, and PYTHON has
torch and transformers, keras-nlp, or tf-models-official. README.md describes
the rows and columns.

On processors without AVX-512 VNNI, set TF_ENABLE_ONEDNN_OPTS=1, as our commands
do, because TensorFlow does not use oneDNN there by default.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.util import _pywrap_util_port

from benchmarks import step_peers
from benchmarks.sizes import SIZES
from official_bert.config import BertConfig
from official_bert.modeling.encoder import Bert
from official_bert.modeling.finetuning_models import build_model
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.tasks import glue
from official_bert.training.objectives import (
    FinetuningObjective,
    Objective,
    PretrainingObjective,
)
from official_bert.training.step import TrainingStep

ROUNDS = 5
# In ascending order.
INSTRUCTION_SETS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
KINDS = ("pretraining", "classifier", "prediction", "forward")


class Cell(NamedTuple):
    """A size of model and batch."""

    model: str
    batch_size: int
    length: int

    @property
    def config(self) -> BertConfig:
        """The model's config."""
        return SIZES[self.model]

    @property
    def num_predictions(self) -> int:
        """Masked tokens per instance, as in the original README."""
        return 20 if self.length == 128 else 77


CELLS = {
    "tiny": Cell("tiny", 32, 128),
    "mini": Cell("mini", 32, 128),
    "small": Cell("small", 32, 128),
    "mini-512": Cell("mini", 8, 512),
    "base": Cell("base", 8, 128),
}


def make_batch(cell: Cell) -> dict[str, Any]:
    """Returns a batch of random tokens without padding."""
    rng = np.random.default_rng(0)
    shape = (cell.batch_size, cell.length)
    masked = (cell.batch_size, cell.num_predictions)
    half = cell.length // 2
    places = np.tile(np.arange(1, cell.length), (shape[0], 1))
    integers = {
        "input_ids": rng.integers(1000, 30000, shape),
        "input_mask": np.ones(shape),
        "segment_ids": np.tile(np.arange(cell.length) >= half, (shape[0], 1)),
        "masked_lm_positions": np.sort(
            rng.permuted(places, axis=1)[:, : masked[1]], 1
        ),
        "masked_lm_ids": rng.integers(1000, 30000, masked),
        "next_sentence_labels": rng.integers(0, 2, (shape[0], 1)),
        "is_real_example": np.ones((shape[0], 1)),
    }
    batch: dict[str, Any] = {
        name: values.astype(np.int32) for name, values in integers.items()
    }
    batch["label_ids"] = batch["next_sentence_labels"]
    batch["masked_lm_weights"] = np.ones(masked, np.float32)
    return batch


def training_step(
    model: Any, objective: Objective, remat: bool = False, **options: Any
) -> tuple[AdamWeightDecay, Any]:
    """Returns an optimizer, and the compiled step as a function of batches.

    `options` are arguments of `tf.function`.
    """
    # SQuAD does not train the pooler.
    weights = getattr(model, "learning_variables", model.trainable_variables)
    optimizer = AdamWeightDecay(weights, LinearWarmupDecay(1e-4, 1000, 10))
    step = TrainingStep(
        model, objective, optimizer, seed=1, recomputes_layers=remat
    )
    return optimizer, tf.function(step.run, **options)


def our_step(cell: Cell, kind: str) -> Callable[[], Any]:
    """Returns a function that runs one step, as our commands do."""
    batch = {name: tf.constant(v) for name, v in make_batch(cell).items()}
    if kind == "forward":
        bert = Bert(cell.config)
        bert.build()
        forward = tf.function(
            lambda batch: bert(
                batch["input_ids"], batch["input_mask"], batch["segment_ids"]
            )
        )
        return lambda: forward(batch).pooled_output.numpy()
    task = glue.make_task("mrpc", "")
    model: Any
    objective: Objective
    if kind == "pretraining":
        model, objective = PretrainingModel(cell.config), PretrainingObjective()
    else:
        model = build_model(task.head, cell.config)
        objective = FinetuningObjective(task.head)
    if kind == "prediction":
        predict = tf.function(lambda batch: model(batch, training=False))
        return lambda: predict(batch).numpy()
    _, step = training_step(model, objective)
    return lambda: step(batch)["loss"].numpy()


def count_operations(cell: Cell, kind: str) -> float:
    """Returns the floating-point operations of a step's matrix products."""
    config, tokens = cell.config, cell.batch_size * cell.length
    hidden = config.hidden_size
    # Per token that is attended to, and per token that attends.
    to, by = 2 * hidden**2, 10 * hidden**2 + 2 * cell.length * hidden
    masked = 0
    if kind == "pretraining":
        masked = cell.batch_size * cell.num_predictions
    # The last layer computes only the vectors that are read.
    last = tokens if kind == "forward" else cell.batch_size + masked
    products = tokens * config.num_hidden_layers * to
    products += (tokens * (config.num_hidden_layers - 1) + last) * by
    products += cell.batch_size * hidden**2
    if masked:
        products += masked * hidden * (hidden + config.vocab_size)
    # Each product of the forward pass has two in the backward pass.
    return 2.0 * products * (1 if kind in ("prediction", "forward") else 3)


def matmul_rate(size: int = 2048) -> float:
    """Returns operations per second of a large matrix product."""
    x = tf.random.normal((size, size))
    product = tf.function(lambda: tf.matmul(x, x)[0, 0])
    return 2.0 * size**3 / min(step_peers.seconds(product, ROUNDS))


def machine() -> str:
    """Describes the processor, its instruction set, and the use of oneDNN."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        fields = dict(re.findall(r"(.*?)\t*: (.*)", file.read()))
    supported = [n for n in INSTRUCTION_SETS if n in fields["flags"].split()]
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", supported[-1])
    onednn = "on" if _pywrap_util_port.IsMklEnabled() else "off"
    return (
        f"{fields['model name']}, {os.cpu_count()} cores, {supported[-1]}; "
        f"oneDNN {onednn}, up to {limit}"
    )


def run_ours(cell: str, kind: str) -> list[float]:
    """Measures ours in a new process."""
    command = [sys.executable, "-m", "benchmarks.step", "--ours", cell, kind]
    return json_output(command)


def run_peer(name: str, python: str, cell: Cell, kind: str) -> list[float]:
    """Measures a peer in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "bert_config.json")
        batch = os.path.join(folder, "batch.npz")
        with open(config, "w", encoding="utf-8") as file:
            file.write(cell.config.to_json_string())
        np.savez(batch, **make_batch(cell))
        path = step_peers.__file__
        return json_output(
            [python, path, name, config, batch, kind, str(ROUNDS)]
        )


def json_output(command: list[str]) -> Any:
    """Runs a command; returns the value of the last line that it prints."""
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--cells", nargs="*", default=list(CELLS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--ours", nargs=2, metavar=("CELL", "KIND"))
    options = parser.parse_args()
    if options.ours:
        cell, kind = options.ours
        keras.utils.set_random_seed(0)
        step = our_step(CELLS[cell], kind)
        print(json.dumps(step_peers.seconds(step, ROUNDS)))
        return
    peers = dict(peer.split("=", 1) for peer in options.peer)
    rate = matmul_rate()
    print(machine())
    print(f"matrix products of 2048: {rate / 1e9:.0f} GFLOP/s")
    names = "".join(f"{name:>14}" for name in peers)
    print(f"{'kind':12}{'model':10}{'ours':>8}{names}  fastest/ours  share")
    for kind in options.kinds:
        for cell in options.cells:
            ours = min(run_ours(cell, kind))
            theirs = [
                min(run_peer(name, python, CELLS[cell], kind))
                for name, python in peers.items()
            ]
            share = count_operations(CELLS[cell], kind) / ours / rate
            print(
                f"{kind:12}{cell:10}{ours:8.3f}"
                + "".join(f"{other:14.3f}" for other in theirs)
                + f"{min(theirs, default=0) / ours:14.2f}{share:7.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
