"""The bytes of a medium that lies within another file, by their place there."""

from __future__ import annotations

import zlib
from math import prod

from omnidata.errors import MediaError, MediaFault
from omnidata.files import ANY
from omnidata.media.paths import Budget, around, place, resolve
from omnidata.media.unpacked import unpacked
from omnidata.types import MediaRef, Stretch

_RGB = 3


def read_stretch(ref: MediaRef, cell: Stretch, budget: Budget) -> bytes:
    """The medium as a file; bare pixels become a PNG, without loss.

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
        raise _broken(ref, f"it has {cell.size} bytes, more than {budget.max_bytes}", "refused")
    if cell.size == 0:
        raise _broken(ref, "it is empty", "empty")
    try:
        content = unpacked(shard).read(cell.offset, cell.size)
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        raise _broken(ref, f"the file around it cannot be read ({error})") from None
    if len(content) < cell.size:
        raise _broken(ref, "the file around it has become shorter", "truncated")
    return content if cell.pixels is None else _png(ref, content, cell.pixels, budget)


def _png(ref: MediaRef, content: bytes, shape: tuple[int, int, int], budget: Budget) -> bytes:
    import numpy as np

    from omnidata.media.encoding import png

    if shape[2] != _RGB or min(shape) < 1 or prod(shape) != len(content):
        height, width, channels = shape
        what = f"{len(content)} bytes are no {width} x {height} pixels of {channels} channels"
        raise _broken(ref, what)
    if shape[0] * shape[1] > budget.max_pixels:
        raise _broken(ref, f"it has more than {budget.max_pixels} pixels", "refused")
    return png(np.frombuffer(content, np.uint8).reshape(shape))


def _broken(ref: MediaRef, what: str, fault: MediaFault = "unreadable") -> MediaError:
    return MediaError(
        what,
        where=place(ref),
        expected=f"the bytes of the {ref.kind}",
        remedy="download the file again, or leave the step out with --exclude",
        fault=fault,
    )
