"""TFRecord files of `tf.train.Example`s with features of fixed length.

One schema serves for writing, for parsing and for telling a user what is wrong
with a file.
"""

import mmap
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging
from google.protobuf.message import DecodeError

from official_bert import files
from official_bert.errors import InputError


class Feature(NamedTuple):
    """One feature of a record: how many values, and of which kind.

    Attributes:
        length: The number of values.
        flag: The command line's name of that number, if it has one.
        is_float: Whether the values are float32 rather than int64.
        num_choices: How many times so many there are, one after the other.
    """

    length: int
    flag: str | None = None
    is_float: bool = False
    num_choices: int = 1

    @property
    def is_sequence(self) -> bool:
        """Whether there is one value for each piece of a text."""
        return self.flag == "max_seq_length"

    @property
    def shape(self) -> list[int]:
        """The shape of the values, without the batch."""
        choices = [self.num_choices] if self.num_choices > 1 else []
        return [*choices, self.length]


Schema = Mapping[str, Feature]


class RecordFiles(NamedTuple):
    """TFRecord files, and what each record in them holds."""

    names: Sequence[str]
    schema: Schema


def pretraining_schema(
    max_seq_length: int, max_predictions_per_seq: int
) -> Schema:
    """Returns the features of an instance for masked LM and next sentence."""
    predictions = Feature(max_predictions_per_seq, "max_predictions_per_seq")
    return {
        **text_schema(max_seq_length),
        "masked_lm_positions": predictions,
        "masked_lm_ids": predictions,
        "masked_lm_weights": predictions._replace(is_float=True),
        "next_sentence_labels": Feature(1),
    }


def text_schema(max_seq_length: int, num_choices: int = 1) -> Schema:
    """Returns the features of one packed sequence, or of several."""
    sequence = Feature(
        max_seq_length, "max_seq_length", num_choices=num_choices
    )
    return {
        "input_ids": sequence,
        "input_mask": sequence,
        "segment_ids": sequence,
    }


def encode(schema: Schema, values: Mapping[str, Sequence[Any]]) -> bytes:
    """Returns one serialized example; the same values give the same bytes."""
    example = tf.train.Example()
    for name, feature in schema.items():
        target = example.features.feature[name]
        kind = target.float_list if feature.is_float else target.int64_list
        kind.value.extend(values[name])
    return bytes(example.SerializeToString(deterministic=True))


def parse(schema: Schema, serialized: Any) -> dict[str, Any]:
    """Parses a batch of examples inside tf.data.

    Args:
        schema: What each of them holds.
        serialized: string Tensor [B].

    Returns:
        {name: Tensor [B, length]}, or [B, C, length] where there are C choices;
        int32 or float32: TPUs have no int64.
    """
    spec = {
        name: tf.io.FixedLenFeature(
            feature.shape, tf.float32 if feature.is_float else tf.int64
        )
        for name, feature in schema.items()
    }
    return {
        name: value if value.dtype == tf.float32 else tf.cast(value, tf.int32)
        for name, value in tf.io.parse_example(serialized, spec).items()
    }


def check_files(data: RecordFiles, vocab_size: int) -> None:
    """Looks at every file before anything expensive is begun.

    Args:
        data: The files, and what their records must hold.
        vocab_size: What all `input_ids` must be below.

    Raises:
        InputError: A file is empty, cut short, no TFRecord file, or its first
            record does not fit the schema or the vocabulary.
    """
    for name in data.names:
        if not files.is_remote(name):
            logging.info("%s: %d records", name, count_records(name))
        if not _check_records(name, data.schema, vocab_size, at_most=1):
            raise InputError(f"{name}: must hold TFRecords. Received: none.")


def check_all_records(data: RecordFiles, vocab_size: int) -> None:
    """Reads everything, to name what made a run fail in the middle.

    Raises:
        InputError: A record is damaged, or fits not; with file and number.
    """
    for name in data.names:
        _check_records(name, data.schema, vocab_size)


def _check_records(
    name: str, schema: Schema, vocab_size: int, at_most: int = -1
) -> int:
    """Checks the first records of a file, or all; returns how many it were."""
    number = 0
    try:
        for serialized in tf.data.TFRecordDataset(name).take(at_most):
            number += 1
            example = tf.train.Example.FromString(serialized.numpy())
            _check_example(f"{name}: record {number}", example, schema)
            _check_ids(f"{name}: record {number}", example, vocab_size)
    except (tf.errors.OpError, DecodeError) as error:
        message = getattr(error, "message", str(error))
        raise InputError(
            f"{name}: must hold TFRecords of `tf.train.Example`s. Record "
            f"{max(number, 1)} or the one behind it cannot be read: {message}"
        ) from error
    return number


def _check_ids(where: str, example: Any, vocab_size: int) -> None:
    for name in ("input_ids", "masked_lm_ids"):
        ids = example.features.feature[name].int64_list.value
        wrong = [i for i in ids if not 0 <= i < vocab_size]
        if wrong:
            raise InputError(
                f"{where}: `{name}` must be below the model's "
                f"vocab_size={vocab_size}. Received: {wrong[0]}. Use the "
                "bert_config.json that belongs to the records' vocabulary."
            )


# A record is its length (8 bytes), the length's checksum (4), the data, and the
# data's checksum (4).
_HEADER = struct.Struct("<QI")
_FOOTER_SIZE = 4


def count_records(name: str) -> int:
    """Counts the records of a local file by walking over their headers.

    Raises:
        InputError: The file is empty, or ends inside a record.
    """
    with files.open_binary(name):  # Says it well if it cannot be read.
        size = files.size(name)
    if not size:
        raise InputError(
            f"{name}: must hold TFRecords. Received: an empty file."
        )
    count = offset = 0
    with (
        open(name, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        while offset < size:
            end = offset + _HEADER.size
            if end <= size:
                end += _HEADER.unpack_from(data, offset)[0] + _FOOTER_SIZE
            if end > size:
                raise InputError(
                    f"{name}: record {count + 1}: must be complete. Received: "
                    f"a file that ends inside it, at byte {size}. It was cut "
                    "short, or is no TFRecord file; make or copy it again."
                )
            count, offset = count + 1, end
    return count


def _check_example(where: str, example: Any, schema: Schema) -> None:
    present = example.features.feature
    for name, feature in schema.items():
        if name not in present:
            raise InputError(
                f"{where}: must have a feature `{name}`. Received: "
                f"{', '.join(sorted(present)) or 'none'}. Are these records "
                "made by create_pretraining_data.py?"
            )
        kind = "float_list" if feature.is_float else "int64_list"
        length = len(getattr(present[name], kind).value) // feature.num_choices
        if length != feature.length:
            advice = f" Pass --{feature.flag}={length}." if feature.flag else ""
            raise InputError(
                f"{where}: `{name}` must have {feature.length} values of kind "
                f"{kind}. Received: {length}.{advice}"
            )
