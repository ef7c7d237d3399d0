"""Predicts with every kind of task, for a process that blocks TensorFlow.

Prints JSON, {kind: [answers, metrics]}; `tests/tasks` compares it.
"""

import dataclasses
import importlib
import json
import pathlib
import pkgutil
import sys
import tempfile

import numpy as np

from official_bert import inputs, metrics, tasks, tokenization
from official_bert.inference.predictor import Predictor
from official_bert.inputs import tfrecords
from official_bert.tasks import engines, record_files
from official_bert.tasks.task import FinetunedModel

WORDS = ["the", "cat", "sat", "on", "mat", "red", "blue", "good", "bad", "in"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS]
LENGTH = 24

# {kind: (task.json, words whose occurrences are the logits, items, labels)}.
CASES = {
    "text": (
        {"task_type": "classification", "labels": ["bad", "good"]},
        ["bad", "good"],
        ["the good good cat", "bad mat", "good"],
        [{"label": label} for label in ("good", "good", "good")],
    ),
    "choice": (
        {"num_choices": 3},
        ["good"],
        [
            {"context": "the cat", "choices": ["bad", "good good"]},
            {"context": "red", "choices": ["good", "in", "on"]},
        ],
        [{"label": 1}, {"label": 2}],
    ),
    "tagging": (
        {"labels": ["O", "B-X"]},
        ["the", "cat"],
        ["the cat the", ["the", "cat"]],
        [{"tags": ["O", "B-X", "O"]}, {"tags": ["O", "O"]}],
    ),
    "squad": (
        {"doc_stride": 4, "max_query_length": 4},
        ["red", "mat"],
        [
            ["cat", "The cat sat on the red good mat."],
            ["in", "Good cat in the red, bad mat in the cat."],
        ],
        [
            {"qa": {"id": "0", "answers": [{"text": "red good mat"}]}},
            {"qa": {"id": "1", "answers": [{"text": "the cat"}]}},
        ],
    ),
}


def engine_of(words):
    ids = np.array([VOCAB.index(word) for word in words])

    def engine(batch):
        counts = batch["input_ids"][..., np.newaxis] == ids
        if "label_mask" in batch or "unique_ids" in batch:
            return [counts.astype(np.float32)]  # For each token.
        logits = counts.sum(axis=-2, dtype=np.float32)
        return [logits[..., 0] if logits.ndim == 3 else logits]

    return engine


def _replace(example, **fields):
    return example._replace(**fields)


def run(kind, folder):
    fields, words, items, labels = CASES[kind]
    task = tasks.from_json({"kind": kind, **fields})
    assert tasks.from_json(json.loads(json.dumps(task.to_json()))) == task
    vocab_file = folder / "vocab.txt"
    vocab_file.write_text("".join(f"{token}\n" for token in VOCAB))
    tokenizer = tokenization.Tokenizer(str(vocab_file))
    examples = [task.parse(item, str(n)) for n, item in enumerate(items)]
    path = str(folder / "records")
    written = record_files.write_records(
        path, task, examples, tokenizer, LENGTH
    )
    assert written["num_records"] == tfrecords.count_records(path)
    [features] = task.featurize(examples, tokenizer, LENGTH)
    engine = engine_of(words)
    outputs = engines.run(engine, features, max_seq_length=LENGTH, batch_size=2)
    answers = task.answers(features, [logits for [logits] in outputs])
    shown = list(map(task.answer_to_json, examples, answers))
    finetuned = FinetunedModel(task, None, tokenizer, LENGTH)
    assert Predictor(finetuned, engine=engine)(items) == shown
    # Sentences are a dataclass, other examples are NamedTuples.
    replace = dataclasses.replace if kind == "tagging" else _replace
    labelled = [replace(e, **f) for e, f in zip(examples, labels, strict=True)]
    return [shown, task.metrics(labelled, answers)]


for package in (inputs, metrics, tasks, tokenization):
    for module in pkgutil.walk_packages(
        package.__path__, f"{package.__name__}."
    ):
        if module.name.rpartition(".")[2] not in ("datasets", "records"):
            importlib.import_module(module.name)
assert set(CASES) == set(tasks.KINDS)
results = {}
for kind in CASES:
    with tempfile.TemporaryDirectory() as folder:
        results[kind] = run(kind, pathlib.Path(folder))
assert not {"tensorflow", "keras"} & {
    name for name, module in sys.modules.items() if module
}
print(json.dumps(results))
