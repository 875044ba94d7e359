"""AgentNetBench's rule for a step (OpenCUA, `evaluation/agentnetbench/eval.py`).

The score of a step is between 0 and 1: the mean over the types of its ground truth actions, and of
a type the mean over its actions, which are compared with the predicted ones position by position.
Of the ground truth and its alternatives the best counts. A write and the Enter after it are one.

"released" is the evaluator as first published. What is wrong with it:

* a scroll is right whichever way it goes, and however far;
* keys are compared as sets: two presses of Down are one, "v ctrl" is "ctrl v";
* what is predicted beyond the ground truth costs nothing;
* a missing Enter was to cost a tenth of a text's likeness, but texts are stripped before it is
  looked for;
* middle clicks, horizontal scrolls and waits are judged by no rule: alone they score 0, and beside
  others they are left out; an end that is not the first action too.

"fixed" mends these: the first three as the authors did later (their commit 60da8b9).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from omnidata.actions import Point, Space, convert
from omnidata.tasks.agentnet.actions import POINTED, Deed, DeedType, Rect, deeds_of_calls
from omnidata.tasks.coordinates import resizing
from omnidata.tasks.desktops import Code, read_code
from omnidata.types import Step

Rule = Literal["released", "fixed"]

REACH: Final = 0.01 * 2**0.5
"""How far from the place of the ground truth a point is still right, in shares of the screen."""
_ALPHA: Final = 120
_FAR: Final = 10
"""From here on the score of a place is 0 to the last digit; squares may be beyond any float."""
_ALIKE: Final = 0.8
_WITHOUT_ENTER: Final = 0.9
_ENTER: Final = frozenset({"enter", "return"})
_UNJUDGED: Final = frozenset({"middleClick", "hscroll", "wait", "terminate"})


def judge(alternatives: Sequence[Sequence[Deed]], said: Sequence[Deed], rule: Rule) -> float:
    """The score of a step.

    Args:
        alternatives: the ground truth, and what is right as well; at least one.
        said: what was predicted.
        rule: whose.

    Examples:
        >>> truth = [Deed("click", (0.5, 0.5))]
        >>> judge([truth], [Deed("click", (0.5, 0.5))], "released")
        1.0
        >>> round(judge([truth], [Deed("click", (0.52, 0.5))], "released"), 3)
        0.495
    """
    return max(_score(truth, said, rule) for truth in alternatives)


def _score(truth: Sequence[Deed], said: Sequence[Deed], rule: Rule) -> float:
    if not truth or not said:
        return 0.0
    truth = _merged(truth, ("press", "hotkey"))
    said = _merged(said, ("press",) if rule == "released" else ("press", "hotkey"))
    if truth[0].type == "terminate":
        score = float(said[0].type == "terminate" and said[0].status == truth[0].status)
    elif said[0].type not in [deed.type for deed in truth]:
        score = 0.0
    else:
        score = _mean(truth, said, rule)
    surplus = rule == "fixed" and len(said) > len(truth)
    return score * len(truth) / len(said) if surplus else score


def _merged(deeds: Sequence[Deed], pressed: Sequence[str]) -> list[Deed]:
    """A write with the Enter that follows it as one, whose text ends with a line break."""
    found: list[Deed] = []
    just_written = False
    for deed in deeds:
        enter = deed.type in pressed and len(deed.keys) == 1 and deed.keys[0].lower() in _ENTER
        if just_written and enter:
            found[-1] = replace(found[-1], text=found[-1].text + "\n")
            just_written = False
        else:
            found.append(deed)
            just_written = deed.type == "write"
    return found


def _mean(truth: Sequence[Deed], said: Sequence[Deed], rule: Rule) -> float:
    scores: dict[str, list[float]] = {}
    unruled = set()
    for number, deed in enumerate(truth):
        own = scores.setdefault(deed.type, [])
        if number >= len(said) or said[number].type != deed.type:
            own.append(0.0)
        elif rule == "released" and deed.type in _UNJUDGED:
            own.append(0.0)
            unruled.add(deed.type)
        else:
            own.append(_one(deed, said[number], rule))
    # A type without a rule is in the released mean only where one of its actions was missed.
    for kind in unruled:
        if all(
            number < len(said) and said[number].type == kind
            for number, deed in enumerate(truth)
            if deed.type == kind
        ):
            del scores[kind]
    return sum(sum(own) / len(own) for own in scores.values()) / len(scores) if scores else 0.0


def _one(deed: Deed, said: Deed, rule: Rule) -> float:
    """The score of an action of the right type."""
    if deed.type in POINTED:
        return _pointed(deed, said.place)
    if deed.type == "write":
        return _written(deed.text, said.text, rule)
    if deed.type in ("press", "hotkey"):
        keys, others = ([key.lower() for key in one.keys] for one in (deed, said))
        return float(set(keys) == set(others) if rule == "released" else keys == others)
    if deed.type in ("scroll", "hscroll"):
        return 1.0 if rule == "released" else _turned(deed, said)
    return float(deed.status == said.status)


def _pointed(deed: Deed, place: tuple[float, float] | None) -> float:
    if place is None or deed.place is None:
        return 0.0
    if any(_holds(box, place) for box in deed.boxes):
        return 1.0
    x, y = place[0] - deed.place[0], place[1] - deed.place[1]
    if max(abs(x), abs(y)) > _FAR:
        return 0.0
    distance = float((x**2 + y**2) ** 0.5)
    return 1.0 if distance <= REACH else math.exp(-_ALPHA * (distance - REACH))


def _holds(box: Rect, place: tuple[float, float]) -> bool:
    left, top, width, height = box
    return left <= place[0] <= left + width and top <= place[1] <= top + height


def _written(text: str, said: str, rule: Rule) -> float:
    from rapidfuzz.distance import Levenshtein

    blank = None if rule == "released" else " \t"
    text, said = text.lower().strip(blank), said.lower().strip(blank)
    differ = text.endswith("\n") != said.endswith("\n")
    text, said = text.strip(), said.strip()
    longest = max(len(text), len(said))
    if not longest:
        return 1.0
    alike = 1.0 - Levenshtein.distance(said, text) / longest
    if differ:
        alike *= _WITHOUT_ENTER
    return 1.0 if alike >= _ALIKE else alike / _ALIKE


def _turned(deed: Deed, said: Deed) -> float:
    """The ratio of the shorter turn to the longer one; 0 for the opposite direction."""
    if deed.direction and deed.direction != said.direction:
        return 0.0
    if deed.amount is None or said.amount is None:
        return 1.0
    shorter, longer = sorted((abs(deed.amount), abs(said.amount)))
    return shorter / longer if longer else 1.0


# A model's text as AgentNet's actions, as OpenCUA's agent reads it and as it is meant.
#
# The released agent (`OpenCUA.parse_response`, `extract_actions`) reads lines with expressions that
# know few spellings: places as `x=.., y=..`; texts as `message='..'`, up to the next quotation mark
# of either kind, or as `write('..')`; keys as `keys=[..]`, as the texts within `hotkey(..)`, or as
# those of `press([..])`, of which two or more make a hotkey, and the first of `press(..)`.
# `pyautogui.click(0.5, 0.5)` says nothing to it; `triple_click` is a type that no ground truth has.

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
        kind = _read_point(line)
        if kind:
            yield Deed(kind, place)
    if message := _MESSAGE.search(line):
        yield Deed("write", text=message[1])
    elif (text := _read_text(line)) is not None:
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


def _read_text(line: str) -> str | None:
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


def _read_point(line: str) -> DeedType | None:
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


def relative(
    deeds: Sequence[Deed], space: Space, step: Step, receipt: Mapping[str, Any] | None
) -> list[Deed]:
    """What an answer does, with its places in shares of the screen.

    Args:
        deeds: as a model wrote them.
        space: their unit.
        step: what it was asked about; without a size of its screen, pixels stay as they are.
        receipt: of the answer; it tells how large the picture was sent.

    Raises:
        PredictionError: the receipt is none that omnidata writes.
    """
    if space == "rel" or (space == "px" and min(step.screen) < 1):
        return list(deeds)
    resized = resizing(receipt, where=step.sample_id) if space == "px" else None
    screen = step.screen if space == "px" else (1, 1)
    found = []
    for deed in deeds:
        if deed.place is not None:
            pair = resized.to_screen(deed.place) if resized else deed.place
            point = convert(Point(pair[0], pair[1], space), "rel", screen)
            deed = replace(deed, place=(point.x, point.y))
        found.append(deed)
    return found
