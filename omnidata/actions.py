"""Actions of agents on phones and desktops: one type for all benchmarks, without loss.

A benchmark's own numbers, names and wording are read and written in its folder. The values are
frozen structs: `msgspec.structs.replace(action, text="no")` returns a changed copy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Literal, get_args

import msgspec

Pair = tuple[float, float]
"""A place as x and y, in the unit that its context states."""

Space = Literal["px", "rel", "norm1000", "norm999"]
Screen = tuple[int, int]
"""Width and height of a screenshot in pixels."""


class Point(msgspec.Struct, frozen=True, gc=False):
    """A place on the screen.

    Attributes:
        x, y: rightwards and downwards from the top left corner, in the unit that `space` names.
        space: "px" (pixels of the screenshot), "rel" ([0, 1]), "norm1000" ([0, 1000]) or "norm999"
            ([0, 999]).
    """

    x: float
    y: float
    space: Space


class Box(msgspec.Struct, frozen=True, gc=False):
    """A target rectangle, edges included.

    Attributes:
        left, top, right, bottom: edges in the unit that `space` names; left <= right and
            top <= bottom.
        space: "px" (pixels of the screenshot), "rel" ([0, 1]), "norm1000" ([0, 1000]) or "norm999"
            ([0, 999]).
    """

    left: float
    top: float
    right: float
    bottom: float
    space: Space

    @property
    def centre(self) -> Point:
        """The middle of the box, in its space."""
        x, y = self.left + self.right, self.top + self.bottom
        try:
            return Point(x / 2, y / 2, self.space)
        except OverflowError:  # whole numbers beyond all floats
            return Point(x // 2, y // 2, self.space)


Region = Point | Box


Kind = Literal[
    "none", "tap", "long_press", "swipe", "drag", "scroll", "move", "type", "keys", "hotkey",
    "hold", "release", "back", "home", "recent", "enter", "open_app", "open_url", "select", "wait",
    "look", "done", "ask",
]  # fmt: skip
KINDS: Final = frozenset[str](get_args(Kind))
Direction = Literal["up", "down", "left", "right"]
OPPOSITE: Final[Mapping[Direction, Direction]] = {
    "up": "down",
    "down": "up",
    "left": "right",
    "right": "left",
}
Sense = Literal["finger", "wheel", "content"]
"""Whose direction is stated: that of the finger, the wheel or the content. The last two agree
("down" shows what is further down); the finger moves the other way."""
AmountUnit = Literal["notch", "px", "norm1000", "page"]
Button = Literal["left", "right", "middle", "x"]
Status = Literal["success", "failure"]


class Action(msgspec.Struct, frozen=True, gc=False):
    """One action, of an expert or of a model's answer.

    Attributes:
        kind: the kind of action. A phone's tap is a desktop's click. "swipe" is with a finger,
            "scroll" with the wheel, "drag" with the mouse and a button down. "keys" are pressed one
            after the other, "hotkey" all at once. "hold" and "release" are of keys, or of a button
            if there are no keys. "select" picks `text` from a list. "look" asks for a picture of
            the screen or of a part of it. "done" ends the episode, "ask" calls the user, "none"
            does nothing, "wait" waits.
        start: the place of the action, or its start; several regions are alternatives. Empty if the
            kind has no place or the source states none: a mouse then acts at the pointer.
        end: where a swipe or a drag ends, or where the finger of a tap was lifted; empty if the
            source does not state it.
        text: the typed text, or the text at the end; None for other kinds.
        words: the source's own spelling, if it has one; histories show it.
        direction: of the finger for a swipe, of the wheel for a scroll, unless `sense` is set; None
            if only the two places show it, or nothing does.
        sense: whose direction it is; None for the default of the kind, see `direction`.
        amount: how many notches the wheel turns, in `amount_unit` if that is set; None if the
            source does not state it.
        amount_unit: the unit of the amount.
        button: of the mouse.
        count: number of taps or clicks, 1 to 3.
        keys: names of keys, as the source has them.
        held: keys that are down during the action, as with ctrl and a click.
        path: places that a drag passes, between `start` and `end`.
        app: the app that "open_app" opens.
        url: the address that "open_url" opens.
        submit: whether the enter key follows the text; None if the source does not state it.
        clear: whether the field is emptied first; None likewise.
        seconds: duration of a wait, a press or a held key; None likewise.
        status: the reported status of "done"; None likewise.
        element: number of the target element, from 0, if the source counts elements.
        then: further actions of the same step.

    Raises:
        ValueError: the kind is unknown.
        TypeError: the places are not a tuple of regions.

    Examples:
        >>> Action("tap", (Point(10, 20, "px"),), count=2).label
        'DOUBLE_TAP'
    """

    kind: Kind
    start: tuple[Region, ...] = ()
    end: tuple[Region, ...] = ()
    text: str | None = None
    words: str | None = None
    direction: Direction | None = None
    sense: Sense | None = None
    amount: float | None = None
    amount_unit: AmountUnit = "notch"
    button: Button = "left"
    count: int = 1
    keys: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    path: tuple[Point, ...] = ()
    app: str | None = None
    url: str | None = None
    submit: bool | None = None
    clear: bool | None = None
    seconds: float | None = None
    status: Status | None = None
    element: int | None = None
    then: tuple[Action, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no kind of action {self.kind!r}; {_HINT}")
        if not (isinstance(self.start, tuple) and isinstance(self.end, tuple)):
            places = self.end if isinstance(self.start, tuple) else self.start
            raise TypeError(f"the places of an action must be a tuple of regions, not {places!r}")

    @property
    def label(self) -> str:
        """One word for the action, shared by many steps.

        OmniGUI's primitives keep their names (paper, Table 2).

        Examples:
            >>> Action("swipe", direction="up").label, Action("done", status="failure").label
            ('SWIPE_UP', 'TASK_IMPOSSIBLE')
            >>> Action("tap", button="right").label, Action("keys", keys=("enter",)).label
            ('RIGHT_CLICK', 'KEYS')
        """
        kind = self.kind
        if kind == "tap":
            if self.button != "left":
                return f"{self.button.upper()}_CLICK"
            return _TAPS.get(self.count, "TAP")
        if kind in ("swipe", "scroll"):
            return _DIRECTED[kind, self.direction]
        if kind == "done":
            return _ENDS[self.status]
        return "INPUT" if kind == "type" else kind.upper()

    @classmethod
    def of(
        cls,
        label: str,
        start: tuple[Region, ...] = (),
        end: tuple[Region, ...] = (),
        *,
        text: str | None = None,
        words: str | None = None,
    ) -> Action:
        """Return the action of a label.

        Raises:
            ValueError: no action has it.

        Examples:
            >>> Action.of("SWIPE_UP").direction, Action.of("DOUBLE_TAP").count
            ('up', 2)
        """
        bare = _OF_LABEL.get(label)
        if bare is None:
            raise ValueError(f"no action has the label {label!r:.80}")
        if not start and not end and text is words is None:
            return bare
        return msgspec.structs.replace(bare, start=start, end=end, text=text, words=words)


_HINT: Final = f"the kinds are {', '.join(get_args(Kind))}"
_TAPS: Final = {2: "DOUBLE_TAP", 3: "TRIPLE_TAP"}
_DIRECTED: Final[Mapping[tuple[Kind, Direction | None], str]] = {
    (kind, way): f"{kind}_{way}".upper() if way else kind.upper()
    for kind in ("swipe", "scroll")
    for way in (*get_args(Direction), None)
}
_ENDS: Final[Mapping[Status | None, str]] = {
    "success": "TASK_COMPLETE",
    "failure": "TASK_IMPOSSIBLE",
    None: "DONE",
}
_OF_LABEL: Final[Mapping[str, Action]] = {
    action.label: action
    for action in (
        Action("none"),
        *(Action("tap", count=count) for count in (1, 2, 3)),
        Action("long_press"),
        *(Action("swipe", direction=way) for way in get_args(Direction)),
        Action("type"),
        Action("back"),
        Action("home"),
        *(Action("done", status=status) for status in (*get_args(Status), None)),
        *(Action("tap", button=button) for button in get_args(Button)[1:]),
        Action("swipe"),
        *(Action("scroll", direction=way) for way in (*get_args(Direction), None)),
        *(Action(kind) for kind in get_args(Kind) if kind not in ("none", "tap", "done")),
    )
}
NUMBERS: Final[Mapping[str, int]] = {
    "NONE": -1, "TAP": 0, "DOUBLE_TAP": 1, "LONG_PRESS": 2, "SWIPE_UP": 3, "SWIPE_DOWN": 4,
    "SWIPE_LEFT": 5, "SWIPE_RIGHT": 6, "INPUT": 7, "BACK": 8, "HOME": 9, "TASK_COMPLETE": 10,
    "TASK_IMPOSSIBLE": 11,
}  # fmt: skip
"""The labels of OmniGUI's primitives and their numbers (paper, Table 2), as in episode trees and in
the column `number` of Parquet repositories."""


def ratio(space: Space, extent: int) -> tuple[float, float]:
    """Return the pair (a, b) with `value * a / b` in pixels along an axis of `extent` pixels.

    A pair instead of a quotient keeps comparisons of integers exact.

    Examples:
        >>> ratio("norm1000", 720)
        (720, 1000)
    """
    if space == "px":
        return 1, 1
    return extent, _EDGES[space]


_EDGES: Final[Mapping[Space, int]] = {"rel": 1, "norm1000": 1000, "norm999": 999}


def centre(region: Region) -> Point:
    """Return the point itself, or the middle of the box."""
    return region if isinstance(region, Point) else region.centre


def convert(point: Point, space: Space, screen: Screen) -> Point:
    """Return the same place in another space.

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


def is_on_screen(region: Region, screen: Screen) -> bool:
    """Return whether a point, or all of a box, lies on the screen, its edges included.

    Examples:
        >>> is_on_screen(Point(1000, 0, "norm1000"), (720, 1600))
        True
        >>> is_on_screen(Box(700, 0, 721, 9, "px"), (720, 1600))
        False
    """
    corners = [region]
    if isinstance(region, Box):
        corners = [
            Point(region.left, region.top, region.space),
            Point(region.right, region.bottom, region.space),
        ]
    pixels = [convert(centre(corner), "px", screen) for corner in corners]
    return all(0 <= one.x <= screen[0] and 0 <= one.y <= screen[1] for one in pixels)


def heading(start: Pair, end: Pair) -> Direction:
    """Return the direction of a finger along its longer axis; vertical if both are equal.

    Examples:
        >>> heading((0.5, 0.5), (0.1, 0.8)), heading((0, 0), (1, 1))
        ('left', 'down')
    """
    x, y = end[0] - start[0], end[1] - start[1]
    if abs(y) >= abs(x):
        return "up" if y < 0 else "down"
    return "left" if x < 0 else "right"


def finger_way(action: Action) -> Direction | None:
    """Return the finger's direction of a swipe or a scroll; None if unknown.

    A swipe without a direction goes from its `start` to its `end`, which have one unit.

    Examples:
        >>> finger_way(Action("scroll", direction="down")), finger_way(Action("swipe"))
        ('up', None)
        >>> finger_way(Action("swipe", direction="down", sense="content"))
        'up'
    """
    if action.direction is None:
        if not action.start or not action.end:
            return None
        ends = centre(action.start[0]), centre(action.end[0])
        return heading(*((point.x, point.y) for point in ends))
    of_finger = action.sense == "finger" or (action.sense is None and action.kind != "scroll")
    return action.direction if of_finger else OPPOSITE[action.direction]


def round_half_up(value: float) -> int:
    """Return the nearest integer; halves go up, unlike `round`, which rounds them to even.

    Examples:
        >>> round_half_up(388.5), round(388.5)
        (389, 388)
    """
    return math.floor(value + 0.5)


def _centre_text(region: Region, screen: Screen) -> str:
    point = convert(centre(region), "norm1000", screen)
    return f"[{round_half_up(point.x)}, {round_half_up(point.y)}]"


def history_text(action: Action, screen: Screen) -> str:
    """Return the wording of a past action in a prompt, version `history-v1`.

    The source's own words win. Coordinates are centres of the first region in [0, 1000], rounded
    half up. A place that the source does not name is left out.

    Args:
        action: the expert's action.
        screen: width and height in pixels of the screenshot the action was made on.

    Examples:
        >>> history_text(Action("tap", (Box(210, 786, 351, 850, "px"),)), (720, 1600))
        'TAP at [390, 511]'
        >>> history_text(Action("type", text="hello"), (720, 1600))
        'INPUT text: "hello"'
        >>> history_text(Action("hotkey", keys=("ctrl", "s")), (1920, 1080))
        'HOTKEY ctrl+s'
    """
    if action.words is not None:
        return action.words
    name = action.label
    if action.kind == "type":
        return f'{name} text: "{action.text or ""}"'
    if action.keys or action.app:
        return f"{name} {action.app or '+'.join(action.keys)}"
    if not action.start:
        return name
    if action.kind in ("swipe", "drag"):
        text = f"{name} from {_centre_text(action.start[0], screen)}"
        return f"{text} to {_centre_text(action.end[0], screen)}" if action.end else text
    return f"{name} at {_centre_text(action.start[0], screen)}"
