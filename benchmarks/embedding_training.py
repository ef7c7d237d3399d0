"""Seconds per training step on pairs, here and in sentence-transformers.

  python -m benchmarks.embedding_training MODEL PAIRS PYTHON [STEPS]

MODEL is a directory of sentence-transformers with a mean pooling, and PYTHON
has that package. PAIRS is a file for --train_file without negatives, of 3,200
pairs or more. Both sides train on batches of 32 pairs, with the same loss
(MultipleNegativesRankingLoss, temperature 0.05), dropout, clipping and AdamW.
As in training, our batches have pairs of similar length; both sides cut padding
that all first or all second texts have. By default, sentence-transformers has
pairs in random order; it is also measured on our batches. Of 100 batches in
each order, STEPS (10) are taken, from the shortest to the longest in equal
steps. Tokenization is not measured. Each row is a process of its own, and the
best of three rounds; `loss` is the loss of the shortest of our batches, before
training and without dropout.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

BATCH_SIZE = 32
NUM_BATCHES = 100  # As many as training groups by length at a time.
RATE, TEMPERATURE = 2e-5, 0.05
PEER = "sentence-transformers"
# {order of the pairs: --pad_to}
ORDERS = {"random": "max", "by length": "bucket"}
# The first row of each precision is the baseline.
ROWS = tuple(
    (project, precision, order)
    for precision in ("float32", "bfloat16")
    for project, order in (
        (PEER, "random"),
        (PEER, "by length"),
        ("ours", "by length"),
    )
)

Batch = dict[str, np.ndarray]
# The loss of a batch without dropout, and a training step, which returns one.
Functions = tuple[Callable[[Batch], float], Callable[[Batch], float]]


def write_batches(model: str, pairs: str, steps: int, path: str) -> None:
    """Writes the batches that `run_classifier.py` makes, in both orders."""
    from official_bert import tasks
    from official_bert.commands import run_classifier
    from official_bert.inputs import datasets
    from official_bert.inputs.records import RecordFiles
    from official_bert.options import RunClassifier
    from official_bert.tasks import record_files

    options = RunClassifier(
        model=model,
        train_file=pairs,
        dev_share=0.0,
        task_type="embedding",
        output_dir=f"{path}.run",
    )
    options, rows = run_classifier.complete_options(options)
    task, records = tasks.get(options, rows), f"{path}.tf_record"
    examples, num_examples = task.data.read("train"), NUM_BATCHES * BATCH_SIZE
    if len(examples) < num_examples:
        raise SystemExit(f"{pairs} must have {num_examples} pairs.")
    tokenizer, limit = options.model_files.tokenizer, options.max_seq_length
    record_files.write_records(records, task, examples, tokenizer, limit)
    data = RecordFiles([records], task.training_schema(limit))
    arrays: dict[str, Any] = {}
    for order, pad_to in ORDERS.items():
        batches = datasets.finetuning_batches(
            data, BATCH_SIZE, seed=1, num_examples=num_examples, pad_to=pad_to
        )
        ordered = sorted(
            batches.as_numpy_iterator(), key=lambda b: lengths_of(b).sum()
        )
        for number in range(steps):
            batch = ordered[(2 * number + 1) * NUM_BATCHES // (2 * steps)]
            arrays |= {f"{order}/{number}/{k}": batch[k] for k in batch}
    np.savez(path, **arrays)


def lengths_of(batch: Batch) -> np.ndarray:
    """Returns the number of tokens of the longest text of each column."""
    lengths: np.ndarray = batch["input_mask"].sum(2).max(0)
    return lengths


def read_batches(path: str, order: str) -> list[Batch]:
    """Returns the batches of an order of pairs, the shortest first."""
    batches: dict[int, Batch] = {}
    for key, array in np.load(path).items():
        own, number, name = key.split("/")
        if own == order:
            batches.setdefault(int(number), {})[name] = array
    return [batches[number] for number in sorted(batches)]


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
    # As in training, one program serves all lengths.
    tokens = tf.TensorSpec((BATCH_SIZE, 2, None), tf.int32)
    names = ("input_ids", "input_mask", "segment_ids")
    signature = {
        **dict.fromkeys(names, tokens),
        "text_ids": tf.TensorSpec((BATCH_SIZE, 2), tf.int32),
        "label_ids": tf.TensorSpec((BATCH_SIZE, 1), tf.float32),
    }
    _, step = training_step(
        model, objective, removes_padding=True, input_signature=[signature]
    )
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
        for column, longest in enumerate(lengths_of(batch)):
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


def measure(
    project: str, precision: str, order: str, model: str, path: str
) -> None:
    """Prints the loss of a batch, and the mean seconds of the best round."""
    make = peer_functions if project == PEER else our_functions
    evaluate, train = make(model, precision)
    loss = evaluate(read_batches(path, "by length")[0])
    batches = read_batches(path, order)
    for batch in batches:  # The first steps are slower.
        train(batch)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        for batch in batches:
            train(batch)
        seconds.append((time.perf_counter() - start) / len(batches))
    print(json.dumps([loss, min(seconds)]))


def describe(path: str, order: str) -> str:
    """Describes the mean lengths of both columns, also with padding."""
    batches = read_batches(path, order)
    tokens = np.mean([b["input_mask"].sum(2).mean(0) for b in batches], axis=0)
    padded = np.mean([lengths_of(batch) for batch in batches], axis=0)
    return (
        f"{len(batches)} batches of {BATCH_SIZE} pairs, {order}: "
        f"{tokens[0]:.0f} and {tokens[1]:.0f} tokens on average, padded to "
        f"{padded[0]:.0f} and {padded[1]:.0f}"
    )


def main(model: str, pairs: str, python: str, steps: str = "10") -> None:
    from benchmarks.step import json_output, machine

    print(machine())
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/batches.npz"
        write_batches(model, pairs, int(steps), path)
        for order in ORDERS:
            print(describe(path, order))
        print(f"{'':42}{'seconds':>9}{'ratio':>7}{'loss':>10}")
        baseline: dict[str, float] = {}
        for row in ROWS:
            project, precision, _ = row
            command = [sys.executable, "-m", "benchmarks.embedding_training"]
            if project == PEER:
                command = [python, __file__]
            loss, seconds = json_output([*command, "--row", *row, model, path])
            baseline.setdefault(precision, seconds)
            ratio, name = baseline[precision] / seconds, ", ".join(row)
            print(
                f"{name:42}{seconds:9.3f}{ratio:7.2f}{loss:10.5f}", flush=True
            )


if __name__ == "__main__":
    arguments: Sequence[str] = sys.argv[1:]
    if arguments[0] == "--row":
        measure(*arguments[1:])
    else:
        main(*arguments)
