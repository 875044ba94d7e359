"""A call of pyautogui written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from omnidata.pyautogui.calls import Call

_CLICKS: Final = {
    ("left", 1): "click",
    ("left", 2): "doubleClick",
    ("left", 3): "tripleClick",
    ("right", 1): "rightClick",
    ("middle", 1): "middleClick",
}
_PLACED: Final = {"move": "moveTo", "mouse_down": "mouseDown", "mouse_up": "mouseUp"}
_KEYED: Final = {"press": "press", "key_down": "keyDown", "key_up": "keyUp", "hotkey": "hotkey"}


def spelled(call: Call, place: str = "") -> str:
    """The call as code, or as one of the words WAIT, DONE and FAIL.

    Args:
        call: what is done; marks are not written.
        place: where, as the arguments are to have it; empty for the pointer's place.

    Examples:
        >>> from omnidata.pyautogui import read_code
        >>> [spelled(one, "3, 4") for one in read_code("pyautogui.click(3, 4, clicks=2)")]
        ['pyautogui.doubleClick(3, 4)']
        >>> [spelled(one) for one in read_code("pyautogui.press(keys='a', presses=2)")]
        ["pyautogui.press('a', presses=2)"]
    """
    if call.kind in ("wait", "terminate"):
        if call.kind == "wait":
            return "WAIT"
        return "FAIL" if call.status.lower().startswith("fail") else "DONE"
    if call.kind == "sleep":
        return f"time.sleep({call.seconds:g})" if call.seconds is not None else "time.sleep(1)"
    if call.kind == "write":
        text = list(call.keys) if call.text is None else call.text
        return _code("write", [repr(text)])
    if call.kind in _KEYED:
        return _pressed(call)
    return _pointed(call, place)


def _pressed(call: Call) -> str:
    keys = [repr(key) for key in call.keys]
    if call.kind == "press" and len(keys) > 1:
        keys = [f"[{', '.join(keys)}]"]
    more = [f"presses={call.times}"] if call.times > 1 else []
    return _code(_KEYED[call.kind], [*keys, *more])


def _pointed(call: Call, place: str) -> str:
    where = [place] if place else []
    button = [f"button={call.button!r}"] if call.button not in ("", "left") else []
    if call.kind == "click":
        name = _CLICKS.get((call.button, call.times))
        if name:
            return _code(name, where)
        return _code("click", [*where, f"clicks={call.times}", *button])
    if call.kind in ("scroll", "hscroll"):
        return _code(call.kind, [f"{call.amount:g}", *where])
    if call.kind in ("move_by", "drag_by"):
        by = [f"{call.x or 0:g}", f"{call.y or 0:g}"]
        return _code("move" if call.kind == "move_by" else "drag", [*by, *button])
    if call.kind == "drag":
        return _code("dragTo", [*where, f"button={call.button!r}"])
    return _code(_PLACED[call.kind], [*where, *button])


def _code(name: str, arguments: Sequence[str]) -> str:
    return f"pyautogui.{name}({', '.join(arguments)})"
