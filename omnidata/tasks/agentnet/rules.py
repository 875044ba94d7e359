"""AgentNetBench's rule for a step (OpenCUA, `evaluation/agentnetbench/eval.py`).

The score of a step is between 0 and 1: the mean over the types of its ground truth actions, and of
a type the mean over its actions, which are compared with the predicted ones position by position.
Of the ground truth and its alternatives the best counts. A write and the Enter after it are one.

"released" is the evaluator as first published, with these faults:

* a scroll is right whichever way it goes, and however far;
* keys are compared as sets: two presses of Down are one, "v ctrl" is "ctrl v";
* predicted actions beyond the ground truth cost nothing;
* a missing Enter was to cost a tenth of a text's likeness, but texts are stripped before it is
  looked for;
* middle clicks, horizontal scrolls and waits are judged by no rule: alone they score 0, and beside
  others they are left out; an end that is not the first action too.

"fixed" corrects these: the first three as the authors did later (their commit 60da8b9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from omnidata.actions import Action, Point, Space
from omnidata.metrics.row_tables import by_group
from omnidata.tasks.agentnet.actions import POINTED, boxes_of, place_of, type_of
from omnidata.tasks.agentnet.answers import Response, Version
from omnidata.tasks.agentnet.load import truths_of, usable_truths
from omnidata.tasks.benchmark import ParsedAnswer, Rule, Values
from omnidata.tasks.totals import Column, RowTotals
from omnidata.types import Step, Verdict, VerdictColumns

KINDS: Final = ("coordinate", "content", "function")
"""The needs of a step's first action: a place or the wheel, something to type, or nothing."""

_CONTENT: Final = frozenset({"write", "press", "hotkey"})
_TURNED: Final = frozenset({"scroll", "hscroll"})


class Scores(RowTotals):
    """The mean score of steps, also by the need of their first actions."""

    def __init__(self) -> None:
        super().__init__([Column("score")], by={"form": (), "part": (), "completed": ()})

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of `RowTotals`, with the axis `kind`."""
        found = super().total(steps, rows)
        judged = ~np.isnan(rows.values["score"])
        found["by"]["kind"] = by_group(
            lambda mask: self._table(steps, rows, mask & judged),
            [_kind_of(step) for step in steps],
            KINDS,
        )
        return found


def _kind_of(step: Step) -> str | None:
    truths = usable_truths(step)
    if not truths:
        return None
    first = type_of(truths[0][0])
    if first in POINTED or first in _TURNED:
        return "coordinate"
    return "content" if first in _CONTENT else "function"


class StepScore(Rule[Response]):
    """A step's score, from 0 to 1."""

    totals = Scores()

    def __init__(self, version: Version, space: Space) -> None:
        released = version == "released"
        self.name = "agentnetbench" if released else "agentnetbench-fixed"
        self.source = "AgentNetBench, OpenCUA (Wang et al., 2025)"
        if not released:
            self.source += ", with its faults corrected"
        self.version: Version = version
        self._space = space

    def judge(self, step: Step, parsed: ParsedAnswer[Response] | None) -> Values | Verdict:
        """Return the score; a step without a usable truth or screen has none."""
        try:
            truths = truths_of(step.source)
        except ValueError as error:
            return Verdict("ok", (None,), None, str(error))
        places = (place_of(action) for truth in truths for action in truth)
        if self._space == "px" and min(step.screen) < 1 and any(places):
            return Verdict("ok", (None,), None, "the size of the screen is unknown")
        return (judge(truths, parsed.value.actions, self.version) if parsed else 0.0,)


REACH: Final = 0.01 * 2**0.5
"""Largest distance of a right point from the place of the ground truth, in shares of the screen."""
_ALPHA: Final = 120
_FAR: Final = 10
"""From this distance on the score of a place is 0; its square may be larger than any float."""
_ALIKE: Final = 0.8
_WITHOUT_ENTER: Final = 0.9
_ENTER: Final = (["enter"], ["return"])
_UNJUDGED: Final = frozenset({"middleClick", "hscroll", "wait", "terminate"})


def judge(
    alternatives: Sequence[Sequence[Action]], said: Sequence[Action], version: Version
) -> float:
    """Return the score of a step, from 0 to 1.

    Args:
        alternatives: the ground truth and other right answers; at least one.
        said: the predicted actions.
        version: of the evaluator.

    Examples:
        >>> truth, beside = (Action("tap", (Point(x, 0.5, "rel"),)) for x in (0.5, 0.52))
        >>> round(judge([[truth]], [beside], "released"), 3)
        0.495
    """
    return max(_score(truth, said, version) for truth in alternatives)


def _score(truth: Sequence[Action], said: Sequence[Action], version: Version) -> float:
    if not truth or not said:
        return 0.0
    truth = _merge_enter(truth, ("press", "hotkey"))
    said = _merge_enter(said, ("press",) if version == "released" else ("press", "hotkey"))
    if truth[0].kind == "done":
        score = float(said[0].kind == "done" and said[0].words == truth[0].words)
    elif type_of(said[0]) not in map(type_of, truth):
        score = 0.0
    else:
        score = _mean(truth, said, version)
    surplus = version == "fixed" and len(said) > len(truth)
    return score * len(truth) / len(said) if surplus else score


def _merge_enter(actions: Sequence[Action], pressed: Sequence[str]) -> list[Action]:
    """Join a write and the Enter after it to one write that ends with a line break."""
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


def _mean(truth: Sequence[Action], said: Sequence[Action], version: Version) -> float:
    """Return the mean over the types of the truth, of a type the mean over its actions."""
    scores: dict[str, list[float]] = {}
    missed: set[str] = set()
    for action, own in zip_longest(truth, said[: len(truth)]):
        name = type_of(action)
        score = 0.0
        if own is None or type_of(own) != name:
            missed.add(name)
        elif version == "fixed" or name not in _UNJUDGED:
            score = _one(action, own, version)
        scores.setdefault(name, []).append(score)
    if version == "released":  # a type without a rule counts only if one of its actions was missed
        scores = {
            name: own for name, own in scores.items() if name not in _UNJUDGED or name in missed
        }
    return sum(sum(own) / len(own) for own in scores.values()) / len(scores) if scores else 0.0


def _one(action: Action, said: Action, version: Version) -> float:
    name = type_of(action)
    if name in POINTED:
        return _point_score(action, place_of(said))
    if name == "write":
        return _text_score(action.text or "", said.text or "", version)
    if name in ("press", "hotkey"):
        keys, others = ([key.lower() for key in one.keys] for one in (action, said))
        return float(set(keys) == set(others) if version == "released" else keys == others)
    if name in ("scroll", "hscroll"):
        return 1.0 if version == "released" else _turn_score(action, said)
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


def _text_score(text: str, said: str, version: Version) -> float:
    from rapidfuzz.distance import Levenshtein

    blank = None if version == "released" else " \t"
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
