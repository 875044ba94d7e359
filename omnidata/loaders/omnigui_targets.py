"""Every form in which OmniGUI rows write a target: text or lists, points, one or more rectangles.

The forms and what the released evaluator makes of them are listed in `docs/omnigui.md`. What it
reads as "no target" is unreadable here too, with the reason, so that both profiles judge the same
steps; several rectangles, on which it raises, are alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnidata.actions import Box, Point, Region
from omnidata.jsontext import BROKEN, decode

FARTHEST = 1_000_000
"""Pixels; beyond it a coordinate is a mistake, and arithmetic on it may overflow."""


class TargetError(Exception):
    """The text of a target cannot be read; the message says why."""


def read_target(row: Mapping[str, Any], name: str) -> tuple[Region, ...]:
    """The regions of one target, in pixels of the screenshot.

    Args:
        row: a step's row.
        name: "touch" or "lift"; `result_<name>_xy` wins over the older `result_<name>_yx`.

    Returns:
        Alternatives in the order of the row; empty if the row names no target.

    Raises:
        TargetError: there is something, but not in a form that the benchmark knows.

    Examples:
        >>> read_target({"result_touch_xy": "[[210,786],[351,850]]"}, "touch")
        (Box(left=210, top=786, right=351, bottom=850, space='px'),)
        >>> read_target({"result_touch_yx": [511, 389]}, "touch")
        (Point(x=389, y=511, space='px'),)
    """
    value, swapped = row.get(f"result_{name}_xy"), False
    if value is None:
        value, swapped = row.get(f"result_{name}_yx"), True
    if isinstance(value, str):
        if not value.strip():
            return ()
        try:
            value = decode(value)
        except RecursionError:
            raise TargetError("it is nested too deeply") from None
        if value is BROKEN:
            raise TargetError("it is not JSON")
    if value is None or value == []:
        return ()
    return tuple(_region(corners, swapped) for corners in _alternatives(value))


def _alternatives(value: Any) -> list[list[Any]]:
    """Lists of one corner (a point) or two (a rectangle)."""
    if not isinstance(value, list):
        raise TargetError(f"it is a {type(value).__name__}, not a list")
    if all(isinstance(item, list) for item in value):
        if all(item and all(isinstance(corner, list) for corner in item) for item in value):
            return [_rectangle(item) for item in value]
        return [_rectangle(value)]
    if any(isinstance(item, list) for item in value) or len(value) != 2:
        raise TargetError(f"it is a flat list of {len(value)}, not [x, y]")
    return [[value]]


def _rectangle(corners: list[Any]) -> list[Any]:
    if len(corners) < 2:
        raise TargetError("it has one corner, and a rectangle needs two")
    if any(len(corner) != 2 for corner in corners[:2]):
        raise TargetError("a corner does not have two coordinates")
    return corners[:2]


def _region(corners: list[Any], swapped: bool) -> Region:
    for corner in corners:
        for number in corner:
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise TargetError(f"a coordinate is a {type(number).__name__}")
            if not abs(number) <= FARTHEST:  # NaN too
                raise TargetError("a coordinate is on no screen of this world")
    pairs = [(y, x) if swapped else (x, y) for x, y in corners]
    (x1, y1), (x2, y2) = pairs[0], pairs[-1]
    if len(pairs) == 1:
        return Point(x1, y1, "px")
    return Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2), "px")
