"""The size of the picture that a model got, where a line of answers states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from omnidata.errors import PredictionError
from omnidata.jsontext import is_number, whole_number
from omnidata.loaders.row_sizes import size_columns

_SIZE, _SCALE, _ORIGINAL = "image_size", "scale", "original_size"
_LARGEST: Final = 10**6
"""Pixels that no side of a picture has."""
_TOLERANCE: Final = 0.01
"""By how much of a size `scale` may be off, which programs write rounded to a few digits."""
_SIZES: Final = (
    '"image_size": [width, height] of the picture that the model got, in pixels; or "scale" of it '
    'beside "original_size": [width, height] of the screenshot'
)


def size_receipt(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a receipt with the size of the picture that the model got; empty if none is stated.

    Args:
        row: may have `image_size`, `scale` (of the picture to the screenshot, one number or one
            for each axis), and of the screenshot `original_size` or the columns of rows of data
            (see `omnidata.loaders.row_sizes`); all but the scale in pixels. An empty list counts
            as absent.
        where: file and line, for messages.

    Raises:
        PredictionError: the sizes cannot be read, or contradict each other.

    Examples:
        >>> line = {"image_size": [450, 1000], "orig_w": 720, "orig_h": 1600}
        >>> [part] = size_receipt(line, "")["parts"]
        >>> part["width"], part["height"], part["original"]
        (450, 1000, [720, 1600])
    """
    row = {name: value for name, value in row.items() if value != []}
    if row.get(_SIZE) is None and row.get(_SCALE) in (None, 1):
        return {}
    original: Any = row.get(_ORIGINAL)
    if original is None and size_columns(row) != (None, None):
        original = [*size_columns(row)]
    screen = None if original is None else _size(original, _ORIGINAL, where)
    scale = None if row.get(_SCALE) is None else _factors(row[_SCALE], where)
    scaled = _scale_size(screen, scale) if screen and scale else None
    size = scaled if row.get(_SIZE) is None else _size(row[_SIZE], _SIZE, where)
    if size is None:
        raise _size_error("scale alone does not say how large the picture was", where)
    if (
        screen
        and scale
        and scaled
        and not (_are_near(size, scaled) or _are_near(_scale_size(size, scale), screen))
    ):
        raise _size_error(f"image_size is {size}, and scale of original_size makes {scaled}", where)
    part = {"role": "screenshot", "kind": "image", "width": size[0], "height": size[1]}
    return {"parts": [part | ({"original": screen} if screen else {})]}


def _size(value: Any, name: str, where: str) -> list[int]:
    sides = [whole_number(side) for side in value] if isinstance(value, list | tuple) else []
    found = [side for side in sides if side is not None and 0 < side < _LARGEST]
    if len(found) != 2 or len(sides) != 2:
        raise _size_error(f"{name} is {value!r:.60}, not a width and a height in pixels", where)
    return found


def _factors(value: Any, where: str) -> Sequence[float]:
    pair = value if isinstance(value, list | tuple) else [value, value]
    if len(pair) != 2 or not all(is_number(one) and 0 < one < 100 for one in pair):
        raise _size_error(f"scale is {value!r:.60}, not one number or two above 0", where)
    return pair


def _scale_size(size: Sequence[int], scale: Sequence[float]) -> list[int]:
    return [max(1, round(side * factor)) for side, factor in zip(size, scale, strict=True)]


def _are_near(size: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two sizes agree up to the rounding of a scale factor; some write its inverse."""
    return all(abs(a - b) <= 1 + _TOLERANCE * a for a, b in zip(size, other, strict=True))


def _size_error(what: str, where: str) -> PredictionError:
    return PredictionError(
        what,
        where=where,
        expected=_SIZES,
        remedy="correct the sizes, or remove them where the model got the screenshot as it is",
    )
