"""What is scored without any text of a model: by benchmark, who does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from omnidata.errors import Finding
from omnidata.types import Task

_SCORERS: Mapping[str, str] = {
    "omnibench": "omnidata.run.omnibench_score",
    "osworld": "omnidata.run.osworld_score",
}
"""Benchmark -> the module that is its `Scorer`."""


class Scorer(Protocol):
    """Scores what an environment recorded."""

    PROFILES: Sequence[str]
    """Names of its profiles, the default first."""

    NEEDS_ANSWERS: bool
    """Whether what was recorded lies in a file of its own; otherwise the data hold it."""

    def takes(self, answers: Path) -> bool:
        """Whether the file is of what was recorded, not of a model's texts; broken ones are."""

    def columns(self, profile: str) -> Mapping[str, Literal["share", "number"]]:
        """The totals that a table shows, in order."""

    def score(
        self,
        data: Path,
        answers: Path | None,
        *,
        profile: str,
        out: Path | None = None,
        strict: bool = False,
    ) -> tuple[dict[str, Any], Sequence[Finding]]:
        """The results, which are written to the folder too, and what is doubtful of the data."""


def scorer_of(task: str) -> Scorer | None:
    """Who scores the benchmark without texts; None where nobody does."""
    return cast("Scorer", import_module(_SCORERS[task])) if task in _SCORERS else None


def profiles_of(task: Task) -> list[str]:
    """All profiles of the benchmark, with the task's options: its own first, the default first."""
    scorer = scorer_of(task.name)
    return [*task.profiles, *(scorer.PROFILES if scorer else ())]
