"""pyautogui's functions and what their arguments mean (pyautogui 0.9.54; OSWorld, A.3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from omnidata.pyautogui.values import LARGEST, Unresolved, Value

Kind = Literal[
    "move", "move_by", "click", "drag", "drag_by", "mouse_down", "mouse_up", "scroll", "hscroll",
    "write", "press", "key_down", "key_up", "hotkey", "sleep", "wait", "terminate",
]  # fmt: skip
Button = Literal["left", "middle", "right", ""]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function of pyautogui, `time` or OpenCUA's `computer`.

    Numbers are as the text has them. Whether places are pixels or shares of the screen is the
    dataset's to say: the functions have the same names in either.

    Attributes:
        kind: what it does; several functions do the same.
        name: the function as it was called, without its module.
        raw: the statement's text.
        x, y: where; for `move_by` and `drag_by` how far. None where the text leaves it out, which
            means the pointer's place.
        tag: the mark that stands for the place ("tag_3"), whether or not its place is known.
        button: of a click, a drag, `mouse_down` or `mouse_up`; else empty.
        times: how often a click or a key is repeated, at least 1.
        amount: how far a wheel turns; above 0 is up, or right for `hscroll`.
        text: what `write` types; None where it lists keys instead.
        keys: the keys of `press`, `hotkey`, `key_down`, `key_up`, or of a `write` that lists them.
        seconds: how long `sleep` lasts; None for the others, and for `wait` where not said.
        status: what `terminate` reports: "success", "failure"; may be empty.
    """

    kind: Kind
    name: str
    raw: str
    x: float | None = None
    y: float | None = None
    tag: str = ""
    button: Button = ""
    times: int = 1
    amount: float = 0
    text: str | None = None
    keys: tuple[str, ...] = ()
    seconds: float | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """A statement whose effect cannot be told without running it, which nobody does here.

    Attributes:
        raw: its text.
        why: what stands in the way.
    """

    raw: str
    why: str


@dataclass(frozen=True, slots=True)
class _Function:
    kind: Kind
    parameters: tuple[str, ...]
    button: Button = ""
    times: int = 1


_PLACE: Final = ("x", "y")
_MOVE: Final = ("duration", "tween", "logScreenshot", "_pause")
_CLICKED: Final = (*_PLACE, "interval", "button", *_MOVE)
_ONE_BUTTON: Final = (*_PLACE, "interval", *_MOVE)
_PRESSED: Final = (*_PLACE, "button", *_MOVE)
_DRAGGED: Final = ("duration", "tween", "button", "logScreenshot", "_pause", "mouseDownUp")
_WHEEL: Final = ("clicks", *_PLACE, "logScreenshot", "_pause")
_KEY: Final = ("key", "logScreenshot", "_pause")
_TYPED: Final = ("message", "interval", "logScreenshot", "_pause")
_OFFSET: Final = ("xOffset", "yOffset")

_MOUSE: Final[Mapping[str, _Function]] = {
    "moveTo": _Function("move", (*_PLACE, *_MOVE)),
    **dict.fromkeys(("move", "moveRel"), _Function("move_by", (*_OFFSET, *_MOVE))),
    "click": _Function("click", (*_PLACE, "clicks", *_CLICKED[2:]), "left"),
    "leftClick": _Function("click", _ONE_BUTTON, "left"),
    "rightClick": _Function("click", _ONE_BUTTON, "right"),
    "middleClick": _Function("click", _ONE_BUTTON, "middle"),
    "doubleClick": _Function("click", _CLICKED, "left", 2),
    "tripleClick": _Function("click", _CLICKED, "left", 3),
    "dragTo": _Function("drag", (*_PLACE, *_DRAGGED), "left"),
    **dict.fromkeys(("drag", "dragRel"), _Function("drag_by", (*_OFFSET, *_DRAGGED), "left")),
    "mouseDown": _Function("mouse_down", _PRESSED, "left"),
    "mouseUp": _Function("mouse_up", _PRESSED, "left"),
    **dict.fromkeys(("scroll", "vscroll"), _Function("scroll", _WHEEL)),
    "hscroll": _Function("hscroll", _WHEEL),
}
_KEYBOARD: Final[Mapping[str, _Function]] = {
    **dict.fromkeys(("write", "typewrite"), _Function("write", _TYPED)),
    "press": _Function("press", ("keys", "presses", "interval", "logScreenshot", "_pause")),
    "keyDown": _Function("key_down", _KEY),
    "keyUp": _Function("key_up", _KEY),
    "hotkey": _Function("hotkey", ()),
}
FUNCTIONS: Final[Mapping[str, Mapping[str, _Function]]] = {
    "pyautogui": {**_MOUSE, **_KEYBOARD, "sleep": _Function("sleep", ("seconds",))},
    "time": {"sleep": _Function("sleep", ("secs",))},
    "computer": {
        **dict.fromkeys(("triple_click", "tripleClick"), _MOUSE["tripleClick"]),
        "wait": _Function("wait", ("seconds",)),
        "terminate": _Function("terminate", ("status", "answer")),
    },
}
"""Module -> its functions that can be read: pyautogui's, `time`'s, and OpenCUA's `computer`."""

_RENAMED: Final[Mapping[str, str]] = {
    "xOffset": "x", "yOffset": "y", "clicks": "times", "presses": "times", "message": "text",
    "key": "keys", "secs": "seconds",
}  # fmt: skip
_BUTTONS: Final[Mapping[Value, Button]] = {
    "left": "left", "primary": "left", 1: "left", "middle": "middle", 2: "middle",
    "right": "right", "secondary": "right", 3: "right",
}  # fmt: skip
_MOST_TIMES: Final = 1000


def bind(
    module: str,
    name: str,
    given: Sequence[Value],
    named: Mapping[str, Value],
    *,
    raw: str,
    tag: str,
) -> Call:
    """The call of a function with arguments whose values are known.

    Args:
        module: one of `FUNCTIONS`.
        name: a function's name.
        given: positional arguments.
        named: keyword arguments.
        raw: the statement's text.
        tag: the mark that stands for the place.

    Raises:
        Unresolved: there is no such function, or it does not take these arguments.

    Examples:
        >>> bind("pyautogui", "rightClick", [(10, 20)], {}, raw="", tag="").button
        'right'
    """
    function = FUNCTIONS[module].get(name)
    if function is None:
        raise Unresolved(f"{module}.{name:.40} is no function that is read here")
    if function.kind == "hotkey":
        arguments = _hotkey(given, named)
    else:
        arguments = _arguments(function, name, given, named)
    wheel = function.kind in ("scroll", "hscroll")
    return Call(
        kind=function.kind,
        name=name,
        raw=raw,
        x=_number(arguments.get("x"), "x"),
        y=_number(arguments.get("y"), "y"),
        tag=tag,
        button=_button(arguments.get("button", function.button)),
        times=1 if wheel else _times(arguments.get("times", function.times)),
        amount=_amount(arguments.get("times")) if wheel else 0,
        text=_text(function.kind, arguments),
        keys=_keys(function.kind, arguments),
        seconds=_number(arguments.get("seconds"), "seconds"),
        status=_status(arguments.get("status", "")),
    )


def _arguments(
    function: _Function, name: str, given: Sequence[Value], named: Mapping[str, Value]
) -> dict[str, Value]:
    """Arguments by their name here; a place in one tuple is two of them."""
    parameters = function.parameters
    found: dict[str, Value] = {}
    for key, value in [*_spread(parameters, given, name), *named.items()]:
        own = _RENAMED.get(key, key)
        if key not in parameters:
            raise Unresolved(f"{name} takes no {key:.40}")
        if own in found:
            raise Unresolved(f"{name} has {key:.40} twice")
        found[own] = value
    place = found.get("x")
    if isinstance(place, tuple):
        if len(place) != 2 or found.get("y") is not None:
            raise Unresolved(f"the place of {name} is no pair of numbers")
        found["x"], found["y"] = place
    return found


def _spread(
    parameters: tuple[str, ...], given: Sequence[Value], name: str
) -> list[tuple[str, Value]]:
    if len(given) > len(parameters):
        raise Unresolved(f"{name} has {len(given)} arguments")
    return list(zip(parameters, given, strict=False))


def _hotkey(given: Sequence[Value], named: Mapping[str, Value]) -> dict[str, Value]:
    """`hotkey("ctrl", "c")`, and the list of keys that later versions take as well."""
    rest = {key: value for key, value in named.items() if key not in ("interval", "_pause")}
    keys = tuple(given) if given else (rest.pop("keys", ()),)
    if rest:
        raise Unresolved(f"hotkey takes no {next(iter(rest)):.40}")
    if len(keys) == 1 and isinstance(keys[0], tuple):
        return {"keys": keys[0]}
    return {"keys": tuple(key if isinstance(key, str) else None for key in keys)}


def _number(value: Value, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise Unresolved(f"{name} is no number, or too large")
    return value


def _button(value: Value) -> Button:
    if value == "":
        return ""
    name = value.lower() if isinstance(value, str) else value
    if isinstance(name, bool | tuple) or name not in _BUTTONS:
        raise Unresolved("there is no such button")
    return _BUTTONS[name]


def _times(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_TIMES:
        raise Unresolved(f"repeated not once to {_MOST_TIMES} times")
    return value


def _amount(value: Value) -> float:
    amount = _number(value, "how far to scroll")
    if amount is None:
        raise Unresolved("how far to scroll is not said")
    return amount


def _text(kind: Kind, arguments: Mapping[str, Value]) -> str | None:
    value = arguments.get("text")
    if kind == "write" and not isinstance(value, str | tuple):
        raise Unresolved("there is no text to write")
    return value if isinstance(value, str) else None


def _keys(kind: Kind, arguments: Mapping[str, Value]) -> tuple[str, ...]:
    if kind not in ("press", "key_down", "key_up", "hotkey", "write"):
        return ()
    value = arguments.get("text" if kind == "write" else "keys")
    if isinstance(value, str):
        return () if kind == "write" else (value,)
    keys = tuple(key for key in value if isinstance(key, str)) if isinstance(value, tuple) else ()
    if not keys or not isinstance(value, tuple) or len(keys) != len(value):
        raise Unresolved("the keys are no names of keys")
    if len(keys) > 1 and kind in ("key_down", "key_up"):
        raise Unresolved("one key can be held at a time")
    return keys


def _status(value: Value) -> str:
    if not isinstance(value, str):
        raise Unresolved("the status is no text")
    return value
