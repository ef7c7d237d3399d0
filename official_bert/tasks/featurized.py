"""Rows of features -> the TFRecord files of the 2018 release."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from official_bert import files, progress
from official_bert.inputs import padding, records
from official_bert.inputs.padding import Row
from official_bert.inputs.records import RecordFiles, Schema
from official_bert.inputs.row_encoding import encode_rows
from official_bert.tasks.task import Task
from official_bert.tokenization import BatchTokenizer

# Rows encoded at once.
_BLOCK = 256


def write_training_records(
    path: str,
    task: Task,
    examples: Sequence[Any],
    tokenizer: BatchTokenizer,
    max_seq_length: int,
) -> RecordFiles:
    """Featurizes examples into a TFRecord file; all of it, or nothing.

    Args:
        path: The file.
        task: The examples' task.
        examples: To train on.
        tokenizer: Of the model.
        max_seq_length: What rows are padded to.
    """
    schema = task.schema(max_seq_length, is_training=True)
    shown = progress.bar(examples, description="Featurizing", unit="example")
    rows = task.featurize(shown, tokenizer, max_seq_length, is_training=True)
    with writing(path) as writer:
        write_rows(writer, schema, (features.row for features in rows))
    return RecordFiles([path], schema)


@contextlib.contextmanager
def writing(path: str) -> Iterator[Any]:
    """Yields a TFRecord writer whose file appears at the end."""
    with (
        files.replacing(path) as temporary,
        tf.io.TFRecordWriter(temporary) as writer,
    ):
        yield writer


def write_rows(writer: Any, schema: Schema, rows: Iterable[Row]) -> None:
    """Writes rows, each sequence at its full length."""
    remaining = iter(rows)
    while block := list(itertools.islice(remaining, _BLOCK)):
        for example in _encoded(schema, block):
            writer.write(example)


def _encoded(schema: Schema, rows: Sequence[Row]) -> Iterator[bytes]:
    if any(feature.is_float for feature in schema.values()):
        for row in rows:
            yield records.encode(schema, padding.pad_row(schema, row))
        return
    [length] = {f.length for f in schema.values() if f.is_sequence}
    batch = padding.pad_batch(schema, rows, length, len(rows))
    yield from encode_rows(
        {name: array.reshape(len(rows), -1) for name, array in batch.items()}
    )
