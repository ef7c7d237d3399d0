"""Feature vectors of lines of text (`extract_features.py`)."""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from official_bert.errors import InputError
from official_bert.inference import engine_choice
from official_bert.inference.engine_choice import EngineChoice
from official_bert.inputs import padding, text_inputs, tfrecords
from official_bert.inputs.schemas import text_schema
from official_bert.io import files, progress
from official_bert.options import ExtractFeatures
from official_bert.tasks.documents import warn_of_truncation

# Limits of a chunk of lines, which are sorted by length to make batches.
_CHUNK_LINES = 4096
_CHUNK_BYTES = 2**27


class LineVectors(NamedTuple):
    """The vectors of a line."""

    number: int  # The number of the line, from 0.
    tokens: Sequence[str]  # Including [CLS] and [SEP].
    values: npt.NDArray[np.float32]  # [S, layers, H], or pooled [layers, H].


class FeatureExtractor:
    """Computes vectors of texts with the model that the options name."""

    def __init__(self, options: ExtractFeatures) -> None:
        self.options = options
        self.config = options.model_files.config
        depth = self.config.num_hidden_layers
        layers = [number % depth for number in options.layer_indexes]
        choice = EngineChoice(options.engine, options.precision)
        self.engine, self.tokenizer = engine_choice.load_encoder(
            options.model_files, layers, choice
        )
        self.num_truncated = 0
        self._special_ids = text_inputs.special_ids(self.tokenizer.vocab)

    def stream(self, lines: Iterable[str]) -> Iterator[LineVectors]:
        """Yields the vectors of each line, in order.

        A line is a text, or two texts separated by ` ||| `. One chunk of lines
        is in memory at a time.
        """
        numbers = itertools.count()
        for rows in self._chunks(lines):
            vectors = self._compute_vectors(rows)
            for row in rows:
                ids = row["input_ids"]
                tokens = self.tokenizer.convert_ids_to_tokens(ids)
                # Popped, so that written vectors are freed.
                yield LineVectors(next(numbers), tokens, vectors.pop(0))

    def _chunks(self, lines: Iterable[str]) -> Iterator[list[padding.Unpadded]]:
        num_layers = len(self.options.layer_indexes)
        vector_bytes = 4 * num_layers * self.config.hidden_size
        is_pooled = self.options.pooling != "none"
        rows: list[padding.Unpadded] = []
        num_vectors = 0
        for row in self._rows(lines):
            rows.append(row)
            num_vectors += 1 if is_pooled else len(row["input_ids"])
            is_large = num_vectors * vector_bytes >= _CHUNK_BYTES
            if is_large or len(rows) == _CHUNK_LINES:
                yield rows
                rows, num_vectors = [], 0
        if rows:
            yield rows

    def _rows(self, lines: Iterable[str]) -> Iterator[padding.Unpadded]:
        ids = self.tokenizer.tokenize_lines_to_ids(
            text for line in lines for text in split_pair(line)
        )
        length = self.options.max_seq_length
        for ids_a, ids_b in zip(ids, ids, strict=True):
            pair = text_inputs.truncate(ids_a, ids_b, length)
            self.num_truncated += pair != (ids_a, ids_b)
            yield text_inputs.text_features(*pair, self._special_ids)

    def _compute_vectors(self, rows: Sequence[padding.Unpadded]) -> list[Any]:
        """Returns `LineVectors.values` for each row."""
        lengths = [padding.row_length(row) for row in rows]
        schema = text_schema(self.options.max_seq_length)

        def run(indices: list[int]) -> Any:
            batch_rows = [rows[index] for index in indices]
            longest = lengths[indices[0]]
            batch = padding.pad_batch(schema, batch_rows, longest, len(indices))
            layers = zip(*self.engine(batch), strict=True)
            return [
                self._pool([layer[: lengths[index]] for layer in of_row])
                for index, of_row in zip(indices, layers, strict=True)
            ]

        vectors: list[Any] = [None] * len(rows)
        for indices, values in padding.map_batches(
            run, lengths, self.options.batch_size
        ):
            for index, array in zip(indices, values, strict=True):
                vectors[index] = array
        return vectors

    def _pool(self, layers: Sequence[np.ndarray]) -> np.ndarray:
        """Returns [S, layers, H], or pooled [layers, H], for layers [S, H]."""
        vectors = POOLING[self.options.pooling](layers)
        if self.options.normalize:
            lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
            # A zero vector stays zero.
            vectors /= np.maximum(lengths, 1e-12)
        return vectors


# {--pooling: returns [S, layers, H], or pooled [layers, H], for layers [S, H]},
# always a new array.
POOLING: dict[str, Callable[[Sequence[np.ndarray]], np.ndarray]] = {
    "none": lambda layers: np.stack(layers, axis=1),
    "cls": lambda layers: np.stack([layer[0] for layer in layers]),
    "mean": lambda layers: np.stack([layer.mean(axis=0) for layer in layers]),
    "max": lambda layers: np.stack([layer.max(axis=0) for layer in layers]),
}


def split_pair(line: str) -> tuple[str, str]:
    """Splits a line at its last ` ||| `. If it has none, text B is "".

    As in the original implementation, the line is stripped.
    """
    line = line.strip()
    text_a, separator, text_b = line.rpartition(" ||| ")
    return (text_a, text_b) if separator else (line, "")


def run(options: ExtractFeatures) -> None:
    """Writes the vectors of all lines.

    Raises `InputError` if the input is invalid; then nothing is written.
    """
    path = options.input_file
    num_lines = sum(1 for _ in files.read_lines(path))
    if not num_lines:
        raise InputError(f"{path}: must contain lines of text. Received: none.")
    extractor = FeatureExtractor(options)
    lines = progress.bar(
        extractor.stream(files.read_lines(path)),
        description="Extracting",
        total=num_lines,
        unit=" lines",
    )
    with files.writing(options.output_file) as file:
        for line in lines:
            if options.resolved_format == "npy":
                file.write(npy_bytes(line, num_lines))
            elif options.resolved_format == "tfrecord":
                file.write(tfrecord_bytes(line, options.layer_indexes))
            else:
                file.write(json_bytes(line, options.layer_indexes))
    if extractor.num_truncated:
        limit = extractor.config.max_position_embeddings
        advice = f". --max_seq_length may be up to {limit}"
        if options.max_seq_length == limit:
            advice = ", the most that the model can read"
        number = f"{extractor.num_truncated} of {num_lines}"
        warn_of_truncation(number, options.max_seq_length, advice)


def json_bytes(line: LineVectors, layers: Sequence[int]) -> bytes:
    """Returns a JSON object with the keys of the 2018 release.

    Values are rounded to six decimals. The second form is for pooled vectors::

        {"linex_index": 0, "features": [{"token": "[CLS]", "layers":
            [{"index": -1, "values": [0.1, ...]}, ...]}, ...]}
        {"linex_index": 0, "layers": [{"index": -1, "values": [0.1, ...]}, ...]}
    """

    def to_json(vectors: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
        pairs = zip(layers, vectors, strict=True)
        return [{"index": index, "values": values} for index, values in pairs]

    # In float64, this gives the same result as Python's `round`.
    values = line.values.astype(np.float64).round(6)
    record: dict[str, Any] = {"linex_index": line.number}
    if values.ndim == 2:
        record["layers"] = to_json(values)
    else:
        record["features"] = [
            {"token": token, "layers": to_json(vectors)}
            for token, vectors in zip(line.tokens, values, strict=True)
        ]
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(record, option=options)


def npy_bytes(line: LineVectors, num_lines: int) -> bytes:
    """Returns a row of a float32 array [num_lines, layers * H].

    The header of the file precedes the first row.
    """
    file = io.BytesIO()
    if line.number == 0:
        shape = (num_lines, line.values.size)
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + line.values.astype("<f4").tobytes()


def tfrecord_bytes(line: LineVectors, layers: Sequence[int]) -> bytes:
    """Returns a record with a `tf.train.Example`.

    Features: `linex_index`, int64 [1]; `tokens`, bytes [S]; and the vectors of
    each layer, such as `layer_-1`, float32 [S * H], or [H] if pooled.
    """
    columns = {
        "linex_index": np.array([[line.number]]),
        "tokens": np.array([[*map(str.encode, line.tokens)]], object),
    }
    for layer in set(layers):  # A layer may be given twice.
        values = line.values[..., layers.index(layer), :]
        columns[f"layer_{layer}"] = values.reshape(1, -1)
    [example] = tfrecords.encode_examples(columns)
    return tfrecords.frame(example)
