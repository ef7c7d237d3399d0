"""TFRecord files of `tf.train.Example`s with features of fixed length.

One schema serves for parsing and for telling a user what is wrong with a file.
What is written is encoded by `row_encoding.py`, many rows at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging
from google.protobuf.message import DecodeError

from official_bert import files
from official_bert.errors import InputError, short_reason
from official_bert.inputs.framing import count_records
from official_bert.inputs.schemas import Schema


class RecordRange(NamedTuple):
    """Records of a file that follow one another: the first, and how many."""

    first: int
    length: int


class RecordFiles(NamedTuple):
    """TFRecord files, and what each record in them holds.

    Attributes:
        ranges: Of files with damaged records, the others; see `damage.find`.
    """

    names: Sequence[str]
    schema: Schema
    ranges: Mapping[str, Sequence[RecordRange]] = {}

    def ranges_of(self, name: str) -> Sequence[RecordRange]:
        """Returns what to read of a file; a length of -1 is all of it."""
        return self.ranges.get(name, [RecordRange(0, -1)])

    def num_records(self) -> int | None:
        """Counts what to read, if that is possible without reading it."""
        if any(files.is_remote(name) for name in self.names):
            return None
        return sum(
            sum(part.length for part in self.ranges[name])
            if name in self.ranges
            else count_records(name)
            for name in self.names
        )


def encode(schema: Schema, values: Mapping[str, Sequence[Any]]) -> bytes:
    """Returns one serialized example; the same values give the same bytes.

    The readable reference, which `row_encoding.encode_rows` equals.
    """
    example = tf.train.Example()
    for name, feature in schema.items():
        target = example.features.feature[name]
        kind = target.float_list if feature.is_float else target.int64_list
        kind.value.extend(values[name])
    return bytes(example.SerializeToString(deterministic=True))


def compression_of(name: str) -> str:
    """Returns `GZIP` for a compressed file of records, else nothing."""
    return "GZIP" if files.is_gzip(name) else ""


def read(name: str) -> tf.data.Dataset:
    """Returns the serialized examples of a file."""
    return tf.data.TFRecordDataset(name, compression_of(name))


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


def without_empty(names: Sequence[str]) -> list[str]:
    """Returns the files that are not empty, or all if there is none.

    Few instances leave some of many output files without any.
    """
    full = [name for name in names if files.size(name)]
    if empty := set(names).difference(full):
        logging.warning("Empty files: %s", ", ".join(sorted(empty)))
    return full or list(names)


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
        if not files.is_remote(name) and name not in data.ranges:
            logging.info("%s: %d records", name, count_records(name))
        first = data.ranges_of(name)[0]._replace(length=1)
        if not _check_records(name, data.schema, vocab_size, first):
            raise InputError(f"{name}: must hold TFRecords. Received: none.")


def check_all_records(data: RecordFiles, vocab_size: int) -> None:
    """Reads everything, to name what made a run fail in the middle.

    Raises:
        InputError: A record is damaged, or fits not; with file and number.
    """
    for name in data.names:
        for part in data.ranges_of(name):
            _check_records(name, data.schema, vocab_size, part)


def _check_records(
    name: str, schema: Schema, vocab_size: int, part: RecordRange
) -> int:
    """Checks some records of a file; returns the number of the last, or 0."""
    number = part.first
    dataset = read(name).skip(part.first).take(part.length)
    try:
        for number, serialized in enumerate(dataset, start=part.first + 1):
            example = tf.train.Example.FromString(serialized.numpy())
            _check_example(f"{name}: record {number}", example, schema)
            _check_ids(f"{name}: record {number}", example, vocab_size)
    except DecodeError as error:
        raise _unreadable(name, number, str(error)) from error
    except tf.errors.OpError as error:
        raise _unreadable(name, number + 1, short_reason(error)) from error
    return number


def _unreadable(name: str, number: int, reason: str) -> InputError:
    return InputError(
        f"{name}: must hold TFRecords of `tf.train.Example`s. Record {number} "
        f"cannot be read: {reason}. Make or copy the file again."
    )


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


def _check_packing(where: str, present: Any, schema: Schema) -> None:
    if "next_sentence_labels" not in schema:
        return
    name = "next_sentence_positions"
    if name in present and name not in schema:
        raise InputError(
            f"{where}: must hold one instance. Received: several, packed into "
            "a row. Pass --pack_sequences, and the --max_sequences_per_row "
            "that they were made with."
        )
    if name in schema and name not in present:
        raise InputError(
            f"{where}: must hold several instances, packed into a row. "
            "Received: one. Leave out --pack_sequences, or pass it to "
            "create_pretraining_data.py as well."
        )


def _check_example(where: str, example: Any, schema: Schema) -> None:
    present = example.features.feature
    _check_packing(where, present, schema)
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
