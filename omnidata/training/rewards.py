"""A benchmark's profile as the reward of reinforcement learning.

The reward of an answer is computed from its verdict, by the call that `omnidata score` uses, so
training and evaluation cannot differ. Published recipes also use the answer's text (see
`omnidata.training.reward_recipes`). `docs/reinforce.md` shows the use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict, get_args

import msgspec

from omnidata.actions import Action
from omnidata.dialects import CannotSayError
from omnidata.errors import PluginError, PredictionError, UsageError, suggestion
from omnidata.loaders.steps import Positions
from omnidata.run.scoring import get_profile
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.asking_under_options import load_to_ask
from omnidata.tasks.marks import deciding, mark_of
from omnidata.training.reward_recipes import RECIPES, TERM_VALUES, Judged, RecipeName, Term
from omnidata.types import Cause, Delivery, Diagnosis, LoadedDataset, Outcome, Step, Verdict

TERMS: Final[Mapping[Term, float]] = {"format": 0.1, "type": 0.4, "exact": 0.5}
"""The default weights."""
_SLACK: Final = 1e-9


class Score(TypedDict):
    """The reward of an answer, and its reasons.

    Attributes:
        reward: the number to train on; None if the step cannot be judged.
        type_match: the profile's value of that name; None if it judges no type of action, or the
            step cannot be judged.
        exact_match: the profile's value for a right answer, in [0, 1].
        format_ok: the profile's value of that name; without one, whether the answer was read.
        cause: why the answer is not right, as in `scores.jsonl`; None if it is right.
        outcome: as in `scores.jsonl`: "ok", "unparsed", ...
    """

    reward: float | None
    type_match: float | bool | None
    exact_match: float | bool | None
    format_ok: float | bool | None
    cause: Cause | None
    outcome: Outcome


class Reward:
    """Score answers to the steps of a dataset.

    It is pure: a score depends on the arguments alone. Threads may share one; pickled, it takes its
    steps along.

    Args:
        task: the benchmark, with the options of the evaluation.
        data: the dataset as the task loaded it, or its files.
        profile: judges the answers; None for the task's default.
        terms: the weights of the reward's terms, or the name of a published recipe. The weight of a
            term without a value ("type" of profiles that judge no type, "distance" of a step
            without a target place) goes to "exact".

    Raises:
        DataError: the data cannot be read.
        UsageError: there is no such profile, term or recipe, or a weight is no number.
    """

    def __init__(
        self,
        task: Asking,
        data: LoadedDataset | Path | str,
        *,
        profile: str | None = None,
        terms: Mapping[Term, float] | RecipeName = TERMS,
    ) -> None:
        source = (
            data
            if isinstance(data, LoadedDataset)
            else load_to_ask(task, Path(data), check_media=False)
        )
        self.task = task
        self.profile = get_profile(task, profile)
        self.terms = check_terms(task, terms)
        self.fingerprint = source.fingerprint
        self._steps = source.steps
        self._places = Positions(source.steps)

    def __reduce__(self) -> tuple[Any, ...]:
        """Tasks hold what cannot be pickled: the name and the options say all of one."""
        source = LoadedDataset(
            self.task.name, Path(), self._steps, (), 0, self.fingerprint, (), (), {}
        )
        given = self.task.name, dict(self.task.options), source, self.profile.name, self.terms
        return _again, given

    def step(self, sample_id: str) -> Step:
        """Return the step with an id.

        Raises:
            PredictionError: the data have none.
        """
        number = self._places.get(sample_id)
        if number is None:
            raise PredictionError(
                "the data have no such step",
                where=str(sample_id)[:200],
                expected=f"ids like {self._steps[0].sample_id}",
                remedy="score against the data that the prompts were exported from",
            )
        return self._steps[number]

    def score(
        self,
        sample_id: str,
        text: str,
        *,
        receipt: Mapping[str, Any] | None = None,
        delivery: Delivery = "ok",
    ) -> Score:
        """Score an answer.

        An unreadable answer has a reward, like a wrong one; only a step that cannot be judged has
        none.

        Args:
            sample_id: of the step.
            text: the answer, untouched.
            receipt: the size of the screenshot in the prompt, for answers in pixels (see
                `Completion`); None for its own size.
            delivery: "truncated" for an answer that was cut off: it is wrong, as in the evaluation.

        Raises:
            PredictionError: the data have no such step, or the receipt cannot be read.
        """
        step = self.step(sample_id)
        shown = dict(receipt or {})
        verdict = self.profile.judge(step, text, shown, delivery)
        explanation = self.task.explanation(
            step, verdict, text, profile=self.profile.name, receipt=shown
        )
        values = dict(zip(self.profile.values, verdict.values, strict=True))
        exact = self._exact(verdict)
        mark = mark_of(verdict.outcome, values)
        diagnosis = explanation.diagnosis or Diagnosis("rule")
        found: Score = {
            "reward": None,
            "type_match": None,
            "exact_match": exact,
            "format_ok": None,
            "cause": None if mark in ("right", "unjudged") else diagnosis.cause,
            "outcome": verdict.outcome,
        }
        if exact is None:
            return found
        kind = values.get("type_match")
        form = values.get("format_ok", verdict.outcome == "ok")
        judged = Judged(
            self.task,
            step,
            text,
            shown,
            verdict,
            exact=float(exact),
            type=None if kind is None else float(kind),
            format=float(form or 0.0),
            explanation=explanation,
            right=partial(self._right, step, shown),
        )
        return {**found, "reward": self._reward(judged), "type_match": kind, "format_ok": form}

    def _reward(self, judged: Judged) -> float:
        if isinstance(self.terms, str):
            return RECIPES[self.terms](judged)
        total = 0.0
        for name, weight in self.terms.items():
            value = TERM_VALUES[name](judged)
            total += weight * (judged.exact if value is None else value)
        return round(total, 9)

    def _exact(self, verdict: Verdict) -> float | None:
        exact: float | None = deciding(dict(zip(self.profile.values, verdict.values, strict=True)))
        if exact is not None and not -_SLACK <= exact <= 1 + _SLACK:
            kind = type(self.profile.rule)
            raise PluginError(
                f"the profile {self.profile.name} returned {exact!r} as correctness",
                where=f"{kind.__module__}.{kind.__qualname__}",
                expected="a share between 0 and 1",
                remedy="train on another profile",
            )
        return exact

    def _right(self, step: Step, receipt: Mapping[str, Any], action: Action) -> float:
        speech = self.task.benchmark.speech
        assert speech is not None
        try:
            answer = speech.adopt([action], step, receipt)
        except CannotSayError:
            return 0.0
        verdict = self.profile.judge_parsed(step, answer)
        return float(self._exact(verdict) or 0.0)


def check_terms(
    task: Asking, terms: Mapping[Term, float] | RecipeName
) -> Mapping[Term, float] | RecipeName:
    """Return the terms, after checking that the task supports each.

    Raises:
        UsageError: there is no such term or recipe, a weight is no number, or answers of the task
            are no places.
    """
    try:
        if not isinstance(terms, str):
            terms = {name: float(weight) for name, weight in terms.items()}
        found: dict[Term, float] | RecipeName = msgspec.convert(
            terms, RecipeName | dict[Term, float]
        )
        weights: Mapping[Term, float] = {"rank": 1.0} if found == "aepo" else {"exact": 1.0}
        if isinstance(found, dict):
            weights = found
        if not any(weights.values()) or not all(map(math.isfinite, weights.values())):
            raise ValueError("weights are finite, and one of them is not 0")
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UsageError(
            f"these are no terms of a reward: {error}",
            where=f"terms={terms!r}",
            expected=f"one of {', '.join(RECIPES)}, or weights of {', '.join(get_args(Term))}",
            remedy=suggestion(str(terms), tuple(RECIPES)),
        ) from None
    speech = task.benchmark.speech
    points = speech is not None and speech.asked == "point" and "dialect" not in task.options
    if weights.get("rank") and not points:
        raise UsageError(
            f"answers of {task.name} are not coordinates to rank, or are in a dialect",
            where=f"terms={terms!r}",
            expected="a grounding task without a dialect",
            remedy="drop the term",
        )
    return found


def _again(
    name: str,
    options: Mapping[str, str],
    source: LoadedDataset,
    profile: str,
    terms: Mapping[Term, float] | RecipeName,
) -> Reward:
    return Reward(get_task(name, options), source, profile=profile, terms=terms)
