r"""UI-TARS: four versions with the same names of actions.

1.0, 1.5 and Doubao write `Thought: ...\nAction: click(...)`, with an empty line between calls;
UI-TARS-2 calls functions in tags, and ends in `<answer>`. Places of 1.5 are pixels of the picture
as it is fed, all others are from 0 to 1000. "scroll down" shows the content further down.

Scrolls have no distance: an action with one is no training target, and histories omit it. Only
UI-TARS-2 writes the seconds of a wait. `finished` is success or an end without a status; failure
cannot be expressed. A typed text that ends in a newline is
submitted.

Source: bytedance/UI-TARS, `codes/ui_tars/{prompt,action_parser}.py`; bytedance/UI-TARS-desktop,
`multimodal/gui-agent` (names and their aliases) and `prompt_t5.ts`; OpenBMB/AgentCPM-GUI,
`eval/run_predict_ui_tars.py` (AndroidControl: `time` of a long press is in milliseconds).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, get_args

from msgspec import structs

from omnidata.actions import (
    OPPOSITE,
    Action,
    Button,
    Direction,
    Kind,
    Point,
    Region,
    Screen,
    Space,
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
    kinds,
    press,
    size_in_words,
)
from omnidata.dialects.call_syntax import (
    FUNCTION,
    UNPARSED,
    Call,
    Calls,
    after_blanks,
    calls_in_tags,
    number_text,
    numbers_of,
    parse_python,
    quote,
    region_of,
    tags_of_call,
)

_MERGE: Final = 28 * 28

# Reading: names and their aliases, without underscores and in lower case.

_START: Final = (
    "start_box", "start_point", "point", "start", "box", "position", "coordinate", "coordinates",
    "start_position", "start_coordinate", "start_coordinates", "startbox",
)  # fmt: skip
_END: Final = (
    "end_box", "end_point", "end", "end_position", "end_coordinate", "end_coordinates", "endbox",
)  # fmt: skip
_FIRST: Final = "#0"
_CONTENT: Final = ("content", "text", "input_text", "inputtext", "value", _FIRST)
_KEY: Final = ("key", "keys", "hotkey", "keyname", "keyboard_key", "press", _FIRST)
_APP: Final = ("app_name", "name", "appname", "application", "content", _FIRST)
_URL: Final = ("content", "url", "link", "website", _FIRST)
_TIME: Final = ("time", "seconds", "duration", "wait_time", "waittime", "delay")
_WAY: Final = ("direction", "dir", "scroll_direction", _FIRST)
_BUTTONS: Final[Mapping[str, Button]] = {button: button for button in get_args(Button)}


class _Reading:
    def __init__(self, call: Call, space: Space) -> None:
        self.call, self._space = call, space

    def value(self, names: Sequence[str]) -> tuple[str | None, str]:
        """Return the first of some arguments that the call has, and its text."""
        name = next((name for name in names if name in self.call.arguments), None)
        return name, self.call.arguments[name] if name else ""

    def text(self, names: Sequence[str]) -> str | None:
        name, text = self.value(names)
        if name and name == self.call.cut:
            raise UnreadError(f"the text ends in the {name} of {self.call.name}")
        return text if name else None

    def name(self, names: Sequence[str], noun: str) -> str:
        if text := self.text(names):
            return text
        raise UnreadError(f"{self.call.name} names no {noun}")

    def place(self, names: Sequence[str]) -> tuple[Region, ...]:
        name, text = self.value(names)
        if name and name == self.call.cut:
            text = text.rstrip("'\"` \n")
            if not text.endswith((")", "]", ">")):
                raise UnreadError(f"the text ends in the {name} of {self.call.name}")
        numbers = numbers_of(text)
        if numbers is None or len(numbers) not in (0, 2, 4):
            raise UnreadError(f"the {name} of {self.call.name} is {text!r:.60}, no place")
        return (region_of(numbers, self._space),) if numbers else ()

    def start(self) -> tuple[Region, ...]:
        return self.place((*_START, _FIRST))

    def seconds(self, names: Sequence[str], unit: float = 1) -> float | None:
        text = (self.text(names) or "").strip().removesuffix("s").strip()
        numbers = numbers_of(text)
        return numbers[0] * unit if numbers and len(numbers) == 1 else None

    def direction(self) -> Direction | None:
        text = self.text(_WAY)
        if not text:
            return None
        if way := DIRECTIONS.get(text.strip().lower()):
            return way
        raise UnreadError(f"the direction of {self.call.name} is {text!r:.60}")

    def button(self) -> Button:
        text = (self.text(("button", "mouse_button")) or "left").strip().lower()
        if button := _BUTTONS.get(text):
            return button
        raise UnreadError(f"the button of {self.call.name} is {text!r:.60}")

    def keys(self) -> tuple[str, ...]:
        text = self.text(_KEY) or ""
        if text.lstrip().startswith("["):
            text = re.sub(r"[\[\]'\",]", " ", text)
        keys = tuple(key for word in text.split() for key in _keys_of(word))
        if not keys:
            raise UnreadError(f"{self.call.name} names no key")
        return keys


def _keys_of(word: str) -> list[str]:
    if word == "+" or "+" not in word:
        return [word]
    keys = [key for key in word.split("+") if key]
    return [*keys, "+"] if word.endswith("++") else keys


def _read_type(call: _Reading) -> Action:
    text, start = call.text(_CONTENT), call.place(_START)
    if text is None:
        raise UnreadError(f"{call.call.name} says no text")
    for end in ("\n", "\\n"):
        if text.endswith(end):
            return Action("type", start, text=text.removesuffix(end), submit=True)
    return Action("type", start, text=text)


def _read_scroll(call: _Reading) -> Action:
    start = call.place(_START)
    return Action("scroll", start, direction=call.direction(), sense="content")


def _read_select(call: _Reading) -> Action:
    """Read a drag, or without an end a selection from a list, as in web data."""
    start, end = call.start(), call.place(_END)
    text = call.text(_CONTENT[:-1])
    return Action("drag", start, end) if end else Action("select", start, text=text)


def _tap(count: int = 1, button: Button | None = None) -> Callable[[_Reading], Action]:
    return lambda call: Action("tap", call.start(), count=count, button=button or call.button())


_READERS: Final[Mapping[str, Callable[[_Reading], Action]]] = {
    name: read
    for names, read in (
        ("click leftclick leftsingle tap", _tap()),
        ("doubleclick leftdouble doubletap", _tap(2, "left")),
        ("tripleclick", _tap(3, "left")),
        ("rightclick rightsingle", _tap(1, "right")),
        ("middleclick middlesingle", _tap(1, "middle")),
        ("move moveto mousemove hover", lambda c: Action("move", c.start())),
        ("mousedown", lambda c: Action("hold", c.start(), button=c.button())),
        ("mouseup", lambda c: Action("release", c.start(), button=c.button())),
        ("drag leftclickdrag", lambda c: Action("drag", c.start(), c.place((*_END, "#1")))),
        ("select", _read_select),
        (
            "swipe",
            lambda c: Action("swipe", c.place(_START), c.place(_END), direction=c.direction()),
        ),
        ("scroll", _read_scroll),
        ("type input inputtext", _read_type),
        ("hotkey", lambda c: press(c.keys())),
        ("press keydown", lambda c: Action("hold", keys=c.keys())),
        ("release keyup", lambda c: Action("release", keys=c.keys())),
        ("navigate openurl goto", lambda c: Action("open_url", url=c.name(_URL, "address"))),
        ("open openapp", lambda c: Action("open_app", app=c.name(_APP, "app"))),
        ("navigateback back pressback goback", lambda _: Action("back")),
        ("home presshome", lambda _: Action("home")),
        ("enter pressenter", lambda _: Action("enter")),
        ("recent pressrecent", lambda _: Action("recent")),
        ("longpress", lambda c: Action("long_press", c.start(), seconds=c.seconds(_TIME, 0.001))),
        ("wait", lambda c: Action("wait", seconds=c.seconds((*_TIME, _FIRST)))),
        ("finished finish", lambda c: Action("done", text=c.text(_CONTENT))),
        ("calluser", lambda c: Action("ask", text=c.text(_CONTENT))),
        ("screenshot snapshot takescreenshot", lambda _: Action("look")),
    )
    for name in names.split()
}


def _find_reader(name: str) -> Callable[[_Reading], Action] | None:
    return _READERS.get(name.replace("_", "").lower())


def _action(call: Call, space: Space) -> Action:
    if read := _find_reader(call.name):
        return read(_Reading(call, space))
    raise UnreadError(f"there is no action {call.name!r:.60}")


_MARKERS: Final = re.compile(r"Action ?[:：][\s`'\"*]*+")
_NAMED: Final = re.compile(r"\b([A-Za-z_]\w{0,63})\s{0,9}\(")
_HEADS: Final = re.compile(
    r"^[ \t]*+(?:Thought|Reflection|Action_Summary) ?[:：][ \t]*+"
    r"|^[ \t]*+Action ?[:：][ \t]*+\Z"
    r"|</?[Tt]hink\w{0,20}>|</?Thought>|<computer_env>|```",
    re.MULTILINE,
)


def _strip_marks(text: str) -> str:
    return _HEADS.sub("", text).strip()


def _chain(calls: Calls, text: str) -> Sequence[Call]:
    marked = [found.end() for found in _MARKERS.finditer(text)]
    chain = calls.best(marked)
    if not chain or not _find_reader(chain[0].name):
        known = [found.start() for found in _NAMED.finditer(text) if _find_reader(found[1])]
        chain = calls.best(known) or chain
    return chain


def _read_calls(text: str, space: Space) -> Answer:
    calls = Calls(text)
    chain = _chain(calls, text)
    if not chain:
        raise UnreadError("no call of an action is in the text")
    actions, last = _leading_actions(chain, space)
    rest = "" if calls.is_last(last) else text[last.end :].strip()
    return Answer(actions, _strip_marks(text[: chain[0].begin]), rest)


def _leading_actions(calls: Iterable[Call], space: Space) -> tuple[tuple[Action, ...], Call]:
    """Return the actions of calls, up to one with an unknown name, and the last call of them."""
    known: list[Call] = []
    actions: list[Action] = []
    for call in calls:
        if actions and not _find_reader(call.name):
            break
        known.append(call)
        actions.append(_action(call, space))
    return tuple(actions), known[-1]


# UI-TARS-2: functions in tags.

_THINK: Final = re.compile(r"\s*+<think\w{0,20}>")
_THOUGHT_END: Final = re.compile(r"</think\w{0,20}>")


def _read_tags(text: str, space: Space) -> Answer:
    thought, begin = "", 0
    if _THINK.match(text) and (ended := _THOUGHT_END.search(text)):
        thought, begin = _strip_marks(text[: ended.end()]), ended.end()
    function = FUNCTION.search(text, begin)
    answer = text.find("<answer>", begin)
    tags = [at - begin for at in (answer, function.start() if function else -1) if at >= 0]
    if tags and any(
        call.begin < min(tags) < call.end for call in _chain(Calls(text[begin:]), text[begin:])
    ):
        function, answer = None, -1  # a tag inside a call is typed text
    if answer >= 0 and not (function and function.start() < answer):
        said, _, rest = text[answer + len("<answer>") :].partition("</answer>")
        action = Action("done", text=said.strip() or None)
        return Answer((action,), thought or _strip_marks(text[begin:answer]), rest.strip())
    if function is None:
        found = _read_calls(text[begin:], space)
        return Answer(found.actions, "\n".join(filter(None, (thought, found.thought))), found.rest)
    if not thought:
        thought = _strip_marks(text[begin : function.start()].replace("<seed:tool_call>", ""))
    actions, last = _leading_actions(calls_in_tags(text, function.start()), space)
    rest = text[last.end :].strip().removeprefix("</seed:tool_call>").strip()
    return Answer(actions, thought, rest)


# As released.

_LONGEST: Final = 100_000
"""Characters of the longest answer that Python's own parser is given."""
_TAGGED_POINT: Final = re.compile(r"<point>(\d++)\s++(\d++)</point>")
_RELEASED_TYPE: Final = re.compile(r"type\(content='(.*?)'\)")
_UNESCAPED: Final = re.compile(r"(?<!\\)'")
_RELEASED: Final = frozenset({
    "click", "left_single", "left_double", "right_single", "hover", "drag", "select", "hotkey",
    "press", "keydown", "release", "keyup", "type", "scroll", "wait", "finished", "call_user",
    "long_press", "open_app", "press_home", "press_back", "press_enter", "navigate",
    "navigate_back",
})  # fmt: skip
_RELEASED_KEYS: Final = ("content", "key", "hotkey", "press", "direction", "app_name", "time")


def _read_released(text: str, space: Space) -> Answer:
    """Read as `parse_action_to_structure_output` does.

    Names come from the prompts and `parsing_response_to_pyautogui_code`, which also strips all
    trailing n after a backslash from a typed text.
    """
    if len(text) > _LONGEST:
        raise UnreadError(f"the text has more than {_LONGEST} characters")
    text = text.strip()
    try:
        if "<point>" in text:
            text = _TAGGED_POINT.sub(
                lambda found: f"({int(found[1])},{int(found[2])})", text.replace("[EOS]", "")
            ).strip()
        for old in ("start_point=", "end_point=", "point="):
            text = text.replace(old, "end_box=" if old == "end_point=" else "start_box=")
        if "Action:" not in text:
            raise UnreadError('the text has no "Action:"')
        parts = text.split("Action: ")[-1].split(")\n\n")
        calls = [_parse_call(_repair(part)) for part in parts]
    except UnreadError:
        raise
    except UNPARSED as error:
        raise UnreadError("the text is no call of Python") from error
    actions = tuple(_parse_released_action(name, given, space) for name, given in calls)
    return Answer(actions, _find_released_thought(text))


def _repair(part: str) -> str:
    """Close the call, and escape the quotes in what it types."""
    if not part.strip().endswith(")"):
        part = part.strip() + ")"
    if "type(content" not in part:
        return part
    # Each line up to its last "')": behind that no search could succeed, and would scan in vain.
    lines, replaced = [], 0
    for line in part.split("\n"):
        before, end, rest = line.rpartition("')")
        contents, count = _RELEASED_TYPE.subn(r"\1", before + end)
        lines.append(contents + rest)
        replaced += count
    if not replaced:
        raise UnreadError("what is typed is not between single quotes on a line")
    typed = _UNESCAPED.sub(chr(92) * 2 + chr(39), "\n".join(lines))
    return f"type(content='{typed}')"


def _parse_call(part: str) -> tuple[str | None, dict[str, str]]:
    body = parse_python(part.replace("\n", "\\n").lstrip()).body
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if not isinstance(call, ast.Call):
        raise UnreadError("the text is no call of Python")
    name = getattr(call.func, "id", getattr(call.func, "attr", None))
    values: dict[str, str] = {}
    for one in call.keywords:
        value = one.value.value if isinstance(one.value, ast.Constant) else None
        if one.arg is None or not isinstance(value, str):
            raise UnreadError("an argument is no text")
        values[one.arg] = value
    return name, values


def _parse_released_action(name: str | None, given: Mapping[str, str], space: Space) -> Action:
    if name not in _RELEASED:
        raise UnreadError(f"there is no action {name!r:.60}")
    arguments: dict[str, str] = {}
    places: dict[str, tuple[Region, ...]] = {}
    for key, value in given.items():
        if value and ("start_box" in key or "end_box" in key):
            places[key] = _parse_released_place(value.lstrip(), space)
        elif value and key in _RELEASED_KEYS:
            arguments[key] = value.lstrip()
    start, end = places.get("start_box", ()), places.get("end_box", ())
    if name in ("drag", "select"):
        return Action("drag", start, end)
    if name == "type":
        text = arguments.get("content", "")
        if text.endswith(("\n", "\\n")):
            return Action("type", start, text=text.rstrip("\\n").rstrip("\n"), submit=True)
        return Action("type", start, text=text)
    action = _action(Call(name, arguments, 0, 0), space)
    return structs.replace(action, start=start)


def _parse_released_place(text: str, space: Space) -> tuple[Region, ...]:
    numbers: list[float] = []
    for word in text.replace("(", "").replace(")", "").split(","):
        try:
            number = float(word)
        except ValueError as error:
            raise UnreadError(f"{word!r:.60} is no number") from error
        if not math.isfinite(number):
            raise UnreadError("a place is not finite")
        numbers.append(int(number) if number.is_integer() and "." not in word else number)
    if len(numbers) not in (2, 4):
        raise UnreadError(f"a place has {len(numbers)} numbers")
    return (region_of(numbers, space),)


def _find_released_thought(text: str) -> str:
    """Match the released regular expressions in linear time."""
    heads = ["Thought: "]
    if text.startswith("Reflection:"):
        heads = ["Reflection: ", "Action_Summary: "]
    elif text.startswith("Action_Summary:"):
        heads = ["Action_Summary: "]
    begin = -1
    for head in heads:
        begin = text.find(head, begin + 1)
        if begin < 0:
            return ""
        begin += len(head)
    end = text.find("Action: ", begin + 1)
    return text[begin : end if end >= 0 else None].strip()


# As released: functions in tags.

_SUPPORTED: Final = frozenset({
    "click", "right_click", "double_click", "middle_click", "mouse_down", "mouse_up",
    "mouse_move", "drag", "scroll", "type", "hotkey", "press", "release", "navigate",
    "navigate_back", "long_press", "swipe", "home", "press_home", "back", "press_back",
    "open_app", "wait", "finished", "call_user",
})  # fmt: skip
"""Names that the parser keeps before it looks aliases up: `left_double` is none of them."""
_POINT: Final = re.compile(r"\s*+<point>([^<>]*+)</point>\s*+\Z")
_ENTITIES: Final = {"&apos;": "'", "&gt;": ">", "&lt;": "<", "&quot;": '"', "&amp;": "&"}
_HEX_OR_POWER: Final = re.compile(
    r"[-+]?0x[0-9a-fA-F]++\Z|[-+]?[0-9]*(?:\.[0-9]*+)?[eE][-+]?[0-9]++\Z"
)
_DECIMAL: Final = re.compile(r"([-+]?)0*+([0-9]*+)(?:\.([0-9]*+))?\Z")
_NEEDED: Final = ("start", "end", "point", "key", "url", "name")


def _read_tags_released(text: str, space: Space) -> Answer:
    """Read as the parser's XML format does: a thought, functions, an answer.

    It drops unknown functions and values that are numbers or truths, merges two calls of one
    function into one without arguments, undoes entities and strips blanks. Other shapes are no
    answer here.
    """
    text = text.strip()
    if "computer_env" in text:
        raise UnreadError("the text is in another of the parser's formats")
    thought, position = "", 0
    if opened := _THINK.match(text):
        ended = text.find("</think", opened.end())
        thought = text[opened.end() : ended].strip()
        closed = text.find(">", ended)
        if ended < 0 or closed < 0 or "<" in thought:
            raise UnreadError("the thought has no end, or tags in it")
        position = after_blanks(text, closed + 1)
    if text.startswith("<answer>", position):
        said, closing, rest = text[position + len("<answer>") :].partition("</answer>")
        if not closing or rest or "<" in said:
            raise UnreadError("the answer has no end, tags in it, or something behind it")
        return Answer((Action("done", text=_entities(said.strip())),), thought)
    if not text.startswith("<seed:tool_call>", position):
        raise UnreadError("the text has no <seed:tool_call> and no <answer>")
    position += len("<seed:tool_call>")
    called: dict[str, Mapping[str, str]] = {}
    for call in calls_in_tags(text, position):
        if call.cut or not text.endswith("</function>", 0, call.end):
            raise UnreadError("a function has no end")
        if any("<" in value and not _POINT.match(value) for value in call.arguments.values()):
            raise UnreadError(f"a parameter of {call.name} has tags in it")
        called[call.name] = {} if call.name in called else call.arguments
        position = call.end
    if text[position:].strip() != "</seed:tool_call>":
        raise UnreadError("something else than functions is between the tags")
    actions = [
        _parse_released_function(name, given, space)
        for name, given in called.items()
        if name in _SUPPORTED
    ]
    if not actions:
        raise UnreadError("no function has a name that the parser knows")
    return Answer(tuple(actions), thought)


def _parse_released_function(name: str, given: Mapping[str, str], space: Space) -> Action:
    arguments: dict[str, str] = {}
    for key, value in given.items():
        if (point := _POINT.match(value)) and point[1].strip():
            arguments[key] = value
        elif not _is_number(_entities(value.strip())):
            arguments[key] = "" if point else _entities(value.strip())
            if not arguments[key] and any(word in key for word in _NEEDED):
                raise UnreadError(f"the {key} of {name} is empty")
    if name == "type" and "content" not in arguments:
        return Action("type")
    return _action(Call(name, arguments, 0, 0), space)


def _entities(text: str) -> str:
    for entity, letter in _ENTITIES.items():
        text = text.replace(entity, letter)
    return text


def _is_number(text: str) -> bool:
    """Return whether fast-xml-parser takes a text for a number or a truth."""
    if text in ("true", "false") or _HEX_OR_POWER.match(text):
        return True
    found = _DECIMAL.match(text)
    if not found or not any(letter.isdigit() for letter in text):
        return False
    value = abs(float(text))
    if value >= 1e21 or 0 < value < 1e-6:
        return True
    whole, fraction = found[2] or "0", (found[3] or "").rstrip("0")
    return number_text(value) == (f"{whole}.{fraction}" if fraction else whole)


# Writing.

_CLICKS: Final[Mapping[tuple[Button, int], str]] = {
    ("left", 1): "click", ("left", 2): "left_double", ("right", 1): "right_single",
}  # fmt: skip
_NAMES: Final[Mapping[Kind, str]] = {
    "home": "press_home", "enter": "press_enter", "long_press": "long_press", "move": "hover",
    "select": "select", "hold": "press", "release": "release", "done": "finished",
    "ask": "call_user", "open_app": "open_app", "open_url": "navigate",
}  # fmt: skip
Values = dict[str, str]


class _UITars(Dialect):
    """Base class of the four versions.

    Attributes:
        box: the argument of a place.
        places: how a place is written, of its "x" and "y".
        shown: the same in prompts.
        counted: whether a wait says how long it takes.
    """

    layout = Layout(turns=True, screenshots=5, system=False)
    box: ClassVar[str] = "point"
    places: ClassVar[str] = "<point>{x} {y}</point>"
    shown: ClassVar[str] = places
    counted: ClassVar[bool] = False

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        if rules == "strict":
            return self.read_released(text)
        return _read_tags(text, self.frame.space)

    def read_released(self, text: str) -> Answer:
        return _read_released(text, self.frame.space)

    def place(self, point: Point) -> str:
        return self.places.format(x=number_text(point.x), y=number_text(point.y))

    def values(self, action: Action, platform: Platform) -> tuple[str, Values]:
        """Return the name of an action's call, and its arguments."""
        self.check(action, platform, "held", "path", "then", "amount")
        kind = action.kind
        at = {self.box: self.place(centre(action.start[0]))} if action.start else {}
        name = _NAMES.get(kind, "")
        match kind:
            case "tap":
                name = _CLICKS.get((action.button, action.count), "")
                if not name or (platform == "mobile" and name != "click"):
                    raise self.refusal(action)
            case "drag" | "swipe" if action.start and action.end:
                form = self.box.removeprefix("start_")
                end = self.place(centre(action.end[0]))
                return "drag", {f"start_{form}": at[self.box], f"end_{form}": end}
            case "scroll" | "swipe":
                way = finger_way(action)
                if way is None:
                    raise self.refusal(action, "which way")
                return "scroll", {**at, "direction": OPPOSITE[way]}
            case "type":
                return "type", self.write_type(action, platform, at)
            case "keys" | "hotkey" | "hold" | "release":
                return self.write_keys(action, at)
            case "open_app" | "open_url":
                key, said = (
                    ("app_name", action.app) if kind == "open_app" else ("content", action.url)
                )
                if not said:
                    raise self.refusal(action, "without a name")
                return name, {key: said}
            case "back":
                return ("press_back" if platform == "mobile" else "navigate_back"), {}
            case "wait":
                is_timed = self.counted and action.seconds is not None
                return "wait", {"time": number_text(action.seconds or 0)} if is_timed else {}
            case "done" | "ask" if action.status != "failure":
                return name, {} if action.text is None else {"content": action.text}
            case "home" | "enter":
                return name, {}
            case "long_press" if action.seconds is not None:
                at["time"] = number_text(action.seconds * 1000)
            case "move" if self.counted:
                name = "move_to"
            case "drag" | "done" | "ask":
                raise self.refusal(action, "how it ends")
        if not action.start or (kind == "select" and action.text is not None):
            raise self.refusal(action, "without a place, or with a text")
        return name, at

    def brief(self, action: Action) -> Action:
        """Return an earlier action without its scroll amount."""
        return structs.replace(action, amount=None)

    def write_type(self, action: Action, platform: Platform, at: Values) -> Values:
        text = action.text or ""
        if action.clear or (at and platform != "web"):
            raise self.refusal(action, "where, or that the field is emptied")
        if not action.submit and text.endswith(("\n", "\\n")):
            raise self.refusal(action, "a text that ends in a newline would be submitted")
        return {"content": text + "\n" if action.submit else text, **at}

    def write_keys(self, action: Action, at: Values) -> tuple[str, Values]:
        keys = tuple("space" if key == " " else key for key in action.keys)
        plain = all(_keys_of(key) == key.split() == [key] for key in keys)
        several = len(keys) > 1 and action.kind != "hotkey"
        if not keys or not plain or several or keys[0].startswith("["):
            raise self.refusal(action, f"no spelling of the keys {action.keys!r:.60}")
        return _NAMES.get(action.kind, "hotkey"), {"key": " ".join(keys)}


_COMPUTER: Final = kinds("tap drag move scroll swipe type keys hotkey hold release wait done ask")
_PHONE: Final = kinds(
    "tap long_press drag swipe scroll type open_app home back enter wait done ask"
)
_OPERATE: Final = (
    "You operate a graphical user interface for the user. From the task, the actions so far and "
    "the screenshots, choose the next action."
)
_FIND: Final = "You find elements of user interfaces. The user names one;"


class _Spoken(_UITars):
    source = "bytedance/UI-TARS@582f3a7 codes/ui_tars/action_parser.py"
    box = "start_box"
    places = shown = "<|box_start|>({x},{y})<|box_end|>"
    says: ClassVar = {"desktop": _COMPUTER, "web": _COMPUTER | {"select"}, "mobile": _PHONE}

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        if not actions:
            raise CannotSayError("no action")
        calls = []
        for action in actions:
            name, values = self.values(action, platform)
            written = ", ".join(f"{key}={quote(value)}" for key, value in values.items())
            calls.append(f"{name}({written})")
        return "Action: " + "\n\n".join(calls)

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        first, second = (self.shown.format(x=f"x{end}", y=f"y{end}") for end in (1, 2))
        at, unit = f"{self.box}='{first}'", _unit(self.frame.space, fed)
        if asked == "point":
            return f"{_FIND} click on it.\n\n## Output Format\nAction: click({at})\n\n{unit}"
        form = self.box.removeprefix("start_")
        ends = f"start_{form}='{first}', end_{form}='{second}'"
        lines = _PHONE_LINES if platform == "mobile" else _COMPUTER_LINES
        for kind, more in _MORE_LINES.items():
            lines += more if kind in self.says[platform] else ()
        return (
            f"{_OPERATE}\n\n## Output Format\n"
            "Thought: what you see and why you act, in a sentence or two\n"
            "Action: one of the calls below\n\n## Action Space\n"
            + "\n".join(line.format(at=at, ends=ends) for line in lines)
            + "\n\nBetween quotes, write \\' for ', \\\" for \" and \\n for a new line. "
            + unit
        )


_SHARED_LINES: Final = (
    "scroll({at}, direction='up, down, left or right')  # shows more on the side that it names",
    "type(content='')  # types at the focus; a \\n at the end submits it",
    "drag({ends})",
    "wait()  # for about five seconds",
    "finished(content='')  # when nothing is left to do; says what there is to report",
    "call_user()  # when the task cannot be done, or only with the user's help",
)
_COMPUTER_LINES: Final[tuple[str, ...]] = (
    "click({at})",
    "left_double({at})",
    "right_single({at})",
    "hotkey(key='')  # keys pressed together, in lower case, apart by a blank, three at most",
    *_SHARED_LINES,
)
_PHONE_LINES: Final[tuple[str, ...]] = (
    "click({at})",
    "long_press({at})",
    "open_app(app_name='')",
    "press_home()",
    "press_back()",
    "press_enter()",
    *_SHARED_LINES,
)
_MORE_LINES: Final[Mapping[Kind, tuple[str, ...]]] = {
    "select": (
        "select({at})  # opens a list, or picks one of its entries",
        "type(content='', {at})  # clicks into a field and types there",
    ),
    "open_url": (
        "navigate(content='')  # opens the address",
        "navigate_back()  # to the page before",
    ),
}


def _unit(space: Space, fed: Screen) -> str:
    if space != "px":
        return "x goes from 0 at the left edge to 1000 at the right, y from 0 at the top to 1000."
    return f"x and y are pixels of the screenshot{size_in_words(fed)}, from its top left corner."


class UITars10(_Spoken):
    """UI-TARS of January 2025, over Qwen2-VL."""

    name = "ui-tars-1.0"
    title = "UI-TARS 1.0: Thought and Action, boxes from 0 to 1000"
    checkpoints = (
        "UI-TARS-2B-SFT", "UI-TARS-7B-SFT", "UI-TARS-7B-DPO", "UI-TARS-72B-SFT", "UI-TARS-72B-DPO",
    )  # fmt: skip
    frame = Frame("norm1000", 28, 4 * _MERGE, 2700 * _MERGE)


class UITars15(_Spoken):
    """UI-TARS 1.5, over Qwen2.5-VL."""

    name = "ui-tars-1.5"
    title = "UI-TARS 1.5: Thought and Action, pixels of the picture as fed"
    checkpoints = ("UI-TARS-1.5-7B",)
    frame = Frame("px", 28, 100 * _MERGE, 16384 * _MERGE)
    places = "({x},{y})"


class UITarsDoubao(_Spoken):
    """Doubao-1.5-UI-TARS and the Seed models that are asked like it."""

    name = "ui-tars-doubao"
    title = "Doubao UI-TARS: Thought and Action, points from 0 to 1000"
    checkpoints = ("doubao-1.5-ui-tars", "doubao-1-5-thinking-vision-pro", "doubao-seed-1.6")
    frame = Frame("norm1000", max_pixels=5120 * _MERGE)
    box, places, shown = "point", _UITars.places, _UITars.shown
    says: ClassVar = {**_Spoken.says, "web": _COMPUTER | {"open_url", "back"}}


class UITars2(_UITars):
    """UI-TARS-2, which calls functions in tags."""

    name = "ui-tars-2"
    title = "UI-TARS-2: functions in tags, points from 0 to 1000"
    checkpoints = ("UI-TARS-2",)
    frame = Frame("norm1000", max_pixels=5120 * _MERGE)
    source = "bytedance/UI-TARS-desktop@239b654 multimodal/gui-agent/action-parser XMLFormatParser"
    counted = True
    says: ClassVar = {
        **dict.fromkeys(("desktop", "web"), (_COMPUTER - {"ask"}) | {"open_url", "back"}),
        "mobile": _PHONE - {"ask", "enter"},
    }

    def read_released(self, text: str) -> Answer:
        return _read_tags_released(text, self.frame.space)

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        if not actions:
            raise CannotSayError("no action")
        called = [self.values(action, platform) for action in actions]
        if any(action.kind == "done" for action in actions):
            if len(actions) > 1:
                raise CannotSayError("an answer beside other actions")
            text = actions[0].text or ""
            if "</answer>" in text or text != text.strip():
                raise CannotSayError("an answer cannot have its own end or blanks around it")
            return f"<answer>{text}</answer>"
        written = "\n".join(tags_of_call(name, values) for name, values in called)
        return f"<seed:tool_call>\n{written}\n</seed:tool_call>"

    def write_keys(self, action: Action, at: Values) -> tuple[str, Values]:
        if action.kind not in ("hold", "release") or action.keys:
            return super().write_keys(action, at)
        if action.button not in ("left", "right"):
            raise self.refusal(action, "that button")
        name = "mouse_down" if action.kind == "hold" else "mouse_up"
        return name, {**at, "button": action.button}

    def write_type(self, action: Action, platform: Platform, at: Values) -> Values:
        """A submitted text ends in a backslash and an n."""
        found = super().write_type(action, "desktop", at)
        if action.submit:
            found["content"] = f"{action.text or ''}\\n"
        return found

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        form = (
            "## Output Format\n<think>what you see and why you act</think>\n<seed:tool_call>\n"
            "<function=NAME>\n<parameter=PARAMETER>value</parameter>\n</function>\n"
            "</seed:tool_call>\n\nA place is <point>x y</point>. " + _unit("norm1000", fed)
        )
        if asked == "point":
            return f"{_FIND} call click with its place as the parameter point.\n\n{form}"
        lines = "\n".join(_PHONE_FUNCTIONS if platform == "mobile" else _COMPUTER_FUNCTIONS)
        return (
            f"{_OPERATE}\n\n{form}\n\n## Functions and their parameters\n{lines}\n\n"
            "When the task is done, answer with <answer>what there is to report</answer> instead."
        )


_SHARED_FUNCTIONS: Final = (
    "click: point",
    "drag: start_point, end_point",
    "scroll: direction (up, down, left or right: where more is to be shown), point (optional)",
    "type: content (at the focus; \\n at its end submits it)",
    "wait: time (in seconds, optional)",
)
_COMPUTER_FUNCTIONS: Final = (
    *_SHARED_FUNCTIONS,
    "left_double: point",
    "right_single: point",
    "move_to: point",
    "mouse_down, mouse_up: point (optional), button (left or right, optional)",
    "hotkey: key (keys pressed together, in lower case, apart by a blank)",
    "press, release: key (one that is held down, or let go)",
    "navigate: content (an address)",
    "navigate_back: none",
)
_PHONE_FUNCTIONS: Final = (
    *_SHARED_FUNCTIONS,
    "long_press: point",
    "open_app: app_name",
    "press_home, press_back: none",
)

DIALECTS: Final[tuple[Dialect, ...]] = (UITars10(), UITars15(), UITarsDoubao(), UITars2())
