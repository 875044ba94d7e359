"""Diagnose a wrong answer: the first thing in which it differs from the step's own action.

A cause is found for every wrong answer while it is scored, so places are compared as plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, get_args

from omnidata.actions import (
    Action,
    Box,
    Direction,
    Pair,
    Point,
    Region,
    Screen,
    Space,
    centre,
    heading,
)
from omnidata.metrics.edit_distance import edit_distance
from omnidata.tasks.coordinates import Scale, in_pixels, scale_of, scale_pair
from omnidata.types import Cause, Diagnosis, Step

REACH: Final = 140.0
"""How far from a target point most evaluators let an answer be, in thousandths of the screen."""
PLACED: Final = frozenset({"tap", "long_press", "move"})
"""Kinds of action that are done at one place."""
_SLACK: Final = 1e-9
"""Largest error of a place by rounding, as a share of it."""
_UNITS: Final[tuple[Space, ...]] = get_args(Space)
_NEAR: Final = 50.0
"""The largest distance of a near miss from its target, in thousandths of the screen."""
_EXACT: Final = 1.0
"""The distance from a target point that rounding explains, in thousandths of the screen."""
_MOST_TEXT: Final = 10_000
"""Characters of a text that are compared."""
_IDLE: Final = frozenset({"none", "wait"})
_BUTTONS: Final = frozenset({"back", "home", "recent", "enter", "keys"})


@cache
def bare_diagnosis(cause: Cause) -> Diagnosis:
    """Return the diagnosis of a cause without reading or distance."""
    return Diagnosis(cause)


def diagnose(
    step: Step,
    wanted: Sequence[Action],
    said: Sequence[Action],
    *,
    receipt: Mapping[str, Any] | None,
    reach: float = REACH,
    same_type: bool = False,
    rules_known: bool = True,
) -> Diagnosis:
    """Return why an answer is wrong that a profile does not count as right.

    Types of action come first, then directions, elements and places, texts and keys. A place
    outside its target is a near miss up to 50 thousandths of the screen from the target's edge, or
    from the reach of a target point; farther away, it may be right in another unit or with its axes
    swapped; else it is another element. Where a place within the reach of a target point is all
    that differs, a profile with unknown rules wants it nearer, and it is a near miss too,
    unless it is exactly there in another unit or with its axes swapped. A text is near where half
    of its characters or more are right (similarity 1 - distance / length of at least 0.5, the
    threshold of ANLS, Biten et al. 2019), case and white space aside.

    Args:
        step: what was asked about.
        wanted: what is right, in order; empty if it is not known as actions.
        said: the answer, its places as the model wrote them; empty where it is no action.
        receipt: of the answer, with the size of the picture as it was sent.
        reach: how far from a target point an answer may be, in thousandths of the screen.
        same_type: whether the profile counts both as one type of action.
        rules_known: whether the reach is the profile's, which then has another rule against what is
            within it.

    Returns:
        The first difference, or `rule` where there is none.
    """
    if not wanted or not said:
        return bare_diagnosis("rule")
    for one, other in zip(wanted, said, strict=False):
        if cause := _type_cause(one, other, same_type=same_type):
            return bare_diagnosis(cause)
    if len(wanted) != len(said):
        return bare_diagnosis("wrong_type")
    pairs = [*zip(wanted, said, strict=True)]
    for one, other in pairs:
        if found := _difference(step, one, other, receipt, reach):
            return found
    if rules_known or reach <= _EXACT:
        return bare_diagnosis("rule")
    if any(target and not own for pair in pairs for target, own in _places(*pair)):
        return bare_diagnosis("rule")
    for one, other in pairs:
        if found := _difference(step, one, other, receipt, _EXACT):
            return bare_diagnosis("near_miss") if found.cause == "wrong_element" else found
    return bare_diagnosis("rule")


def _type_cause(wanted: Action, said: Action, *, same_type: bool) -> Cause | None:
    if wanted.kind == said.kind:
        other = wanted.status and said.status and wanted.status != said.status
        clicks = (wanted.button, wanted.count) != (said.button, said.count)
        return "wrong_type" if other or clicks else None
    if wanted.kind in _IDLE and said.kind in _IDLE:
        return None
    if wanted.kind == "done":
        return "went_on"
    if said.kind == "done":
        return "stopped_early"
    if wanted.kind in _IDLE:
        return "acted_early"
    if said.kind in _IDLE:
        return "waited_too_long"
    are_keys = same_type and wanted.kind in _BUTTONS and said.kind in _BUTTONS
    return "wrong_key" if are_keys else "wrong_type"


def _difference(
    step: Step, wanted: Action, said: Action, receipt: Mapping[str, Any] | None, reach: float
) -> Diagnosis | None:
    if (own_way := way(said)) and (right := way(wanted)) and own_way != right:
        return bare_diagnosis("wrong_direction")
    if wanted.element is not None and said.element not in (None, wanted.element):
        return bare_diagnosis("wrong_element")
    for regions, own in _places(wanted, said):
        if regions and not own and wanted.kind in PLACED:
            return bare_diagnosis("format")
        if found := place_cause(step, regions, own, receipt=receipt, reach=reach):
            return found
    for text, own_text in ((wanted.text, said.text), (wanted.app, said.app)):
        if text is not None and (found := _text_cause(text, own_text)):
            return found
    if wanted.keys != said.keys and _fold(wanted.keys) != _fold(said.keys):
        return bare_diagnosis("wrong_key")
    return None


def _fold(keys: Sequence[str]) -> list[str]:
    return [key.casefold() for key in keys]


def _places(wanted: Action, said: Action) -> list[tuple[tuple[Region, ...], tuple[Region, ...]]]:
    if wanted.kind == "scroll":
        return []
    if wanted.kind not in ("swipe", "drag"):  # where a tap's finger is lifted is no second target
        return [(wanted.start, said.start)]
    return [(wanted.start, said.start), (wanted.end, said.end)]


def way(action: Action) -> Direction | None:
    """Return the direction of a finger or wheel; None if unknown."""
    if action.direction or action.kind != "swipe" or not (action.start and action.end):
        return action.direction
    start, end = centre(action.start[0]), centre(action.end[0])
    return heading((start.x, start.y), (end.x, end.y))


def place_cause(
    step: Step,
    wanted: Sequence[Region],
    said: Sequence[Region],
    *,
    receipt: Mapping[str, Any] | None,
    reach: float = REACH,
) -> Diagnosis | None:
    """Return why a place is wrong; None if it is right, missing, or cannot be compared.

    Args:
        step: what was asked about.
        wanted: the alternatives that are right.
        said: the place of the answer, as the model wrote it.
        receipt: of the answer.
        reach: how far from a target point an answer may be, in thousandths of the screen.
    """
    if not wanted or not said:
        return None
    screen, own, pixels = step.screen, centre(said[0]), True
    if min(screen) < 1:  # shares can be compared, pixels cannot
        if any(region.space == "px" for region in (*wanted, *said)):
            return None
        screen, pixels = (1000, 1000), False
    regions = [in_pixels(region, screen) for region in wanted]
    scales = _scales(screen)
    if pixels:
        scales = {**scales, "px": scale_of("px", screen, receipt) if receipt else _UNSCALED}
    pair = scale_pair(own.x, own.y, scales[own.space])
    off = [off_by(*pair, region) for region in regions] if pair else []
    away = _outside(off, regions, screen, reach)
    if away <= 0:
        return None
    if away > _NEAR and (found := _other_reading(own, scales, regions, screen, reach)):
        return found
    far = _diagonals(off, regions)
    return Diagnosis("near_miss" if away <= _NEAR else "wrong_element", distance=far)


def _other_reading(
    own: Point,
    scales: Mapping[Space, Scale | None],
    regions: Sequence[Region],
    screen: Screen,
    reach: float,
) -> Diagnosis | None:
    """Return the unit or the order of axes in which a place is right; None if there is none.

    Where several are right, it is the nearest one: without swapped axes and in its own unit first.
    """
    if not _may_be_right(own, scales, _bounds(regions, screen, reach)):
        return None
    nearest, found = math.inf, None
    for x, y, order in ((own.x, own.y, ""), (own.y, own.x, "y before x")):
        for unit in (own.space, *(unit for unit in scales if unit != own.space)):
            if unit == own.space and not order:
                continue  # as it was read, it is wrong
            pair = scale_pair(x, y, scales[unit])
            if pair and (near := _inside(*pair, regions, screen, reach)) < nearest - _SLACK:
                nearest, found = near, (order, unit)
    if found is None:
        return None
    order, unit = found
    if unit == own.space:
        return Diagnosis("axes_swapped", order)
    return Diagnosis("other_unit", f"{unit}, {order}" if order else unit)


_UNSCALED: Final[Scale] = (1, 1), (1, 1)


@lru_cache(maxsize=256)
def _scales(screen: Screen) -> Mapping[Space, Scale | None]:
    """The scales of all units; none of pixels, which are those of the picture that was sent."""
    return {unit: None if unit == "px" else scale_of(unit, screen, None) for unit in _UNITS}


_Bounds = tuple[float, float, float, float]


def _bounds(regions: Sequence[Region], screen: Screen, reach: float) -> _Bounds:
    """Left, top, right and bottom of a box that holds all that is right, and a pixel more."""
    wide, tall = reach * screen[0] / 1000, reach * screen[1] / 1000
    edges: list[_Bounds] = [
        (one.left, one.top, one.right, one.bottom)
        if isinstance(one, Box)
        else (one.x - wide, one.y - tall, one.x + wide, one.y + tall)
        for one in regions
    ]
    if len(edges) > 1:
        lefts, tops, rights, bottoms = zip(*edges, strict=True)
        edges = [(min(lefts), min(tops), max(rights), max(bottoms))]
    left, top, right, bottom = edges[0]
    return left - 1, top - 1, right + 1, bottom + 1


def _may_be_right(own: Point, scales: Mapping[Space, Scale | None], bounds: _Bounds) -> bool:
    """Return whether a place may be right in any unit or order; most are in none."""
    left, top, right, bottom = bounds
    x, y = own.x, own.y
    try:
        for scale in scales.values():
            if scale:
                (a, b), (c, d) = scale
                if left <= x * a / b <= right and top <= y * c / d <= bottom:
                    return True
                if left <= y * a / b <= right and top <= x * c / d <= bottom:
                    return True
    except OverflowError:  # of a whole number beyond all floats
        return True
    return False


def _outside(off: Sequence[Pair], regions: Sequence[Region], screen: Screen, reach: float) -> float:
    nearest = math.inf
    for (x, y), region in zip(off, regions, strict=False):  # of a place on no screen there are none
        away = math.hypot(1000 * x / screen[0], 1000 * y / screen[1])
        if isinstance(region, Point):
            away -= reach
        if away < nearest:
            nearest = away
    return nearest


def _inside(x: float, y: float, regions: Sequence[Region], screen: Screen, reach: float) -> float:
    """Thousandths outside the target if the place is right (0 in a box), else infinity."""
    nearest = math.inf
    wide, tall = _SLACK * max(1.0, abs(x)), _SLACK * max(1.0, abs(y))
    for region in regions:
        if isinstance(region, Point):
            off = 1000 * (x - region.x) / screen[0], 1000 * (y - region.y) / screen[1]
            if (away := math.hypot(*off)) <= reach and away < nearest:
                nearest = away
        elif (
            region.left - wide <= x <= region.right + wide
            and region.top - tall <= y <= region.bottom + tall
        ):
            return 0.0
    return nearest


def _diagonals(off: Sequence[Pair], regions: Sequence[Region]) -> float | None:
    nearest, diagonal = math.inf, 1.0
    for (x, y), box in zip(off, regions, strict=False):
        if isinstance(box, Box):
            size = math.hypot(box.right - box.left, box.bottom - box.top)
            if size and (away := math.hypot(x, y), size) < (nearest, diagonal):
                nearest, diagonal = away, size
    return round(nearest / diagonal, 3) if math.isfinite(nearest) else None


def _text_cause(wanted: str, said: str | None) -> Diagnosis | None:
    if said is None:
        return bare_diagnosis("format")
    if said == wanted:
        return None
    one, other = (" ".join(text.casefold().split())[:_MOST_TEXT] for text in (wanted, said))
    edits = edit_distance(one, other)
    near = 2 * edits <= max(len(one), len(other))
    return Diagnosis("near_text" if near else "wrong_text", distance=edits)


def off_by(x: float, y: float, region: Region) -> tuple[float, float]:
    """Return how far a place is right of and below a region; negative: left of and above."""
    if isinstance(region, Point):
        return x - region.x, y - region.y
    return _beyond(region.left, x, region.right), _beyond(region.top, y, region.bottom)


def _beyond(low: float, value: float, high: float) -> float:
    if low <= value <= high:
        return 0.0
    off = (value - low if value < low else 0.0) + (value - high if value > high else 0.0)
    return off if abs(off) > _SLACK * max(1.0, abs(value)) else 0.0
