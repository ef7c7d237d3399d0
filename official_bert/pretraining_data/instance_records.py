"""Pairs of segments and masks to features, and features to TFRecord files."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from absl import logging

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import tfrecords
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import instance_packing
from official_bert.pretraining_data.corpus import Corpus, Ints
from official_bert.pretraining_data.instance_packing import Columns
from official_bert.pretraining_data.masking import (
    KEEP,
    MaskArrays,
    Replacements,
)
from official_bert.tokenization import BatchTokenizer, require_tokens

# Instances that are processed together; more do not fit the processor's cache.
BATCH_SIZE = 512

_REQUIRED_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options, and what each process derives from them when needed.

    Only the attributes are sent to other processes.

    Attributes:
        options: The options of the command.
        corpus_directory: Where the tokenized corpus is; "" if in memory.
    """

    options: CreatePretrainingData
    corpus_directory: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return Settings, (self.options, self.corpus_directory)

    @functools.cached_property
    def tokenizer(self) -> BatchTokenizer:
        """The tokenizer of `--vocab_file`."""
        return BatchTokenizer(
            self.options.vocab_file, do_lower_case=self.options.do_lower_case
        )

    @functools.cached_property
    def is_continuation(self) -> npt.NDArray[np.bool_]:
        """By token id, whether the token starts with "##"."""
        vocab = self.tokenizer.vocab
        ids = [id_ for token, id_ in vocab.items() if token.startswith("##")]
        flags = np.zeros(max(vocab.values()) + 1, np.bool_)
        flags[ids] = True
        return flags

    @functools.cached_property
    def replacements(self) -> Replacements:
        """What replaces masked tokens."""
        vocab, options = self.tokenizer.vocab, self.options
        return Replacements(
            vocab["[MASK]"],
            np.fromiter(vocab.values(), np.int32, len(vocab)),
            options.mask_share,
            options.random_share,
            options.same_share,
        )

    def check_vocabulary(self) -> None:
        """Raises `InputError` unless the vocabulary fits the options."""
        vocab, options = self.tokenizer.vocab, self.options
        require_tokens(vocab, options.vocab_file, _REQUIRED_TOKENS)
        if options.bert_config_file:
            config = BertConfig.from_json_file(options.bert_config_file)
            config.require_vocabulary(vocab, options.vocab_file)


class Sequences(NamedTuple):
    """n sequences `[CLS] a [SEP] b [SEP]` or `[CLS] a [SEP]`, not masked.

    Attributes:
        input_ids: int32 [n, S], zero-padded.
        is_maskable: bool [n, S], true in a and b.
        num_tokens_a: int64 [n], the number of tokens of a.
        num_tokens: int64 [n], the length of the sequence.
        is_random_next: bool [n], see `segment_pairs.Pair`.
    """

    input_ids: Ints
    is_maskable: npt.NDArray[np.bool_]
    num_tokens_a: npt.NDArray[np.int64]
    num_tokens: npt.NDArray[np.int64]
    is_random_next: npt.NDArray[np.bool_]


def make_sequences(
    corpus: Corpus, pairs: npt.NDArray[np.int64], settings: Settings
) -> Sequences:
    """Returns the sequences of pairs of spans of the corpus.

    The first columns of `pairs` are the fields of `segment_pairs.Pair`.
    """
    vocab = settings.tokenizer.vocab
    starts, ends = pairs[:, 0:4:2], pairs[:, 1:4:2]
    length_a, length_b = (ends - starts).T
    end_a = 1 + length_a
    end_b = end_a + np.where(length_b > 0, 1 + length_b, 0)
    places = np.arange(settings.options.max_seq_length)
    is_maskable = (places > 0) & (places < end_b[:, np.newaxis])
    is_maskable &= places != end_a[:, np.newaxis]
    input_ids = np.zeros(is_maskable.shape, np.int32)
    rows = np.arange(len(pairs))
    input_ids[:, 0] = vocab["[CLS]"]
    input_ids[rows, end_a] = input_ids[rows, end_b] = vocab["[SEP]"]
    input_ids[is_maskable] = corpus.tokens(starts.ravel(), ends.ravel())
    return Sequences(
        input_ids,
        is_maskable,
        length_a,
        end_b + 1,
        pairs[:, 4].astype(np.bool_),
    )


def make_features(sequences: Sequences, masks: MaskArrays) -> Columns:
    """Returns the features of masked sequences (`pretraining_schema`)."""
    rows = np.arange(len(sequences.input_ids))[:, np.newaxis]
    places = np.arange(sequences.input_ids.shape[1])
    slots = np.arange(masks.positions.shape[1])
    is_token = places < sequences.num_tokens[:, np.newaxis]
    is_prediction = slots < masks.counts[:, np.newaxis]
    labels = sequences.input_ids[rows, masks.positions] * is_prediction

    input_ids = sequences.input_ids.copy()
    replaced = is_prediction & (masks.replacements != KEEP)
    places_replaced = np.nonzero(replaced)[0], masks.positions[replaced]
    input_ids[places_replaced] = masks.replacements[replaced]
    is_b = places >= sequences.num_tokens_a[:, np.newaxis] + 2
    is_random_next = sequences.is_random_next[:, np.newaxis]
    return {
        "input_ids": input_ids,
        "input_mask": is_token.astype(np.uint8),
        "segment_ids": (is_token & is_b).astype(np.uint8),
        "masked_lm_positions": masks.positions,
        "masked_lm_ids": labels,
        "masked_lm_weights": is_prediction.astype(np.float32),
        "next_sentence_labels": is_random_next.astype(np.uint8),
    }


class EncodedRecords(NamedTuple):
    """Some encoded records."""

    data: list[bytes]  # To append to each output file.
    num_records: int
    num_tokens: int  # Without padding.


def encode(
    batches: Iterable[Columns], options: CreatePretrainingData
) -> Iterator[EncodedRecords]:
    """Encodes batches of the features of `schemas.pretraining_schema`.

    Records go to the output files in turn.
    """
    if options.pack_sequences:
        limits = instance_packing.Limits(
            options.max_seq_length,
            options.max_predictions_per_seq,
            options.max_sequences_per_row,
        )
        batches = instance_packing.pack_batches(batches, limits)
    num_files = len(options.output_files())
    num_records = 0
    for columns in batches:
        records = list(tfrecords.encode_examples(columns))
        data = [
            tfrecords.join(
                records[(index - num_records) % num_files :: num_files],
                options.compress,
            )
            for index in range(num_files)
        ]
        num_tokens = int(np.count_nonzero(columns["input_mask"]))
        yield EncodedRecords(data, len(records), num_tokens)
        num_records += len(records)


def write(
    parts: Iterable[EncodedRecords], options: CreatePretrainingData
) -> None:
    """Writes all output files, or none if an error occurs.

    Raises:
        InputError: There are no records.
    """
    names = options.output_files()
    num_records = num_tokens = 0
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(files.writing(name)) for name in names]
        for part in parts:
            for file, data in zip(opened, part.data, strict=True):
                file.write(data)
            num_records += part.num_records
            num_tokens += part.num_tokens
        if not num_records:
            raise InputError(
                "--nsp=sop needs a document of more than one token, because a "
                "single token has no order. Received: no such document. Use "
                "other text or another --nsp."
            )
        # A full disk may be reported only now, before any file is renamed.
        for file in opened:
            file.flush()
            files.sync(file.name)
    logging.info(
        "Wrote %d records with %.1f%% padding to %s",
        num_records,
        100 - 100 * num_tokens / (num_records * options.max_seq_length),
        ", ".join(names),
    )
