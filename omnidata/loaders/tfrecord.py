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
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from omnidata import remote
from omnidata.errors import DataError
from omnidata.loaders.files import Look
from omnidata.loaders.protobuf import fields, floats, inner, to_signed, varints, whole
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
    with _read_errors(f"{path}, record 0"):
        remote.fetch(path)  # all of it is read, from end to end
        content, packed = open_unpacked(path), path.stat().st_size
    most_bytes, most_records = (
        MAX_UNPACKED + MAX_RATIO * packed,
        MAX_RECORDS + packed // LEAST_PACKED,
    )
    offset = 0
    for number in count():
        where = f"{path}, record {number}"
        with _read_errors(where):
            head = content.read(offset, _HEAD)
        if not head:
            return
        size = _size(head, where)
        if number >= most_records:
            raise _broken_file(where, f"a file of its size has at most {most_records} records")
        if offset + size > most_bytes:
            raise _broken_file(where, f"a file of its size unpacks to at most {most_bytes} bytes")
        with _read_errors(where):
            data = content.read(offset + _HEAD, size)
            check = content.read(offset + _HEAD + size, _TAIL)
        if missing := size + _TAIL - len(data) - len(check):
            raise _broken_file(where, f"the file ends {missing} bytes too early")
        if check != struct.pack("<I", _masked_crc(data)):
            raise _broken_file(where, "the checksum of its data is wrong")
        yield Record(number, offset + _HEAD, data)
        offset += _HEAD + size + _TAIL


@contextmanager
def _read_errors(where: str) -> Iterator[None]:
    """Raise errors of reading and unpacking as a `DataError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise _broken_file(where, f"the file cannot be read ({error})") from None


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
    """Return the CRC-32C, rotated by 15 bits, plus a constant: TensorFlow's mask."""
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
        for number, entry in enumerate(inner(data, features, 1)):
            if number == _MOST:
                raise ValueError(f"it has more than {_MOST} features")
            name = "".join(
                data[key].decode("utf-8", "surrogateescape") for key in inner(data, entry, 1)
            )
            numbers.setdefault(name, [])
            for feature in inner(data, entry, 2):
                _read_feature(data, feature, name, texts, numbers)
    return Example(data, texts, {name: own for name, own in numbers.items() if name not in texts})


def _read_feature(
    data: bytes,
    feature: slice,
    name: str,
    texts: dict[str, list[slice]],
    numbers: dict[str, list[float]],
) -> None:
    """Add the values of a feature to the texts or the numbers of its name."""
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
                numbers[name] += [to_signed(number) for number in varints(data, value)]
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
        first = next(records(path), None)
        example = read_example(first.data) if first else None
    except (DataError, ValueError):
        return "broken"
    known = example is not None and features <= {*example.texts, *example.numbers}
    return "known" if known else "other"
