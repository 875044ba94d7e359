"""The counts of a dataset by tag, as `omnidata info` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from omnidata.table import TextTable
from omnidata.types import LoadedDataset

if TYPE_CHECKING:
    from omnidata.tasks.asking import Asking

Table = TextTable
"""The name by which plug-ins make tables of texts."""


class View:
    """The numbers of episodes and steps by tag; an episode has the tags of its first step.

    Benchmarks with more to show override its methods.

    Args:
        source: the dataset.
    """

    published: ClassVar[Mapping[str, str]] = {}
    """Published tables to compare counts with: name -> title."""
    draws: ClassVar[bool] = False
    """Whether `draw` replaces the figure that every dataset has."""

    def __init__(self, source: LoadedDataset) -> None:
        self.source = source
        self.counts = self._count()
        self.episodes: int = self.counts["total"]["episodes"]

    @classmethod
    def read(cls, task: Asking, data: Path, *, strict: bool) -> LoadedDataset:
        """Load the dataset; see `Asking.load`."""
        return task.load(data, strict=strict)

    def _count(self) -> dict[str, Any]:
        """Return the counts; `total` has at least `episodes` and `steps`."""
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
        """Return the counts as JSON values by name."""
        return {"counts": self.counts}

    def tables(self) -> list[TextTable]:
        """Return the counts as tables."""
        total = self.counts["total"]
        rows = [
            [f"{tag}: {value}", *_cells(group, total)]
            for tag, groups in self.counts["tags"].items()
            for value, group in groups.items()
        ]
        title = f"Episodes and steps of {self.source.task}"
        header = ("", "episodes", "", "steps", "")
        return [TextTable(title, header, [*rows, ["total", *_cells(total, total)]])]

    def remarks(self) -> list[str]:
        """Return further parts of the summary line."""
        return []

    def differences(self, table: str) -> list[str]:
        """Return the differences to a published table, one sentence each.

        Args:
            table: one of `published`.
        """
        raise NotImplementedError(table)

    def draw(self, path: Path) -> Mapping[str, str]:
        """Draw the figure.

        Args:
            path: the file, checked by `omnidata.figures.check`.

        Returns:
            Names that no font can draw -> their spelling in the figure.
        """
        raise NotImplementedError(str(path))


def share(part: int, whole: int) -> str:
    """Return a share in percent.

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
