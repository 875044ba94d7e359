"""OmniBench's desktop actions: clicks, the wheel, keys, and the end (paper, Table 9).

An action is the name of a function and its arguments. Keys are in pywinauto's notation: `^` Ctrl,
`+` Shift, `%` Alt, `{ENTER}`, `{TAB 2}`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from omnidata.actions import Action, Button
from omnidata.dialects import CannotSayError, UnreadError
from omnidata.jsontext import BROKEN, decode, objects
from omnidata.tasks.json_answers import Pair, read_pair

Function = Literal["click_input", "wheel_mouse_input", "keyboard_input", ""]
BUTTONS: Final[tuple[Button, ...]] = get_args(Button)
FUNCTIONS: Final[tuple[Function, ...]] = get_args(Function)
"""The functions of actions; the empty one ends the task."""

_TRUTH: Final = {"true": True, "false": False, "1": True, "0": False}
_MOST_NOTCHES = 10**6


def read_call(function: object, args: object = None) -> Action:
    """Return the action of a function and its arguments, without its place.

    Missing arguments have pywinauto's defaults: the left button, once. Numbers and truth values may
    be texts, and the arguments a JSON text, as models write them.

    Args:
        function: one of `FUNCTIONS`, or None for the empty one.
        args: an object; None for an empty one.

    Raises:
        ValueError: there is no such function, or an argument is missing or unusable.

    Examples:
        >>> read_call("click_input", {"button": "left", "double": True}).label
        'DOUBLE_TAP'
        >>> wheel = read_call("wheel_mouse_input", {"wheel_dist": -5})
        >>> wheel.direction, wheel.amount
        ('down', 5)
        >>> read_call("").label
        'TASK_COMPLETE'
    """
    name = "" if function is None else function
    if not isinstance(name, str):
        raise ValueError(f"the function is a {type(name).__name__}")
    name = name.strip().removesuffix("()")
    if name not in FUNCTIONS:
        raise ValueError(f"there is no function {name!r:.80}")
    if not name:
        return Action("done", status="success")
    if isinstance(args, str):
        args = decode(args) if args.strip() else {}
    given = {} if args is None else args
    if given is BROKEN or not isinstance(given, Mapping):
        raise ValueError("the arguments are no object")
    if name == "click_input":
        button, double = given.get("button", "left"), given.get("double", False)
        button_name = button.strip().lower() if isinstance(button, str) else button
        if button_name not in BUTTONS:
            raise ValueError(f"button is {button!r:.80}, none of {', '.join(BUTTONS)}")
        known = isinstance(double, bool | int | str)
        is_double = _TRUTH.get(str(double).strip().lower()) if known else None
        if is_double is None:
            raise ValueError(f"double is {double!r:.80}, neither true nor false")
        return Action("tap", button=button_name, count=2 if is_double else 1)
    if name == "wheel_mouse_input":
        by = _notches(given.get("wheel_dist"))
        return Action("scroll", direction="up" if by > 0 else "down", amount=abs(by))
    keys = given.get("keys")
    if not isinstance(keys, str) or not keys:
        raise ValueError(f"keys is {keys!r:.80}, no text")
    return Action("type", text=keys)


def _notches(value: object) -> int:
    number = float("nan")
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = float("nan")
    if not 1 <= abs(number) <= _MOST_NOTCHES or number != int(number):
        try:
            text = f"{value!r:.80}"
        except ValueError:  # more digits than Python writes
            text = "a very large number"
        raise ValueError(f"wheel_dist is {text}, no whole number other than 0")
    return int(number)


def call_of(action: Action) -> tuple[Function, dict[str, Any]]:
    """Return the function and all its arguments of an action from `read_call`.

    Examples:
        >>> call_of(Action("type", text="^s"))
        ('keyboard_input', {'keys': '^s'})
    """
    if action.kind == "tap":
        return "click_input", {"button": action.button, "double": action.count > 1}
    if action.kind == "scroll":
        return "wheel_mouse_input", {"wheel_dist": notches(action)}
    return ("keyboard_input", {"keys": action.text}) if action.kind == "type" else ("", {})


def notches(action: Action) -> int:
    """Return how far a wheel turns: above 0 is up, below 0 is down."""
    amount = int(action.amount or 0)
    return -amount if action.direction == "down" else amount


def words(action: Action, target: str = "") -> str:
    """Return the wording of a past action in a prompt.

    Args:
        action: the action.
        target: its target, e.g. a control's text in quotes; empty if unknown.

    Examples:
        >>> words(Action("tap", count=2), '"Excel"')
        'click_input(button="left", double=true) on "Excel"'
        >>> words(Action("done", status="success"))
        'FINISH'
    """
    function, args = call_of(action)
    if not function:
        return "FINISH"
    given = ", ".join(f"{key}={json.dumps(args[key], ensure_ascii=False)}" for key in args)
    return f"{function}({given})" + (f" on {target}" if target else "")


# Keys in pywinauto's notation, and those of any agent.

_MODIFIERS: Final = {"ctrl": "^", "control": "^", "shift": "+", "alt": "%"}
_SPELLED: Final = {"esc": "ESC", "escape": "ESC", "pageup": "PGUP", "pagedown": "PGDN"}


def write_keys(action: Action) -> str:
    """Return the keys of an action in pywinauto's notation.

    Raises:
        CannotSayError: the action types and presses nothing.

    Examples:
        >>> write_keys(Action("hotkey", keys=("ctrl", "s")))
        '^s'
        >>> write_keys(Action("type", text="50% {a}"))
        '50{%} {{}a{}}'
    """
    if action.kind == "type":
        text = "".join(f"{{{sign}}}" if sign in "^%+~(){}" else sign for sign in action.text or "")
        return text + ("{ENTER}" if action.submit else "")
    keys = ("enter",) if action.kind == "enter" else action.keys
    if action.kind not in ("keys", "hotkey", "enter") or not keys:
        raise CannotSayError(f"keyboard_input does no {action.label}")
    if action.kind == "keys":
        return "".join(map(_write_key, keys))
    *held, last = keys
    if any(key.lower() not in _MODIFIERS for key in held):
        raise CannotSayError(f"keyboard_input holds no {'+'.join(held)}")
    return "".join(_MODIFIERS[key.lower()] for key in held) + _write_key(last)


def _write_key(key: str) -> str:
    if len(key) == 1:
        return f"{{{key}}}" if key in "^%+~(){}" else key
    return f"{{{_SPELLED.get(key.lower(), key.upper())}}}"


def read_keys(text: str) -> tuple[Action, ...]:
    """Return the actions of a text in pywinauto's notation, in order.

    Examples:
        >>> [(one.kind, one.text, one.keys) for one in read_keys("^sab{ENTER}")]
        [('hotkey', None, ('ctrl', 's')), ('type', 'ab', ()), ('keys', None, ('enter',))]
    """
    found: list[Action] = []
    held: list[str] = []
    for one in presses(text):
        if one in _HELD:
            held.append(_HELD[one])
            continue
        key = one[1:-1] if len(one) > 2 else one
        if held:
            found.append(Action("hotkey", keys=(*held, key.lower())))
            held = []
        elif len(key) == 1:
            before = found.pop().text or "" if found and found[-1].kind == "type" else ""
            found.append(Action("type", text=before + key))
        else:
            found.append(Action("keys", keys=(key.lower(),)))
    return tuple(found)


_HELD: Final = {"^": "ctrl", "+": "shift", "%": "alt"}


# Whether two texts in pywinauto's notation press the same keys.

_MOST = 1000
"""Repetitions that are written out."""

_TOKEN = re.compile(r"\{(?P<name>[^{}]+?|[{}])(?: (?P<times>\d{1,9}))?\}|(?P<plain>.)", re.DOTALL)
_SAME = {
    **dict.fromkeys(("BACKSPACE", "BKSP", "BS", "VK_BACK"), "BACK"),
    **dict.fromkeys(("DEL", "VK_DELETE"), "DELETE"),
    **dict.fromkeys(("INS", "VK_INSERT"), "INSERT"),
    **dict.fromkeys(("RETURN", "VK_RETURN"), "ENTER"),
    **dict.fromkeys(("ESCAPE", "VK_ESCAPE"), "ESC"),
    **dict.fromkeys(("VK_TAB",), "TAB"),
}
_CHARACTERS = {"SPACE": " ", "VK_SPACE": " ", "(": "(", ")": ")"}
_SIGNS = {"~": "{ENTER}", "\n": "{ENTER}", "\t": "{TAB}"}


def presses(text: str) -> list[str]:
    """Return the keys that a text presses, in order.

    `~` and a line's end are `{ENTER}`, names have one spelling, repetitions are written out, and
    characters are in Unicode NFC. A modifier is a press of its own.

    Examples:
        >>> presses("^s{enter 2}"), presses("a{SPACE}b")
        (['^', 's', '{ENTER}', '{ENTER}'], ['a', ' ', 'b'])
        >>> presses("{^}") == presses("^")
        False
    """
    found: list[str] = []
    for token in _TOKEN.finditer(unicodedata.normalize("NFC", text)):
        plain, name = token["plain"], token["name"]
        if plain is not None:
            found.append(_SIGNS.get(plain, plain))
            continue
        times = int(token["times"] or 1)
        key = _key(name)
        found += [key] * times if times <= _MOST else [f"{key} {times}"]
    return found


def _key(name: str) -> str:
    if len(name) == 1:
        return name if name.isalnum() else f"{{{name}}}"
    upper = name.upper()
    return _CHARACTERS.get(upper, f"{{{_SAME.get(upper, upper)}}}")


def same_keys(one: str, other: str) -> bool:
    """Return whether two texts press the same keys in the same order.

    Examples:
        >>> same_keys("report~", "report{ENTER}"), same_keys("report", "Report")
        (True, False)
    """
    return one == other or presses(one) == presses(other)


# Model text -> a desktop action, as OmniBench's prompt asks for it.
#
# The released environment drops seven characters before and three after if a text begins with a
# backtick, reads the rest as JSON, and ends the episode without a known Function and Status. This
# reader also takes an object anywhere in the text, and keys in any case.

STATUSES: Final = ("CONTINUE", "FINISH")
KEYS: Final = ("Status", "Observation", "Thought", "coordinates", "Function", "Args")
"""The keys of an answer to the prompt that shows the screenshot alone."""

_DROPPED = 7, 3
_FARTHEST = 1e9


class Answer(msgspec.Struct, frozen=True):
    """An action as a model wrote it.

    Attributes:
        function: one of `FUNCTIONS`, also if the arguments cannot be read.
        action: without its place; None if the arguments cannot be read.
        point: the place in the model's unit; None without a usable one.
        status: "CONTINUE", "FINISH", or empty for anything else.
        as_prompted: the whole output is one object with the prompt's keys, to the letter.
        fault: why the arguments cannot be read.
    """

    function: Function
    action: Action | None = None
    point: Pair | None = None
    status: str = ""
    as_prompted: bool = False
    fault: str = ""

    def as_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {"function": self.function, "status": self.status}
        if self.action is not None:
            body["args"] = call_of(self.action)[1]
            if self.action.kind == "scroll":
                body["args"] = {"notches": notches(self.action)}
            elif self.action.kind == "type":
                body["args"] = {"text": self.action.text}
        if self.point is not None:
            body["coordinates"] = self.point
        return body


def parse(text: str) -> Answer:
    """Read a model's output.

    Raises:
        UnreadError: there is no action; the message says why.

    Examples:
        >>> said = '{"Function": "click_input", "Args": {"button": "left"}, "coordinates": [9, 7]}'
        >>> parse(f"```json{said}```").point
        (9, 7)
    """
    text = text.strip()
    fault = "no JSON object with a Function in the text"
    try:
        whole = decode(text)
        for body in [whole] if isinstance(whole, dict) else _objects(text):
            try:
                found = read_body(body)
            except ValueError as error:
                fault = str(error)
                continue
            if found is not None:
                as_prompted = body is whole and _is_prompted(body, found)
                return msgspec.structs.replace(found, as_prompted=as_prompted)
    except RecursionError:
        fault = "the JSON is nested too deeply"
    raise UnreadError(fault)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    if text.startswith("`"):
        value = decode(text[_DROPPED[0] : -_DROPPED[1]])
        if isinstance(value, dict):
            yield value
    yield from objects(text)


def read_body(body: Mapping[str, Any]) -> Answer | None:
    """Read an object, with keys in any case; None if it names no function.

    Raises:
        ValueError: there is no such function; the message says which.
    """
    said = {key.lower().replace("_", ""): value for key, value in body.items()}
    status = said.get("status")
    status = status.strip().upper() if isinstance(status, str) else ""
    if "function" not in said and status != "FINISH":
        return None
    name = said.get("function") or ""
    if not isinstance(name, str):
        raise ValueError(f"the Function is a {type(name).__name__}")
    function = next((f for f in FUNCTIONS if f == name.strip().removesuffix("()")), None)
    if function is None:
        raise ValueError(f"there is no function {name!r:.80}")
    action, fault = None, ""
    try:
        action = read_call(function, said.get("args"))
    except (ValueError, RecursionError) as error:
        fault = str(error)
    status = status if status in STATUSES else ""
    return Answer(function, action, _point(said), status, fault=fault)


def _point(said: Mapping[str, Any]) -> Pair | None:
    value = said.get("coordinates", said.get("coordinate"))
    if isinstance(value, str):
        value = value.strip(" ()[]")
    try:
        point = read_pair(value)
    except OverflowError:  # infinite
        return None
    return point if point and all(abs(number) <= _FARTHEST for number in point) else None


def _is_prompted(body: Mapping[str, Any], found: Answer) -> bool:
    if body.keys() != set(KEYS) or found.action is None or found.status != body["Status"]:
        return False
    if body["Function"] != found.function or not isinstance(body["Args"], dict):
        return False
    ends = found.status == "FINISH"
    placed = isinstance(body["coordinates"], list) and found.point is not None
    kind = found.action.kind
    return ends == (kind == "done") and (placed or kind != "tap")
