"""TFRecord files: records one after the other, each with two checksums.

    length   8 bytes, little-endian
    check    4 bytes, the masked CRC-32C of the length
    data     that many bytes
    check    4 bytes, the masked CRC-32C of the data

Such a file may be packed with gzip as a whole. The small library for the format takes 3 MB with
what it needs, passes over the checksums, and does not tell where in a file a screenshot lies.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from omnidata import remote
from omnidata.errors import DataError
from omnidata.loaders.files import Look
from omnidata.media.unpacked import open_unpacked

_MAX_RECORD = 256 * 1024**2
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
        data: its bytes.
    """

    number: int
    offset: int
    data: bytes


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, gzipped or not; one is in memory at a time.

    Raises:
        DataError: the file cannot be read, ends too early, exceeds the limits of an unpacked file,
            or has a wrong checksum; the records before that were yielded.
    """
    number = offset = 0
    content = None
    most_bytes = most_records = 0
    while True:
        where = f"{path}, record {number}"
        try:
            if content is None:
                remote.fetch(path)  # all of it is read, from end to end
                content, taken = open_unpacked(path), path.stat().st_size
                most_bytes = MAX_UNPACKED + MAX_RATIO * taken
                most_records = MAX_RECORDS + taken // LEAST_PACKED
            head = content.read(offset, _HEAD)
            if not head:
                return
            size = _size(head, where)
            if number >= most_records:
                raise _broken_file(where, f"a file of its size has at most {most_records} records")
            if offset + size > most_bytes:
                raise _broken_file(
                    where, f"a file of its size unpacks to at most {most_bytes} bytes"
                )
            data = content.read(offset + _HEAD, size)
            check = content.read(offset + _HEAD + size, _TAIL)
        except (OSError, EOFError, zlib.error) as error:
            raise _broken_file(where, f"the file cannot be read ({error})") from None
        if missing := size + _TAIL - len(data) - len(check):
            raise _broken_file(where, f"the file ends {missing} bytes too early")
        if check != struct.pack("<I", _masked_crc(data)):
            raise _broken_file(where, "the checksum of its data is wrong")
        yield Record(number, offset + _HEAD, data)
        number, offset = number + 1, offset + _HEAD + size + _TAIL


def is_tfrecord(path: Path) -> bool:
    """Return whether a file begins with a length and its checksum.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        head = open_unpacked(path).read(0, _HEAD)
    except (EOFError, zlib.error):
        return False
    return len(head) == _HEAD and _is_checked(head)


def _is_checked(head: bytes) -> bool:
    return head[8:] == struct.pack("<I", _masked_crc(head[:8]))


def _size(head: bytes, where: str) -> int:
    if len(head) < _HEAD or not _is_checked(head):
        raise _broken_file(where, "the checksum of its length is wrong")
    size: int = struct.unpack("<Q", head[:8])[0]
    if size > _MAX_RECORD:
        raise _broken_file(where, f"the record has {size} bytes, more than {_MAX_RECORD}")
    return size


def _masked_crc(data: bytes) -> int:
    """The CRC-32C, turned by 15 bits and shifted, as TFRecords have it."""
    from google_crc32c import value

    crc: int = value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _broken_file(where: str, what: str) -> DataError:
    return DataError(
        what,
        where=where,
        expected="a complete TFRecord file, with or without gzip",
        remedy="download the file again, or remove it",
    )


# Protocol buffers without their schemas: the fields of a message, and where they lie.
#
# The format is Google's (protobuf.dev, "Encoding"). Nothing is copied: a field that is not a
# number stands for its place, by which a screenshot in a file of gigabytes is found.

Value = int | slice
"""A varint's number (unsigned), or where the bytes of a field of another type lie."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}
_MAX_SHIFT = 63


def whole(data: bytes) -> slice:
    """All of the data."""
    return slice(0, len(data))


def fields(data: bytes, message: slice) -> Iterator[tuple[int, int, Value]]:
    """Yield the fields of a message, in order: number, wire type, value.

    Args:
        data: what the message lies in.
        message: where.

    Raises:
        ValueError: the bytes are no message.

    Examples:
        >>> list(fields(bytes([8, 150, 1, 18, 2, 72, 105]), slice(0, 7)))
        [(1, 0, 150), (2, 2, slice(5, 7, None))]
    """
    at, end = message.start, message.stop
    while at < end:
        tag = data[at]  # nearly all tags and sizes are one byte
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1, end)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise ValueError("a field has the number 0")
        if kind == VARINT:
            value, at = _varint(data, at, end)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = _varint(data, at, end)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise ValueError(f"a field has the wire type {kind}")
        if size > end - at:
            raise ValueError("a field is longer than its message")
        yield number, kind, slice(at, at + size)
        at += size


def inner(data: bytes, message: slice, wanted: int) -> Iterator[slice]:
    """Where the fields of that number lie which are messages or bytes.

    Raises:
        ValueError: the bytes are no message.
    """
    for number, _, value in fields(data, message):
        if number == wanted and isinstance(value, slice):
            yield value


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _MAX_SHIFT:
            raise ValueError("a number has more than 64 bits")
    raise ValueError("the message ends within a number")


def _varints(data: bytes, value: Value) -> list[int]:
    if isinstance(value, int):
        return [value]
    found, at = [], value.start
    while at < value.stop:
        number, at = _varint(data, at, value.stop)
        found.append(number)
    return found


def floats(data: bytes, value: Value) -> list[float]:
    """Return the 32-bit floats of one occurrence of a repeated field, packed or not.

    Raises:
        ValueError: the bytes are no numbers.
    """
    if isinstance(value, int) or (value.stop - value.start) % 4:
        raise ValueError("a list of floats has another type")
    return list(struct.unpack(f"<{(value.stop - value.start) // 4}f", data[value]))


def to_signed(number: int, bits: int = 64) -> int:
    """Return a varint as a signed number.

    Examples:
        >>> to_signed(2**64 - 1)
        -1
    """
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


# TensorFlow's `tf.train.Example`: named lists of texts, whole numbers or 32-bit numbers.
#
# Example  { Features features = 1; }
# Features { map<string, Feature> feature = 1; }   an entry has its key in 1 and its value in 2
# Feature  { BytesList 1 | FloatList 2 | Int64List 3 }, each with `repeated value = 1`

_BYTES, _FLOATS, _NUMBERS = 1, 2, 3
_MOST = 100_000
"""Features of an example, and values of a feature; a packed file of kilobytes may hold millions."""
_LONGEST = 10 * _MOST
"""Bytes of the largest packed list: a number takes up to ten."""
_MAX_TEXT = 16 * 1024**2
"""Bytes of all texts of a feature; pictures and forests are not taken for texts."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example.

    Attributes:
        data: the record that it was read from.
        texts: by name, the place of each text or picture in `data`.
        numbers: by name; features without values have an empty list here.
    """

    data: bytes
    texts: Mapping[str, list[slice]]
    numbers: Mapping[str, list[float]]

    def text(self, name: str) -> list[str]:
        r"""Return a feature's texts; bytes that are not UTF-8 become lone surrogates.

        Raises:
            ValueError: they have more than 16 MiB.
        """
        parts = self.texts.get(name, [])
        if sum(part.stop - part.start for part in parts) > _MAX_TEXT:
            raise ValueError(f"a feature has texts of more than {_MAX_TEXT} bytes")
        return [self.data[part].decode("utf-8", "surrogateescape") for part in parts]

    def as_json(self, *, but: str = "") -> dict[str, Any]:
        """Return all features as JSON values, except one.

        Raises:
            ValueError: as `text`.
        """
        found: dict[str, Any] = {name: self.text(name) for name in self.texts if name != but}
        return {**found, **{name: own for name, own in self.numbers.items() if name != but}}


def read_example(data: bytes) -> Example:
    """Read an example with its features.

    Raises:
        ValueError: the bytes are no example, or one of more than 100,000 features, or values of a
            feature.
    """
    texts: dict[str, list[slice]] = {}
    numbers: dict[str, list[float]] = {}
    for features in inner(data, whole(data), 1):
        for count, entry in enumerate(inner(data, features, 1)):
            if count == _MOST:
                raise ValueError(f"it has more than {_MOST} features")
            name = "".join(
                data[key].decode("utf-8", "surrogateescape") for key in inner(data, entry, 1)
            )
            numbers.setdefault(name, [])
            for feature in inner(data, entry, 2):
                _read(data, feature, name, texts, numbers)
    return Example(data, texts, {name: own for name, own in numbers.items() if name not in texts})


def _read(
    data: bytes,
    feature: slice,
    name: str,
    texts: dict[str, list[slice]],
    numbers: dict[str, list[float]],
) -> None:
    for kind, _, values in fields(data, feature):
        if not isinstance(values, slice):
            continue
        if kind == _BYTES:
            own = texts.setdefault(name, [])
            own += islice(inner(data, values, 1), _MOST + 1 - len(own))
            _check_count(own)
            continue
        for at, _, value in fields(data, values):
            if isinstance(value, slice) and value.stop - value.start > _LONGEST:
                raise ValueError(f"a list has more than {_LONGEST} bytes")
            if at == 1 and kind == _FLOATS:
                numbers[name] += floats(data, value)
            elif at == 1 and kind == _NUMBERS:
                numbers[name] += [to_signed(number) for number in _varints(data, value)]
            _check_count(numbers[name])


def _check_count(values: Sequence[object]) -> None:
    if len(values) > _MOST:
        raise ValueError(f"a feature has more than {_MOST} values")


# How such files are found among others.

_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_RECORD_SUFFIXES = ("", ".gz", ".tfrecord", ".tfrecords")


def may_hold_records(path: Path) -> bool:
    """Return whether a file is named like a TFRecord: `name-00000-of-00020`, or its suffix."""
    return path.suffix in _RECORD_SUFFIXES or bool(_SHARD.search(path.name))


def look(path: Path, features: frozenset[str]) -> Look:
    """Return whether a file is a TFRecord whose first example has these features.

    Raises:
        OSError: the file cannot be read.
    """
    if not may_hold_records(path) or not is_tfrecord(path):
        return "other"
    try:
        for record in records(path):
            example = read_example(record.data)
            return "known" if features <= {*example.texts, *example.numbers} else "other"
    except (DataError, ValueError):
        return "broken"
    return "other"
