"""The table of the data in the log, and warnings of odd labels."""

import collections
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from official_bert.errors import listed
from official_bert.io.rows import label_key
from official_bert.tasks.long_texts import (
    MAX_SHARE_TRUNCATED,
    warn_of_truncation,
)
from official_bert.tasks.task import Task

# Maximum number of labels in the table.
_MAX_LABELS = 10


def log(
    task: Task,
    data: Mapping[str, Sequence[Any]],
    metadata: Mapping[str, Any],
    max_seq_length: int,
) -> None:
    """Logs a table of the data; warns of odd labels and of truncation.

    `data` is {split: examples}; `metadata` is the metadata of the training
    records, {} without training.
    """
    counts = {
        split: Counter(
            label for example in examples for label in task.labels_of(example)
        )
        for split, examples in data.items()
    }
    total = Counter(dict.fromkeys(getattr(task, "labels", ()), 0))
    for count in counts.values():
        total.update(count)
    rows = {"": list(data)}
    rows["examples"] = [f"{len(examples):,}" for examples in data.values()]
    rows |= _label_rows(counts, total)
    num_texts = sum(len(data.get(name, ())) for name in ("train", "unlabeled"))
    if metadata and metadata["num_records"] != num_texts:
        rows["windows"] = [f"{metadata['num_records']:,}"]
    for name, value in metadata.get("lengths", {}).items():
        if name == "full":
            rows[f"{max_seq_length} tokens or more"] = [f"{value:.1%}"]
        else:
            rows[f"tokens, {name}"] = [f"{value:,}"]
    widths = [max(len(split), 7) + 1 for split in data]
    lines = ["The data:"]
    for name, cells in rows.items():
        columns = map(str.rjust, cells, widths)
        lines.append(f"  {name[:20]:20}{''.join(columns)}")
    logging.info("\n".join(lines))
    share_full = metadata.get("lengths", {}).get("full", 0.0)
    if task.truncates and share_full > MAX_SHARE_TRUNCATED:
        warn_of_truncation(
            f"Up to {100 * share_full:.0f}% of the",
            max_seq_length,
            ". Use --long_document=windows (for texts with labels) or, if "
            "the model has more positions, a larger --max_seq_length",
        )
    if task.kind != "choice":  # Its labels are the numbers of choices.
        _warn_of_labels(counts.get("train", Counter()))
    if task.kind == "text":
        _warn_of_missing_labels(counts, total)


def _label_rows(
    counts: Mapping[str, Counter[Any]], total: Counter[Any]
) -> dict[str, list[str]]:
    rows = {
        f"label {label}": [
            f"{count[label]:,}" if count else "-" for count in counts.values()
        ]
        for label, _ in total.most_common(_MAX_LABELS)
    }
    if len(total) > _MAX_LABELS:
        rows[f"and {len(total) - _MAX_LABELS:,} more labels"] = []
    return rows


def _warn_of_missing_labels(
    counts: Mapping[str, Counter[Any]], total: Counter[Any]
) -> None:
    consequences = {
        "train": "they are not learned. Add examples",
        "dev": "macro_f1 counts an F1 of 0 for each. Evaluate on more "
        "examples (--dev_share, --dev_file)",
    }
    for split, consequence in consequences.items():
        found = counts.get(split)
        missing = [label for label in total if found and not found[label]]
        if missing:
            logging.warning(
                f"{split} has no examples of {listed(sorted(missing))}: "
                f"{consequence}"
            )


def _warn_of_labels(counts: Counter[Any]) -> None:
    """Warns if labels are spelled in several ways, or if there are many."""
    spellings: dict[Any, list[str]] = collections.defaultdict(list)
    for label in map(str, counts):
        spellings[label_key(label)].append(label)
    if similar := [_spelled(s) for s in spellings.values() if len(s) > 1]:
        logging.warning(
            "These labels are different classes, but differ only in case, "
            "spaces, hyphens, quotes, invisible characters, Unicode "
            "normalization, or the form of a number or truth value: "
            f"{listed(similar)}. If they mean the same, write them alike"
        )
    if len(counts) > 100 or len(counts) > max(2, counts.total() / 2):
        logging.warning(
            f"The training data has {len(counts)} different labels, such as "
            f"{listed(list(counts)[:3])}. If they are not classes, choose "
            "another column of labels. If they are numbers, use "
            "--task_type=regression."
        )


def _spelled(labels: Sequence[str]) -> str:
    """Returns labels for a message; with code points if they look alike."""
    forms = {unicodedata.normalize("NFC", label) for label in labels}
    return " / ".join(map(repr if len(forms) == len(labels) else ascii, labels))
