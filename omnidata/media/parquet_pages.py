"""What the pages of a Parquet column chunk take when they are read, by their own headers.

The footer of a file may say anything of compression, dictionaries and sizes; readers allocate what
the page headers say. They are in Thrift's compact protocol. Source: the Parquet format 2.11,
`parquet.thrift`; the Thrift compact protocol specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from omnidata import mirror
from omnidata.files import open_parts

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_USUAL_BYTES, _HEADER_BYTES = 512, 64 * 1024
"""Of a page header, and of one whose statistics hold long texts."""
_BUFFER_BYTES = 1024**2
_FETCHED_BYTES = 64 * 1024**2
_DEEPEST = 4
_I32, _STRUCT = 5, 12
_DICTIONARY, _V1, _V2 = 7, 5, 8
"""Fields of a page header: the headers of the kinds of pages that hold values."""
_ENCODING = {_DICTIONARY: 2, _V1: 2, _V2: 4}
_LITERAL, _REFERENCES = (0, 3, 5, 6, 9), (2, 8)
"""Encodings whose values are no longer than the pages that hold them, but for the 8 bytes that are
counted for each value: PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY and
BYTE_STREAM_SPLIT; and references."""

_Fields = dict[int, tuple[int, Any]]


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a column chunk.

    Attributes:
        bytes: what all take, decompressed, with 8 bytes for every value.
        largest: the same for the largest page.
        dictionary: bytes of the dictionary that values may be references into; 0 for none.
        parts: of every page of values what it takes, as above, and how many there are.
        references: how many values are references into the dictionary, at the most.
    """

    bytes: int
    largest: int
    dictionary: int
    parts: Sequence[tuple[int, int]]
    references: int = 0

    @property
    def unfolded(self) -> int:
        """What all take at the most once every reference is replaced by what it stands for."""
        return self.bytes + self.references * self.dictionary

    def window(self, values: int) -> int:
        """What so many values, one after the other, take at the most, with the pages around them.

        Examples:
            >>> Pages(45, 20, 0, [(10, 2), (20, 1), (15, 3)]).window(2)
            35
        """
        import numpy as np

        sizes, counts = np.array([*self.parts, (0, 0)], np.int64).T
        seen, whole = counts.cumsum(), sizes.cumsum()
        last = np.searchsorted(seen, np.minimum(seen + values - 1, seen[-1]))
        return int((whole[last] - whole + sizes).max())


def open_parquet(path: Path, *, memory_map: bool = False, **options: Any) -> pq.ParquetFile:
    """The reader of a file, of which nothing is read or fetched but what is asked for.

    Args:
        path: of the file.
        memory_map: whether what is read of a file on this disk is not copied.
        options: of `pyarrow.parquet.ParquetFile`.
    """
    import pyarrow.parquet as pq

    options = {"page_checksum_verification": True} | options
    if mirror.is_mirrored(path):
        # With a buffer, pages are fetched as they are read; without one, chunks as a whole.
        return pq.ParquetFile(open_parts(path), buffer_size=_BUFFER_BYTES, **options)
    return pq.ParquetFile(path, memory_map=memory_map, **options)


def fetch_chunk(path: Path, chunk: pq.ColumnChunkMetaData) -> None:
    """Fetch a chunk of a file of a mirror by one request; a large one comes as its pages are read.

    Raises:
        StoreError: as `omnidata.mirror.fill`.
    """
    start, end = _stretch(chunk)
    if end - start <= _FETCHED_BYTES:
        mirror.fill(path, start, end)


def _stretch(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Where a chunk begins and ends in its file."""
    at = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
    return at, at + chunk.total_compressed_size


def look(file: IO[bytes], chunk: pq.ColumnChunkMetaData) -> Pages:
    """Read the headers of a chunk's pages; nothing is decompressed.

    Args:
        file: the Parquet file.
        chunk: what its footer says of the chunk.

    Raises:
        ValueError: a header is broken, or values are encoded in a way that makes much out of little
            (`DELTA_BYTE_ARRAY`) or that nobody uses for media.
        OSError: the file cannot be read.
    """
    at, end = _stretch(chunk)
    parts, values, dictionary, references = [], 0, 0, 0
    while at < end and values < chunk.num_values:
        fields, length = _header(file, at)
        size, stored = _number(fields, 2), _number(fields, 3)
        count = 0
        for kind in _ENCODING.keys() & fields.keys():
            held, refers = _count(fields, kind)
            count += held
            if kind == _DICTIONARY:
                dictionary = max(dictionary, size + 8 * count)
            else:
                values += count
                references += held if refers else 0
                parts.append((size + 8 * count, count))
        at += length + stored
    sizes = [dictionary, *(size for size, _ in parts)]
    return Pages(sum(sizes), max(sizes), dictionary, parts, references)


def _header(file: IO[bytes], at: int) -> tuple[_Fields, int]:
    """A page header and its length."""
    file.seek(at)
    try:
        return _struct(file.read(_USUAL_BYTES), 0)
    except ValueError:
        file.seek(at)
        return _struct(file.read(_HEADER_BYTES), 0)


def _count(fields: _Fields, kind: int) -> tuple[int, bool]:
    """How many values a page holds, if their encoding is one that cannot blow up.

    Returns:
        The number, and whether they are references.
    """
    kind_of_field, header = fields[kind]
    if kind_of_field != _STRUCT:
        raise ValueError("a page header is broken")
    encoding = _number(header, _ENCODING[kind])
    if encoding not in _LITERAL + _REFERENCES:
        raise ValueError(f"a page has encoding {encoding}")
    return _number(header, 1), encoding in _REFERENCES


def _number(fields: _Fields, name: int) -> int:
    kind, value = fields.get(name, (0, 0))
    if kind != _I32 or not 0 <= value < 1 << 31:
        raise ValueError("a page header is broken")
    return int(value)


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[_Fields, int]:
    """The fields of a struct by number, with their types, and where it ends.

    A field that comes twice is an error: readers may disagree about which one counts.
    """
    fields: _Fields = {}
    name = 0
    while at < len(data):
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if kind == 0:
            return fields, at
        if step == 0:
            step, at = _zigzag(data, at)
            name = 0
        name += step
        if name in fields or depth > _DEEPEST:
            break
        if kind == _STRUCT:
            value, at = _struct(data, at, depth + 1)
        else:
            value, at = _scalar(data, at, kind)
        fields[name] = kind, value
    raise ValueError("a page header is broken")


def _scalar(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true, false
        return kind == 1, at
    if kind in (4, _I32, 6):
        return _zigzag(data, at)
    if kind == 8:  # a text, of statistics
        length, at = _varint(data, at)
        return None, at + length
    raise ValueError(f"a page header has a field of type {kind}")


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 128:  # nearly all have one byte
        return data[at], at + 1
    value = 0
    for shift, byte in zip(range(0, 70, 7), data[at : at + 10], strict=False):
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a page header is broken")
