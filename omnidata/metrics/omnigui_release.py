"""The exact-match rules of the released OmniGUI evaluator, verdict for verdict.

They differ from the paper's section 3.4 in many places (`docs/omnigui.md` lists them). Among them:
NONE and DOUBLE_TAP never match exactly, INPUT is a substring test either way, targets and
predictions are truncated on the 0-1000 scale, a point target counts within 140 units, and a swipe
without an end or without a lift target is judged by its start alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeGuard

from omnidata.actions import Space
from omnidata.jsontext import decode
from omnidata.metrics.omnigui_answer import Answer, Pair

PredictedSpace = Space | Literal["auto"]
POINT_RADIUS = 140
_SQRT_LIMIT = 1 << 64

Whole = tuple[int, int]
Corners = list[Any]
"""One corner is a point, two are a rectangle; as the row has them, in pixels."""


class RaisesError(Exception):
    """The released evaluator would raise on this step and so end the evaluation."""


def judge(
    row: Mapping[str, Any], answer: Answer | None, space: PredictedSpace
) -> tuple[bool, bool]:
    """Type match and exact match of one step.

    Args:
        row: the untouched row; targets in pixels.
        answer: the action read from the output; None = nothing could be read.
        space: unit of the predicted coordinates; "auto": pixels where one exceeds 1000. The
            released code has no "rel"; it would be read as "norm1000".

    Raises:
        RaisesError: where the released code raises.

    Examples:
        >>> row = {"result_action_type": 0, "result_touch_xy": "[[210,786],[351,850]]",
        ...        "image_width": 720, "image_height": 1600}
        >>> judge(row, Answer(0, (291, 491)), "norm1000")
        (True, True)
    """
    screen = (row.get("image_width") or 1080, row.get("image_height") or 2400)
    touch = _target(row, "touch", nested=False)
    kind = row.get("result_action_type")
    if answer is None or kind is None or answer.kind != kind:
        return False, False
    if answer.kind in (0, 2):
        if touch is None or answer.start is None:
            return True, False
        return True, _hits(touch, answer.start, screen, space)
    if 3 <= answer.kind <= 6:
        return True, _swipe(row, answer, screen, space)
    if answer.kind == 7:
        return True, _same_text(row.get("result_action_text"), answer.text)
    return True, answer.kind >= 8


def _swipe(
    row: Mapping[str, Any], answer: Answer, screen: tuple[Any, Any], space: PredictedSpace
) -> bool:
    touch, lift = (_target(row, name, nested=True) for name in ("touch", "lift"))
    if touch is None or answer.start is None:
        return False
    starts = _hits(touch, answer.start, screen, space)
    if lift is None or answer.end is None:
        return starts
    ends = _hits(lift, answer.end, screen, space)
    return starts and ends


def _same_text(target: Any, text: str | None) -> bool:
    if not target or not text:
        return False
    if not isinstance(target, str):
        raise RaisesError(f"result_action_text is a {type(target).__name__}")
    wanted, given = target.lower().strip(), text.lower().strip()
    return given in wanted or wanted in given


def _hits(corners: Corners, pair: Pair, screen: tuple[Any, Any], space: PredictedSpace) -> bool:
    """Whether a predicted point lies in the target, or within 140 units of a point target."""
    point: Whole = int(pair[0]), int(pair[1])
    if space == "px" or (space == "auto" and max(point) > 1000):
        point = _to_scale(point, screen)
    target = [_to_scale(corner, screen) for corner in corners]
    (x1, y1), (x2, y2) = target[0], target[-1]
    squared = (point[0] - (x1 + x2) // 2) ** 2 + (point[1] - (y1 + y2) // 2) ** 2
    if squared >= _SQRT_LIMIT:
        raise RaisesError("a coordinate is beyond what NumPy's square root takes")
    if point == (-1, -1):
        return False
    if len(target) == 1:
        return squared <= POINT_RADIUS**2
    return min(x1, x2) <= point[0] <= max(x1, x2) and min(y1, y2) <= point[1] <= max(y1, y2)


def _to_scale(corner: Any, screen: tuple[Any, Any]) -> Whole:
    try:
        return int(corner[0] / screen[0] * 1000), int(corner[1] / screen[1] * 1000)
    except (TypeError, ValueError, OverflowError) as error:
        raise RaisesError(f"a target coordinate cannot be scaled: {error}") from None


def _target(row: Mapping[str, Any], name: str, *, nested: bool) -> Corners | None:
    value, swapped = row.get(f"result_{name}_xy"), False
    if value is None:
        value, swapped = row.get(f"result_{name}_yx"), True
    if isinstance(value, str):
        if not value:
            return None
        try:
            value = decode(value)
        except RecursionError:
            return None
    if nested and _is_nested(value):
        value = value[0]  # as an end of a swipe, the first of nested rectangles is read
    corners = _corners(value)
    if corners is None:
        return None
    if len(corners) == 2:
        _check_middle(corners)
    return [[y, x] for x, y in corners] if swapped else corners


def _check_middle(corners: Corners) -> None:
    """The released code takes a rectangle's middle as it reads it; several rectangles end there."""
    (x1, y1), (x2, y2) = corners
    try:
        _ = (x1 + x2) / 2, (y1 + y2) / 2
    except (TypeError, OverflowError) as error:
        raise RaisesError(f"a target rectangle has no middle: {error}") from None


def _is_nested(value: Any) -> TypeGuard[list[Any]]:
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], list)
        and bool(value[0])
        and isinstance(value[0][0], list)
    )


def _corners(value: Any) -> list[Any] | None:
    if not isinstance(value, list) or len(value) < 2:
        return None
    first, second = value[0], value[1]
    if isinstance(first, list) and isinstance(second, list):
        return [first, second] if len(first) == 2 and len(second) == 2 else None
    return [value] if len(value) == 2 else None
