"""The exact-match rules of the OmniGUI paper (section 3.4), with its open points decided.

Two readings are ours: a swipe's "associated parameters" are a start in the touch target and, if the
data have a lift target, an end in it; and a target that is a point instead of a box counts within
140 units of the 0-1000 scale, the released evaluator's radius (an *extension*, counted separately).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeGuard

import msgspec

from omnidata.actions import (
    NUMBERS,
    Action,
    Box,
    Point,
    Region,
    Screen,
    Space,
    convert,
    ratio,
)
from omnidata.jsontext import decode
from omnidata.tasks.coordinates import resizing
from omnidata.tasks.json_answers import Answer, Pair

PredictedSpace = Space | Literal["auto"]
POINT_RADIUS = 140.0


def on_screen(
    answer: Answer,
    space: PredictedSpace,
    receipt: Mapping[str, Any] | None,
    screen: Screen,
    *,
    where: str,
) -> Answer:
    """Return an answer with its pixels, if it has any, in pixels of the screen.

    Args:
        answer: as the model wrote it.
        space: unit of its coordinates; "auto": pixels if one exceeds 1000.
        receipt: of the prediction.
        screen: width and height in pixels; (0, 0) if unknown.
        where: the step, for messages.

    Raises:
        PredictionError: as `resizing`.
    """
    if space in ("norm1000", "rel") or not receipt:
        return answer
    found = resizing(receipt, screen, where=where)
    if found is None:
        return answer

    def back(pair: Pair | None) -> Pair | None:
        pixels = pair is not None and (space == "px" or max(pair) > 1000)
        return found.to_screen(pair) if pair is not None and pixels else pair

    return msgspec.structs.replace(answer, start=back(answer.start), end=back(answer.end))


class Match(NamedTuple):
    """The verdict on one step.

    Attributes:
        type: whether the primitive is right.
        exact: whether its parameters are right too.
        extension: whether a rule that is not the paper's judged the step.
    """

    type: bool
    exact: bool
    extension: bool


# Made once: making a tuple with names costs as much as a judgement. Indexed by `extension`.
_NEITHER, _TYPE_ONLY, _BOTH = (
    (Match(hit, exact, False), Match(hit, exact, True))
    for hit, exact in ((False, False), (True, False), (True, True))
)


def judge_paper(
    target: Action, screen: Screen, answer: Answer | None, space: PredictedSpace
) -> Match:
    """Compare an answer with the expert's action.

    Args:
        target: the expert's action, with the regions that its primitive needs.
        screen: width and height of the screenshot in pixels.
        answer: the action read from the output; None if unreadable.
        space: unit of the predicted coordinates; "auto": pixels if one exceeds 1000.

    Examples:
        >>> box = Box(210, 786, 351, 850, "px")
        >>> tap, size = Action("tap", (box,)), (720, 1600)
        >>> judge_paper(tap, size, Answer(0, (292, 492)), "norm1000")
        Match(type=True, exact=True, extension=False)
        >>> judge_paper(tap, size, Answer(0, (291, 492)), "norm1000")
        Match(type=True, exact=False, extension=False)
    """
    kind = NUMBERS[target.label]
    placed = 0 <= kind <= 6
    extension = placed and (_has_point(target.start) or _has_point(target.end))
    if answer is None or answer.kind != kind:
        return _NEITHER[extension]
    if kind == 7:
        return _BOTH[0] if _same_text(target.text, answer.text) else _TYPE_ONLY[0]
    if not placed:
        return _BOTH[0]
    exact = _hits(target.start, answer.start, screen, space)
    if exact and kind >= 3 and target.end:
        exact = _hits(target.end, answer.end, screen, space)
    return _BOTH[extension] if exact else _TYPE_ONLY[extension]


def _has_point(regions: Sequence[Region]) -> bool:
    return bool(regions) and (type(regions[0]) is Point or Point in map(type, regions[1:]))


def _same_text(wanted: str | None, given: str | None) -> bool:
    if wanted is None or given is None:
        return False
    return wanted == given or unicodedata.normalize("NFC", wanted) == unicodedata.normalize(
        "NFC", given
    )


def _hits(
    regions: Sequence[Region], pair: Pair | None, screen: Screen, space: PredictedSpace
) -> bool:
    if pair is None:
        return False
    if space == "auto":
        space = "px" if max(pair) > 1000 else "norm1000"
    for region in regions:
        if isinstance(region, Box):
            if _in_box(region, pair, screen, space):
                return True
        elif _near(region, pair, screen, space):
            return True
    return False


def _in_box(box: Box, pair: Pair, screen: Screen, space: Space) -> bool:
    """Between different units, a tolerance of 1e-9 makes up for rounding."""
    if space == box.space:
        return box.left <= pair[0] <= box.right and box.top <= pair[1] <= box.bottom
    for value, low, high, extent in (
        (pair[0], box.left, box.right, screen[0]),
        (pair[1], box.top, box.bottom, screen[1]),
    ):
        a, b = ratio(space, extent)
        c, d = ratio(box.space, extent)
        least, most = low * b * c, high * b * c
        slack = 1e-9 * max(abs(least), abs(most))
        if not least - slack <= value * a * d <= most + slack:
            return False
    return True


def _near(target: Point, pair: Pair, screen: Screen, space: Space) -> bool:
    wanted = convert(target, "norm1000", screen)
    try:
        given = convert(Point(pair[0], pair[1], space), "norm1000", screen)
        return math.dist((wanted.x, wanted.y), (given.x, given.y)) <= POINT_RADIUS
    except OverflowError:  # whole numbers beyond any float, which a function call may hold
        return False


# The exact-match rules of the released OmniGUI evaluator, verdict for verdict.
#
# They differ from the paper's section 3.4 in many places, listed in `docs/benchmarks/omnigui.md`.
# Among them: NONE and DOUBLE_TAP never match exactly, INPUT is a substring test either way, targets
# and predictions are truncated on the 0-1000 scale, a point target counts within 140 units, and a
# swipe without an end or without a lift target is judged by its start alone.

RELEASE_POINT_RADIUS = 140
_SQRT_LIMIT = 1 << 64

Whole = tuple[int, int]
Corners = list[Any]
"""One corner is a point, two are a rectangle; as the row has them, in pixels."""


class RaisesError(Exception):
    """The released evaluator would raise an error on this step and end the evaluation."""


def judge_release(
    row: Mapping[str, Any], answer: Answer | None, space: PredictedSpace
) -> tuple[bool, bool]:
    """Return type match and exact match of one step.

    Args:
        row: the untouched row; targets in pixels.
        answer: the action read from the output; None if unreadable.
        space: unit of the predicted coordinates; "auto": pixels if one exceeds 1000. The released
            code has no "rel" and would read it as "norm1000".

    Raises:
        RaisesError: the released code raises an error.

    Examples:
        >>> row = {"result_action_type": 0, "result_touch_xy": "[[210,786],[351,850]]",
        ...        "image_width": 720, "image_height": 1600}
        >>> judge_release(row, Answer(0, (291, 491)), "norm1000")
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
        return True, _hits_release(touch, answer.start, screen, space)
    if 3 <= answer.kind <= 6:
        return True, _swipe(row, answer, screen, space)
    if answer.kind == 7:
        return True, _same_text_release(row.get("result_action_text"), answer.text)
    return True, answer.kind >= 8


def _swipe(
    row: Mapping[str, Any], answer: Answer, screen: tuple[Any, Any], space: PredictedSpace
) -> bool:
    touch, lift = (_target(row, name, nested=True) for name in ("touch", "lift"))
    if touch is None or answer.start is None:
        return False
    starts = _hits_release(touch, answer.start, screen, space)
    if lift is None or answer.end is None:
        return starts
    ends = _hits_release(lift, answer.end, screen, space)
    return starts and ends


def _same_text_release(target: Any, text: str | None) -> bool:
    if not target or not text:
        return False
    if not isinstance(target, str):
        raise RaisesError(f"result_action_text is a {type(target).__name__}")
    wanted, given = target.lower().strip(), text.lower().strip()
    return given in wanted or wanted in given


def _hits_release(
    corners: Corners, pair: Pair, screen: tuple[Any, Any], space: PredictedSpace
) -> bool:
    """A point target is hit within 140 units."""
    point: Whole = int(pair[0]), int(pair[1])
    if space == "px" or (space == "auto" and max(point) > 1000):
        point = _to_scale(point, screen)
    if point == (-1, -1):  # the release's sign for no point, before it looks at the target
        return False
    target = [_to_scale(corner, screen) for corner in corners]
    (x1, y1), (x2, y2) = target[0], target[-1]
    squared = (point[0] - (x1 + x2) // 2) ** 2 + (point[1] - (y1 + y2) // 2) ** 2
    if squared >= _SQRT_LIMIT:
        raise RaisesError("a coordinate is beyond what NumPy's square root takes")
    if len(target) == 1:
        return squared <= RELEASE_POINT_RADIUS**2
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
    """The released code computes the middle of a rectangle; several rectangles make it fail."""
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
    if not isinstance(first, list):
        return [value] if len(value) == 2 else None
    if len(first) != 2:
        return None
    if not isinstance(second, list | str | dict):
        raise RaisesError("the second corner of a target has no length")
    return [first, second] if len(second) == 2 else None
