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
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from omnidata.agentnet import POINTED, Deed, Rect

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
