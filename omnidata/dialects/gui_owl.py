"""GUI-Owl's tool calls: Qwen's, with a desktop and with released readers of its own.

Source: X-PLUG/MobileAgent, Mobile-Agent-v3 and Mobile-Agent-v3.5.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from omnidata.dialects.base import Dialect, Frame, Layout, Platform, UnreadError
from omnidata.dialects.qwen import CLICKS, DESKTOP, MOBILE, MORE, NEEDS, ToolCalls, says_of
from omnidata.dialects.tool_calls import CLOSE, OPEN, Call, decode_nested
from omnidata.jsontext import BROKEN, is_number


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
        phone, desktop = '{"name": "mobile_use"', '{"name": "computer_use"'
        if phone in text:
            body = phone + text.split(phone)[1].partition("}}\n")[0] + "}}"
            given = _arguments(decode_nested(body.strip("\n")))
            given["action"] = given["action"].replace("tap", "click")
            if given["action"] == "system_button" and given.get("button") not in _THREE_BUTTONS:
                raise UnreadError("the button is none of Back, Home and Enter")
            if given["action"] == "terminate":
                given["status"] = "success"
            given.pop("time", None)
            return [_OWL_1_PHONE.call(given)]
        if OPEN in text and CLOSE in text:
            body = text.rpartition(OPEN)[2].partition(CLOSE)[0]
        elif desktop in text:
            body = desktop + text.split(desktop)[1].partition("}}")[0] + "}}"
        else:
            raise UnreadError("there is no tool call in it")
        given = _arguments(decode_nested(body.strip("\n")))
        if given["action"] == "key" and isinstance(given.get("keys"), str):
            given["keys"] = list(given["keys"])  # it goes through a text letter by letter
        if given["action"] == "terminate" and "status" in given:
            given["status"] = "success" if given["status"] == "success" else "failure"
        return [_OWL_1_DESKTOP.call(given)]


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
            given = _arguments(decode_nested(after.partition("}}\n")[0] + "}}"))
            _check_places(given)
            if given["action"] == "answer":  # what is shown is what stands before the call
                given["text"] = text.partition(OPEN)[0].strip()
            elif given["action"] == "open" and is_number(given.get("text")):
                given["text"] = str(given["text"])
            return [_OWL_15_PHONE.call(given)]
        calls: list[Call] = []
        for body in _blocks(text):
            value = _literal(body.strip())
            if value is BROKEN:
                continue
            given = _arguments(value, "a call has no arguments with an action")
            _check_places(given)
            given.pop("coordinate2", None)
            if is_number(given.get("text")):
                given["text"] = str(given["text"])
            calls.append(_OWL_15_DESKTOP.call(given))
            if calls[-1].arguments["action"] in ("terminate", "answer"):
                break
        if not calls:
            raise UnreadError("there is no tool call that is a literal of Python")
        return calls


def _arguments(
    value: Any, fault: str = "the call is no JSON object with arguments and an action"
) -> dict[str, Any]:
    given = value.get("arguments") if isinstance(value, dict) else None
    if not isinstance(given, dict) or not isinstance(given.get("action"), str):
        raise UnreadError(fault)
    return dict(given)


def _check_places(given: Mapping[str, Any]) -> None:
    """Check places like the rescaling, which fails on anything without numbers."""
    for key in ("coordinate", "coordinate1", "coordinate2"):
        place = given.get(key, [0, 0])
        if not (
            isinstance(place, list) and len(place) > 1 and all(is_number(n) for n in place[:2])
        ):
            raise UnreadError(f'"{key}" is no list of two numbers')


@dataclass(frozen=True, slots=True)
class _Agent:
    """The calls that a released agent carries out.

    Attributes:
        tool: its name.
        same: names of actions, as calls have them.
        others: other names in calls, and the names of their actions.
        needs: required parameters of actions that differ from `NEEDS`.
        defaults: values of absent parameters, by action.
        places: how many numbers of a place count.
    """

    tool: str
    same: str
    others: Mapping[str, str]
    needs: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    places: int = 2

    def call(self, given: Mapping[str, Any]) -> Call:
        """Return a call by the names of the tool, if nothing is missing."""
        name = self.others.get(given["action"], given["action"])
        if name not in self.same.split():
            raise UnreadError(f"there is no action {given['action']!r:.80}")
        given = {**self.defaults.get(name, {}), **given, "action": name}
        for key in ("coordinate", "coordinate2"):
            if isinstance(given.get(key), list):
                given[key] = given[key][: self.places]
        for key in {**NEEDS, **self.needs}.get(name, ()):
            if given.get(key) is None:
                raise UnreadError(f'{name} has no "{key}"')
        return Call(self.tool, given)


_THREE_BUTTONS: Final = ("Back", "Home", "Enter")
_KEYS: Final = {"key": ("keys",)}
_OWL_1_DESKTOP: Final = _Agent(
    "computer_use",
    "key type mouse_move drag click right_click double_click scroll terminate wait",
    {"left_click_drag": "drag", "left_click": "click"},
    _KEYS | dict.fromkeys(("right_click", "double_click"), ("coordinate",)),
    {"wait": {"time": 1}},
)
_OWL_1_PHONE: Final = _Agent(
    "mobile_use",
    "click terminate answer long_press type swipe wait system_button open",
    {"open_app": "open"},
    {"long_press": ("coordinate",), "wait": (), "terminate": ()},
    places=3,
)
_OWL_15_PHONE: Final = _Agent(
    "mobile_use",
    "click long_press type swipe system_button wait terminate open answer interact",
    {"scroll": "swipe", "call_user": "interact", "calluser": "interact"},
    {"long_press": ("coordinate",), "terminate": ()},
    {"wait": {"time": 2}},
)
_OWL_15_DESKTOP: Final = _Agent(
    "computer_use",
    "left_click mouse_move middle_click right_click key type scroll double_click triple_click wait "
    "answer terminate interact",
    {
        "click": "left_click", "right click": "right_click", "hotkey": "key",
        "drag": "left_click_drag", "computer_double_click": "double_click",
        "call_user": "interact", "stop": "terminate", "done": "terminate",
    },
    _KEYS | dict.fromkeys(CLICKS, ("coordinate",)) | {"terminate": ()},
    {"wait": {"time": 2}, "scroll": {"pixels": 1}},
)  # fmt: skip
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
