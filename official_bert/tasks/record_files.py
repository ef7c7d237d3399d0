"""The TFRecord files of fine-tuning. Names and features are the original's.

`train.tf_record.json`, the metadata of `train.tf_record`, has a fingerprint of
everything that the records depend on. While it is the same, they are reused.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import numpy as np
from absl import logging

from official_bert.errors import InputError
from official_bert.inputs import tfrecords
from official_bert.io import files, json_files, progress
from official_bert.tasks.task import Features, Task
from official_bert.tokenization import Tokenizer

# The number of features that are encoded together.
_FEATURES_PER_BLOCK = 256

# Percentiles of sequence lengths in the metadata.
_PERCENTILES = {"50%": 50, "90%": 90, "99%": 99, "max": 100}

# Increase this when a change of the code changes the records of the same
# examples.
_VERSION = 1


def write_records(
    path: str,
    task: Task,
    examples: Sequence[Any],
    tokenizer: Tokenizer,
    max_seq_length: int,
) -> dict[str, Any]:
    """Writes a training record for each feature, unless the file is up to date.

    An existing file is replaced when all records have been written. Sequences
    are padded to `max_seq_length`. Returns the metadata: `num_records`, and
    `lengths` if there are records.
    """
    teacher = task.teacher
    settings: tuple[Any, ...] = (task.to_json(), max_seq_length)
    if teacher:
        settings += (teacher.fingerprints,)
    fingerprint = _fingerprint(examples, settings, tokenizer)
    metadata_path = f"{path}.json"
    if metadata := _read_if_up_to_date(path, metadata_path, fingerprint):
        number = metadata["num_records"]
        logging.info(f"{path}: its {number} records are up to date")
        return metadata
    if files.exists(metadata_path):  # It would not fit the new records.
        files.write_text(metadata_path, "{}\n")
    blocks = (teacher or task).featurize(examples, tokenizer, max_seq_length)
    lengths: list[int] = []
    with (
        files.writing(path) as file,
        progress.bar(description="Featurizing", unit=" features") as bar,
    ):
        for features in blocks:
            if not lengths:
                features.warn_if_unknown(tokenizer)
            write_features(file, features, max_seq_length)
            bar.update(len(features.lengths))
            lengths += features.lengths
    metadata = {"made_of": fingerprint, "num_records": len(lengths)}
    if lengths:
        metadata["lengths"] = {
            name: int(np.percentile(lengths, percent, method="higher"))
            for name, percent in _PERCENTILES.items()
        }
        num_full = lengths.count(max_seq_length)
        metadata["lengths"]["full"] = num_full / len(lengths)
    metadata["size"] = files.size(path)
    json_files.write(metadata_path, metadata)
    return metadata


def write_features(
    file: BinaryIO, features: Features, max_seq_length: int
) -> None:
    """Writes a record for each feature, padded to `max_seq_length`."""
    num_features = len(features.lengths)
    for start in range(0, num_features, _FEATURES_PER_BLOCK):
        indices = range(num_features)[start : start + _FEATURES_PER_BLOCK]
        batch = features.batch(indices, max_seq_length, len(indices))
        rows = {k: array.reshape(len(array), -1) for k, array in batch.items()}
        records = tfrecords.encode_examples(rows)
        file.write(tfrecords.join(records, compress=False))


def _read_if_up_to_date(
    path: str, metadata_path: str, fingerprint: str
) -> dict[str, Any] | None:
    """Returns the metadata, or None if the records must be written."""
    if not files.exists(path) or not files.exists(metadata_path):
        return None
    try:
        metadata = json_files.read_object(metadata_path)
        is_complete = metadata["size"] == files.size(path)
        is_same = metadata["made_of"] == fingerprint
    except (InputError, KeyError):  # Another program wrote the file.
        return None
    return metadata if is_complete and is_same else None


def _fingerprint(
    examples: Iterable[Any], settings: Any, tokenizer: Tokenizer
) -> str:
    """Returns a hash of everything that the records depend on."""
    digest = hashlib.sha256()
    for part in (
        _VERSION,
        unicodedata.unidata_version,  # Determines what is punctuation.
        settings,
        tokenizer.settings,
        list(tokenizer.vocab.items()),
        *examples,
    ):
        digest.update(repr(part).encode())
    return digest.hexdigest()
