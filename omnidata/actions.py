"""The 13 action primitives of OmniGUI (Table 2), targets, and coordinate spaces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

Pair = tuple[float, float]
"""A place as x and y, in whatever unit is said beside it."""

Space = Literal["px", "rel", "norm1000"]
Screen = tuple[int, int]
"""Width and height of a screenshot in pixels."""


class Primitive(IntEnum):
    """The action primitives of OmniGUI with their numbers (paper, Table 2).

    The numbers mean this in OmniGUI only: Android in the Wild and others use the same column name
    with another enum.
    """

    NONE = -1
    TAP = 0
    DOUBLE_TAP = 1
    LONG_PRESS = 2
    SWIPE_UP = 3
    SWIPE_DOWN = 4
    SWIPE_LEFT = 5
    SWIPE_RIGHT = 6
    INPUT = 7
    BACK = 8
    HOME = 9
    TASK_COMPLETE = 10
    TASK_IMPOSSIBLE = 11


POSITIONAL = frozenset({Primitive.TAP, Primitive.DOUBLE_TAP, Primitive.LONG_PRESS})
SWIPES = frozenset(
    {Primitive.SWIPE_UP, Primitive.SWIPE_DOWN, Primitive.SWIPE_LEFT, Primitive.SWIPE_RIGHT}
)


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the screen.

    Attributes:
        x, y: rightwards and downwards from the top left corner, in the unit that `space` names.
        space: "px" (pixels of the screenshot), "rel" ([0, 1]) or "norm1000" ([0, 1000]).
    """

    x: float
    y: float
    space: Space


@dataclass(frozen=True, slots=True)
class Box:
    """A target rectangle, edges included.

    Attributes:
        left, top, right, bottom: edges in the unit that `space` names; left <= right and
            top <= bottom.
        space: "px" (pixels of the screenshot), "rel" ([0, 1]) or "norm1000" ([0, 1000]).
    """

    left: float
    top: float
    right: float
    bottom: float
    space: Space

    @property
    def centre(self) -> Point:
        """The middle of the box, in the space of the box."""
        return Point((self.left + self.right) / 2, (self.top + self.bottom) / 2, self.space)


Region = Point | Box


@dataclass(frozen=True, slots=True)
class Action:
    """One action: what an expert did, or what a model answered.

    Attributes:
        kind: the primitive.
        start: where a positional action or a swipe begins; several regions are alternatives. Empty
            where the primitive has no place, or the source names none.
        end: where a swipe ends; empty where the source names no lift.
        text: what INPUT types; None for every other primitive.
        words: the source's own wording for histories, where it has one.
    """

    kind: Primitive
    start: tuple[Region, ...] = ()
    end: tuple[Region, ...] = ()
    text: str | None = None
    words: str | None = None


def ratio(space: Space, extent: int) -> tuple[float, float]:
    """The factor pair (a, b) with `value * a / b` in pixels along an axis of `extent` pixels.

    A pair instead of a quotient keeps comparisons of integers exact.

    Examples:
        >>> ratio("norm1000", 720)
        (720, 1000)
    """
    if space == "px":
        return 1, 1
    return (extent, 1) if space == "rel" else (extent, 1000)


def centre(region: Region) -> Point:
    """The point itself, or the middle of the box."""
    return region if isinstance(region, Point) else region.centre


def convert(point: Point, space: Space, screen: Screen) -> Point:
    """The same place in another space.

    Args:
        point: any point.
        space: the space to express it in.
        screen: width and height of the screenshot in pixels.

    Examples:
        >>> convert(Point(360, 800, "px"), "norm1000", (720, 1600))
        Point(x=500.0, y=500.0, space='norm1000')
    """
    if point.space == space:
        return point
    values = []
    for value, extent in ((point.x, screen[0]), (point.y, screen[1])):
        a, b = ratio(point.space, extent)
        c, d = ratio(space, extent)
        values.append(value * a * d / (b * c))
    return Point(values[0], values[1], space)


def round_half_up(value: float) -> int:
    """The nearest integer; halves go up, unlike `round`, which sends them to the even neighbour.

    Examples:
        >>> round_half_up(388.5), round(388.5)
        (389, 388)
    """
    return math.floor(value + 0.5)


def _bracketed(region: Region, screen: Screen) -> str:
    point = convert(centre(region), "norm1000", screen)
    return f"[{round_half_up(point.x)}, {round_half_up(point.y)}]"


def history_text(action: Action, screen: Screen) -> str:
    """The wording of a past action in a prompt, version `history-v1`.

    The source's own words win. Coordinates are centres of the first region in [0, 1000], rounded
    half up. A place that the source does not name is left out.

    Args:
        action: the expert's action.
        screen: width and height in pixels of the screenshot the action was made on.

    Examples:
        >>> history_text(Action(Primitive.TAP, (Box(210, 786, 351, 850, "px"),)), (720, 1600))
        'TAP at [390, 511]'
        >>> history_text(Action(Primitive.INPUT, text="hello"), (720, 1600))
        'INPUT text: "hello"'
    """
    if action.words is not None:
        return action.words
    name = action.kind.name
    if action.kind is Primitive.INPUT:
        return f'{name} text: "{action.text or ""}"'
    if action.kind in POSITIONAL and action.start:
        return f"{name} at {_bracketed(action.start[0], screen)}"
    if action.kind in SWIPES and action.start:
        text = f"{name} from {_bracketed(action.start[0], screen)}"
        return f"{text} to {_bracketed(action.end[0], screen)}" if action.end else text
    return name


def _inside(region: Region, screen: Screen, space: Space) -> list[float]:
    """A point of the region: whole numbers where such a point lies inside.

    An edge is taken only where nothing lies between it and the other one: the edge of a region may
    be the edge of the screen, where nobody taps. What lies within a billionth of an edge is one,
    for edges are converted.
    """
    middle = convert(centre(region), space, screen)
    low = high = middle
    if isinstance(region, Box):
        low = convert(Point(region.left, region.top, region.space), space, screen)
        high = convert(Point(region.right, region.bottom, region.space), space, screen)
    values: list[float] = []
    for value, least, most in ((middle.x, low.x, high.x), (middle.y, low.y, high.y)):
        whole = round_half_up(value)
        slack = 1e-9 * abs(whole)
        inside = least + slack < whole < most - slack or least == whole == most
        values.append(whole if inside else value)
    return values


def answer(action: Action, screen: Screen, *, space: Space = "norm1000") -> dict[str, Any]:
    """The action in the form that the unified prompt asks of a model.

    A swipe whose source names no lift ends 30 % of the screen further along its direction.

    Args:
        action: an action with the regions that its primitive needs.
        screen: width and height of the screenshot in pixels.
        space: unit of the coordinates.

    Examples:
        >>> answer(Action(Primitive.TAP, (Box(210, 786, 351, 850, "px"),)), (720, 1600))
        {'action_type': 0, 'coordinate': [390, 511]}
    """
    body: dict[str, Any] = {"action_type": int(action.kind)}
    if action.kind is Primitive.INPUT:
        body["text"] = action.text or ""
    elif action.kind in POSITIONAL and action.start:
        body["coordinate"] = _inside(action.start[0], screen, space)
    elif action.kind in SWIPES and action.start:
        end = action.end or (_along(action.kind, action.start[0], screen),)
        body["start_coordinate"] = _inside(action.start[0], screen, space)
        body["end_coordinate"] = _inside(end[0], screen, space)
    return body


_DIRECTION: Mapping[Primitive, tuple[int, int]] = {
    Primitive.SWIPE_UP: (0, -300),
    Primitive.SWIPE_DOWN: (0, 300),
    Primitive.SWIPE_LEFT: (-300, 0),
    Primitive.SWIPE_RIGHT: (300, 0),
}


def _along(kind: Primitive, start: Region, screen: Screen) -> Point:
    begin = convert(centre(start), "norm1000", screen)
    dx, dy = _DIRECTION[kind]
    return Point(min(1000, max(0, begin.x + dx)), min(1000, max(0, begin.y + dy)), "norm1000")
