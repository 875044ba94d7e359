"""The exact-match rules of the OmniGUI paper (section 3.4), with its open points decided.

Two readings are ours: a swipe's "associated parameters" are a start in the touch target and, if the
data have a lift target, an end in it; and a target that is a point instead of a box counts within
140 units of the 0-1000 scale, the released evaluator's radius (an *extension*, counted separately).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from omnidata.actions import NUMBERS, Action, Box, Point, Region, Screen, Space, convert, ratio
from omnidata.jsontext import decode, whole_number
from omnidata.loaders.episode_tree import DEPENDENCIES, DIMENSIONS
from omnidata.loaders.steps import as_steps
from omnidata.metrics.intervals import Ints, Mask
from omnidata.tasks.benchmark import ParsedAnswer, Rule, Values
from omnidata.tasks.totals import VALUES, EpisodeTotals, Runs, number_keys
from omnidata.types import Step, Verdict, VerdictColumns

POINT_RADIUS = 140.0
_Ratios = tuple[float, float, float, float]


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


def judge_paper(target: Action, screen: Screen, said: Action | None) -> Match:
    """Compare an answer with the expert's action.

    Args:
        target: the expert's action, with the regions that its primitive needs.
        screen: width and height of the screenshot in pixels.
        said: the action of the answer, its places as points; None if it could not be read.

    Examples:
        >>> tap, size = Action("tap", (Box(210, 786, 351, 850, "px"),)), (720, 1600)
        >>> judge_paper(tap, size, Action("tap", (Point(292, 492, "norm1000"),)))
        Match(type=True, exact=True, extension=False)
        >>> judge_paper(tap, size, Action("tap", (Point(291, 492, "norm1000"),)))
        Match(type=True, exact=False, extension=False)
    """
    placed = target.kind in _PLACED
    extension = placed and (_has_point(target.start) or _has_point(target.end))
    if said is None or said.kind != target.kind or said.label != target.label:
        return _NEITHER[extension]
    if target.kind == "type":
        wanted, given = target.text, said.text
        if wanted is None or given is None:
            return _TYPE_ONLY[0]
        same = wanted == given or _nfc(wanted) == _nfc(given)
        return _BOTH[0] if same else _TYPE_ONLY[0]
    if not placed:
        return _BOTH[0]
    exact = _hits(target.start, said.start, screen)
    if exact and target.kind == "swipe" and target.end:
        exact = _hits(target.end, said.end, screen)
    return _BOTH[extension] if exact else _TYPE_ONLY[extension]


_PLACED = frozenset({"tap", "long_press", "swipe"})


def _has_point(regions: Sequence[Region]) -> bool:
    return Point in map(type, regions)


_nfc = partial(unicodedata.normalize, "NFC")


def _hits(regions: Sequence[Region], said: Sequence[Region], screen: Screen) -> bool:
    if not said:
        return False
    (point,) = said
    assert isinstance(point, Point)
    for region in regions:
        if isinstance(region, Box):
            if _in_box(region, point, screen):
                return True
        elif _near(region, point, screen):
            return True
    return False


def _in_box(box: Box, point: Point, screen: Screen) -> bool:
    """Between different units, a tolerance of 1e-9 makes up for rounding."""
    if point.space == box.space:
        return box.left <= point.x <= box.right and box.top <= point.y <= box.bottom
    across, down = _ratios(point.space, box.space, screen)
    return _between(box.left, point.x, box.right, across) and _between(
        box.top, point.y, box.bottom, down
    )


@lru_cache(maxsize=256)
def _ratios(space: Space, other: Space, screen: Screen) -> tuple[_Ratios, _Ratios]:
    across, down = ((*ratio(space, extent), *ratio(other, extent)) for extent in screen)
    return across, down


def _between(low: float, value: float, high: float, ratios: _Ratios) -> bool:
    a, b, c, d = ratios
    least, given, most = low * b * c, value * a * d, high * b * c
    if least <= given <= most:
        return True
    slack = 1e-9 * max(abs(least), abs(most))
    return least - slack <= given <= most + slack


def _near(target: Point, point: Point, screen: Screen) -> bool:
    wanted = convert(target, "norm1000", screen)
    try:
        given = convert(point, "norm1000", screen)
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


def judge_release(row: Mapping[str, Any], said: Action | None) -> tuple[bool, bool]:
    """Return type match and exact match of one step.

    Args:
        row: the untouched row; targets in pixels.
        said: the action of the answer, its places as points in pixels or thousandths; None if it
            could not be read.

    Raises:
        RaisesError: the released code raises an error.

    Examples:
        >>> row = {"result_action_type": 0, "result_touch_xy": "[[210,786],[351,850]]",
        ...        "image_width": 720, "image_height": 1600}
        >>> judge_release(row, Action("tap", (Point(291, 491, "norm1000"),)))
        (True, True)
    """
    screen = (row.get("image_width") or 1080, row.get("image_height") or 2400)
    touch = _target(row, "touch", nested=False)
    kind = row.get("result_action_type")
    if said is None or kind is None or NUMBERS[said.label] != kind:
        return False, False
    if kind in (0, 2):
        return True, touch is not None and _hits_release(touch, said.start, screen)
    if said.kind == "swipe":
        touch, lift = (_target(row, name, nested=True) for name in ("touch", "lift"))
        if touch is None:
            return True, False
        exact = _hits_release(touch, said.start, screen)
        if lift is not None and said.start and said.end:
            # The released code reads the end in any case, and may raise.
            exact = _hits_release(lift, said.end, screen) and exact
        return True, exact
    if said.kind == "type":
        return True, _same_text_release(row.get("result_action_text"), said.text)
    return True, kind >= 8


def _same_text_release(target: Any, text: str | None) -> bool:
    if not target or not text:
        return False
    if not isinstance(target, str):
        raise RaisesError(f"result_action_text is a {type(target).__name__}")
    wanted, given = target.lower().strip(), text.lower().strip()
    return given in wanted or wanted in given


def _hits_release(corners: Corners, places: Sequence[Region], screen: tuple[Any, Any]) -> bool:
    """A point target is hit within 140 units."""
    if not places:
        return False
    (said,) = places
    assert isinstance(said, Point)
    point: Whole = int(said.x), int(said.y)
    if said.space == "px":
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
    if nested and isinstance(value, list) and value:
        first = value[0]
        if isinstance(first, list) and first and isinstance(first[0], list):
            value = first  # as an end of a swipe, the first of nested rectangles is read
    corners = _corners(value)
    if corners is None:
        return None
    if len(corners) == 2:
        (x1, y1), (x2, y2) = corners
        try:  # the released code computes the middle; several rectangles make it fail
            _ = (x1 + x2) / 2, (y1 + y2) / 2
        except (TypeError, OverflowError) as error:
            raise RaisesError(f"a target rectangle has no middle: {error}") from None
    return [[y, x] for x, y in corners] if swapped else corners


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


# The two profiles, and how their verdicts add up.

_WRONG: Values = (False, False, False, False)


class Totals(EpisodeTotals):
    """TM, EM, SR and GP by the labels of steps; counts steps that an extension judged."""

    values = (*VALUES, "extension")
    by: Mapping[str, Sequence[str]] = {
        "dimension": DIMENSIONS,
        "dependency": DEPENDENCIES,
        "app": (),
        "language": (),
    }

    def _stated_length(self, value: Any) -> int | None:
        return whole_number(value)

    def _more_counts(self, rows: VerdictColumns, judged: Mask) -> dict[str, int]:
        extended = rows.values["extension"]
        counted = judged & ~np.isnan(extended)
        return {"judged_by_extension": int(extended.sum(where=counted))}


class ReleaseTotals(Totals):
    """As the released evaluator adds up."""

    goal_progress: Literal["GP_ratio", "GP_prefix"] = "GP_prefix"
    of_nothing = 0.0

    def _episodes(self, steps: Sequence[Step], runs: Runs) -> Ints:
        tags = (runs.tags[number] for number in runs.number.tolist())
        rows = as_steps(steps).sources("app", "subset", "episode_id")
        return number_keys(
            f"{row.get('subset', 'unknown' if 'app' in row else own['app'])}"
            f"-{row.get('episode_id', 'unknown')}"
            for row, own in zip(rows, tags, strict=True)
        )


class PaperRule(Rule[Action]):
    """The rules of the paper; a step without a usable target is left out."""

    name = "omnigui-paper"
    source = "OmniGUI, section 3.4"
    totals = Totals()

    def judge(self, step: Step, parsed: ParsedAnswer[Action] | None) -> Values:
        """Compare the answer with the step's action."""
        is_exact = parsed is not None and parsed.is_exact
        if step.action is None:
            return None, None, is_exact, None
        match = judge_paper(step.action, step.screen, parsed.value if parsed else None)
        return match.type, match.exact, is_exact, match.extension


class ReleaseRule(Rule[Action]):
    """The released evaluator, verdict for verdict; its errors count as unreadable answers."""

    name = "omnigui-release"
    source = "OmniGUI's released evaluator"
    totals = ReleaseTotals()

    def judge(self, step: Step, parsed: ParsedAnswer[Action] | None) -> Values | Verdict:
        """Compare the answer with the untouched row."""
        try:
            match = judge_release(step.source, parsed.value if parsed else None)
        except RaisesError as error:
            return Verdict("unparsed", _WRONG, None, str(error)) if parsed else _WRONG
        return *match, parsed is not None and parsed.is_exact, False
