"""Screenshots: header, pixels, and the way back from a resized picture to the screen."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from omnidata.actions import Screen
from omnidata.errors import MediaError
from omnidata.media.paths import DEFAULT_BUDGET, Budget, place
from omnidata.media.storage import stored
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL.Image import Image

_PNG_END = b"IEND\xaeB`\x82"
_FORMATS = ("PNG", "JPEG", "WEBP")

MAX_SIDE = 65_535
"""Of a picture, in pixels, as JPEG has it: a row has a price of its own, whatever its length."""

MOST_SCANS = 20
"""How often all pixels of the largest picture may be gone over. A progressive JPEG has about ten
scans; one of kilobytes may have hundreds, each of which takes as long as the picture."""

_SCAN = b"\xff\xda"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a screen lies in a picture of another size.

    Attributes:
        screen: width and height of the original in pixels.
        scale: picture pixels per screen pixel, the same along both axes.
        left, top: the padding before the screen, in picture pixels.
    """

    screen: Screen
    scale: float
    left: int
    top: int

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        """A point of the picture, in pixels of the screen.

        Examples:
            >>> Placement((720, 1600), 0.5, 100, 0).to_screen(280, 400)
            (360.0, 800.0)
        """
        return (x - self.left) / self.scale, (y - self.top) / self.scale

    def to_picture(self, x: float, y: float) -> tuple[float, float]:
        """A point of the screen, in pixels of the picture.

        Examples:
            >>> Placement((720, 1600), 0.5, 100, 0).to_picture(360, 800)
            (280.0, 400.0)
        """
        return x * self.scale + self.left, y * self.scale + self.top


@dataclass(frozen=True, slots=True)
class Picture:
    """A decoded screenshot.

    Attributes:
        pixels: uint8 (H, W, 3), RGB.
        placement: where the screen lies in it.
    """

    pixels: npt.NDArray[np.uint8]
    placement: Placement


def image_size(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Screen:
    """Width and height in pixels, from the header; nothing is decoded.

    A PNG must also end as a PNG does, which finds a truncated file at the cost of one more read.

    Raises:
        MediaError: the file is missing, is no image, has too many pixels, or is a PNG that was cut.
    """
    with _opened(ref, budget) as picture:
        return picture.size


def image(ref: MediaRef, *, size: Screen | None = None, budget: Budget = DEFAULT_BUDGET) -> Picture:
    """The screenshot in RGB.

    A camera's orientation mark (EXIF) is not applied: targets are in the file's own pixels.

    Args:
        ref: a PNG, JPEG or WebP file.
        size: width and height in pixels to fit it into, proportions kept, black around it; None
            leaves it as it is.
        budget: limits; pixels are checked before anything is decoded.

    Raises:
        MediaError: as `image_size`, or the pixels cannot be decoded.
    """
    import numpy as np
    from PIL import Image

    with _opened(ref, budget) as opened:
        picture: Image.Image = opened
        screen = picture.size
        if picture.mode.startswith("I"):  # 16 bits of grey, which `convert` would cut off at 255
            picture = Image.fromarray((np.asarray(picture) >> 8).clip(0, 255).astype(np.uint8))
        rgb = picture.convert("RGB")
        if size is None or size == screen:
            return Picture(np.asarray(rgb), Placement(screen, 1.0, 0, 0))
        placement = _fit(screen, size)
        return Picture(np.asarray(_padded(rgb, size, placement)), placement)


def _fit(screen: Screen, size: Screen) -> Placement:
    scale = min(size[0] / screen[0], size[1] / screen[1])
    width, height = (max(1, round(extent * scale)) for extent in screen)
    return Placement(screen, scale, (size[0] - width) // 2, (size[1] - height) // 2)


def _padded(rgb: Image, size: Screen, placement: Placement) -> Image:
    from PIL import Image

    width, height = (max(1, round(extent * placement.scale)) for extent in rgb.size)
    canvas = Image.new("RGB", size)
    resized = rgb.resize((width, height), Image.Resampling.BICUBIC)
    canvas.paste(resized, (placement.left, placement.top))
    return canvas


@contextmanager
def _opened(ref: MediaRef, budget: Budget) -> Iterator[Image]:
    from PIL import Image

    found = stored(ref, budget=budget)
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
    except MediaError:
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
