"""What the boxes of AgentStudio's rows mean; every family of sources means something else.

GroundUI has edges in pixels. The actions of the other sets have `{x, y, width, height}`: for
Mind2Web a rectangle in pixels of the page, for Android in the Wild a point in [0, 1] and for
AgentStudio's own a point in pixels, both with a width and height of 1.0 that mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnidata.actions import Box, Point, Region

FARTHEST = 1e9
"""No coordinate in pixels is farther from 0 than this."""

_FAMILIES = {
    "mind2web": "mind2web",
    "aitw": "aitw",
    "vwa": "vwa",
    "agent-studio": "agent_studio",
    "agent_studio": "agent_studio",
}


def family(source: str) -> str:
    """The family of a row's `source`: by the substrings that the released evaluator looks for.

    Examples:
        >>> family("mind2web_data_test_task"), family("agent-studio"), family("omniact")
        ('mind2web', 'agent_studio', 'omniact')
    """
    found = (name for part, name in _FAMILIES.items() if part in source)
    return next(found, source.replace("-", "_"))


def number(value: object) -> float | None:
    """A coordinate as it is; None for what is none: NaN, a text, a number beyond `FARTHEST`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -FARTHEST <= value <= FARTHEST else None  # NaN is in no interval


def target_box(row: Mapping[str, Any]) -> Box | None:
    """The target of a GroundUI row in pixels; None if no point of the plane lies in it.

    Examples:
        >>> target_box({"bbox": [336, 652, 466, 652]})
        Box(left=336, top=652, right=466, bottom=652, space='px')
        >>> target_box({"bbox": [0, 0, 10, float("nan")]}) is None
        True
    """
    value = row.get("bbox")
    if not isinstance(value, list | tuple) or len(value) != 4:
        return None
    left, top, right, bottom = map(number, value)
    if left is None or top is None or right is None or bottom is None:
        return None
    return Box(left, top, right, bottom, "px") if left <= right and top <= bottom else None


def action_box(row: Mapping[str, Any], action: Mapping[str, Any]) -> Region | None:
    """Where an action was made, in the meaning that its source gives to boxes.

    Args:
        row: the row, whose `source` decides.
        action: one of its actions; the row itself for IDM-Single.

    Returns:
        A box in pixels (Mind2Web), a point in [0, 1] (Android in the Wild), a point in pixels
        (AgentStudio); None where the action has no box or one that cannot be read, and for other
        sources, whose boxes mean nothing known.

    Examples:
        >>> box = {"x": 0.5, "y": 0.25, "width": 1.0, "height": 1.0}
        >>> action_box({"source": "aitw_single"}, {"bbox": box})
        Point(x=0.5, y=0.25, space='rel')
        >>> action_box({"source": "agent-studio"}, {"bbox": box | {"x": 746, "y": 42}})
        Point(x=746, y=42, space='px')
        >>> action_box({"source": "mind2web_data_test_task"}, {"bbox": box})
        Box(left=0.5, top=0.25, right=1.5, bottom=1.25, space='px')
    """
    box = action.get("bbox")
    if not isinstance(box, Mapping):
        return None
    x, y = number(box.get("x")), number(box.get("y"))
    if x is None or y is None:
        return None
    kind = family(str(row.get("source")))
    if kind in ("aitw", "agent_studio"):
        return Point(x, y, "rel" if kind == "aitw" else "px")
    width, height = number(box.get("width")), number(box.get("height"))
    if kind != "mind2web" or width is None or height is None or min(width, height) < 0:
        return None
    return Box(x, y, x + width, y + height, "px")


def is_flat(box: Box) -> bool:
    """Whether no point lies strictly inside."""
    return box.left == box.right or box.top == box.bottom
