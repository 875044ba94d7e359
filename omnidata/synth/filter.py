"""Keep the episodes that a critic accepts, and measure the critic's precision.

The questions are those of a task whose answers say whether an episode succeeded (`Annotation.of`);
see `docs/label.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from omnidata.loaders.tree_writer import TreeEpisode
from omnidata.metrics.classification import Confusion
from omnidata.metrics.intervals import share
from omnidata.predictions import Prediction
from omnidata.synth.annotate import (
    Annotator,
    Change,
    Episode,
    Note,
    is_others,
    tree_episode,
    with_others,
)
from omnidata.types import LoadedDataset, Outcome, Step, Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """A critic's answer about an episode.

    Attributes:
        success: whether it succeeded; None if the answer cannot be read.
        outcome: "ok", or why there is no judgement.
        answer: the model's text, unchanged.
        why: the reason if there is no judgement.
    """

    success: bool | None
    outcome: Outcome
    answer: str
    why: str = ""

    @property
    def fate(self) -> Literal["accepted", "rejected", "undecided"]:
        """The outcome for the episode."""
        if self.success is None:
            return "undecided"
        return "accepted" if self.success else "rejected"


class Filtering(Annotator[Judgement]):
    """A critic's answers decide which episodes are written.

    The known data are rows of a critic's benchmark. `counts` has the episodes with a known outcome:
    those of the "data", and the rows of the other task.
    """

    verb = "filter"
    column = "critics"
    unmeasured = "no judged episode has a known outcome"

    def is_ours(self, value: Any) -> bool:
        """Return whether the value is a list of judgements."""
        return isinstance(value, list)

    def describe_nothing(self) -> str:
        """Return the first reason."""
        reasons = [*self.unasked.values(), *(finding.what for finding in self.findings)]
        return f"no episode can be judged: {reasons[0]}"

    def add_known(
        self, asked: LoadedDataset, known: LoadedDataset | None
    ) -> tuple[LoadedDataset, Mapping[str, int]]:
        """Count the known outcomes, and add the rows of the other task."""
        counts = {"data": sum(self._true_outcome(step) is not None for step in asked.steps)}
        if known is None:
            return asked, counts
        counts[known.task] = len(known.steps)
        return with_others(asked, known.steps, known.fingerprint), counts

    def _true_outcome(self, step: Step) -> bool | None:
        target = self.task.target(step)
        return None if target is None else self._claim(self.profile.judge(step, target.text))

    def _claim(self, verdict: Verdict) -> bool | None:
        value = dict(zip(self.profile.values, verdict.values, strict=True))["said"]
        return None if value is None else bool(value)

    def read(self, step: Step, line: Prediction) -> Judgement:
        """Return the judgement; incomplete answers give none."""
        text = line.output or ""
        if line.delivery != "ok":
            return Judgement(None, line.delivery, text, line.error)
        verdict = self.profile.judge(step, text, line.receipt)
        return Judgement(self._claim(verdict), verdict.outcome, text, verdict.reason)

    def summary(self, answers: Mapping[str, Judgement]) -> Mapping[str, Any]:
        """Return the counts of episodes, and the reasons of those that are left out."""
        judged = {name: each for name, each in answers.items() if not is_others(name)}
        counts = Counter(judgement.fate for judgement in judged.values())
        return {
            "episodes": {
                "all": len(self.episodes),
                "asked": len(judged),
                "accepted": counts["accepted"],
                "rejected": counts["rejected"],
                "undecided": counts["undecided"] + len(self.unasked),
            },
            "rejected": [
                {"episode": name, "answer": judgement.answer}
                for name, judgement in judged.items()
                if judgement.fate == "rejected"
            ],
            "undecided": [
                {"episode": name, "outcome": j.outcome, "why": j.why, "answer": j.answer}
                for name, j in judged.items()
                if j.fate == "undecided"
            ]
            + [
                {"episode": name, "outcome": "unasked", "why": why, "answer": ""}
                for name, why in self.unasked.items()
            ],
        }

    def precision(self, answers: Mapping[str, Judgement]) -> Mapping[str, Any] | None:
        """Return the table of the episodes with a known outcome.

        Returns:
            `known`, `unanswered` (of them, those without a full answer, which count for nothing
            below), `confusion`, `precision` (of the accepted, those that succeeded), `recall` (of
            those that succeeded, the accepted; an unreadable answer accepts nothing), each as
            `metrics.intervals.share`, and `accept_all`, the precision of accepting everything. None
            if nothing is known.
        """
        known_ones = [
            (success, answers[step.sample_id])
            for step in self.asked.steps
            if step.sample_id in answers and (success := self._true_outcome(step)) is not None
        ]
        if not known_ones:
            return None
        judged = [(truth, j.success) for truth, j in known_ones if j.outcome in ("ok", "unparsed")]
        cells = Confusion.of([truth for truth, _ in judged], [answer for _, answer in judged])
        positive = cells.tp + cells.fn + cells.unread_positive
        return {
            "known": len(known_ones),
            "unanswered": len(known_ones) - len(judged),
            "confusion": cells._asdict(),
            "precision": share(cells.tp, cells.tp + cells.fp),
            "recall": share(cells.tp, positive),
            "accept_all": share(positive, len(judged)),
        }

    def _judgement(self, episode: Episode, answers: Mapping[str, Judgement]) -> Judgement | None:
        return answers.get(self._questions.get(episode.steps[0].episode, ""))

    @cached_property
    def _questions(self) -> Mapping[str, str]:
        own = (step for step in self.asked.steps if not is_others(step.sample_id))
        return {step.episode: step.sample_id for step in own}

    def keeps(self, episode: Episode, answers: Mapping[str, Judgement]) -> bool:
        """Return whether the critic accepts the episode."""
        judgement = self._judgement(episode, answers)
        return judgement is not None and bool(judgement.success)

    def rewrite(
        self, episode: Episode, answers: Mapping[str, Judgement], model: str, note: Note
    ) -> TreeEpisode:
        """Return the episode with the critic's answer in its row and those of its steps."""
        judgement = self._judgement(episode, answers)
        before = episode.steps[0].source.get(self.column) or []
        answer = judgement.answer if judgement else ""
        columns = {self.column: [*before, {"model": model, "answer": answer}]}
        return tree_episode(episode, lambda step: Change(columns=columns), note, columns=columns)
