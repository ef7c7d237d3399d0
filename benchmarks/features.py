"""Lines per CPU second of `extract_features.py` and of the original's method.

  python -m benchmarks.features CORPUS VOCAB_FILE

CORPUS has one text per line; the first 1,000 are used. The output is four
layers of every token, or their means. Loading the model is included. README.md
describes the rows.
"""

import itertools
import json
import os
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.step import CELLS
from official_bert.inference import feature_extraction
from official_bert.inputs import padding
from official_bert.inputs.schemas import text_schema
from official_bert.io import files
from official_bert.modeling.encoder import Bert
from official_bert.options import ExtractFeatures
from official_bert.sources.formats.tf1 import checkpoint as tf1

LENGTH = 128
BATCH_SIZE = 32
NUM_LINES = 1000


def one_by_one(options: ExtractFeatures) -> None:
    """Writes the JSON lines as the original implementation does."""
    extractor = feature_extraction.FeatureExtractor(options)
    layers = options.layer_indexes
    lines = map(
        feature_extraction.split_pair, files.read_lines(options.input_file)
    )
    length = options.max_seq_length
    rows = [
        row
        for row, _ in feature_extraction.text_rows(
            lines, extractor.tokenizer, length, extractor.settings
        )
    ]
    with files.writing(options.output_file) as file:
        for start in range(0, len(rows), BATCH_SIZE):
            batch_rows = rows[start : start + BATCH_SIZE]
            batch = padding.pad_batch(
                text_schema(LENGTH), batch_rows, LENGTH, BATCH_SIZE
            )
            outputs = np.stack(extractor.engine(batch), axis=2)
            for number, (row, values) in enumerate(
                zip(batch_rows, outputs, strict=False), start
            ):
                tokens = extractor.tokenizer.convert_ids_to_tokens(
                    row["input_ids"]
                )
                features = [
                    {"token": token, "layers": _layers(vectors, layers)}
                    for token, vectors in zip(tokens, values, strict=False)
                ]
                line = {"linex_index": number, "features": features}
                file.write((json.dumps(line) + "\n").encode())


def _layers(vectors: Any, layers: list[int]) -> list[dict[str, Any]]:
    return [
        {"index": index, "values": [round(float(x), 6) for x in vector]}
        for index, vector in zip(layers, vectors, strict=True)
    ]


def read_vectors(path: str) -> Any:
    """Returns all vectors of a file of JSON lines."""
    return np.array(
        [
            layer["values"]
            for line in files.read_lines(path)
            for token in json.loads(line)["features"]
            for layer in token["layers"]
        ]
    )


def save_model(directory: str) -> tuple[str, str]:
    """Saves random weights; returns the config file and the checkpoint."""
    config = CELLS["tiny"].config
    bert = Bert(config)
    bert.build()
    prefix = os.path.join(directory, "bert_model.ckpt")
    tf1.write(prefix, {w.path: w.numpy() for w in bert.trainable_variables})
    path = os.path.join(directory, "bert_config.json")
    files.write_text(path, config.to_json_string())
    return path, prefix


def main(corpus: str, vocab: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        text = os.path.join(directory, "lines.txt")
        lines = list(itertools.islice(files.read_lines(corpus), NUM_LINES))
        files.write_text(text, "\n".join(lines) + "\n")
        config, checkpoint = save_model(directory)

        def options(name: str, **changes: Any) -> ExtractFeatures:
            return ExtractFeatures(
                input_file=text,
                output_file=os.path.join(directory, name),
                bert_config_file=config,
                init_checkpoint=checkpoint,
                vocab_file=vocab,
                layers="-1,-2,0,1",
                **changes,
            )

        ours = feature_extraction.run
        runs = {
            "one by one": (one_by_one, options("reference.jsonl")),
            "jsonl": (ours, options("a.jsonl")),
            "tfrecord": (ours, options("a.tfrecord")),
            "mean, jsonl": (ours, options("m.jsonl", pooling="mean")),
            "mean, npy": (ours, options("m.npy", pooling="mean")),
        }
        ours(options("first.npy", pooling="mean"))  # The first run is slower.
        print("what           lines  CPU s  lines / CPU s  ratio     MB")
        first = 0.0
        for name, (function, run_options) in runs.items():
            start = time.process_time()
            function(run_options)
            seconds = time.process_time() - start
            first = first or seconds
            print(
                f"{name:12} {len(lines):7,} {seconds:6.2f} "
                f"{len(lines) / seconds:14,.0f} {first / seconds:6.1f} "
                f"{files.size(run_options.output_file) / 1e6:6.1f}"
            )
        expected, vectors = (
            read_vectors(runs[name][1].output_file)
            for name in ("one by one", "jsonl")
        )
        print(f"largest difference {abs(vectors - expected).max():.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
