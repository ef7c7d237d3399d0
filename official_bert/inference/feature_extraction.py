"""Feature vectors of lines of text (`extract_features.py`)."""

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.inference.trained_models import load_encoder
from official_bert.inputs import padding, text_inputs, tfrecords
from official_bert.inputs.schemas import text_schema
from official_bert.io import files, progress
from official_bert.options import ExtractFeatures

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
        self.bert, self.tokenizer, _ = load_encoder(options.model_files)
        self._special_ids = text_inputs.special_ids(self.tokenizer.vocab)
        ids = tf.TensorSpec([None, None], tf.int32)
        self._compiled = tf.function(
            self._run, input_signature=[ids] * 3, autograph=False
        )

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
        vector_bytes = 4 * num_layers * self.bert.config.hidden_size
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
            yield text_inputs.text_features(*pair, self._special_ids)

    def _compute_vectors(self, rows: Sequence[padding.Unpadded]) -> list[Any]:
        """Returns `LineVectors.values` for each row."""
        lengths = [padding.row_length(row) for row in rows]
        schema = text_schema(self.options.max_seq_length)

        def run(indices: list[int]) -> Any:
            batch_rows = [rows[index] for index in indices]
            longest = lengths[indices[0]]
            batch = padding.pad_batch(schema, batch_rows, longest, len(indices))
            return self._compiled(*map(tf.constant, batch.values())).numpy()

        vectors: list[Any] = [None] * len(rows)
        for indices, values in padding.map_batches(
            run, lengths, self.options.batch_size
        ):
            for index, array in zip(indices, values, strict=True):
                if self.options.pooling == "none":
                    # A view would keep the array of the whole batch in memory.
                    array = array[: lengths[index]].copy()
                vectors[index] = array
        return vectors

    def _run(self, input_ids: Any, input_mask: Any, segment_ids: Any) -> Any:
        """Returns float32 [B, S, layers, H], or pooled [B, layers, H]."""
        outputs = self.bert(input_ids, input_mask, segment_ids).encoder_outputs
        layers = [outputs[index] for index in self.options.layer_indexes]
        vectors = tf.stack(layers, axis=2)
        vectors = pool(vectors, input_mask, self.options.pooling)
        if self.options.normalize:
            # With this epsilon, a zero vector stays zero.
            vectors = tf.math.l2_normalize(vectors, axis=-1, epsilon=1e-24)
        return vectors


def split_pair(line: str) -> tuple[str, str]:
    """Splits a line at its last ` ||| `. If it has none, text B is "".

    As in the original implementation, the line is stripped.
    """
    line = line.strip()
    text_a, separator, text_b = line.rpartition(" ||| ")
    return (text_a, text_b) if separator else (line, "")


def pool(layers: Any, input_mask: Any, pooling: str) -> Any:
    """Pools [B, S, layers, H] to [B, layers, H], with [CLS] and [SEP]."""
    if pooling == "none":
        return layers
    if pooling == "cls":
        return layers[:, 0]
    is_real = tf.cast(input_mask, tf.bool)[:, :, tf.newaxis, tf.newaxis]
    if pooling == "max":
        return tf.reduce_max(tf.where(is_real, layers, -np.inf), axis=1)
    total = tf.reduce_sum(tf.where(is_real, layers, 0.0), axis=1)
    count = tf.reduce_sum(tf.cast(is_real, tf.float32), axis=1)
    return total / count


def run(options: ExtractFeatures) -> None:
    """Writes the vectors of all lines.

    Raises `InputError` if the input is invalid; then nothing is written.
    """
    path = options.input_file
    num_lines = sum(1 for _ in files.read_lines(path))
    if not num_lines:
        raise InputError(f"{path}: must contain lines of text. Received: none.")
    lines = progress.bar(
        FeatureExtractor(options).stream(files.read_lines(path)),
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
    example = tf.train.Example()
    feature = example.features.feature
    feature["linex_index"].int64_list.value.append(line.number)
    feature["tokens"].bytes_list.value.extend(map(str.encode, line.tokens))
    for layer in set(layers):  # A layer may be given twice.
        values = line.values[..., layers.index(layer), :].ravel()
        feature[f"layer_{layer}"].float_list.value.extend(values)
    return tfrecords.frame(example.SerializeToString(deterministic=True))
