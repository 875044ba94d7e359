r"""A model's text as AgentNet's actions, as OpenCUA's agent reads it and as it is meant.

The released agent (`OpenCUA.parse_response`, `extract_actions`) reads lines with expressions that
know few spellings: places as `x=.., y=..`; texts as `message='..'`, up to the next quotation mark
of either kind, or as `write('..')`; keys as `keys=[..]`, as the texts within `hotkey(..)`, or as
those of `press([..])`, of which two or more make a hotkey, and the first of `press(..)`.
`pyautogui.click(0.5, 0.5)` says nothing to it; `triple_click` is a type that no ground truth has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from omnidata.agentnet import Deed, DeedType, deeds_of_calls
from omnidata.metrics.agentnetbench import Rule
from omnidata.pyautogui import Code, read_code

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


@dataclass(frozen=True, slots=True)
class Said:
    """What a text says to do.

    Attributes:
        deeds: in order.
        code: the lines of code in it.
    """

    deeds: tuple[Deed, ...]
    code: str


def parse(text: str, rule: Rule) -> Said | str:
    """What a text says to do, or why it says nothing.

    Args:
        text: as it came; places are in the unit of the prompt.
        rule: "released" reads as the released agent does.

    Examples:
        >>> said = "I click. pyautogui.click(x=0.5, y=0.25)"
        >>> [one.place for one in parse(said, "released").deeds]
        [(0.5, 0.25)]
        >>> parse("pyautogui.click(0.5, 0.25)", "released")
        'no action could be read from the code'
        >>> parse("pyautogui.click(0.5, 0.25)", "fixed").deeds[0].place
        (0.5, 0.25)
    """
    if len(text) > _LONGEST:
        return f"the text is longer than {_LONGEST} characters"
    return _released(text) if rule == "released" else _meant(text)


def _released(text: str) -> Said | str:
    lines = [line.strip() for line in text.split("\n")]
    code = [line for line in lines if line.startswith(_MODULES)] or list(_within(lines))
    if not code:
        return "there is no line of code"
    deeds: list[Deed] = []
    for line in code:
        try:
            deeds += _extracted(line)
        except ValueError:  # a number like 1.2.3, on which the released agent stops
            return f"a number in {line!r:.80} is none"
    if not deeds:
        return "no action could be read from the code"
    return Said(tuple(deeds), "\n".join(code))


def _within(lines: list[str]) -> Iterator[str]:
    """Code behind other words of a line, up to the next call."""
    for line in lines:
        for module in _MODULES:
            if module in line:
                yield module + line.split(module)[1].strip()
                break


def _extracted(line: str) -> Iterator[Deed]:
    if line.startswith("computer."):
        status = _STATUS.search(line) if line.startswith("computer.terminate") else None
        if status:
            yield Deed("terminate", status=status[1])
        elif line.startswith("computer.triple_click") and (pair := _PLACE.search(line)):
            yield Deed("other", (float(pair[1]), float(pair[2])))
        return
    if pair := _PLACE.search(line):
        place = float(pair[1]), float(pair[2])
        kind = _pointed(line)
        if kind:
            yield Deed(kind, place)
    if message := _MESSAGE.search(line):
        yield Deed("write", text=message[1])
    elif (text := _written(line)) is not None:
        yield Deed("write", text=text)
    # What lies beyond the last bracket closes nothing, and would be searched again and again.
    if listed := _KEYS.search(line, 0, line.rfind("]") + 1):
        names = [(one[1] or one[2] or "") for one in _KEY.finditer(listed[1])]
        keys = _plain(name for name in names if name)
        yield Deed("hotkey" if "hotkey" in line else "press", keys=keys)
    if "keys=" not in line:
        yield from _pressed(line)
    if turn := _SCROLL.search(line):
        amount = int(turn[1])
        yield Deed("scroll", amount=amount, direction=(amount > 0) - (amount < 0))


def _written(line: str) -> str | None:
    """The text of the first `write` whose quotation mark is closed before a bracket."""
    closed = {quote: line.rfind(f"{quote})") for quote in "'\""}
    for found in _WRITTEN.finditer(line):
        if found.end() <= closed[found[1]]:
            return line[found.end() : line.index(f"{found[1]})", found.end())]
    return None


def _pressed(line: str) -> Iterator[Deed]:
    """Keys that stand for themselves, without `keys=`."""
    end = line.rfind(")") + 1
    if found := _HOTKEY.search(line, 0, end):
        keys = _plain(_QUOTED.findall(found[1]))
        if keys:
            yield Deed("hotkey", keys=keys)
    if found := _PRESS.search(line, 0, end):
        listed = found[1].strip()
        names = _QUOTED.findall(listed)
        keys = _plain(names if listed.startswith("[") else names[:1])
        if keys:
            yield Deed("hotkey" if len(keys) > 1 else "press", keys=keys)


def _plain(names: Iterable[str]) -> tuple[str, ...]:
    """Keys as they are compared: those of a Mac are those of others."""
    stripped = (name.strip() for name in names)
    return tuple("ctrl" if name.lower() in ("cmd", "command") else name for name in stripped)


def _pointed(line: str) -> DeedType | None:
    if "click" in line and "doubleClick" not in line and "rightClick" not in line:
        return "click"
    kinds: tuple[DeedType, ...] = ("moveTo", "doubleClick", "rightClick", "dragTo")
    return next((kind for kind in kinds if kind in line), None)


def _meant(text: str) -> Said | str:
    code = _code(text)
    if not code:
        return "there is no line of code"
    deeds = deeds_of_calls(read_code(code))
    if isinstance(deeds, str):
        return deeds
    return Said(deeds, code) if deeds else "the code does nothing"


def _code(text: str) -> str:
    """The blocks that hold calls, or the whole text where it is code, or the calls in it."""
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
