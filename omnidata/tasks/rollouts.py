"""Scorers of results without a model's text: records of an environment, or files of an agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from omnidata.errors import Finding, UsageError
from omnidata.metrics.intervals import method_column
from omnidata.metrics.rollouts import RATES, Attempt, Example, repetition

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


def success_results(
    task: str,
    profile: str,
    agent: str,
    table: Mapping[str, Any],
    examples: Sequence[Example],
    attempts: Sequence[Attempt],
    *,
    most: int,
    by: Mapping[str, Any],
    behaviour: Mapping[str, Any] | None,
    counts: Mapping[str, int] = {},
) -> dict[str, Any]:
    """Return the content of `results.json` for success rates of an agent.

    Args:
        task: the benchmark.
        profile: whose scores.
        agent: its name.
        table: of `omnidata.metrics.rollouts.total`.
        examples: the tasks that the agent tried; without a score where it did not finish.
        attempts: at these tasks.
        most: the largest number of attempts at a task.
        by: the groups of the table that are shown.
        behaviour: how the attempts went; None if unknown.
        counts: further ones.
    """
    overall, finished = table["overall"], sum(one.score is not None for one in examples)
    outcomes = {"ok": finished, "missing": overall["tasks"] - finished}
    return {
        "task": task,
        "profile": profile,
        "agent": agent,
        "overall": {name: overall[name] for name in RATES},
        "ci95": overall["ci95"],
        **method_column(overall.get("ci95_method", {})),
        "answered": {"SR_finished": overall["SR_finished"], "tasks": finished},
        "by": by,
        **({"attempts": repetition(attempts, most, overall["tasks"])} if most > 1 else {}),
        **({"rollouts": behaviour} if behaviour else {}),
        "counts": {
            "tasks": overall["tasks"],
            "finished": finished,
            "unfinished": len(examples) - finished,
            "absent": overall["tasks"] - len(examples),
            **counts,
        },
        "outcomes": {name: count for name, count in outcomes.items() if count},
    }


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

    def paired_totals(self, profile: str) -> Columns:
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
