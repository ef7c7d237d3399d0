"""Recorded examples and features of the original's text tasks."""

import gzip
import json

import pytest

from official_bert.tokenization import Tokenizer


def lines(path):
    """Yields the JSON values of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def of_vocabularies(*names, complete="slow"):
    """Parametrizes `recorded_tokens`; `complete` marks complete recordings."""
    mark = getattr(pytest.mark, complete)
    cases = [
        *(f"extract {name}" for name in names if name != "chinese"),
        *(pytest.param(f"complete {name}", marks=mark) for name in names),
    ]
    return pytest.mark.parametrize("recorded_tokens", cases, indirect=True)


def tokenizer(golden, vocab_files, task):
    """Returns the tokenizer that a task's features were recorded with."""
    features = golden / "classifier" / "features"
    recorded = json.loads((features / f"{task}.json").read_text())
    return Tokenizer(vocab_files[recorded["vocab"]], recorded["do_lower_case"])


def assert_equals(golden, name, task, tokenizer, split):
    """Checks that examples and features of all lengths equal recorded ones."""
    examples = task.data.read(split)
    place = golden / "classifier" / "features" / f"{name}_{split}"
    expected = list(lines(place / "examples.jsonl.gz"))
    assert len(examples) == len(expected)
    for example, (guid, text_a, text_b, label) in zip(
        examples, expected, strict=True
    ):
        # Recorded MNLI ids contain the name of their file.
        assert example.guid == guid.replace("_matched", "")
        assert (example.text_a, example.text_b) == (text_a, text_b)
        # The original gives all test examples the first label.
        first = task.labels[0] if split == "test" else None
        assert (example.label or first) == label
    for length in (128, 32, 9, 5):
        *features, padding = lines(place / f"features_{length}.jsonl.gz")
        assert padding["input_ids"] == []
        rows = list(task.feature_rows(examples, tokenizer, length))
        assert [r.example for r in rows] == list(range(len(examples)))
        for (_, row), record in zip(rows, features, strict=True):
            assert row == {
                "input_ids": record["input_ids"],
                "input_mask": [1] * len(record["input_ids"]),
                "segment_ids": record["segment_ids"],
                "label_ids": [record["label_id"]],
                "is_real_example": [int(record["is_real_example"])],
            }
