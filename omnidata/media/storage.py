"""The bytes of a medium, wherever they are stored: a file, or a part of one."""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from math import prod
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING

from omnidata.errors import MediaError, MediaFault, StoreError
from omnidata.files import ANY, check_file, open_parts
from omnidata.media.beginning import beginning
from omnidata.media.containers import is_turned, open_container, read_cut
from omnidata.media.encoding import png
from omnidata.media.parquet_pages import open_parquet, page_sizes
from omnidata.media.paths import DEFAULT_BUDGET, Budget, around, place, resolve, spelling_on_disk
from omnidata.media.picture_file import read_marked, read_upright
from omnidata.types import ByteRange, MediaRef, ParquetLocation, VideoSegment

if TYPE_CHECKING:
    from zlib import _Decompress

    import pyarrow as pa
    import pyarrow.parquet as pq
    from av.container import InputContainer


# A medium whose bytes are in memory.


@dataclass(frozen=True, slots=True)
class InMemoryMedia(MediaRef):
    """A medium that was read once and is not read again, however often it is opened.

    Attributes:
        content: the bytes; `hold` also sets their `sha256`.
        as_stored: whether they are those of its file, not written anew to be upright.
    """

    content: bytes = field(default=b"", repr=False, compare=False)
    as_stored: bool = field(default=True, repr=False, compare=False)


# Any stretch of a large file, gzip or not, without unpacking it from its beginning every time.
#
# Datasets pack gigabytes of screenshots into one gzip stream, in which there is no seeking. While a
# stream is read, zlib's state is kept every few megabytes, and a later read goes on from the
# nearest one: no reader waits for more than `SPACING` bytes that it did not ask for.

SPACING = 16 * 1024**2
"""Unpacked bytes between two states that are kept; a state takes about 45 KB."""

_CHUNK = 256 * 1024
_GZIP = b"\x1f\x8b"
_WITH_HEADER = 31  # zlib's own number: a window of 2^15 bytes, in gzip's wrapping


@dataclass(frozen=True, slots=True)
class _State:
    """The state of unpacking a stream.

    Attributes:
        out: bytes that came out so far.
        taken: bytes of the file that went in.
        inflate: goes on from there; a caller that feeds it takes a copy.
    """

    out: int
    taken: int
    inflate: _Decompress


class Unpacked:
    """The content of a file; several threads may read it at once.

    Args:
        path: a file that stays as it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with open_parts(path) as file:
            self._packed = file.read(len(_GZIP)) == _GZIP
        self._lock = Lock()
        self._states = [_State(0, 0, zlib.decompressobj(_WITH_HEADER))]
        self._last: _State | None = None

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the unpacked content; fewer than requested at its end.

        Raises:
            OSError, EOFError, zlib.error: the file cannot be read, ends within its gzip stream, or
                is none.
        """
        with open_parts(self._path) as file:
            if not self._packed:
                file.seek(offset)
                return file.read(size)
            found = io.BytesIO()  # which gives its bytes away, where `join` needs room for both
            found.writelines(self._stretch(file, offset, size))
            return found.getvalue()

    def _stretch(self, file: IO[bytes], offset: int, size: int) -> Iterator[bytes]:
        state = self._nearest(offset)
        inflate, out, taken = state.inflate, state.out, state.taken
        rest = b""
        while out < offset + size:
            wanted = offset + size - out if out >= offset else offset - out
            if not rest:
                file.seek(taken)
                rest = file.read(_CHUNK)
            if inflate.eof:
                if not rest:
                    return
                following = rest.lstrip(b"\0")  # tapes pad, and so may others
                taken += len(rest) - len(following)
                rest = following
                inflate = inflate if not rest else zlib.decompressobj(_WITH_HEADER)
                continue
            if not rest:
                raise EOFError("the file ends within its gzip stream")
            piece = inflate.decompress(rest, min(wanted, _CHUNK))
            left = inflate.unused_data or inflate.unconsumed_tail
            taken += len(rest) - len(left)
            rest = left
            if out >= offset:
                yield piece
            out += len(piece)
            self._keep(_State(out, taken, inflate))
        with self._lock:
            self._last = _State(out, taken, inflate)

    def _nearest(self, offset: int) -> _State:
        with self._lock:
            at = bisect_right(self._states, offset, key=attrgetter("out")) - 1
            found, last = self._states[at], self._last
            if last and found.out <= last.out <= offset:
                self._last = None
                return last
        return _State(found.out, found.taken, found.inflate.copy())

    def _keep(self, state: _State) -> None:
        with self._lock:
            if state.out >= self._states[-1].out + SPACING and not state.inflate.eof:
                kept = _State(state.out, state.taken, state.inflate.copy())
                self._states.append(kept)


@lru_cache(maxsize=64)
def _open_gzip(path: Path, size: int, time: int) -> Unpacked:
    return Unpacked(path)


def open_unpacked(path: Path) -> Unpacked:
    """Return the unpacked content of a file; its index is kept between calls.

    Raises:
        OSError: the file cannot be read, or is none that is ever opened.
    """
    found = check_file(path, ANY)
    return _open_gzip(path, found.st_size, found.st_mtime_ns)


if hasattr(os, "register_at_fork"):
    # A child must not wait for a thread of its parent.
    os.register_at_fork(after_in_child=_open_gzip.cache_clear)


# The bytes of a medium that lies within another file, by their place there.

_RGB = 3


def _read_stretch(ref: MediaRef, cell: ByteRange, budget: Budget) -> bytes:
    """Return a medium within a file as a file of its own; bare pixels become a PNG.

    Args:
        ref: whose cell it is.
        cell: where the bytes lie.
        budget: limits; the file around them may be as large as it likes.

    Raises:
        MediaError: the file is missing, outside the dataset's folder or broken, or the bytes are
            too many, too few, or no RGB pixels.
    """
    shard = resolve(around(ref, cell), budget=Budget(max_bytes=ANY))
    if cell.size > budget.max_bytes:
        raise _unreadable(ref, f"it has {cell.size} bytes, more than {budget.max_bytes}", "refused")
    if cell.size == 0:
        raise _unreadable(ref, "it is empty", "empty")
    try:
        content = open_unpacked(shard).read(cell.offset, cell.size)
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        raise _unreadable(ref, f"the file that contains it cannot be read ({error})") from None
    if len(content) < cell.size:
        raise _unreadable(ref, "the file that contains it has become shorter", "truncated")
    return content if cell.pixels is None else _png(ref, content, cell.pixels, budget)


def _png(ref: MediaRef, content: bytes, shape: tuple[int, int, int], budget: Budget) -> bytes:
    import numpy as np

    if shape[2] != _RGB or min(shape) < 1 or prod(shape) != len(content):
        height, width, channels = shape
        what = f"{len(content)} bytes are no {width} x {height} pixels of {channels} channels"
        raise _unreadable(ref, what)
    if shape[0] * shape[1] > budget.max_pixels:
        raise _unreadable(ref, f"it has more than {budget.max_pixels} pixels", "refused")
    return png(np.frombuffer(content, np.uint8).reshape(shape))


def _unreadable(ref: MediaRef, what: str, fault: MediaFault = "unreadable") -> MediaError:
    return MediaError(
        what,
        where=place(ref),
        expected=f"the bytes of the {ref.kind}",
        remedy="convert or download the dataset again, or leave the step out with --exclude",
        fault=fault,
    )


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


def file_or_bytes(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Path | bytes:
    """Return the file of a medium, or its bytes if it has none; pictures may be rotated.

    Raises:
        MediaError: as `resolve`, or the file that holds it is broken or lacks it, or it is no
            picture that marks could be drawn on.
    """
    if ref.until < 1:
        return beginning(ref, file_or_bytes(replace(ref, until=1.0), budget=budget), budget)
    if ref.marks:
        return read_marked(file_or_bytes(replace(ref, marks=()), budget=budget), ref, budget)
    if isinstance(ref, InMemoryMedia):
        return ref.content
    if isinstance(ref.cell, VideoSegment):
        return read_cut(ref, ref.cell, budget)
    if isinstance(ref.cell, ByteRange):
        return _read_stretch(ref, ref.cell, budget)
    return resolve(ref, budget=budget) if ref.cell is None else _read_cell(ref, ref.cell, budget)


@contextmanager
def open_media(
    ref: MediaRef, budget: Budget, *, at_a_glance: bool = False
) -> Iterator[InputContainer]:
    """Open the container of a clip or a track, for the block; arguments as of `open_container`.

    Raises:
        MediaError: as `file_or_bytes`; the container or something decoded in the block is broken.
    """
    found = file_or_bytes(ref, budget=budget)
    with open_container(found, ref, budget, at_a_glance=at_a_glance) as container:
        yield container


def read_bytes(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> bytes:
    """Return the medium's bytes, upright, for models that take it undecoded.

    They are those of its file, except for a medium that lies turned in its file (see `upright`).

    Raises:
        MediaError: as `file_or_bytes`, or a turned medium cannot be decoded.
    """
    return upright(ref, read_stored(ref, budget=budget), budget)


def upright(ref: MediaRef, content: bytes, budget: Budget) -> bytes:
    """Return a medium as it is shown, without a rotation tag, which some readers ignore.

    Args:
        ref: whose bytes they are.
        content: as stored.
        budget: limits.

    Returns:
        The same object for what is stored upright; else a PNG of a picture with an orientation tag
        (EXIF), an MP4 of a clip with a display matrix.

    Raises:
        MediaError: it is turned, and cannot be decoded.
    """
    if ref.kind == "image":
        return read_upright(content, ref, budget)
    if ref.kind == "video" and is_turned(content, ref, budget):
        return beginning(replace(ref, until=1.0), content, budget)
    return content


def read_stored(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> bytes:
    """Return the medium's bytes as stored, for hashes of files.

    Raises:
        MediaError: as `file_or_bytes`.
    """
    found = file_or_bytes(ref, budget=budget)
    return found if isinstance(found, bytes) else _read(ref, found)[0]


def _read(ref: MediaRef, path: Path) -> tuple[bytes, os.stat_result]:
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())  # first: what is written later has another time
            return file.read(), about
    except OSError as error:
        raise MediaError(
            f"the file cannot be read ({error.strerror})",
            where=place(ref),
            expected="a readable file",
            remedy="repair its permissions or its disk, or leave the step out with --exclude",
        ) from None


_MOST_HASHES = 4096
_hashes: dict[tuple[Path, int, int], str] = {}


def read_and_hash(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> tuple[bytes, str]:
    """Return the medium's bytes as stored and their SHA-256, which `file_hash` knows from then on.

    Raises:
        MediaError: as `file_or_bytes`.
    """
    found = file_or_bytes(ref, budget=budget)
    if isinstance(found, bytes):
        return found, hashlib.sha256(found).hexdigest()
    content, about = _read(ref, found)
    digest = hashlib.sha256(content).hexdigest()
    if len(content) == about.st_size:
        _remember(found, about, digest)
    return content, digest


def file_hash(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> str:
    """Return the SHA-256 of a medium's own file, in hexadecimal.

    A file that keeps its size and time is read once.

    Raises:
        MediaError: as `resolve`.
        OSError: it cannot be read.
    """
    path = spelling_on_disk(ref.root, ref.path)
    about = path.stat()
    known = _hashes.get((path, about.st_size, about.st_mtime_ns))
    if known is None:
        with resolve(ref, budget=budget).open("rb") as content:
            known = hashlib.file_digest(content, "sha256").hexdigest()
        _remember(path, about, known)
    return known


def _remember(path: Path, about: os.stat_result, digest: str) -> None:
    if len(_hashes) >= _MOST_HASHES:
        _hashes.clear()
    _hashes[path, about.st_size, about.st_mtime_ns] = digest


def _read_cell(ref: MediaRef, cell: ParquetLocation, budget: Budget) -> bytes:
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
        raise _unreadable(ref, f"the cell cannot be read ({type(error).__name__})") from None
    if not value:
        raise _unreadable(ref, "the cell is empty", fault="empty")
    if len(value) > budget.max_bytes:
        what = f"the cell has {len(value)} bytes, more than {budget.max_bytes}"
        raise _unreadable(ref, what, fault="refused")
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
