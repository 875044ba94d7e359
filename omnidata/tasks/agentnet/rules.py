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

"fixed" corrects these: the first three as the authors did later (their commit 60da8b9).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from msgspec.structs import replace

from omnidata.actions import Action, Point, Region, Space, convert
from omnidata.dialects.pyautogui import Call, Code, read_code
from omnidata.tasks.agentnet.actions import (
    POINTED,
    ActionType,
    actions_of_calls,
    boxes_of,
    place_of,
    point_action,
    scroll_action,
    terminate_action,
    type_of,
)
from omnidata.tasks.coordinates import resizing
from omnidata.types import Step

Rule = Literal["released", "fixed"]

REACH: Final = 0.01 * 2**0.5
"""How far from the place of the ground truth a point is still right, in shares of the screen."""
_ALPHA: Final = 120
_FAR: Final = 10
"""From here on the score of a place is 0 to the last digit; squares may be beyond any float."""
_ALIKE: Final = 0.8
_WITHOUT_ENTER: Final = 0.9
_ENTER: Final = (["enter"], ["return"])
_UNJUDGED: Final = frozenset({"middleClick", "hscroll", "wait", "terminate"})


def judge(alternatives: Sequence[Sequence[Action]], said: Sequence[Action], rule: Rule) -> float:
    """Return the score of a step, from 0 to 1.

    Args:
        alternatives: the ground truth and other right answers; at least one.
        said: the predicted actions.
        rule: "released" or "fixed".

    Examples:
        >>> truth = [point_action("click", Point(0.5, 0.5, "rel"))]
        >>> judge([truth], truth, "released")
        1.0
        >>> round(judge([truth], [point_action("click", Point(0.52, 0.5, "rel"))], "released"), 3)
        0.495
    """
    return max(_score(truth, said, rule) for truth in alternatives)


def _score(truth: Sequence[Action], said: Sequence[Action], rule: Rule) -> float:
    if not truth or not said:
        return 0.0
    truth = _merge_enter(truth, ("press", "hotkey"))
    said = _merge_enter(said, ("press",) if rule == "released" else ("press", "hotkey"))
    if truth[0].kind == "done":
        score = float(said[0].kind == "done" and said[0].words == truth[0].words)
    elif type_of(said[0]) not in map(type_of, truth):
        score = 0.0
    else:
        score = _mean(truth, said, rule)
    surplus = rule == "fixed" and len(said) > len(truth)
    return score * len(truth) / len(said) if surplus else score


def _merge_enter(actions: Sequence[Action], pressed: Sequence[str]) -> list[Action]:
    """A write and the Enter after it become one write that ends with a line break."""
    found: list[Action] = []
    just_written = False
    for action in actions:
        enter = type_of(action) in pressed and [key.lower() for key in action.keys] in _ENTER
        if just_written and enter:
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n")
            just_written = False
        else:
            found.append(action)
            just_written = action.kind == "type"
    return found


def _mean(truth: Sequence[Action], said: Sequence[Action], rule: Rule) -> float:
    missing = [""] * len(truth)
    types, given = [type_of(one) for one in truth], [*map(type_of, said), *missing]
    scores: dict[str, list[float]] = {}
    unruled = set()
    for number, (name, action) in enumerate(zip(types, truth, strict=True)):
        own = scores.setdefault(name, [])
        if given[number] != name:
            own.append(0.0)
        elif rule == "released" and name in _UNJUDGED:
            own.append(0.0)
            unruled.add(name)
        else:
            own.append(_one(action, said[number], rule))
    # A type without a rule is in the released mean only where one of its actions was missed.
    for kind in unruled:
        if all(given[number] == kind for number, name in enumerate(types) if name == kind):
            del scores[kind]
    return sum(sum(own) / len(own) for own in scores.values()) / len(scores) if scores else 0.0


def _one(action: Action, said: Action, rule: Rule) -> float:
    name = type_of(action)
    if name in POINTED:
        return _point_score(action, place_of(said))
    if name == "write":
        return _text_score(action.text or "", said.text or "", rule)
    if name in ("press", "hotkey"):
        keys, others = ([key.lower() for key in one.keys] for one in (action, said))
        return float(set(keys) == set(others) if rule == "released" else keys == others)
    if name in ("scroll", "hscroll"):
        return 1.0 if rule == "released" else _turn_score(action, said)
    return float(action.words == said.words)


def _point_score(action: Action, said: Point | None) -> float:
    place = place_of(action)
    if said is None or place is None:
        return 0.0
    boxes = boxes_of(action)
    if any(b.left <= said.x <= b.right and b.top <= said.y <= b.bottom for b in boxes):
        return 1.0
    x, y = said.x - place.x, said.y - place.y
    if max(abs(x), abs(y)) > _FAR:
        return 0.0
    distance = float((x**2 + y**2) ** 0.5)
    return 1.0 if distance <= REACH else math.exp(-_ALPHA * (distance - REACH))


def _text_score(text: str, said: str, rule: Rule) -> float:
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


def _turn_score(action: Action, said: Action) -> float:
    if action.direction and action.direction != said.direction:
        return 0.0
    if action.amount is None or said.amount is None:
        return 1.0
    shorter, longer = sorted((action.amount, said.amount))
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
class ParsedResponse:
    """A read answer.

    Attributes:
        actions: in order.
        code: the lines of code in it.
        calls: the calls of the code, if it was read as Python.
    """

    actions: tuple[Action, ...]
    code: str
    calls: tuple[Call | Code, ...] = ()


def parse(text: str, rule: Rule, *, space: Space = "rel") -> ParsedResponse | str:
    """Read an answer; return the reason as a text if it has no actions.

    Args:
        text: the answer, unchanged.
        rule: "released" reads as the released agent does.
        space: the unit of places, which the prompt asks for.

    Examples:
        >>> said = "I click. pyautogui.click(x=0.5, y=0.25)"
        >>> [one.start for one in parse(said, "released").actions]
        [(Point(x=0.5, y=0.25, space='rel'),)]
        >>> parse("pyautogui.click(0.5, 0.25)", "released")
        'no action could be read from the code'
        >>> parse("pyautogui.click(0.5, 0.25)", "fixed").actions[0].start
        (Point(x=0.5, y=0.25, space='rel'),)
    """
    if len(text) > _LONGEST:
        return f"the text is longer than {_LONGEST} characters"
    return _read_released(text, space) if rule == "released" else _read_lenient(text, space)


def _read_released(text: str, space: Space) -> ParsedResponse | str:
    lines = [line.strip() for line in text.split("\n")]
    code = [line for line in lines if line.startswith(_MODULES)] or list(_within(lines))
    if not code:
        return "there is no line of code"
    actions: list[Action] = []
    for line in code:
        try:
            actions += _extract(line, space)
        except ValueError:  # a number like 1.2.3, on which the released agent stops
            return f"a number in {line!r:.80} is none"
    if not actions:
        return "no action could be read from the code"
    return ParsedResponse(tuple(actions), "\n".join(code))


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
    # What lies beyond the last bracket closes nothing, and would be searched again and again.
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
    """Mac keys count as their counterparts."""
    stripped = (name.strip() for name in names)
    return tuple("ctrl" if name.lower() in ("cmd", "command") else name for name in stripped)


def _read_point(line: str) -> ActionType | None:
    if "click" in line and "doubleClick" not in line and "rightClick" not in line:
        return "click"
    kinds: tuple[ActionType, ...] = ("moveTo", "doubleClick", "rightClick", "dragTo")
    return next((kind for kind in kinds if kind in line), None)


def _read_lenient(text: str, space: Space) -> ParsedResponse | str:
    code = _code(text)
    if not code:
        return "there is no line of code"
    calls = read_code(code)
    actions = actions_of_calls(calls, space=space)
    if isinstance(actions, str):
        return actions
    return ParsedResponse(actions, code, calls) if actions else "the code does nothing"


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


def relative(
    actions: Sequence[Action], space: Space, step: Step, receipt: Mapping[str, Any] | None
) -> list[Action]:
    """Return the actions of an answer with places in shares of the screen.

    Args:
        actions: as a model wrote them.
        space: the unit of their places.
        step: the step of the question; if the size of its screen is unknown, pixels stay unchanged.
        receipt: of the answer; it has the size of the picture as sent.

    Raises:
        PredictionError: omnidata cannot read the receipt.
    """
    if space == "rel" or (space == "px" and min(step.screen) < 1):
        return list(actions)
    resized = resizing(receipt, step.screen, where=step.sample_id) if space == "px" else None
    screen = step.screen if space == "px" else (1, 1)

    def shares(regions: tuple[Region, ...]) -> tuple[Point, ...]:
        pairs = ((one.x, one.y) for one in regions if isinstance(one, Point))
        moved = map(resized.to_screen, pairs) if resized else pairs
        return tuple(convert(Point(*pair, space), "rel", screen) for pair in moved)

    return [replace(one, start=shares(one.start), end=shares(one.end)) for one in actions]
