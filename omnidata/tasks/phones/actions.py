"""What is done on a phone, in the words of two datasets: Android in the Wild and AndroidControl.

Android in the Wild has one number for everything that a finger does: a dual point, which is a tap
where the finger is lifted within `TAP_REACH` of where it touched, and a swipe otherwise.
AndroidControl has JSON objects with names. A `Move` holds either without loss of meaning; the
datasets' own spelling is kept wherever rows are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Any, Final, get_args

from omnidata.actions import OPPOSITE, Action, Direction, Point, Space

Pair = tuple[float, float]
"""x and y."""
Rect = tuple[float, float, float, float]
"""y, x, height and width of an element, from 0 to 1, as Android in the Wild has them."""
DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)
TAP_REACH: Final = 0.04
"""How far a finger may go in a tap, as a share of the screen (Android in the Wild)."""
_FARTHEST = 1e9
_ROUNDING = 1e-9


class Code(IntEnum):
    """Android in the Wild's `ActionType`; 0 and 1 have a meaning in AgentCPM-GUI's data only."""

    LONG_POINT = 0
    NO_ACTION = 1
    TYPE = 3
    DUAL_POINT = 4
    PRESS_BACK = 5
    PRESS_HOME = 6
    PRESS_ENTER = 7
    STATUS_TASK_COMPLETE = 10
    STATUS_TASK_IMPOSSIBLE = 11


class Kind(StrEnum):
    """What a move is."""

    GESTURE = "gesture"
    """A finger touches and is lifted: a tap or a swipe, as the two places tell."""
    SWIPE = "swipe"
    """A swipe whose direction is named."""
    LONG_PRESS = "long_press"
    DOUBLE_TAP = "double_tap"
    TYPE = "type"
    BACK = "back"
    HOME = "home"
    ENTER = "enter"
    RECENTS = "recents"
    BUTTON = "button"
    """Another button, like that of the menu."""
    OPEN_APP = "open_app"
    WAIT = "wait"
    COMPLETE = "complete"
    IMPOSSIBLE = "impossible"
    STOP = "stop"
    """The end of the episode, of which it is not said whether the task is done."""


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that is done on a phone.

    Attributes:
        kind: what it is.
        touch, lift: where the finger touches and is lifted, in the unit that `space` names; None
            where that is not said.
        direction: of a SWIPE.
        text: what is typed, the app that is opened, or the name of a BUTTON.
        box: left, top, right, bottom of the element that is meant, where a box was given.
        element: the number of the element that is meant, from 0 in reading order, where one was
            given.
        space: the unit of places.
    """

    kind: Kind
    touch: Pair | None = None
    lift: Pair | None = None
    direction: Direction | None = None
    text: str = ""
    box: tuple[float, float, float, float] | None = None
    element: int | None = None
    space: Space = "rel"

    def as_dict(self) -> dict[str, Any]:
        """The move as a JSON object, without what is not said."""
        found = {
            "kind": self.kind.value,
            "touch": self.touch,
            "lift": self.lift,
            "direction": self.direction,
            "text": self.text or None,
            "box": self.box,
            "element": self.element,
        }
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Truth:
    """What an expert did, and what was there.

    Attributes:
        move: what was done, its places from 0 to 1.
        rects: the elements of the screen, in the order of the source.
    """

    move: Move
    rects: tuple[Rect, ...] = ()


def is_tap(touch: Pair, lift: Pair) -> bool:
    """Whether the finger hardly moves.

    Examples:
        >>> is_tap((0.5, 0.5), (0.5, 0.53)), is_tap((0.5, 0.5), (0.5, 0.6))
        (True, False)
    """
    return math.dist(touch, lift) <= TAP_REACH


def near(one: Pair, other: Pair, reach: float) -> bool:
    """Whether two places are at most so far apart, whatever the last digit of their difference.

    Examples:
        >>> near((0.22, 0.5), (0.36, 0.5), 0.14), near((0.22, 0.5), (0.361, 0.5), 0.14)
        (True, False)
    """
    return math.dist(one, other) <= reach + _ROUNDING


def holds(rect: Rect, point: Pair, *, more: float) -> bool:
    """Whether an element that is enlarged, and cut at the edges of the screen, holds a place.

    Edges are inside, whatever the last digit of their sum.

    Args:
        rect: the element.
        point: the place.
        more: what is added to width and height, as a share of them.

    Examples:
        >>> element = 0.4, 0.1, 0.2, 0.2
        >>> holds(element, (0.32, 0.38), more=0.2), holds(element, (0.321, 0.38), more=0.2)
        (True, False)
    """
    y, x, height, width = rect
    wide, tall = more * width / 2, more * height / 2
    return (
        max(0, x - wide) - _ROUNDING <= point[0] <= min(1, x + width + wide) + _ROUNDING
        and max(0, y - tall) - _ROUNDING <= point[1] <= min(1, y + height + tall) + _ROUNDING
    )


def heading(touch: Pair, lift: Pair) -> Direction:
    """Which way a finger goes, along the axis on which it goes further; vertically if both agree.

    Examples:
        >>> heading((0.5, 0.5), (0.1, 0.8)), heading((0, 0), (1, 1))
        ('left', 'down')
    """
    x, y = lift[0] - touch[0], lift[1] - touch[1]
    if abs(y) >= abs(x):
        return "up" if y < 0 else "down"
    return "left" if x < 0 else "right"


def read_call(action: object) -> Move:
    """What one of AndroidControl's actions means; places in pixels, or whatever its numbers are.

    AndroidControl scrolls content: "down" shows what is further down, for which a finger goes up.

    Args:
        action: an object with `action_type`.

    Raises:
        ValueError: there is no such action, or a parameter is missing or unusable; the message says
            which.

    Examples:
        >>> read_call({"action_type": "scroll", "direction": "down"}).direction
        'up'
        >>> read_call({"action_type": "open_app", "app_name": "Zoho Meet"}).text
        'Zoho Meet'
    """
    if not isinstance(action, Mapping):
        raise ValueError("the action is no object")
    name = action.get("action_type")
    if name in ("click", "long_press"):
        place = _place(action)
        kind = Kind.LONG_PRESS if name == "long_press" else Kind.GESTURE
        return Move(kind, place, place, space="px")
    if name == "scroll":
        said = action.get("direction")
        direction = next((OPPOSITE[d] for d in DIRECTIONS if d == said), None)
        if direction is None:
            raise ValueError(f"direction is {said!r:.80}, none of {', '.join(DIRECTIONS)}")
        return Move(Kind.SWIPE, direction=direction, space="px")
    if name == "type":
        return Move(Kind.TYPE, _place(action), text=_text(action, "text"), space="px")
    if name == "input_text":
        return Move(Kind.TYPE, text=_text(action, "text"), space="px")
    if name == "open_app":
        return Move(Kind.OPEN_APP, text=_text(action, "app_name"), space="px")
    if isinstance(name, str) and name in _PLAIN:
        return Move(_PLAIN[name], space="px")
    raise ValueError(f"action_type is {name!r:.80}, none of {', '.join(CALLS)}")


_PLAIN: Final = {"navigate_home": Kind.HOME, "navigate_back": Kind.BACK, "wait": Kind.WAIT}
CALLS: Final = (
    *("click", "long_press", "scroll", "open_app", "type", "input_text"),
    *_PLAIN,
)
"""AndroidControl's actions (its README)."""


def _place(action: Mapping[str, Any]) -> Pair:
    x, y = action.get("x"), action.get("y")
    for value in (x, y):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"x and y are {x!r:.40} and {y!r:.40}, no numbers")
        if not abs(value) <= _FARTHEST:  # NaN too
            raise ValueError("x or y is no place on any screen")
    assert x is not None
    assert y is not None
    return x, y


def _text(action: Mapping[str, Any], key: str) -> str:
    value = action.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is {value!r:.80}, no text")
    return value


def direction_of(move: Move) -> Direction | None:
    """Which way the finger goes in a swipe; None for anything else, and where nobody says it."""
    if move.kind is Kind.SWIPE and move.direction:
        return move.direction
    if move.kind not in (Kind.SWIPE, Kind.GESTURE) or not move.touch or not move.lift:
        return None
    still = _is_still(move) if move.kind is Kind.GESTURE else move.touch == move.lift
    return None if still else heading(move.touch, move.lift)


def _is_still(move: Move) -> bool:
    """Whether a gesture is a tap; in pixels it is one only where it touches."""
    assert move.touch is not None
    assert move.lift is not None
    return move.touch == move.lift if move.space == "px" else is_tap(move.touch, move.lift)


_ACTIONS: Final[Mapping[Kind, Action]] = {
    Kind.LONG_PRESS: Action("long_press"),
    Kind.DOUBLE_TAP: Action("tap", count=2),
    Kind.BACK: Action("back"),
    Kind.HOME: Action("home"),
    Kind.ENTER: Action("enter", words="ENTER"),
    Kind.RECENTS: Action("recent", words="RECENTS"),
    Kind.WAIT: Action("wait", words="NONE"),
    Kind.COMPLETE: Action("done", status="success"),
    Kind.IMPOSSIBLE: Action("done", status="failure"),
    Kind.STOP: Action("done", words="STOP"),
}


def as_action(move: Move, said: str | None = None) -> Action | None:
    """A move as an action.

    Args:
        move: any.
        said: its wording for histories; None for that of the action, or of the move where the
            prompts of phones call it otherwise.

    Returns:
        None for a swipe of which nobody says where it goes.

    Examples:
        >>> as_action(Move(Kind.GESTURE, (0.5, 0.9), (0.5, 0.2))).label
        'SWIPE_UP'
        >>> as_action(Move(Kind.OPEN_APP, text="Zoho Meet")).app
        'Zoho Meet'
    """
    start = (Point(*move.touch, move.space),) if move.touch else ()
    end = (Point(*move.lift, move.space),) if move.lift else ()
    direction = direction_of(move)
    if direction:
        return Action("swipe", start, end, words=said, direction=direction)
    if move.kind is Kind.SWIPE:
        return None
    if move.kind is Kind.GESTURE:
        lifted = end if end != start else ()
        return Action("tap", start, lifted, words=said, element=move.element)
    if move.kind is Kind.TYPE:
        return Action("type", start, text=move.text, words=said)
    if move.kind in (Kind.OPEN_APP, Kind.BUTTON):
        words = said or f'{move.kind.name} app: "{move.text}"'
        if move.kind is Kind.BUTTON:
            return Action("keys", keys=(move.text,), words=words)
        return Action("open_app", app=move.text, words=words)
    bare = _ACTIONS[move.kind]
    return replace(bare, start=start, words=said or bare.words)
