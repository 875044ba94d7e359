"""Picture files: opened within limits, and marks drawn on what is in them.

Everything here is given a file or its bytes; `storage` knows where the bytes of a medium are.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from omnidata.actions import Screen
from omnidata.errors import MediaError, StoreError
from omnidata.media.encoding import png
from omnidata.media.paths import Budget, place
from omnidata.types import MediaRef

if TYPE_CHECKING:
    from PIL.Image import Image

_PNG_END = b"IEND\xaeB`\x82"
_FORMATS = ("PNG", "JPEG", "WEBP")

MAX_SIDE = 65_535
"""Of a picture, in pixels, as JPEG has it: a row has a price of its own, whatever its length."""

MOST_SCANS = 20
"""How often all pixels of the largest picture may be gone over. A progressive JPEG has about ten
scans; one of kilobytes may have hundreds, each of which takes as long as the picture."""

_SCAN = b"\xff\xda"


@contextmanager
def open_picture(found: Path | bytes, ref: MediaRef, budget: Budget) -> Iterator[Image]:
    """A picture whose header has been read, closed again when the block is left.

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
            if picture.width * picture.height > budget.max_pixels or max(picture.size) > MAX_SIDE:
                raise MediaError(
                    f"the picture has {picture.width} x {picture.height} pixels",
                    where=place(ref),
                    expected=f"at most {budget.max_pixels} pixels, {MAX_SIDE} along a side",
                    remedy="give a larger budget if the picture is honest",
                    fault="refused",
                )
            if picture.format == "JPEG":
                _check_scans(file, picture.size, ref, budget)
            if picture.format == "PNG":
                where, size = file.tell(), file.seek(0, 2)
                file.seek(-min(1 << 16, size), 2)
                if _PNG_END not in file.read():
                    raise MediaError(
                        f"the PNG ends after {size} bytes without its end marker",
                        where=place(ref),
                        expected="a whole PNG; this one was truncated",
                        remedy="copy or download it again, or leave the step out with --exclude",
                        fault="truncated",
                    )
                file.seek(where)
            yield picture
    except (MediaError, StoreError):
        raise
    except Exception as error:
        # Not a list of types on purpose: hostile bytes make decoders raise whatever they like.
        raise MediaError(
            f"the file cannot be read as an image ({type(error).__name__})",
            where=place(ref),
            expected="a PNG, JPEG or WebP screenshot",
            remedy="mend the file, or leave the step out with --exclude",
            fault="refused" if isinstance(error, Image.DecompressionBombError) else "unreadable",
        ) from None


def in_rgb(picture: Image) -> Image:
    """The pixels of an open picture in RGB."""
    import numpy as np
    from PIL import Image

    if picture.mode.startswith("I"):  # 16 bits of grey, which `convert` would cut off at 255
        picture = Image.fromarray((np.asarray(picture) >> 8).clip(0, 255).astype(np.uint8))
    return picture.convert("RGB")


def _check_scans(file: BinaryIO, size: Screen, ref: MediaRef, budget: Budget) -> None:
    """Refuse a JPEG that makes the decoder go over its pixels without end.

    Scans are counted by their markers, which cannot occur within the data of another.
    """
    where = file.tell()
    file.seek(0)
    scans = file.read().count(_SCAN)
    file.seek(where)
    if scans * size[0] * size[1] > MOST_SCANS * budget.max_pixels:
        raise MediaError(
            f"the JPEG has {scans} scans of {size[0]} x {size[1]} pixels",
            where=place(ref),
            expected=f"at most {MOST_SCANS * budget.max_pixels} pixels in all scans",
            remedy="write it again as a PNG or a usual JPEG, or leave the step out with --exclude",
            fault="refused",
        )


# Set-of-Mark: boxes with their numbers, as OSWorld draws them (Appendix C.5, Figure 8).

_LABEL: Final = 15
"""Height of a number in pixels on a screen of 1080 lines; larger ones have larger numbers."""
_LINES: Final = 1080


def read_marked(found: Path | bytes, ref: MediaRef, budget: Budget) -> bytes:
    """A picture with its marks drawn on it, as a PNG; one place for one mark, whatever it shows.

    A mark is a red frame with its number, white on black, in its lower left corner. What of a frame
    lies beyond the picture is not seen.

    Args:
        found: the picture's file, or its bytes.
        ref: whose they are, and the marks.
        budget: limits.

    Raises:
        MediaError: as `open_picture`.
    """
    import numpy as np
    from PIL import ImageDraw, ImageFont

    with open_picture(found, ref, budget) as picture:
        drawn = in_rgb(picture)
    scale = max(1, round(min(drawn.size) / _LINES))
    font = ImageFont.load_default(_LABEL * scale)
    draw = ImageDraw.Draw(drawn)
    width, height = drawn.size
    for box in ref.marks:
        frame = [min(max(-1, at), side) for at, side in zip(box, (width, height) * 2, strict=True)]
        draw.rectangle(frame, outline="red", width=scale)
    for number, (left, _, _, bottom) in enumerate(ref.marks, 1):  # no frame hides a number
        corner = min(max(0, left), width), min(max(0, bottom), height)
        draw.rectangle(draw.textbbox(corner, str(number), font=font, anchor="lb"), fill="black")
        draw.text(corner, str(number), font=font, anchor="lb", fill="white")
    return png(np.asarray(drawn))
