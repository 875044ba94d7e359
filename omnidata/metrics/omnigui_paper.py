"""The exact-match rules of the OmniGUI paper (section 3.4), with its open points decided.

Two readings are ours: a swipe's "associated parameters" are a start in the touch target and, where
the data has a lift target, an end in that; and a target given as a point instead of a box counts
within 140 units of the 0-1000 scale, the released evaluator's radius (an *extension*, counted
apart).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple

from omnidata.actions import (
    Action,
    Box,
    Point,
    Region,
    Screen,
    Space,
    convert,
    ratio,
)
from omnidata.metrics.omnigui_answer import Answer, Pair

PredictedSpace = Space | Literal["auto"]
POINT_RADIUS = 140.0


class Match(NamedTuple):
    """The verdict on one step.

    Attributes:
        type: the primitive is right.
        exact: and so are its parameters.
        extension: the step was judged by a rule that the paper does not have.
    """

    type: bool
    exact: bool
    extension: bool


# Made once: making a tuple with names costs as much as a judgement. Indexed by `extension`.
_NEITHER, _TYPE_ONLY, _BOTH = (
    (Match(hit, exact, False), Match(hit, exact, True))
    for hit, exact in ((False, False), (True, False), (True, True))
)


def judge(target: Action, screen: Screen, answer: Answer | None, space: PredictedSpace) -> Match:
    """Hold one answer against the expert's action.

    Args:
        target: the expert's action, with the regions that its primitive needs.
        screen: width and height of the screenshot in pixels.
        answer: the action read from the output; None = nothing could be read.
        space: unit of the predicted coordinates; "auto": pixels where one exceeds 1000.

    Examples:
        >>> from omnidata.actions import Primitive
        >>> box = Box(210, 786, 351, 850, "px")
        >>> judge(Action(Primitive.TAP, (box,)), (720, 1600), Answer(0, (292, 492)), "norm1000")
        Match(type=True, exact=True, extension=False)
        >>> judge(Action(Primitive.TAP, (box,)), (720, 1600), Answer(0, (291, 492)), "norm1000")
        Match(type=True, exact=False, extension=False)
    """
    kind = int(target.kind)  # an enum's hash and comparisons are slow
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
    """Whether the point lies in the box, edges included.

    Between two units, a billionth makes up for rounding: a point that was converted from an edge
    lies on that edge. Whole numbers of screens that exist are a hundred times further apart.
    """
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
