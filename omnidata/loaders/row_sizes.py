"""What rows say of the size of a screenshot, and of the picture as it was fed to a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnidata.actions import Screen
from omnidata.jsontext import is_integer, is_number
from omnidata.loaders.load import RowContext

Row = Mapping[str, Any]

_SIZES: Final = (("width", "height"), ("image_width", "image_height"), ("orig_w", "orig_h"))


def size_columns(row: Row) -> tuple[object, object]:
    """The screenshot's own width and height, as a row has them; None for what it does not say."""
    for width, height in _SIZES:
        if row.get(width) is not None or row.get(height) is not None:
            return row.get(width), row.get(height)
    return None, None


_NEAR_WHOLE: Final = 0.01


def fed_size(row: Row) -> Screen | None:
    """Width and height in pixels in which a row says that its picture was fed to a model.

    GUI-R1's inference writes it into the rows that it keeps, as `image_size`.
    """
    size = row.get("image_size")
    if not isinstance(size, list) or len(size) != 2:
        return None
    width, height = size
    if not is_integer(width) or not is_integer(height) or min(size) < 1:
        return None
    return width, height


def size_before_feeding(row: Row, place: RowContext) -> Screen:
    """The size of a screenshot of which only the size as fed is stated; (0, 0) where it is not.

    `scale` is how much larger the fed picture is on each axis, so that the quotient is a whole
    number. A scale of another meaning gives none, and then the fed size stands for it.
    """
    fed = fed_size(row)
    if fed is None:
        return 0, 0
    scale = row.get("scale")
    pair = isinstance(scale, list) and len(scale) == 2 and all(map(is_number, scale))
    if pair and min(scale) > 0 and scale != [1, 1]:
        sides = [side / factor for side, factor in zip(fed, scale, strict=True)]
        whole = round(sides[0]), round(sides[1])
        if all(abs(a - b) <= _NEAR_WHOLE for a, b in zip(sides, whole, strict=True)):
            return whole
    place.warn(
        "size-fed",
        f"the row has no size but that of the picture as it was fed, {fed[0]} x {fed[1]}",
        "orig_w and orig_h, or the picture: places are in pixels of the screenshot",
        "add the size of the screenshot; that of the fed picture stands for it until then",
    )
    return fed
