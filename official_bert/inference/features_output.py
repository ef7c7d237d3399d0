"""Vectors of lines -> JSON lines, .npy or TFRecord."""

import json
from collections.abc import Iterable, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from official_bert.inference import decimals
from official_bert.inputs import tfrecords

_Floats = npt.NDArray[np.float32]


class LineVectors(NamedTuple):
    """What BERT says of a line.

    Attributes:
        number: Of the line, from 0.
        tokens: All pieces, [CLS] and [SEP]s among them.
        values: float32 [pieces, layers, H], or pooled [layers, H].
    """

    number: int
    tokens: Sequence[str]
    values: _Floats


def write_jsonl(
    file: BinaryIO,
    found: Iterable[LineVectors],
    layers: Sequence[int],
    num_lines: int,
) -> None:
    """Writes a JSON object for each line, with the keys of 2018.

    ```
    {"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1,
    "values": [0.1, ...]}, ...]}, ...]}
    {"linex_index": 0, "layers": [{"index": -1, "values": [0.1, ...]}, ...]}
    ```

    Args:
        file: To write to.
        found: What to write; pooled vectors give lines of the second kind.
        layers: Their numbers.
        num_lines: How many `found` has.
    """
    for line in found:
        rows = decimals.format_rows(
            line.values.reshape(-1, line.values.shape[-1])
        )
        of_token = [
            _layers_json(rows[start : start + len(layers)], layers)
            for start in range(0, len(rows), len(layers))
        ]
        file.write(b'{"linex_index": %d, ' % line.number)
        if line.values.ndim == 2:
            file.write(b'"layers": %b}\n' % of_token[0])
            continue
        tokens = [json.dumps(token).encode() for token in line.tokens]
        parts = [
            b'{"token": %b, "layers": %b}' % pair
            for pair in zip(tokens, of_token, strict=True)
        ]
        file.write(b'"features": [%b]}\n' % b", ".join(parts))


def _layers_json(rows: Sequence[bytes], layers: Sequence[int]) -> bytes:
    return b"[%b]" % b", ".join(
        b'{"index": %d, "values": [%b]}' % pair
        for pair in zip(layers, rows, strict=True)
    )


def write_npy(
    file: BinaryIO,
    found: Iterable[LineVectors],
    layers: Sequence[int],
    num_lines: int,
) -> None:
    """Writes a float32 array [lines, layers * H], a row at a time.

    Args:
        file: To write to.
        found: Pooled vectors.
        layers: Their numbers; of each line, they are behind one another.
        num_lines: How many `found` has; the array's shape stands before it.
    """
    for line in found:
        if line.number == 0:
            header = {
                "descr": "<f4",
                "fortran_order": False,
                "shape": (num_lines, line.values.size),
            }
            np.lib.format.write_array_header_1_0(file, header)
        file.write(line.values.astype("<f4").tobytes())


def write_tfrecord(
    file: BinaryIO,
    found: Iterable[LineVectors],
    layers: Sequence[int],
    num_lines: int,
) -> None:
    """Writes a `tf.train.Example` for each line.

    Its features: `linex_index`, int64 [1]; `tokens`, bytes [pieces]; and for
    each layer its values, as `layer_-1`, float32 [H] if pooled, or else
    [pieces * H], one piece's after the other's.

    Args:
        file: To write to.
        found: What to write.
        layers: Their numbers.
        num_lines: How many `found` has.
    """
    for line in found:
        example = tf.train.Example()
        feature = example.features.feature
        feature["linex_index"].int64_list.value.append(line.number)
        feature["tokens"].bytes_list.value.extend(
            token.encode() for token in line.tokens
        )
        # One that is named twice is there once.
        places = {layer: place for place, layer in enumerate(layers)}
        for layer, place in places.items():
            values = line.values[..., place, :].ravel()
            feature[f"layer_{layer}"].float_list.value.extend(values)
        data = example.SerializeToString(deterministic=True)
        file.write(tfrecords.frame(data))


WRITERS = {
    "jsonl": write_jsonl,
    "npy": write_npy,
    "tfrecord": write_tfrecord,
}
