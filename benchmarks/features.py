"""How many lines' vectors are written in a second of processor time.

  python -m benchmarks.features CORPUS BERT_CONFIG_FILE INIT_CHECKPOINT \
    VOCAB_FILE 1000

`one by one` does what the 2018 release does, with our model: batches in the
order of the input, all padded to 128 pieces, and `round` and `json.dumps` for
every number. CORPUS has one text per line; the first 1,000 are taken. What
is written are four layers of every piece, or their means.
"""

import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.inference import feature_extraction as features
from official_bert.inputs import padding
from official_bert.inputs.schemas import text_schema
from official_bert.options import ExtractFeatures

LENGTH = 128
BATCH_SIZE = 32


def one_by_one(options: ExtractFeatures) -> None:
    """Does what `features.run` does for JSON lines, step by step."""
    extractor = features.load(options)
    layers = options.layer_indexes
    rows = list(extractor._rows(files.read_lines(options.input_file)))
    number = 0
    with files.writing(options.output_file) as file:
        for start in range(0, len(rows), BATCH_SIZE):
            some = rows[start : start + BATCH_SIZE]
            batch = padding.pad_batch(
                text_schema(LENGTH), some, LENGTH, BATCH_SIZE
            )
            found = extractor._compiled(*map(tf.constant, batch.values()))
            for row, values in zip(some, found.numpy(), strict=False):
                tokens = extractor.tokenizer.convert_ids_to_tokens(
                    row["input_ids"]
                )
                described = [
                    {"token": token, "layers": _layers(vectors, layers)}
                    for token, vectors in zip(tokens, values, strict=False)
                ]
                line = {"linex_index": number, "features": described}
                file.write((json.dumps(line) + "\n").encode())
                number += 1


def _layers(vectors: Any, layers: list[int]) -> list[dict[str, Any]]:
    return [
        {"index": index, "values": [round(float(x), 6) for x in vector]}
        for index, vector in zip(layers, vectors, strict=True)
    ]


def measure(run: Callable[[], None]) -> float:
    """Returns the CPU seconds of a run, loading included."""
    start = time.process_time()
    run()
    return time.process_time() - start


def numbers(path: str) -> Any:
    """Returns all vectors of a file of JSON lines."""
    return np.array(
        [
            layer["values"]
            for line in files.read_lines(path)
            for token in json.loads(line)["features"]
            for layer in token["layers"]
        ],
        np.float32,
    )


def main(corpus: str, config: str, checkpoint: str, vocab: str, n: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "lines.txt")
        lines = list(itertools.islice(files.read_lines(corpus), int(n)))
        files.write_text(text, "\n".join(lines) + "\n")

        def options(name: str, **more: Any) -> ExtractFeatures:
            return ExtractFeatures(
                input_file=text,
                output_file=os.path.join(folder, name),
                bert_config_file=config,
                init_checkpoint=checkpoint,
                vocab_file=vocab,
                layers="-1,-2,0,1",
                **more,
            )

        runs = {
            "one by one": (one_by_one, options("reference.jsonl")),
            "jsonl": (features.run, options("a.jsonl")),
            "tfrecord": (features.run, options("a.tfrecord")),
            "mean, jsonl": (features.run, options("m.jsonl", pooling="mean")),
            "mean, npy": (features.run, options("m.npy", pooling="mean")),
        }
        features.load(options("x"))  # What takes long the first time only.
        print("what           lines  CPU s  lines / CPU s  ratio     MB")
        first = 0.0
        for name, (function, its) in runs.items():
            seconds = measure(lambda: function(its))  # noqa: B023
            first = first or seconds
            print(
                f"{name:12} {len(lines):7,} {seconds:6.2f} "
                f"{len(lines) / seconds:14,.0f} {first / seconds:6.1f} "
                f"{files.size(its.output_file) / 1e6:6.1f}"
            )
        found = numbers(runs["jsonl"][1].output_file)
        difference = found - numbers(runs["one by one"][1].output_file)
        print(f"largest difference {abs(difference).max():.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
