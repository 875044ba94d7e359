"""GUI-R1 and UI-R1: a list of Python's dictionaries between `<answer>` and `</answer>`.

`<think>...</think><answer>[{'action': 'click', 'point': [123, 300], 'input_text': 'no input
text'}]</answer>`; places are pixels of the picture as it is fed. GUI-R1 has a place and a text in
every answer: [-100, -100] and "no input text" stand for nothing. UI-R1 has a coordinate alone:
it names a type or a scroll without the text or the direction. Neither has the end of a swipe, which
GUI-R1's histories leave out.

The direction of GUI-R1's scrolls is the finger's: compared with AndroidControl's labels, which are
of content, users found them inverted (ritzz-ai/GUI-R1, issue 17). Its prompts do not say where the
keys of a `hotkey` go; here they are its text.

Source: ritzz-ai/GUI-R1, `guir1/inference/*.py`; lll6gg/UI-R1, `evaluation/test_*.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from msgspec import structs

from omnidata.actions import (
    Action,
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
    Platform,
    Rules,
    UnreadError,
    kinds,
    size_in_words,
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
        """Return the dictionaries that begin at a place, and where they end."""
        found: list[dict[str, str]] = []
        opening = _BEGIN.match(self.text, begin)
        while opening and len(found) < _ACTIONS:
            body: dict[str, str] = {}
            position = opening.end() + 1
            while len(body) < _PAIRS and (key := _KEY.match(self.text, position)):
                value, position = self._value(key.end())
                body.setdefault(key[1], value)
            if not body:
                break
            closed = _CLOSED.match(self.text, position)
            begin = closed.end() if closed else position
            found.append(body)
            opening = _NEXT.match(self.text, begin)
        return found, begin

    def _value(self, begin: int) -> tuple[str, int]:
        ends = self._ends.get(self.text[begin : begin + 1])
        if ends is not None:
            index = bisect_left(ends, begin + 1)
            if index == len(ends):
                raise UnreadError("the text ends between quotes")
            return unescape(self.text[begin + 1 : ends[index]]), ends[index] + 1
        found = _LIST.match(self.text, begin) or _WORD.match(self.text, begin)
        assert found
        if found[0].startswith(("[", "(")) and not found[0].endswith(("]", ")")):
            raise UnreadError("the text ends in a list")
        return found[0], found.end()


_BARE: Final[Mapping[str, Action]] = {
    "click": Action("tap"),
    "doubleclick": Action("tap", count=2),
    "rightclick": Action("tap", button="right"),
    "moveto": Action("move"),
    "long_press": Action("long_press"),
    "complete": Action("done", status="success"),
    "impossible": Action("done", status="failure"),
    "press_back": Action("back"),
    "navigate_back": Action("back"),
    "press_home": Action("home"),
    "navigate_home": Action("home"),
    "press_recent": Action("recent"),
    "wait": Action("wait"),
}
"""Names and their actions; the first name of an action is written."""
_AT_PLACES: Final = ("tap", "long_press", "move")


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
    if known in _BARE:
        bare = _BARE[known]
        return structs.replace(bare, start=start) if bare.kind in _AT_PLACES else bare
    if known.startswith("press_") and len(known) > len("press_"):
        return Action("keys", keys=(known.removeprefix("press_"),))
    if known == "scroll":
        if body.get("direction", "None") not in ("", "None"):
            text = body["direction"]
        way = None if text is None else DIRECTIONS.get(text.strip().lower())
        if text is not None and way is None:
            raise UnreadError(f"the direction of a scroll is {text!r:.60}")
        return Action("scroll", start, direction=way, sense="finger")
    if known in ("type", "input_text", "select"):
        return Action("select" if known == "select" else "type", start, text=text)
    if known == "open_app":
        return Action("open_app", app=text)
    if known == "hotkey":
        return Action("hotkey", keys=tuple((text or "").replace("+", " ").split()))
    raise UnreadError(f"there is no action {name!r:.60}")


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
    begin = text.find("<answer>")
    end = text.find("</answer>", begin + 1)
    if begin < 0 or end < 0:
        raise UnreadError("the text has no <answer>...</answer>")
    region = text[begin + len("<answer>") : end].strip()
    named, typed = _NAMED.search(region), _TEXT.search(region)
    try:
        x, y = _coordinate(region)
    except ValueError:
        x = y = _FARTHEST
    point = min(x, _FARTHEST), min(y, _FARTHEST)
    return ReleasedFields(named[1] if named else "", point, typed[1] if typed else _NOTHING)


def _read_released(text: str, *, has_text: bool) -> Answer:
    fields = read_fields(text)
    if not fields.action:
        raise UnreadError("the answer has no 'action' between single quotes")
    if max(fields.point) >= _FARTHEST:
        raise UnreadError("a number of the place has too many digits")
    body = {"action": fields.action}
    if has_text and fields.text != _NOTHING:
        body["input_text"] = fields.text
    action = _action(body)
    if action.kind in _AT_PLACES:
        action = structs.replace(action, start=(Point(*fields.point, "px"),))
    return Answer((action,))


_MERGE: Final = 28 * 28


class _Listed(Dialect):
    frame = Frame("px", 28, 4 * _MERGE, 16384 * _MERGE)
    has_text: ClassVar[bool]
    """Whether an action has a text."""
    key: ClassVar[str]
    """The name of a place."""

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        return _read_released(text, has_text=self.has_text) if rules == "strict" else _read(text)

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        if not actions:
            raise CannotSayError("no action")
        return f"<answer>[{', '.join(self._one(action, platform) for action in actions)}]</answer>"

    def _one(self, action: Action, platform: Platform) -> str:
        self.check(action, platform, "held", "path", "then", "amount")
        name, text = self.name_and_text(action)
        if not action.start and action.kind in _AT_PLACES:
            raise self.refusal(action, "without a place")
        place = _ABSENT
        if action.start:
            point = centre(action.start[0])
            if point.x == point.y == -100:
                raise self.refusal(action, "the place that stands for nothing")
            place = f"[{number_text(point.x)}, {number_text(point.y)}]"
        said = (
            f", 'input_text': {quote(_NOTHING if text is None else text)}" if self.has_text else ""
        )
        return f"{{'action': '{name}', '{self.key}': {place}{said}}}"

    def name_and_text(self, action: Action) -> tuple[str, str | None]:
        raise NotImplementedError


_PLAIN_KEY: Final = re.compile(r"[^\s+]+")
_WORD_KEY: Final = re.compile(r"[a-z0-9]{2,20}")


class GuiR1(_Listed):
    """GUI-R1."""

    name = "gui-r1"
    title = "GUI-R1: a list in <answer>, pixels of the picture as fed"
    checkpoints = ("GUI-R1-3B", "GUI-R1-7B")
    source = "ritzz-ai/GUI-R1@d43eea2 guir1/inference/inference_vllm_android.py"
    layout = Layout(system=False)
    has_text = True
    key = "point"
    says: ClassVar = {
        "mobile": kinds("tap long_press type open_app swipe scroll back home recent wait done"),
        "web": kinds("tap move scroll swipe type select keys hotkey done"),
        "desktop": kinds("tap move scroll swipe type keys hotkey done"),
    }

    def brief(self, action: Action) -> Action:
        """Return an earlier action; of a swipe only the direction."""
        if action.kind not in ("swipe", "scroll"):
            return action
        way = finger_way(action)
        return structs.replace(action, end=(), direction=way, sense="finger", amount=None)

    def name_and_text(self, action: Action) -> tuple[str, str | None]:
        kind = action.kind
        match kind:
            case "swipe" | "scroll":
                way = finger_way(action)
                if way is None or action.end:
                    raise self.refusal(action, "which way, or where it ends")
                return "scroll", way
            case "type" | "select" | "open_app":
                text = action.app if kind == "open_app" else action.text
                if action.submit or action.clear or text in (None, _NOTHING, "None"):
                    raise self.refusal(action, f"the text {text!r:.60}")
                return kind, text
            case "hotkey" if action.keys and all(_PLAIN_KEY.fullmatch(key) for key in action.keys):
                return "hotkey", "+".join(action.keys)
            case "keys" if len(action.keys) == 1 and _WORD_KEY.fullmatch(action.keys[0]):
                # a button of a phone would be read as one
                if (name := f"press_{action.keys[0]}") not in _BARE:
                    return name, None
        how = (action.count, action.button) if kind == "tap" else (1, "left")
        for name, one in _BARE.items():
            is_same = (one.kind, one.status) == (kind, action.status)
            if is_same and (one.count, one.button) == how and not (kind == "done" and action.text):
                return name, None
        raise self.refusal(action)

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
    return f"whole pixels of the screenshot{size_in_words(fed)}, from its top left corner"


class UiR1(_Listed):
    """UI-R1."""

    name = "ui-r1"
    title = "UI-R1: a list in <answer> with a coordinate alone, pixels of the picture as fed"
    checkpoints = ("UI-R1-3B", "UI-R1-E-3B")
    source = "lll6gg/UI-R1@2fe9bf0 evaluation/test_androidcontrol.py"
    layout = Layout(actions=0, system=False)
    has_text = False
    key = "coordinate"
    says: ClassVar = {
        "mobile": kinds("tap back"),
        "desktop": kinds("tap"),
        "web": kinds("tap"),
    }

    def name_and_text(self, action: Action) -> tuple[str, str | None]:
        if action.kind == "back":
            return "navigate_back", None
        if action.count != 1 or action.button != "left":
            raise self.refusal(action)
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
