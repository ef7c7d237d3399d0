"""TFRecord files without TensorFlow, which takes seconds to import.

A record is its length in 8 bytes, the length's checksum, the data, and the
data's checksum. Checksums are CRC-32C in 4 bytes, turned and shifted, since
the CRC of a string that ends with its own CRC is always the same.
"""

import functools
import gzip
import mmap
import struct
import zlib
from collections.abc import Iterable, Iterator

import google_crc32c

from official_bert import files
from official_bert.errors import InputError

# The length and its checksum; behind the data, another checksum.
HEADER = struct.Struct("<QI")
FOOTER_SIZE = 4

# Six is gzip's own choice; it makes records a fifth as large.
_COMPRESSION_LEVEL = 6


class CutShortError(InputError):
    """A file whose rest cannot be read, or is missing."""


def frame(data: bytes) -> bytes:
    """Returns a record as it stands in a file."""
    footer = checksum(data).to_bytes(FOOTER_SIZE, "little")
    return _header(len(data)) + data + footer


def join(records: Iterable[bytes], compress: bool) -> bytes:
    """Returns records as they stand in a file, through gzip if so wanted.

    Such parts make a file together, also if they are compressed. The same
    records give the same bytes.
    """
    part = b"".join(map(frame, records))
    # TensorFlow takes a compressed part with nothing in it for the end.
    if not compress or not part:
        return part
    return gzip.compress(part, _COMPRESSION_LEVEL, mtime=0)


@functools.lru_cache(maxsize=2**14)
def _header(length: int) -> bytes:
    return HEADER.pack(length, checksum(length.to_bytes(8, "little")))


def checksum(data: bytes) -> int:
    """Returns the checksum of some data, as it stands in a file."""
    crc: int = google_crc32c.value(data)
    turned = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    return (turned + 0xA282EAD8) & 0xFFFFFFFF


def read(name: str) -> Iterator[bytes | None]:
    """Yields the data of every record of a file, None where it is damaged.

    Raises:
        CutShortError: The file ends inside a record, cannot be unpacked, or the
            length of a record is damaged, so that the next is not found.
        InputError: It cannot be read at all.
    """
    number = 0
    try:
        with files.open_binary(name) as opened:
            # What it is called does not say whether it is compressed.
            file = getattr(opened, "fileobj", opened)
            if files.is_gzip(name):
                file = gzip.GzipFile(fileobj=file)
            while header := file.read(HEADER.size):
                length, _ = HEADER.unpack(header)
                if header != _header(length):
                    raise EOFError("its length is damaged")
                data, footer = file.read(length), file.read(FOOTER_SIZE)
                if len(footer) < FOOTER_SIZE:
                    raise EOFError("the last byte is missing")
                number += 1
                is_good = checksum(data) == int.from_bytes(footer, "little")
                yield data if is_good else None
    except (EOFError, gzip.BadGzipFile, struct.error, zlib.error) as error:
        raise _cut_short(name, number + 1, str(error)) from error


def count_records(name: str) -> int:
    """Counts the records of a local file by walking over their headers.

    One that is compressed is unpacked on the way, which takes time.

    Raises:
        InputError: The file is empty, or ends inside a record.
    """
    with files.open_binary(name):  # Says it well if it cannot be read.
        size = files.size(name)
    if not size:
        raise InputError(
            f"{name}: must hold TFRecords. Received: an empty file."
        )
    if files.is_gzip(name):
        return sum(1 for _ in read(name))
    count = offset = 0
    with (
        open(name, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        while offset < size:
            end = offset + HEADER.size
            if end <= size:
                end += HEADER.unpack_from(data, offset)[0] + FOOTER_SIZE
            if end > size:
                raise _cut_short(name, count + 1, f"at byte {size}")
            count, offset = count + 1, end
    return count


def _cut_short(name: str, number: int, reason: str) -> CutShortError:
    return CutShortError(
        f"{name}: record {number}: must be complete. Received: a file that "
        f"ends inside it, {reason}. It was cut short, or is no TFRecord file; "
        "make or copy it again."
    )
