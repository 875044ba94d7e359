"""The bytes of media in the cells of Parquet files, read batch by batch."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from omnidata.errors import MediaError, StoreError
from omnidata.files import ANY, open_parts
from omnidata.media.parquet_pages import open_parquet, page_sizes
from omnidata.media.paths import Budget, around, resolve, unreadable_bytes
from omnidata.types import MediaRef, ParquetLocation

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_Key = tuple[Path, tuple[int, int], int, str]
"""A column chunk: the file and its size and time, the row group, the leaf of the schema."""

_BATCH_BYTES = 64 * 1024**2
_KEPT_BYTES = 256 * 1024**2
"""Of the batches of rows that were read last."""
_KEPT_CURSORS = 4
"""A step's media lie in up to four columns."""


@dataclass(slots=True)
class _Cursor:
    """A column chunk, which may be larger than the memory, one batch of rows after the other.

    Attributes:
        batches: of `rows` rows each, but for the last.
        rows: of a batch.
        left: rows that are still to come.
        following: the number of the next batch.
    """

    batches: Iterator[pa.RecordBatch]
    rows: int
    left: int
    following: int = 0

    def read(self) -> pa.Array:
        found = next(self.batches)
        if found.num_rows != min(self.rows, self.left):
            raise ValueError("a batch of another length: its rows would be mistaken for others")
        self.left -= found.num_rows
        self.following += 1
        if not self.left:
            self.batches = iter(())  # the reader's own memory is several times that of the rows
        return found.column(0)


_reading = Lock()  # a Parquet reader must not be used by two threads at once
_cursors: OrderedDict[_Key, _Cursor] = OrderedDict()
_batches: OrderedDict[tuple[_Key, int], pa.Array] = OrderedDict()


def _forget() -> None:
    """A child must not wait for a thread of its parent, nor read through its files."""
    global _reading
    _reading = Lock()
    _cursors.clear()
    _batches.clear()
    _open.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def read_cell(ref: MediaRef, cell: ParquetLocation, budget: Budget) -> bytes:
    """Return the bytes of a cell.

    Args:
        ref: whose cell it is.
        cell: where the bytes lie.
        budget: limits; the file around them may be as large as it likes.

    Raises:
        MediaError: the file is missing, outside the dataset's folder or broken, or the cell is
            empty or too large.
    """
    # The shard is a path from a dataset too, but as large as it likes: only a part of it is read.
    shard = resolve(around(ref, cell), budget=Budget(max_bytes=ANY))
    try:
        found = shard.stat()
        stamp = (found.st_size, found.st_mtime_ns)
        with _reading:
            file, starts, bare = _open(shard, *stamp)
            group = bisect_right(starts, cell.row) - 1
            leaf = cell.column if cell.column in bare else f"{cell.column}.bytes"
            chunk = _chunk(file, group, leaf)
            key = (shard, stamp, group, chunk.path_in_schema)
            value = _value(_row(key, cell.row - starts[group], 2 * budget.max_bytes), cell.item)
    except (MediaError, StoreError):
        raise
    except Exception as error:  # hostile bytes make Arrow raise whatever it likes
        raise unreadable_bytes(ref, f"the cell cannot be read ({type(error).__name__})") from None
    if not value:
        raise unreadable_bytes(ref, "the cell is empty", fault="empty")
    if len(value) > budget.max_bytes:
        what = f"the cell has {len(value)} bytes, more than {budget.max_bytes}"
        raise unreadable_bytes(ref, what, fault="refused")
    return bytes(value)


@lru_cache(maxsize=32)
def _open(shard: Path, size: int, time: int) -> tuple[pq.ParquetFile, list[int], frozenset[str]]:
    """Open a file; return also where its row groups start, and its columns of bare bytes."""
    file = open_parquet(shard, memory_map=True)
    rows = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    columns = map(file.schema.column, range(len(file.schema)))
    bare = (each.path for each in columns if each.physical_type == "BYTE_ARRAY")
    return file, [0, *accumulate(rows)], frozenset(path for path in bare if "." not in path)


def _chunk(file: pq.ParquetFile, group: int, leaf: str) -> pq.ColumnChunkMetaData:
    about = file.metadata.row_group(group)
    chunks = map(about.column, range(about.num_columns))
    return next(chunk for chunk in chunks if chunk.path_in_schema == leaf)


def _value(row: pa.Array, item: int | None) -> bytes | None:
    """Return the bytes of a cell; only one leaf was read, so every struct has one field."""
    from pyarrow import types

    lists = 0
    while types.is_nested(row.type):
        if types.is_struct(row.type):
            row = row.field(0)
        else:
            row, lists = row.flatten(), lists + 1
    if lists != (item is not None):
        raise TypeError("a list instead of a single medium, or the other way round")
    value: bytes | None = row[item or 0].as_py()
    return value


def _row(key: _Key, number: int, limit: int) -> pa.Array:
    cursor = _cursors.pop(key, None) or _start(key, limit)
    wanted = number // cursor.rows
    if (key, wanted) in _batches:
        _batches.move_to_end((key, wanted))
    elif cursor.following > wanted:
        cursor = _start(key, limit)
    while (key, wanted) not in _batches:
        following = cursor.following
        _batches[key, following] = cursor.read()
        while len(_batches) > 1 and sum(kept.nbytes for kept in _batches.values()) > _KEPT_BYTES:
            _batches.popitem(last=False)
    _cursors[key] = cursor
    while len(_cursors) > _KEPT_CURSORS:
        _cursors.popitem(last=False)
    return _batches[key, wanted].slice(number % cursor.rows, 1)


def _start(key: _Key, limit: int) -> _Cursor:
    """Return the beginning of a chunk that takes no more memory than it may.

    Compressed pages are as large as their headers say, and values that repeat stay references into
    a dictionary. What is more than the limit must be about that large on the disk too.
    """
    shard, stamp, group, leaf = key
    file, *_ = _open(shard, *stamp)
    about = file.metadata.row_group(group)
    chunk = _chunk(file, group, leaf)
    with open_parts(shard) as content:
        pages = page_sizes(content, chunk)
    # References are kept as such where all fit: many may stand for one value. Batches of them would
    # each have a dictionary of its own, so that of a larger chunk, as writers make it which begin
    # with a dictionary and give it up, the values are read themselves.
    most = max(limit, 2 * chunk.total_compressed_size)
    if pages.largest > limit or (pages.bytes > limit and pages.unfolded > most):
        raise MediaError(
            f"row group {group} holds {pages.bytes} bytes of {leaf} in "
            f"{chunk.total_compressed_size} bytes of the file, up to {pages.largest} in a page",
            where=str(shard),
            expected=f"at most {limit} bytes in a page, and in a row group too if its values "
            "repeat or it is compressed to less than half",
            remedy="save the dataset again with smaller row groups",
        )
    rows = about.num_rows
    if pages.dictionary and pages.bytes <= limit:
        file = open_parquet(shard, memory_map=True, read_dictionary=[leaf])
    else:
        rows = max(1, min(rows, rows * min(limit, _BATCH_BYTES) // max(1, pages.unfolded)))
    found = file.iter_batches(rows, row_groups=[group], columns=[leaf], use_threads=False)
    return _Cursor(found, rows, about.num_rows)
