"""What is scored without any text of a model: what an environment recorded, or an agent's files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from omnidata.errors import Finding

Columns = Mapping[str, Literal["share", "number"]]
"""Totals and their units, in order."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What one agent did, scored.

    Attributes:
        agent: who did it; empty where nothing says so.
        results: the content of `results.json`.
        lines: those of `scores.jsonl`; each has `sample_id`, `outcome` and `profile`.
    """

    agent: str
    results: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]


class OfflineScorer(ABC):
    """Scores files; a benchmark's own says which profiles it has and how it scores.

    Attributes:
        profiles: its profiles, the default first, with the totals that a table of each shows. The
            names are none of the task's own profiles.
        needs_answers: whether what was recorded lies in a file of its own; otherwise the data hold
            it.
        right: the paired total that is 1 of a task that is right, 0 or between of one that is not;
            None where tasks are done in parts.
    """

    profiles: ClassVar[Mapping[str, Columns]]
    needs_answers: ClassVar[bool] = True
    right: ClassVar[str | None] = None

    def takes(self, answers: Path) -> bool:
        """Whether the file is of what was recorded, not of a model's texts; broken ones are.

        No file is, unless the benchmark says so: then a profile must be named to score one.
        """
        return False

    def paired(self, profile: str) -> Columns:
        """The totals of which every line of scores has a part: runs are compared by them."""
        return self.profiles[profile]

    @abstractmethod
    def score(
        self, data: Path, answers: Path | None, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """What each agent reached, at least one, and what is doubtful of the data.

        Args:
            data: as the user named it.
            answers: what was recorded; None where the data hold it.
            profile: one of `profiles`.
            strict: make the first finding an error.
        """
