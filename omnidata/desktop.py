"""OmniBench's desktop actions: clicks, the wheel, keys, and the end (paper, Table 9).

A call is a function's name and its arguments. The datasets' own spelling is kept wherever rows are
kept; here is what it means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from omnidata.actions import Action, Box, Primitive
from omnidata.jsontext import BROKEN, decode

Button = Literal["left", "right", "middle", "x"]
Function = Literal["click_input", "wheel_mouse_input", "keyboard_input", ""]
BUTTONS: Final[tuple[Button, ...]] = get_args(Button)
FUNCTIONS: Final[tuple[Function, ...]] = get_args(Function)
"""The functions that an action may call; the empty one says that nothing is left to do."""

_TRUTH: Final = {"true": True, "false": False, "1": True, "0": False}
_MOST_NOTCHES = 10**6


@dataclass(frozen=True, slots=True)
class Click:
    """A click of the mouse.

    Attributes:
        button: which one.
        double: twice.
    """

    button: Button = "left"
    double: bool = False


@dataclass(frozen=True, slots=True)
class Wheel:
    """A turn of the mouse's wheel.

    Attributes:
        notches: how far; above 0 is up, below 0 is down, never 0.
    """

    notches: int


@dataclass(frozen=True, slots=True)
class Keys:
    """What is typed.

    Attributes:
        text: in pywinauto's notation: `^` Ctrl, `+` Shift, `%` Alt, `{ENTER}`, `{TAB 2}`.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing more: the task is done."""


Call = Click | Wheel | Keys | Finish


def read_call(function: object, args: object = None) -> Call:
    """What a function and its arguments mean.

    Arguments that are left out have pywinauto's defaults: the left button, once. Numbers and truth
    values may be texts, and the arguments a JSON text, as models write them.

    Args:
        function: one of `FUNCTIONS`, or None for the empty one.
        args: an object; None for an empty one.

    Raises:
        ValueError: there is no such function, or an argument is missing or unusable; the message
            says which.

    Examples:
        >>> read_call("click_input", {"button": "left", "double": True})
        Click(button='left', double=True)
        >>> read_call("wheel_mouse_input", {"wheel_dist": -5})
        Wheel(notches=-5)
        >>> read_call("")
        Finish()
    """
    name = "" if function is None else function
    if not isinstance(name, str):
        raise ValueError(f"the function is a {type(name).__name__}")
    name = name.strip().removesuffix("()")
    if name not in FUNCTIONS:
        raise ValueError(f"there is no function {name!r:.80}")
    if not name:
        return Finish()
    given = _arguments(args)
    if name == "click_input":
        return Click(_button(given.get("button", "left")), _truth(given.get("double", False)))
    if name == "wheel_mouse_input":
        return Wheel(_notches(given.get("wheel_dist")))
    keys = given.get("keys")
    if not isinstance(keys, str) or not keys:
        raise ValueError(f"keys is {keys!r:.80}, no text")
    return Keys(keys)


def _arguments(args: object) -> Mapping[str, Any]:
    if isinstance(args, str):
        args = decode(args) if args.strip() else {}
    if args is None:
        return {}
    if args is BROKEN or not isinstance(args, Mapping):
        raise ValueError("the arguments are no object")
    return args


def _button(value: object) -> Button:
    name = value.strip().lower() if isinstance(value, str) else value
    if name not in BUTTONS:
        raise ValueError(f"button is {value!r:.80}, none of {', '.join(BUTTONS)}")
    return name


def _truth(value: object) -> bool:
    found = _TRUTH.get(str(value).strip().lower()) if isinstance(value, bool | int | str) else None
    if found is None:
        raise ValueError(f"double is {value!r:.80}, neither true nor false")
    return found


def _notches(value: object) -> int:
    number = float("nan")
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = float("nan")
    if not 1 <= abs(number) <= _MOST_NOTCHES or number != int(number):
        raise ValueError(f"wheel_dist is {_shown(value)}, no whole number other than 0")
    return int(number)


def _shown(value: object) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # more digits than Python writes
        return "a very large number"


def spelled(call: Call) -> tuple[Function, dict[str, Any]]:
    """The function and its arguments, all of them written out.

    Examples:
        >>> spelled(Keys("^s"))
        ('keyboard_input', {'keys': '^s'})
    """
    if isinstance(call, Click):
        return "click_input", {"button": call.button, "double": call.double}
    if isinstance(call, Wheel):
        return "wheel_mouse_input", {"wheel_dist": call.notches}
    return ("keyboard_input", {"keys": call.text}) if isinstance(call, Keys) else ("", {})


def words(call: Call, target: str = "") -> str:
    """The wording of a past action in a prompt.

    Args:
        call: what was done.
        target: on what, e.g. a control's text in quotes; empty where nobody says it.

    Examples:
        >>> words(Click(double=True), '"Excel"')
        'click_input(button="left", double=true) on "Excel"'
        >>> words(Finish())
        'FINISH'
    """
    function, args = spelled(call)
    if not function:
        return "FINISH"
    given = ", ".join(f"{key}={json.dumps(args[key], ensure_ascii=False)}" for key in args)
    return f"{function}({given})" + (f" on {target}" if target else "")


def nearest(call: Call, box: Box | None, *, said: str) -> Action:
    """What comes nearest to the call among the primitives of a touch screen.

    A right click is a long press, as menus open by either; to turn the wheel up is to swipe down.
    The middle button and the button x are a tap. What was really done is in `words`.

    Args:
        call: what was done.
        box: where; None where nobody says it.
        said: the action's `words`.

    Examples:
        >>> nearest(Click("right"), Box(0, 0, 9, 9, "px"), said="").kind.name
        'LONG_PRESS'
    """
    start = (box,) if box else ()
    if isinstance(call, Click):
        kind = Primitive.DOUBLE_TAP if call.double else Primitive.TAP
        return Action(Primitive.LONG_PRESS if call.button == "right" else kind, start, words=said)
    if isinstance(call, Wheel):
        kind = Primitive.SWIPE_DOWN if call.notches > 0 else Primitive.SWIPE_UP
        return Action(kind, start, words=said)
    if isinstance(call, Keys):
        return Action(Primitive.INPUT, text=call.text, words=said)
    return Action(Primitive.TASK_COMPLETE, words=said)
