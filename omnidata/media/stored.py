"""The bytes of a medium, wherever they are stored: a file, or a cell of a Parquet file."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from omnidata.errors import MediaError, MediaFault
from omnidata.media.paths import DEFAULT_BUDGET, Budget, place, resolve
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_KEPT_BYTES = 256 * 1024**2
"""Of the column chunks that were read last; a step's media lie in up to four."""

_reading = Lock()  # a Parquet reader must not be used by two threads at once
_chunks: OrderedDict[tuple[object, ...], pa.Array] = OrderedDict()


def _forget() -> None:
    """A child must not wait for a thread of its parent, nor read through its files."""
    global _reading
    _reading = Lock()
    _chunks.clear()
    _open.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def stored(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Path | bytes:
    """The file of a medium, or its bytes where it has none.

    Raises:
        MediaError: as `resolve`, or the Parquet file is broken or lacks the cell.
    """
    return resolve(ref, budget=budget) if ref.cell is None else _read_cell(ref, budget)


def read_bytes(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> bytes:
    """The medium as it is, for models that take it undecoded.

    Raises:
        MediaError: as `stored`.
    """
    found = stored(ref, budget=budget)
    if isinstance(found, bytes):
        return found
    try:
        return found.read_bytes()
    except OSError as error:
        raise MediaError(
            f"the file cannot be read ({error.strerror})",
            where=place(ref),
            expected="a file that may be read",
            remedy="mend its permissions or its disk, or leave the step out with --exclude",
        ) from None


def _read_cell(ref: MediaRef, budget: Budget) -> bytes:
    cell = ref.cell
    assert cell is not None
    # The shard is a path from a dataset too, but as large as it likes: only a part of it is read.
    shard = resolve(MediaRef(ref.kind, ref.root, cell.shard), budget=Budget(max_bytes=1 << 60))
    try:
        found = shard.stat()
        stamp = (found.st_size, found.st_mtime_ns)
        with _reading:
            starts = _open(shard, *stamp)[1]
            group = bisect_right(starts, cell.row) - 1
            chunk = _chunk(shard, stamp, group, cell.column, 2 * budget.max_bytes)
            value = chunk[cell.row - starts[group]].as_py()
    except MediaError:
        raise
    except Exception as error:  # hostile bytes make Arrow raise whatever it likes
        raise _unreadable(ref, f"the cell cannot be read ({type(error).__name__})") from None
    if not value:
        raise _unreadable(ref, "the cell is empty", fault="empty")
    if len(value) > budget.max_bytes:
        what = f"the cell has {len(value)} bytes, more than {budget.max_bytes}"
        raise _unreadable(ref, what, fault="refused")
    return bytes(value)


def _unreadable(ref: MediaRef, what: str, *, fault: MediaFault = "unreadable") -> MediaError:
    return MediaError(
        what,
        where=place(ref),
        expected=f"the bytes of the {ref.kind}",
        remedy="convert or download the dataset again, or leave the step out with --exclude",
        fault=fault,
    )


@lru_cache(maxsize=32)
def _open(shard: Path, size: int, time: int) -> tuple[pq.ParquetFile, list[int]]:
    """The reader, and at which row each row group begins."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(shard, memory_map=True, page_checksum_verification=True)
    rows = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    return file, [0, *accumulate(rows)]


def _chunk(shard: Path, stamp: tuple[int, int], group: int, column: str, limit: int) -> pa.Array:
    """The bytes of a column, of one row group; those read last are kept."""
    key = (shard, stamp, group, column)
    if key in _chunks:
        _chunks.move_to_end(key)
        return _chunks[key]
    file, _ = _open(shard, *stamp)
    wanted = f"{column}.bytes"
    about = file.metadata.row_group(group)
    leaf = next(
        leaf
        for leaf in map(about.column, range(about.num_columns))
        if leaf.path_in_schema == wanted
    )
    # What is neither compressed nor repeated by reference takes no more memory than file.
    bomb = leaf.compression != "UNCOMPRESSED" or leaf.has_dictionary_page
    if bomb or leaf.total_uncompressed_size > limit:
        raise MediaError(
            f"row group {group} holds {leaf.total_uncompressed_size} bytes of {column}, "
            f"{leaf.compression.lower()}"
            + (", with a dictionary" if leaf.has_dictionary_page else ""),
            where=str(shard),
            expected=f"row groups of at most {limit} bytes, uncompressed, without a dictionary",
            remedy="convert the dataset again with omnidata convert",
        )
    table = file.read_row_group(group, columns=[wanted], use_threads=False)
    _chunks[key] = table.column(column).combine_chunks().field("bytes")
    while len(_chunks) > 1 and sum(chunk.nbytes for chunk in _chunks.values()) > _KEPT_BYTES:
        _chunks.popitem(last=False)
    return _chunks[key]
