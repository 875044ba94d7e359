"""OS-Atlas: the models that act (Pro), and those that find elements (Base).

A Pro model answers in two sections, `thoughts:` and `actions:`, an action a line. Places are from
0 to 1000. A scroll says a direction and no more, which models learn from the labels of a benchmark:
in some it is what comes into sight, in others the way of the finger. A text cannot have a closing
bracket in it, as nothing is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from msgspec import structs

from omnidata.actions import (
    OPPOSITE,
    Action,
    Kind,
    Point,
    Screen,
    Sense,
    centre,
    finger_way,
)
from omnidata.actions import Region as Place
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
from omnidata.dialects.points import read_place
from omnidata.dialects.words import Word, numbers, place, text_in_brackets, words

_FRAME: Final = Frame("norm1000")
_ENDS: Final = ("<|im_end|>", "<|endoftext|>", "</s>")
_HEAD: Final = re.compile(r"actions?[ \t]*:", re.IGNORECASE)
_THOUGHTS: Final = re.compile(r"\s*thoughts?[ \t]*:", re.IGNORECASE)
_HEADS: Final = 32
"""How many heads of a section are tried: a thought may speak of actions."""

_PLACED: Final[Mapping[str, Action]] = {
    "CLICK": Action("tap"),
    "TAP": Action("tap"),
    "DOUBLECLICK": Action("tap", count=2),
    "DOUBLE_CLICK": Action("tap", count=2),
    "RIGHTCLICK": Action("tap", button="right"),
    "RIGHT_CLICK": Action("tap", button="right"),
    "LONG_PRESS": Action("long_press"),
    "MOVETO": Action("move"),
    "MOVE_TO": Action("move"),
}
_BARE: Final[Mapping[str, Action]] = {
    "PRESS_BACK": Action("back"),
    "PRESS_HOME": Action("home"),
    "PRESS_RECENT": Action("recent"),
    "PRESS_APPSELECT": Action("recent"),
    "ENTER": Action("enter"),
    "PRESS_ENTER": Action("enter"),
    "WAIT": Action("wait"),
    "COMPLETE": Action("done", status="success"),
    "IMPOSSIBLE": Action("done", status="failure"),
}
_KEYS: Final = (
    "space", "tab", "esc", "escape", "pgdn", "pgup", "pagedown", "pageup", "down", "up", "left",
    "right", "delete", "backspace", "end", "insert", *(f"f{number}" for number in range(1, 13)),
)  # fmt: skip
_PRESSED: Final[Mapping[str, str]] = {f"PRESS_{key.upper()}": key for key in _KEYS}
_NAMES: Final = frozenset(
    {*_PLACED, *_BARE, *_PRESSED, "TYPE", "OPEN_APP", "OPENAPP", "SCROLL", "HOTKEY"}
)
_KEY_MARKS: Final = re.compile(r"[_+,\s]+")


def _pro(text: str) -> Answer:
    for mark in _ENDS:
        text = text.split(mark, 1)[0]
    text = text.strip()
    failed: UnreadError | None = None
    starts = [found.end() for _, found in zip(range(_HEADS), _HEAD.finditer(text), strict=False)]
    for start in (*starts, 0):
        try:
            actions, end = _read_actions(text, start)
        except UnreadError as error:
            failed = failed or error
            continue
        head = text.rfind("\n", 0, start) + 1 if start else 0
        thought = text[:head].strip() if start else ""
        if marked := _THOUGHTS.match(thought):
            thought = thought[marked.end() :]
        return Answer(actions, thought.strip(), text[end:].strip())
    raise failed or UnreadError("no action")


def _read_actions(text: str, start: int) -> tuple[tuple[Action, ...], int]:
    found: list[Action] = []
    end = start
    while word := next(words(text, _NAMES, end), None):
        read = _read(text, word)
        if read is None:
            break
        found.append(read[0])
        end = read[1]
    if not found:
        raise UnreadError(f"no known action: {text[start:].strip():.80}")
    return tuple(found), end


def _read(text: str, word: Word) -> tuple[Action, int] | None:
    name = word.name
    if name in _PLACED:
        where = place(word.line, "norm1000")
        bare = _PLACED[name]
        if where is None:
            return None
        return Action(bare.kind, (where,), button=bare.button, count=bare.count), word.end
    if name in _BARE:
        return _BARE[name], word.end
    if name in _PRESSED:
        return Action("keys", keys=(_PRESSED[name],)), word.end
    said = text_in_brackets(text, word)
    if said is None:
        return None
    if name == "TYPE":
        return Action("type", text=said[0]), said[1]
    if name == "SCROLL":
        way = DIRECTIONS.get(said[0].strip().lower())
        return (Action("scroll", direction=way), said[1]) if way else None
    if name == "HOTKEY":
        keys = tuple(filter(None, _KEY_MARKS.split(said[0])))
        return (Action("hotkey", keys=keys), said[1]) if keys else None
    return Action("open_app", app=said[0]), said[1]


# As the released evaluation of AndroidControl reads.

PRO: Final = (
    "OS-Copilot/OS-Atlas@bad08407ab54b5bf6c17a69fe1ced476b9494926: "
    "eval/eval_scripts/android_control/evaluation_unify.py"
)
_EATEN: Final = "<|im_end|>"
_DIGITS: Final = re.compile(r"\d+")
_EXACT: Final[Mapping[str, Action]] = {
    **{name: _BARE[name] for name in _BARE if name not in ("PRESS_APPSELECT", "PRESS_ENTER")},
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

_PHONE: Final[frozenset[Kind]] = frozenset(
    {
        "tap", "long_press", "swipe", "scroll", "type", "back", "home", "recent", "enter",
        "open_app", "wait", "done",
    }
)  # fmt: skip
_SCREEN: Final[frozenset[Kind]] = frozenset(
    {"tap", "move", "swipe", "scroll", "type", "keys", "hotkey", "enter", "wait", "done"}
)
_NAME_OF: Final[Mapping[tuple[Kind, str, int], str]] = {
    ("tap", "left", 1): "CLICK",
    ("tap", "left", 2): "DOUBLECLICK",
    ("tap", "right", 1): "RIGHTCLICK",
    ("move", "left", 1): "MOVETO",
    ("long_press", "left", 1): "LONG_PRESS",
}
_WRITTEN: Final[Mapping[Kind, str]] = {
    "back": "PRESS_BACK",
    "home": "PRESS_HOME",
    "recent": "PRESS_RECENT",
    "wait": "WAIT",
}
_POINT: Final = "<point>[[x-axis, y-axis]]</point>"
_USAGES: Final[Mapping[Kind, str]] = {
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

    A scroll has only a direction, in the sense of the benchmark's labels (`in_sense`); a scroll
    with a distance cannot be written. Where only its two places tell where a finger goes, that
    is said, and the places are not. With a mouse, a text that is typed somewhere is a click and a
    text; on a phone, where a step is one action, it cannot be said.

    Args:
        labels: what a direction is said of.

    Examples:
        >>> dialect = OsAtlasPro()
        >>> said = dialect.read("thoughts:\nThe shop.\nactions:\nSCROLL [DOWN]", (0, 0))
        >>> said.thought, said.actions[0].direction, said.actions[0].sense
        ('The shop.', 'down', 'content')
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
    says: ClassVar[Mapping[Platform, frozenset[Kind]]] = {
        "mobile": _PHONE,
        "desktop": _SCREEN,
        "web": _SCREEN,
    }

    def __init__(self, labels: Sense = "content") -> None:
        self._labels = labels

    def in_sense(self, labels: Sense) -> OsAtlasPro:
        return OsAtlasPro(labels)

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        found = _pro_released(text) if rules == "strict" else _pro(text)
        return replace(found, actions=tuple(map(self._set_sense, found.actions)))

    def _set_sense(self, action: Action) -> Action:
        return structs.replace(action, sense=self._labels) if action.kind == "scroll" else action

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        lines = [line for action in actions for line in self._lines(action, platform)]
        return "actions:\n" + "\n".join(lines)

    def line(self, past: Past, platform: Platform) -> str:
        """Return an earlier step in a text; a scroll has only its direction.

        Its label would have the finger's direction beside the words for the content's.
        """
        bare = tuple(
            structs.replace(action, start=(), end=(), amount=None)
            if action.kind in ("swipe", "scroll") and action.direction
            else action
            for action in past.actions
        )
        return super().line(replace(past, actions=bare), platform)

    def _lines(self, action: Action, platform: Platform) -> Iterator[str]:
        kind = action.kind
        if kind not in self.says.get(platform, ()) or action.held:
            raise self._cannot(action)
        several = kind == "type" and (action.start or action.submit)
        if kind == "type" and (action.clear or (several and platform == "mobile")):
            raise self._cannot(action, "where, or what is done with the field besides")
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
        kind = action.kind
        if kind in ("tap", "move", "long_press"):
            name = _NAME_OF.get((kind, action.button, action.count))
            if not action.start or name is None or (platform == "mobile" and "CLICK" in name[1:]):
                raise self._cannot(action)
            return f"{name} {_point(action.start[0])}"
        if kind == "type":
            return f"TYPE [{self._inside(action, action.text or '')}]"
        if kind == "open_app":
            return f"OPEN_APP [{self._inside(action, action.app or '')}]"
        if kind in ("swipe", "scroll"):
            way = finger_way(action)
            placed = action.direction is not None and (action.start or action.end)
            if way is None or placed or action.amount is not None:
                raise self._cannot(action, "where, how far, or which way")
            said = way if self._labels == "finger" else OPPOSITE[way]
            return f"SCROLL [{said.upper()}]"
        if kind == "hotkey":
            if not action.keys or any(_KEY_MARKS.search(key) or not key for key in action.keys):
                raise self._cannot(action, "one of the keys")
            return f"HOTKEY [{self._inside(action, '_'.join(action.keys))}]"
        if kind == "done":
            if action.status is None or action.text is not None:
                raise self._cannot(action, "how it ends")
            return "COMPLETE" if action.status == "success" else "IMPOSSIBLE"
        if kind == "wait" and action.seconds is not None:
            raise self._cannot(action, "how long")
        return _enter(platform) if kind == "enter" else _WRITTEN[kind]

    def _key(self, action: Action, key: str) -> str:
        if key == "enter":
            return "PRESS_ENTER"
        if key not in _KEYS:
            raise self._cannot(action, f"the key {key:.20}")
        return f"PRESS_{key.upper()}"

    def _inside(self, action: Action, text: str) -> str:
        if "]" in text or any(mark in text for mark in _ENDS):
            raise self._cannot(action, "a text with a closing bracket or a mark of the end")
        return text

    def _cannot(self, action: Action, what: str = "") -> CannotSayError:
        return CannotSayError(f"{self.name} does not say {action.label}" + (what and f": {what}"))

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        unit = (
            "x-axis and y-axis are from 0 to 1000, thousandths of the screenshot's width and height"
        )
        if asked == "point":
            return (
                "You find elements on a screenshot. Click in the middle of the element that is "
                f"described.\n{unit}.\nAnswer in this form:\nactions:\nCLICK {_POINT}"
            )
        says = self.says.get(platform, frozenset[Kind]())
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
        where = {"mobile": "a phone", "desktop": "a computer", "web": "a browser"}[platform]
        return (
            f"You operate {where} to fulfil a task. You see a screenshot and what was done so far. "
            "These actions are there:\n" + "\n".join(lines) + f"\n{unit}.\n\n"
            "Answer in two sections, what you think and what you do next:\n"
            "thoughts:\n..\nactions:\n.."
        )


def _enter(platform: Platform) -> str:
    return "PRESS_ENTER" if platform == "desktop" else "ENTER"


def _pair(where: Place) -> str:
    point = centre(where)
    return ",".join(repr(v if isinstance(v, int) else float(v)) for v in (point.x, point.y))


def _point(where: Place) -> str:
    return f"<point>[[{_pair(where)}]]</point>"


# Grounding.

BASE: Final = (
    "likaixin2000/ScreenSpot-Pro-GUI-Grounding@bd8bbbb470fbc4fda2a4fa9ec90bd2572507794e: models/"
)
_FOUR: Final = re.compile(r"(?<!\d)(\d++),\s*(\d++),\s*(\d++),\s*(\d++)")
_TWO: Final = re.compile(r"\[\[(\d++),(\d++)\]\]")
_LOOSE: Final = re.compile(r"-?\d+\.?\d*")
_BRACKETS: Final = str.maketrans("", "", "()[]")
_TAP: Final[frozenset[Kind]] = frozenset({"tap"})


def _read_place(text: str) -> Answer:
    said = text
    for mark in _ENDS:
        said = said.split(mark, 1)[0]
    try:
        where = read_place(said, "norm1000")
    except ValueError:
        where = None
        bare = numbers(said[:_LONGEST])
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
    for pair in _TWO.finditer(text):  # noqa: B007  (the last one is what is wanted)
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
    says: ClassVar[Mapping[Platform, frozenset[Kind]]] = {
        "mobile": _TAP,
        "desktop": _TAP,
        "web": _TAP,
    }
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
            raise CannotSayError(f"{self.name} says one place, and not {labels}")
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
