"""Answers as AgentNet's actions, read as OpenCUA's agent reads them, and as Python.

The released agent (`OpenCUA.parse_response`, `extract_actions`) reads lines with expressions that
know few spellings: places as `x=.., y=..`; texts as `message='..'`, up to the next quotation mark
of either kind, or as `write('..')`; keys as `keys=[..]`, as the texts within `hotkey(..)`, or as
those of `press([..])` (two or more are a hotkey) and the first of `press(..)`. It reads
nothing in `pyautogui.click(0.5, 0.5)`; `triple_click` is a type that no ground truth has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from omnidata.actions import Action, Point, Space
from omnidata.dialects import UnreadError
from omnidata.dialects.pyautogui import Code, as_action, read_code
from omnidata.tasks.agentnet.actions import (
    ActionType,
    actions_of_calls,
    point_action,
    scroll_action,
    terminate_action,
)
from omnidata.tasks.benchmark import ParsedAnswer, Receipt
from omnidata.tasks.coordinates import in_shares, to_screen
from omnidata.tasks.pointing import resizing_of
from omnidata.types import Step

Version = Literal["released", "fixed"]
"""The released agent and evaluator, or both with their faults corrected."""

_MODULES: Final = ("pyautogui.", "computer.")
_PLACE: Final = re.compile(r"x=([\d.]+),\s*y=([\d.]+)")
_STATUS: Final = re.compile(r"status=['\"](\w+)['\"]")
_MESSAGE: Final = re.compile(r"message=['\"](.+?)['\"]")
_WRITTEN: Final = re.compile(r"pyautogui\.write\((['\"])")
_KEYS: Final = re.compile(r"keys=\[(.*?)\]")
_KEY: Final = re.compile(r"['\"]([^'\"]*)['\"]|(\w+)")
_QUOTED: Final = re.compile(r"['\"]([^'\"]+)['\"]")
_HOTKEY: Final = re.compile(r"pyautogui\.hotkey\((.*)\)")
_PRESS: Final = re.compile(r"pyautogui\.press\((.*)\)")
_SCROLL: Final = re.compile(r"pyautogui\.scroll\(([-\d]+)\)")
_FENCED: Final = re.compile(r"```[ \t]*+(?:python3?|py|code)?+[ \t]*+\n?+(.*?)```", re.S | re.I)
_NO_CODE: Final = ("the text is no Python", "the text cannot be parsed")
_LONGEST: Final = 100_000


class Response(Struct, frozen=True):
    """The actions of an answer, in order.

    Attributes:
        actions: with places in shares of the screen.
        written: with places as the model wrote them.
    """

    actions: Sequence[Action]
    written: Sequence[Action]


def parse(
    text: str, step: Step, receipt: Receipt, *, version: Version, space: Space
) -> ParsedAnswer[Response]:
    """Read an answer.

    Args:
        text: the answer, unchanged.
        step: of the question.
        receipt: has the size of the sent picture.
        version: "released" reads lines as the released agent does, "fixed" reads Python.
        space: the unit of places, which the prompt asks for.

    Raises:
        UnreadError: the text has no actions.
        PredictionError: the receipt cannot be read.
    """
    if len(text) > _LONGEST:
        raise UnreadError(f"the text is longer than {_LONGEST} characters")
    if version == "released":
        code, actions = _read_released(text, space)
        return as_answer(actions, code, step, receipt, space)
    code = _code(text)
    if not code:
        raise UnreadError("there is no line of code")
    calls = read_code(code)
    actions = actions_of_calls(calls, space=space)
    if not actions:
        raise UnreadError("the code does nothing")
    turn = as_action(calls, space=space, said=code)
    found = as_answer(actions, code, step, receipt, space)
    return replace(found, written=(turn,) if turn else ())


def as_answer(
    written: Sequence[Action], code: str, step: Step, receipt: Receipt, space: Space
) -> ParsedAnswer[Response]:
    """Return actions as an answer; if the size of the screen is unknown, pixels stay unchanged.

    Raises:
        PredictionError: the receipt cannot be read.
    """
    actions = written
    if space == "norm1000" or (space == "px" and min(step.screen) > 0):
        resized = resizing_of(step, receipt, space)
        actions = [in_shares(to_screen(one, resized), step.screen) for one in written]
    return ParsedAnswer(Response(actions, written), {"code": code}, tuple(written))


def _read_released(text: str, space: Space) -> tuple[str, Sequence[Action]]:
    lines = [line.strip() for line in text.split("\n")]
    code = [line for line in lines if line.startswith(_MODULES)] or list(_within(lines))
    if not code:
        raise UnreadError("there is no line of code")
    actions: list[Action] = []
    for line in code:
        try:
            actions += _extract(line, space)
        except ValueError:  # a number like 1.2.3, on which the released agent stops
            raise UnreadError(f"a number in {line!r:.80} is none") from None
    if not actions:
        raise UnreadError("no action could be read from the code")
    return "\n".join(code), actions


def _within(lines: list[str]) -> Iterator[str]:
    for line in lines:
        for module in _MODULES:
            if module in line:
                yield module + line.split(module)[1].strip()
                break


def _extract(line: str, space: Space) -> Iterator[Action]:
    if line.startswith("computer."):
        status = _STATUS.search(line) if line.startswith("computer.terminate") else None
        if status:
            yield terminate_action(status[1])
        elif line.startswith("computer.triple_click") and (pair := _PLACE.search(line)):
            yield Action("none", (Point(float(pair[1]), float(pair[2]), space),))
        return
    if pair := _PLACE.search(line):
        place = Point(float(pair[1]), float(pair[2]), space)
        kind = _read_point(line)
        if kind:
            yield point_action(kind, place)
    if message := _MESSAGE.search(line):
        yield Action("type", text=message[1])
    elif (text := _read_text(line)) is not None:
        yield Action("type", text=text)
    # Text behind the last bracket closes nothing, and searching it again would take square time.
    if listed := _KEYS.search(line, 0, line.rfind("]") + 1):
        names = [(one[1] or one[2] or "") for one in _KEY.finditer(listed[1])]
        keys = _plain(name for name in names if name)
        yield Action("hotkey" if "hotkey" in line else "keys", keys=keys)
    if "keys=" not in line:
        yield from _bare_keys(line)
    if turn := _SCROLL.search(line):
        amount = int(turn[1])
        yield scroll_action("scroll", amount, (amount > 0) - (amount < 0))


def _read_text(line: str) -> str | None:
    closed = {quote: line.rfind(f"{quote})") for quote in "'\""}
    for found in _WRITTEN.finditer(line):
        if found.end() <= closed[found[1]]:
            return line[found.end() : line.index(f"{found[1]})", found.end())]
    return None


def _bare_keys(line: str) -> Iterator[Action]:
    end = line.rfind(")") + 1
    if found := _HOTKEY.search(line, 0, end):
        keys = _plain(_QUOTED.findall(found[1]))
        if keys:
            yield Action("hotkey", keys=keys)
    if found := _PRESS.search(line, 0, end):
        listed = found[1].strip()
        names = _QUOTED.findall(listed)
        keys = _plain(names if listed.startswith("[") else names[:1])
        if keys:
            yield Action("hotkey" if len(keys) > 1 else "keys", keys=keys)


def _plain(names: Iterable[str]) -> tuple[str, ...]:
    """Replace keys of a Mac by their counterparts."""
    stripped = (name.strip() for name in names)
    return tuple("ctrl" if name.lower() in ("cmd", "command") else name for name in stripped)


def _read_point(line: str) -> ActionType | None:
    if "click" in line and "doubleClick" not in line and "rightClick" not in line:
        return "click"
    kinds: tuple[ActionType, ...] = ("moveTo", "doubleClick", "rightClick", "dragTo")
    return next((kind for kind in kinds if kind in line), None)


def _code(text: str) -> str:
    if not any(module in text for module in _MODULES):
        return ""
    blocks = [found[1].strip() for found in _FENCED.finditer(text)]
    blocks = [block for block in blocks if any(module in block for module in _MODULES)]
    if blocks:
        return "\n".join(blocks)
    whole = read_code(text)
    if not (len(whole) == 1 and isinstance(whole[0], Code) and whole[0].why in _NO_CODE):
        return text
    lines = [line.strip() for line in text.split("\n")]
    return "\n".join([line for line in lines if line.startswith(_MODULES)] or list(_within(lines)))
