"""Checks and parses record files for training."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging
from google.protobuf.message import DecodeError

from official_bert.errors import InputError, listed
from official_bert.inputs import tfrecords
from official_bert.inputs.schemas import Masking, Schema
from official_bert.io import files
from official_bert.options.create_pretraining_data import MAX_NGRAM

_USE_FITTING_CONFIG = (
    "Use the bert_config.json that fits the records' vocabulary."
)


class RecordFiles(NamedTuple):
    """TFRecord files, compressed or not, and the schema of their records.

    `masking` says how training masks the records; None if they are masked
    already.
    """

    names: Sequence[str]
    schema: Schema
    masking: Masking | None = None

    def num_records(self) -> int | None:
        """Counts all records; None if that would require a download."""
        if any(map(files.is_remote, self.names)):
            return None
        return sum(map(tfrecords.count_records, self.names))


def parse(schema: Schema, serialized: Any) -> dict[str, Any]:
    """Parses a batch of examples, string [B], inside tf.data.

    Returns {name: int32 or float32 Tensor [B, length]}, or [B, C, length] with
    C choices. Not int64, which TPUs do not have.
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
    """Returns the files that are not empty; if all are empty, all files."""
    non_empty = [name for name in names if files.size(name)]
    if empty := set(names).difference(non_empty):
        logging.warning(f"Empty files: {listed(sorted(empty))}")
    return non_empty or list(names)


def check_files(
    data: RecordFiles, vocab_size: int, limit: int | None = 1
) -> None:
    """Checks the first `limit` records of every file, or all if it is None.

    Raises `InputError` if a file is empty, incomplete or not a TFRecord file,
    or if a record does not fit the schema or the vocabulary.
    """
    for name in data.names:
        if limit and not files.is_remote(name):
            logging.info(f"{name}: {tfrecords.count_records(name)} records")
        number = 0
        records = itertools.islice(tfrecords.read(name), limit)
        for number, serialized in enumerate(records, start=1):
            where = f"{name}: record {number}"
            features = _features(where, serialized)
            _check_masking(where, features, data, vocab_size)
            _check_packing(where, features, data.schema)
            _check_lengths(where, features, data.schema)
            _check_ids(where, features, data.schema, vocab_size)
        if not number:
            raise InputError(
                f"{name} must contain TFRecords, but is empty. Create it again."
            )


def read_masking(name: str) -> Masking | None:
    """Reads from a file's first record how training masks the records.

    Returns None if they are masked already. Raises `InputError` as
    `check_files` does.
    """
    serialized = next(tfrecords.read(name), None)
    if serialized is None:
        return None
    where = f"{name}: record 1"
    return _masking(where, _features(where, serialized))


def has_two_segments(name: str) -> bool:
    """Whether the first record of a checked file has a segment B."""
    features = _features(name, next(tfrecords.read(name)))
    return any(features["segment_ids"].int64_list.value)


def _features(where: str, serialized: bytes) -> Any:
    """Returns {name: feature} of a record."""
    try:
        return tf.train.Example.FromString(serialized).features.feature
    except DecodeError as error:
        raise InputError(
            f"{where} must be a `tf.train.Example`. Create or copy the file "
            "again."
        ) from error


def _masking(where: str, features: Any) -> Masking | None:
    """Returns the `Masking` of a record; None if the record is masked."""
    if not set(Masking._fields) <= set(features):
        return None
    settings = {}
    for name, kind in Masking.__annotations__.items():
        value_list = "int64_list" if kind is int else "float_list"
        values = getattr(features[name], value_list).value
        if len(values) != 1 or not values[0] >= 0:
            raise InputError(
                f"{where}: `{name}` must have one value in a {value_list}, at "
                f"least 0. Received: {listed(values) or 'none'}. Create the "
                "file again."
            )
        settings[name] = values[0]
    if settings["max_ngram"] > MAX_NGRAM:
        raise InputError(
            f"{where}: `max_ngram` must be at most {MAX_NGRAM}. Received: "
            f"{settings['max_ngram']}. Create the file again."
        )
    return Masking(**settings)


def _check_masking(
    where: str, features: Any, data: RecordFiles, vocab_size: int
) -> None:
    if (masking := _masking(where, features)) != data.masking:
        raise InputError(
            f"{where} must have the masking of {data.names[0]}: "
            f"{_describe(data.masking)}. Received: {_describe(masking)}. "
            "Create all files with the same masking flags."
        )
    if masking and masking.vocab_size > vocab_size:
        raise InputError(
            f"{where}: its vocabulary of {masking.vocab_size} tokens must not "
            f"exceed the model's {vocab_size=}. {_USE_FITTING_CONFIG}"
        )


def _describe(masking: Masking | None) -> str:
    if not masking:
        return "static"
    values = (f"{name}={value:g}" for name, value in masking._asdict().items())
    return f"dynamic, {', '.join(values)}"


def _check_packing(where: str, features: Any, schema: Schema) -> None:
    packed = "next_sentence_positions"
    if packed in features and packed not in schema:
        raise InputError(
            f"{where} holds several packed instances. Pass --pack_sequences "
            "and the --max_sequences_per_row that they were created with."
        )
    if packed in schema and packed not in features:
        raise InputError(
            f"{where} holds one instance, not several packed ones. Leave out "
            "--pack_sequences, or pass it to create_pretraining_data.py too."
        )


def _check_lengths(where: str, features: Any, schema: Schema) -> None:
    problems, flags = [], dict[str, None]()
    for name, feature in schema.items():
        if name not in features:
            raise InputError(
                f"{where} must have a feature `{name}`. Received: "
                f"{listed(sorted(features)) or 'none'}. Use records that "
                "create_pretraining_data.py wrote."
            )
        kind = "float_list" if feature.is_float else "int64_list"
        size = len(getattr(features[name], kind).value)
        expected = math.prod(feature.shape)
        if size != expected:
            problems.append(
                f"`{name}` must have {expected} values in its {kind}, but has "
                f"{size}"
            )
            if feature.flag and size:
                length = size // feature.num_choices
                flags[f"--{feature.flag}={length}"] = None
    if problems:
        advice = f" Pass {' '.join(flags)}." if flags else ""
        raise InputError(f"{where}: {', '.join(problems)}.{advice}")


def _check_ids(
    where: str, features: Any, schema: Schema, vocab_size: int
) -> None:
    """Checks that token ids, positions and labels are in their ranges."""
    length = schema["input_ids"].length
    token = (vocab_size, f"the model's {vocab_size=}", _USE_FITTING_CONFIG)
    position = (length, str(length), "Create the file again.")
    limits = {
        "input_ids": token,
        "masked_lm_ids": token,
        "masked_lm_positions": position,
        "word_starts": position,
        "next_sentence_labels": (2, "2", "Create the file again."),
    }
    for name, (limit, shown, advice) in limits.items():
        for i in features[name].int64_list.value:
            if not 0 <= i < limit:
                raise InputError(
                    f"{where}: `{name}` must be at least 0 and below {shown}. "
                    f"Received: {i}. {advice}"
                )
