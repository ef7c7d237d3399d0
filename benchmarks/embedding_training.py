"""Seconds per training step on pairs, here and in sentence-transformers.

  python -m benchmarks.embedding_training MODEL PAIRS PYTHON [STEPS]

MODEL is a directory of sentence-transformers with a mean pooling, and PYTHON
has that package. PAIRS is a file for --train_file without negatives. Both sides
train on the same tokens of its first STEPS (30) batches of 32 pairs, with the
same loss (MultipleNegativesRankingLoss, temperature 0.05), dropout, clipping
and AdamW. Ours pads both texts to the length of the longer one, as training
does; sentence-transformers pads each to its own. Tokenization is not measured.
Each row is a process of its own, and the best of three rounds; `loss` is that
of the first batch, before training and without dropout.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

BATCH_SIZE = 32
RATE, TEMPERATURE = 2e-5, 0.05
PEER = "sentence-transformers"
ROWS = tuple(
    f"{project}, {precision}"
    for precision in ("float32", "bfloat16")
    for project in (PEER, "ours")
)

Batch = dict[str, np.ndarray]
# The loss of a batch without dropout, and a training step, which returns one.
Functions = tuple[Callable[[Batch], float], Callable[[Batch], float]]


def write_batches(model: str, pairs: str, steps: int, path: str) -> None:
    """Writes the batches as `run_classifier.py` makes them."""
    from official_bert import tasks
    from official_bert.commands import run_classifier
    from official_bert.inputs import padding
    from official_bert.options import RunClassifier

    options = RunClassifier(
        model=model,
        train_file=pairs,
        dev_share=0.0,
        task_type="embedding",
        output_dir=f"{path}.run",
    )
    options, rows = run_classifier.resolve(options)
    task = tasks.get(options, rows)
    examples = task.data.read("train")[: steps * BATCH_SIZE]
    if len(examples) < steps * BATCH_SIZE:
        raise SystemExit(f"{pairs} must have {steps * BATCH_SIZE} pairs.")
    tokenizer, limit = options.model_files.tokenizer, options.max_seq_length
    arrays: dict[str, Any] = {}
    for number in range(steps):
        block = examples[number * BATCH_SIZE :][:BATCH_SIZE]
        [features] = task.featurize(block, tokenizer, limit)
        length = padding.padded_length(max(features.lengths), limit, "bucket")
        batch = features.batch(range(BATCH_SIZE), length, BATCH_SIZE)
        arrays |= {f"{number}/{name}": batch[name] for name in batch}
    np.savez(path, **arrays)


def read_batches(path: str) -> list[Batch]:
    arrays = np.load(path)
    numbers = {int(name.split("/")[0]) for name in arrays}
    names = {name.split("/")[1] for name in arrays}
    return [{k: arrays[f"{n}/{k}"] for k in names} for n in sorted(numbers)]


def our_functions(directory: str, precision: str) -> Functions:
    import tensorflow as tf

    from benchmarks.step import training_step
    from official_bert.modeling.finetuning_models import build_model
    from official_bert.sources import loading, pretrained
    from official_bert.sources.formats.tf1 import checkpoint as tf1
    from official_bert.sources.heads import Head
    from official_bert.training import precision as training_precision
    from official_bert.training.objectives import EmbeddingObjective

    model_files = pretrained.find(directory)
    head = Head("encoder", 0, "ranking", temperature=TEMPERATURE)
    objective = EmbeddingObjective(head)
    with training_precision.policy("none", precision):
        model = build_model(head, model_files.config)
    loading.load(
        tf1.by_name(model.trainable_variables),
        model_files.init_checkpoint,
        model_files=model_files,
        may_initialize="^bert/pooler/",
    )
    _, step = training_step(model, objective, reduce_retracing=True)
    evaluate = tf.function(
        lambda batch: objective.loss_sums(model, batch, False)["loss"]
    )

    def tensors(batch: Batch) -> dict[str, Any]:
        return {name: tf.constant(batch[name]) for name in batch}

    return (
        lambda batch: float(evaluate(tensors(batch))) / BATCH_SIZE,
        lambda batch: float(step(tensors(batch))["loss"]),
    )


def peer_functions(directory: str, precision: str) -> Functions:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(directory, device="cpu")
    loss = MultipleNegativesRankingLoss(model, scale=1 / TEMPERATURE)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.01)
    names = {
        "input_ids": "input_ids",
        "attention_mask": "input_mask",
        "token_type_ids": "segment_ids",
    }

    def compute(batch: Batch) -> Any:
        columns = []
        for column in range(2):
            longest = batch["input_mask"][:, column].sum(1).max()
            values = {
                name: torch.tensor(batch[ours][:, column, :longest]).long()
                for name, ours in names.items()
            }
            columns.append(values)
        with torch.autocast("cpu", torch.bfloat16, precision == "bfloat16"):
            return loss(columns, None)

    def evaluate(batch: Batch) -> float:
        model.eval()
        with torch.no_grad():
            return float(compute(batch))

    def train(batch: Batch) -> float:
        model.train()
        optimizer.zero_grad()
        value = compute(batch)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(value)

    return evaluate, train


def measure(row: str, model: str, path: str) -> None:
    """Prints the loss of the first batch, and the seconds of the best step."""
    project, precision = row.split(", ")
    make = peer_functions if project == PEER else our_functions
    evaluate, train = make(model, precision)
    batches = read_batches(path)
    loss = evaluate(batches[0])
    for batch in batches:  # Compiles the step for all shapes.
        train(batch)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        for batch in batches:
            train(batch)
        seconds.append((time.perf_counter() - start) / len(batches))
    print(json.dumps([loss, min(seconds)]))


def shape_of(path: str) -> str:
    """Describes the batches: the mean lengths of both texts, and padded."""
    batches = read_batches(path)
    masks = np.concatenate([b["input_mask"].sum(2) for b in batches])
    padded = np.mean([b["input_ids"].shape[2] for b in batches])
    first, second = masks.mean(0)
    return (
        f"{len(batches)} batches of {BATCH_SIZE} pairs; {first:.0f} and "
        f"{second:.0f} tokens on average, padded to {padded:.0f}"
    )


def main(model: str, pairs: str, python: str, steps: str = "30") -> None:
    from benchmarks.step import json_output, machine

    print(machine())
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/batches.npz"
        write_batches(model, pairs, int(steps), path)
        print(shape_of(path))
        print(f"{'':32}{'seconds':>9}{'ratio':>7}{'loss':>10}")
        baseline: dict[str, float] = {}
        for row in ROWS:
            project, precision = row.split(", ")
            command = [sys.executable, "-m", "benchmarks.embedding_training"]
            if project == PEER:
                command = [python, __file__]
            loss, seconds = json_output([*command, "--row", row, model, path])
            baseline.setdefault(precision, seconds)
            ratio = baseline[precision] / seconds
            print(f"{row:32}{seconds:9.3f}{ratio:7.2f}{loss:10.5f}", flush=True)


if __name__ == "__main__":
    arguments: Sequence[str] = sys.argv[1:]
    if arguments[0] == "--row":
        measure(*arguments[1:])
    else:
        main(*arguments)
