"""AgentNet's actions: calls of pyautogui whose places are shares of the screen (OpenCUA).

AgentNet has them as code, AgentNetBench as objects with a type and parameters. Either is read here
as actions, one for each call or object, and written as code. The datasets' own spelling is kept
wherever rows are kept.

What an action's other fields cannot say is in its `words`: of a "scroll" the type, for a wheel that
does not say which way it turns may still be the horizontal one; of "done" the status as it is
spelled, for evaluators compare the spelling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

from msgspec.structs import replace

from omnidata.actions import Action, Box, Point, Region, Space, Status
from omnidata.dialects.pyautogui import CLICKS, Call, Code
from omnidata.dialects.pyautogui_actions import WHEEL
from omnidata.jsontext import is_number

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
_FARTHEST: Final = 1e9
_MOST_BOXES: Final = 1000


def point_action(name: str, *places: Region) -> Action:
    """The action of one of the types in `POINTED`.

    Args:
        name: the type.
        places: where, and after it boxes in which it is right as well. A drag ends there, and
            nobody says where it begins.

    Examples:
        >>> point_action("dragTo", Point(0.5, 0.25, "rel")).end
        (Point(x=0.5, y=0.25, space='rel'),)
    """
    bare = _POINTED[name]
    return replace(bare, end=places) if bare.kind == "drag" else replace(bare, start=places)


def scroll_action(name: str, amount: float | None, sign: int) -> Action:
    """The action of "scroll" or "hscroll".

    Args:
        name: the type.
        amount: how far, either way; None where nobody says.
        sign: 1 for up or right, -1 for down or left, 0 where nobody says.
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
    """The type of an action in AgentNet's words; "other" is nothing that any ground truth has.

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
    """How far a wheel turns; above 0 is up or right, and 1 where nobody says how far.

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
) -> tuple[Action, ...] | str:
    """What some calls do, in AgentNet's words.

    A click at no place is one where the pointer was moved before. Pauses are left out.

    Args:
        statements: from `omnidata.dialects.pyautogui.read_code`.
        space: the unit of their places.

    Returns:
        Or why they cannot be said in them.

    Examples:
        >>> from omnidata.dialects.pyautogui import read_code
        >>> actions_of_calls(read_code("pyautogui.rightClick(x=0.5, y=0.25)"))[0].start
        (Point(x=0.5, y=0.25, space='rel'),)
        >>> actions_of_calls(read_code("pyautogui.keyDown('a')"))
        'keyDown is none of the actions of AgentNet'
    """
    found: list[Action] = []
    pointer: Point | None = None
    for call in statements:
        if isinstance(call, Code):
            return call.why
        if call.kind == "sleep":
            continue
        place = pointer
        if call.x is not None and call.y is not None:
            place = Point(call.x, call.y, space)
        action = _action(call, place)
        if action is None:
            return f"{call.name} is none of the actions of AgentNet"
        if type_of(action) in POINTED:
            if place is None:
                return f"{call.name} is at no place"
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
    """What an object of AgentNetBench's ground truth does.

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
    pair = (position.get("x"), position.get("y")) if isinstance(position, Mapping) else ()
    if len(pair) != 2 or not all(map(_is_number, pair)):
        raise ValueError(f"{kind} has no position of x and y")
    return Point(*cast("tuple[float, float]", pair), "rel")


def _boxes(metadata: object) -> list[Box]:
    found = metadata.get("bboxes") if isinstance(metadata, Mapping) else None
    if not isinstance(found, list):
        return []
    rects = [box.get("rel_bbox") for box in found[:_MOST_BOXES] if isinstance(box, Mapping)]
    return [
        Box(rect[0], rect[1], rect[0] + rect[2], rect[1] + rect[3], "rel")
        for rect in rects
        if isinstance(rect, list) and len(rect) == 4 and all(map(_is_number, rect))
        if rect[2] >= 0 and rect[3] >= 0
    ]


def _turn(params: Mapping[str, Any]) -> tuple[float | None, int]:
    amount = params.get("amount", params.get("pixels"))
    if _is_number(amount):
        return amount, _sign(cast("float", amount))
    said = params.get("direction") if amount is None else amount
    return None, _SIGNS.get(said.strip().lower(), 0) if isinstance(said, str) else 0


def _sign(value: float) -> int:
    return int(math.copysign(1, value)) if value else 0


def _is_number(value: object) -> bool:
    if not is_number(value):
        return False
    return abs(value) <= _FARTHEST  # False for NaN too


def code_line(action: Action, place: str = "") -> str:
    """The action as a line of code, with its arguments named as the prompt asks for them.

    Args:
        action: what is done.
        place: where, as the arguments are to have it.

    Examples:
        >>> code_line(Action("hotkey", keys=("ctrl", "c")))
        "pyautogui.hotkey(keys=['ctrl', 'c'])"
        >>> code_line(Action("tap", count=3), "x=0.5, y=0.5")
        'computer.triple_click(x=0.5, y=0.5)'
    """
    name = type_of(action)
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
