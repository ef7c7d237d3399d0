"""Damage to valid files: strategies of `tools.fuzz` for each file format.

`damaged(file_format, path)` draws {path: bytes}. In half of the examples, bytes
are damaged. In the other half, the file is parsed, and one value is damaged, so
that checksums and syntax stay valid.
"""

import copy
import csv
import io
import json
import os
import struct
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from official_bert.inputs import tfrecords
from official_bert.sources.formats.tf1 import checkpoint as tf1

Draw = Callable[..., Any]

_LONG = 10 * 2**20
ODD_TEXTS = [
    *("", " ", "\0", "\ufeff", "\u2028", "\x85", "\r", "\t", '"', "\\"),
    *("-1", "0", "1e999", "nan", "9" * 5000, "[MASK]", "[CLS] [SEP]", "|||"),
    *("a" * 1000, "a " * 1000, "\u0301" * 50, "ﷺ" * 50, "中文", "%s{}{0}"),
    *("/", "..", "a/../b", "~", "*", "[", "true", "null", "[]", "{}"),
]
ODD_NUMBERS = [-1, 0, 1, 2, 2**31, 2**63, -(2**63) - 1, 10**30, 1.5, 1e308]
ODD_VALUES = [
    *(None, True, False, float("nan"), float("inf"), "\ud800", [], {}, [[]]),
    *(["a", 1, None], {"a": {"a": []}}, [1.5], ["a", "a"], *ODD_NUMBERS),
    *ODD_TEXTS,
]
_ODD_BYTES = [
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\n\n\n\n", b"\t"),
    *(b"\xed\xa0\x80", b"\x1f\x8b\x08", b"PK\x03\x04", b"[" * 200_000),
    *(b'{"a":' * 50_000, b"9" * 10_000, b"-" * 100, b'"', b",", b"{}", b"\x80"),
]
_ENCODINGS = ("utf-16", "utf-32", "latin-1", "utf-7", "utf-8-sig", "shift-jis")

texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=40)
values = st.sampled_from(ODD_VALUES) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def _slice(draw: Draw, content: bytes) -> slice:
    start = draw(st.integers(0, len(content)))
    return slice(start, start + draw(st.integers(0, 64)))


def _flip(draw: Draw, content: bytes) -> bytes:
    if not content:
        return b"\0"
    index = draw(st.integers(0, len(content) - 1))
    changed = content[index] ^ draw(st.integers(1, 255))
    return content[:index] + bytes([changed]) + content[index + 1 :]


def _cut(draw: Draw, content: bytes) -> bytes:
    return content[: draw(st.integers(0, len(content)))]


def _remove(draw: Draw, content: bytes) -> bytes:
    part = _slice(draw, content)
    return content[: part.start] + content[part.stop :]


def _double(draw: Draw, content: bytes) -> bytes:
    part = _slice(draw, content)
    return content[: part.stop] + content[part.start :]


def _swap(draw: Draw, content: bytes) -> bytes:
    a, b = sorted(draw(st.integers(0, len(content))) for _ in range(2))
    size = min(64, b - a)
    first, second = content[a : a + size], content[b : b + size]
    return content[:a] + second + content[a + size : b] + first + content[b:]


def _insert(draw: Draw, content: bytes) -> bytes:
    index = draw(st.integers(0, len(content)))
    chunk = draw(st.sampled_from(_ODD_BYTES) | st.binary(max_size=20))
    return content[:index] + chunk + content[index:]


def _encode(draw: Draw, content: bytes) -> bytes:
    text = content.decode("utf-8", errors="replace")
    encoding = draw(st.sampled_from(_ENCODINGS))
    return text.encode(encoding, errors="replace")


def _long_line(draw: Draw, content: bytes) -> bytes:
    word = draw(st.sampled_from([b"a", b"word1 ", b"9", b"\xe4\xb8\xad"]))
    start = content.find(b"\n", draw(st.integers(0, len(content)))) + 1
    return content[:start] + word * (_LONG // len(word)) + content[start:]


_CHANGES = [_flip, _cut, _remove, _double, _swap, _insert, _encode]


def _damage_bytes(draw: Draw, content: bytes) -> bytes:
    if draw(st.integers(0, 199)) == 137:  # Such a line takes seconds.
        return _long_line(draw, content)
    for _ in range(draw(st.integers(1, 3))):
        content = draw(st.sampled_from(_CHANGES))(draw, content)
    return content


def _damage_value(draw: Draw, value: Any) -> Any:
    """Returns a JSON value with one part replaced, removed or renamed."""
    if not isinstance(value, dict | list) or not value:
        return draw(values)
    kinds = [*["deeper"] * 3, "this", "remove", "add"]
    kind = draw(st.sampled_from(kinds))
    if kind == "this":
        return draw(values)
    value = copy.copy(value)
    keys = [*value] if isinstance(value, dict) else range(len(value))
    key = draw(st.sampled_from(keys))
    if kind == "remove":
        del value[key]
    elif kind == "add" and isinstance(value, dict):
        value[draw(texts)] = draw(values)
    elif kind == "add":
        value.insert(key, draw(values))
    else:
        value[key] = _damage_value(draw, value[key])
    return value


def _damage_json(draw: Draw, content: bytes) -> bytes:
    return json.dumps(_damage_value(draw, json.loads(content))).encode()


def _damage_json_lines(draw: Draw, content: bytes) -> bytes:
    lines = content.splitlines()
    index = draw(st.integers(0, len(lines) - 1))
    lines[index] = _damage_json(draw, lines[index])
    return b"\n".join(lines) + b"\n"


def _damage_lines(draw: Draw, content: bytes) -> bytes:
    """Replaces, repeats or removes a line of text."""
    lines = content.decode().split("\n")
    index = draw(st.integers(0, len(lines) - 1))
    times = draw(st.integers(0, 2))
    line = draw(texts | st.just(lines[index]))
    lines[index : index + 1] = [line] * times
    return "\n".join(lines).encode("utf-8", errors="surrogatepass")


def _damage_table(draw: Draw, content: bytes, separator: str) -> bytes:
    """Replaces, repeats or removes a field."""
    rows = [*csv.reader(io.StringIO(content.decode()), delimiter=separator)]
    row = draw(st.sampled_from(rows))
    index = draw(st.integers(0, len(row) - 1)) if row else 0
    times = draw(st.sampled_from([0, 1, 1, 1, 2]))
    row[index : index + 1] = [draw(texts)] * times
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=separator, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode("utf-8", errors="surrogatepass")


def _damage_records(draw: Draw, content: bytes) -> bytes:
    """Changes one feature of one record; lengths and checksums are right."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        records = [*tfrecords.read(file.name)]
    index = draw(st.integers(0, len(records) - 1))
    example = tf.train.Example.FromString(records[index])
    features = example.features.feature
    name = draw(st.sampled_from(sorted(features)))
    kind = draw(st.sampled_from(["value", "value", "length", "type", "remove"]))
    numbers = features[name].int64_list.value or features[name].float_list.value
    if kind == "remove":
        del features[name]
    elif kind == "type":
        features[name].bytes_list.value.append(draw(st.binary(max_size=9)))
    elif kind == "length":
        numbers.extend(list(numbers) * draw(st.integers(1, 3)))
    elif features[name].HasField("int64_list"):
        position = draw(st.integers(0, len(numbers) - 1))
        numbers[position] = draw(
            st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)
        )
    else:
        position = draw(st.integers(0, len(numbers) - 1))
        numbers[position] = draw(st.floats(width=32))
    records[index] = example.SerializeToString()
    return tfrecords.join(records, compress=False)


def _damage_safetensors(draw: Draw, content: bytes) -> bytes:
    """Changes the header, a JSON object after its length."""
    (size,) = struct.unpack("<Q", content[:8])
    header = _damage_json(draw, content[8 : 8 + size])
    return struct.pack("<Q", len(header)) + header + content[8 + size :]


def _damage_checkpoint(draw: Draw, prefix: str) -> dict[str, bytes]:
    """Changes an array of a TF1 checkpoint, with valid checksums."""
    reader = tf.train.load_checkpoint(prefix)
    arrays = {
        n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()
    }
    name = draw(st.sampled_from(sorted(arrays)))
    array = np.asarray(arrays.pop(name))
    changes: dict[str, Callable[[], Any]] = {
        "name": lambda: array,
        "shape": lambda: array[None],
        "type": lambda: array.astype(np.float64),
        "integers": lambda: array.astype(np.int32),
        "texts": lambda: np.full(array.shape, b"a", object),
        "nan": lambda: array * np.float32("nan"),
        "huge": lambda: np.full_like(array, np.iinfo(np.int64).max),
        "empty": lambda: array.ravel()[:0],
    }
    kind = draw(st.sampled_from(["remove", *changes]))
    if kind != "remove":
        arrays[name + "_2" if kind == "name" else name] = changes[kind]()
    with tempfile.TemporaryDirectory() as folder:
        tf1.write(os.path.join(folder, "model"), arrays)
        damaged = {}
        for ending in (".index", ".data-00000-of-00001"):
            with open(os.path.join(folder, f"model{ending}"), "rb") as file:
                damaged[prefix + ending] = file.read()
    return damaged


_PARSED: Mapping[str, Callable[..., bytes]] = {
    "json": _damage_json,
    "jsonl": _damage_json_lines,
    "lines": _damage_lines,
    "csv": lambda draw, content: _damage_table(draw, content, ","),
    "tsv": lambda draw, content: _damage_table(draw, content, "\t"),
    "records": _damage_records,
    "safetensors": _damage_safetensors,
    "bytes": _damage_bytes,
}


@st.composite
def damaged(draw: Draw, file_format: str, path: str) -> dict[str, bytes]:
    """Draws {path: bytes} of a damaged file, or of up to two of a checkpoint.

    Args:
        draw: Passed by Hypothesis.
        file_format: A key of `_PARSED`, or "checkpoint".
        path: The valid file, or the prefix of the checkpoint.
    """
    is_parsed = draw(st.booleans())
    if file_format == "checkpoint":
        if is_parsed:
            return _damage_checkpoint(draw, path)
        endings = (".index", ".index", ".data-00000-of-00001")
        path += draw(st.sampled_from(endings))
    with open(path, "rb") as file:
        content = file.read()
    damage = _PARSED[file_format] if is_parsed else _damage_bytes
    return {path: damage(draw, content)}
