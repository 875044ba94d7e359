"""GUI-Owl's tool calls: Qwen's, with a desktop and with released readers of its own.

Source: X-PLUG/MobileAgent, Mobile-Agent-v3 and Mobile-Agent-v3.5.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from omnidata.dialects.base import Dialect, Frame, Layout, Platform, UnreadError
from omnidata.dialects.qwen import CLICKS, DESKTOP, MOBILE, MORE, NEEDS, ToolCalls, says_of
from omnidata.dialects.tool_calls import CLOSE, OPEN, Call
from omnidata.jsontext import BROKEN, decode, is_number


class GuiOwl1(ToolCalls):
    """GUI-Owl 1.0 of Mobile-Agent-v3: Qwen2.5's form with another desktop."""

    name = "gui-owl-1.0"
    title = "GUI-Owl 1.0, calls of tools"
    checkpoints = ("mPLUG/GUI-Owl-7B", "mPLUG/GUI-Owl-32B")
    source = (
        "X-PLUG/MobileAgent@11cea575561fb7800b5fb6b6cafa56f7a91de11f, Mobile-Agent-v3:"
        " mm_agents/owl_agent.py on desktops, android_world/agents/gui_owl.py on phones"
    )
    frame = Frame("px", 28, 4 * 28 * 28, 1280 * 28 * 28, 8192)
    mobile = (*MOBILE, "answer")
    desktop = (
        "key", "type", "mouse_move", "click", "drag", "right_click", "middle_click",
        "double_click", "scroll", "wait", "terminate",
    )  # fmt: skip
    says = says_of(mobile, desktop)
    form = (
        "Say why in <thinking></thinking> before the call, and sum up what you did in"
        " <conclusion></conclusion> after it."
    )

    def read_released(self, text: str) -> Sequence[Call]:
        """Return the last call in tags on a desktop, or what looks like the first one."""
        phone = '{"name": "mobile_use"'
        if phone in text:
            body = phone + text.split(phone)[1].partition("}}\n")[0] + "}}"
            return [_of_owl_1_phone(_arguments(body.strip("\n")))]
        desktop = '{"name": "computer_use"'
        if OPEN in text and CLOSE in text:
            body = text.rpartition(OPEN)[2].partition(CLOSE)[0]
        elif desktop in text:
            body = desktop + text.split(desktop)[1].partition("}}")[0] + "}}"
        else:
            raise UnreadError("there is no tool call in it")
        return [_of_owl_1_desktop(_arguments(body.strip("\n")))]


class GuiOwl15(ToolCalls):
    """GUI-Owl 1.5 of Mobile-Agent-v3.5: Qwen3's form, places in thousandths."""

    name = "gui-owl-1.5"
    title = "GUI-Owl 1.5, calls of tools"
    checkpoints = ("mPLUG/GUI-Owl-1.5-2B-Instruct", "mPLUG/GUI-Owl-1.5-4B-Instruct",
                   "mPLUG/GUI-Owl-1.5-8B-Instruct", "mPLUG/GUI-Owl-1.5-32B-Instruct")  # fmt: skip
    source = (
        "X-PLUG/MobileAgent@11cea575561fb7800b5fb6b6cafa56f7a91de11f, Mobile-Agent-v3.5:"
        " computer_use/utils.py on desktops, mobile_use/run_gui_owl_1_5_for_mobile.py on phones"
    )
    frame = Frame("norm1000", 16, 3136, 10035200)
    layout = Layout(turns=True, screenshots=5)
    layouts: ClassVar[Mapping[Platform, Layout]] = {"desktop": Layout(turns=True, screenshots=4)}
    mobile = (*MOBILE, "answer", "interact")
    desktop = (*DESKTOP, *MORE, "interact")
    says = says_of(mobile, desktop)
    form = "Answer in two parts: `Action:` and a sentence of what to do, then one call."

    def read_released(self, text: str) -> Sequence[Call]:
        """Return the first call on phones; on desktops all Python literals until an end."""
        if '"mobile_use"' in text:
            _, found, after = text.partition(f"{OPEN}\n")
            if not found:
                raise UnreadError("there is no tool call on a line of its own")
            after = after.partition(f"{OPEN}\n")[0]
            given = _arguments(after.partition("}}\n")[0] + "}}")
            _check_places(given)
            if given["action"] == "answer":  # what is shown is what stands before the call
                given["text"] = text.partition(OPEN)[0].strip()
            return [_of_owl_15_phone(given)]
        calls: list[Call] = []
        for body in _blocks(text):
            value = _literal(body.strip())
            if value is BROKEN:
                continue
            calls.append(_of_owl_15_desktop(value))
            if calls[-1].arguments["action"] in ("terminate", "answer"):
                break
        if not calls:
            raise UnreadError("there is no tool call that is a literal of Python")
        return calls


def _arguments(body: str) -> dict[str, Any]:
    try:
        value = decode(body)
    except RecursionError:
        value = BROKEN
    given = value.get("arguments") if isinstance(value, dict) else None
    if not isinstance(given, dict) or not isinstance(given.get("action"), str):
        raise UnreadError("the call is no JSON object with arguments and an action")
    return dict(given)


def _rename_call(given: dict[str, Any], names: Mapping[str, str], *, places: int = 2) -> Call:
    """Rename the action of a call; only the first numbers of a place count."""
    if given["action"] not in names:
        raise UnreadError(f"there is no action {given['action']!r:.80}")
    given = {**given, "action": names[given["action"]]}
    for key in ("coordinate", "coordinate2"):
        if isinstance(given.get(key), list):
            given[key] = given[key][:places]
    return Call("computer_use", given)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_OWL_1_DESKTOP: Final = _same(
    "key", "type", "mouse_move", "drag", "click", "right_click", "double_click", "scroll",
    "terminate", "wait",
) | {"left_click_drag": "drag", "left_click": "click"}  # fmt: skip
_OWL_1_PHONE: Final = _same(
    "click", "terminate", "answer", "long_press", "type", "swipe", "wait", "system_button", "open",
) | {"open_app": "open"}  # fmt: skip
_OWL_15_PHONE: Final = _same(
    "click", "long_press", "type", "swipe", "system_button", "wait", "terminate", "open",
    "answer", "interact",
) | {"scroll": "swipe", "call_user": "interact", "calluser": "interact"}  # fmt: skip
_OWL_15_DESKTOP: Final = _same(
    "left_click", "mouse_move", "middle_click", "right_click", "key", "type", "scroll",
    "double_click", "triple_click", "wait", "answer", "terminate", "interact",
) | {
    "click": "left_click",
    "right click": "right_click",
    "hotkey": "key",
    "drag": "left_click_drag",
    "computer_double_click": "double_click",
    "call_user": "interact",
    "stop": "terminate",
    "done": "terminate",
}  # fmt: skip


def _has(call: Call, *names: str) -> Call:
    if missing := [name for name in names if call.arguments.get(name) is None]:
        raise UnreadError(f'{call.arguments["action"]} has no "{missing[0]}"')
    return call


def _of_owl_1_desktop(given: dict[str, Any]) -> Call:
    call = _rename_call(given, _OWL_1_DESKTOP)
    given = dict(call.arguments)
    if given["action"] == "key" and isinstance(given.get("keys"), str):
        given["keys"] = list(given["keys"])  # it goes through a text letter by letter
    if given["action"] == "terminate" and "status" in given:
        given["status"] = "success" if given["status"] == "success" else "failure"
    if given["action"] == "wait":
        given.setdefault("time", 1)
    needs = {"key": ("keys",), "right_click": ("coordinate",), "double_click": ("coordinate",)}
    return _has(Call(call.name, given), *(needs | NEEDS).get(given["action"], ()))


def _of_owl_1_phone(given: dict[str, Any]) -> Call:
    given["action"] = given["action"].replace("tap", "click")
    call = _rename_call(given, _OWL_1_PHONE, places=3)
    given = {key: each for key, each in call.arguments.items() if key != "time"}
    if given["action"] == "system_button" and given.get("button") not in ("Back", "Home", "Enter"):
        raise UnreadError("the button is none of Back, Home and Enter")
    if given["action"] == "terminate":
        given["status"] = "success"
    needs = [name for name in NEEDS.get(given["action"], ()) if name not in ("time", "status")]
    return _has(Call("mobile_use", given), *needs)


def _check_places(given: Mapping[str, Any]) -> None:
    """Check places like the rescaling, which fails on anything without numbers."""
    for key in ("coordinate", "coordinate1", "coordinate2"):
        place = given.get(key, [0, 0])
        if not (
            isinstance(place, list) and len(place) > 1 and all(is_number(n) for n in place[:2])
        ):
            raise UnreadError(f'"{key}" is no list of two numbers')


def _of_owl_15_phone(given: dict[str, Any]) -> Call:
    call = _rename_call(given, _OWL_15_PHONE)
    given = dict(call.arguments)
    if given["action"] == "wait":
        given.setdefault("time", 2)
    if given["action"] == "open" and is_number(given.get("text")):
        given["text"] = str(given["text"])
    spared = ("status",) if given["action"] == "wait" else ("status", "time")
    needs = [name for name in NEEDS.get(given["action"], ()) if name not in spared]
    return _has(Call("mobile_use", given), *needs)


def _of_owl_15_desktop(value: Any) -> Call:
    given = value.get("arguments") if isinstance(value, dict) else None
    if not isinstance(given, dict) or not isinstance(given.get("action"), str):
        raise UnreadError("a call has no arguments with an action")
    _check_places(given)
    call = _rename_call(given, _OWL_15_DESKTOP)
    given = dict(call.arguments)
    given.pop("coordinate2", None)
    action = given["action"]
    if is_number(given.get("text")):
        given["text"] = str(given["text"])
    if action == "wait":
        given.setdefault("time", 2)
    if action == "scroll":
        given.setdefault("pixels", 1)
    needs: dict[str, tuple[str, ...]] = {"key": ("keys",), "terminate": ()}
    clicks = ("coordinate",) if action in CLICKS else ()
    return _has(Call(call.name, given), *(NEEDS | needs).get(action, clicks))


_BLOCK = re.compile(r"<(/?)tool_call>", re.IGNORECASE)
_LONGEST_BLOCK: Final = 1 << 16
"""Characters of a call that is read as Python."""


def _blocks(text: str) -> Iterator[str]:
    begin = -1
    for tag in _BLOCK.finditer(text):
        if not tag[1] and begin < 0:
            begin = tag.end()
        elif tag[1] and begin >= 0:
            yield text[begin : tag.start()]
            begin = -1


def _literal(text: str) -> Any:
    if len(text) > _LONGEST_BLOCK:
        return BROKEN
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unknown escape is only a warning
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return BROKEN


DIALECTS: Final[tuple[Dialect, ...]] = (GuiOwl1(), GuiOwl15())
