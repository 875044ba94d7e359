"""Agents that answer with code of pyautogui: OpenCUA, Aguvis and Kimi.

An answer is a thought, a sentence and code. Code is read with `ast` and never executed. Places are
pixels of the picture as it is fed, or shares of it.
"""

from __future__ import annotations

import re
import textwrap
from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from msgspec.structs import replace

from omnidata.actions import (
    OPPOSITE,
    Action,
    Kind,
    Point,
    Region,
    Screen,
    centre,
    convert,
    finger_way,
)
from omnidata.dialects.base import (
    DEVICES,
    UNKNOWN,
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
    kinds,
    map_places,
    size_in_words,
)
from omnidata.dialects.call_syntax import UNPARSED, parse_python
from omnidata.dialects.pyautogui import (
    AGENTS,
    CLICKS,
    LONGEST,
    Call,
    Code,
    each_action,
    read_code,
    single_actions,
)
from omnidata.dialects.pyautogui_released import read_aguvis, read_kimi, read_opencua

# Where an answer has its code, and where its thought.

_THOUGHT_ENDS: Final = ("</think>", "◁/think▷")
_THOUGHT_BEGINS: Final = ("<think>", "◁think▷")
_ANSWER_ENDS: Final = ("<|diff_marker|>", "<|im_end|>", "<|endoftext|>")
_RECIPIENT: Final = re.compile(r"<\|recipient\|>os\b|^[ \t]*(?:assistant)?os[ \t]*$", re.MULTILINE)
_CODE_HEAD: Final = re.compile(r"^[ \t]*#{1,4}[ \t]*Code\b", re.MULTILINE | re.IGNORECASE)
_CALLED: Final = re.compile(
    r"\b(?:pyautogui|computer|mobile|browser)\.[A-Za-z_]\w*[ \t]*\(|\bcall_user[ \t]*\("
)
_STEP: Final = re.compile(r"^[ \t]*#[ \t]*Step\b[^\n]*\n?", re.MULTILINE)
_THOUGHT: Final = re.compile(r"^[ \t]*(?:#{1,4}[ \t]*)?Thoughts?\b[ \t]*:?", re.MULTILINE)
_NEXT: Final = re.compile(
    r"^[ \t]*(?:#{1,4}[ \t]*)?(?:Action|Code|Observation)\b[ \t]*:?", re.MULTILINE
)
_FENCE: Final = "```"
_LANGUAGE: Final = re.compile(r"(?:python3?|py|code)\b[ \t]*", re.IGNORECASE)
_MENDS: Final = 8
"""The number of attempts to repair or cut invalid Python before it counts as unreadable."""


def _without_thought(text: str) -> tuple[str, str]:
    ends = [(text.rfind(mark), len(mark)) for mark in _THOUGHT_ENDS]
    at, length = max(ends)
    if at < 0:
        if text.lstrip().startswith(_THOUGHT_BEGINS):
            raise UnreadError("the thought does not end")
        return "", text
    thought = text[:at].lstrip()
    for mark in _THOUGHT_BEGINS:
        thought = thought.removeprefix(mark)
    return thought.strip(), text[at + length :]


def _last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)


def _thought(text: str) -> str:
    start = _THOUGHT.search(text)
    begin = start.end() if start else 0
    end = _NEXT.search(text, begin)
    said = _STEP.sub("", text[begin : end.start() if end else len(text)])
    said = said.strip().removeprefix("<|recipient|>").removeprefix("all\n")
    return said.removesuffix("<|im_start|>assistant").strip()


def _blocks(text: str) -> tuple[list[str], int, int]:
    found: list[str] = []
    begin = end = len(text)
    inside: list[str] | None = None
    position = 0
    for line in text.splitlines(keepends=True):
        rest, start, position = line, position, position + len(line)
        if inside is None:
            at = rest.find(_FENCE)
            if at < 0:
                continue
            begin = start + at if not found else begin
            rest = rest[at + len(_FENCE) :]
            if word := _LANGUAGE.match(rest):
                rest = rest[word.end() :]
            inside = []
        stripped = rest.strip()
        ends = stripped.endswith(_FENCE)
        if not stripped.startswith(_FENCE):
            inside.append(stripped.removesuffix(_FENCE) if ends else rest.rstrip("\r\n"))
            if not ends:
                continue
        found.append("\n".join(inside))
        inside, end = None, position
    if inside is not None:
        found.append("\n".join(inside))
        end = len(text)
    return found, begin, end


def _python(code: str) -> tuple[str, str]:
    """Return the Python part of a text, and the rest.

    Unescaped quotes in typed texts are escaped and needless indentation is removed; the first line
    that cannot be repaired begins the rest.
    """
    code, rest = textwrap.dedent(code).strip(), ""
    for _ in range(_MENDS):
        try:
            parse_python(code)
        except IndentationError:
            code = "\n".join(line.strip() for line in code.split("\n"))
        except SyntaxError as error:
            lines = code.split("\n")
            number = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
            repaired = _escape_quotes(lines[number])
            if repaired is None:
                before, _, last = lines[number].rpartition(";")
                rest = "\n".join([last, *lines[number + 1 :]]).strip() or rest
                code = "\n".join([*lines[:number], before]).strip()
            else:
                lines[number] = repaired
                code = "\n".join(lines)
        except UNPARSED:
            return "", code
        else:
            return code, rest
    return "", code


_WRITTEN: Final = re.compile(r"\s*pyautogui\.(?:type)?write\((?:(?:message|text)\s*=\s*)?(['\"])")


def _escape_quotes(line: str) -> str | None:
    start = _WRITTEN.match(line)
    if not start:
        return None
    end = line.rfind(start[1] + ")")
    if end < start.end():
        return None
    inside = line[start.end() : end]
    return f"pyautogui.write({inside!r}){line[end + 2 :]}"


def _statements(code: str) -> tuple[tuple[Call, ...], str]:
    if len(code) > LONGEST:
        raise UnreadError(f"the code is longer than {LONGEST} characters")
    whole, rest = _python(code)
    found: list[Call] = []
    for one in read_code(whole, functions=AGENTS):
        if isinstance(one, Code):
            if one.raw.startswith(("import ", "from ")):
                continue
            if not found:
                raise UnreadError(f"{one.raw:.80} is no known action: {one.why}")
            return tuple(found), "\n".join(filter(None, (one.raw, rest)))
        half = (one.x is None) != (one.y is None)
        if half or (one.tag and one.x is None):
            raise UnreadError(f"{one.raw:.80} names no place")
        found.append(one)
    if not found:
        raise UnreadError(f"no code that is understood: {code.strip():.80}")
    return tuple(found), rest


# Code, written.

_MARKS: Final = (_FENCE, "<|", "<think", "</think", "◁")
_NOTCHES: Final = 5
_PAGES: Final = 0.1
"""Distance of a scroll that has none."""
_POINTED: Final = frozenset({"tap", "long_press", "move", "hold", "release", "drag", "select"})


def _text(value: str) -> str:
    """Return a text as a Python literal that contains no mark of an answer."""
    written = repr(value)
    for mark in _MARKS:
        written = written.replace(mark, f"\\u{ord(mark[0]):04x}" + mark[1:])
    return written


def _number(value: float) -> str:
    return repr(value if isinstance(value, int) else float(value))


def _pair(place: Region) -> str:
    point = centre(place)
    return f"[{_number(point.x)}, {_number(point.y)}]"


def _place(places: Sequence[Region]) -> list[str]:
    if not places:
        return []
    point = centre(places[0])
    return [f"x={_number(point.x)}", f"y={_number(point.y)}"]


_MOUSE: Final = kinds("tap drag swipe scroll move type keys hotkey hold release enter done")
_TOUCH: Final = kinds("tap long_press swipe scroll type keys enter back home open_app wait done")

_TOUCH_CALLS: Final[Mapping[Kind, str]] = {
    "tap": "pyautogui.click(x=.., y=..): tap there",
    "long_press": "mobile.long_press(x=.., y=..): keep a finger there",
    "swipe": "mobile.swipe(from_coord=[x, y], to_coord=[x, y]): draw a finger from there to there",
    "scroll": (
        "pyautogui.scroll({wheel}), hscroll({wheel}): scroll by so many {turn}; above 0 is up, or "
        "right"
    ),
    "back": "mobile.back(): go back",
    "home": "mobile.home(): go to the home screen",
    "open_app": "mobile.open_app(app_name=..): open an app",
}
_MOUSE_CALLS: Final[Mapping[Kind, str]] = {
    "tap": "pyautogui.click(x=.., y=..), rightClick, middleClick, doubleClick, {triple}: click",
    "move": "pyautogui.moveTo(x=.., y=..): move the pointer there",
    "drag": "pyautogui.dragTo(x=.., y=.., button=..): drag from where the pointer is",
    "scroll": (
        "pyautogui.scroll({wheel}), hscroll({wheel}): turn the wheel by so many {turn}; above 0 is "
        "up, or right"
    ),
    "hotkey": "pyautogui.hotkey({keys}): press keys at once",
    "hold": "pyautogui.keyDown(key), keyUp(key), mouseDown(x=.., y=..), mouseUp: hold and release",
    "select": "browser.select_option(x=.., y=.., value=..): pick an entry of a list",
}
_CALLS: Final[Mapping[Kind, str]] = {
    "type": "pyautogui.write({message}): type a text",
    "keys": "pyautogui.press({keys}): press keys in turn",
    "wait": "{module}.wait(): wait for the screen to change",
    "ask": "call_user(question=..): ask the user",
    "done": "{module}.terminate(status=..): end the task; the status is 'success' or 'failure'",
}
"""The calls as prompts describe them: on a phone, with a mouse, and on both."""


class CodeDialect(Dialect):
    """Base class of OpenCUA, Aguvis and Kimi.

    Held keys, the place of a typed text and the enter key after it are separate calls, and are read
    as separate actions. On a phone, where a step is one action, a text has no place. A swipe
    between two places is one of the plug-in for phones; a swipe with a direction turns the wheel.
    The wheel turns by five notches, or a tenth of a page, unless the action has a distance.

    Attributes:
        by_name: whether keys and texts are written as arguments with a name.
        triple: the function that clicks three times.
        last_block: whether only the last block of code counts.
        pages: whether a wheel turns by pages.
        answer: a written answer, of "code", its "language" and a "sentence" on what it does.
        form: how prompts ask for an answer with "code".
        read_released: reads an answer as the released parser does.
    """

    by_name: ClassVar[bool] = True
    triple: ClassVar[str] = "pyautogui.tripleClick"
    last_block: ClassVar[bool] = False
    pages: ClassVar[bool] = False
    answer: ClassVar[str]
    form: ClassVar[str]
    read_released: ClassVar[staticmethod[[str, Screen], tuple[Action, ...]]]

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        if rules == "strict":
            return Answer(self.read_released(text, fed))
        thought, said = _without_thought(text)
        if recipient := _last_match(_RECIPIENT, said):
            before, said = said[: recipient.start()], said[recipient.end() :]
            thought = thought or _thought(before)
        ends = [at for mark in _ANSWER_ENDS if (at := said.find(mark)) >= 0]
        if ends:
            said = said[: min(ends)]
        head = _last_match(_CODE_HEAD, said)
        start = head.start() if head else 0
        blocks, begin, end = _blocks(said[start:])
        blocks = [block for block in blocks if block.strip()]
        if blocks:
            code = blocks[-1] if self.last_block else "\n".join(blocks)
            begin, after = start + begin, said[start + end :]
        else:
            call = _CALLED.search(said, start)
            if not call:
                raise UnreadError(f"no code: {said.strip():.80}")
            begin, code, after = call.start(), said[call.start() :], ""
        calls, rest = _statements(code)
        unread = "\n".join(filter(None, (rest, after.strip())))
        actions = tuple(
            map_places(action, lambda point: self.resolve_point(point, fed))
            for action in each_action(calls, space=self.frame.space)
        )
        return Answer(actions, thought or _thought(said[:begin]), unread)

    def resolve_point(self, point: Point, fed: Screen) -> Point:
        """Return the place that two numbers mean; families with another unit override this.

        Args:
            point: the numbers in the unit of the frame.
            fed: as in `read`.
        """
        return point

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        sentence = " ".join(f"{action.label.replace('_', ' ').capitalize()}." for action in actions)
        code = self.code(actions, fed, platform)
        language = "code" if "computer." in code else "python"
        return self.answer.format(code=code, language=language, sentence=sentence)

    def code(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        """Return the code alone.

        Raises:
            CannotSayError: there is none for one of the actions.
        """
        lines: list[str] = []
        if platform == "mobile":
            for action in actions:
                if action.held or (action.kind == "type" and (action.start or action.submit)):
                    raise self.refusal(action, "where, or what is pressed with it")
        for action in single_actions(actions):
            self.check(action, platform, "clear")
            lines.append(self._write_call(action, platform))
        return "\n".join(lines)

    def _write_call(self, action: Action, platform: Platform) -> str:
        kind, place = action.kind, _place(action.start)
        if action.button == "x" and kind in _POINTED and not action.keys:
            raise self.refusal(action, "that button")
        on_phone = platform == "mobile"
        if not place and (kind in ("long_press", "select", "move") or (kind == "tap" and on_phone)):
            raise self.refusal(action, "where")
        if action.seconds is not None and (kind == "long_press" or action.keys):
            raise self.refusal(action, "how long")
        button = [f"button={action.button!r}"] if action.button != "left" else []
        module = "mobile" if on_phone else "computer"
        match kind:
            case "tap":
                if (action.button, action.count) == ("left", 3):
                    return _call(self.triple, *place)
                if known := CLICKS.get((action.button, action.count)):
                    return _call(f"pyautogui.{known}", *place)
                return _call("pyautogui.click", *place, f"clicks={action.count}", *button)
            case "hold" | "release":
                way = "Down" if kind == "hold" else "Up"
                if action.keys:
                    return _call(f"pyautogui.key{way}", _text(action.keys[0]))
                return _call(f"pyautogui.mouse{way}", *place, *button)
            case "drag":
                if action.path or not action.end:
                    raise self.refusal(action, "where it goes")
                moved = _call("pyautogui.moveTo", *place) + "\n" if place else ""
                end = _place(action.end)
                return moved + _call("pyautogui.dragTo", *end, f"button={action.button!r}")
            case "move":
                return _call("pyautogui.moveTo", *place)
            case "long_press":
                return _call("mobile.long_press", *place)
            case "select":
                value = f"value={_text(action.text or '')}"
                return _call("browser.select_option", *place, value)
            case "swipe" | "scroll" if on_phone and action.start and action.end:
                ends = _pair(action.start[0]), _pair(action.end[0])
                return _call("mobile.swipe", f"from_coord={ends[0]}", f"to_coord={ends[1]}")
            case "swipe" | "scroll":
                return self._wheel(action)
            case "type":
                message = "message=" if self.by_name else ""
                return _call("pyautogui.write", message + _text(action.text or ""))
            case "keys" | "hotkey":
                return self._keys(action)
            case "ask":
                return _call("call_user", f"question={_text(action.text or '')}")
            case "open_app":
                return _call("mobile.open_app", f"app_name={_text(action.app or '')}")
            case "wait":
                seconds = [] if action.seconds is None else [f"seconds={_number(action.seconds)}"]
                return _call(f"{module}.wait", *seconds)
            case "done":
                if action.status is None:
                    raise self.refusal(action, "how it ends")
                answer = [] if action.text is None else [f"answer={_text(action.text)}"]
                return _call(f"{module}.terminate", f"status={action.status!r}", *answer)
            case _:
                return f"mobile.{kind}()"

    def _wheel(self, action: Action) -> str:
        way = finger_way(action)
        if way is None and action.amount != 0:
            raise self.refusal(action, "which way")
        wheel = OPPOSITE[way] if way else None
        name = "hscroll" if wheel in ("left", "right") else "scroll"
        sign = -1 if wheel in ("down", "left") else 1
        amount, unit = action.amount, action.amount_unit
        if amount is None:
            amount, unit = (_PAGES, "page") if self.pages else (_NOTCHES, "notch")
        if unit == "page" and self.pages:
            turn = f"page={_number(sign * amount)}"
        elif unit == "notch":
            turn = _number(sign * (int(amount) if float(amount).is_integer() else amount))
        else:
            raise self.refusal(action, f"how far in the unit {unit}")
        return _call(f"pyautogui.{name}", turn, *_place(action.start))

    def _keys(self, action: Action) -> str:
        if not action.keys:
            raise self.refusal(action, "which keys")
        keys = [_text(key) for key in action.keys]
        listed = f"[{', '.join(keys)}]"
        if action.kind == "hotkey":
            return _call("pyautogui.hotkey", *([f"keys={listed}"] if self.by_name else keys))
        single = keys[0] if len(keys) == 1 else listed
        return _call("pyautogui.press", f"keys={listed}" if self.by_name else single)

    def line(self, past: Past, platform: Platform) -> str:
        try:
            return self.code(past.actions, past.fed, platform).replace("\n", "; ") or UNKNOWN
        except CannotSayError:
            return super().line(past, platform)

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        unit = (
            f"pixels of the screenshot{size_in_words(fed)}"
            if self.frame.space == "px"
            else "shares of the screenshot's width and height, from 0 to 1"
        )
        if asked == "point":
            return (
                "You find elements on a screenshot. Say where the element is that is described, as "
                f"code that clicks in its middle.\nx and y are {unit}.\n\n"
                f"{self.form.format(code='pyautogui.click(x=.., y=..)')}"
            )
        says = self.says.get(platform, frozenset[Kind]())
        usages = {**(_TOUCH_CALLS if platform == "mobile" else _MOUSE_CALLS), **_CALLS}
        words = {
            "module": "mobile" if platform == "mobile" else "computer",
            "triple": self.triple,
            "message": "message=.." if self.by_name else "text",
            "keys": "keys=[..]" if self.by_name else "key, ..",
            "wheel": "page=.." if self.pages else "clicks",
            "turn": "pages" if self.pages else "notches",
        }
        lines = [f"- {usage.format(**words)}" for kind, usage in usages.items() if kind in says]
        return (
            f"You operate {DEVICES[platform]} to fulfil a task. You see a screenshot and what was "
            "done so far. Say what to do next, as code that is carried out as it stands. These "
            "calls are known:\n"
            + "\n".join(lines)
            + f"\nx and y are {unit}.\n\n{self.form.format(code='...')}"
        )


def _call(name: str, *arguments: str) -> str:
    return f"{name}({', '.join(arguments)})"


def _is_share(point: Point) -> bool:
    """Return whether two numbers cannot be pixels: both from 0 to 1, and not both whole."""
    pair = (point.x, point.y)
    return all(0 <= number <= 1 for number in pair) and any(number % 1 for number in pair)


_TURNS: Final = Layout(turns=True, screenshots=3, actions=10)


class OpenCua(CodeDialect):
    r"""OpenCUA: a thought, a sentence and a block of code; places in pixels as fed.

    Examples:
        >>> print(OpenCua().write([Action("done", status="success")], (0, 0), "desktop"))
        ## Action:
        Task complete.
        <BLANKLINE>
        ## Code:
        ```code
        computer.terminate(status='success')
        ```
    """

    name = "opencua"
    title = "OpenCUA, in pixels of the picture as Qwen2.5-VL takes it"
    checkpoints = ("xlangai/OpenCUA-7B", "xlangai/OpenCUA-32B", "xlangai/OpenCUA-72B")
    source = (
        "xlang-ai/OpenCUA@1d70f20663dcaa01f10c7fed5669887286545866: "
        "evaluation/agentnetbench/agent/opencua.py"
    )
    read_released = staticmethod(read_opencua)
    frame = Frame("px", 28, 3136, 12845056)
    layout = _TURNS
    says: ClassVar = dict.fromkeys(("desktop", "web"), _MOUSE | {"wait"})
    triple = "computer.triple_click"
    answer = "## Action:\n{sentence}\n\n## Code:\n```{language}\n{code}\n```"
    form = (
        "Answer in three sections:\n## Thought:\nwhat you see and why you do what you do\n\n"
        "## Action:\nwhat you do, in a sentence\n\n## Code:\n```python\n{code}\n```"
    )

    def resolve_point(self, point: Point, fed: Screen) -> Point:
        """Fractions between 0 and 1 are shares of the screenshot, as the released reader has it."""
        if not _is_share(point) or min(fed) < 1:
            return point
        return convert(replace(point, space="rel"), "px", fed)

    def code(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        """A place within the first pixel would be read as a share."""
        for action in single_actions(actions):
            if any(_is_share(centre(region)) for region in (*action.start, *action.end)):
                raise self.refusal(action, "a place within the first pixel of the picture")
        return super().code(actions, fed, platform)


class Kimi(CodeDialect):
    """Kimi-VL and Kimi K2.5: a thought, a sentence and a block of code; places from 0 to 1."""

    name = "kimi"
    title = "Kimi-VL and Kimi K2.5, in shares of the picture"
    checkpoints = (
        "moonshotai/Kimi-VL-A3B-Instruct",
        "moonshotai/Kimi-VL-A3B-Thinking-2506",
        "moonshotai/Kimi-K2.5",
    )
    source = (
        "mrwwk/DeskCraft@3e11457c9f4d0cd81f27d961b98ae65f8b6ed309: mm_agents/kimi/kimi_agent.py"
    )
    read_released = staticmethod(read_kimi)
    frame = Frame("rel")
    layout = Layout(turns=True, screenshots=3)
    says: ClassVar = dict.fromkeys(("desktop", "web"), _MOUSE | {"wait", "ask"})
    answer = "## Action:\n{sentence}\n## Code:\n```python\n{code}\n```"
    form = (
        "Think first. Then answer in two sections:\n## Action:\nwhat you do, in a sentence\n"
        "## Code:\n```python\n{code}\n```"
    )
    by_name = False
    last_block = True

    def resolve_point(self, point: Point, fed: Screen) -> Point:
        """Numbers above 1 are pixels of the screenshot, as the released agent takes them."""
        pixels = max(point.x, point.y) > 1 and min(fed) > 0
        return convert(replace(point, space="px"), "rel", fed) if pixels else point


class Aguvis(CodeDialect):
    """Aguvis: code for a recipient, with plug-ins for phones and browsers; places from 0 to 1.

    The model names the recipient itself: all for what it thinks, os for its code.

    Examples:
        >>> ends = (Point(0.5, 0.5, "rel"),), (Point(0.5, 0.2, "rel"),)
        >>> print(Aguvis().write([Action("swipe", *ends)], (0, 0), "mobile"))
        os
        mobile.swipe(from_coord=[0.5, 0.5], to_coord=[0.5, 0.2])
    """

    name = "aguvis"
    title = "Aguvis, in shares of the picture"
    checkpoints = ("xlangai/Aguvis-7B-720P", "xlangai/Aguvis-72B-720P")
    source = (
        "xlang-ai/OpenCUA@1d70f20663dcaa01f10c7fed5669887286545866: "
        "evaluation/agentnetbench/agent/aguvis.py; calls of `mobile`: "
        "OpenBMB/AgentCPM-GUI@acbaf509b8afb3f58b782486f4e8c0e33d8a486b: eval/run_predict_aguvis.py"
    )
    read_released = staticmethod(read_aguvis)
    frame = Frame("rel")
    says: ClassVar = {"mobile": _TOUCH, "desktop": _MOUSE, "web": _MOUSE | {"select"}}
    stop = ("<|diff_marker|>",)
    special_tokens = True
    prefix = "<|recipient|>"
    pages = True
    answer = "os\n{code}"
    form = (
        "You may first tell all what you think and what you do, in two lines that begin with "
        "Thought: and Action:. Then tell os the code:\n{code}"
    )


DIALECTS: Final[tuple[Dialect, ...]] = (OpenCua(), Aguvis(), Kimi())
