"""What OSWorld's results hold: rollouts by domain, how many finished, and their turns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import counted
from omnidata.tasks import overview
from omnidata.tasks.osworld import load as osworld
from omnidata.tasks.osworld.load import Results
from omnidata.tasks.overview import Table, share
from omnidata.types import LoadedDataset, Task

_OUTCOMES = ("success", "partial", "failure", "unfinished")


class View(overview.View):
    """The rollouts, and how many steps they have.

    A Parquet repository holds the steps alone.
    """

    def __init__(self, source: LoadedDataset) -> None:
        super().__init__(source)
        self.rollouts = _rollouts(source) if isinstance(source, Results) else {}

    @classmethod
    def read(cls, task: Task, data: Path, *, strict: bool) -> LoadedDataset:
        """The data; results without a single turn are shown too."""
        return osworld.load(data, strict=strict, needs_steps=False)

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON values."""
        return {"counts": self.counts, "rollouts": self.rollouts}

    def tables(self) -> list[Table]:
        """The rollouts, then the steps if there are any."""
        rows = [
            [domain, *(str(found[name]) for name in _OUTCOMES)]
            for domain, found in self.rollouts.items()
        ]
        found = [Table("Rollouts", ("", *_OUTCOMES), rows)] if rows else []
        return [*found, *(super().tables() if self.source.steps else ())]

    def remarks(self) -> list[str]:
        """How many rollouts there are, and how many of them finished."""
        total = sum(sum(found.values()) for found in self.rollouts.values())
        done = total - sum(found["unfinished"] for found in self.rollouts.values())
        rollouts = counted(total, "rollout")
        return [f"{rollouts}, {done} finished ({share(done, total)})"] if total else []


def _rollouts(source: Results) -> Mapping[str, Mapping[str, int]]:
    """By domain: how many rollouts came to which end."""
    found: dict[str, dict[str, int]] = {}
    for rollout, result in source.results.values():
        row = found.setdefault(rollout.domain or "unknown", dict.fromkeys(_OUTCOMES, 0))
        row[result.outcome] += 1
    return dict(sorted(found.items()))
