"""Read an action from a JSON object, with the keys and aliases of the released OmniGUI evaluator.

Several tasks read answers this way, whatever names their prompts use. The first key with a usable
value wins. Numbers keep their fraction; rules that truncate do so themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from omnidata.actions import NUMBERS

Number = int | float
Pair = tuple[Number, Number]
LABELS: Final[Mapping[int, str]] = {number: label for label, number in NUMBERS.items()}


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An action as the model wrote it.

    Attributes:
        kind: -1..11 (Table 2); a bool if the model wrote true or false, which count as 1 and 0.
        start: the point, or the start of a swipe, in the model's unit; None if absent.
        end: the end of a swipe; None if absent.
        text: the text to type; None if absent.
        as_prompted: whether the whole output is one JSON object in exactly the prompt's form.
    """

    kind: int
    start: Pair | None = None
    end: Pair | None = None
    text: str | None = None
    as_prompted: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the action as the prompt's JSON object."""
        body: dict[str, Any] = {"action_type": self.kind}
        if self.start is not None:
            body["start_coordinate" if 3 <= self.kind <= 6 else "coordinate"] = self.start
        if self.end is not None:
            body["end_coordinate"] = self.end
        if self.text is not None:
            body["text"] = self.text
        return body


class ParseFailure(msgspec.Struct, frozen=True):
    """The reason why a text contains no action."""

    reason: str


NO_ACTION: Final = ParseFailure("the JSON names no known action and no coordinate")


class CannotReadError(Exception):
    """The released evaluator would raise an error."""


_NAMES: Mapping[int, str] = {
    -1: "none wait waiting idle no_action",
    0: "tap click single_tap single_click touch press",
    1: "double_tap double_click doubletap doubleclick",
    2: "long_press longpress long_click longclick hold",
    3: "swipe_up scroll_up swipeup scrollup",
    4: "swipe_down scroll_down swipedown scrolldown",
    5: "swipe_left scroll_left swipeleft scrollleft",
    6: "swipe_right scroll_right swiperight scrollright",
    7: "input type text enter_text input_text write",
    8: "back go_back press_back navigate_back",
    9: "home go_home press_home",
    10: "task_complete complete done finish finished success",
    11: "task_impossible impossible cannot_complete failed failure",
}
_SPACED = frozenset(
    {"no_action", "double_tap", "double_click", "long_press", "long_click"}
    | {f"{move}_{way}" for move in ("swipe", "scroll") for way in ("up", "down", "left", "right")}
)
"""Names that are known with a blank, too: with stray underscores they are found under that."""
ALIASES: Mapping[str, int] = {
    **{name: number for number, names in _NAMES.items() for name in names.split()},
    **{
        name.replace("_", " "): number
        for number, names in _NAMES.items()
        for name in names.split()
        if name in _SPACED
    },
    **{str(number): number for number in _NAMES},
}
"""Action names that the released evaluator knows, lower case, and its numbers as words."""


def action_number(name: str) -> int | None:
    """Return the number of an action's name; None for names unknown to the release.

    Examples:
        >>> [action_number(name) for name in (" LongPress ", "LONG _PRESS", "go-back")]
        [2, 2, None]
    """
    name = name.lower().strip()
    for form in (name, name.replace("_", ""), name.replace(" ", "_")):
        if (number := ALIASES.get(form)) is not None:
            return number
    return None


_ACTION_KEYS = (
    "action_type",
    "action",
    "type",
    "action_name",
    "actionType",
    "actiontype",
    "operation",
)
_POINT_KEYS = (
    "coordinate", "coordinates", "position", "point", "xy", "pos", "location", "touch_point",
    "click_point",
)  # fmt: skip
_START_KEYS = (
    "start_coordinate", "startCoordinate", "start", "from", "from_coordinate", "touch",
    "touch_point", "coordinate", "coordinates", "position", "point",
)  # fmt: skip
_END_KEYS = (
    "end_coordinate", "endCoordinate", "end", "to", "to_coordinate", "lift", "lift_point",
    "coordinate2", "target",
)  # fmt: skip
_X_KEYS = ("x", "X", "pos_x", "posX")
_Y_KEYS = ("y", "Y", "pos_y", "posY")
_TEXT_KEYS = ("text", "input_text", "inputText", "content", "value", "string", "message")
_CONFIDENCE_KEYS = ("confidence", "score", "probability")
TRIGGERS = (*_ACTION_KEYS, *_POINT_KEYS)
_POINT_SET, _TEXT_SET = frozenset(_POINT_KEYS), frozenset(_TEXT_KEYS)
_XY_SET = frozenset(_X_KEYS + _Y_KEYS)
_NUMERIC_SET = frozenset(("duration", *_CONFIDENCE_KEYS))


def read_object(body: dict[str, Any]) -> Answer | ParseFailure:
    """Return the action of a JSON object; without a known action, any coordinate makes it a TAP.

    Raises:
        CannotReadError, OverflowError: the released evaluator would raise an error.

    Examples:
        >>> read_object({"action": "press", "position": "12, 13.5"})
        Answer(kind=0, start=(12.0, 13.5), end=None, text=None, as_prompted=False)
    """
    kind = _kind(body)
    if kind is None:
        if _POINT_SET.isdisjoint(body):
            return NO_ACTION
        kind = 0
    elif len(body) == 1:
        return Answer(kind)
    keys = body.keys()
    separate = None if _XY_SET.isdisjoint(keys) else body
    end = None
    if 3 <= kind <= 6:
        start = _first_pair(body, _START_KEYS) or _separate_pair(separate)
        end = _first_pair(body, _END_KEYS) or _separate_pair(separate)
    else:
        found = None if _POINT_SET.isdisjoint(keys) else _first_pair(body, _POINT_KEYS)
        start = found or _separate_pair(separate)
    text = None if _TEXT_SET.isdisjoint(keys) else _text(body)
    if not _NUMERIC_SET.isdisjoint(keys):
        _check_numeric(body)
    return Answer(kind, start, end, text)


def _kind(body: Mapping[str, Any]) -> int | None:
    for key in _ACTION_KEYS:
        value = body.get(key)
        if value is None:
            continue
        if isinstance(value, str):
            number = action_number(value)
            if number is not None:
                return number
            continue
        if isinstance(value, float):
            if value != value:
                raise CannotReadError(f'"{key}" is NaN')
            value = int(value)  # truncates; an infinite one overflows
        if isinstance(value, int) and -1 <= value <= 11:
            return value
    return None


def _number(value: Any) -> Number:
    if type(value) is int:
        if -(1 << 53) < value < (1 << 53):
            return value
        return int(float(value))
    number = float(value)
    int(number)  # NaN is a ValueError, infinity an OverflowError
    return number


_BETWEEN = re.compile(r"[,\s]+")


def read_pair(value: Any) -> Pair | None:
    """Return two coordinates from a list, an object with x and y, or a text; None without them.

    Examples:
        >>> read_pair([389, 511, 600, 700]), read_pair("389, 511"), read_pair("[389, 511]")
        ((389, 511), (389.0, 511.0), None)
    """
    try:
        if isinstance(value, list):
            return (_number(value[0]), _number(value[1])) if len(value) >= 2 else None
        if isinstance(value, dict):
            return (
                (_number(value["x"]), _number(value["y"])) if {"x", "y"} <= value.keys() else None
            )
        if isinstance(value, str):
            words = _BETWEEN.split(value.strip())
            return (_number(words[0]), _number(words[1])) if len(words) >= 2 else None
    except (ValueError, TypeError):
        pass
    return None


def _first_pair(body: Mapping[str, Any], keys: tuple[str, ...]) -> Pair | None:
    for key in keys:
        if key in body and (found := read_pair(body[key])) is not None:
            return found
    return None


def _separate_pair(body: Mapping[str, Any] | None) -> Pair | None:
    if body is None:
        return None
    x, y = _first_number(body, _X_KEYS), _first_number(body, _Y_KEYS)
    return None if x is None or y is None else (x, y)


def _first_number(body: Mapping[str, Any], keys: tuple[str, ...]) -> Number | None:
    for key in keys:
        if key in body:
            with suppress(ValueError, TypeError):
                return _number(body[key])
    return None


def _text(body: Mapping[str, Any]) -> str | None:
    for key in _TEXT_KEYS:
        value = body.get(key)
        if value is not None:
            return str(value)
    return None


def _check_numeric(body: Mapping[str, Any]) -> None:
    with suppress(ValueError, TypeError):
        int(body.get("duration") or 0)
    for key in _CONFIDENCE_KEYS:
        if body.get(key) is not None:
            with suppress(ValueError, TypeError):
                float(body[key])
            return
