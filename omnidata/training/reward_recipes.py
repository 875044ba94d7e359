"""Rewards of published work, by name, and the terms that depend on places.

Each is computed from the profile's verdict: boxes and thresholds are the evaluation's, not those of
the release, so a reward agrees with the table. Tags and lists of candidates in the text are read as
in the release; but GUI-R1 runs the answer as Python to check its form, which is not done here.

Sources: lll6gg/UI-R1 at 2fe9bf0, `grpo_json_action_coord.py`; ritzz-ai/GUI-R1 at d43eea2,
`r1gui.py`; InfiXAI/InfiGUI-G1 at 22208e4, `reward_fn.py`; UI-S1 at 11cea57.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

from omnidata.actions import Action, Pair, Point
from omnidata.jsontext import is_number
from omnidata.metrics.texts import token_f1
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import answer_space
from omnidata.tasks.diagnosis import PLACED, off_by, way
from omnidata.types import Explanation, Step, Verdict

Term = Literal["format", "type", "exact", "rank", "distance"]
RecipeName = Literal["ui-r1", "gui-r1", "ui-s1", "aepo"]

FAR: Final = 250.0
"""From so many thousandths of the screen outside its target on, a place is worth nothing."""
_MOST_CANDIDATES: Final = 64
"""Candidates of an answer; a longer list is no answer, as every one of them is judged."""
_BETWEEN: Final = re.compile(r"</think>\s*+<answer>")
_NO_BLANK: Final = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer with the profile's verdict.

    Attributes:
        task: the benchmark.
        step: the step of the question.
        text: the answer.
        receipt: the size of the screenshot in the prompt.
        verdict: on the answer.
        exact: how right it is, in [0, 1].
        type: whether the type of action is right; None where the profile judges none.
        format: whether it has the form that the prompt asks for.
        explanation: of the verdict, if there is one.
        right: how right another action would be.
    """

    task: Asking
    step: Step
    text: str
    receipt: Mapping[str, Any]
    verdict: Verdict
    exact: float
    type: float | None
    format: float
    explanation: Explanation | None
    right: Callable[[Action], float]

    @property
    def read(self) -> bool:
        """Whether the answer could be parsed."""
        return self.verdict.outcome == "ok"

    @property
    def of_type(self) -> float:
        """Whether the type is right; without a rule for types, any parsed answer counts."""
        return float(self.read) if self.type is None else self.type

    @property
    def placed(self) -> bool:
        """Whether the step's right answer is a place."""
        if self.step.action is not None:
            return self.step.action.kind in PLACED
        speech = self.task.benchmark.speech
        return speech is not None and speech.question_kind(self.step) == "point"


# The recipes.


def ui_r1(judged: Judged) -> float:
    """Return the reward of UI-R1: type, place and form, one point each.

    The place counts 1 where the type is right and the profile calls the answer right; other actions
    than clicks are right by their type alone. The form is `<think>...</think><answer>...</answer>`
    and nothing around it.
    """
    place = judged.exact if judged.placed else judged.of_type
    return judged.of_type + judged.of_type * place + float(_has_tags(judged.text))


def gui_r1(judged: Judged) -> float:
    """Return the reward of GUI-R1: 0.8 for the action and 0.2 for the form.

    The action is right where its type is, and a click is right by the profile, or a text has a
    token F1 of at least 0.5, or a scroll or swipe goes the right way; other actions are right by
    their type alone. The form is that of UI-R1, around an answer that can be read.
    """
    tagged = _has_tags(judged.text) and judged.read
    return 0.8 * judged.of_type * _gui_r1_rest(judged) + 0.2 * float(tagged)


def _gui_r1_rest(judged: Judged) -> float:
    wanted = judged.step.action
    if judged.placed or wanted is None:
        return judged.exact
    if wanted.kind not in ("type", "scroll", "swipe"):
        return 1.0
    said = judged.task.history_action(judged.step, judged.text, judged.receipt)
    if said is None:  # it was read by the profile alone, which knows whether it is right
        return judged.exact
    if wanted.kind == "type":
        return float(token_f1(said.text or "", wanted.text or "") >= 0.5)
    ways = way(wanted), way(said)
    return judged.exact if None in ways else float(ways[0] == ways[1])


def ui_s1(judged: Judged) -> float:
    """Return UI-S1's reward: 0.1 for a thought, 0.9 times the best of read, type and right.

    An answer that was read counts 0.1, one of the right type 0.5, a right one 1.
    """
    action = max(0.1 * judged.read, 0.5 * (judged.type or 0.0), judged.exact)
    return 0.1 * float(_has_thought(judged.text)) + 0.9 * action


def aepo(judged: Judged) -> float:
    """Return the reward of AEPO: form plus rank of the first right candidate; -1 without the form.

    The form is a thought in `<think>` and behind it a list of places, `[{"point_2d": [x, y]}]`, of
    which no three lie on a line.
    """
    parts = re.fullmatch(r"<think>(.*?)</think>(.*)", judged.text, re.DOTALL)
    tags = judged.text.count("<think>"), judged.text.count("</think>")
    if parts is None or tags != (1, 1) or not parts[1].strip():
        return -1.0
    points = candidates(parts[2])
    if not points or collinear(points):
        return -1.0
    return 1.0 + _rank_reward(judged, points)


RECIPES: Final[Mapping[RecipeName, Callable[[Judged], float]]] = {
    "ui-r1": ui_r1,
    "gui-r1": gui_r1,
    "ui-s1": ui_s1,
    "aepo": aepo,
}


def _has_tags(text: str) -> bool:
    """Whether a text is `<think>...</think><answer>...</answer>`, read once however long it is."""
    if not (text.startswith("<think>") and text.endswith("</answer>")):
        return False
    between = _BETWEEN.search(text, len("<think>"))
    return between is not None and between.end() <= len(text) - len("</answer>")


def _has_thought(text: str) -> bool:
    """Whether a text has a thought between tags, looked for once however often they begin."""
    for name in ("think", "thinking", "thought"):
        begin = text.find(f"<{name}>")
        said = _NO_BLANK.search(text, begin + len(name) + 2) if begin >= 0 else None
        if said and text.rfind(f"</{name}>") > said.start():
            return True
    return False


# Candidates of one answer, the likeliest first.


def candidates(answer: str) -> list[Pair] | None:
    """Return the places of a list `[{"point_2d": [x, y]}, ...]`; None if there is no such list.

    Examples:
        >>> candidates('```json[{"point_2d": [3, 4]}, {"point_2d": [5, 6.5]}]```')
        [(3, 4), (5, 6.5)]
        >>> candidates('[{"point_2d": [3]}]')
    """
    begin = answer.find("[")
    try:
        found = json.JSONDecoder().raw_decode(answer, begin)[0] if begin >= 0 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or len(found) > _MOST_CANDIDATES:
        return None
    points: list[Pair] = []
    for item in found:
        point = item.get("point_2d") if isinstance(item, dict) else None
        if not (isinstance(point, list) and len(point) == 2 and all(map(is_number, point))):
            return None
        if not all(abs(side) < 1e9 for side in point):
            return None
        points.append((point[0], point[1]))
    return points


def collinear(points: Sequence[Pair]) -> bool:
    """Return whether three of the points are on a line.

    Examples:
        >>> collinear([(0, 0), (5, 1), (2, 2), (9, 9)])
        True
        >>> collinear([(0, 0), (2, 2)])
        False
    """
    return any(
        math.isclose((b[1] - a[1]) * (c[0] - a[0]), (c[1] - a[1]) * (b[0] - a[0]))
        for a, b, c in combinations(points, 3)
    )


def rank_term(judged: Judged) -> float:
    """Return 1 / sqrt(n k) if the k-th of n candidates is the first right one, else -1 / n.

    An answer that is no list of candidates is one candidate; what cannot be read, and three places
    on one line, are -1.
    """
    points = candidates(judged.text.rpartition("</think>")[2])
    if not points:
        return 1.0 if judged.exact >= 1 else -1.0
    return -1.0 if collinear(points) else _rank_reward(judged, points)


def _rank_reward(judged: Judged, points: Sequence[Pair]) -> float:
    space = answer_space(judged.task.options) or "px"
    for rank, (x, y) in enumerate(points, 1):
        tap = Action("tap", (Point(x, y, space),))
        if judged.right(tap) >= 1:
            return 1.0 / math.sqrt(len(points) * rank)
    return -1.0 / len(points)


# Places near the target.


def distance_term(judged: Judged) -> float | None:
    """Return 1 inside the target, less outside in proportion to the distance, 0 from `FAR` on.

    The distance is to the edge of the nearest target, or to a target point, in thousandths of the
    screen: a part of the width across, of the height down. A right answer is worth 1, wherever it
    points. No paper's reward is this one.

    Returns:
        None for a step that is right at no place, or on a screen of unknown size.
    """
    explanation = judged.explanation
    if explanation is None or min(judged.step.screen) < 1:
        return None
    for places in explanation.overlays.values():
        if not places.target or places.target_end:
            continue
        if judged.exact >= 1:
            return 1.0
        if places.answer is None or judged.type == 0:
            return 0.0
        width, height = judged.step.screen
        x, y = places.answer.x, places.answer.y
        gaps = (off_by(x, y, region) for region in places.target)
        away = min(math.hypot(1000 * dx / width, 1000 * dy / height) for dx, dy in gaps)
        return max(0.0, 1.0 - away / FAR)
    return None


TERM_VALUES: Final[Mapping[Term, Callable[[Judged], float | None]]] = {
    "format": lambda judged: judged.format,
    "type": lambda judged: judged.type,
    "exact": lambda judged: judged.exact,
    "rank": rank_term,
    "distance": distance_term,
}
"""The value of each term; None where the profile or the step has none."""
