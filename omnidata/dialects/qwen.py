"""Tool calls of Qwen's vision-language models, and of models derived from them.

An answer is `<tool_call>{"name": "mobile_use", "arguments": {"action": "click", ...}}</tool_call>`,
one block for each action, after the thought. `mobile_use` has a phone's actions and
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
    Action,
    Button,
    Direction,
    Kind,
    Region,
    Screen,
    Space,
    Status,
    centre,
    finger_way,
)
from omnidata.dialects.base import (
    DIRECTIONS,
    Answer,
    Asked,
    Dialect,
    Frame,
    Layout,
    Platform,
    Rules,
    UnreadError,
    join_moves,
    kinds,
    press,
    swipe_ends,
)
from omnidata.dialects.points import place_of, read_place
from omnidata.dialects.tool_calls import (
    CLOSE,
    MOST,
    OPEN,
    Call,
    decode_json5,
    decode_nested,
    find_calls,
)
from omnidata.jsontext import BROKEN, compact, is_number

MOBILE: Final = (
    "key", "click", "long_press", "swipe", "type", "system_button", "open", "wait", "terminate",
)  # fmt: skip
DESKTOP: Final = (
    "key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click",
    "double_click", "scroll", "wait", "terminate",
)  # fmt: skip
MORE: Final = ("triple_click", "hscroll", "answer")

_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("click", "left_click"), "tap"),
    "long_press": "long_press",
    **dict.fromkeys(("swipe", "scroll"), "swipe scroll"),
    "mouse_move": "move",
    **dict.fromkeys(("left_click_drag", "drag"), "drag"),
    "type": "type",
    "key": "keys enter",
    "system_button": "back home recent enter",
    "open": "open_app",
    "wait": "wait",
    "terminate": "done",
    "interact": "ask",
}
"""Name of an action -> the kinds of actions that it can express."""
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
"""Other names that models write for actions."""
_FROM: Final = ("coordinate", "coordinates", "coordinate1", "point", "start_coordinate")
_TO: Final = ("coordinate2", "end_coordinate")
"""Names of the arguments for the start and the end of an action."""

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
    """The arguments of a call; methods read the first of their names that the call has."""

    given: Mapping[str, Any]
    action: str
    space: Space
    lenient: bool

    def place(self, *names: str, needed: bool = True) -> tuple[Region, ...]:
        for name in names if self.lenient else names[:1]:
            if self.given.get(name) is None:
                continue
            value = self.given[name]
            found = place_of(value, self.space)
            if found is None or not (self.lenient or _is_pair(value)):
                raise UnreadError(f'"{name}" of {self.action} is no place')
            return (found,)
        if needed:
            raise UnreadError(f'{self.action} has no "{names[0]}"')
        return ()

    def number(self, name: str) -> float | None:
        value = self.given.get(name)
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
            value = self.given.get(name)
            if isinstance(value, str):
                return value
            if self.lenient and is_number(value):
                return str(value)
        raise UnreadError(f'{self.action} has no "{names[0]}"')

    def keys(self) -> tuple[str, ...]:
        given = self.given.get("keys")
        if given is None:
            given = self.given.get("text", self.given.get("key"))
        if isinstance(given, str):
            given = [given]
        if not isinstance(given, list) or not given or not all(isinstance(k, str) for k in given):
            raise UnreadError('key has no "keys"')
        keys = [_key(each) for each in given] if self.lenient else given
        if self.lenient and len(keys) == 1 and len(keys[0]) > 1 and "+" in keys[0]:
            keys = [each.strip() for each in keys[0].split("+")]
        return tuple(keys)

    def flag(self, name: str) -> bool | None:
        value = self.given.get(name)
        if isinstance(value, str):
            return value.strip().lower() in ("1", "true", "yes")
        return None if value is None else bool(value)

    def way(self) -> Direction | None:
        value = self.given.get("direction") if self.lenient else None
        return DIRECTIONS.get(value.strip().lower()) if isinstance(value, str) else None

    def button(self) -> Kind:
        given = self.text("button")
        for kind, name in _BUTTONS.items():
            if given == name or (self.lenient and given.strip().lower() in (name.lower(), kind)):
                return kind
        raise UnreadError(f"there is no system button {given!r:.80}")


def _read_call(it: _Reading, tool: str | None) -> Action:
    """Return the action of a call, by the name of the action."""
    name, given = it.action, it.given
    if name in CLICKS:
        button, count = CLICKS[name]
        pointer = name != "click" or tool == "computer_use"  # only a mouse has a place of its own
        return Action("tap", it.place(*_FROM, needed=not pointer), button=button, count=count)
    if name in ("scroll", "hscroll") and it.lenient and any(end in given for end in _TO):
        name = "swipe"
    match name:
        case "long_press":
            return Action("long_press", it.place(*_FROM), seconds=it.number("time"))
        case "swipe":
            start = it.place("coordinate", *_FROM, needed=False)
            end = it.place("coordinate2", *_TO, needed=False)
            way = it.way()
            if (not start or not end) and way is None:
                raise UnreadError('swipe needs "coordinate" and "coordinate2"')
            return Action("swipe", start, end, direction=None if start and end else way)
        case "scroll" | "hscroll":
            start, pixels = it.place("coordinate", *_FROM, needed=False), it.number("pixels")
            if pixels is None:
                way = it.way()
                if way is None:
                    raise UnreadError('scroll has no "pixels"')
                return Action("scroll", start, direction=way)
            ways: tuple[Direction, Direction] = ("up", "down")
            if name == "hscroll":
                ways = ("right", "left")
            way = None if pixels == 0 else ways[pixels < 0]
            return Action("scroll", start, direction=way, amount=abs(pixels))
        case "mouse_move":
            return Action("move", it.place(*_FROM))
        case "left_click_drag" | "drag":
            if it.lenient and "start_coordinate" in given:
                end = it.place("end_coordinate", "coordinate2", "coordinate")
                return Action("drag", it.place("start_coordinate"), end)
            end = it.place("coordinate2", *_TO, needed=False)
            start = it.place("coordinate", *_FROM)
            return Action("drag", start, end) if end else Action("drag", (), start)
        case "type":
            return Action(
                "type",
                it.place(*_FROM, needed=False) if it.lenient else (),
                text=it.text("text", "content"),
                clear=it.flag("clear"),
                submit=it.flag("enter"),
            )
        case "key":
            return press(it.keys())
        case "system_button":
            return Action(it.button())
        case "open":
            return Action("open_app", app=it.text("text", "app_name", "app"))
        case "wait":
            return Action("wait", seconds=it.number("time"))
        case "terminate":
            status = given.get("status")
            return Action("done", status=_STATUSES.get(str(status).strip().lower()))
        case "answer":
            return Action("done", text=it.text("text"))
        case "interact":
            text = given.get("text")
            return Action("ask", text=text if isinstance(text, str) and text else None)
    raise UnreadError(f"there is no action {name!r:.80}")


_STATUSES: Final[Mapping[str, Status]] = {"success": "success", "failure": "failure"}
_LONGEST: Final = 64
"""Characters of the longest number in a text."""
_FARTHEST: Final = 1e9
"""The largest absolute value of a number."""


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
            actions = join_moves(self._action(call, lenient=False) for call in found)
            return Answer(tuple(actions))
        calls = find_calls(text)
        thought = _HEADS.sub(r"\1\n", _TAGS.sub("", calls.before)).strip()
        if not calls.calls:
            return Answer((self._lone_place(text),))
        actions = join_moves(self._action(call, lenient=True) for call in calls.calls)
        rest = _CONCLUSION.sub("", calls.after)
        return Answer(tuple(actions), thought, rest.strip() if _TAIL.sub("", rest) else "")

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
        reading = _Reading(call.arguments, name, self.frame.space, lenient)
        return _read_call(reading, call.name)

    # Writing.

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        """See `Dialect.write`.

        A drag becomes a move and a drag if the tool takes only its end. Defaults of values that the
        tool needs are 2 seconds, 5 notches and success.
        """
        tool = "mobile_use" if platform == "mobile" else "computer_use"
        blocks = []
        for action in actions:
            for arguments in self._calls(action, fed, platform):
                body = json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
                if _TAGS.search(body):  # a text must not end the call that it stands in
                    body = body.replace("<", "\\u003c")
                blocks.append(f"{OPEN}\n{body}\n{CLOSE}")
        return "\n".join(blocks)

    def _calls(self, action: Action, fed: Screen, platform: Platform) -> list[Mapping[str, Any]]:
        kind, text, phone = action.kind, action.text, platform == "mobile"
        names = self.mobile if phone else self.desktop
        at = {"coordinate": _pair(action.start)} if action.start else {}
        other_button = action.button != "left" and (phone or kind != "tap")
        if action.held or action.path or other_button:
            raise self.refusal(action)
        match kind:
            case "tap" if at or not phone:
                for name, click in CLICKS.items():
                    if name in names and click == (action.button, action.count):
                        return [{"action": name, **at}]
            case "long_press" if phone and at:
                seconds = _SECONDS if action.seconds is None else action.seconds
                return [{"action": "long_press", **at, "time": seconds}]
            case "swipe" | "scroll" if phone:
                known = self.frame.space != "px" or min(fed) > 0 or (action.start and action.end)
                if ends := swipe_ends(action, self.frame.extent(fed)) if known else None:
                    start, end = (_pair((each,)) for each in ends)
                    return [{"action": "swipe", "coordinate": start, "coordinate2": end}]
            case "swipe" | "scroll":
                return [{**self._turn(action), **at}]
            case "move" if at and not phone:
                return [{"action": "mouse_move", **at}]
            case "drag" if action.end and not phone:
                if "drag" not in names:
                    move = [{"action": "mouse_move", **at}] if at else []
                    return [*move, {"action": "left_click_drag", "coordinate": _pair(action.end)}]
                if at:
                    return [{"action": "drag", **at, "coordinate2": _pair(action.end)}]
            case "back" | "home" | "recent" | "enter" if phone:
                return [{"action": "system_button", "button": _BUTTONS[kind]}]
            case "keys" if phone and len(action.keys) == 1:
                return [{"action": "key", "text": action.keys[0]}]
            case "hotkey" | "keys" | "enter" if not phone:
                keys = list(action.keys) or ["enter"] * (kind == "enter")
                if keys and (kind != "keys" or len(keys) == 1):
                    return [{"action": "key", "keys": keys}]
            case "open_app" if phone and action.app is not None:
                return [{"action": "open", "text": action.app}]
            case "type" if text is not None and not at:
                flags = {"clear": action.clear, "enter": action.submit}
                if "drag" in names:  # the one version whose typing has flags
                    said = {name: int(flag) for name, flag in flags.items() if flag is not None}
                    return [{"action": "type", "text": text, **said}]
                if not any(flags.values()):
                    return [{"action": "type", "text": text}]
            case "wait":
                seconds = _SECONDS if action.seconds is None else action.seconds
                return [{"action": "wait", "time": seconds}]
            case "done" if not text:
                return [{"action": "terminate", "status": action.status or "success"}]
            case "done" if "answer" in names and action.status is None:
                return [{"action": "answer", "text": text}]
            case "ask" if "interact" in names:
                return [{"action": "interact", "text": text or ""}]
        raise self.refusal(action)

    def _turn(self, action: Action) -> Mapping[str, Any]:
        way, amount = finger_way(action), action.amount
        if way is None or (amount is not None and (action.amount_unit != "notch" or amount <= 0)):
            raise self.refusal(action, "which way, or how far")
        sideways = way in ("left", "right")
        if sideways and "hscroll" not in self.desktop:
            raise self.refusal(action, "sideways")
        amount = _NOTCHES if amount is None else amount
        signed = amount if way in ("down", "left") else -amount
        return {"action": "hscroll" if sideways else "scroll", "pixels": signed}

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
    touch, mouse = (
        kinds(" ".join(_KINDS.get(name, "") for name in it)) for it in (mobile, desktop)
    )
    mouse |= {"hotkey"}
    return {"mobile": touch, "desktop": mouse, "web": mouse}


def _pair(places: Sequence[Region]) -> list[float]:
    point = centre(places[0])
    return [point.x, point.y]


# The released readers.


class _Qwen(ToolCalls):
    source = (
        "QwenLM/Qwen-Agent@31a4d36d123688581a9e9744427272b33ce940e0 nous_fncall_prompt.py, and"
        " the tools of QwenLM/Qwen3-VL@96588727e44c78b25ba03ea03b8e12f7e64fd0da"
        " cookbooks/utils/agent_function_call.py"
    )
    # Phone cookbooks have one text; harnesses of desktops show screenshots as turns
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
    value = decode_nested(text)
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
