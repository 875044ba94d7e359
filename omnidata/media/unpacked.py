"""Any stretch of a large file, gzip or not, without unpacking it from its beginning every time.

Datasets pack gigabytes of screenshots into one gzip stream, in which there is no seeking. While a
stream is read, zlib's state is kept every few megabytes, and a later read goes on from the nearest
one: no reader waits for more than `SPACING` bytes that it did not ask for.
"""

from __future__ import annotations

import io
import os
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING

from omnidata.files import ANY, check_file, open_parts

if TYPE_CHECKING:
    from zlib import _Decompress

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
