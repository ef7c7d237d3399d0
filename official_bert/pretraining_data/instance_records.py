"""Makes features from segments and masks, and writes TFRecord files."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from absl import logging

from official_bert.errors import InputError, listed
from official_bert.inputs import record_tokenizer, schemas, tfrecords
from official_bert.io import files
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import instance_packing, masking, sentences
from official_bert.pretraining_data.corpus import Corpus, Ints, Offsets
from official_bert.pretraining_data.instance_packing import FeatureArrays
from official_bert.pretraining_data.job import Job

# Instances processed together; more do not fit into the processor's cache.
BATCH_SIZE = 512

# If a larger share of the text is in no instance, there is a warning.
_MAX_SHARE_DROPPED = 0.5

# The columns of both segments in arrays of pairs.
_STARTS, _ENDS = [0, 2], [1, 3]

_Bools = npt.NDArray[np.bool_]


class Layout(NamedTuple):
    """Where the parts of n sequences are; each field is [n, S].

    A sequence is `[CLS] a [SEP] b [SEP]`, or `[CLS] a [SEP]` if b is empty.
    """

    is_token: _Bools  # False for padding.
    is_segment_b: _Bools  # b and the [SEP] after it.
    is_maskable: _Bools  # a and b, without [CLS] and [SEP].

    @property
    def lengths(self) -> Offsets:
        """The lengths [n] of the sequences, in tokens."""
        return np.count_nonzero(self.is_token, axis=1)


def make_layout(pairs: Offsets, max_seq_length: int) -> Layout:
    """Returns the layout of the sequences of pairs.

    The first columns of `pairs` are the fields of `segment_pairs.Pair`.
    """
    lengths = pairs[:, _ENDS] - pairs[:, _STARTS]
    length_a, length_b = lengths.T[..., np.newaxis]
    first_sep = 1 + length_a
    last_sep = first_sep + np.where(length_b > 0, 1 + length_b, 0)
    places = np.arange(max_seq_length)
    is_token = places <= last_sep
    is_special = (places == 0) | (places == first_sep) | (places == last_sep)
    return Layout(
        is_token, is_token & (places > first_sep), is_token & ~is_special
    )


def make_sequences(corpus: Corpus, pairs: Offsets, job: Job) -> Ints:
    """Returns the sequences of pairs, int32 [n, S], before masking."""
    vocab = job.tokenizer.vocab
    layout = make_layout(pairs, job.options.max_seq_length)
    # [SEP] stays where no other token replaces it.
    input_ids = np.where(layout.is_token, vocab["[SEP]"], 0).astype(np.int32)
    input_ids[:, 0] = vocab["[CLS]"]
    starts, ends = pairs[:, _STARTS].ravel(), pairs[:, _ENDS].ravel()
    input_ids[layout.is_maskable] = corpus.tokens(starts, ends)
    return input_ids


def make_features(
    pairs: Offsets,
    input_ids: Ints,
    masked: masking.MaskedTokens | None,
    job: Job,
) -> FeatureArrays:
    """Masks sequences in place; returns features of `pretraining_schema`.

    If `masked` is None, masks nothing and returns features of
    `unmasked_schema`.
    """
    layout = make_layout(pairs, input_ids.shape[1])
    mask_features: FeatureArrays = {}
    if masked is None:
        mask_features = _word_features(input_ids, layout, job)
    if job.options.words_are_separated:
        input_ids %= job.num_tokens  # Without the marks of continuations.
    if masked:
        mask_features = _mask(input_ids, masked, job)
    return {
        "input_ids": input_ids,
        "input_mask": layout.is_token.astype(np.uint8),
        "segment_ids": layout.is_segment_b.astype(np.uint8),
        "next_sentence_labels": pairs[:, 4:5],  # `is_random_next`.
        **mask_features,
    }


def _mask(
    input_ids: Ints, masked: masking.MaskedTokens, job: Job
) -> FeatureArrays:
    rows, positions, replacements = masked
    labels = input_ids[rows, positions]
    is_kept = replacements == masking.KEEP
    input_ids[rows, positions] = np.where(is_kept, labels, replacements)
    max_predictions = job.options.max_predictions_per_seq
    predictions = np.zeros((3, len(input_ids), max_predictions), np.int32)
    values = np.stack([positions, labels, np.ones_like(labels)])
    predictions[:, rows, masking.ranks(rows)] = values
    return {
        "masked_lm_positions": predictions[0],
        "masked_lm_ids": predictions[1],
        "masked_lm_weights": predictions[2].astype(np.float32),
    }


def _word_features(input_ids: Ints, layout: Layout, job: Job) -> FeatureArrays:
    is_continuation = job.is_continuation[input_ids]
    is_start = masking.word_starts(layout.is_maskable, is_continuation)
    starts = np.where(is_start, np.arange(input_ids.shape[1]), 0)
    starts = np.maximum.accumulate(starts, axis=1) * layout.is_maskable
    return {
        "word_starts": starts,
        "num_to_predict": job.num_to_predict[layout.lengths, np.newaxis],
    }


class EncodedRecords(NamedTuple):
    """A batch of encoded records."""

    data: list[bytes]  # The bytes to append to each output file.
    counts: Counter[str]  # The result of `_count`.


def encode(
    batches: Iterable[FeatureArrays], job: Job
) -> Iterator[EncodedRecords]:
    """Encodes batches of features; records go to the output files in turn."""
    options = job.options
    if options.pack_sequences:
        batches = instance_packing.pack_batches(batches, options)
    num_files = len(options.output_files())
    num_records = 0
    for features in batches:
        if options.masking == "dynamic":
            features = _with_masking(features, job.dynamic_masking)
        records = list(tfrecords.encode_examples(features))
        firsts = [(i - num_records) % num_files for i in range(num_files)]
        data = [
            tfrecords.join(records[first::num_files], options.compress)
            for first in firsts
        ]
        yield EncodedRecords(data, _count(features, options))
        num_records += len(records)


def _count(
    features: FeatureArrays, options: CreatePretrainingData
) -> Counter[str]:
    """Counts records, instances, and tokens without padding.

    `kept` counts the tokens of the text that instances of their own document
    contain: all tokens except [CLS], [SEP] and random segments B.
    """
    # The number of each token's instance in the record, from 1; 0: padding.
    instances = features["input_mask"].astype(np.int64)
    num_instances = instances.max(axis=1).sum()
    labels = features["next_sentence_labels"].astype(np.bool_)
    is_random = labels & (options.nsp == "next")
    is_random_token = np.take_along_axis(is_random, instances - 1, axis=1)
    # A random segment B, with the [SEP] after it.
    is_other = features["segment_ids"].astype(np.bool_) & is_random_token
    num_own = np.count_nonzero((instances > 0) & ~is_other)
    num_special = num_instances * (2 if options.nsp == "none" else 3)
    num_special -= np.count_nonzero(is_random)  # These [SEP] are in `is_other`.
    return Counter(
        records=len(instances),
        instances=int(num_instances),
        tokens=int(np.count_nonzero(instances)),
        kept=int(num_own - num_special),
    )


def _with_masking(
    features: FeatureArrays, values: schemas.Masking
) -> FeatureArrays:
    """Adds the fields of a `Masking` as features; all records have the same."""
    shape = len(features["input_ids"]), 1
    fields = {
        name: np.full(shape, value, "f4" if isinstance(value, float) else "i4")
        for name, value in values._asdict().items()
    }
    return {**features, **fields}


def write(
    batches: Iterable[EncodedRecords], job: Job, text: sentences.Summary
) -> None:
    """Writes all output files, or none if an error occurs."""
    names = job.options.output_files()
    counts = Counter[str]()
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(files.writing(name)) for name in names]
        for batch in batches:
            for file, data in zip(opened, batch.data, strict=True):
                file.write(data)
            counts.update(batch.counts)
        require_records(counts)
        # A full disk may be reported only now, before any file is renamed.
        for file in opened:
            file.flush()
            files.sync(file.name)
    finish(counts, job, text)


def require_records(counts: Counter[str]) -> None:
    """Raises `InputError` if there are no records."""
    if not counts["records"]:
        raise InputError(
            "--nsp=sop needs a document of more than one token, because a "
            "single token has no order. Use other text or another --nsp."
        )


def finish(counts: Counter[str], job: Job, text: sentences.Summary) -> None:
    """Describes the tokenizer beside the records; logs the use of the text."""
    options = job.options
    description = record_tokenizer.describe(
        job.tokenizer.vocab,
        options.vocab_file,
        **job.tokenizer.settings.to_json(),
    )
    description["nsp"] = options.nsp
    for name in options.output_files():
        record_tokenizer.write(name, description, text.share_unknown)
    num_positions = counts["records"] * options.max_seq_length
    padding = 1 - counts["tokens"] / num_positions
    logging.info(
        f"Wrote {counts['instances']} instances in {counts['records']} records "
        f"with {padding:.1%} padding to {listed(options.output_files())}"
    )
    dropped = 1 - counts["kept"] / (options.dupe_factor * text.num_tokens)
    logging.info(f"Dropped or truncated {dropped:.1%} of the tokens")
    if dropped > _MAX_SHARE_DROPPED:
        advice = "Write one sentence per line, or use --split_sentences"
        if options.split_sentences:
            advice = f"Use longer sequences. {sentences.CANNOT_SPLIT}"
        logging.warning(
            "Most of the text is in no instance, because lines are longer than "
            f"--max_seq_length={options.max_seq_length}. {advice}"
        )
