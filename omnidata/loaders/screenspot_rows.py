"""One row of ScreenSpot -> its target, in the form that the data declare.

A box of four numbers does not say what they are: ScreenSpot and ScreenSpot-v2 have left, top, width
and height, ScreenSpot-Pro has two corners, and others have converted either. The columns of the
released files tell; for other columns the user says it. Nothing is guessed from how large numbers
are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from omnidata.actions import Box, Screen, Space

Row = Mapping[str, Any]
Boxes = Literal["columns", "xywh-px", "xyxy-px", "xyxy-rel", "xywh-rel"]
"""What four numbers are; "columns": as the columns of the released files tell."""
BOXES: Final[tuple[Boxes, ...]] = get_args(Boxes)
Form = Literal["screenspot", "screenspot-v2", "screenspot-pro"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
Language = Literal["en", "cn"]

FILES: Final = ("img_filename", "file_name")
"""Columns that name a picture: of the released files, and of the Hub's."""
_FARTHEST: Final = 1e9


def boxes_of(row: Row) -> Boxes | None:
    """What the box of a row is by its columns; None where they do not tell.

    Examples:
        >>> boxes_of({"img_filename": "a.png", "data_type": "icon"})
        'xywh-px'
        >>> boxes_of({"img_filename": "a.png", "img_size": [3840, 2160], "ui_type": "icon"})
        'xyxy-px'
        >>> boxes_of({"file_name": "a.png", "data_type": "icon"}) is None
        True
    """
    if "img_filename" not in row:
        return None
    if "img_size" in row:
        return "xyxy-px"
    return "xywh-px" if "data_type" in row else None


def box_of(row: Row, boxes: Boxes) -> Box:
    """The target.

    Args:
        row: untouched.
        boxes: what its four numbers are.

    Raises:
        ValueError: they are no box; the message says why.

    Examples:
        >>> row = {"bbox": [42, 1102, 197, 70], "img_filename": "a.png", "data_type": "text"}
        >>> box_of(row, "columns")
        Box(left=42, top=1102, right=239, bottom=1172, space='px')
    """
    meant = boxes_of(row) if boxes == "columns" else boxes
    if meant is None:
        raise ValueError("its columns do not tell what the numbers of bbox are")
    value = row.get("bbox")
    if not isinstance(value, list) or len(value) != 4 or not all(map(_is_number, value)):
        raise ValueError(f"bbox is {value!r:.60}")
    left, top, right, bottom = value
    if meant.startswith("xywh"):
        right, bottom = left + right, top + bottom
    if left > right or top > bottom:
        raise ValueError(f"bbox is {value!r:.60}, upside down as {meant}")
    space: Space = "px" if meant.endswith("px") else "rel"
    return Box(left, top, right, bottom, space)


def is_negative(row: Row) -> bool:
    """Whether the element is not on the screen, and "negative" the right answer."""
    return row.get("gt_type") == "negative"


def stated_size(row: Row) -> Screen | None:
    """The picture's size in pixels, where the row states it."""
    value = row.get("img_size")
    if not isinstance(value, list) or len(value) != 2:
        return None
    width, height = value
    whole = type(width) is int and type(height) is int and min(value) > 0
    return (width, height) if whole else None


def instruction_of(row: Row, language: Language) -> str | None:
    """The instruction in a language; None where the row has none."""
    value = row.get("instruction_cn" if language == "cn" else "instruction")
    return value if isinstance(value, str) and value.strip() else None


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= _FARTHEST  # False for NaN too
