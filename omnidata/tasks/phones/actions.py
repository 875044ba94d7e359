"""Actions on phones, in the words of two datasets: Android in the Wild and AndroidControl.

Android in the Wild has one number for everything that a finger does: a dual point, which is a tap
where the finger is lifted within `TAP_REACH` of where it touched, and a swipe otherwise.
AndroidControl has JSON objects with names. An action holds either without loss of meaning: a swipe
between two places has no `direction`, for evaluators derive it in different ways. The
datasets' own spelling is kept wherever rows are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, get_args

import numpy as np
from msgspec.structs import replace

from omnidata.actions import (
    OPPOSITE,
    Action,
    Box,
    Direction,
    Pair,
    Point,
    Region,
    Screen,
    Space,
    centre,
    convert,
    finger_way,
    heading,
)
from omnidata.dialects import CannotSayError
from omnidata.jsontext import is_coordinate, is_number
from omnidata.loaders.rows import read_action
from omnidata.tasks.coordinates import in_shares

Rect = tuple[float, float, float, float]
"""y, x, height and width of an element, from 0 to 1, as Android in the Wild has them."""
DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)
TAP_REACH: Final = 0.04
"""How far a finger may go in a tap, as a share of the screen (Android in the Wild)."""
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


BACK: Final = Action("back")
HOME: Final = Action("home")
ENTER: Final = Action("enter", words="ENTER")
RECENTS: Final = Action("recent", words="RECENTS")
WAIT: Final = Action("wait", words="NONE")
"""As the prompts of phones call it."""
COMPLETE: Final = Action("done", status="success")
IMPOSSIBLE: Final = Action("done", status="failure")
STOP: Final = Action("done", words="STOP")
"""The end of the episode; whether the task is done is unknown."""


def as_direction(word: object) -> Direction | None:
    """Return a word as a direction; None for any other value."""
    return next((way for way in DIRECTIONS if way == word), None)


def open_app(name: str) -> Action:
    """Return the action that opens an app."""
    return Action("open_app", app=name, words=f'OPEN_APP app: "{name}"')


def press(button: str) -> Action:
    """Return the press of a button without its own kind, such as the menu's."""
    return Action("keys", keys=(button,), words=f'BUTTON app: "{button}"')


def gesture(touch: Pair, lift: Pair) -> Action:
    """Return the tap or swipe of a dual point, by its two places from 0 to 1.

    Examples:
        >>> gesture((0.5, 0.5), (0.5, 0.53)).kind, gesture((0.5, 0.5), (0.5, 0.6)).kind
        ('tap', 'swipe')
    """
    start, end = (Point(*touch, "rel"),), (Point(*lift, "rel"),)
    if is_tap(touch, lift):
        return Action("tap", start, end if end != start else ())
    return Action("swipe", start, end)


@dataclass(frozen=True, slots=True)
class Truth:
    """An expert's action, and the elements of the screen.

    Attributes:
        action: its places from 0 to 1.
        rects: the elements of the screen, in the order of the source.
        screen: width and height in pixels, for rules that compute in pixels; (0, 0) if unknown.
    """

    action: Action
    rects: tuple[Rect, ...] = ()
    screen: Screen = (0, 0)


Match = tuple[bool, bool]
"""Whether the type of an answer is right, and whether all of it is."""


def kind_of(action: Action) -> tuple[str, int, str | None]:
    """Return the kind of an action: its name, the number of taps, and how a task ended."""
    return action.kind, action.count, action.status


def truth_in_shares(
    action: Action, boxes: Iterable[Sequence[float]], screen: Screen
) -> Truth | None:
    """Return an expert's action and the boxes of elements from 0 to 1.

    Args:
        action: its places in any unit.
        boxes: left, top, right and bottom; not looked at for an action without a place, or with a
            box of its own.
        screen: width and height in pixels, or in the boxes' unit.

    Returns:
        None for a place on a screen of unknown size.
    """
    if not action.start:
        return Truth(action)
    if min(screen) < 1:
        return None
    width, height = screen
    rects = own_rects(action) or tuple(
        (top / height, left / width, (bottom - top) / height, (right - left) / width)
        for left, top, right, bottom in boxes
    )
    return Truth(in_shares(as_points(action), screen), rects)


def as_points(action: Action) -> Action:
    """Return an action with the middles of its boxes."""
    return replace(action, start=tuple(map(centre, action.start)))


def place_in_shares(region: Region, screen: Screen) -> Region:
    """Return a point or a box from 0 to 1 of a screen."""
    if isinstance(region, Point):
        return convert(region, "rel", screen)
    corners = (region.left, region.top), (region.right, region.bottom)
    low, high = (convert(Point(*corner, region.space), "rel", screen) for corner in corners)
    return Box(low.x, low.y, high.x, high.y, "rel")


def own_rects(action: Action) -> tuple[Rect, ...]:
    """Return the boxes of an action of errata, whose places are from 0 to 1; else none."""
    boxes = (each for each in action.start if isinstance(each, Box))
    return tuple((b.top, b.left, b.bottom - b.top, b.right - b.left) for b in boxes)


def is_tap(touch: Pair, lift: Pair) -> bool:
    """Return whether the finger moves so little that it taps.

    Examples:
        >>> is_tap((0.5, 0.5), (0.5, 0.53)), is_tap((0.5, 0.5), (0.5, 0.6))
        (True, False)
    """
    return math.dist(touch, lift) <= TAP_REACH


def is_within(one: Pair | None, other: Pair | None, reach: float) -> bool:
    """Return whether two places are within reach, computed as released evaluators do."""
    if one is None or other is None:
        return False
    return bool(np.linalg.norm(np.array(one) - np.array(other)) <= reach)


def near(one: Pair, other: Pair, reach: float) -> bool:
    """Return whether two places are within reach, whatever the last digit of their distance.

    Examples:
        >>> near((0.22, 0.5), (0.36, 0.5), 0.14), near((0.22, 0.5), (0.361, 0.5), 0.14)
        (True, False)
    """
    return math.dist(one, other) <= reach + _ROUNDING


def holds(rect: Rect, point: Pair, *, more: float) -> bool:
    """Return whether an element, enlarged and cut at the edges of the screen, holds a place.

    Edges are inside, whatever the last digit of their sum.

    Args:
        rect: the element.
        point: the place.
        more: added to width and height, as a share of them.

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


def read_call(action: object, *, space: Space = "px") -> Action:
    """Return the action of one of AndroidControl's objects.

    AndroidControl scrolls content: "down" shows what is further down, for which a finger goes up.

    Args:
        action: an object with `action_type`.
        space: the unit of its places.

    Raises:
        ValueError: there is no such action, or a parameter is missing or unusable; the message says
            which.

    Examples:
        >>> read_call({"action_type": "scroll", "direction": "down"}).direction
        'up'
        >>> read_call({"action_type": "open_app", "app_name": "Zoho Meet"}).app
        'Zoho Meet'
    """
    if not isinstance(action, Mapping):
        raise ValueError("the action is no object")
    name = action.get("action_type")
    if name == "click":
        return Action("tap", _place(action, space))
    if name == "long_press":
        return Action("long_press", _place(action, space))
    if name == "scroll":
        way = as_direction(said := action.get("direction"))
        if way is None:
            raise ValueError(f"direction is {said!r:.80}, none of {', '.join(DIRECTIONS)}")
        return Action("swipe", direction=OPPOSITE[way])
    if name == "type":
        return Action("type", _place(action, space), text=_text(action, "text"))
    if name == "input_text":
        return Action("type", text=_text(action, "text"))
    if name == "open_app":
        return open_app(_text(action, "app_name"))
    if isinstance(name, str) and name in _PLAIN:
        return _PLAIN[name]
    raise ValueError(f"action_type is {name!r:.80}, none of {', '.join(CALLS)}")


_PLAIN: Final = {"navigate_home": HOME, "navigate_back": BACK, "wait": WAIT}
CALLS: Final = (
    *("click", "long_press", "scroll", "open_app", "type", "input_text"),
    *_PLAIN,
)
"""AndroidControl's actions (its README)."""


def _place(action: Mapping[str, Any], space: Space) -> tuple[Point]:
    x, y = action.get("x"), action.get("y")
    if is_coordinate(x) and is_coordinate(y):
        return (Point(x, y, space),)
    if is_number(x) and is_number(y):
        raise ValueError("x or y is no place on any screen")
    raise ValueError(f"x and y are {x!r:.40} and {y!r:.40}, no numbers")


def _text(action: Mapping[str, Any], key: str) -> str:
    value = action.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is {value!r:.80}, no text")
    return value


_KEYS: Final[Mapping[str, Action]] = {
    **dict.fromkeys(("enter", "return"), ENTER),
    **dict.fromkeys(("back", "escape"), BACK),
    "home": HOME,
    **dict.fromkeys(("recent", "recents", "app_switch", "appswitch"), RECENTS),
}


CORRECTED: Final = "omnidata:corrected_action"
"""The key of a step's `source` for a right action that errata put in place of the recorded one."""


def corrected_action(row: Mapping[str, Any]) -> Action | None:
    """Return the action of errata; None in an untouched row."""
    fields = row.get(CORRECTED)
    return None if fields is None else read_action(fields)


def as_finger(action: Action) -> Action:
    """Return any agent's action on a phone in the words of phones.

    A wheel that turns is the swipe that shows the same, its place and how far aside; a drag is a
    swipe; a key that has a kind of its own is that. An end without a status is a success.

    Raises:
        CannotSayError: no finger does it.

    Examples:
        >>> as_finger(Action("scroll", direction="down")).direction
        'up'
        >>> as_finger(Action("keys", keys=("ENTER",))).label
        'ENTER'
    """
    if action.button != "left" or action.held:
        raise CannotSayError(f"a finger does no {action.label} with {action.held or 'a button'}")
    if action.kind == "scroll":
        return Action("swipe", action.start, action.end, direction=finger_way(action))
    if action.kind == "swipe":
        return replace(action, direction=finger_way(action) if action.direction else None)
    if action.kind == "drag":
        return Action("swipe", action.start, action.end)
    if action.kind in ("keys", "hotkey") and len(action.keys) == 1:
        return _KEYS.get(action.keys[0].lower(), action)
    if action.kind == "type":
        return replace(action, text=action.text or "")
    if action.kind == "open_app":
        return replace(action, app=action.app or "")
    if action.kind == "done":
        return IMPOSSIBLE if action.status == "failure" else COMPLETE
    return WAIT if action.kind in ("wait", "none") else action


def middle(regions: tuple[Region, ...]) -> Pair | None:
    """Return the middle of the first region, in its own unit; None without one."""
    if not regions:
        return None
    point = centre(regions[0])
    return point.x, point.y


def touch_of(action: Action) -> Pair | None:
    """Return the touched place, from 0 to 1; None without one.

    Args:
        action: its places in any unit but pixels.
    """
    if not action.start:
        return None
    point = convert(centre(action.start[0]), "rel", (1, 1))
    return point.x, point.y


def direction_of(action: Action) -> Direction | None:
    """Return the finger's direction in a swipe; None for others or if unknown."""
    if action.kind != "swipe":
        return None
    touch, lift = middle(action.start), middle(action.end)
    if action.direction or not touch or not lift or touch == lift:
        return action.direction
    return heading(touch, lift)


def with_direction(action: Action) -> Action | None:
    """Return an action as histories show it: a swipe with its direction, None if it has none.

    Examples:
        >>> found = with_direction(gesture((0.5, 0.9), (0.5, 0.2)))
        >>> found and found.label
        'SWIPE_UP'
    """
    if action.kind != "swipe":
        return action
    direction = direction_of(action)
    return replace(action, direction=direction) if direction else None
