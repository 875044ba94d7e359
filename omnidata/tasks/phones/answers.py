"""Model text -> a move on a phone, in any of three forms, which the keys of the object tell.

* The form that the task's prompt asks for: `action_type` is a name. A number is refused: the
  datasets' enums give the same numbers other meanings.
* AgentCPM-GUI's compact JSON: POINT, PRESS, TYPE, STATUS.
* Android in the Zoo's calls: ACTION and ARGS, where a click has a box from 0 to 1000.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import msgspec

from omnidata.actions import Action, Space
from omnidata.jsontext import decode, objects
from omnidata.tasks.json_answers import (
    LABELS,
    CannotReadError,
    Unread,
    named,
    read_object,
    read_pair,
)
from omnidata.tasks.phones.actions import DIRECTIONS, Kind, Move
from omnidata.tasks.phones.agentcpm import ACTS, Reading, fault_of, read_compact

Form = Literal["prompted", "agentcpm", "aitz"]
Read = Callable[[Mapping[str, Any]], tuple[Move, bool]]
"""Reads an object in the form that a prompt asks for: the move, and whether it obeys the prompt to
the letter. Its `ValueError` says why it cannot."""

_FARTHEST = 1e9


class Answer(msgspec.Struct, frozen=True):
    """A move as a model wrote it.

    Attributes:
        move: the move, its places in the unit that it names.
        form: of the answer.
        as_prompted: the whole output is one object in one of the forms, to the letter.
    """

    move: Move
    form: Form
    as_prompted: bool = False


def parse(text: str, read: Read, *, reading: Reading = "meant") -> Answer | Unread:
    """Read one model output.

    Args:
        text: the output as it came; none of it is trusted.
        read: the reader of the prompt's form.
        reading: of compact JSON. As released, it is the whole output or nothing.

    Returns:
        The move, or the reason why there is none. Never raises.

    Examples:
        >>> parse('Sure: {"POINT": [500, 250]}', read_prompted).move.touch
        (500, 250)
        >>> parse('{"action_type": 4}', read_prompted).reason
        'action_type is the number 4, not a name'
    """
    text = text.strip()
    fault = "no JSON object with an action in the text"
    try:
        whole = decode(text)
        for body in [whole] if isinstance(whole, dict) else objects(text):
            form = _form(body)
            if form is None or (form == "agentcpm" and reading == "released" and body is not whole):
                continue
            try:
                move, exact = _read(body, form, read, reading)
            except (ValueError, OverflowError, CannotReadError) as error:
                fault = str(error)
                continue
            return Answer(move, form, exact and body is whole)
    except RecursionError:
        return Unread("the JSON is nested too deeply")
    return Unread(fault)


def _form(body: Mapping[str, Any]) -> Form | None:
    if "ACTION" in body:
        return "aitz"
    if any(key in body for key in NAME_KEYS):
        return "prompted"
    return "agentcpm" if any(key in body for key in (*ACTS, "STATUS", "duration")) else None


def _read(body: Mapping[str, Any], form: Form, read: Read, reading: Reading) -> tuple[Move, bool]:
    if form == "prompted":
        return read(body)
    if form == "aitz":
        return read_call(body), True
    if fault := fault_of(body):
        raise ValueError(fault)
    return read_compact(body, reading), True


NAME_KEYS = ("action_type", "action", "type", "action_name", "operation")
"""Where an answer names its action."""


def name_of(body: Mapping[str, Any]) -> str:
    """The name of an answer's action.

    Raises:
        ValueError: there is none, or a number in its place.
    """
    key = next(key for key in NAME_KEYS if key in body)
    name = body[key]
    if not isinstance(name, str) or not name.strip() or name.strip().lstrip("-").isdigit():
        kind = "number " if not isinstance(name, bool) and isinstance(name, int | float) else ""
        raise ValueError(f"{key} is the {kind or 'value '}{name!r:.40}, not a name")
    return name.strip()


def read_prompted(body: Mapping[str, Any], space: Space = "norm1000") -> tuple[Move, bool]:
    """A move by the names of the unified prompt and their aliases.

    Args:
        body: an object with one of `NAME_KEYS`.
        space: the unit of its coordinates.

    Raises:
        ValueError, OverflowError, CannotReadError: there is no such action, or its places cannot be
            read.
    """
    name = name_of(body)
    if name.lower().replace(" ", "_") in ("enter", "press_enter"):
        return Move(Kind.ENTER, space=space), dict(body) == {"action_type": "ENTER"}
    number = named(name)
    if number is None:
        raise ValueError(f"there is no action {name!r:.40}")
    label = LABELS[number]
    found = read_object({**{k: v for k, v in body.items() if k not in NAME_KEYS}, "action": number})
    if isinstance(found, Unread):
        raise ValueError(found.reason)
    start, end = (_near(pair) for pair in (found.start, found.end))
    bare = Action.of(label)
    exact = body.get("action_type") == label and _is_prompted(body, label)
    if bare.kind == "swipe":
        return Move(Kind.SWIPE, start, end, bare.direction, space=space), exact
    if bare.kind == "type":
        return Move(Kind.TYPE, text=found.text or "", space=space), exact
    return Move(_KINDS[label], start, start, space=space), exact


_KINDS: Mapping[str, Kind] = {
    "NONE": Kind.WAIT,
    "TAP": Kind.GESTURE,
    "DOUBLE_TAP": Kind.DOUBLE_TAP,
    "LONG_PRESS": Kind.LONG_PRESS,
    "BACK": Kind.BACK,
    "HOME": Kind.HOME,
    "TASK_COMPLETE": Kind.COMPLETE,
    "TASK_IMPOSSIBLE": Kind.IMPOSSIBLE,
}


def _near(pair: tuple[float, float] | None) -> tuple[float, float] | None:
    return pair if pair and max(map(abs, pair)) <= _FARTHEST else None


def _is_prompted(body: Mapping[str, Any], label: str) -> bool:
    """Whether an object has exactly the keys and types of the prompt's table."""
    keys: tuple[str, ...] = ()
    if label in ("TAP", "LONG_PRESS"):
        keys = ("coordinate",)
    elif label.startswith("SWIPE"):
        keys = ("start_coordinate", "end_coordinate")
    elif label == "INPUT":
        keys = ("text",)
    if body.keys() != {"action_type", *keys}:
        return False
    return all(isinstance(body[key], str) if key == "text" else _is_pair(body[key]) for key in keys)


def _is_pair(value: object) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    return all(
        isinstance(n, int | float) and not isinstance(n, bool) and abs(n) <= _FARTHEST
        for n in value
    )


def read_call(body: Mapping[str, Any]) -> Move:
    """A move by Android in the Zoo's calls, as its evaluator reads their names.

    Args:
        body: an object with ACTION, and ARGS where the call has arguments.

    Raises:
        ValueError: there is no such call, or it lacks what it is about.

    Examples:
        >>> read_call({"ACTION": "scroll", "ARGS": {"direction": "down"}}).direction
        'down'
        >>> read_call({"ACTION": "click_element", "ARGS": {"bbox": [0, 1, 2, 3]}}).box
        (0, 1, 2, 3)
    """
    name, given = body["ACTION"], body.get("ARGS")
    args: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    if not isinstance(name, str):
        raise ValueError("ACTION is no text")
    name = name.lower()
    if "click" in name:
        return _click(args)
    if "scroll" in name:
        direction = next((d for d in DIRECTIONS if d == args.get("direction")), None)
        return Move(Kind.SWIPE, direction=direction, space="norm1000")
    if name == "input" or "type" in name:
        text = args.get("text", "")
        if not isinstance(text, str):
            raise ValueError("the text is none")
        return Move(Kind.TYPE, text=text, space="norm1000")
    if "press" in name:
        return _pressed(name, args)
    if "stop" in name:
        failed = args.get("task_status") == "failure"
        return Move(Kind.IMPOSSIBLE if failed else Kind.COMPLETE, space="norm1000")
    raise ValueError(f"there is no call {name!r:.40}")


def _pressed(name: str, args: Mapping[str, Any]) -> Move:
    """A press by the word behind the first underscore, or a long one of an element."""
    button = name.split("_")[1] if "_" in name else ""
    if not button:
        raise ValueError(f"{name!r:.40} names no button")
    if "long" in name:
        return replace(_click(args), kind=Kind.LONG_PRESS)
    if button in ("enter", "home", "back"):
        return Move(Kind(button), space="norm1000")
    return Move(Kind.BUTTON, text=button, space="norm1000")


def _click(args: Mapping[str, Any]) -> Move:
    """A click on a box, on an element by its number, or on nothing in particular."""
    element = _element(args.get("idx"))
    value = args.get("bbox")
    if value is None:
        return Move(Kind.GESTURE, element=element, space="norm1000")
    low = read_pair(value[:2]) if isinstance(value, list) else None
    high = read_pair(value[2:4]) if isinstance(value, list) else None
    if not low or not high or not _near(low) or not _near(high):
        raise ValueError("bbox is not four numbers")
    middle = (low[0] + high[0]) / 2, (low[1] + high[1]) / 2
    box = (*low, *high)
    return Move(Kind.GESTURE, middle, middle, box=box, element=element, space="norm1000")


def _element(value: object) -> int | None:
    """An element's number, which may be written as a text; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None
