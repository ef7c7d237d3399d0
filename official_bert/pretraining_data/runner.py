"""From text files to TFRecord files."""

import contextlib
import itertools
import os
import random
from collections.abc import Sequence

import tensorflow as tf
from absl import logging

from official_bert import files, progress
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import features, records
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data.documents import read_documents
from official_bert.pretraining_data.instances import Instance, create_instances
from official_bert.tokenization import BatchTokenizer

_NEEDED = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def run(options: CreatePretrainingData) -> None:
    """Writes the instances of `options.input_file` to `options.output_file`.

    Raises:
        InputError: Text, vocabulary or model do not fit the options. Output
            files are then as they were.
    """
    tokenizer = BatchTokenizer(
        options.vocab_file, do_lower_case=options.do_lower_case
    )
    _check_vocabulary(tokenizer.vocab, options)
    for output in options.output_files():
        files.make_directory(os.path.dirname(output) or ".")
    names = files.expand(options.input_file)
    logging.info("Reading %d input files: %s", len(names), ", ".join(names))
    documents = read_documents(names, tokenizer.tokenize)
    rng = random.Random(options.random_seed)
    instances = create_instances(documents, list(tokenizer.vocab), options, rng)
    write_instances(instances, tokenizer.vocab, options)


def _check_vocabulary(
    vocab: dict[str, int], options: CreatePretrainingData
) -> None:
    missing = [token for token in _NEEDED if token not in vocab]
    if missing:
        raise InputError(
            f"{options.vocab_file}: must hold {', '.join(_NEEDED)}, one piece "
            f"a line. Received: a file of {len(vocab)} pieces without "
            f"{', '.join(missing)}."
        )
    if options.bert_config_file:
        config = BertConfig.from_json_file(options.bert_config_file)
        config.require_vocabulary(len(vocab), options.vocab_file)


def write_instances(
    instances: Sequence[Instance],
    vocab: dict[str, int],
    options: CreatePretrainingData,
) -> None:
    """Writes instance i to output file i modulo their number."""
    outputs = options.output_files()
    schema = records.pretraining_schema(
        options.max_seq_length, options.max_predictions_per_seq
    )
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(
                tf.io.TFRecordWriter(stack.enter_context(files.replacing(name)))
            )
            for name in outputs
        ]
        for instance, writer in zip(
            progress.bar(
                instances, description="Writing records", unit="instance"
            ),
            itertools.cycle(writers),
        ):
            values = record_values(instance, vocab, options)
            writer.write(records.encode(schema, values))
    logging.info("Wrote %d instances to %s", len(instances), ", ".join(outputs))


def record_values(
    instance: Instance, vocab: dict[str, int], options: CreatePretrainingData
) -> dict[str, list[int]]:
    """Returns the features of an instance, padded to their fixed lengths."""
    length = options.max_seq_length
    num_predictions = options.max_predictions_per_seq
    input_ids = [vocab[token] for token in instance.tokens]
    label_ids = [vocab[token] for token in instance.masked_lm_labels]
    return {
        "input_ids": features.pad(input_ids, length),
        "input_mask": features.pad([1] * len(input_ids), length),
        "segment_ids": features.pad(instance.segment_ids, length),
        "masked_lm_positions": features.pad(
            instance.masked_lm_positions, num_predictions
        ),
        "masked_lm_ids": features.pad(label_ids, num_predictions),
        "masked_lm_weights": features.pad(
            [1] * len(label_ids), num_predictions
        ),
        "next_sentence_labels": [int(instance.is_random_next)],
    }
