"""Features on disk: made once, and used again while nothing has changed.

Beside `train.tf_record` lies `train.tf_record.json`, which says what the
records were made of.
"""

import hashlib
import json
import unicodedata
from collections.abc import Sequence

import tensorflow as tf
from absl import logging

from official_bert import files, progress
from official_bert.inputs.records import Feature, Schema
from official_bert.inputs.row_encoding import encode_rows
from official_bert.tasks.squad import answers
from official_bert.tasks.squad.examples import SquadExample
from official_bert.tasks.squad.features import make_features, rows
from official_bert.tasks.squad.windows import WindowOptions
from official_bert.tokenization import BatchTokenizer

# To be raised when the same examples come to give other records.
_VERSION = 1


def schema(max_seq_length: int, *, is_training: bool) -> Schema:
    """Returns the features of a window."""
    sequence = Feature(max_seq_length, "max_seq_length")
    single = ["start_positions", "end_positions", "is_impossible"]
    return {
        "unique_ids": Feature(1),
        "input_ids": sequence,
        "input_mask": sequence,
        "segment_ids": sequence,
        **(dict.fromkeys(single, Feature(1)) if is_training else {}),
    }


def write_features(
    path: str,
    examples: Sequence[SquadExample],
    tokenizer: BatchTokenizer,
    options: WindowOptions,
    *,
    is_training: bool,
) -> int:
    """Writes one record for each window, unless they are there already.

    Windows are made and written some at a time; what stood at `path` stays
    until all are.

    Args:
        path: The TFRecord file, `train.tf_record` or `eval.tf_record`.
        examples: In the order of the records.
        tokenizer: Cuts words into pieces.
        options: Lengths and stride.
        is_training: Whether to write where the answers stand.

    Returns:
        The number of records.
    """
    made_of = _fingerprint(examples, tokenizer, options, is_training)
    num_there = _num_records_made_of(made_of, path)
    if num_there is not None:
        logging.info("%s: its %d records are still right", path, num_there)
        return num_there
    features = make_features(examples, tokenizer, options)
    targets = None
    if is_training:
        targets = answers.positions(examples, features, tokenizer)
    if files.exists(_note_path(path)):
        files.write_text(_note_path(path), "{}\n")  # No longer true.
    with (
        files.replacing(path) as temporary,
        tf.io.TFRecordWriter(temporary) as writer,
        progress.bar(
            description="Writing features",
            total=features.num_rows,
            unit="window",
        ) as shown,
    ):
        for block in rows(features, targets):
            for record in encode_rows(block):
                writer.write(record)
            shown.update(len(block["unique_ids"]))
    note = {
        "made_of": made_of,
        "num_records": features.num_rows,
        "size": files.size(path),
    }
    files.write_text(_note_path(path), json.dumps(note, indent=2) + "\n")
    return features.num_rows


def _note_path(path: str) -> str:
    return f"{path}.json"


def _num_records_made_of(made_of: str, path: str) -> int | None:
    """Returns the number of records, or None if they must be made anew."""
    if not files.exists(path) or not files.exists(_note_path(path)):
        return None
    try:
        note = json.loads(files.read_text(_note_path(path)))
        is_whole = note["size"] == files.size(path)
        is_right = is_whole and note["made_of"] == made_of
        return int(note["num_records"]) if is_right else None
    except (ValueError, KeyError, TypeError):  # No note of ours.
        return None


def _fingerprint(
    examples: Sequence[SquadExample],
    tokenizer: BatchTokenizer,
    options: WindowOptions,
    is_training: bool,
) -> str:
    """Returns a hash of all that the records depend on."""
    basic = tokenizer.basic_tokenizer
    digest = hashlib.sha256()
    for part in (
        _VERSION,
        unicodedata.unidata_version,  # Tells letters from punctuation.
        options,
        is_training,
        basic.do_lower_case,
        basic.never_split.tokens,
        list(tokenizer.vocab.items()),
    ):
        digest.update(repr(part).encode())
    index_of: dict[object, int] = {}
    for example in examples:
        paragraph = example.paragraph
        if paragraph not in index_of:
            index_of[paragraph] = len(index_of)
            digest.update(repr(paragraph.text).encode())
        index, values = index_of[paragraph], tuple(example)
        others = [value for value in values if value is not paragraph]
        digest.update(repr((index, others)).encode())
    return digest.hexdigest()
