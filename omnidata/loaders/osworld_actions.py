"""What the actions of OSWorld's rollouts mean: `pyautogui`, `computer_13`, and the special ones.

Nothing in an action is executed. Places are pixels of the screen (paper, Appendix A.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from omnidata.jsontext import BROKEN, decode
from omnidata.loaders.place import short
from omnidata.pyautogui import WORDS, Call, Code, read_turn
from omnidata.pyautogui.calls import bind
from omnidata.pyautogui.values import Unresolved, Value

Flag = Literal["action-alias", "action-foreign", "action-space-differs"]

_ALIASES: Final[Mapping[str, str]] = {"MOUSE_MOVE": "MOVE_TO", "TYPE": "TYPING", "KEY": "PRESS"}
"""What the release's own prompt calls them in its examples."""

_CLICK_TYPES: Final[Mapping[str, tuple[str, int]]] = {
    "WHEEL_UP": ("vscroll", 1),
    "WHEEL_DOWN": ("vscroll", -1),
}
_FUNCTIONS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "MOVE_TO": ("moveTo", {"x": "x", "y": "y"}),
    "CLICK": ("click", {"button": "button", "x": "x", "y": "y", "num_clicks": "clicks"}),
    "MOUSE_DOWN": ("mouseDown", {"button": "button"}),
    "MOUSE_UP": ("mouseUp", {"button": "button"}),
    "RIGHT_CLICK": ("rightClick", {"x": "x", "y": "y"}),
    "DOUBLE_CLICK": ("doubleClick", {"x": "x", "y": "y"}),
    "DRAG_TO": ("dragTo", {"x": "x", "y": "y"}),
    "TYPING": ("write", {"text": "message"}),
    "PRESS": ("press", {"key": "keys"}),
    "KEY_DOWN": ("keyDown", {"key": "key"}),
    "KEY_UP": ("keyUp", {"key": "key"}),
    "HOTKEY": ("hotkey", {"keys": "keys"}),
}
"""Of each type of `computer_13` (Table 6): the function that the release runs for it, and what its
parameters are called there. SCROLL is two functions."""

_NEEDED: Final = {"MOVE_TO": ("x", "y"), "DRAG_TO": ("x", "y"), "SCROLL": ("dx", "dy")}
_DEEPEST: Final = 20


@dataclass(slots=True)
class Reading:
    """The calls of some actions, and what is odd about them.

    Attributes:
        calls: in order.
        flags: kind of oddity -> what it is.
    """

    calls: list[Call | Code] = field(default_factory=list)
    flags: dict[Flag, str] = field(default_factory=dict)


def calls_of(source: Mapping[str, Any]) -> Reading:
    """What a step's agent did, from the step's `source`.

    Args:
        source: of a step of OSWorld; it may have been through a Parquet repository.

    Examples:
        >>> row = {"action": {"action_type": "SCROLL", "dx": 0, "dy": -3}}
        >>> [call.amount for call in calls_of({"rows": [row]}).calls]
        [-3]
    """
    reading = Reading()
    space = source.get("action_space", "")
    for row in source.get("rows", ()):
        for action in _actions(row):
            _read(action, space, reading, 0)
    return reading


def _actions(row: Mapping[str, Any]) -> Iterator[Any]:
    """The line's action, or the actions of a fork that lists them."""
    if "action" in row:
        yield row["action"]
    elif isinstance(row.get("actions"), list):
        yield from row["actions"]


def _read(action: object, space: str, reading: Reading, depth: int) -> None:
    if action is None or action == "":
        return
    if isinstance(action, str):
        _read_text(action, space, reading, depth)
    elif isinstance(action, Mapping):
        _read_object(action, space, reading)
    elif isinstance(action, list) and depth < _DEEPEST:
        for one in action:
            _read(one, space, reading, depth + 1)
    elif isinstance(action, int | float) and not isinstance(action, bool):
        reading.flags["action-foreign"] = f"the action is the number {short(action)}"
        reading.calls.append(Code(short(action), "a number of another dataset's actions"))
    else:
        reading.calls.append(Code(short(action), f"a {type(action).__name__} is no action"))


def _read_text(text: str, space: str, reading: Reading, depth: int) -> None:
    """Code, a special word, or code that ends with one; in `computer_13` an object as text."""
    if space == "computer_13" and text.strip() not in WORDS:
        value = _decoded(text)
        if isinstance(value, dict | list) and depth < _DEEPEST:
            _read(value, space, reading, depth + 1)
        else:
            reading.calls.append(Code(text, "no action of computer_13"))
        return
    reading.calls += read_turn(text)


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except RecursionError:
        return BROKEN


def _read_object(action: Mapping[str, Any], space: str, reading: Reading) -> None:
    kind = action.get("action_type")
    for name in ("command", "code"):  # of agents that keep a tool's call beside what it ran
        if "action_type" not in action and isinstance(action.get(name), str):
            _read_text(action[name], "pyautogui", reading, _DEEPEST)
            return
    if not isinstance(kind, str):
        if kind is not None:
            reading.flags["action-foreign"] = f"action_type is {short(kind)}"
        reading.calls.append(Code(short(action), "action_type is no name of computer_13"))
        return
    if space == "pyautogui":
        reading.flags["action-space-differs"] = "an action of computer_13 among those of pyautogui"
    _read_type(kind, action, reading)


def _read_type(kind: str, action: Mapping[str, Any], reading: Reading) -> None:
    name = kind.strip().upper()
    given = dict(_parameters(action))
    odd = name != kind or name in _ALIASES or "click_type" in given
    if odd:
        reading.flags["action-alias"] = f"action_type {short(kind)} as in the prompt's examples"
    try:
        reading.calls += _bound(_ALIASES.get(name, name), name == "KEY", given, short(action))
    except Unresolved as error:
        reading.calls.append(Code(short(action), str(error)))


def _parameters(action: Mapping[str, Any]) -> Mapping[str, Any]:
    """Beside the type, or nested; what is null is left out, as the release leaves it out."""
    nested = action.get("parameters")
    flat = {key: value for key, value in action.items() if key not in ("action_type", "parameters")}
    found = {**flat, **nested} if isinstance(nested, Mapping) else flat
    return {key: value for key, value in found.items() if value is not None}


def _bound(name: str, is_key: bool, given: dict[str, Any], raw: str) -> list[Call]:
    if name in WORDS:
        return [WORDS[name]]
    for needed in _NEEDED.get(name, ()):
        if needed not in given:
            raise Unresolved(f"{name} lacks {needed}")
    if name == "SCROLL":
        turns = (("hscroll", given["dx"]), ("vscroll", given["dy"]))
        return [_call(function, {"clicks": by}, raw) for function, by in turns if by != 0]
    click_type = given.get("click_type")
    wheel = _CLICK_TYPES.get(click_type.upper()) if isinstance(click_type, str) else None
    if wheel and name == "CLICK":
        return [_call(wheel[0], {"clicks": wheel[1]}, raw)]
    if name == "CLICK" and "click_type" in given:
        given["button"] = given.pop("click_type")
    if is_key and isinstance(given.get("key"), str) and "+" in given["key"].strip("+"):
        name, given = "HOTKEY", {"keys": given["key"].split("+")}
    if name not in _FUNCTIONS:
        raise Unresolved(f"computer_13 has no type {name:.40}")
    function, parameters = _FUNCTIONS[name]
    unknown = given.keys() - parameters.keys()
    if unknown:
        raise Unresolved(f"{name} takes no {min(map(str, unknown)):.40}")
    return [_call(function, {parameters[key]: given[key] for key in given}, raw)]


def _call(function: str, given: Mapping[str, Any], raw: str) -> Call:
    return bind(
        "pyautogui", function, (), {key: _value(given[key]) for key in given}, raw=raw, tag=""
    )


def _value(value: object) -> Value:
    if isinstance(value, list):
        return tuple(_scalar(item) for item in value)
    return _scalar(value)


def _scalar(value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise Unresolved(f"a {type(value).__name__} is no parameter")
