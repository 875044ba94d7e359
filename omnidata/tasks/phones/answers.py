"""Read an action on a phone from a model's text, in any of three forms, known by their keys.

A dataset whose own agents write commands in place of JSON reads those first.

* The form that the task's prompt asks for: `action_type` is a name. A number is refused: the
  datasets' enums give the same numbers other meanings.
* AgentCPM-GUI's compact JSON: POINT, PRESS, TYPE, STATUS.
* Android in the Zoo's calls: ACTION and ARGS, where a click has a box from 0 to 1000.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from omnidata.actions import Action, Box, Point, Space
from omnidata.dialects import UnreadError
from omnidata.dialects.agentcpm import ACTS, Reading, fault_of, read_compact
from omnidata.jsontext import decode, is_coordinate, is_number, objects
from omnidata.tasks.json_answers import (
    LABELS,
    CannotReadError,
    ParseFailure,
    action_number,
    read_object,
    read_pair,
)
from omnidata.tasks.phones.actions import (
    BACK,
    COMPLETE,
    ENTER,
    HOME,
    IMPOSSIBLE,
    RECENTS,
    STOP,
    WAIT,
    as_direction,
    middle,
    press,
)

Form = Literal["prompted", "agentcpm", "aitz", "command"]
Read = Callable[[Mapping[str, Any]], tuple[Action, bool]]
"""Reads an object in the form that a prompt asks for: the action, and whether it obeys the prompt
to the letter. Its `ValueError` says why it cannot."""
Command = Callable[[str], Action | None]
"""Reads a whole output as a command of a dataset's own, its places from 0 to 1000; None for what is
none."""

_LONGEST_COMMAND = 100_000


class Answer(msgspec.Struct, frozen=True):
    """An action as a model wrote it.

    Attributes:
        action: its places in the unit of the form.
        form: of the answer.
        as_prompted: the whole output is one object in one of the forms, to the letter.
    """

    action: Action
    form: Form
    as_prompted: bool = False


def no_command(text: str) -> None:
    """Return None: the dataset has no commands of its own."""


def parse(
    text: str, read: Read, *, as_released: Form | None = None, command: Command = no_command
) -> Answer:
    """Read one model output.

    Args:
        text: the output as it came; none of it is trusted.
        read: the reader of the prompt's form.
        as_released: the form that is read as its own released code does; others are read as they
            are meant. Compact JSON is then the whole output or nothing.
        command: the reader of the dataset's own commands.

    Raises:
        UnreadError: there is no action; the message says why.

    Examples:
        >>> parse('Sure: {"POINT": [500, 250]}', read_prompted).action.start
        (Point(x=500, y=250, space='norm1000'),)
    """
    text = text.strip()
    if len(text) <= _LONGEST_COMMAND and (ordered := command(text)):
        return Answer(ordered, "command", as_prompted=True)
    fault = "no JSON object with an action in the text"
    try:
        whole = decode(text)
        for body in [whole] if isinstance(whole, dict) else objects(text):
            form = _form(body)
            if form is None:
                continue
            reading: Reading = "released" if form == as_released else "meant"
            if form == "agentcpm" and reading == "released" and body is not whole:
                continue
            try:
                action, exact = _read(body, form, read, reading)
            except (ValueError, OverflowError, CannotReadError) as error:
                fault = str(error)
                continue
            return Answer(action, form, exact and body is whole)
    except RecursionError:
        fault = "the JSON is nested too deeply"
    raise UnreadError(fault)


def _form(body: Mapping[str, Any]) -> Form | None:
    if "ACTION" in body:
        return "aitz"
    if any(key in body for key in NAME_KEYS):
        return "prompted"
    return "agentcpm" if any(key in body for key in (*ACTS, "STATUS", "duration")) else None


def _read(body: Mapping[str, Any], form: Form, read: Read, reading: Reading) -> tuple[Action, bool]:
    if form == "prompted":
        return read(body)
    if form == "aitz":
        return read_call(body, reading), True
    if fault := fault_of(body):
        raise ValueError(fault)
    bare = replace(read_compact(body, reading), seconds=None)
    return _WORDED.get(bare, bare), True


_WORDED: Mapping[Action, Action] = {
    **{replace(action, words=None): action for action in (ENTER, RECENTS, WAIT, STOP)},
    Action("ask"): STOP,
}
"""What compact JSON says in the words of phones, where calling the user ends the episode."""

NAME_KEYS = ("action_type", "action", "type", "action_name", "operation")
"""Where an answer names its action."""


def name_of(body: Mapping[str, Any]) -> str:
    """Return the name of an answer's action.

    Raises:
        ValueError: there is none, or a number in its place.
    """
    key = next(key for key in NAME_KEYS if key in body)
    name = body[key]
    if not isinstance(name, str) or not name.strip() or name.strip().lstrip("-").isdigit():
        kind = "number " if is_number(name) else ""
        raise ValueError(f"{key} is the {kind or 'value '}{name!r:.40}, not a name")
    return name.strip()


def read_prompted(body: Mapping[str, Any], space: Space = "norm1000") -> tuple[Action, bool]:
    """Return an action by the names of the unified prompt and their aliases.

    Args:
        body: an object with one of `NAME_KEYS`.
        space: the unit of its coordinates.

    Raises:
        ValueError, OverflowError, CannotReadError: there is no such action, or its places cannot be
            read.
    """
    name = name_of(body)
    if name.lower().replace(" ", "_") in ("enter", "press_enter"):
        return ENTER, dict(body) == {"action_type": "ENTER"}
    number = action_number(name)
    if number is None:
        raise ValueError(f"there is no action {name!r:.40}")
    label = LABELS[number]
    found = read_object({**{k: v for k, v in body.items() if k not in NAME_KEYS}, "action": number})
    if isinstance(found, ParseFailure):
        raise ValueError(found.reason)
    exact = body.get("action_type") == label and _is_prompted(body, label)
    bare = WAIT if label == "NONE" else Action.of(label)
    if bare.kind == "type":
        return replace(bare, text=found.text or ""), exact
    start, end = (
        (Point(*pair, space),) if pair and all(map(is_coordinate, pair)) else ()
        for pair in (found.start, found.end)
    )
    return replace(bare, start=start, end=end), exact


def _is_prompted(body: Mapping[str, Any], label: str) -> bool:
    keys: tuple[str, ...] = ()
    if label in ("TAP", "LONG_PRESS"):
        keys = ("coordinate",)
    elif label.startswith("SWIPE"):
        keys = ("start_coordinate", "end_coordinate")
    elif label == "INPUT":
        keys = ("text",)
    if body.keys() != {"action_type", *keys}:
        return False
    if label == "INPUT":
        return isinstance(body["text"], str)
    values = [body[key] for key in keys]
    return all(isinstance(pair, list) and len(pair) == 2 for pair in values) and all(
        is_coordinate(side) for pair in values for side in pair
    )


def read_call(body: Mapping[str, Any], reading: Reading = "meant") -> Action:
    """Return an action by Android in the Zoo's calls, as its evaluator reads their names.

    As released, the box of every call is looked at, and the evaluation stops at one that is not of
    numbers; any name with "press" and a button in it presses that button, if there is one.

    Args:
        body: an object with ACTION, and ARGS where the call has arguments.
        reading: whose.

    Raises:
        ValueError: there is no such call, or it lacks what it is about.

    Examples:
        >>> read_call({"ACTION": "scroll", "ARGS": {"direction": "down"}}).direction
        'down'
        >>> read_call({"ACTION": "click_element", "ARGS": {"bbox": [0, 1, 2, 3]}}).start
        (Box(left=0, top=1, right=2, bottom=3, space='norm1000'),)
    """
    name, given = body["ACTION"], body.get("ARGS")
    args: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    if not isinstance(name, str):
        raise ValueError("ACTION is no text")
    name = name.lower()
    if "click" in name or reading == "released":
        click = _click(args, reading)
        if "click" in name:
            return click
    if "scroll" in name:
        return Action("swipe", direction=as_direction(args.get("direction")))
    if name == "input" or "type" in name:
        text = args.get("text", "")
        if not isinstance(text, str):
            raise ValueError("the text is none")
        return Action("type", text=text)
    if "press" in name:
        return _press(name, args, reading)
    if "stop" in name:
        return IMPOSSIBLE if args.get("task_status") == "failure" else COMPLETE
    raise ValueError(f"there is no call {name!r:.40}")


_BUTTONS: Mapping[str, Action] = {"enter": ENTER, "home": HOME, "back": BACK}


def _press(name: str, args: Mapping[str, Any], reading: Reading) -> Action:
    words = name.split("_")
    if len(words) < 2 or (reading == "meant" and not words[1]):
        raise ValueError(f"{name!r:.40} names no button")
    button = _BUTTONS.get(words[1])
    if "long" in name and (button is None or reading == "meant"):
        return replace(_click(args, reading), kind="long_press")
    return button or press(words[1])


def _click(args: Mapping[str, Any], reading: Reading) -> Action:
    element = _element(args.get("idx"), reading)
    value = args.get("bbox")
    if value is None:
        return Action("tap", element=element)
    sides = value[:4] if isinstance(value, list) else []
    if reading == "released" and any(isinstance(side, str) for side in sides):
        raise ValueError("a side of bbox is a text")
    low, high = read_pair(sides[:2]), read_pair(sides[2:])
    if not low or not high or not all(map(is_coordinate, (*low, *high))):
        raise ValueError("bbox is not four numbers")
    return Action("tap", (Box(*low, *high, "norm1000"),), element=element)


def _element(value: object, reading: Reading) -> int | None:
    """The release takes `true` for 1."""
    if not isinstance(value, int | float | str) or (value is True and reading == "meant"):
        return None
    try:
        return int(value) if value is not False else None
    except (ValueError, OverflowError):
        return None


# What a profile has read, as the scores of a run hold it: objects by the kinds of Android in the
# Wild, whose dual point is a "gesture".

_BARE: Mapping[str, Action] = {
    "gesture": Action("tap"),
    "swipe": Action("swipe"),
    "long_press": Action("long_press"),
    "double_tap": Action("tap", count=2),
    "type": Action("type"),
    "back": BACK,
    "home": HOME,
    "enter": ENTER,
    "recents": RECENTS,
    "button": Action("keys"),
    "open_app": Action("open_app"),
    "wait": WAIT,
    "complete": COMPLETE,
    "impossible": IMPOSSIBLE,
    "stop": STOP,
}
_KINDS = {(bare.kind, bare.count, bare.status): kind for kind, bare in _BARE.items()}


def as_dict(action: Action) -> dict[str, Any]:
    """Return an action as a JSON object, without empty parts.

    A finger that does not swipe is lifted where it touches.

    Examples:
        >>> as_dict(Action("tap", (Point(500, 250, "norm1000"),)))
        {'kind': 'gesture', 'touch': (500, 250), 'lift': (500, 250)}
    """
    touch, lift = middle(action.start), middle(action.end)
    box = action.start[0] if action.start else None
    found = {
        "kind": _KINDS[action.kind, action.count, action.status],
        "touch": touch,
        "lift": lift or (touch if action.kind in ("tap", "long_press") else None),
        "direction": action.direction,
        "text": action.text or action.app or "+".join(action.keys) or None,
        "box": (box.left, box.top, box.right, box.bottom) if isinstance(box, Box) else None,
        "element": action.element,
    }
    return {key: value for key, value in found.items() if value is not None}
