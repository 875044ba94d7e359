"""What a dataset holds, as `omnidata info` shows it: counts by tag, for every benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from omnidata.table import TextTable
from omnidata.types import LoadedDataset, Task

Table = TextTable
"""The name by which benchmarks and plug-ins make tables of texts."""


class View:
    """How many episodes and steps have which tag.

    A benchmark that has more to show overrides what it shows otherwise. An episode is labelled as
    its first step.

    Args:
        source: what the benchmark's `load` gave.
    """

    published: ClassVar[Mapping[str, str]] = {}
    """The published tables that counts can be compared with: name -> title."""
    draws: ClassVar[bool] = False
    """Whether there is a figure of its own, in place of the one that every dataset has."""

    def __init__(self, source: LoadedDataset) -> None:
        self.source = source
        self.counts = self._count()
        self.episodes: int = self.counts["total"]["episodes"]

    @classmethod
    def read(cls, task: Task, data: Path, *, strict: bool) -> LoadedDataset:
        """The dataset, as far as it can be shown; as `Task.load`."""
        return task.load(data, strict=strict)

    def _count(self) -> dict[str, Any]:
        """The counts; `total` has at least `episodes` and `steps`."""
        episodes: dict[str, Mapping[str, str]] = {}
        lengths: dict[str, int] = {}
        for step in self.source.steps:
            key = step.episode
            episodes.setdefault(key, step.tags)
            lengths[key] = lengths.get(key, 0) + 1
        tags: dict[str, dict[str, dict[str, int]]] = {name: {} for name in self.source.tags}
        for key, labels in episodes.items():
            for name, groups in tags.items():
                value = labels.get(name, "unlabelled")
                group = groups.setdefault(value, {"episodes": 0, "steps": 0})
                group["episodes"] += 1
                group["steps"] += lengths[key]
        total = {"episodes": len(episodes), "steps": len(self.source.steps)}
        return {"tags": tags, "total": total}

    def as_dict(self) -> dict[str, Any]:
        """All that was counted, as JSON values by name."""
        return {"counts": self.counts}

    def tables(self) -> list[Table]:
        """All that was counted, as tables."""
        total = self.counts["total"]
        rows = [
            [f"{tag}: {value}", *_cells(group, total)]
            for tag, groups in self.counts["tags"].items()
            for value, group in groups.items()
        ]
        title = f"Episodes and steps of {self.source.task}"
        header = ("", "episodes", "", "steps", "")
        return [Table(title, header, [*rows, ["total", *_cells(total, total)]])]

    def remarks(self) -> list[str]:
        """What else the summary says of the steps."""
        return []

    def differences(self, table: str) -> list[str]:
        """Where the counts differ from a published table, one sentence each.

        Args:
            table: one of `published`.
        """
        raise NotImplementedError(table)

    def draw(self, path: Path) -> Mapping[str, str]:
        """Draw the figure.

        Args:
            path: the file, which `omnidata.figures.check` has let pass.

        Returns:
            Names that no font can draw -> how they are written.
        """
        raise NotImplementedError(str(path))


def share(part: int, whole: int) -> str:
    """A share in percent.

    Examples:
        >>> share(1, 3), share(0, 0)
        ('33.3 %', '-')
    """
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _cells(group: Mapping[str, int], total: Mapping[str, int]) -> list[str]:
    return [
        cell
        for key in ("episodes", "steps")
        for cell in (str(group[key]), share(group[key], total[key]))
    ]
