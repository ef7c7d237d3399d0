r"""TFRecord files of `tf.train.Example`s without TensorFlow.

TensorFlow takes seconds to import, and protobuf encodes one example at a time.
`encode_examples` encodes whole arrays, several times faster.

A record is its length in 8 bytes, the checksum of the length, the data, and the
checksum of the data. A checksum is a CRC-32C in 4 bytes. It is masked (rotated
and increased by a constant), because the CRC of data that ends in its own CRC
would not depend on the data.

A `tf.train.Example` is a tree of messages, each a tag, its size and content::

    Example     \n SIZE features
    features    \n SIZE entry ...                 sorted by name
    entry       \n SIZE (\n SIZE name) (\x12 SIZE feature)
    feature     \x1a SIZE int64_list              or \x12 SIZE float_list,
                                                  or \n SIZE bytes_list
    int64_list  \n SIZE values                    float_list: the same
    bytes_list  \n SIZE value ...

Floats have four bytes. Sizes and integers are base-128 varints, see
protobuf.dev/programming-guides/encoding.
"""

import functools
import gzip
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

from official_bert.errors import InputError
from official_bert.io import files

_HEADER_SIZE, _FOOTER_SIZE = 12, 4

_FIELD_1, _FIELD_2, _FIELD_3 = b"\x0a", b"\x12", b"\x1a"


def encode_examples(columns: Mapping[str, npt.NDArray[Any]]) -> Iterator[bytes]:
    """Yields the serialized `tf.train.Example` of each row of arrays.

    `columns` is {name: [N, length]}, with length > 0: int, float32, or `bytes`
    as objects. Protobuf's deterministic serialization gives the same bytes.
    """
    names = sorted(columns, key=str.encode)
    encoded = [_encode_feature(name, columns[name]) for name in names]
    for entries in zip(*encoded, strict=True):
        data = b"".join(entries)
        yield _FIELD_1 + _varint(len(data)) + data


def _encode_feature(name: str, values: npt.NDArray[Any]) -> list[bytes]:
    """Returns the `entry` message (see above) of each row."""
    # From the inside out.
    tags: tuple[bytes, ...] = (_FIELD_1, _FIELD_3, _FIELD_2)
    if values.dtype == np.object_:
        tags = (_FIELD_1, _FIELD_2)
        rows = [b"".join(map(_sized, row)) for row in values]
    elif values.dtype == np.float32:
        tags = (_FIELD_1, _FIELD_2, _FIELD_2)
        rows = [row.tobytes() for row in values.astype("<f4")]
    elif values.min(initial=0) >= 0 and values.max(initial=0) < 128:
        rows = [row.tobytes() for row in values.astype(np.uint8)]
    else:
        rows = _varints(values)
    return [_entry_header(name, tags, len(row)) + row for row in rows]


def _sized(value: bytes) -> bytes:
    return _FIELD_1 + _varint(len(value)) + value


def _varints(values: npt.NDArray[Any]) -> list[bytes]:
    """Returns the base-128 integers of each row."""
    # Negative integers are encoded as their two's complement.
    numbers = values.astype(np.int64).view(np.uint64)
    largest = int(numbers.max(initial=0))
    numbers = numbers.astype(np.min_scalar_type(largest))
    num_digits = max(1, -(-largest.bit_length() // 7))
    # [N, length, digits], one digit at a time: NumPy is slow on short axes.
    data = np.empty((*numbers.shape, num_digits), np.uint8)
    is_written = np.ones(data.shape, np.bool_)
    for digit in range(num_digits):
        shifted = numbers >> numbers.dtype.type(7 * digit)
        has_more = shifted > 127
        data[..., digit] = shifted & 127 | has_more * numbers.dtype.type(128)
        # A slice, because there is no next digit after the last one.
        is_written[..., digit + 1 : digit + 2] = has_more[..., np.newaxis]
    counts = np.count_nonzero(is_written.reshape(len(data), -1), axis=1)
    ends = np.cumsum(counts).tolist()
    joined = data[is_written].tobytes()
    return [joined[a:b] for a, b in itertools.pairwise([0, *ends])]


@functools.lru_cache(maxsize=2**14)
def _entry_header(name: str, tags: tuple[bytes, ...], size: int) -> bytes:
    """Returns the bytes before `size` bytes of values in an entry."""
    header = b""
    for tag in tags:
        header = tag + _varint(len(header) + size) + header
    header = _sized(name.encode()) + header
    return _FIELD_1 + _varint(len(header) + size) + header


def _varint(number: int) -> bytes:
    digits = []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def frame(data: bytes) -> bytes:
    """Returns a record as it is stored: with its length and checksums."""
    return _header(len(data)) + data + _checksum(data)


def join(records: Iterable[bytes], compress: bool) -> bytes:
    """Returns part of a TFRecord file; parts can be concatenated to a file.

    The same records give the same bytes, with compression too.
    """
    part = b"".join(map(frame, records))
    # TensorFlow would read an empty compressed part as the end of the file.
    if not compress or not part:
        return part
    return gzip.compress(part, 6, mtime=0)  # The gzip program's default.


@functools.lru_cache(maxsize=2**14)
def _header(length: int) -> bytes:
    size = length.to_bytes(8, "little")
    return size + _checksum(size)


def _checksum(data: bytes) -> bytes:
    crc: int = google_crc32c.value(data)
    rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    masked = (rotated + 0xA282EAD8) & 0xFFFFFFFF
    return masked.to_bytes(_FOOTER_SIZE, "little")


def read(name: str) -> Iterator[bytes]:
    """Yields the data of every record of a file, compressed or not.

    If a record is damaged or incomplete, raises `InputError` with its number.
    """
    number = 1
    try:
        with files.open_binary(name) as opened:
            is_gzip = files.is_gzip(name)
            file = gzip.GzipFile(fileobj=opened) if is_gzip else opened
            while header := file.read(_HEADER_SIZE):
                length = int.from_bytes(header[:8], "little")
                if header != _header(length):
                    raise EOFError("its length is damaged or incomplete")
                data = file.read(length)
                if file.read(_FOOTER_SIZE) != _checksum(data):
                    raise EOFError("its data is damaged or incomplete")
                yield data
                number += 1
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(name, number, str(error)) from error


def count_records(name: str) -> int:
    """Counts the records of a local file; reads only headers if possible.

    The data of compressed files is read too. Raises `InputError` if the file
    ends inside a record.
    """
    if files.is_gzip(name):
        return sum(1 for _ in read(name))
    count, end, size = 0, 0, files.size(name)
    with files.open_binary(name) as file:
        while end < size:
            file.seek(end)
            length = int.from_bytes(file.read(8), "little")
            end += _HEADER_SIZE + length + _FOOTER_SIZE
            count += 1
    if end > size:
        raise _damaged(name, count, "the file ends inside it")
    return count


def _damaged(name: str, number: int, reason: str) -> InputError:
    advice = "The file is damaged or incomplete. Create or copy it again."
    if number == 1:
        advice = (
            "The file is damaged, incomplete, or not a TFRecord file. Create "
            "or copy it again; create_pretraining_data.py converts text."
        )
    return InputError(
        f"{name}: record {number} cannot be read: {reason}. {advice}"
    )
