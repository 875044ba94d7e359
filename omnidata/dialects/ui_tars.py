r"""UI-TARS, four versions: what is the same is what actions are called.

1.0, 1.5 and Doubao say `Thought: ...\nAction: click(...)`, with several calls apart by an empty
line; UI-TARS-2 calls functions in tags, and ends in `<answer>`. 1.5 says pixels of the picture as
it is fed, all others 0 to 1000. "scroll down" shows what is further down.

It has no words for how far a wheel turns: such a scroll is no target that could be learnt, but
histories tell of it without. So do the seconds that 1.x waits, everywhere. `finished` does not say
whether the task is done: success is written with it, failure cannot be said. A typed text that ends
in a newline is submitted.

Source: bytedance/UI-TARS, `codes/ui_tars/{prompt,action_parser}.py`; bytedance/UI-TARS-desktop,
`multimodal/gui-agent` (names and their aliases) and `prompt_t5.ts`; OpenBMB/AgentCPM-GUI,
`eval/run_predict_ui_tars.py` (AndroidControl: `time` of a long press is in milliseconds).
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final, get_args

from msgspec import structs

from omnidata.actions import (
    OPPOSITE,
    Action,
    Box,
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
    Answer,
    Asked,
    CannotSayError,
    Dialect,
    Frame,
    Layout,
    Past,
    Platform,
    Rules,
    UnreadError,
)
from omnidata.dialects.call_syntax import Call, Calls, number_text, numbers_of, quote

_MERGE: Final = 28 * 28

# Reading: names and their aliases, without underscores and in lower case.

_START: Final = (
    *("start_box", "start_point", "point", "start", "box", "position", "coordinate"),
    *("coordinates", "start_position", "start_coordinate", "start_coordinates", "startbox"),
)
_END: Final = (
    *("end_box", "end_point", "end", "end_position", "end_coordinate", "end_coordinates", "endbox"),
)
_FIRST: Final = "#0"
_CONTENT: Final = ("content", "text", "input_text", "inputtext", "value", _FIRST)
_KEY: Final = ("key", "keys", "hotkey", "keyname", "keyboard_key", "press", _FIRST)
_APP: Final = ("app_name", "name", "appname", "application", "content", _FIRST)
_URL: Final = ("content", "url", "link", "website", _FIRST)
_TIME: Final = ("time", "seconds", "duration", "wait_time", "waittime", "delay")
_WAY: Final = ("direction", "dir", "scroll_direction", _FIRST)


class _Said:
    def __init__(self, call: Call, space: Space) -> None:
        self.call, self._space = call, space

    def text(self, names: Sequence[str]) -> str | None:
        given = self.call.arguments
        name = next((name for name in names if name in given), None)
        if name is None:
            return None
        if name == self.call.cut:
            raise UnreadError(f"the text ends in the {name} of {self.call.name}")
        return given[name]

    def place(self, names: Sequence[str]) -> tuple[Region, ...]:
        given = self.call.arguments
        name = next((name for name in names if name in given), None)
        if name is None:
            return ()
        text = given[name].rstrip("'\"` \n") if name == self.call.cut else given[name]
        if name == self.call.cut and not text.endswith((")", "]", ">")):
            raise UnreadError(f"the text ends in the {name} of {self.call.name}")
        numbers = numbers_of(text)
        if numbers is None or len(numbers) not in (0, 2, 4):
            raise UnreadError(f"the {name} of {self.call.name} is {text!r:.60}, no place")
        return _region(numbers, self._space)

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
        said = text.strip().lower()
        way: Direction | None = next((way for way in get_args(Direction) if way == said), None)
        if way is None:
            raise UnreadError(f"the direction of {self.call.name} is {text!r:.60}")
        return way

    def button(self) -> Button:
        text = (self.text(("button", "mouse_button")) or "left").strip().lower()
        button: Button | None = next((one for one in get_args(Button) if one == text), None)
        if button is None:
            raise UnreadError(f"the button of {self.call.name} is {text!r:.60}")
        return button

    def keys(self) -> tuple[str, ...]:
        text = self.text(_KEY) or ""
        if text.lstrip().startswith("["):
            text = re.sub(r"[\[\]'\",]", " ", text)
        return tuple(key for word in text.split() for key in _keys_of(word))


def _keys_of(word: str) -> list[str]:
    if word == "+" or "+" not in word:
        return [word]
    keys = [key for key in word.split("+") if key]
    return [*keys, "+"] if word.endswith("++") else keys


def _region(numbers: Sequence[float], space: Space) -> tuple[Region, ...]:
    if not numbers:
        return ()
    if len(numbers) == 2:
        return (Point(numbers[0], numbers[1], space),)
    (left, right), (top, bottom) = sorted(numbers[::2]), sorted(numbers[1::2])
    return (Box(left, top, right, bottom, space),)


def _read_type(said: _Said) -> Action:
    text, start = said.text(_CONTENT), said.place(_START)
    if text is None:
        raise UnreadError(f"{said.call.name} says no text")
    if text.endswith("\n"):
        return Action("type", start, text=text[:-1], submit=True)
    if text.endswith("\\n"):
        return Action("type", start, text=text[:-2], submit=True)
    return Action("type", start, text=text)


def _read_drag(said: _Said) -> Action:
    return Action("drag", said.start(), said.place((*_END, "#1")))


def _read_select(said: _Said) -> Action:
    """Web data select from a list with it; all others drag."""
    start, end = said.start(), said.place(_END)
    text = said.text(_CONTENT[:-1])
    return Action("drag", start, end) if end else Action("select", start, text=text)


def _read_scroll(said: _Said) -> Action:
    return Action("scroll", said.place(_START), direction=said.direction(), sense="content")


def _read_swipe(said: _Said) -> Action:
    return Action("swipe", said.place(_START), said.place(_END), direction=said.direction())


def _hotkey(said: _Said) -> Action:
    keys = said.keys()
    if not keys:
        raise UnreadError(f"{said.call.name} names no key")
    return Action("hotkey" if len(keys) > 1 else "keys", keys=keys)


def _read_held_keys(kind: Kind) -> Callable[[_Said], Action]:
    def read(said: _Said) -> Action:
        if keys := said.keys():
            return Action(kind, keys=keys)
        raise UnreadError(f"{said.call.name} names no key")

    return read


def _mouse(kind: Kind) -> Callable[[_Said], Action]:
    return lambda said: Action(kind, said.start(), button=said.button())


def _tap(count: int = 1, button: Button | None = None) -> Callable[[_Said], Action]:
    def read(said: _Said) -> Action:
        return Action("tap", said.start(), count=count, button=button or said.button())

    return read


def _bare(kind: Kind) -> Callable[[_Said], Action]:
    return lambda _: Action(kind)


def _read_app(said: _Said) -> Action:
    app = said.text(_APP)
    if not app:
        raise UnreadError(f"{said.call.name} names no app")
    return Action("open_app", app=app)


def _read_url(said: _Said) -> Action:
    url = said.text(_URL)
    if not url:
        raise UnreadError(f"{said.call.name} names no address")
    return Action("open_url", url=url)


_READERS: Final[Mapping[str, Callable[[_Said], Action]]] = {
    **dict.fromkeys(("click", "leftclick", "leftsingle", "tap"), _tap()),
    **dict.fromkeys(("doubleclick", "leftdouble", "doubletap"), _tap(2, "left")),
    "tripleclick": _tap(3, "left"),
    **dict.fromkeys(("rightclick", "rightsingle"), _tap(1, "right")),
    **dict.fromkeys(("middleclick", "middlesingle"), _tap(1, "middle")),
    **dict.fromkeys(
        ("move", "moveto", "mousemove", "hover"), lambda said: Action("move", said.start())
    ),
    "mousedown": _mouse("hold"),
    "mouseup": _mouse("release"),
    **dict.fromkeys(("drag", "leftclickdrag"), _read_drag),
    "select": _read_select,
    "swipe": _read_swipe,
    "scroll": _read_scroll,
    **dict.fromkeys(("type", "input", "inputtext"), _read_type),
    "hotkey": _hotkey,
    **dict.fromkeys(("press", "keydown"), _read_held_keys("hold")),
    **dict.fromkeys(("release", "keyup"), _read_held_keys("release")),
    **dict.fromkeys(("navigate", "openurl", "goto"), _read_url),
    **dict.fromkeys(("navigateback", "back", "pressback", "goback"), _bare("back")),
    **dict.fromkeys(("home", "presshome"), _bare("home")),
    **dict.fromkeys(("enter", "pressenter"), _bare("enter")),
    **dict.fromkeys(("recent", "pressrecent"), _bare("recent")),
    "longpress": lambda said: Action(
        "long_press", said.start(), seconds=said.seconds(_TIME, 0.001)
    ),
    **dict.fromkeys(("open", "openapp"), _read_app),
    "wait": lambda said: Action("wait", seconds=said.seconds((*_TIME, _FIRST))),
    **dict.fromkeys(("finished", "finish"), lambda said: Action("done", text=said.text(_CONTENT))),
    "calluser": lambda said: Action("ask", text=said.text(_CONTENT)),
    **dict.fromkeys(("screenshot", "snapshot", "takescreenshot"), _bare("look")),
}


def _find_reader(name: str) -> Callable[[_Said], Action] | None:
    return _READERS.get(name.replace("_", "").lower())


def _action(call: Call, space: Space) -> Action:
    read = _find_reader(call.name)
    if read is None:
        raise UnreadError(f"there is no action {call.name!r:.60}")
    return read(_Said(call, space))


_MARKERS: Final = re.compile(r"Action ?[:：][\s`'\"*]*+")
_NAMED: Final = re.compile(r"\b[A-Za-z_]\w{0,63}\s{0,9}\(")
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
        known = (
            found.start()
            for found in _NAMED.finditer(text)
            if _find_reader(found[0].rstrip("( \t\n\r"))
        )
        chain = calls.best(list(known)) or chain
    return chain


def _read_calls(text: str, space: Space) -> Answer:
    calls = Calls(text)
    chain = _chain(calls, text)
    if not chain:
        raise UnreadError("no call of an action is in the text")
    actions: list[Action] = []
    for call in chain:
        if actions and not _find_reader(call.name):
            break
        actions.append(_action(call, space))
    read = chain[len(actions) - 1]
    rest = "" if calls.is_last(read) else text[read.end :].strip()
    return Answer(tuple(actions), _strip_marks(text[: chain[0].begin]), rest)


# UI-TARS-2: functions in tags.

_THINK: Final = re.compile(r"\s*+<think\w{0,20}>")
_THOUGHT_END: Final = re.compile(r"</think\w{0,20}>")
_FUNCTION: Final = re.compile(r"<function=\s{0,9}['\"]?([A-Za-z_]\w{0,63})['\"]?\s{0,9}>")
_PARAMETER: Final = re.compile(r"\s*+<parameter=\s{0,9}['\"]?([A-Za-z_]\w{0,63})['\"]?\s{0,9}>")
_PARAMETER_END: Final = "</parameter>"
_FUNCTION_END: Final = re.compile(r"\s*+</function>")


def _read_tags(text: str, space: Space) -> Answer:
    thought, begin = "", 0
    if _THINK.match(text) and (ended := _THOUGHT_END.search(text)):
        thought, begin = _strip_marks(text[: ended.end()]), ended.end()
    function = _FUNCTION.search(text, begin)
    answer = text.find("<answer>", begin)
    tags = [at - begin for at in (answer, function.start() if function else -1) if at >= 0]
    if tags and any(
        call.begin < min(tags) < call.end for call in _chain(Calls(text[begin:]), text[begin:])
    ):
        function, answer = None, -1  # a tag inside of a call is what the call types
    if answer >= 0 and not (function and function.start() < answer):
        said, _, rest = text[answer + len("<answer>") :].partition("</answer>")
        action = Action("done", text=said.strip() or None)
        return Answer((action,), thought or _strip_marks(text[begin:answer]), rest.strip())
    if function is None:
        found = _read_calls(text[begin:], space)
        return Answer(found.actions, "\n".join(filter(None, (thought, found.thought))), found.rest)
    if not thought:
        thought = _strip_marks(text[begin : function.start()].replace("<seed:tool_call>", ""))
    actions: list[Action] = []
    end = begin
    while function:
        if actions and not _find_reader(function[1]):
            break
        call = _read_tagged_call(text, function)
        actions.append(_action(call, space))
        end = call.end
        function = _FUNCTION.match(text, _blank(text, end))
    rest = text[end:].strip().removeprefix("</seed:tool_call>").strip()
    return Answer(tuple(actions), thought, rest)


def _blank(text: str, position: int) -> int:
    while text[position : position + 1].isspace():
        position += 1
    return position


def _read_tagged_call(text: str, function: re.Match[str]) -> Call:
    arguments: dict[str, str] = {}
    position = function.end()
    while (parameter := _PARAMETER.match(text, position)) is not None:
        end = text.find(_PARAMETER_END, parameter.end())
        if end < 0:
            arguments[parameter[1]] = text[parameter.end() :]
            return Call(function[1], arguments, function.start(), len(text), parameter[1])
        value = text[parameter.end() : end]
        if len(value) > 1 and value[0] == value[-1] == "\n":
            value = value[1:-1]  # a value of several lines stands on lines of its own
        arguments[parameter[1]] = value
        position = end + len(_PARAMETER_END)
    closed = _FUNCTION_END.match(text, position)
    return Call(function[1], arguments, function.start(), closed.end() if closed else position)


# As released.

_LONGEST: Final = 100_000
"""Characters of the longest answer that Python's own parser is given."""
_TAGGED_POINT: Final = re.compile(r"<point>(\d++)\s++(\d++)</point>")
_UNESCAPED: Final = re.compile(r"(?<!\\)'")
_RELEASED: Final = frozenset(
    (
        *("click", "left_single", "left_double", "right_single", "hover", "drag", "select"),
        *("hotkey", "press", "keydown", "release", "keyup", "type", "scroll", "wait", "finished"),
        *("call_user", "long_press", "open_app", "press_home", "press_back", "press_enter"),
        *("navigate", "navigate_back"),
    )
)
_RELEASED_KEYS: Final = (*("content", "key", "hotkey", "press", "direction", "app_name", "time"),)
_UNPARSED: Final = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


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
        for old, new in (("start_point=", "start_box="), ("end_point=", "end_box=")):
            text = text.replace(old, new)
        text = text.replace("point=", "start_box=")
        if "Action:" not in text:
            raise UnreadError('the text has no "Action:"')
        parts = text.split("Action: ")[-1].split(")\n\n")
        calls = [_parse_call(_repair(part)) for part in parts]
    except _UNPARSED as error:
        if isinstance(error, UnreadError):
            raise
        raise UnreadError("the text is no call of Python") from error
    return Answer(
        tuple(_parse_released_action(name, given, space) for name, given in calls),
        _find_released_thought(text),
    )


def _repair(part: str) -> str:
    if "type(content" in part:
        if not part.strip().endswith(")"):
            part = part.strip() + ")"
        part = f"type(content='{_UNESCAPED.sub(chr(92) * 2 + chr(39), _contents(part))}')"
    return part if part.strip().endswith(")") else part.strip() + ")"


def _contents(part: str) -> str:
    r"""Replace `type(content='(.*?)'\)` by its group."""
    head, tail = "type(content='", "')"
    kept: list[str] = []
    done = begin = 0
    close = line = -1
    while (begin := part.find(head, begin)) >= 0:
        inner = begin + len(head)
        if close < inner:
            close = part.find(tail, inner)
        if line < inner:
            line = part.find("\n", inner)
            line = len(part) if line < 0 else line
        if close < 0:
            break
        if close > line:
            begin = inner
            continue
        kept += (part[done:begin], part[inner:close])
        done = begin = close + len(tail)
    if not kept:
        raise UnreadError("what is typed is not between single quotes on a line")
    return "".join((*kept, part[done:]))


def _parse_call(part: str) -> tuple[str | None, dict[str, object]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes such as "\d", which are the model's
        call = ast.parse(part.replace("\n", "\\n").lstrip(), mode="eval").body
    if not isinstance(call, ast.Call):
        raise UnreadError("the text is no call of Python")
    name = call.func.id if isinstance(call.func, ast.Name) else None
    if isinstance(call.func, ast.Attribute):
        name = call.func.attr
    values: dict[str, object] = {}
    for one in call.keywords:
        value = one.value.value if isinstance(one.value, ast.Constant) else None
        if one.arg is None or not isinstance(value, str):
            raise UnreadError("an argument is no text")
        values[one.arg] = value
    return name, values


def _parse_released_action(name: str | None, given: Mapping[str, object], space: Space) -> Action:
    if name not in _RELEASED:
        raise UnreadError(f"there is no action {name!r:.60}")
    arguments: dict[str, str] = {}
    places: dict[str, tuple[Region, ...]] = {}
    for key, value in given.items():
        assert isinstance(value, str)
        if value == "":
            continue
        if "start_box" in key or "end_box" in key:
            places[key] = _parse_released_place(value.lstrip(), space)
        elif key in _RELEASED_KEYS:
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
    return _region(numbers, space)


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

_SUPPORTED: Final = frozenset(
    (
        *("click", "right_click", "double_click", "middle_click", "mouse_down", "mouse_up"),
        *("mouse_move", "drag", "scroll", "type", "hotkey", "press", "release", "navigate"),
        *("navigate_back", "long_press", "swipe", "home", "press_home", "back", "press_back"),
        *("open_app", "wait", "finished", "call_user"),
    )
)
"""Names that the parser keeps before it looks aliases up: `left_double` is none of them."""
_POINT: Final = re.compile(r"\s*+<point>([^<>]*+)</point>\s*+\Z")
_ENTITIES: Final = (
    *(("&apos;", "'"), ("&gt;", ">"), ("&lt;", "<"), ("&quot;", '"'), ("&amp;", "&")),
)
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
        position = _blank(text, closed + 1)
    if text.startswith("<answer>", position):
        said, closing, rest = text[position + len("<answer>") :].partition("</answer>")
        if not closing or rest or "<" in said:
            raise UnreadError("the answer has no end, tags in it, or something behind it")
        return Answer((Action("done", text=_entities(said.strip())),), thought)
    if not text.startswith("<seed:tool_call>", position):
        raise UnreadError("the text has no <seed:tool_call> and no <answer>")
    position = _blank(text, position + len("<seed:tool_call>"))
    called: dict[str, Mapping[str, str]] = {}
    while function := _FUNCTION.match(text, position):
        call = _read_tagged_call(text, function)
        if call.cut or not text.endswith("</function>", 0, call.end):
            raise UnreadError("a function has no end")
        if any("<" in value and not _POINT.match(value) for value in call.arguments.values()):
            raise UnreadError(f"a parameter of {call.name} has tags in it")
        called[call.name] = {} if call.name in called else call.arguments
        position = _blank(text, call.end)
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
    for entity, letter in _ENTITIES:
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
    ("left", 1): "click",
    ("left", 2): "left_double",
    ("right", 1): "right_single",
}
_PLAIN: Final[Mapping[Kind, str]] = {
    "home": "press_home",
    "enter": "press_enter",
    "drag": "drag",
    "swipe": "drag",
    "long_press": "long_press",
    "move": "hover",
    "select": "select",
}
Values = dict[str, str]


def _one_place(action: Action) -> Point:
    if not action.start:
        raise CannotSayError(f"{action.label} without a place")
    return centre(action.start[0])


class _UITars(Dialect):
    layout = Layout(turns=True, screenshots=5, system=False)
    counted: ClassVar[bool] = False
    """Whether a wait says how long it takes."""

    def place(self, point: Point) -> str:
        raise NotImplementedError

    @property
    def box(self) -> str:
        return "point"

    def values(self, action: Action, platform: Platform) -> tuple[str, Values]:
        self.check(action, platform)
        kind = action.kind
        if kind == "tap":
            name = _CLICKS.get((action.button, action.count))
            if name is None or (platform == "mobile" and name != "click"):
                raise CannotSayError(f"no name for {action.label}")
            return name, self.at(action)
        if kind in ("drag", "swipe") and action.start and action.end:
            return "drag", self.ends(action)
        if kind in ("scroll", "swipe"):
            return self.scroll(action)
        if kind == "drag":
            raise CannotSayError("a drag without both of its ends")
        if kind == "type":
            return "type", self.write_type(action, platform)
        if kind in ("keys", "hotkey", "hold", "release"):
            return self.write_keys(action)
        if kind == "open_app":
            return "open_app", {"app_name": self.require_name(action.app, action)}
        if kind == "open_url":
            return "navigate", {"content": self.require_name(action.url, action)}
        if kind == "back":
            return ("press_back" if platform == "mobile" else "navigate_back"), {}
        if kind == "wait":
            said = self.counted and action.seconds is not None
            return "wait", {"time": number_text(action.seconds or 0)} if said else {}
        if kind in ("done", "ask"):
            return self.write_end(action)
        if kind in ("home", "enter"):
            return _PLAIN[kind], {}
        found = self.at(action)
        if kind == "long_press" and action.seconds is not None:
            found["time"] = number_text(action.seconds * 1000)
        return ("move_to" if kind == "move" and self.counted else _PLAIN[kind]), found

    def check(self, action: Action, platform: Platform) -> None:
        if action.kind not in self.says.get(platform, ()):
            raise CannotSayError(f"no name for {action.label} on {platform}")
        if action.held or action.path or action.then:
            raise CannotSayError(f"{action.label} with held keys, a path or what follows")
        if action.amount is not None:
            raise CannotSayError("no word for how far is scrolled")
        if action.kind == "select" and action.text is not None:
            raise CannotSayError("no word for what is picked from a list")

    def line(self, past: Past, platform: Platform) -> str:
        """Return an earlier step without its scroll amount."""
        plain = tuple(structs.replace(action, amount=None) for action in past.actions)
        return super().line(replace(past, actions=plain), platform)

    def at(self, action: Action) -> Values:
        return {self.box: self.place(_one_place(action))}

    def ends(self, action: Action) -> Values:
        form = "box" if self.box == "start_box" else "point"
        ends = (("start", action.start), ("end", action.end))
        return {f"{name}_{form}": self.place(centre(places[0])) for name, places in ends}

    def scroll(self, action: Action) -> tuple[str, Values]:
        way = finger_way(action)
        if way is None:
            raise CannotSayError(f"{action.label} without a direction")
        found = self.at(action) if action.start else {}
        return "scroll", {**found, "direction": OPPOSITE[way]}

    def write_type(self, action: Action, platform: Platform) -> Values:
        text = action.text or ""
        if action.clear:
            raise CannotSayError("no word for emptying a field")
        if not action.submit and text.endswith(("\n", "\\n")):
            raise CannotSayError("a text that ends in a newline would be submitted")
        if action.start and platform != "web":
            raise CannotSayError("no word for where it is typed")
        found = {"content": text + "\n" if action.submit else text}
        return {**found, **self.at(action)} if action.start else found

    def write_keys(self, action: Action) -> tuple[str, Values]:
        keys = tuple("space" if key == " " else key for key in action.keys)
        if not keys or any(
            not key or _keys_of(key) != [key] or key.split() != [key] for key in keys
        ):
            raise CannotSayError(f"no spelling of the keys {action.keys!r:.60}")
        if len(keys) > 1 and action.kind != "hotkey":
            raise CannotSayError("several keys one after the other")
        if keys[0].startswith("["):
            raise CannotSayError("a list of keys would be read")
        names: Mapping[str, str] = {"hold": "press", "release": "release"}
        return names.get(action.kind, "hotkey"), {"key": " ".join(keys)}

    def require_name(self, name: str | None, action: Action) -> str:
        if not name:
            raise CannotSayError(f"{action.label} without a name")
        return name

    def write_end(self, action: Action) -> tuple[str, Values]:
        if action.status == "failure":
            raise CannotSayError("no word for failure")
        found = {} if action.text is None else {"content": action.text}
        return ("finished" if action.kind == "done" else "call_user"), found


_COMPUTER: Final[frozenset[Kind]] = frozenset(
    ("tap", "drag", "move", "scroll", "swipe", "type", "keys", "hotkey", "hold", "release", "wait",
     "done", "ask")
)  # fmt: skip
_PHONE: Final[frozenset[Kind]] = frozenset(
    ("tap", "long_press", "drag", "swipe", "scroll", "type", "open_app", "home", "back", "enter",
     "wait", "done", "ask")
)  # fmt: skip


class _Spoken(_UITars):
    source = "bytedance/UI-TARS@582f3a7 codes/ui_tars/action_parser.py"

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        if rules == "strict":
            return _read_released(text, self.frame.space)
        return _read_tags(text, self.frame.space)

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
        at = f"{self.box}='{self.pattern(1)}'"
        unit = _unit(self.frame.space, fed)
        if asked == "point":
            return (
                "You find elements of user interfaces. The user names one; click on it.\n\n"
                f"## Output Format\nAction: click({at})\n\n{unit}"
            )
        lines = [
            f"{line.format(at=at, ends=self.pattern_of_ends())}" for line in self.lines(platform)
        ]
        return (
            "You operate a graphical user interface for the user. From the task, the actions "
            "so far and the screenshots, choose the next action.\n\n"
            "## Output Format\nThought: what you see and why you act, in a sentence or two\n"
            "Action: one of the calls below\n\n## Action Space\n" + "\n".join(lines) + "\n\n"
            "Between quotes, write \\' for ', \\\" for \" and \\n for a new line. " + unit
        )

    def pattern(self, number: int) -> str:
        raise NotImplementedError

    def pattern_of_ends(self) -> str:
        form = "box" if self.box == "start_box" else "point"
        return f"start_{form}='{self.pattern(1)}', end_{form}='{self.pattern(2)}'"

    def lines(self, platform: Platform) -> tuple[str, ...]:
        if platform == "mobile":
            return _PHONE_LINES
        browser = _BROWSER_LINES if "open_url" in self.says[platform] else ()
        return (*_COMPUTER_LINES, *(_LIST_LINES if "select" in self.says[platform] else browser))


_SHARED_LINES: Final = (
    "scroll({at}, direction='up, down, left or right')  # shows more on the side that it names",
    "type(content='')  # types at the focus; a \\n at the end submits it",
    "drag({ends})",
    "wait()  # for about five seconds",
    "finished(content='')  # when nothing is left to do; says what there is to report",
    "call_user()  # when the task cannot be done, or only with the user's help",
)
_COMPUTER_LINES: Final = (
    "click({at})",
    "left_double({at})",
    "right_single({at})",
    "hotkey(key='')  # keys pressed together, in lower case, apart by a blank, three at most",
    *_SHARED_LINES,
)
_PHONE_LINES: Final = (
    "click({at})",
    "long_press({at})",
    "open_app(app_name='')",
    "press_home()",
    "press_back()",
    "press_enter()",
    *_SHARED_LINES,
)
_LIST_LINES: Final = (
    "select({at})  # opens a list, or picks one of its entries",
    "type(content='', {at})  # clicks into a field and types there",
)
_BROWSER_LINES: Final = (
    "navigate(content='')  # opens the address",
    "navigate_back()  # to the page before",
)


def _unit(space: Space, fed: Screen) -> str:
    if space != "px":
        return "x goes from 0 at the left edge to 1000 at the right, y from 0 at the top to 1000."
    size = f", which is {fed[0]} wide and {fed[1]} high" if min(fed) > 0 else ""
    return f"x and y are pixels of the screenshot{size}, from its top left corner."


class _Boxed(_Spoken):
    says: ClassVar[Mapping[Platform, frozenset[Kind]]] = {
        "desktop": _COMPUTER,
        "web": _COMPUTER | {"select"},
        "mobile": _PHONE,
    }

    @property
    def box(self) -> str:
        return "start_box"

    def place(self, point: Point) -> str:
        return f"<|box_start|>({number_text(point.x)},{number_text(point.y)})<|box_end|>"

    def pattern(self, number: int) -> str:
        return f"<|box_start|>(x{number},y{number})<|box_end|>"


class UITars10(_Boxed):
    """UI-TARS of January 2025, over Qwen2-VL."""

    name = "ui-tars-1.0"
    title = "UI-TARS 1.0: Thought and Action, boxes from 0 to 1000"
    checkpoints = (
        *("UI-TARS-2B-SFT", "UI-TARS-7B-SFT", "UI-TARS-7B-DPO"),
        *("UI-TARS-72B-SFT", "UI-TARS-72B-DPO"),
    )
    frame = Frame("norm1000", 28, 4 * _MERGE, 2700 * _MERGE)


class UITars15(_Boxed):
    """UI-TARS 1.5, over Qwen2.5-VL."""

    name = "ui-tars-1.5"
    title = "UI-TARS 1.5: Thought and Action, pixels of the picture as fed"
    checkpoints = ("UI-TARS-1.5-7B",)
    frame = Frame("px", 28, 100 * _MERGE, 16384 * _MERGE)

    def place(self, point: Point) -> str:
        return f"({number_text(point.x)},{number_text(point.y)})"


class UITarsDoubao(_Spoken):
    """Doubao-1.5-UI-TARS and the Seed models that are asked like it."""

    name = "ui-tars-doubao"
    title = "Doubao UI-TARS: Thought and Action, points from 0 to 1000"
    checkpoints = ("doubao-1.5-ui-tars", "doubao-1-5-thinking-vision-pro", "doubao-seed-1.6")
    frame = Frame("norm1000", max_pixels=5120 * _MERGE)
    says: ClassVar[Mapping[Platform, frozenset[Kind]]] = {
        "desktop": _COMPUTER,
        "web": _COMPUTER | {"open_url", "back"},
        "mobile": _PHONE,
    }

    def place(self, point: Point) -> str:
        return f"<point>{number_text(point.x)} {number_text(point.y)}</point>"

    def pattern(self, number: int) -> str:
        return f"<point>x{number} y{number}</point>"


class UITars2(_UITars):
    """UI-TARS-2, which calls functions in tags."""

    name = "ui-tars-2"
    title = "UI-TARS-2: functions in tags, points from 0 to 1000"
    checkpoints = ("UI-TARS-2",)
    frame = Frame("norm1000", max_pixels=5120 * _MERGE)
    source = "bytedance/UI-TARS-desktop@239b654 multimodal/gui-agent/action-parser XMLFormatParser"
    counted = True
    says: ClassVar[Mapping[Platform, frozenset[Kind]]] = {
        "desktop": (_COMPUTER - {"ask"}) | {"open_url", "back"},
        "web": (_COMPUTER - {"ask"}) | {"open_url", "back"},
        "mobile": _PHONE - {"ask", "enter"},
    }

    def place(self, point: Point) -> str:
        return f"<point>{number_text(point.x)} {number_text(point.y)}</point>"

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        if rules == "strict":
            return _read_tags_released(text, self.frame.space)
        return _read_tags(text, self.frame.space)

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        if not actions:
            raise CannotSayError("no action")
        called = [self.values(action, platform) for action in actions]
        if any(action.kind == "done" for action in actions):
            if len(actions) > 1:
                raise CannotSayError("an answer beside other actions")
            return f"<answer>{actions[0].text or ''}</answer>"
        written = [self._function(name, values) for name, values in called]
        return "<seed:tool_call>\n" + "\n".join(written) + "\n</seed:tool_call>"

    def write_keys(self, action: Action) -> tuple[str, Values]:
        if action.kind not in ("hold", "release") or action.keys:
            return super().write_keys(action)
        if action.button not in ("left", "right"):
            raise CannotSayError(f"no name for the {action.button} button")
        found = self.at(action) if action.start else {}
        name = "mouse_down" if action.kind == "hold" else "mouse_up"
        return name, {**found, "button": action.button}

    def write_type(self, action: Action, platform: Platform) -> Values:
        """A submitted text ends in a backslash and an n."""
        if action.start:
            raise CannotSayError("no word for where it is typed")
        found = super().write_type(action, platform)
        if action.submit:
            found["content"] = f"{action.text or ''}\\n"
        return found

    def write_end(self, action: Action) -> tuple[str, Values]:
        text = action.text or ""
        if "</answer>" in text or text != text.strip():
            raise CannotSayError("an answer cannot have its own end or blanks around it")
        return super().write_end(action)

    def _function(self, name: str, values: Values) -> str:
        lines = [f"<function={name}>"]
        for key, value in values.items():
            if _PARAMETER_END in value:
                raise CannotSayError(f"a text cannot have {_PARAMETER_END} in it")
            if value[:1] == "\n" == value[-1:]:
                value = f"\n{value}\n"
            lines.append(f"<parameter={key}>{value}{_PARAMETER_END}")
        return "\n".join((*lines, "</function>"))

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        form = (
            "## Output Format\n<think>what you see and why you act</think>\n<seed:tool_call>\n"
            "<function=NAME>\n<parameter=PARAMETER>value</parameter>\n</function>\n"
            "</seed:tool_call>\n\nA place is <point>x y</point>. " + _unit("norm1000", fed)
        )
        if asked == "point":
            return (
                "You find elements of user interfaces. The user names one; call click with its "
                f"place as the parameter point.\n\n{form}"
            )
        lines = "\n".join(_PHONE_FUNCTIONS if platform == "mobile" else _COMPUTER_FUNCTIONS)
        return (
            "You operate a graphical user interface for the user. From the task, the actions so "
            f"far and the screenshots, choose the next action.\n\n{form}\n\n## Functions and their "
            f"parameters\n{lines}\n\nWhen the task is done, answer with <answer>what there is to "
            "report</answer> instead."
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
