"""TFRecord files: records one after the other, each with two checksums.

    length   8 bytes, little-endian
    check    4 bytes, the masked CRC-32C of the length
    data     that many bytes
    check    4 bytes, the masked CRC-32C of the data

Such a file may be packed with gzip as a whole. The small library for the format takes 3 MB with
what it needs, passes over the checksums, and does not tell where in a file a screenshot lies.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from omnidata.errors import DataError
from omnidata.media.unpacked import unpacked

MAX_RECORD = 256 * 1024**2
"""Bytes of a record: an episode of a hundred screenshots has about as many as PNGs."""

MAX_UNPACKED, MAX_RATIO = 256 * 1024**2, 200
"""Bytes that a file may unpack to: so many, and so many for every byte that it has. Bare pixels of
plain screens are a hundredth when packed; what is made to fill the memory is a thousandth."""

MAX_RECORDS, LEAST_PACKED = 1000, 64
"""Records that a file may have: so many, and one for every 64 bytes that it has. A step takes more
even when packed, and what is no step has a finding each."""

_HEAD, _TAIL = 12, 4


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a file.

    Attributes:
        number: 0-based.
        offset: of the data, in bytes of the file once it is unpacked.
        data: as they are.
    """

    number: int
    offset: int
    data: bytes


def records(path: Path) -> Iterator[Record]:
    """Every record of a file, packed or not; one is held at a time.

    Raises:
        DataError: the file cannot be read, ends too early, unpacks to more than such a file may, or
            a checksum is wrong; those before have been given.
    """
    number = offset = 0
    content = None
    most_bytes = most_records = 0
    while True:
        where = f"{path}, record {number}"
        try:
            if content is None:
                content, taken = unpacked(path), path.stat().st_size
                most_bytes = MAX_UNPACKED + MAX_RATIO * taken
                most_records = MAX_RECORDS + taken // LEAST_PACKED
            head = content.read(offset, _HEAD)
            if not head:
                return
            size = _size(head, where)
            if number >= most_records:
                raise _broken(where, f"a file of its size has at most {most_records} records")
            if offset + size > most_bytes:
                raise _broken(where, f"a file of its size unpacks to at most {most_bytes} bytes")
            data = content.read(offset + _HEAD, size)
            check = content.read(offset + _HEAD + size, _TAIL)
        except (OSError, EOFError, zlib.error) as error:
            raise _broken(where, f"the file cannot be read ({error})") from None
        if missing := size + _TAIL - len(data) - len(check):
            raise _broken(where, f"the file ends {missing} bytes too early")
        if check != struct.pack("<I", _masked(data)):
            raise _broken(where, "the checksum of its data is wrong")
        yield Record(number, offset + _HEAD, data)
        number, offset = number + 1, offset + _HEAD + size + _TAIL


def is_tfrecord(path: Path) -> bool:
    """Whether a file begins with a length and its checksum.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        head = unpacked(path).read(0, _HEAD)
    except (EOFError, zlib.error):
        return False
    return len(head) == _HEAD and _is_checked(head)


def _is_checked(head: bytes) -> bool:
    return head[8:] == struct.pack("<I", _masked(head[:8]))


def _size(head: bytes, where: str) -> int:
    if len(head) < _HEAD or not _is_checked(head):
        raise _broken(where, "the checksum of its length is wrong")
    size: int = struct.unpack("<Q", head[:8])[0]
    if size > MAX_RECORD:
        raise _broken(where, f"the record has {size} bytes, more than {MAX_RECORD}")
    return size


def _masked(data: bytes) -> int:
    """The CRC-32C, turned by 15 bits and shifted, as TFRecords have it."""
    from google_crc32c import value

    crc: int = value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _broken(where: str, what: str) -> DataError:
    return DataError(
        what,
        where=where,
        expected="a whole TFRecord file, packed with gzip or not",
        remedy="download the file again, or take it away",
    )
