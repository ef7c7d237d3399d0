r"""Seconds of one step in this project and in others, best of five or more.

  python -m benchmarks.step [--peer NAME=PYTHON ...] [--cells tiny mini ...]
    [--kinds forward ...]

Each step runs in a separate process, this project and the peers in turn, on all
cores. NAME is `transformers`, `KerasHub` or `Model Garden`, and PYTHON has
keras-nlp, tf-models-official or, for transformers, torch, transformers,
openvino, onnx and onnxruntime. README.md describes the rows and columns.

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
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.util import _pywrap_util_port

from benchmarks import step_peers
from benchmarks.sizes import SIZES
from official_bert.config import BertConfig
from official_bert.export import engine_models, quantization
from official_bert.inference import openvino_engine
from official_bert.inference.openvino_engine import OpenVinoEngine
from official_bert.inputs.schemas import text_schema
from official_bert.io import files
from official_bert.modeling.encoder import Bert
from official_bert.modeling.finetuning_models import build_model
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import RunClassifier
from official_bert.tasks import glue
from official_bert.tasks.task import FinetunedModel
from official_bert.tokenization import Tokenizer
from official_bert.training import precision as training_precision
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
TRAINING = KINDS[:2]

# {value of --peer, or "ours": {engine: its precisions}}. Only the first engine
# trains, and not in int8.
ENGINES: dict[str, dict[str, tuple[str, ...]]] = {
    "ours": {
        "TensorFlow": ("float32", "bfloat16"),
        "OpenVINO": ("float32", "bfloat16", "int8"),
    },
    "transformers": {
        "transformers": ("float32", "bfloat16"),
        "OpenVINO": ("float32", "bfloat16"),
        "ONNX Runtime": ("float32", "int8"),
    },
    "KerasHub": {"KerasHub": ("float32",)},
    "Model Garden": {"Model Garden": ("float32",)},
}


class Row(NamedTuple):
    """An engine and a precision, of this project or a peer."""

    project: str
    engine: str
    precision: str

    def __str__(self) -> str:
        engine = self.engine
        if self.project == "ours":
            engine = f"ours, {engine}"
        return f"{engine} {self.precision}"


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
    model: Any,
    objective: Objective,
    remat: bool = False,
    removes_padding: bool = False,
    **options: Any,
) -> tuple[AdamWeightDecay, Any]:
    """Returns an optimizer, and the compiled step as a function of batches.

    `options` are arguments of `tf.function`.
    """
    # SQuAD does not train the pooler.
    weights = getattr(model, "learning_variables", model.trainable_variables)
    optimizer = AdamWeightDecay(weights, LinearWarmupDecay(1e-4, 1000, 10))
    step = TrainingStep(
        model,
        objective,
        optimizer,
        seed=1,
        recomputes_layers=remat,
        removes_padding=removes_padding,
    )
    return optimizer, tf.function(step.run, **options)


def our_step(cell: Cell, kind: str, precision: str) -> Callable[[], Any]:
    """Returns a function that runs one step, as our commands do."""
    batch = {name: tf.constant(v) for name, v in make_batch(cell).items()}
    task = glue.make(RunClassifier(task_name="mrpc"))
    model: Any
    objective: Objective
    with training_precision.policy("none", precision):
        if kind == "forward":
            model = Bert(cell.config)
            model.build()
        elif kind == "pretraining":
            model = PretrainingModel(cell.config)
            objective = PretrainingObjective()
        else:
            model = build_model(task.head, cell.config)
            objective = FinetuningObjective(task.head)
    if kind == "forward":
        forward = tf.function(
            lambda batch: model(
                batch["input_ids"], batch["input_mask"], batch["segment_ids"]
            )
        )
        return lambda: forward(batch).pooled_output.numpy()
    if kind == "prediction":
        predict = tf.function(lambda batch: model(batch, training=False))
        return lambda: predict(batch).numpy()
    _, step = training_step(model, objective)
    return lambda: step(batch)["loss"].numpy()


def our_openvino_step(
    cell: Cell, kind: str, precision: str
) -> Callable[[], Any]:
    """Returns a function that runs an exported model, as `predict.py` does."""
    batch, config = make_batch(cell), cell.config
    with tempfile.TemporaryDirectory() as folder:
        vocab_file = os.path.join(folder, "vocab.txt")
        tokens = (f"[{number}]" for number in range(config.vocab_size))
        files.write_text(vocab_file, "".join(f"{token}\n" for token in tokens))
        tokenizer = Tokenizer(vocab_file)
        directory = os.path.join(folder, "exported")
        outputs = ["logits"]
        if kind == "forward":
            bert = Bert(config)
            bert.build()
            engine_models.write_pretrained(bert, tokenizer, directory)
            last = openvino_engine.layer_name(config.num_hidden_layers - 1)
            outputs = [last, "pooled_output"]
        else:
            task = glue.make(RunClassifier(task_name="mrpc"))
            model = build_model(task.head, config)
            engine_models.write_finetuned(
                FinetunedModel(task, model, tokenizer, cell.length), directory
            )
        if precision == "int8":
            inputs = {name: batch[name] for name in text_schema(0)}
            int8 = os.path.join(folder, "int8")
            os.mkdir(int8)
            quantization.write_int8(directory, int8, [inputs])
            directory, precision = int8, "float32"
        engine = OpenVinoEngine(directory, outputs, precision)
    return lambda: engine(batch)


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


def matmul_rate(precision: str, size: int = 2048) -> float:
    """Returns operations per second of a large matrix product."""
    x = tf.cast(tf.random.normal((size, size)), precision)
    product = tf.function(lambda: tf.matmul(x, x)[0, 0])
    return 2.0 * size**3 / min(step_peers.seconds(product, ROUNDS))


def machine() -> str:
    """Describes the processor, its instructions, and the use of oneDNN."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        fields = dict(re.findall(r"(.*?)\t*: (.*)", file.read()))
    supported = [n for n in INSTRUCTION_SETS if n in fields["flags"].split()]
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", supported[-1])
    amx = "AMX" if "amx_bf16" in supported else "no AMX"
    onednn = "on" if _pywrap_util_port.IsMklEnabled() else "off"
    return (
        f"{fields['model name']}, {os.cpu_count()} cores, {supported[-1]}, "
        f"{amx}; oneDNN {onednn}, up to {limit}"
    )


def run_row(row: Row, python: str, cell: str, kind: str) -> list[float]:
    """Measures a row in a new process; returns the seconds of each round."""
    project, engine, precision = row
    if project == "ours":
        module = [python, "-m", "benchmarks.step"]
        return json_output([*module, "--ours", engine, precision, cell, kind])
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "bert_config.json")
        batch = os.path.join(folder, "batch.npz")
        files.write_text(config, CELLS[cell].config.to_json_string())
        np.savez(batch, **make_batch(CELLS[cell]))
        command = [python, step_peers.__file__, engine, precision]
        return json_output([*command, config, batch, kind, str(ROUNDS)])


def json_output(command: list[str]) -> Any:
    """Runs a command; returns the value of the last line that it prints."""
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def find_rows(peers: Iterable[str], kind: str) -> list[Row]:
    """Returns the rows of this project and of peers."""
    rows = []
    for project in ("ours", *peers):
        for number, (engine, precisions) in enumerate(ENGINES[project].items()):
            if not (kind in TRAINING and number):
                rows += [Row(project, engine, name) for name in precisions]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--cells", nargs="*", default=list(CELLS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--ours", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ours:
        engine, precision, cell, kind = options.ours
        keras.utils.set_random_seed(0)
        make_step = our_openvino_step if engine == "OpenVINO" else our_step
        step = make_step(CELLS[cell], kind, precision)
        print(json.dumps(step_peers.seconds(step, ROUNDS)))
        return
    pythons = {"ours": sys.executable}
    pythons |= dict(peer.split("=", 1) for peer in options.peer)
    rates = {name: matmul_rate(name) for name in ("float32", "bfloat16")}
    print(machine())
    for precision, rate in rates.items():
        print(f"matrix products of 2048, {precision}: {rate / 1e9:.0f} GFLOP/s")
    for kind in options.kinds:
        rows = find_rows(list(pythons)[1:], kind)
        texts = {row: f"{row!s:26}" for row in rows}
        for cell in options.cells:  # All rows of a cell, one after the other.
            for row in rows:
                seconds = min(run_row(row, pythons[row.project], cell, kind))
                operations = count_operations(CELLS[cell], kind)
                share = ""
                if row.precision in rates:
                    share = f"{operations / seconds / rates[row.precision]:.0%}"
                texts[row] += f"{seconds:9.4f}{share:>5}"
                print(kind, cell, row, seconds, file=sys.stderr)
        header = "".join(f"{cell:>14}" for cell in options.cells)
        print(f"\n{kind:26}{header}", *texts.values(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
