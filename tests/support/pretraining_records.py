"""Runs `create_pretraining_data.py` in this process and reads its records."""

import pathlib

from official_bert.commands import create_pretraining_data
from official_bert.inputs import records, schemas, tfrecords
from official_bert.options import CreatePretrainingData
from support import SPECIAL, write_vocab


def write_inputs(directory, text, tokens):
    """Writes `text.txt`, and `vocab.txt` with special tokens and `tokens`."""
    (directory / "text.txt").write_text(text)
    write_vocab(directory, [*SPECIAL, *tokens])
    return directory


def make(inputs, output_file, **changes):
    """Makes records of `write_inputs`; returns the bytes of each file."""
    options = CreatePretrainingData(
        **{
            "input_file": str(inputs / "text.txt"),
            "output_file": str(output_file),
            "vocab_file": str(inputs / "vocab.txt"),
            "max_seq_length": 32,
            "max_predictions_per_seq": 5,
            **changes,
        }
    )
    create_pretraining_data.main(options)
    return [pathlib.Path(name).read_bytes() for name in options.output_files()]


def packing(max_seq_length, max_predictions_per_seq, max_sequences_per_row):
    """Returns options of records whose rows have these capacities."""
    return CreatePretrainingData(
        max_seq_length=max_seq_length,
        max_predictions_per_seq=max_predictions_per_seq,
        max_sequences_per_row=max_sequences_per_row,
        pack_sequences=True,
    )


def parse(
    path, max_seq_length, max_predictions_per_seq, packed=None, is_dynamic=False
):
    """Returns {feature: array} of all records of a file.

    `packed` is the `max_sequences_per_row` of packed records.
    """
    sizes = max_seq_length, max_predictions_per_seq
    schema = schemas.pretraining_schema(*sizes)
    if is_dynamic:
        schema = schemas.unmasked_schema(max_seq_length)
    if packed:
        schema = schemas.packed_schema(schema, packed)
    batch = records.parse(schema, list(tfrecords.read(str(path))))
    return {name: values.numpy() for name, values in batch.items()}
