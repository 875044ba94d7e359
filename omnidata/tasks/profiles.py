"""Base classes of profiles, which read an answer and judge it, with totals of `tasks.totals`.

Scorers of results without a model's text are at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from omnidata.errors import Finding, UsageError
from omnidata.tasks.class_checks import check_metrics
from omnidata.tasks.diagnosis import REACH
from omnidata.tasks.longest import judge_beginning
from omnidata.tasks.totals import EpisodeTotals, PartTotals, RowTotals
from omnidata.types import Outcome, Step, Verdict


class _Judging(ABC):
    """How a profile judges; its totals come from the class beside it.

    Attributes:
        source: the paper, and the code, that the rules come from.
        leaves_out: the steps that are left out, or other differences from published numbers.
        reach: allowed distance from a target point, in thousandths of the screen, by which
            `Benchmark.explain` finds a wrong place.
    """

    name: str
    source: str = ""
    leaves_out: str = ""
    reach: float = REACH

    def __init_subclass__(cls, **options: Any) -> None:
        """Limit what `judge` reads of an answer."""
        super().__init_subclass__(**options)
        if "judge" in vars(cls):
            cls.judge = judge_beginning(cls.judge)  # type: ignore[method-assign]

    @abstractmethod
    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and compare it with the step's target."""

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """Return the verdict on a step without an answer: that on an empty one."""
        return Verdict(outcome, self.judge(step, "").values)


class EpisodeProfile(EpisodeTotals, _Judging):
    """Base class with TM and EM over steps, SR and GP over episodes; define how to judge a step.

    If the benchmark has other names of metrics, `metrics` maps them to ours, and `columns` lists
    those that tables show.
    """

    def check_metrics(self) -> None:
        """Check that `metrics` maps each column to one of our metrics.

        Profiles with their own totals are not checked.

        Raises:
            PluginError: a column is not mapped.
        """
        check_metrics(type(self), self.name, self)


class RowProfile(RowTotals, _Judging):
    """Base class with means over rows and bootstrap intervals; define how to judge a row."""


class PartsProfile(PartTotals, RowProfile):
    """A `RowProfile` with columns over different rows: each over the rows with a value for it."""


# Scorers of results without a model's text: records of an environment, or files of an agent.

Columns = Mapping[str, Literal["share", "number"]]
"""Totals and their units, in order."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scored results of one agent.

    Attributes:
        agent: its name; empty if unknown.
        results: the content of `results.json`.
        lines: the lines of `scores.jsonl`; each has `sample_id`, `outcome` and `profile`.
    """

    agent: str
    results: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]


class OfflineScorer(ABC):
    """Base class for scorers of files; define the profiles and how to score.

    Attributes:
        profiles: its profiles, the default first, with the totals that tables show. Their names
            differ from those of the task's own profiles.
        needs_answers: whether the records are in a separate file; otherwise they are in the data.
        right: the paired total that is 1 for a right task and less for others; None if tasks are
            done in parts.
        ranked_by: the total that ranks agents, which must be over the same tasks for all of them;
            None for the first total of the profile.
        lower_is_better: totals whose smaller values are better.
        options: the task options that it uses.
    """

    profiles: ClassVar[Mapping[str, Columns]]
    options: ClassVar[Sequence[str]] = ()
    needs_answers: ClassVar[bool] = True
    right: ClassVar[str | None] = None
    ranked_by: ClassVar[str | None] = None
    lower_is_better: ClassVar[Collection[str]] = ()

    def takes(self, answers: Path) -> bool:
        """Return whether the file has records, not a model's texts; broken files have.

        By default no file has, and a profile must be named to score one.
        """
        return False

    def paired(self, profile: str) -> Columns:
        """Return the totals that each line of scores has a part of; runs are compared by them."""
        return self.profiles[profile]

    @abstractmethod
    def score(
        self, data: Path, answers: Path | None, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """Return the results of each agent, at least one, and the findings.

        Args:
            data: as the user named it.
            answers: the records; None if they are in the data.
            profile: one of `profiles`.
            strict: make the first finding an error.
        """

    def score_actions(
        self, data: Path, log: Path, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """Return the results of each agent from a log of its actions, and the findings.

        By default there is no evaluator.

        Args:
            data: as the user named it.
            log: the state after each action.
            profile: one of `profiles`.
            strict: make the first finding an error.

        Raises:
            UsageError: the benchmark has no such evaluator.
        """
        raise UsageError(
            "the benchmark has no evaluator of actions",
            where=f"--actions {log}",
            expected="a benchmark whose tasks are evaluated action by action",
            remedy="leave out --actions",
        )
