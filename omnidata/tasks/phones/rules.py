"""Rules of phones: an evaluator compares the answer's action with the expert's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omnidata.actions import Action, Screen, Space
from omnidata.jsontext import is_integer
from omnidata.tasks.benchmark import ParsedAnswer, Rule, Values
from omnidata.tasks.phones.actions import Truth
from omnidata.tasks.phones.answers import Form
from omnidata.tasks.totals import EpisodeTotals
from omnidata.types import Step

TruthOf = Callable[[Mapping[str, Any], Screen], Truth | None]
Matching = Callable[[Truth, Action], tuple[bool, bool] | None]
"""Type match and exact match; None for a step that the rule's source leaves out."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A released or corrected evaluator.

    Attributes:
        match: compares an answer, its places from 0 to 1, with the truth.
        reach: how far from the expert's a tap may be, in thousandths of the screen; 0 where boxes
            alone decide.
        goal_progress: which of the two is its GP.
        as_released: the form of answers that is read as its own released code does; others are read
            as they are meant.
        misses: the reason why the rule calls a well-placed tap wrong; empty without such a quirk.
        source, leaves_out: as of `Rule`.
        truth: reads the expert's action and the elements from a row, for a rule that looks at other
            elements than the benchmark's; None for the benchmark's own.
    """

    match: Matching
    reach: int = 0
    goal_progress: Literal["GP_ratio", "GP_prefix"] = "GP_prefix"
    as_released: Form | None = None
    misses: str = ""
    source: str = ""
    leaves_out: str = ""
    truth: TruthOf | None = None


class PhoneTotals(EpisodeTotals):
    """TM, EM, SR and GP of episodes whose rows may state their lengths."""

    def __init__(
        self, by: Mapping[str, Sequence[str]], goal_progress: Literal["GP_ratio", "GP_prefix"]
    ) -> None:
        super().__init__(by=by)
        self.goal_progress = goal_progress

    def _stated_length(self, value: Any) -> int | None:
        if isinstance(value, list):
            value = value[0] if value else None
        return value if is_integer(value) else None


class PhoneRule(Rule[Action]):
    """An evaluator over the steps of a phone benchmark."""

    def __init__(
        self,
        name: str,
        evaluator: Evaluator,
        truth: TruthOf,
        by: Mapping[str, Sequence[str]],
        space: Space,
    ) -> None:
        self.name = name
        self.source, self.leaves_out = evaluator.source, evaluator.leaves_out
        self.totals = PhoneTotals(by, evaluator.goal_progress)
        self._match, self._truth, self._space = evaluator.match, evaluator.truth or truth, space

    def truth_of(self, step: Step) -> Truth | None:
        """Return the expert's action and the elements; None if unreadable."""
        return self._truth(step.source, step.screen)

    def judge(self, step: Step, parsed: ParsedAnswer[Action] | None) -> Values:
        """Return type match, exact match, and whether the answer is exactly as prompted."""
        exact = parsed is not None and parsed.is_exact
        truth = self.truth_of(step)
        unplaced = self._space == "px" and min(step.screen) < 1
        if truth is None or (unplaced and truth.action.start):
            return None, None, exact
        # Steps that the rule's source does not judge are left out for all models: without an
        # answer, the expert's own action shows whether this is one.
        found = self._match(truth, parsed.value if parsed else truth.action)
        if found is None:
            return None, None, exact
        return (*found, exact) if parsed else (False, False, exact)
