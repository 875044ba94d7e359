"""The counts of `omnidata info`: OSWorld's tasks and rollouts by domain, and their turns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from omnidata.errors import Finding, plural
from omnidata.files import staying_in
from omnidata.loaders.repository import is_repository
from omnidata.table import TextTable
from omnidata.tasks import overview
from omnidata.tasks.asking import Asking
from omnidata.tasks.osworld import load as loader
from omnidata.tasks.osworld.tree import OUTCOMES, read_result
from omnidata.tasks.overview import share
from omnidata.types import LoadedDataset


class View(overview.View):
    """The rollouts and their steps; a Parquet repository holds the steps alone."""

    def __init__(self, source: LoadedDataset) -> None:
        super().__init__(source)
        tasks = {(step.tags.get("domain"), step.group) for step in source.steps}
        rollouts: dict[str, dict[str, int]] = {}
        with staying_in(source.root):
            found = () if is_repository(source.root) else loader.rollouts(source.root, _ignore)
            for rollout in found:  # those without a turn too
                tasks.add((rollout.domain, rollout.example_id))
                row = rollouts.setdefault(rollout.domain or "unknown", dict.fromkeys(OUTCOMES, 0))
                row[read_result(rollout, _ignore).outcome] += 1
        self.rollouts = dict(sorted(rollouts.items()))
        self.tasks = dict(sorted(Counter(domain or "unknown" for domain, _ in tasks).items()))

    @classmethod
    def read(cls, task: Asking, data: Path, *, strict: bool) -> LoadedDataset:
        return loader.load(data, strict=strict, needs_steps=False)

    def as_dict(self) -> dict[str, Any]:
        return {
            "counts": self.counts,
            "tasks": sum(self.tasks.values()),
            "tasks_by_domain": self.tasks,
            "rollouts": self.rollouts,
        }

    def tables(self) -> list[TextTable]:
        rows = [
            [domain, str(self.tasks[domain]), *(str(found[name]) for name in OUTCOMES)]
            for domain, found in self.rollouts.items()
        ]
        title = "Tasks, and how their rollouts ended"
        found = [TextTable(title, ("", "tasks", *OUTCOMES), rows)] if rows else []
        return [*found, *(super().tables() if self.source.steps else ())]

    def remarks(self) -> list[str]:
        tasks = [plural(sum(self.tasks.values()), "task")]
        total = sum(sum(found.values()) for found in self.rollouts.values())
        done = total - sum(found["unfinished"] for found in self.rollouts.values())
        rollouts = f"{plural(total, 'rollout')}, {done} finished ({share(done, total)})"
        return [*tasks, rollouts] if total else tasks


def _ignore(finding: Finding) -> None:
    """The loader reports it."""
