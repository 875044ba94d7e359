"""AgentNet's actions: calls of pyautogui whose places are shares of the screen (OpenCUA).

AgentNet has them as code, AgentNetBench as objects with a type and parameters. Each call or object
becomes one action.

Two actions use `words`: a "scroll" has its type there, since a horizontal wheel may have no
direction; "done" has the status as it is spelled, since evaluators compare the spelling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec.structs import replace

from omnidata.actions import OPPOSITE, Action, Box, Point, Region, Space, Status, finger_way
from omnidata.dialects import CannotSayError, UnreadError
from omnidata.dialects.pyautogui import CLICKS, WHEEL, Call, Code, single_actions
from omnidata.jsontext import is_coordinate

ActionType = Literal[
    "click", "doubleClick", "tripleClick", "rightClick", "middleClick", "moveTo", "dragTo",
    "scroll", "hscroll", "write", "press", "hotkey", "wait", "terminate",
]  # fmt: skip
TYPES: Final[tuple[ActionType, ...]] = get_args(ActionType)
POINTED: Final = frozenset(TYPES[:7])
"""The types that are done at a place."""

_NAMES: Final[Mapping[str, ActionType]] = {
    **{name.lower(): name for name in TYPES},
    "triple_click": "tripleClick",
}
_POINTED: Final[Mapping[str, Action]] = {
    **{name: Action("tap", button=one or "left", count=n) for (one, n), name in CLICKS.items()},
    "moveTo": Action("move"),
    "dragTo": Action("drag"),
}
_TYPES: Final[Mapping[str, str]] = {
    "move": "moveTo",
    "drag": "dragTo",
    "type": "write",
    "keys": "press",
    "hotkey": "hotkey",
    "wait": "wait",
    "done": "terminate",
}
_SIGNS: Final = {"up": 1, "positive": 1, "down": -1, "negative": -1}
_MOST_BOXES: Final = 1000


def point_action(name: str, *places: Region) -> Action:
    """Return the action of one of the types in `POINTED`.

    Args:
        name: the type.
        places: the place, then boxes in which the action is right as well. A drag ends there.

    Examples:
        >>> point_action("dragTo", Point(0.5, 0.25, "rel")).end
        (Point(x=0.5, y=0.25, space='rel'),)
    """
    bare = _POINTED[name]
    return replace(bare, end=places) if bare.kind == "drag" else replace(bare, start=places)


def scroll_action(name: str, amount: float | None, sign: int) -> Action:
    """Return the action of "scroll" or "hscroll".

    Args:
        name: the type.
        amount: how far, either way; None if unknown.
        sign: 1 for up or right, -1 for down or left, 0 if unknown.
    """
    return Action(
        "scroll",
        direction=WHEEL[name][sign < 0] if sign else None,
        amount=None if amount is None else abs(amount),
        words=name,
    )


def terminate_action(status: str) -> Action:
    """Return the action of "terminate" with any reported status."""
    known = next((one for one in get_args(Status) if one == status), None)
    return Action("done", status=known, words=status)


def type_of(action: Action) -> str:
    """Return the type of an action in AgentNet's words; "other" for one that no ground truth has.

    Examples:
        >>> type_of(Action("tap", count=2)), type_of(Action("none"))
        ('doubleClick', 'other')
    """
    if action.kind == "tap":
        return CLICKS[action.button, action.count]
    return str(action.words) if action.kind == "scroll" else _TYPES.get(action.kind, "other")


def place_of(action: Action) -> Point | None:
    """Return the place of an action, or the end of its drag; None if unknown."""
    return next((one for one in (*action.start, *action.end) if isinstance(one, Point)), None)


def boxes_of(action: Action) -> tuple[Box, ...]:
    """Return the boxes in which the action is right as well."""
    return tuple(one for one in (*action.start, *action.end) if isinstance(one, Box))


def turn_of(action: Action) -> float:
    """Return how far a wheel turns, above 0 for up or right; 1 or -1 if the amount is unknown.

    Examples:
        >>> turn_of(scroll_action("scroll", None, -1)), turn_of(scroll_action("hscroll", 3, 1))
        (-1, 3)
    """
    if action.direction is None:
        return 0
    far = 1 if action.amount is None else action.amount
    return -far if action.direction in ("down", "left") else far


def actions_of_calls(
    statements: Sequence[Call | Code], *, space: Space = "rel"
) -> tuple[Action, ...]:
    """Return the actions of calls, one for each.

    A click without a place is where the pointer was moved before. Pauses are left out.

    Args:
        statements: from `omnidata.dialects.pyautogui.read_code`.
        space: the unit of their places.

    Raises:
        UnreadError: a statement is none of AgentNet's actions.

    Examples:
        >>> from omnidata.dialects.pyautogui import read_code
        >>> actions_of_calls(read_code("pyautogui.rightClick(x=0.5, y=0.25)"))[0].start
        (Point(x=0.5, y=0.25, space='rel'),)
    """
    found: list[Action] = []
    pointer: Point | None = None
    for call in statements:
        if isinstance(call, Code):
            raise UnreadError(call.why)
        if call.kind == "sleep":
            continue
        place = pointer
        if call.x is not None and call.y is not None:
            place = Point(call.x, call.y, space)
        action = _action(call, place)
        if action is None:
            raise UnreadError(f"{call.name} is none of the actions of AgentNet")
        if type_of(action) in POINTED:
            if place is None:
                raise UnreadError(f"{call.name} is at no place")
            pointer = place
        found.append(action)
    return tuple(found)


def _action(call: Call, place: Point | None) -> Action | None:
    if call.kind in ("click", "move", "drag"):
        clicked = CLICKS.get((call.button, call.times))
        name = clicked if call.kind == "click" else _TYPES[call.kind]
        return point_action(name, *([place] if place else [])) if name else None
    if call.kind in ("scroll", "hscroll"):
        return scroll_action(call.kind, call.amount, _sign(call.amount))
    if call.kind == "write" and call.text is not None:
        return Action("type", text=call.text)
    if call.kind in ("press", "write"):
        return Action("keys", keys=call.keys * call.times)
    if call.kind == "hotkey":
        return Action("hotkey", keys=call.keys)
    if call.kind == "wait":
        return Action("wait")
    return terminate_action(call.status) if call.kind == "terminate" else None


def action_of_object(value: object) -> Action:
    """Return the action of an object of AgentNetBench's ground truth.

    Args:
        value: `type`, `params`, and perhaps `metadata` with `bboxes`.

    Raises:
        ValueError: a part is missing or of the wrong type; the message says which.

    Examples:
        >>> action_of_object({"type": "press", "params": {"keys": ["Enter"]}}).keys
        ('Enter',)
    """
    if not isinstance(value, Mapping):
        raise ValueError("a ground truth action is no object")
    name, params = value.get("type"), value.get("params", {})
    kind = _NAMES.get(name.lower()) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"there is no action type {name!r:.40}")
    if not isinstance(params, Mapping):
        raise ValueError(f"the parameters of {kind} are no object")
    if kind in POINTED:
        return point_action(kind, _place(kind, params), *_boxes(value.get("metadata")))
    if kind in ("scroll", "hscroll"):
        return scroll_action(kind, *_turn(params))
    if kind == "write":
        return Action("type", text=_text(kind, params.get("content") or params.get("text", "")))
    if kind in ("press", "hotkey"):
        keys = _keys(kind, params.get("keys", []))
        return Action("keys" if kind == "press" else "hotkey", keys=keys)
    if kind == "terminate":
        return terminate_action(_text(kind, params.get("status")))
    return Action("wait")


def _text(kind: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"what {kind} says is no text")
    return value


def _keys(kind: str, value: object) -> tuple[str, ...]:
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError(f"the keys of {kind} are no list of names")
    return tuple(keys)


def _place(kind: str, params: Mapping[str, Any]) -> Point:
    position = params.get("position", params)
    x, y = (position.get(axis) if isinstance(position, Mapping) else None for axis in "xy")
    if not is_coordinate(x) or not is_coordinate(y):
        raise ValueError(f"{kind} has no position of x and y")
    return Point(x, y, "rel")


def _boxes(metadata: object) -> list[Box]:
    found = metadata.get("bboxes") if isinstance(metadata, Mapping) else None
    if not isinstance(found, list):
        return []
    rects = [box.get("rel_bbox") for box in found[:_MOST_BOXES] if isinstance(box, Mapping)]
    return [
        Box(rect[0], rect[1], rect[0] + rect[2], rect[1] + rect[3], "rel")
        for rect in rects
        if isinstance(rect, list) and len(rect) == 4 and all(map(is_coordinate, rect))
        if rect[2] >= 0 and rect[3] >= 0
    ]


def _turn(params: Mapping[str, Any]) -> tuple[float | None, int]:
    amount = params.get("amount", params.get("pixels"))
    if is_coordinate(amount):
        return amount, _sign(amount)
    said = params.get("direction") if amount is None else amount
    return None, _SIGNS.get(said.strip().lower(), 0) if isinstance(said, str) else 0


def _sign(value: float) -> int:
    return int(math.copysign(1, value)) if value else 0


def own_actions(action: Action) -> Iterator[Action]:
    """Yield an action of any agent as AgentNet's actions.

    A drag with a start begins with a move. A turn without a number of notches is one notch; an end
    without a status is a success.

    Raises:
        CannotSayError: AgentNet has no such action.

    Examples:
        >>> list(own_actions(Action("enter")))[0].keys
        ('enter',)
    """
    for one in single_actions([action]):
        yield from _own_actions(one)


def _own_actions(action: Action) -> Iterator[Action]:
    cannot = CannotSayError(f"AgentNet has no {action.label}")
    if action.kind == "drag" and action.button != "left":
        raise cannot
    match action.kind:
        case "tap" if (action.button, action.count) not in CLICKS:
            raise CannotSayError(f"AgentNet has no {action.label}, {action.count} times")
        case "drag" if action.start:
            yield from _own_actions(Action("move", action.start))
            yield from _own_actions(replace(action, start=()))
        case "tap" | "move" | "drag":
            place = place_of(action)
            if place is None:
                raise CannotSayError(f"AgentNet has no {action.label} at no place")
            yield point_action(type_of(action), place)
        case "scroll":
            way = finger_way(action)
            if way is None and action.amount != 0:
                raise CannotSayError("the direction of the wheel is unknown")
            name = "hscroll" if action.direction in ("left", "right") else "scroll"
            amount = action.amount if action.amount_unit == "notch" else None
            turn = turn_of(replace(action, direction=OPPOSITE[way] if way else None, amount=amount))
            yield scroll_action(name, abs(turn), _sign(turn))
        case "type":
            yield Action("type", text=action.text or "")
        case "keys" | "hotkey":
            yield Action(action.kind, keys=action.keys)
        case "wait":
            yield Action("wait")
        case "done":
            spelled = action.words if action.words in get_args(Status) else action.status
            yield terminate_action(spelled or "success")
        case _:
            raise cannot


def code_line(action: Action, place: str | None = None) -> str:
    """Return an action as a line of code, with its arguments named as the prompt asks for them.

    Args:
        action: one of AgentNet's.
        place: the arguments of the place; None for those of the action.

    Examples:
        >>> code_line(Action("hotkey", keys=("ctrl", "c")))
        "pyautogui.hotkey(keys=['ctrl', 'c'])"
        >>> code_line(Action("tap", (Point(0.5, 0.25, "rel"),), count=3))
        'computer.triple_click(x=0.5, y=0.25)'
    """
    name, point = type_of(action), place_of(action)
    if place is None:
        place = f"x={point.x!r}, y={point.y!r}" if point else ""
    if name == "tripleClick":
        return f"computer.triple_click({place})"
    if name == "dragTo":
        return f"pyautogui.dragTo({place}, button='left')"
    if name == "terminate":
        return f"computer.terminate(status={action.words!r})"
    if name == "wait":
        return "computer.wait()"
    if name in POINTED:
        return f"pyautogui.{name}({place})"
    if name in ("scroll", "hscroll"):
        return f"pyautogui.{name}({turn_of(action):g})"
    if name == "write":
        return f"pyautogui.write(message={action.text!r})"
    return f"pyautogui.{name}(keys={list(action.keys)!r})"
