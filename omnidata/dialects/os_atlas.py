"""OS-Atlas: the models that act (Pro), and those that find elements (Base).

A Pro model answers in two sections, `thoughts:` and `actions:`, an action a line: a name, then a
place or a text in brackets, as in `CLICK <point>[[101, 872]]</point>` or `TYPE [a text]`. Nothing
is escaped, so that a text cannot have a closing bracket. Places are from 0 to 1000. A scroll has
only a direction, in the sense of the labels that a model learnt it from: the content's, or the
finger's. Reading takes time linear in the length of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from msgspec import structs

from omnidata.actions import OPPOSITE, Action, Point, Region, Screen, Sense, centre, finger_way
from omnidata.dialects.base import (
    DEVICES,
    DIRECTIONS,
    Answer,
    Asked,
    Dialect,
    Frame,
    Layout,
    Platform,
    Rules,
    UnreadError,
    kinds,
)
from omnidata.dialects.call_syntax import region_of
from omnidata.dialects.points import read_place

_FRAME: Final = Frame("norm1000")
_ENDS: Final = ("<|im_end|>", "<|endoftext|>", "</s>")
_HEAD: Final = re.compile(r"actions?[ \t]*:", re.IGNORECASE)
_THOUGHTS: Final = re.compile(r"\s*thoughts?[ \t]*:", re.IGNORECASE)
_HEADS: Final = 32
"""The number of section heads that are tried: a thought may mention actions."""
_NAME: Final = re.compile(
    r"\s*+(?:(?:[-*]|\d{1,2}[.)])\s++)?([A-Za-z][A-Za-z_0-9]*+)[ \t]*+:?[ \t]*+"
)
_NUMBERS: Final = re.compile(
    r"(?<![\w.])[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d{1,3})?(?![\w.])"
)
_OPENING: Final = re.compile(r"(?:<point>|<\|box_start\|>)?[ \t]*[\[(]{1,2}|<point>")
_LONGEST_NUMBER: Final = 30
_LARGEST: Final = 10.0**12
_LONGEST_PLACE: Final = 200

_KEYS: Final = (
    "space", "tab", "esc", "escape", "pgdn", "pgup", "pagedown", "pageup", "down", "up", "left",
    "right", "delete", "backspace", "end", "insert", *(f"f{number}" for number in range(1, 13)),
)  # fmt: skip
_WORDS: Final[Mapping[str, Action]] = {
    "CLICK": Action("tap"),
    "TAP": Action("tap"),
    **dict.fromkeys(("DOUBLECLICK", "DOUBLE_CLICK"), Action("tap", count=2)),
    **dict.fromkeys(("RIGHTCLICK", "RIGHT_CLICK"), Action("tap", button="right")),
    "LONG_PRESS": Action("long_press"),
    **dict.fromkeys(("MOVETO", "MOVE_TO"), Action("move")),
    "PRESS_BACK": Action("back"),
    "PRESS_HOME": Action("home"),
    **dict.fromkeys(("PRESS_RECENT", "PRESS_APPSELECT"), Action("recent")),
    **dict.fromkeys(("ENTER", "PRESS_ENTER"), Action("enter")),
    "WAIT": Action("wait"),
    "COMPLETE": Action("done", status="success"),
    "IMPOSSIBLE": Action("done", status="failure"),
    **{f"PRESS_{key.upper()}": Action("keys", keys=(key,)) for key in _KEYS},
}
"""Names and their actions; the first name of an action is written."""
_FIELDS: Final = {
    name: (one.kind, one.button, one.count, one.status) for name, one in _WORDS.items()
}
_PLACED: Final = frozenset({"tap", "long_press", "move"})
_NAMES: Final = _WORDS.keys() | {"TYPE", "OPEN_APP", "OPENAPP", "SCROLL", "HOTKEY"}
_KEY_MARKS: Final = re.compile(r"[_+,\s]+")


def _pro(text: str) -> Answer:
    for mark in _ENDS:
        text = text.split(mark, 1)[0]
    text = text.strip()
    failed: UnreadError | None = None
    starts = [found.end() for _, found in zip(range(_HEADS), _HEAD.finditer(text), strict=False)]
    for start in (*starts, 0):
        actions, end = _read_actions(text, start)
        if not actions:
            failed = failed or UnreadError(f"no known action: {text[start:].strip():.80}")
            continue
        head = text.rfind("\n", 0, start) + 1 if start else 0
        thought = text[:head].strip() if start else ""
        if marked := _THOUGHTS.match(thought):
            thought = thought[marked.end() :]
        return Answer(actions, thought.strip(), text[end:].strip())
    raise failed or UnreadError("no action")


def _read_actions(text: str, end: int) -> tuple[tuple[Action, ...], int]:
    """Return the actions of the lines from a place on, and where the first other line begins."""
    found: list[Action] = []
    while (head := _NAME.match(text, end)) and head[1].upper() in _NAMES:
        line_end = text.find("\n", head.end())
        line_end = len(text) if line_end < 0 else line_end
        read = _read_word(text, head[1].upper(), head.end(), line_end)
        if read is None:
            break
        found.append(read[0])
        end = read[1]
    return tuple(found), end


def _read_word(text: str, name: str, begin: int, end: int) -> tuple[Action, int] | None:
    line, bare = text[begin:end].strip(), _WORDS.get(name)
    if bare and bare.kind in _PLACED:
        numbers = _numbers(line[:_LONGEST_PLACE].split("</point>", 1)[0].split("<|box_end|>", 1)[0])
        if not _OPENING.match(line) or len(numbers) not in (2, 4):
            return None
        return structs.replace(bare, start=(region_of(numbers, "norm1000"),)), end
    if bare:
        return bare, end
    said = line
    if line.startswith("["):  # a text may go over lines, and a bracket may be a part of its line
        begin = text.index("[", begin) + 1
        close = text.rfind("]", begin, end)
        close = text.find("]", begin) if close < 0 else close
        if close < 0:
            return None
        said, end = text[begin:close], close + 1
    elif not line:
        return None
    if name == "TYPE":
        return Action("type", text=said), end
    if name == "SCROLL":
        way = DIRECTIONS.get(said.strip().lower())
        return (Action("scroll", direction=way), end) if way else None
    if name == "HOTKEY":
        keys = tuple(filter(None, _KEY_MARKS.split(said)))
        return (Action("hotkey", keys=keys), end) if keys else None
    return Action("open_app", app=said), end


def _numbers(text: str) -> list[int | float]:
    """Return the numbers of a text as written, without those that are too long or too large."""
    found = (number for number in _NUMBERS.findall(text) if len(number) <= _LONGEST_NUMBER)
    values = [int(number) if number.lstrip("+-").isdigit() else float(number) for number in found]
    return [value for value in values if abs(value) <= _LARGEST]


# As the released evaluation of AndroidControl reads.

PRO: Final = (
    "OS-Copilot/OS-Atlas@bad08407ab54b5bf6c17a69fe1ced476b9494926: "
    "eval/eval_scripts/android_control/evaluation_unify.py"
)
_EATEN: Final = "<|im_end|>"
_DIGITS: Final = re.compile(r"\d+")
_EXACT: Final[Mapping[str, Action]] = {
    **{name: _WORDS[name] for name in ("PRESS_BACK", "PRESS_HOME", "PRESS_RECENT", "ENTER")},
    **{name: _WORDS[name] for name in ("WAIT", "COMPLETE", "IMPOSSIBLE")},
    **{f"SCROLL [{way.upper()}]": Action("scroll", direction=way) for way in DIRECTIONS.values()},
}


def _pro_released(text: str) -> Answer:
    """Read an answer as the released comparison does.

    The section begins with a line `actions:` in small letters. All letters of the closing mark are
    stripped from both ends, in any order. The first two whole numbers are the place, wherever they
    are, or -100, -100.
    """
    parts = text.split("actions:\n", 2)
    if len(parts) < 2:
        raise UnreadError("the released parser finds no section of actions")
    said = parts[1].strip(_EATEN)
    fields = said.split(None, 2)
    if not fields:
        raise UnreadError("the released parser fails at an empty action")
    kind = fields[0]
    if kind in ("CLICK", "LONG_PRESS"):
        found = [number for _, number in zip(range(2), _DIGITS.finditer(said), strict=False)]
        try:
            x, y = (int(number[0]) for number in found)
        except ValueError:
            x, y = -100, -100
        where = (Point(x, y, "norm1000"),)
        return Answer((Action("tap" if kind == "CLICK" else "long_press", where),))
    if kind in ("TYPE", "OPEN_APP"):
        if len(fields) < 2:
            raise UnreadError("the released parser fails where there is no text")
        whole = said.startswith(f"{kind} [") and said.endswith("]")
        inside = said[len(kind) + 2 : -1] if whole else said.strip()[len(kind) :].strip()
        if kind == "TYPE":
            return Answer((Action("type", text=inside),))
        return Answer((Action("open_app", app=inside),))
    if said in _EXACT:
        return Answer((_EXACT[said],))
    raise UnreadError(f"the released evaluation takes nothing for {said:.80}")


# What can be said, and how.

_PHONE: Final = kinds("tap long_press swipe scroll type back home recent enter open_app wait done")
_SCREEN: Final = kinds("tap move swipe scroll type keys hotkey enter wait done")
_POINT: Final = "<point>[[x-axis, y-axis]]</point>"
_USAGES: Final[Mapping[str, str]] = {
    "tap": f"CLICK {_POINT}: {{click}} there",
    "type": "TYPE [text]: type the text",
    "scroll": "SCROLL [UP], [DOWN], [LEFT] or [RIGHT]: {scroll}",
    "long_press": f"LONG_PRESS {_POINT}: keep a finger there",
    "move": f"MOVETO {_POINT}: move the pointer there",
    "hotkey": "HOTKEY [CTRL_A]: press keys at once",
    "keys": "PRESS_SPACE, PRESS_TAB, PRESS_ESC, PRESS_PGDN, PRESS_DOWN, ..: press a key",
    "back": "PRESS_BACK: go back",
    "home": "PRESS_HOME: go to the home screen",
    "recent": "PRESS_RECENT: show the apps that were open",
    "enter": "{enter}: press the enter key",
    "open_app": "OPEN_APP [name]: open an app",
    "wait": "WAIT: wait for the screen to change",
    "done": "COMPLETE: the task is done; IMPOSSIBLE: it cannot be done",
}


class OsAtlasPro(Dialect):
    r"""OS-Atlas-Pro: thoughts and actions in words; places from 0 to 1000.

    A scroll has only a direction, in the sense of the benchmark's labels (`in_sense`); one with a
    distance cannot be written. A swipe between two places is written as its direction. With a
    mouse, a text at a place is a click and a text; on a phone, where a step is one action, it
    cannot be written.

    Args:
        labels: the sense of a direction.

    Examples:
        >>> dialect = OsAtlasPro()
        >>> dialect.in_sense("finger").read("actions:\nSCROLL [UP]", (0, 0)).actions[0].sense
        'finger'
        >>> dialect.write([Action("tap", (Point(3, 4, "norm1000"),))], (0, 0), "mobile")
        'actions:\nCLICK <point>[[3,4]]</point>'
    """

    name = "os-atlas-pro"
    title = "OS-Atlas-Pro, which acts"
    checkpoints = ("OS-Copilot/OS-Atlas-Pro-7B", "OS-Copilot/OS-Atlas-Pro-4B")
    source = PRO
    frame = _FRAME
    layout = Layout(system=False)
    says: ClassVar = {"mobile": _PHONE, "desktop": _SCREEN, "web": _SCREEN}

    def __init__(self, labels: Sense = "content") -> None:
        self._labels = labels

    def in_sense(self, labels: Sense) -> OsAtlasPro:
        return OsAtlasPro(labels)

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        found = _pro_released(text) if rules == "strict" else _pro(text)
        actions = (
            structs.replace(action, sense=self._labels) if action.kind == "scroll" else action
            for action in found.actions
        )
        return replace(found, actions=tuple(actions))

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        lines = [line for action in actions for line in self._lines(action, platform)]
        return "actions:\n" + "\n".join(lines)

    def brief(self, action: Action) -> Action:
        """Return an earlier action; of a scroll only the direction.

        Its label would have the finger's direction beside the words for the content's.
        """
        if action.kind not in ("swipe", "scroll") or not action.direction:
            return action
        return structs.replace(action, start=(), end=(), amount=None)

    def _lines(self, action: Action, platform: Platform) -> Iterator[str]:
        self.check(action, platform, "held", "clear")
        kind = action.kind
        if kind == "type" and platform == "mobile" and (action.start or action.submit):
            raise self.refusal(action, "where, or what is done with the field besides")
        if kind == "type" and action.start:
            yield f"CLICK {_point(action.start[0])}"
        if kind == "keys":
            yield from (self._key(action, key) for key in action.keys)
        else:
            yield self._line(action, platform)
        if action.submit:
            yield _enter(platform)
        for after in action.then:
            yield from self._lines(after, platform)

    def _line(self, action: Action, platform: Platform) -> str:
        match action.kind:
            case "type":
                return f"TYPE [{self._inside(action, action.text or '')}]"
            case "open_app":
                return f"OPEN_APP [{self._inside(action, action.app or '')}]"
            case "swipe" | "scroll":
                way = finger_way(action)
                placed = action.direction is not None and (action.start or action.end)
                if way is None or placed or action.amount is not None:
                    raise self.refusal(action, "where, how far, or which way")
                return f"SCROLL [{(way if self._labels == 'finger' else OPPOSITE[way]).upper()}]"
            case "hotkey":
                if not action.keys or any(_KEY_MARKS.search(key) or not key for key in action.keys):
                    raise self.refusal(action, "one of the keys")
                return f"HOTKEY [{self._inside(action, '_'.join(action.keys))}]"
            case "enter":
                return _enter(platform)
        fields = (action.kind, action.button, action.count, action.status)
        name = next((name for name, one in _FIELDS.items() if one == fields), "")
        on_phone = action.kind == "tap" and platform == "mobile"
        unsaid = {"done": action.text, "wait": action.seconds}.get(action.kind)
        if not name or (on_phone and name != "CLICK") or unsaid is not None:
            raise self.refusal(action, "how, how long, or how it ends")
        if action.kind not in _PLACED:
            return name
        if not action.start:
            raise self.refusal(action, "where")
        return f"{name} {_point(action.start[0])}"

    def _key(self, action: Action, key: str) -> str:
        if key not in (*_KEYS, "enter"):
            raise self.refusal(action, f"the key {key:.20}")
        return f"PRESS_{key.upper()}"

    def _inside(self, action: Action, text: str) -> str:
        if "]" in text or any(mark in text for mark in _ENDS):
            raise self.refusal(action, "a text with a closing bracket or a mark of the end")
        return text

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        unit = (
            "x-axis and y-axis are from 0 to 1000, thousandths of the screenshot's width and height"
        )
        if asked == "point":
            return (
                "You find elements on a screenshot. Click in the middle of the element that is "
                f"described.\n{unit}.\nAnswer in this form:\nactions:\nCLICK {_POINT}"
            )
        says = self.says.get(platform, ())
        words = {
            "click": "tap" if platform == "mobile" else "click",
            "enter": _enter(platform),
            "scroll": "move a finger in that direction"
            if self._labels == "finger"
            else "show what is further in that direction",
        }
        lines = [f"- {usage.format(**words)}" for kind, usage in _USAGES.items() if kind in says]
        if platform != "mobile":
            lines.insert(1, f"- DOUBLECLICK and RIGHTCLICK {_POINT}: likewise")
        return (
            f"You operate {DEVICES[platform]} to fulfil a task. You see a screenshot and what was "
            "done so far. "
            "These actions are there:\n" + "\n".join(lines) + f"\n{unit}.\n\n"
            "Answer in two sections, what you think and what you do next:\n"
            "thoughts:\n..\nactions:\n.."
        )


def _enter(platform: Platform) -> str:
    return "PRESS_ENTER" if platform == "desktop" else "ENTER"


def _pair(where: Region) -> str:
    point = centre(where)
    return ",".join(repr(v if isinstance(v, int) else float(v)) for v in (point.x, point.y))


def _point(where: Region) -> str:
    return f"<point>[[{_pair(where)}]]</point>"


# Grounding.

BASE: Final = (
    "likaixin2000/ScreenSpot-Pro-GUI-Grounding@bd8bbbb470fbc4fda2a4fa9ec90bd2572507794e: models/"
)
_FOUR: Final = re.compile(r"(?<!\d)(\d++),\s*(\d++),\s*(\d++),\s*(\d++)")
_TWO: Final = re.compile(r"\[\[(\d++),(\d++)\]\]")
_LOOSE: Final = re.compile(r"-?\d+\.?\d*")
_BRACKETS: Final = str.maketrans("", "", "()[]")


def _read_place(text: str) -> Answer:
    said = text
    for mark in _ENDS:
        said = said.split(mark, 1)[0]
    try:
        where = read_place(said, "norm1000")
    except ValueError:
        where = None
        bare = _numbers(said[:_LONGEST])
        if len(bare) == 2:
            where = Point(bare[0], bare[1], "norm1000")
    if where is None:
        raise UnreadError(f"no place: {said.strip():.80}")
    return Answer((Action("tap", (where,)),))


_LONGEST: Final = 1000
"""Characters in which a place without any mark is looked for."""


def _box_text(text: str) -> str | None:
    opening, closing = "<|box_start|>", "<|box_end|>"
    start = text.find(opening)
    end = -1
    while start >= 0:
        start += len(opening)
        if end < start:
            end = text.find(closing, start)
        if end < 0:
            return None
        broken = text.find("\n", start, end)
        if broken < 0:
            return text[start:end]
        start = text.find(opening, broken)
    return None


def _box_released(text: str) -> Answer:
    """Read as `osatlas7b.py` does: a box inside the picture, or nothing.

    Without box marks, two or four numbers between 0 and 1 are a place; they are divided by 1000 all
    the same.
    """
    if "<|box_start|>" in text and "<|box_end|>" in text:
        inside = _box_text(text)
        four = _FOUR.search(inside.translate(_BRACKETS)) if inside is not None else None
        try:
            edges = [int(edge) for edge in four.groups()] if four else []
        except ValueError:
            edges = []
        if not edges or not all(0 < edge < 1000 for edge in edges):
            raise UnreadError("the released parser finds no box inside the picture")
        x, y = (edges[0] + edges[2]) / 2, (edges[1] + edges[3]) / 2
        return Answer((Action("tap", (Point(x, y, "norm1000"),)),))
    found = [float(number) for number in _LOOSE.findall(text)]
    if len(found) == 4:
        found = [(found[0] + found[2]) / 2, (found[1] + found[3]) / 2]
    if len(found) != 2 or not all(0 < value < 1 for value in found):
        raise UnreadError("the released parser finds no place inside the picture")
    return Answer((Action("tap", (Point(found[0], found[1], "norm1000"),)),))


def _pair_released(text: str) -> Answer:
    """Read as `osatlas4b.py` does: the last pair in double brackets without blanks."""
    pair = None
    for pair in _TWO.finditer(text):  # noqa: B007  (the last pair is used below)
        pass
    if pair is None:
        raise UnreadError("the released parser finds no pair in double brackets")
    return Answer((Action("tap", (Point(float(pair[1]), float(pair[2]), "norm1000"),)),))


class OsAtlasBase(Dialect):
    """OS-Atlas-Base-7B: where an element is, as a box from 0 to 1000.

    Attributes:
        boxes: whether an answer is a box; else it is a point.

    Examples:
        >>> said = OsAtlasBase().read("<|box_start|>(576,12),(592,42)<|box_end|><|im_end|>", (0, 0))
        >>> said.actions[0].start[0].centre
        Point(x=584.0, y=27.0, space='norm1000')
    """

    name = "os-atlas-base"
    title = "OS-Atlas-Base-7B, which finds elements"
    checkpoints: ClassVar[Sequence[str]] = ("OS-Copilot/OS-Atlas-Base-7B",)
    source = BASE + "osatlas7b.py"
    frame = _FRAME
    layout = Layout(system=False)
    says: ClassVar = dict.fromkeys(DEVICES, kinds("tap"))
    special_tokens = True
    boxes: ClassVar[bool] = True

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        if rules == "lenient":
            return _read_place(text)
        return _box_released(text) if self.boxes else _pair_released(text)

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        action = actions[0]
        plain = (action.kind, action.button, action.count) == ("tap", "left", 1)
        if len(actions) > 1 or not plain or not action.start or action.held or action.then:
            labels = ", ".join(one.label for one in actions)
            raise self.refusal(action, f"it says one place, and not {labels}")
        if not self.boxes:
            return f"[[{_pair(action.start[0])}]]"
        pair = f"({_pair(action.start[0])})"
        return f"<|box_start|>{pair},{pair}<|box_end|>"

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        what = "with bbox" if self.boxes else "with point"
        return (
            "Where on this screenshot is the element that belongs to the command ("
            f"{what})? Numbers are from 0 to 1000, thousandths of its width and height."
        )


class OsAtlasBase4B(OsAtlasBase):
    """OS-Atlas-Base-4B: where an element is, as a point from 0 to 1000.

    Examples:
        >>> OsAtlasBase4B().read("[[3, 4]]", (0, 0)).actions[0].start
        (Point(x=3, y=4, space='norm1000'),)
    """

    name = "os-atlas-base-4b"
    title = "OS-Atlas-Base-4B, which finds elements"
    checkpoints = ("OS-Copilot/OS-Atlas-Base-4B",)
    source = BASE + "osatlas4b.py"
    special_tokens = False
    boxes = False


DIALECTS: Final[tuple[Dialect, ...]] = (OsAtlasPro(), OsAtlasBase(), OsAtlasBase4B())
