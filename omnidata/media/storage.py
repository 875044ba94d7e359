"""The bytes of a medium, wherever they are stored: a file, or a part of one."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.errors import MediaError
from omnidata.files import ANY
from omnidata.media.containers import open_container
from omnidata.media.cuts import beginning, read_cut
from omnidata.media.encoding import png
from omnidata.media.marks import read_marked
from omnidata.media.parquet_cells import read_cell
from omnidata.media.paths import (
    DEFAULT_BUDGET,
    Budget,
    around,
    place,
    resolve,
    spelling_on_disk,
    unreadable_bytes,
)
from omnidata.media.picture_file import read_upright
from omnidata.media.rotation import is_turned
from omnidata.media.unpacked import open_unpacked
from omnidata.types import ByteRange, MediaRef, VideoSegment

if TYPE_CHECKING:
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
        raise unreadable_bytes(
            ref, f"it has {cell.size} bytes, more than {budget.max_bytes}", "refused"
        )
    if cell.size == 0:
        raise unreadable_bytes(ref, "it is empty", "empty")
    try:
        content = open_unpacked(shard).read(cell.offset, cell.size)
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        raise unreadable_bytes(ref, f"the file that contains it cannot be read ({error})") from None
    if len(content) < cell.size:
        raise unreadable_bytes(ref, "the file that contains it has become shorter", "truncated")
    return content if cell.pixels is None else _png(ref, content, cell.pixels, budget)


def _png(ref: MediaRef, content: bytes, shape: tuple[int, int, int], budget: Budget) -> bytes:
    import numpy as np

    if shape[2] != _RGB or min(shape) < 1 or prod(shape) != len(content):
        height, width, channels = shape
        what = f"{len(content)} bytes are no {width} x {height} pixels of {channels} channels"
        raise unreadable_bytes(ref, what)
    if shape[0] * shape[1] > budget.max_pixels:
        raise unreadable_bytes(ref, f"it has more than {budget.max_pixels} pixels", "refused")
    return png(np.frombuffer(content, np.uint8).reshape(shape))


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
    return resolve(ref, budget=budget) if ref.cell is None else read_cell(ref, ref.cell, budget)


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
