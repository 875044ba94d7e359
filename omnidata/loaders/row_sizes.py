"""Read the sizes of a screenshot, and of the picture as it was fed to a model, from rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from omnidata.actions import Screen
from omnidata.errors import plural
from omnidata.jsontext import is_number
from omnidata.loaders.load import Note, RowContext, about

Row = Mapping[str, Any]

_SIZES: Final = (("orig_w", "orig_h"), ("width", "height"), ("image_width", "image_height"))
"""In order: beside `orig_w` others may be of the picture as it was fed."""
_NEAR_WHOLE: Final = 0.02
_FARTHEST: Final = 100_000


def size_columns(row: Row) -> tuple[object, object]:
    """Return the screenshot's own width and height in a row; None for a missing one."""
    for width, height in _SIZES:
        if row.get(width) is not None or row.get(height) is not None:
            return _whole(row.get(width)), _whole(row.get(height))
    return None, None


def _whole(value: object) -> object:
    """A whole number as such: tables with gaps hold 1080.0 in place of 1080."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def fed_size(row: Row) -> Screen | None:
    """Return the size in pixels in which the picture was fed to a model, by the row.

    GUI-R1's inference writes it into the rows that it keeps, as `image_size`; others keep the
    `scale` from the screenshot to it.
    """
    size, scale = _two(row.get("image_size")), _two(row.get("scale"))
    if size is None and scale is not None:
        stated = _two([*size_columns(row)])
        size = stated and (round(stated[0] * scale[0]), round(stated[1] * scale[1]))
    if size is None or size[0] % 1 or size[1] % 1:
        return None
    return int(size[0]), int(size[1])


def _two(value: object) -> tuple[float, float] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    one, other = value
    if not is_number(one) or not is_number(other) or not 0 < min(value) <= max(value) < _FARTHEST:
        return None
    return one, other


def _size_before_feeding(row: Row) -> Screen | None:
    """Return the size of a screenshot whose fed size is stated; None if that is not enough.

    A `scale` between the two gives whole numbers, whichever of them it is divided by.
    """
    fed, scale = fed_size(row), _two(row.get("scale"))
    if fed is not None and scale is not None and scale != (1, 1):
        for factors in (scale, (1 / scale[0], 1 / scale[1])):
            sides = fed[0] / factors[0], fed[1] / factors[1]
            whole = round(sides[0]), round(sides[1])
            apart = max(abs(sides[0] - whole[0]), abs(sides[1] - whole[1]))
            if apart <= _NEAR_WHOLE and 0 < min(whole) <= max(whole) < _FARTHEST:
                return whole
    return None


def size_by_feeding(row: Row, sample_id: str, as_fed: list[str]) -> Screen:
    """Return the size of a screenshot by how it was fed to a model; (0, 0) if that is not stated.

    Args:
        row: states no other size.
        sample_id: of the row.
        as_fed: takes the ids of rows for `warn_of_fed_sizes`.
    """
    if before := _size_before_feeding(row):
        return before
    fed = fed_size(row)
    if fed:
        as_fed.append(sample_id)
    return fed or (0, 0)


def warn_of_fed_sizes(sample_ids: Sequence[str], where: str, note: Note) -> None:
    """Report rows without any size but that of the picture as it was fed, if there are any.

    Args:
        sample_ids: of these rows.
        where: the data.
        note: takes the finding.
    """
    if sample_ids:
        RowContext(where, about(note, *sample_ids)).warn(
            "size-fed",
            f"{plural(len(sample_ids), 'row')} with only the size of the picture as fed, which is "
            "taken as the screenshot's size",
            "orig_w and orig_h, or the picture, since places are in pixels of the screenshot",
            "add the size of the screenshot",
        )
