"""GUI-R1 and UI-R1: a list of Python's dictionaries between `<answer>` and `</answer>`.

`<think>...</think><answer>[{'action': 'click', 'point': [123, 300], 'input_text': 'no input
text'}]</answer>`; places are pixels of the picture as it is fed. GUI-R1 has a place and a text in
every answer: [-100, -100] and "no input text" stand for nothing. UI-R1 has a coordinate alone, so
it cannot say what is typed or opened, nor which way is scrolled: it says that this is done. Where
a swipe ends neither can say; GUI-R1's histories tell of it without.

GUI-R1's scrolls are said of the finger: against AndroidControl's labels, which are of content,
users found them inverted (ritzz-ai/GUI-R1, issue 17). Which keys a `hotkey` has its prompts leave
out; here they are its text.

Source: ritzz-ai/GUI-R1, `guir1/inference/*.py`; lll6gg/UI-R1, `evaluation/test_*.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from msgspec import structs

from omnidata.actions import (
    Action,
    Direction,
    Kind,
    Point,
    Region,
    Screen,
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
    Past,
    Platform,
    Rules,
    UnreadError,
)
from omnidata.dialects.call_syntax import number_text, numbers_of, quote, unescape

_NOTHING: Final = "no input text"
_ABSENT: Final = "[-100, -100]"
_TRIED: Final = 32
_ACTIONS: Final = 64
_PAIRS: Final = 16

# Reading: dictionaries of texts and lists, between quotes of either kind.

_KEY: Final = re.compile(r"[\s,]*+['\"]([A-Za-z_]\w{0,31})['\"]\s{0,9}:\s{0,99}")
_CLOSERS: Final = re.compile(
    r"""(?<!\\)(\\*+)(['"])(?=\s*+(?:[}\]]|,\s*+['"]\w{1,32}['"]\s*+:|\Z))"""
)
_LIST: Final = re.compile(r"[\[(][^\[\](){}]{0,200}(?:[\])]|\Z)")
_WORD: Final = re.compile(r"[^\s,}\]]{0,100}")
_CLOSED: Final = re.compile(r"[\s,]*+\}")
_NEXT: Final = re.compile(r"[\s,]*+(?=\{)")
_BEGIN: Final = re.compile(r"[\s`]*+(?:(?:python|json)\s*+)?\[?\s*+(?=\{)")
_TAIL: Final = re.compile(r"(?:[\s\]`]|</answer>|<\|\w{1,24}\|>)*+\Z")


class _Lists:
    def __init__(self, text: str) -> None:
        self.text = text
        self._ends: dict[str, list[int]] = {"'": [], '"': []}
        for found in _CLOSERS.finditer(text):
            if len(found[1]) % 2 == 0:
                self._ends[found[2]].append(found.end() - 1)

    def at(self, begin: int) -> tuple[list[dict[str, str]], int]:
        found: list[dict[str, str]] = []
        opening = _BEGIN.match(self.text, begin)
        while opening and len(found) < _ACTIONS:
            body, end = self._dictionary(opening.end() + 1)
            if not body:
                break
            found.append(body)
            begin = end
            opening = _NEXT.match(self.text, end)
        return found, begin

    def _dictionary(self, position: int) -> tuple[dict[str, str], int]:
        body: dict[str, str] = {}
        for _ in range(_PAIRS):
            key = _KEY.match(self.text, position)
            if not key:
                break
            value, position = self._value(key.end())
            body.setdefault(key[1], value)
        closed = _CLOSED.match(self.text, position)
        return body, closed.end() if closed else position

    def _value(self, begin: int) -> tuple[str, int]:
        quote = self.text[begin : begin + 1]
        if quote in self._ends:
            ends = self._ends[quote]
            index = bisect_left(ends, begin + 1)
            if index == len(ends):
                raise UnreadError("the text ends between quotes")
            return unescape(self.text[begin + 1 : ends[index]]), ends[index] + 1
        found = _LIST.match(self.text, begin) or _WORD.match(self.text, begin)
        assert found
        if found[0].startswith(("[", "(")) and not found[0].endswith(("]", ")")):
            raise UnreadError("the text ends in a list")
        return found[0], found.end()


_PRESSED: Final[Mapping[str, Kind]] = {
    "press_back": "back",
    "navigate_back": "back",
    "press_home": "home",
    "navigate_home": "home",
    "press_recent": "recent",
    "wait": "wait",
}
_CLICKED: Final[Mapping[str, Action]] = {
    "click": Action("tap"),
    "doubleclick": Action("tap", count=2),
    "rightclick": Action("tap", button="right"),
    "moveto": Action("move"),
    "long_press": Action("long_press"),
}
_ENDS: Final[Mapping[str, Action]] = {
    "complete": Action("done", status="success"),
    "impossible": Action("done", status="failure"),
}
_TYPED: Final = ("type", "input_text")


def _place(body: Mapping[str, str]) -> tuple[Region, ...]:
    text = next((body[key] for key in ("point", "coordinate", "position") if key in body), "")
    if text in ("", "None", "null"):
        return ()
    numbers = numbers_of(text)
    if numbers is None or len(numbers) not in (0, 2, 4):
        raise UnreadError(f"{text!r:.60} is no place")
    if len(numbers) == 4:
        numbers = ((numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2)
    absent = not numbers or (numbers[0] == numbers[1] == -100)
    return () if absent else (Point(numbers[0], numbers[1], "px"),)


def _action(body: Mapping[str, str]) -> Action:
    name, start = body.get("action", "").strip(), _place(body)
    text = next((body[key] for key in ("input_text", "text", "value") if key in body), None)
    text = None if text in (_NOTHING, "None", None) else text
    known = name.lower().replace("double_click", "doubleclick").replace("right_click", "rightclick")
    if known in _CLICKED:
        bare = _CLICKED[known]
        return Action(bare.kind, start, button=bare.button, count=bare.count)
    if known in _ENDS:
        return _ENDS[known]
    if known in _PRESSED:
        return Action(_PRESSED[known])
    if known.startswith("press_") and len(known) > len("press_"):
        return Action("keys", keys=(known.removeprefix("press_"),))
    if known == "scroll":
        said = body.get("direction", "None")
        way = _direction(text if said in ("", "None") else said)
        return Action("scroll", start, direction=way, sense="finger")
    if known in _TYPED:
        return Action("type", start, text=text)
    if known == "open_app":
        return Action("open_app", app=text)
    if known == "select":
        return Action("select", start, text=text)
    if known == "hotkey":
        return Action("hotkey", keys=tuple((text or "").replace("+", " ").split()))
    raise UnreadError(f"there is no action {name!r:.60}")


def _direction(text: str | None) -> Direction | None:
    if text is None:
        return None
    if way := DIRECTIONS.get(text.strip().lower()):
        return way
    raise UnreadError(f"the direction of a scroll is {text!r:.60}")


_THOUGHT: Final = re.compile(r"</?think>|<answer>")


def _read(text: str) -> Answer:
    lists = _Lists(text)
    thinks, answers = text.find("<think>"), text.find("<answer>")
    thought_of = 0 <= thinks < answers or answers < 0
    after = text.find("</think>") + 1 if thought_of else 0
    tags = [found.end() for found in re.finditer("<answer>", text) if found.start() >= after]
    braces = [found.start() for found in re.finditer(r"\[?\s{0,9}\{", text[after:])]
    starts = [*tags[:_TRIED], *tags[-_TRIED:], *(after + brace for brace in braces[:_TRIED])]
    first: tuple[list[dict[str, str]], int, int] | None = None
    fault = UnreadError("no list of actions is in the text")
    for begin in starts:
        try:
            bodies, end = lists.at(begin)
        except UnreadError as error:
            fault = error
            continue
        if not bodies or not any("action" in body for body in bodies):
            continue
        first = first or (bodies, begin, end)
        if _TAIL.match(text, end):
            first = bodies, begin, end
            break
    if first is None:
        raise fault
    bodies, begin, end = first
    rest = "" if _TAIL.match(text, end) else text[end:].strip()
    thought = _THOUGHT.sub("", text[:begin]).strip()
    return Answer(tuple(map(_action, bodies)), thought, rest)


# As released.

_NAMED: Final = re.compile(r"'action':\s*+'(\w++)'")
_TEXT: Final = re.compile(r"'input_text':\s*+'([^'\n]*+)'")
_PLACED: Final = re.compile(r"\[(\d++),\s*+(\d++)\]\s*+")
_FARTHEST: Final = 10**15


def _region(text: str) -> str:
    begin = text.find("<answer>")
    end = text.find("</answer>", begin + 1)
    if begin < 0 or end < 0:
        raise UnreadError("the text has no <answer>...</answer>")
    return text[begin + len("<answer>") : end].strip()


def _coordinate(region: str) -> tuple[int, int]:
    r"""Match `\{.*\[(\d+),\s*(\d+)]\s*.*\}` in linear time; return (0, 0) without a match.

    It matches on the first line where a brace opens before such a list, takes the last list, and
    needs a closing brace on the line of the next word.
    """
    lines, opens, closes = (
        [at.start() for at in re.finditer(it, region)] for it in ("\n", "{", "}")
    )
    found: re.Match[str] | None = None
    held = -1
    for match in _PLACED.finditer(region):
        line = bisect_left(lines, match.start())
        if found and line != held:
            break
        begin = lines[line - 1] if line else 0
        if not _has(opens, begin, match.start()):
            continue
        behind = bisect_left(lines, match.end())
        if _has(closes, match.end(), lines[behind] if behind < len(lines) else len(region)):
            found, held = match, line
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _has(places: Sequence[int], begin: int, end: int) -> bool:
    index = bisect_left(places, begin)
    return index < len(places) and places[index] < end


@dataclass(frozen=True, slots=True)
class ReleasedFields:
    """The three fields that the released scripts find in an answer, each by itself.

    Attributes:
        action: the name of the action; empty if there is none.
        point: x and y in pixels of the picture as fed; (0, 0) if there is none.
        text: the input text; "no input text" if there is none.
    """

    action: str = ""
    point: tuple[int, int] = (0, 0)
    text: str = _NOTHING


def read_fields(text: str) -> ReleasedFields:
    """Return the fields of an answer as GUI-R1's scripts do, whichever action they stand beside.

    Source: ritzz-ai/GUI-R1, `guir1/inference/*.py`, `extract_action`, `extract_coord` and
    `extract_input_text`.

    Examples:
        >>> read_fields("<answer>[{'action': 'complete', 'point': [12, 30]}]</answer>").point
        (12, 30)

    Raises:
        UnreadError: there is no `<answer>...</answer>`.
    """
    region = _region(text)
    named, typed = _NAMED.search(region), _TEXT.search(region)
    try:
        x, y = _coordinate(region)
    except ValueError:
        x = y = _FARTHEST
    point = min(x, _FARTHEST), min(y, _FARTHEST)
    return ReleasedFields(named[1] if named else "", point, typed[1] if typed else _NOTHING)


def _read_released(text: str, *, told: bool) -> Answer:
    fields = read_fields(text)
    if not fields.action:
        raise UnreadError("the answer has no 'action' between single quotes")
    if max(fields.point) >= _FARTHEST:
        raise UnreadError("a number of the place has too many digits")
    body = {"action": fields.action}
    if told and fields.text != _NOTHING:
        body["input_text"] = fields.text
    action = _action(body)
    if action.kind in ("tap", "long_press", "move"):
        start = (Point(*fields.point, "px"),)
        action = Action(action.kind, start, button=action.button, count=action.count)
    return Answer((action,))


_MERGE: Final = 28 * 28


class _Listed(Dialect):
    frame = Frame("px", 28, 4 * _MERGE, 16384 * _MERGE)
    told: ClassVar[bool]
    """Whether an action has a text."""
    key: ClassVar[str]
    """What a place is called."""

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        return _read_released(text, told=self.told) if rules == "strict" else _read(text)

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        if not actions:
            raise CannotSayError("no action")
        return f"<answer>[{', '.join(self._one(action, platform) for action in actions)}]</answer>"

    def _one(self, action: Action, platform: Platform) -> str:
        if action.kind not in self.says.get(platform, ()):
            raise CannotSayError(f"no name for {action.label} on {platform}")
        if action.held or action.path or action.then or action.amount is not None:
            raise CannotSayError(f"{action.label} with keys, a path, an amount or what follows")
        name, text = self.name_and_text(action)
        if not action.start and action.kind in ("tap", "long_press", "move"):
            raise CannotSayError(f"{action.label} without a place")
        place = _ABSENT
        if action.start:
            point = centre(action.start[0])
            if point.x == point.y == -100:
                raise CannotSayError("the place that stands for nothing")
            place = f"[{number_text(point.x)}, {number_text(point.y)}]"
        said = f", 'input_text': {quote(_NOTHING if text is None else text)}" if self.told else ""
        return f"{{'action': '{name}', '{self.key}': {place}{said}}}"

    def name_and_text(self, action: Action) -> tuple[str, str | None]:
        raise NotImplementedError


_GUI_PLAIN: Final[Mapping[Kind, str]] = {
    "back": "press_back", "home": "press_home", "recent": "press_recent",
    "wait": "wait", "long_press": "long_press", "move": "moveto",
}  # fmt: skip


class GuiR1(_Listed):
    """GUI-R1."""

    name = "gui-r1"
    title = "GUI-R1: a list in <answer>, pixels of the picture as fed"
    checkpoints = ("GUI-R1-3B", "GUI-R1-7B")
    source = "ritzz-ai/GUI-R1@d43eea2 guir1/inference/inference_vllm_android.py"
    layout = Layout(system=False)
    told = True
    key = "point"
    says: ClassVar[Mapping[Platform, frozenset[Kind]]] = {
        "mobile": frozenset(
            ("tap", "long_press", "type", "open_app", "swipe", "scroll", "back", "home", "recent",
             "wait", "done")
        ),
        "web": frozenset(
            ("tap", "move", "scroll", "swipe", "type", "select", "keys", "hotkey", "done")
        ),
        "desktop": frozenset(
            ("tap", "move", "scroll", "swipe", "type", "keys", "hotkey", "done")
        ),
    }  # fmt: skip

    def line(self, past: Past, platform: Platform) -> str:
        """Return an earlier step, of a swipe only which way it went; see `Dialect.line`."""
        plain = (
            structs.replace(one, end=(), direction=finger_way(one), sense="finger", amount=None)
            if one.kind in ("swipe", "scroll")
            else one
            for one in past.actions
        )
        return super().line(replace(past, actions=tuple(plain)), platform)

    def name_and_text(self, action: Action) -> tuple[str, str | None]:
        kind = action.kind
        if kind in ("swipe", "scroll"):
            way = finger_way(action)
            if way is None:
                raise CannotSayError(f"{action.label} without a direction")
            if action.end:
                raise CannotSayError("no word for where a swipe ends")
            return "scroll", way
        if kind == "tap":
            for name, bare in _CLICKED.items():
                if (bare.kind, bare.count, bare.button) == (kind, action.count, action.button):
                    return name, None
            raise CannotSayError(f"no name for {action.label}")
        if kind == "done":
            if action.status is None or action.text:
                raise CannotSayError("no word for an end that does not say how, or says a text")
            return ("complete" if action.status == "success" else "impossible"), None
        if kind in ("type", "select", "open_app"):
            return kind, self._text(action)
        if kind in ("keys", "hotkey"):
            return self._key_name(action)
        return _GUI_PLAIN[kind], None

    def _text(self, action: Action) -> str:
        if action.submit or action.clear:
            raise CannotSayError("no word for submitting or emptying a field")
        text = action.app if action.kind == "open_app" else action.text
        if text is None or text in (_NOTHING, "None"):
            raise CannotSayError(f"{text!r} stands for nothing")
        return text

    def _key_name(self, action: Action) -> tuple[str, str | None]:
        plain = all(re.fullmatch(r"[^\s+]+", key) for key in action.keys)
        if not action.keys or not plain:
            raise CannotSayError(f"no spelling of the keys {action.keys!r:.60}")
        if action.kind == "hotkey":
            return "hotkey", "+".join(action.keys)
        if len(action.keys) > 1 or not re.fullmatch(r"[a-z0-9]{2,20}", action.keys[0]):
            raise CannotSayError(f"no name for the keys {action.keys!r:.60}")
        if f"press_{action.keys[0]}" in _PRESSED:
            raise CannotSayError(f"{action.keys[0]} would be read as a button of a phone")
        return f"press_{action.keys[0]}", None

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        names = ("click",) if asked == "point" else _GUI_NAMES[platform]
        return (
            f"{_TASKS[asked]} Think first, between <think> and </think>, then answer between "
            "<answer> and </answer> with a list of one dictionary:\n"
            "<think>...</think><answer>[{'action': 'click', 'point': [x, y], 'input_text': "
            f"'{_NOTHING}'}}]</answer>\n\n"
            f"action is one of {', '.join(names)}.\n"
            f"point is where it is done: {_pixels(fed)}. It is {_ABSENT} where there is no place.\n"
            "input_text is what is typed or picked, the app that is opened, the keys of a hotkey "
            "with + between them, or up, down, left or right: which way the finger scrolls. It is "
            f"'{_NOTHING}' for all else."
        )


_GUI_NAMES: Final[Mapping[Platform, Sequence[str]]] = {
    "mobile": (
        *("click", "long_press", "type", "open_app", "scroll", "press_back", "press_home"),
        *("press_recent", "wait", "complete", "impossible"),
    ),
    "web": (
        *("click", "doubleclick", "rightclick", "moveto", "scroll", "type", "select", "hotkey"),
        *("press_enter", "press_tab", "press_space", "press_down", "complete", "impossible"),
    ),
    "desktop": (
        *("click", "doubleclick", "rightclick", "moveto", "scroll", "type", "hotkey"),
        *("press_enter", "press_tab", "press_space", "press_pgdn", "complete", "impossible"),
    ),
}
_TASKS: Final[Mapping[Asked, str]] = {
    "action": (
        "You operate a graphical user interface for the user. From the task, the actions so far "
        "and the screenshot, choose the next action."
    ),
    "point": "You find elements of user interfaces. The user names one; click on it.",
}


def _pixels(fed: Screen) -> str:
    size = f", which is {fed[0]} wide and {fed[1]} high" if min(fed) > 0 else ""
    return f"whole pixels of the screenshot{size}, from its top left corner"


class UiR1(_Listed):
    """UI-R1."""

    name = "ui-r1"
    title = "UI-R1: a list in <answer> with a coordinate alone, pixels of the picture as fed"
    checkpoints = ("UI-R1-3B", "UI-R1-E-3B")
    source = "lll6gg/UI-R1@2fe9bf0 evaluation/test_androidcontrol.py"
    layout = Layout(actions=0, system=False)
    told = False
    key = "coordinate"
    says: ClassVar[Mapping[Platform, frozenset[Kind]]] = {
        "mobile": frozenset(("tap", "back")),
        "desktop": frozenset(("tap",)),
        "web": frozenset(("tap",)),
    }

    def name_and_text(self, action: Action) -> tuple[str, str | None]:
        if action.kind == "back":
            return "navigate_back", None
        if action.count != 1 or action.button != "left":
            raise CannotSayError(f"no name for {action.label}")
        return "click", None

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        phone = asked == "action" and platform == "mobile"
        names = ("click", "open_app", "scroll", "navigate_back", "input_text")
        return (
            f"{_TASKS[asked]} Think first, between <think> and </think>, then answer between "
            "<answer> and </answer> with a list of one dictionary:\n"
            "<think>...</think><answer>[{'action': 'click', 'coordinate': [x, y]}]</answer>\n\n"
            f"action is {'one of ' + ', '.join(names) if phone else 'click or scroll'}.\n"
            f"coordinate is where a click is done: {_pixels(fed)}."
        )


DIALECTS: Final[tuple[Dialect, ...]] = (GuiR1(), UiR1())
