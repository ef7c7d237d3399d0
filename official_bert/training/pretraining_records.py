"""Checks whether pre-training records suit the model and the flags."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert.config import MAX_PADDING, BertConfig
from official_bert.errors import InputError, listed
from official_bert.inputs import datasets, record_tokenizer, records, schemas
from official_bert.inputs.records import RecordFiles
from official_bert.io import files
from official_bert.options import RunPretraining
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths, tokenizer_files
from official_bert.tokenization import load_vocab
from official_bert.tokenization.vocab import MAX_SHARE_UNKNOWN, warn_of_unknown


def expand(patterns: str | None) -> list[str]:
    """Returns the files of records that patterns match, if there are any."""
    if not patterns:
        return []
    names = files.expand(patterns)
    found = [n for n in names if not n.endswith(record_tokenizer.SUFFIX)]
    return records.without_empty(found or names)


def check_descriptions(
    names: list[str], config: BertConfig, options: RunPretraining
) -> None:
    """Raises `InputError` if records do not suit the model or its loss.

    The model's vocabulary may be known from `--vocab_file`, or from a file
    beside its weights; otherwise, only its size is compared. If a file beside
    the vocabulary has the casing, it is compared, too.
    """
    found = record_tokenizer.read_all(names)
    if not found:
        return
    for name, description in found.items():
        nsp = description.get("nsp", options.nsp)
        if options.nsp not in (nsp, "none"):
            both = "none" if nsp == "none" else f"none or {nsp}"
            message = f"must be {both}, as the records of {name} have {nsp}."
            raise options.error("nsp", message)
    name = max(found, key=lambda name: found[name]["share_unknown"])
    description = found[name]
    share = description["share_unknown"]
    if share > MAX_SHARE_UNKNOWN:
        warn_of_unknown(f"{name}: {share:.1%} of the tokens")
    is_same = 0 <= config.vocab_size - description["num_tokens"] <= MAX_PADDING
    model = f"{options.bert_config_file} ({config.vocab_size:,} tokens)"
    if vocab_file := _vocabulary_of_model(options):
        vocab = load_vocab(vocab_file)
        lower = tokenizer_files.read(os.path.dirname(vocab_file)).do_lower_case
        casing = {} if lower is None else {"do_lower_case": lower}
        expected = record_tokenizer.describe(vocab, vocab_file, **casing)
        ours, theirs = (d["tokenizer"] for d in (expected, description))
        is_same = ours.items() <= theirs.items()
        model = record_tokenizer.text(expected)
    if not is_same:
        raise InputError(
            f"{name} was created with {record_tokenizer.text(description)}, "
            f"but {options.flag('model') if options.model else 'the model'} "
            f"has {model}. Create the records with the model's vocabulary and "
            "casing or, if the model is to have another vocabulary, add "
            f"--vocab_file={description['vocab_file']}."
        )


def _vocabulary_of_model(options: RunPretraining) -> str | None:
    run = options.run_directory
    if options.vocab_file:
        return options.vocab_file
    if not options.do_train and run.has(file_names.VOCAB):
        return run.file(file_names.VOCAB)
    if checkpoint := options.init_checkpoint:
        return checkpoint_paths.beside(checkpoint, file_names.VOCAB)
    return None


def open_files(
    paths: list[str], config: BertConfig, options: RunPretraining
) -> RecordFiles:
    """Returns records, after checking them against model and options."""
    num_predictions = options.max_predictions_per_seq
    masking = records.read_masking(paths[0])
    schema = schemas.record_schema(options, is_masked=not masking)
    data = RecordFiles(paths, schema, masking)
    records.check_files(data, config.vocab_size)
    single = []
    if options.nsp != "none":
        single = [path for path in paths if not records.has_two_segments(path)]
    if single:
        logging.warning(
            f"{listed(single)}: the first record has no segment B. If the "
            "records were created with --nsp=none, pass --nsp=none here too"
        )
    if masking and masking.max_predictions_per_seq != num_predictions:
        number = masking.max_predictions_per_seq
        message = f"must be {number}, as in the records."
        raise options.error("max_predictions_per_seq", message)
    return data


@contextlib.contextmanager
def naming_damaged(
    all_data: Iterable[RecordFiles], vocab_size: int
) -> Iterator[None]:
    """Replaces TensorFlow's error by one that names the damaged record."""
    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        UnicodeDecodeError,  # Raised if the message quotes a damaged record.
    ):
        for data in all_data:
            records.check_files(data, vocab_size, limit=None)
        raise  # No record is damaged.


def with_checked_ids(
    batches: tf.data.Dataset, vocab_size: int
) -> tf.data.Dataset:
    """Returns batches that raise an error if an id is out of range.

    Without this check, only CPUs without XLA report such an id.
    """

    @datasets.without_autograph
    def check(batch: dict[str, Any]) -> dict[str, Any]:
        for name in ("input_ids", "masked_lm_ids"):
            if name in batch:
                tf.debugging.assert_non_negative(batch[name])
                tf.debugging.assert_less(batch[name], vocab_size)
        return batch

    return batches.map(check, num_parallel_calls=tf.data.AUTOTUNE)
