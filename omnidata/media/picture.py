"""Screenshots: headers, pixels, and coordinates of resized pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnidata.actions import Screen
from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.picture_file import OpenPicture, open_picture
from omnidata.media.storage import file_or_bytes
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Placement:
    """The position of a screen, or of a clip's frame, within a resized picture.

    Attributes:
        screen: width and height of the original in pixels.
        scale: picture pixels per screen pixel, the same along both axes.
        left, top: the padding before the screen, in picture pixels.
    """

    screen: Screen
    scale: float
    left: int
    top: int

    @classmethod
    def fit(cls, screen: Screen, size: Screen) -> Placement:
        """Return the placement of a screen that fills a picture as far as its proportions allow.

        Args:
            screen: width and height of the original in pixels.
            size: width and height of the picture in pixels.

        Examples:
            >>> Placement.fit((720, 1600), (448, 448)).extent
            (202, 448)
        """
        corner = cls(screen, min(size[0] / screen[0], size[1] / screen[1]), 0, 0)
        width, height = corner.extent
        return replace(corner, left=(size[0] - width) // 2, top=(size[1] - height) // 2)

    @property
    def extent(self) -> Screen:
        """Width and height of the screen within the picture, in picture pixels."""
        width, height = (max(1, round(side * self.scale)) for side in self.screen)
        return width, height

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        """Convert a point of the picture to pixels of the screen.

        Examples:
            >>> Placement((720, 1600), 0.5, 100, 0).to_screen(280, 400)
            (360.0, 800.0)
        """
        return (x - self.left) / self.scale, (y - self.top) / self.scale

    def to_picture(self, x: float, y: float) -> tuple[float, float]:
        """Convert a point of the screen to pixels of the picture.

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


@dataclass(frozen=True, slots=True)
class PictureInfo:
    """The header of a picture.

    Attributes:
        format: png, jpeg, webp, ...: Pillow's name in lower case, by the content.
        size: width and height in pixels, upright.
        turned: whether the picture lies turned or mirrored in its file, and an orientation tag
            (EXIF) says how it is shown. It is read upright everywhere.
    """

    format: str
    size: Screen
    turned: bool


def picture_info(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> PictureInfo:
    """Read the header of a picture; nothing is decoded.

    A PNG must also end as a PNG does, which finds a truncated file at the cost of one more read.

    Raises:
        MediaError: the file is missing, is no image, has too many pixels, or is a PNG that was cut.
    """
    with _open_stored(ref, budget) as picture:
        name = (picture.stored.format or "").lower()
        return PictureInfo(name, picture.size, picture.turn is not None)


def image_size(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Screen:
    """Return width and height of the upright picture in pixels, from the header.

    Raises:
        MediaError: as `picture_info`.
    """
    with _open_stored(ref, budget) as picture:
        return picture.size


def image(ref: MediaRef, *, size: Screen | None = None, budget: Budget = DEFAULT_BUDGET) -> Picture:
    """Decode a screenshot in RGB, upright by its orientation tag (EXIF), as viewers show it.

    Args:
        ref: a PNG, JPEG or WebP file.
        size: width and height in pixels to fit it into, proportions kept, black around it; None
            leaves it as it is.
        budget: limits; pixels are checked before anything is decoded.

    Raises:
        MediaError: as `image_size`, or the pixels cannot be decoded.
    """
    import numpy as np

    with _open_stored(ref, budget) as picture:
        screen = picture.size
        rgb = picture.decode()
        if size is None or size == screen:
            return Picture(np.asarray(rgb), Placement(screen, 1.0, 0, 0))
        placement = Placement.fit(screen, size)
        return Picture(np.asarray(_pad(rgb, size, placement)), placement)


def letterbox(
    frames: npt.NDArray[np.uint8], size: Screen | None
) -> tuple[npt.NDArray[np.uint8], Placement]:
    """Fit the frames of a clip into another size, as `image` fits a picture.

    Args:
        frames: uint8 (T, H, W, 3), RGB; at least one.
        size: width and height in pixels; None leaves them as they are.

    Returns:
        uint8 (T, H, W, 3) of that size, and where the clip lies in each frame.

    Examples:
        >>> import numpy as np
        >>> fitted, placement = letterbox(np.zeros((2, 20, 10, 3), np.uint8), (30, 40))
        >>> fitted.shape, placement
        ((2, 40, 30, 3), Placement(screen=(10, 20), scale=2.0, left=5, top=0))
    """
    import numpy as np
    from PIL import Image

    screen = frames.shape[2], frames.shape[1]
    if size is None or size == screen:
        return frames, Placement(screen, 1.0, 0, 0)
    placement = Placement.fit(screen, size)
    fitted = [np.asarray(_pad(Image.fromarray(frame), size, placement)) for frame in frames]
    return np.stack(fitted), placement


def _pad(rgb: Image, size: Screen, placement: Placement) -> Image:
    from PIL import Image

    canvas = Image.new("RGB", size)
    resized = rgb.resize(placement.extent, Image.Resampling.BICUBIC)
    canvas.paste(resized, (placement.left, placement.top))
    return canvas


@contextmanager
def _open_stored(ref: MediaRef, budget: Budget) -> Iterator[OpenPicture]:
    with open_picture(file_or_bytes(ref, budget=budget), ref, budget) as picture:
        yield picture
