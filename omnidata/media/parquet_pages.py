"""Memory bounds for untrusted Parquet files, from their page headers.

pyarrow has no memory limit: the footer may state any size, and a reader allocates the size in each
page header. So the headers are read here before the pages. They are in Thrift's compact protocol.
Sources: the Parquet format 2.11, `parquet.thrift`; the Thrift compact protocol specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from omnidata import remote

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_HEADER_BYTES = (512, 64 * 1024)  # of a usual header, and of one with long texts in its statistics
_ENCODING_FIELDS = {7: 2, 5: 2, 8: 4}
"""Headers of dictionaries, of pages of version 1 and of version 2: the field of the encoding."""
_DICTIONARY = 7
_LITERAL, _REFERENCES = (0, 3, 5, 6, 9), (2, 8)
"""PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY and BYTE_STREAM_SPLIT, whose values are
no longer than their pages but for 8 bytes a value; and references. Others make much of little."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Sizes of the pages of a column chunk, decompressed, with 8 bytes for every value.

    Attributes:
        bytes: of all pages.
        largest: of the largest page.
        dictionary: of the dictionary that values may refer to; 0 without one.
        parts: bytes and number of values of every page of values.
        references: the largest number of values that refer to the dictionary.
    """

    bytes: int
    largest: int
    dictionary: int
    parts: Sequence[tuple[int, int]]
    references: int = 0

    @property
    def unfolded(self) -> int:
        """The size of all pages if every reference is replaced by the largest value."""
        return self.bytes + self.references * self.dictionary

    def window(self, values: int) -> int:
        """Return the largest size of the pages that hold `values` consecutive values.

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
    """Open a Parquet file; its pages are read when they are used.

    Args:
        path: the file.
        memory_map: whether to map a local file instead of copying what is read.
        options: of `pyarrow.parquet.ParquetFile`.
    """
    import pyarrow.parquet as pq

    options = {"page_checksum_verification": True} | options
    remote.fetch(path)
    return pq.ParquetFile(path, memory_map=memory_map, **options)


def page_sizes(file: IO[bytes], chunk: pq.ColumnChunkMetaData) -> Pages:
    """Read the headers of a chunk's pages, without decompressing the pages.

    Args:
        file: the Parquet file.
        chunk: the chunk's metadata in the footer.

    Raises:
        ValueError: a header is broken, or values have an encoding that makes much out of few bytes.
        OSError: the file cannot be read.
    """
    start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
    at, end = start, start + chunk.total_compressed_size
    parts, values, dictionary, references = [], 0, 0, 0
    while at < end and values < chunk.num_values:
        header, length = _page_header(file, at)
        size, page = _count(header, 2), 0
        for field in _ENCODING_FIELDS.keys() & header.keys():
            of_kind = header[field]
            count, encoding = _count(of_kind, 1), _count(of_kind, _ENCODING_FIELDS[field])
            if encoding not in _LITERAL + _REFERENCES:
                raise ValueError(f"a page has encoding {encoding}")
            page += count
            if field == _DICTIONARY:
                dictionary = max(dictionary, size + 8 * page)
            else:
                values += count
                references += count if encoding in _REFERENCES else 0
                parts.append((size + 8 * page, count))
        at += length + _count(header, 3)
    sizes = [dictionary, *(size for size, _ in parts)]
    return Pages(sum(sizes), max(sizes), dictionary, parts, references)


def _count(fields: Any, name: int) -> int:
    value = fields.get(name) if isinstance(fields, dict) else None
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError("a page header is broken")
    return value


def _page_header(file: IO[bytes], at: int) -> tuple[dict[int, Any], int]:
    for most in _HEADER_BYTES:
        file.seek(at)
        header = _Struct(file.read(most))
        try:
            return header.fields(), header.at
        except IndexError:  # it is longer
            continue
    raise ValueError("a page header is broken")


class _Struct:
    """Reads a struct in Thrift's compact protocol; raises IndexError at the end of its bytes."""

    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data

    def fields(self, depth: int = 0) -> dict[int, Any]:
        """Return structs and 32-bit integers by the numbers of their fields, and None for others.

        A field that comes twice is an error: readers may disagree about which one counts.
        """
        found: dict[int, Any] = {}
        name = 0
        while kind := (head := self._byte()) & 15:
            step = head >> 4
            name = name + step if step else self._integer()
            if name in found or depth > 4:
                raise ValueError("a page header is broken")
            found[name] = None
            if kind == 12:
                found[name] = self.fields(depth + 1)
            elif kind in (4, 5, 6):
                number = self._integer()
                found[name] = number if kind == 5 else None
            elif kind == 8:  # a text, of statistics
                length = self._varint()
                self.at += length
            elif kind not in (1, 2):  # true and false have no more bytes
                raise ValueError(f"a page header has a field of type {kind}")
        return found

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a page header is broken")
