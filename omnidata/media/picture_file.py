"""Picture files: opened within limits, and turned upright.

Everything here is given a file or its bytes; `storage` knows where the bytes of a medium are.

A picture is what viewers, browsers and `datasets.Image` show: one with an orientation tag (EXIF) is
turned upright wherever it is read, since its targets refer to the upright picture.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from omnidata.actions import Screen
from omnidata.errors import MediaError, StoreError
from omnidata.media.encoding import png
from omnidata.media.orientation import is_sideways, may_be_turned, tags_in_tail, turn_by_tags
from omnidata.media.paths import Budget, place
from omnidata.types import MediaRef

if TYPE_CHECKING:
    from PIL.Image import Image, Transpose

_PNG_END = b"IEND\xaeB`\x82"
_PNG_TAIL = 1 << 16
"""Bytes in which a PNG has the marker of its end; a file may have something behind it."""
_FORMATS = ("PNG", "JPEG", "WEBP")

_MAX_SIDE = 65_535
"""Of a picture, in pixels, as JPEG has it: a row has a price of its own, whatever its length."""

_MOST_SCANS = 20
"""How often all pixels of the largest picture may be gone over. A progressive JPEG has about ten
scans; one of kilobytes may have hundreds, and each takes as long as the picture."""

_SCAN = b"\xff\xda"

# Pillow warns of tags that we read ourselves; a filter for a while would be no thread's own.
warnings.filterwarnings("ignore", "Corrupt EXIF data", UserWarning, r"PIL\.")


@dataclass(frozen=True, slots=True)
class OpenPicture:
    """A picture whose header has been read.

    Attributes:
        stored: Pillow's picture, as it lies in the file.
        turn: what turns it upright; None for one that stands upright.
    """

    stored: Image
    turn: Transpose | None

    @property
    def size(self) -> Screen:
        """Width and height in pixels, upright; nothing is decoded."""
        width, height = self.stored.size
        return (height, width) if is_sideways(self.turn) else (width, height)

    def decode(self) -> Image:
        """Decode the picture, upright, in RGB."""
        rgb = _in_rgb(self.stored)
        return rgb if self.turn is None else rgb.transpose(self.turn)


@contextmanager
def open_picture(found: Path | bytes, ref: MediaRef, budget: Budget) -> Iterator[OpenPicture]:
    """Open a picture and read its header, for the block.

    Args:
        found: the file, or its bytes.
        ref: whose they are, for errors.
        budget: limits.

    Raises:
        MediaError: it is no picture, has too many pixels, or is a PNG that was cut; or the pixels
            cannot be decoded in the block.
    """
    from PIL import Image

    try:
        with (
            io.BytesIO(found) if isinstance(found, bytes) else found.open("rb") as file,
            Image.open(file, formats=_FORMATS) as picture,
        ):
            if picture.width * picture.height > budget.max_pixels or max(picture.size) > _MAX_SIDE:
                raise MediaError(
                    f"the picture has {picture.width} x {picture.height} pixels",
                    where=place(ref),
                    expected=f"at most {budget.max_pixels} pixels, {_MAX_SIDE} along a side",
                    remedy="set a larger budget if you trust the picture",
                    fault="refused",
                )
            if picture.format == "JPEG":
                _check_scans(file, picture.size, ref, budget)
            if picture.format == "PNG":
                end = _read_png_end(file, ref)
                if any(name not in picture.info for name in tags_in_tail(end)):
                    picture.load()  # which reads on behind the pixels
            yield OpenPicture(picture, turn_by_tags(picture.info))
    except (MediaError, StoreError):
        raise
    except Exception as error:
        # Not a list of types on purpose: hostile bytes make decoders raise whatever they like.
        raise MediaError(
            f"the file cannot be read as an image ({type(error).__name__})",
            where=place(ref),
            expected="a PNG, JPEG or WebP screenshot",
            remedy="repair the file, or leave the step out with --exclude",
            fault="refused" if isinstance(error, Image.DecompressionBombError) else "unreadable",
        ) from None


def read_upright(content: bytes, ref: MediaRef, budget: Budget) -> bytes:
    """Return a picture's own bytes if it is stored upright, else a PNG without a tag.

    Args:
        content: the picture's file; what cannot be opened is returned as it is.
        ref: whose it is, for errors.
        budget: limits.

    Raises:
        MediaError: the picture is turned and cannot be decoded.
    """
    import numpy as np

    if not may_be_turned(content):
        return content
    try:
        with open_picture(content, ref, budget) as picture:
            turned = picture.turn is not None
    except MediaError:
        return content
    if not turned:
        return content
    with open_picture(content, ref, budget) as picture:
        return png(np.asarray(picture.decode()))


def _in_rgb(picture: Image) -> Image:
    import numpy as np
    from PIL import Image

    if picture.mode.startswith("I"):  # 16 bits of grey, which `convert` would cut off at 255
        picture = Image.fromarray((np.asarray(picture) >> 8).clip(0, 255).astype(np.uint8))
    return picture.convert("RGB")


def _read_png_end(file: BinaryIO, ref: MediaRef) -> bytes:
    """Return the last bytes of a PNG, among them the marker of its end."""
    where, size = file.tell(), file.seek(0, 2)
    file.seek(-min(_PNG_TAIL, size), 2)
    end = file.read()
    if not end.endswith(_PNG_END) and _PNG_END not in end:
        raise MediaError(
            f"the PNG ends after {size} bytes without its end marker",
            where=place(ref),
            expected="a complete PNG; this one is truncated",
            remedy="copy or download it again, or leave the step out with --exclude",
            fault="truncated",
        )
    file.seek(where)
    return end


def _check_scans(file: BinaryIO, size: Screen, ref: MediaRef, budget: Budget) -> None:
    """Refuse a JPEG that makes the decoder go over its pixels without end.

    Scans are counted by their markers, which cannot occur within the data of another.
    """
    where = file.tell()
    file.seek(0)
    scans = file.read().count(_SCAN)
    file.seek(where)
    if scans * size[0] * size[1] > _MOST_SCANS * budget.max_pixels:
        raise MediaError(
            f"the JPEG has {scans} scans of {size[0]} x {size[1]} pixels",
            where=place(ref),
            expected=f"at most {_MOST_SCANS * budget.max_pixels} pixels in all scans",
            remedy="save it again as a PNG or an ordinary JPEG, or leave the step out "
            "with --exclude",
            fault="refused",
        )
