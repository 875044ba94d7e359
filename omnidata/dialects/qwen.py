"""Tool calls of Qwen's vision-language models, and of what is made of them.

An answer is `<tool_call>{"name": "mobile_use", "arguments": {"action": "click", ...}}</tool_call>`,
one block for each action, what is thought before it. `mobile_use` has a phone's actions and
`computer_use` a desktop's, a browser among them.

Source: QwenLM/Qwen3-VL, `cookbooks/utils/agent_function_call.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from omnidata.actions import (
    OPPOSITE,
    Action,
    Button,
    Direction,
    Kind,
    Region,
    Screen,
    Status,
    centre,
    finger_way,
)
from omnidata.dialects.base import (
    DIRECTIONS,
    Answer,
    Asked,
    CannotSayError,
    Dialect,
    Frame,
    Layout,
    Platform,
    Rules,
    UnreadError,
    swipe_ends,
)
from omnidata.dialects.points import place_of, read_place
from omnidata.dialects.tool_calls import (
    CLOSE,
    MOST,
    OPEN,
    Call,
    decode_json5,
    find_calls,
)
from omnidata.jsontext import BROKEN, compact, decode, is_number

MOBILE: Final = (
    "key", "click", "long_press", "swipe", "type", "system_button", "open", "wait", "terminate",
)  # fmt: skip
DESKTOP: Final = (
    "key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click",
    "double_click", "scroll", "wait", "terminate",
)  # fmt: skip
MORE: Final = ("triple_click", "hscroll", "answer")

_KINDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "click": ("tap",),
    "left_click": ("tap",),
    "long_press": ("long_press",),
    "swipe": ("swipe", "scroll"),
    "scroll": ("scroll", "swipe"),
    "mouse_move": ("move",),
    "left_click_drag": ("drag",),
    "drag": ("drag",),
    "type": ("type",),
    "key": ("keys", "enter"),
    "system_button": ("back", "home", "recent", "enter"),
    "open": ("open_app",),
    "wait": ("wait",),
    "terminate": ("done",),
    "interact": ("ask",),
}
CLICKS: Final[Mapping[str, tuple[Button, int]]] = {
    "click": ("left", 1),
    "left_click": ("left", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
}
_BUTTONS: Final[Mapping[Kind, str]] = {
    "back": "Back",
    "home": "Home",
    "recent": "Menu",
    "enter": "Enter",
}
_OTHER_NAMES: Final = {
    "tap": "click",
    "double_tap": "double_click",
    "long_click": "long_press",
    "move": "mouse_move",
    "open_app": "open",
    "hotkey": "key",
    "call_user": "interact",
}
"""What models write for the names of actions."""
_STARTS: Final = ("coordinate", "coordinates", "coordinate1", "point", "start_coordinate")
_ENDS_: Final = ("coordinate2", "end_coordinate")

_SECONDS: Final = 2
"""Length of a press or a wait that has none: the tool needs a number."""
_NOTCHES: Final = 5
"""Distance of a scroll that has none; likewise."""

_SENTENCES: Final[Mapping[str, str]] = {
    "click": "tap `coordinate`",
    "left_click": "click `coordinate` with the left button",
    "right_click": "click `coordinate` with the right button",
    "middle_click": "click `coordinate` with the middle button",
    "double_click": "click `coordinate` twice with the left button",
    "triple_click": "click `coordinate` three times with the left button",
    "long_press": "press `coordinate` for `time` seconds",
    "swipe": "move a finger from `coordinate` to `coordinate2`",
    "mouse_move": "move the pointer to `coordinate`",
    "left_click_drag": "hold the left button and move the pointer from where it is to `coordinate`",
    "drag": "hold the left button and move the pointer from `coordinate` to `coordinate2`",
    "scroll": "turn the wheel by `pixels`, upwards if that is positive, else downwards",
    "hscroll": "scroll sideways by `pixels`, to the right if that is positive, else to the left",
    "type": "type `text`",
    "system_button": "press the `button` of the system; Menu shows the recent apps",
    "open": "open the app that `text` names",
    "wait": "wait for `time` seconds",
    "answer": "end the task with the answer `text`",
    "interact": "ask the user for what `text` says",
    "terminate": "end the task and report its `status`",
}
_TYPES: Final[Mapping[str, str]] = {
    "coordinate": "array",
    "coordinate2": "array",
    "keys": "array",
    "text": "string",
    "time": "number",
    "pixels": "number",
    "button": "string",
    "status": "string",
    "clear": "number",
    "enter": "number",
}
_ENUMS: Final[Mapping[str, tuple[str, ...]]] = {
    "button": ("Back", "Home", "Menu", "Enter"),
    "status": ("success", "failure"),
}
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "click": ("coordinate",),
    "long_press": ("coordinate", "time"),
    "swipe": ("coordinate", "coordinate2"),
    "mouse_move": ("coordinate",),
    "left_click_drag": ("coordinate",),
    "drag": ("coordinate", "coordinate2"),
    "scroll": ("pixels",),
    "hscroll": ("pixels",),
    "type": ("text",),
    "open": ("text",),
    "answer": ("text",),
    "system_button": ("button",),
    "wait": ("time",),
    "terminate": ("status",),
}

_TAGS = re.compile(r"</?(?:think(?:ing)?|conclusion|tool_call)>")
_HEADS = re.compile(r"(?:\A\s*+|(?<!\s)([^\S\n]*+)\n\s*+)(?:Thought|Action)\s*+:\s*+")
"""A head of a section, with the blanks before its line: each run of blanks is read once."""
_CONCLUSION = re.compile(r"<conclusion>[^<]*+(?:</conclusion>)?+")
_TAIL = re.compile(r"</?tool_call>|<\|im_end\|>|<\|endoftext\|>|```|[\s}\]]")
_LIKE_A_PLACE: Final = ("[", "(", "{", "<", "click(", "pyautogui.click(", *"-0123456789.")


@dataclass(frozen=True, slots=True)
class _Reading:
    call: Call
    action: str
    space: Any
    lenient: bool

    def place(self, *names: str, needed: bool = True) -> tuple[Region, ...]:
        given = self.call.arguments
        for name in names if self.lenient else names[:1]:
            if given.get(name) is None:
                continue
            value = given[name]
            found = place_of(value, self.space)
            if found is None or not (self.lenient or _is_pair(value)):
                raise UnreadError(f'"{name}" of {self.action} is no place')
            return (found,)
        if needed:
            raise UnreadError(f'{self.action} has no "{names[0]}"')
        return ()

    def number(self, name: str) -> float | None:
        value = self.call.arguments.get(name)
        if isinstance(value, str) and self.lenient and len(value) < _LONGEST:
            try:
                value = float(value) if "." in value else int(value)
            except ValueError:
                value = None
        if value is None:
            return None
        if not is_number(value) or not abs(value) <= _FARTHEST:  # not NaN, and no float yet
            raise UnreadError(f'"{name}" of {self.action} is no number')
        return value

    def text(self, *names: str) -> str:
        for name in names:
            value = self.call.arguments.get(name)
            if isinstance(value, str):
                return value
            if self.lenient and is_number(value):
                return str(value)
        raise UnreadError(f'{self.action} has no "{names[0]}"')

    def keys(self) -> tuple[str, ...]:
        given = self.call.arguments.get("keys")
        if given is None:
            given = self.call.arguments.get("text", self.call.arguments.get("key"))
        if isinstance(given, str):
            given = [given]
        if not isinstance(given, list) or not given or not all(isinstance(k, str) for k in given):
            raise UnreadError('key has no "keys"')
        keys = [_key(each) for each in given] if self.lenient else given
        if self.lenient and len(keys) == 1 and len(keys[0]) > 1 and "+" in keys[0]:
            keys = [each.strip() for each in keys[0].split("+")]
        return tuple(keys)

    def flag(self, name: str) -> bool | None:
        value = self.call.arguments.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            return value.strip().lower() in ("1", "true", "yes")
        return bool(value)


_LONGEST: Final = 64
_FARTHEST: Final = 1e9
"""Characters of a number in a text."""


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(is_number(each) for each in value)
    )


def _key(name: str) -> str:
    """Return a key without quotes and brackets around it: `"keys=['ctrl"` is ctrl."""
    for opening in ("keys=[", "['", '["', "'", '"'):
        name = name.removeprefix(opening)
    for closing in ("']", '"]', "]", "'", '"'):
        name = name.removesuffix(closing) if len(name) > 1 else name
    return name.strip()


class ToolCalls(Dialect):
    """Calls of `mobile_use` and `computer_use`; a version says which actions they have.

    Attributes:
        mobile, desktop: names of actions, in the order in which a prompt has them.
        drag: the name of a drag; "drag" has both places, "left_click_drag" the end.
        form: what an answer has before its call, for the prompt.
    """

    mobile: ClassVar[tuple[str, ...]] = MOBILE
    desktop: ClassVar[tuple[str, ...]] = DESKTOP
    form: ClassVar[str] = "Answer with one call."

    # Reading.

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        """See `Dialect.read`. Without a call, a place that stands alone is tapped."""
        if rules == "strict":
            found = self.read_released(text)
            return Answer(_merge_drags(self._action(call, lenient=False) for call in found))
        calls = find_calls(text)
        thought = _HEADS.sub(r"\1\n", _TAGS.sub("", calls.before)).strip()
        if not calls.calls:
            return Answer((self._lone_place(text),))
        actions = _merge_drags(self._action(call, lenient=True) for call in calls.calls)
        rest = _CONCLUSION.sub("", calls.after)
        return Answer(actions, thought, rest.strip() if _TAIL.sub("", rest) else "")

    def read_released(self, text: str) -> Sequence[Call]:
        """Return the calls that the released parser finds.

        Raises:
            UnreadError: it finds none, or fails.
        """
        raise NotImplementedError

    def _lone_place(self, text: str) -> Action:
        bare = text.rpartition("</think>")[2].strip().removeprefix("```json").lstrip("` \n")
        lower = bare.lower()
        if lower.startswith(_LIKE_A_PLACE) and "action" not in lower and OPEN not in lower:
            try:
                place = read_place(bare, self.frame.space, prose=False)
            except ValueError:
                pass
            else:
                return Action("tap", (place,)) if place else Action("none")
        raise UnreadError("there is no whole tool call in it")

    def _action(self, call: Call, *, lenient: bool) -> Action:
        given = call.arguments.get("action")
        name = given if isinstance(given, str) else call.name if lenient else None
        if name is None:
            raise UnreadError("a call has no action")
        if lenient:
            name = name.strip().lower().replace(" ", "_")
            name = _OTHER_NAMES.get(name, name)
        reading = _Reading(call, name, self.frame.space, lenient)
        if name in CLICKS:
            button, count = CLICKS[name]
            # Only a mouse has a place of its own.
            pointer = name != "click" or call.name == "computer_use"
            start = reading.place(*_STARTS, needed=not pointer)
            return Action("tap", start, button=button, count=count)
        if name in ("scroll", "hscroll"):
            return self._scroll(reading, sideways=name == "hscroll")
        if name not in _READERS:
            raise UnreadError(f"there is no action {name!r:.80}")
        return _READERS[name](reading)

    def _scroll(self, reading: _Reading, *, sideways: bool) -> Action:
        given = reading.call.arguments
        if reading.lenient and any(name in given for name in _ENDS_):
            return _swipe(reading)
        start = reading.place("coordinate", *_STARTS, needed=False)
        pixels = reading.number("pixels")
        if pixels is None:
            way = _way(given.get("direction")) if reading.lenient else None
            if way is None:
                raise UnreadError('scroll has no "pixels"')
            return Action("scroll", start, direction=way)
        ways: tuple[Direction, Direction] = ("right", "left") if sideways else ("up", "down")
        way = None if pixels == 0 else ways[pixels < 0]
        return Action("scroll", start, direction=way, amount=abs(pixels))

    # Writing.

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        """See `Dialect.write`.

        A drag is a move and a drag where the tool has its end only. What the tool needs and the
        action does not say is 2 seconds, 5 notches, success.
        """
        written = self._on_mobile if platform == "mobile" else self._on_desktop
        tool = "mobile_use" if platform == "mobile" else "computer_use"
        blocks = []
        for action in actions:
            for arguments in written(action, fed):
                body = json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
                if _TAGS.search(body):  # a text must not end the call that it stands in
                    body = body.replace("<", "\\u003c")
                blocks.append(f"{OPEN}\n{body}\n{CLOSE}")
        return "\n".join(blocks)

    def _on_mobile(self, action: Action, fed: Screen) -> Iterator[Mapping[str, Any]]:
        kind = action.kind
        if action.held or action.button != "left" or action.path:
            raise _cannot(action)
        if kind == "tap" and action.count == 1 and action.start:
            yield {"action": "click", "coordinate": _pair(action.start)}
        elif kind == "long_press" and action.start:
            yield {
                "action": "long_press",
                "coordinate": _pair(action.start),
                "time": _SECONDS if action.seconds is None else action.seconds,
            }
        elif kind in ("swipe", "scroll"):
            known = self.frame.space != "px" or min(fed) > 0 or (action.start and action.end)
            ends = swipe_ends(action, self.frame.extent(fed)) if known else None
            if ends is None:
                raise _cannot(action)
            start, end = (_pair((each,)) for each in ends)
            yield {"action": "swipe", "coordinate": start, "coordinate2": end}
        elif kind in _BUTTONS:
            yield {"action": "system_button", "button": _BUTTONS[kind]}
        elif kind == "keys" and len(action.keys) == 1:
            yield {"action": "key", "text": action.keys[0]}
        elif kind == "open_app" and action.app is not None:
            yield {"action": "open", "text": action.app}
        else:
            yield self._anywhere(action, self.mobile)

    def _on_desktop(self, action: Action, fed: Screen) -> Iterator[Mapping[str, Any]]:
        kind, at = action.kind, {"coordinate": _pair(action.start)} if action.start else {}
        if action.held or action.path:
            raise _cannot(action)
        if kind == "tap":
            clicks = [name for name, click in CLICKS.items() if name in self.desktop]
            for name in clicks:
                if CLICKS[name] == (action.button, action.count):
                    yield {"action": name, **at}
                    return
            raise _cannot(action)
        if action.button != "left":
            raise _cannot(action)
        if kind == "move" and at:
            yield {"action": "mouse_move", **at}
        elif kind == "drag" and action.end:
            end = _pair(action.end)
            if "drag" not in self.desktop:
                if at:
                    yield {"action": "mouse_move", **at}
                yield {"action": "left_click_drag", "coordinate": end}
            elif at:
                yield {"action": "drag", **at, "coordinate2": end}
            else:
                raise _cannot(action)
        elif kind in ("scroll", "swipe"):
            yield {**self._turn(action), **at}
        elif kind in ("hotkey", "keys", "enter"):
            keys = list(action.keys) or ["enter"] * (kind == "enter")
            if not keys or (kind == "keys" and len(keys) > 1):
                raise _cannot(action)
            yield {"action": "key", "keys": keys}
        else:
            yield self._anywhere(action, self.desktop)

    def _turn(self, action: Action) -> Mapping[str, Any]:
        way = finger_way(action)
        if way is None or (action.amount is not None and action.amount_unit != "notch"):
            raise _cannot(action)
        way = OPPOSITE[way]
        sideways = way in ("left", "right")
        if sideways and "hscroll" not in self.desktop:
            raise _cannot(action)
        amount = _NOTCHES if action.amount is None else action.amount
        if amount <= 0:
            raise _cannot(action)
        signed = amount if way in ("up", "right") else -amount
        return {"action": "hscroll" if sideways else "scroll", "pixels": signed}

    def _anywhere(self, action: Action, names: Sequence[str]) -> Mapping[str, Any]:
        kind, text = action.kind, action.text
        if kind == "type" and text is not None and not action.start:
            flags = {"clear": action.clear, "enter": action.submit}
            if "drag" in names:  # the one version whose typing has flags
                said = {name: int(flag) for name, flag in flags.items() if flag is not None}
                return {"action": "type", "text": text, **said}
            if not any(flags.values()):
                return {"action": "type", "text": text}
        if kind == "wait":
            seconds = _SECONDS if action.seconds is None else action.seconds
            return {"action": "wait", "time": seconds}
        if kind == "done" and not text:
            return {"action": "terminate", "status": action.status or "success"}
        if kind == "done" and "answer" in names and action.status is None:
            return {"action": "answer", "text": text}
        if kind == "ask" and "interact" in names:
            return {"action": "interact", "text": text or ""}
        raise _cannot(action)

    # Asking.

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        mobile = platform == "mobile"
        names = self.mobile if mobile else self.desktop
        if asked == "point":
            names = tuple(name for name in names if name in ("click", "left_click"))
        tool = self._declaration("mobile_use" if mobile else "computer_use", names, fed)
        form = "Click the middle of the element." if asked == "point" else self.form
        return (
            f"You are given this tool:\n<tools>\n{tool}\n</tools>\n"
            f"A call of it is a JSON object in tags:\n{OPEN}\n"
            '{"name": NAME OF THE TOOL, "arguments": {NAME: VALUE, ...}}\n'
            f"{CLOSE}\n{form}"
        )

    def _declaration(self, tool: str, names: Sequence[str], fed: Screen) -> str:
        width, height = self.frame.extent(fed)
        size = f"The screen is {width:g}x{height:g}; " if min(width, height) > 0 else ""
        device = "a phone's touchscreen" if tool == "mobile_use" else "a mouse and a keyboard"
        sentences = dict(_SENTENCES)
        sentences["key"] = (
            "press the key that `text` names, as adb's keyevent has it, such as volume_up"
            if tool == "mobile_use"
            else "press `keys` all at once"
        )
        if "drag" in names:
            sentences["type"] = (
                "type `text`, with 1 for `clear` in place of what was there, and with 1 for"
                " `enter` followed by the enter key"
            )
        told = " ".join(sentences[name] for name in names)
        parameters: dict[str, Any] = {
            "action": {
                "type": "string",
                "enum": list(names),
                "description": "; ".join(f"{name}: {sentences[name]}" for name in names),
            }
        }
        for name, kind in _TYPES.items():
            if f"`{name}`" in told:
                parameters[name] = {"type": kind}
                if name in _ENUMS:
                    parameters[name]["enum"] = list(_ENUMS[name])
        function = {
            "name": tool,
            "description": (
                f"Use {device}. {size}a coordinate is [x, y], from the top left corner."
            ),
            "parameters": {"type": "object", "properties": parameters, "required": ["action"]},
        }
        return compact({"type": "function", "function": function})


def says_of(mobile: Iterable[str], desktop: Iterable[str]) -> Mapping[Platform, frozenset[Kind]]:
    """Return the kinds of actions that tools with these names of actions can express."""
    hands = {kind for name in desktop for kind in _KINDS.get(name, ())} | {"hotkey"}
    touch = {kind for name in mobile for kind in _KINDS.get(name, ())}
    mouse: frozenset[Kind] = frozenset(hands)  # type: ignore[arg-type]
    return {"mobile": frozenset(touch), "desktop": mouse, "web": mouse}


def _cannot(action: Action) -> CannotSayError:
    return CannotSayError(f"a tool call of Qwen's has no words for {action.label}")


def _pair(places: Sequence[Region]) -> list[float]:
    point = centre(places[0])
    return [point.x, point.y]


def _way(value: Any) -> Direction | None:
    return DIRECTIONS.get(value.strip().lower()) if isinstance(value, str) else None


def _merge_drags(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Start a drag at the place of the move before it."""
    found: list[Action] = []
    for action in actions:
        before = found[-1] if found else None
        if before and before.kind == "move" and action.kind == "drag" and not action.start:
            found[-1] = Action("drag", before.start, action.end)
        else:
            found.append(action)
    return tuple(found)


def _swipe(reading: _Reading) -> Action:
    start = reading.place("coordinate", *_STARTS, needed=False)
    end = reading.place("coordinate2", *_ENDS_, needed=False)
    way = _way(reading.call.arguments.get("direction")) if reading.lenient else None
    if (not start or not end) and way is None:
        raise UnreadError('swipe needs "coordinate" and "coordinate2"')
    return Action("swipe", start, end, direction=None if start and end else way)


def _drag(reading: _Reading) -> Action:
    if reading.lenient and "start_coordinate" in reading.call.arguments:
        return Action(
            "drag",
            reading.place("start_coordinate"),
            reading.place("end_coordinate", "coordinate2", "coordinate"),
        )
    if end := reading.place("coordinate2", *_ENDS_, needed=False):
        return Action("drag", reading.place("coordinate", *_STARTS), end)
    return Action("drag", (), reading.place("coordinate", *_STARTS))


def _press(reading: _Reading) -> Action:
    keys = reading.keys()
    return Action("keys" if len(keys) == 1 else "hotkey", keys=keys)


def _button(reading: _Reading) -> Action:
    given = reading.text("button")
    for kind, name in _BUTTONS.items():
        if given == name or (reading.lenient and given.strip().lower() in (name.lower(), kind)):
            return Action(kind)
    raise UnreadError(f"there is no system button {given!r:.80}")


def _end(reading: _Reading) -> Action:
    given = reading.call.arguments.get("status")
    told = given.strip().lower() if isinstance(given, str) else ""
    statuses: Mapping[str, Status] = {"success": "success", "failure": "failure"}
    return Action("done", status=statuses.get(told))


def _read_type(reading: _Reading) -> Action:
    return Action(
        "type",
        reading.place(*_STARTS, needed=False) if reading.lenient else (),
        text=reading.text("text", "content"),
        clear=reading.flag("clear"),
        submit=reading.flag("enter"),
    )


def _ask(reading: _Reading) -> Action:
    given = reading.call.arguments.get("text")
    return Action("ask", text=given if isinstance(given, str) and given else None)


_READERS: Final[Mapping[str, Callable[[_Reading], Action]]] = {
    "long_press": lambda it: Action("long_press", it.place(*_STARTS), seconds=it.number("time")),
    "swipe": _swipe,
    "mouse_move": lambda it: Action("move", it.place(*_STARTS)),
    "left_click_drag": _drag,
    "drag": _drag,
    "type": _read_type,
    "key": _press,
    "system_button": _button,
    "open": lambda it: Action("open_app", app=it.text("text", "app_name", "app")),
    "wait": lambda it: Action("wait", seconds=it.number("time")),
    "terminate": _end,
    "answer": lambda it: Action("done", text=it.text("text")),
    "interact": _ask,
}


# The released readers.


class _Qwen(ToolCalls):
    source = (
        "QwenLM/Qwen-Agent@31a4d36d123688581a9e9744427272b33ce940e0 nous_fncall_prompt.py, and"
        " the tools of QwenLM/Qwen3-VL@96588727e44c78b25ba03ea03b8e12f7e64fd0da"
        " cookbooks/utils/agent_function_call.py"
    )
    # Of phones the cookbooks tell in one text; harnesses of desktops show screenshots as turns
    # (OSWorld's mm_agents/qwen3vl_agent.py, Mobile-Agent's computer_use).
    layouts: ClassVar[Mapping[Platform, Layout]] = dict.fromkeys(
        ("desktop", "web"), Layout(turns=True, screenshots=4)
    )

    def read_released(self, text: str) -> Sequence[Call]:
        calls = [self._check_call(name, given) for name, given in _calls_of_qwen_agent(text)]
        if not calls:
            raise UnreadError("Qwen-Agent finds no tool call")
        return calls

    def _check_call(self, name: Any, given: Any) -> Call:
        if isinstance(given, str):
            given = _load_json(given)
        names = {"mobile_use": self.mobile, "computer_use": self.desktop}
        if not isinstance(name, str) or name not in names or not isinstance(given, dict):
            raise UnreadError(f"there is no tool {name!r:.80}, or its arguments are no object")
        action = given.get("action")
        # The tool of phones has no answer, although the prompt of Qwen3-VL's cookbook names it.
        if action not in names[name] or (action == "answer" and name == "mobile_use"):
            raise UnreadError(f"{name} has no action {action!r:.80}")
        used = _TYPES.keys() - {"clear", "enter"} - _UNUSED[name]
        for key in (key for key in given if key in used):
            if not _IS[_TYPES[key]](given[key]) or given[key] not in _ENUMS.get(key, [given[key]]):
                raise UnreadError(f'"{key}" does not fit the declaration of {name}')
        needed = {"key": ("keys",) if name == "computer_use" else ("text",)} | NEEDS
        if missing := [key for key in needed.get(action, ()) if key not in given]:
            raise UnreadError(f'{action} has no "{missing[0]}"')
        return Call(name, {key: given[key] for key in given if key == "action" or key in used})


_UNUSED: Final[Mapping[str, frozenset[str]]] = {
    "mobile_use": frozenset(("keys", "pixels")),
    "computer_use": frozenset(("coordinate2", "button")),
}
_IS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": is_number,
}


def _calls_of_qwen_agent(text: str) -> Iterator[tuple[Any, Any]]:
    """Return names and arguments as `postprocess_fncall_messages` of Qwen-Agent does."""
    if "<think>" in text:
        if "</think>" not in text:
            return
        text = text.rpartition("</think>")[2]
    for piece in text.split(OPEN, MOST + 1)[1 : MOST + 1]:
        if not piece.strip():
            continue
        body, closed, _ = piece.partition(CLOSE)
        if not closed:
            name, given = _extract_call(piece)
            if name:
                yield name, given
            continue
        value = decode_json5(body.strip())
        if value is BROKEN:
            yield _extract_call(body.strip())
        elif isinstance(value, dict):
            if "name" in value and "arguments" in value:
                if isinstance(value["arguments"], str):
                    raise UnreadError("the arguments of a call are a text")
                yield value["name"], value["arguments"]
        elif value and not isinstance(value, list | str):
            raise UnreadError("a call is a number")
        elif value and "name" in value and "arguments" in value:
            raise UnreadError("a call is no object")


def _extract_call(text: str) -> tuple[str, str]:
    """Read a call that is not JSON as Qwen-Agent's `extract_fn` does."""
    name = given = ""
    before, found, after = text.partition('"name": "')
    if found and before:
        head, ended, _ = after.partition('", "')
        name = head if ended else ""
    before, found, after = text.partition('"arguments": ')
    if found and before:
        given = after.strip()
    return name, given[:-1] if len(given) > 2 else ""


def _load_json(text: str) -> Any:
    """Read a JSON value as Qwen-Agent's `json_loads` does, or return `BROKEN`."""
    text = text.strip("\n")
    if text.startswith("```") and text.endswith("\n```"):
        text = "\n".join(text.split("\n")[1:-1])
    try:
        value = decode(text)
    except RecursionError:
        return BROKEN
    return decode_json5(text) if value is BROKEN else value


class Qwen2(_Qwen):
    """Qwen2-VL: places in thousandths of the picture."""

    name = "qwen2"
    title = "Qwen2-VL, calls of tools"
    checkpoints = ("Qwen/Qwen2-VL-2B-Instruct", "Qwen/Qwen2-VL-7B-Instruct",
                   "Qwen/Qwen2-VL-72B-Instruct")  # fmt: skip
    frame = Frame("norm1000", 28, 4 * 28 * 28, 16384 * 28 * 28)
    says = says_of(MOBILE, DESKTOP)


class Qwen25(_Qwen):
    """Qwen2.5-VL: places in pixels of the resized picture, whose size the prompt names."""

    name = "qwen2.5"
    title = "Qwen2.5-VL, calls of tools"
    checkpoints = ("Qwen/Qwen2.5-VL-3B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct",
                   "Qwen/Qwen2.5-VL-32B-Instruct", "Qwen/Qwen2.5-VL-72B-Instruct")  # fmt: skip
    frame = Frame("px", 28, 4 * 28 * 28, 16384 * 28 * 28)
    says = says_of(MOBILE, DESKTOP)


class Qwen3(_Qwen):
    """Qwen3-VL: places from 0 to 999, by which its cookbooks divide; more actions."""

    name = "qwen3"
    title = "Qwen3-VL, calls of tools"
    checkpoints = ("Qwen/Qwen3-VL-2B-Instruct", "Qwen/Qwen3-VL-4B-Instruct",
                   "Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-32B-Instruct",
                   "Qwen/Qwen3-VL-235B-A22B-Instruct")  # fmt: skip
    frame = Frame("norm999", 32, 4 * 32 * 32, 16384 * 32 * 32)
    mobile = (*MOBILE, "answer")
    desktop = (*DESKTOP, *MORE)
    says = says_of(mobile, desktop)
    form = (
        "Answer in three parts: `Thought:` and a sentence of why, `Action:` and a sentence of"
        " what, then one call."
    )


DIALECTS: Final[tuple[Dialect, ...]] = (Qwen2(), Qwen25(), Qwen3())
