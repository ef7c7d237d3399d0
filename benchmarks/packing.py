"""Tokens per second in pre-training, with and without packing.

  python -m benchmarks.packing VOCAB_FILE SIZE CORPUS...

For each CORPUS, text as `create_pretraining_data.py` reads it, records of
length 512 are created with and without `--pack_sequences`. Then a BERT of SIZE
tiny (2 layers of 128) or mini (4 of 256) is trained from random weights on both
in turn, step by step, with 8 rows per batch. The time is the median of 20 steps
after 3 steps of warm-up, with dropout and update. Takes two to four minutes for
a corpus of 15 MB on two cores.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from benchmarks.sizes import SIZES
from benchmarks.step import training_step
from official_bert.commands import create_pretraining_data
from official_bert.config import BertConfig
from official_bert.inputs import datasets, records, schemas
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import CreatePretrainingData
from official_bert.training.objectives import PretrainingObjective

LENGTH, PREDICTIONS, BATCH_SIZE = 512, 80, 8
NUM_WARM, NUM_STEPS = 3, 20


def create_records(
    corpus: str, vocab_file: str, folder: str, is_packed: bool
) -> records.RecordFiles:
    """Creates records; returns their files."""
    options = CreatePretrainingData(
        input_file=corpus,
        output_file=os.path.join(folder, f"packed_{is_packed}"),
        vocab_file=vocab_file,
        max_seq_length=LENGTH,
        max_predictions_per_seq=PREDICTIONS,
        pack_sequences=is_packed,
        num_workers=2,
    )
    create_pretraining_data.main(options)
    schema = schemas.pretraining_schema(LENGTH, PREDICTIONS)
    if is_packed:
        schema = schemas.packed_schema(schema, options.max_sequences_per_row)
    return records.RecordFiles(options.output_files(), schema)


def count_records(data: records.RecordFiles) -> tuple[int, float]:
    """Returns the number of records and the share that is not padding."""
    num_rows = num_tokens = 0
    for batch in tf.data.TFRecordDataset(list(data.names)).batch(1000):
        mask = records.parse(data.schema, batch)["input_mask"].numpy()
        num_rows += len(mask)
        num_tokens += int(np.count_nonzero(mask))
    return num_rows, num_tokens / (num_rows * LENGTH)


def steps(config: BertConfig, data: records.RecordFiles) -> Iterator[float]:
    keras.utils.set_random_seed(1)
    _, step = training_step(PretrainingModel(config), PretrainingObjective())
    for batch in datasets.training_batches(data, BATCH_SIZE, seed=1):
        start = time.perf_counter()
        step(batch)["loss"].numpy()
        yield time.perf_counter() - start


def median_seconds(
    config: BertConfig, record_sets: Sequence[records.RecordFiles]
) -> list[float]:
    """Returns the median seconds of a step on each of two sets of records."""
    # Steps alternate, so that other load on the machine affects both equally.
    pairs = zip(*(steps(config, data) for data in record_sets), strict=True)
    measured = itertools.islice(pairs, NUM_WARM, NUM_WARM + NUM_STEPS)
    return [*map(statistics.median, zip(*measured, strict=True))]


def main(vocab_file: str, model: str, *corpora: str) -> None:
    print(
        "corpus          size  packed     rows  padding  s / step  tokens / s"
    )
    for corpus in corpora:
        name = os.path.basename(corpus)[:15]
        rates = []
        with tempfile.TemporaryDirectory() as folder:
            record_sets = [
                create_records(corpus, vocab_file, folder, is_packed)
                for is_packed in (False, True)
            ]
            medians = median_seconds(SIZES[model], record_sets)
            for word, data, seconds in zip(
                ("no", "yes"), record_sets, medians, strict=True
            ):
                num_rows, filled = count_records(data)
                rates.append(BATCH_SIZE * LENGTH * filled / seconds)
                print(
                    f"{name:15} {model:5} {word:6} {num_rows:8,} "
                    f"{1 - filled:8.1%} {seconds:9.3f} {rates[-1]:11,.0f}"
                )
        print(f"{'':15} ratio: {rates[1] / rates[0]:.2f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
