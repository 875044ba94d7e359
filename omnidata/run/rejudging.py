"""Scores with errata, beside those without: only the steps that are corrected are judged again."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from omnidata.errors import RunError
from omnidata.loaders.steps import Positions
from omnidata.plugins import blaming
from omnidata.predictions import Prediction
from omnidata.registry import plugin_origin
from omnidata.run.errata import Correction, Errata, Targets, correct_step, corrections_of
from omnidata.run.run_files import Run
from omnidata.tasks.asking import Asking
from omnidata.tasks.marks import RIGHT
from omnidata.tasks.profile import Profile
from omnidata.types import OUTCOMES, Outcome, Step, VerdictColumns

_SHOWN: Final = ("overall", "ci95", "by", "counts")


class _Judged(NamedTuple):
    outcome: Outcome
    values: tuple[float | None, ...]


def _as_number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


@dataclass(slots=True)
class _Effect:
    """The effect of one errata on the verdicts that stand before it."""

    steps: int = 0
    verdicts_changed: int = 0
    now_right: int = 0
    now_wrong: int = 0
    dropped: int = 0


class Rejudging:
    """Judges the answers to corrected steps again.

    Args:
        task: the benchmark.
        profile: judges the answers.
        steps: those that are scored.
        errata: apply in order.
        known: the ids of all steps of the data; None if `steps` are all.

    Attributes:
        numbers: the indices of the corrected steps.

    Raises:
        DataError: the benchmark has no such action as a correction says.
        UsageError: the profile does not judge by a corrected target.
    """

    def __init__(
        self,
        task: Asking,
        profile: Profile,
        steps: Sequence[Step],
        errata: Sequence[Errata],
        known: Container[str] | None = None,
    ) -> None:
        self._task, self._profile, self._errata = task, profile, errata
        self._corrections: dict[int, list[list[Correction]]] = {}
        self._answers: dict[int, Prediction] = {}
        self._steps, self._right = steps, profile.step_metric[1]
        places, targets = Positions(steps), Targets(task, profile.name)
        found = corrections_of(errata)
        with blaming(plugin_origin(task.name)):
            for sample_id, corrections in found.items():
                if (number := places.get(sample_id)) is not None:
                    self._corrections[number] = corrections
                    targets.check(steps[number], [one for each in corrections for one in each])
        ids = places if known is None else known
        unknown = {one for one in found if one not in places and one not in ids}
        self._unknown = [len(unknown & each.by_sample().keys()) for each in errata]

    @property
    def numbers(self) -> Collection[int]:
        """The indices of the corrected steps."""
        return self._corrections.keys()

    def keep(self, number: int, answer: Prediction) -> None:
        """Keep the answer to a step if the step is corrected."""
        if number in self._corrections:
            self._answers[number] = answer

    def results(self, rows: VerdictColumns) -> dict[str, Any]:
        """Return the entries of `results.json`: `errata`, the effect of each, and `with_errata`.

        Args:
            rows: the verdicts without errata, aligned with the steps.
        """
        corrected, effects = self.correct(rows)
        total = self._profile.total(self._steps, corrected)
        return {
            "errata": effects,
            "with_errata": {key: total[key] for key in _SHOWN if key in total},
        }

    def correct(self, rows: VerdictColumns) -> tuple[VerdictColumns, list[dict[str, Any]]]:
        """Return the verdicts with errata, and the effect of each errata.

        Args:
            rows: the verdicts without errata, aligned with the steps.
        """
        effects = [_Effect() for _ in self._errata]
        outcomes = rows.outcomes.copy()
        values = {name: np.array(rows.values[name]) for name in self._profile.values}
        with blaming(plugin_origin(self._task.name)):
            for number, corrections in self._corrections.items():
                before = _Judged(
                    OUTCOMES[outcomes[number]],
                    tuple(_as_number(column[number]) for column in values.values()),
                )
                after = self._apply(number, corrections, before, effects)
                outcomes[number] = OUTCOMES.index(after.outcome)
                for column, value in zip(values.values(), after.values, strict=True):
                    column[number] = np.nan if value is None else value
        about = [
            {"name": one.name, "version": one.version, "hash": one.hash}
            | asdict(effect)
            | ({"unknown": unknown} if unknown else {})
            for one, effect, unknown in zip(self._errata, effects, self._unknown, strict=True)
        ]
        return VerdictColumns(outcomes, values, rows.whole), about

    def _apply(
        self,
        number: int,
        corrections: Sequence[Sequence[Correction]],
        before: _Judged,
        effects: Sequence[_Effect],
    ) -> _Judged:
        applied: list[Correction] = []
        was_dropped = False
        for own, effect in zip(corrections, effects, strict=True):
            if not own:
                continue
            applied += own
            effect.steps += 1
            corrected = correct_step(self._task.benchmark, self._steps[number], applied)
            if corrected:
                after = max((self._judge(step, number) for step in corrected), key=self._rank)
                effect.verdicts_changed += after != before
                effect.now_right += self._is_right(after) and not self._is_right(before)
                effect.now_wrong += self._is_right(before) and not self._is_right(after)
            else:
                after = _Judged(before.outcome, (None,) * len(before.values))
                effect.dropped += not was_dropped
            before, was_dropped = after, not corrected
        return before

    def _judge(self, step: Step, number: int) -> _Judged:
        answer = self._answers.get(number)
        if answer is None:
            verdict = self._profile.without_answer(step, "missing")
        else:
            verdict = self._profile.judge(
                step, answer.output or "", answer.receipt, answer.delivery
            )
        return _Judged(verdict.outcome, tuple(map(_as_number, verdict.values)))

    def _rank(self, judged: _Judged) -> tuple[float, float]:
        values = dict(zip(self._profile.values, judged.values, strict=True))
        right, kind = values.get(self._right), values.get("type_match")
        # Some profiles judge nothing but the kind of actions without a place or text.
        first = kind if right is None else right
        return (-1.0 if first is None else first, -1.0 if kind is None else kind)

    def _is_right(self, judged: _Judged) -> bool:
        value = dict(zip(self._profile.values, judged.values, strict=True))[self._right]
        return value is not None and value > RIGHT


def open_rejudging(
    run: Run,
    steps: Sequence[Step],
    errata: Sequence[Errata],
    known: Container[str] | None = None,
) -> Rejudging:
    """Return what judges the answers of a scored run again.

    Args:
        run: scored, with its answers.
        steps: some of the run.
        errata: apply in order.
        known: as of `Rejudging`.

    Raises:
        RunError: the folder has no answers, or its scores are not of a model's texts.
        DataError, UsageError: as `Rejudging`.
    """
    if run.offline_scorer:
        raise RunError(
            "records of an environment are judged without labels",
            where=str(run.path),
            expected="a run of a model's answers",
            remedy="drop --errata",
        )
    made = Rejudging(run.asking, run.asking.profiles[run.profile], steps, errata, known)
    for number in made.numbers:
        name = steps[number].sample_id
        if answer := run.predictions.get(name):
            made.keep(number, answer)
        elif run.scores[name]["outcome"] != "missing":
            raise RunError(
                f"the answer to {name:.80} is not in the folder",
                where=str(run.path),
                expected="predictions.jsonl beside the scores",
                remedy="score the answers with --errata, and name that folder without it",
            )
    return made
