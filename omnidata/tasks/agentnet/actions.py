"""AgentNet's actions: calls of pyautogui whose places are shares of the screen (OpenCUA).

AgentNet has them as code, AgentNetBench as objects with a type and parameters. A `Deed` holds
either; the datasets' own spelling is kept wherever rows are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from omnidata.tasks.desktops import Call, Code

DeedType = Literal[
    "click", "doubleClick", "tripleClick", "rightClick", "middleClick", "moveTo", "dragTo",
    "scroll", "hscroll", "write", "press", "hotkey", "wait", "terminate",
]  # fmt: skip
TYPES: Final[tuple[DeedType, ...]] = get_args(DeedType)
POINTED: Final = frozenset(TYPES[:7])
"""The types that are done at a place."""

Rect = tuple[float, float, float, float]
"""Left, top, width and height, as shares of the screen."""

_NAMES: Final[Mapping[str, DeedType]] = {
    **{name.lower(): name for name in TYPES},
    "triple_click": "tripleClick",
}
_CLICKS: Final[Mapping[tuple[str, int], DeedType]] = {
    ("left", 1): "click",
    ("left", 2): "doubleClick",
    ("left", 3): "tripleClick",
    ("right", 1): "rightClick",
    ("middle", 1): "middleClick",
}
_SIGNS: Final = {"up": 1, "positive": 1, "down": -1, "negative": -1}
_FARTHEST: Final = 1e9
_MOST_BOXES: Final = 1000


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that is done.

    Attributes:
        type: what; "other" is nothing that any ground truth has.
        place: where, x and y, as shares of the screen; None where nobody says.
        boxes: where else it might be done as well.
        text: what `write` types.
        keys: those of `press` and `hotkey`.
        amount: how far a wheel turns; above 0 is up, or right. None where nobody says.
        direction: 1 or -1, which way it turns; 0 where nobody says.
        status: what `terminate` reports.
    """

    type: DeedType | Literal["other"]
    place: tuple[float, float] | None = None
    boxes: tuple[Rect, ...] = ()
    text: str = ""
    keys: tuple[str, ...] = ()
    amount: float | None = None
    direction: int = 0
    status: str = ""


def deeds_of_calls(statements: Sequence[Call | Code]) -> tuple[Deed, ...] | str:
    """What some calls do, in AgentNet's words.

    A click at no place is one where the pointer was moved before. Pauses are left out.

    Args:
        statements: from `omnidata.tasks.desktops.read_code`.

    Returns:
        Or why they cannot be said in them.

    Examples:
        >>> from omnidata.tasks.desktops import read_code
        >>> deeds_of_calls(read_code("pyautogui.rightClick(x=0.5, y=0.25)"))[0].place
        (0.5, 0.25)
        >>> deeds_of_calls(read_code("pyautogui.keyDown('a')"))
        'keyDown is none of the actions of AgentNet'
    """
    found: list[Deed] = []
    pointer: tuple[float, float] | None = None
    for call in statements:
        if isinstance(call, Code):
            return call.why
        if call.kind == "sleep":
            continue
        place = (call.x, call.y) if call.x is not None and call.y is not None else pointer
        deed = _deed(call, place)
        if deed is None:
            return f"{call.name} is none of the actions of AgentNet"
        if deed.type in POINTED:
            if place is None:
                return f"{call.name} is at no place"
            pointer = place
        found.append(deed)
    return tuple(found)


def _deed(call: Call, place: tuple[float, float] | None) -> Deed | None:
    if call.kind == "click":
        kind = _CLICKS.get((call.button, call.times))
        return Deed(kind, place) if kind else None
    if call.kind in ("move", "drag"):
        return Deed("moveTo" if call.kind == "move" else "dragTo", place)
    if call.kind in ("scroll", "hscroll"):
        kind = "scroll" if call.kind == "scroll" else "hscroll"
        return Deed(kind, amount=call.amount, direction=_sign(call.amount))
    if call.kind == "write" and call.text is not None:
        return Deed("write", text=call.text)
    if call.kind in ("press", "write"):
        return Deed("press", keys=call.keys * call.times)
    if call.kind == "hotkey":
        return Deed("hotkey", keys=call.keys)
    if call.kind == "wait":
        return Deed("wait")
    return Deed("terminate", status=call.status) if call.kind == "terminate" else None


def deed_of_object(value: object) -> Deed:
    """What an object of AgentNetBench's ground truth does.

    Args:
        value: `type`, `params`, and perhaps `metadata` with `bboxes`.

    Raises:
        ValueError: a part is missing or of the wrong type; the message says which.

    Examples:
        >>> deed_of_object({"type": "press", "params": {"keys": ["Enter"]}}).keys
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
        return Deed(kind, _place(kind, params), _boxes(value.get("metadata")))
    if kind in ("scroll", "hscroll"):
        amount, direction = _turn(params)
        return Deed(kind, amount=amount, direction=direction)
    if kind == "write":
        return Deed(kind, text=_text(kind, params.get("content") or params.get("text", "")))
    if kind in ("press", "hotkey"):
        return Deed(kind, keys=_keys(kind, params.get("keys", [])))
    if kind == "terminate":
        return Deed(kind, status=_text(kind, params.get("status")))
    return Deed(kind)


def _text(kind: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"what {kind} says is no text")
    return value


def _keys(kind: str, value: object) -> tuple[str, ...]:
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError(f"the keys of {kind} are no list of names")
    return tuple(keys)


def _place(kind: str, params: Mapping[str, Any]) -> tuple[float, float]:
    position = params.get("position", params)
    pair = (position.get("x"), position.get("y")) if isinstance(position, Mapping) else ()
    if len(pair) != 2 or not all(map(_is_number, pair)):
        raise ValueError(f"{kind} has no position of x and y")
    return cast("tuple[float, float]", pair)


def _boxes(metadata: object) -> tuple[Rect, ...]:
    """The boxes that are four numbers; others hold no point."""
    found = metadata.get("bboxes") if isinstance(metadata, Mapping) else None
    if not isinstance(found, list):
        return ()
    rects = [box.get("rel_bbox") for box in found[:_MOST_BOXES] if isinstance(box, Mapping)]
    return tuple(
        (rect[0], rect[1], rect[2], rect[3])
        for rect in rects
        if isinstance(rect, list) and len(rect) == 4 and all(map(_is_number, rect))
    )


def _turn(params: Mapping[str, Any]) -> tuple[float | None, int]:
    amount = params.get("amount", params.get("pixels"))
    if _is_number(amount):
        return amount, _sign(cast("float", amount))
    said = params.get("direction") if amount is None else amount
    return None, _SIGNS.get(said.strip().lower(), 0) if isinstance(said, str) else 0


def _sign(value: float) -> int:
    return int(math.copysign(1, value)) if value else 0


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= _FARTHEST  # False for NaN too


def spelled(deed: Deed, place: str = "") -> str:
    """The deed as a line of code, with its arguments named as the prompt asks for them.

    Args:
        deed: what is done.
        place: where, as the arguments are to have it.

    Examples:
        >>> spelled(Deed("hotkey", keys=("ctrl", "c")))
        "pyautogui.hotkey(keys=['ctrl', 'c'])"
        >>> spelled(Deed("tripleClick", (0.5, 0.5)), "x=0.5, y=0.5")
        'computer.triple_click(x=0.5, y=0.5)'
    """
    if deed.type == "tripleClick":
        return f"computer.triple_click({place})"
    if deed.type == "dragTo":
        return f"pyautogui.dragTo({place}, button='left')"
    if deed.type == "terminate":
        return f"computer.terminate(status={deed.status!r})"
    if deed.type == "wait":
        return "computer.wait()"
    if deed.type in POINTED:
        return f"pyautogui.{deed.type}({place})"
    if deed.type in ("scroll", "hscroll"):
        turn = deed.direction if deed.amount is None else deed.amount
        return f"pyautogui.{deed.type}({turn:g})"
    if deed.type == "write":
        return f"pyautogui.write(message={deed.text!r})"
    return f"pyautogui.{deed.type}(keys={list(deed.keys)!r})"
