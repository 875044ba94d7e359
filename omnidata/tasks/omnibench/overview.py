"""What OmniBench's metadata hold: subtasks and tasks by application, category, intent and level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import counted
from omnidata.loaders.task_library import Library, TaskGraph
from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS, capabilities, complexity, eligible
from omnidata.tasks import overview
from omnidata.tasks.omnibench import load as omnibench
from omnidata.tasks.omnibench.load import Metadata
from omnidata.tasks.omnibench.rows import categories_of, said_categories
from omnidata.tasks.overview import Table, share
from omnidata.types import LoadedDataset, Task

_MOST = 30
"""Rows of a table that has one for each application or intent."""


class View(overview.View):
    """The metadata, and how many steps their trajectories have.

    A Parquet repository holds the steps alone.
    """

    def __init__(self, source: LoadedDataset) -> None:
        super().__init__(source)
        self.library = source.library if isinstance(source, Metadata) else None
        self.metadata: Mapping[str, Any] = _metadata(self.library) if self.library else {}

    @classmethod
    def read(cls, task: Task, data: Path, *, strict: bool) -> LoadedDataset:
        """The dataset; tasks and subtasks without a single step are shown too."""
        return omnibench.load(data, strict=strict, needs_steps=False)

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON values."""
        return {"counts": self.counts, "metadata": self.metadata}

    def tables(self) -> list[Table]:
        """The metadata, then the steps if there are any."""
        found = [*_tables(self.metadata)] if self.metadata else []
        return [*found, *(super().tables() if self.source.steps else ())]

    def remarks(self) -> list[str]:
        """How many subtasks, tasks and trajectories there are."""
        if self.library is None:
            return []
        kinds = Counter("task" if t.task_id else "subtask" for t in self.library.trajectories)
        evaluated = sum(s.evaluation is not None for s in self.library.subtasks.values())
        subtasks = counted(len(self.library.subtasks), "subtask")
        return [
            f"{subtasks} ({evaluated} with an evaluation function)",
            counted(len(self.library.tasks), "task"),
            f"{counted(kinds['subtask'], 'trajectory')} of subtasks and {kinds['task']} of tasks",
        ]


def _metadata(library: Library) -> dict[str, Any]:
    """Everything that is counted, as JSON values."""
    subtasks, tasks = library.subtasks.values(), library.tasks.values()
    placed = [task for task in tasks if len(task.applications) == len(task.graph.nodes)]
    found = [complexity(task.graph, task.applications, task.categories) for task in placed]
    levels = [each.levels() for each in found]
    apps = dict.fromkeys(subtask.application for subtask in subtasks if subtask.application)
    categories = categories_of(apps, said_categories(subtasks))
    return {
        "apps": _pairs(
            [subtask.application or "unknown" for subtask in subtasks],
            [app for task in tasks for app in dict.fromkeys(task.applications.values())],
        ),
        "categories": _pairs(
            [categories.get(subtask.application, "unknown") for subtask in subtasks],
            [name for task in tasks for name in dict.fromkeys(task.categories.values())],
        ),
        "intents": dict(Counter(task.intent or "none" for task in tasks).most_common()),
        "levels": {
            dimension: _ordered((each[dimension] for each in levels), LEVELS)
            for dimension in DIMENSIONS
        },
        "eligible": _ordered((name for each in found for name in eligible(each)), capabilities()),
        "orders": _orders(library),
        "tasks_measured": len(found),
    }


def _pairs(subtasks: Iterable[str], tasks: Iterable[str]) -> dict[str, dict[str, int]]:
    """By name: how many subtasks and how many tasks; the most frequent first."""
    own, used = Counter(subtasks), Counter(tasks)
    names = sorted(own.keys() | used.keys(), key=lambda name: (-own[name], -used[name], name))
    return {name: {"subtasks": own[name], "tasks": used[name]} for name in names}


def _ordered(values: Iterable[str], order: Iterable[str]) -> dict[str, int]:
    counts = Counter(values)
    return {name: counts[name] for name in order}


def _orders(library: Library) -> dict[str, int]:
    """How many tasks have how many valid orders; those with too many to find have 0."""
    counts = Counter(_size(task) for task in library.tasks.values())
    return {name: counts[name] for name in ("unknown", "1", "2-9", "10-99", "100+") if counts[name]}


def _size(task: TaskGraph) -> str:
    count = len(task.orders)
    if count < 2:
        return str(count) if count else "unknown"
    return "2-9" if count < 10 else "10-99" if count < 100 else "100+"


def _tables(found: Mapping[str, Any]) -> Iterable[Table]:
    for title, key in (("Applications", "apps"), ("Categories", "categories")):
        rows = [[n, str(c["subtasks"]), str(c["tasks"])] for n, c in found[key].items()]
        yield Table(title, ("", "subtasks", "tasks"), _shortened(rows))
    if not found["intents"]:
        return
    rows = [[name, str(count)] for name, count in found["intents"].items()]
    yield Table("Intents", ("", "tasks"), _shortened(rows))
    total = found["tasks_measured"]
    rows = [
        [dimension, *(cell for n in counts.values() for cell in (str(n), share(n, total)))]
        for dimension, counts in found["levels"].items()
    ]
    header = ("", *(cell for level in LEVELS for cell in (level, "")))
    yield Table("Complexity of the tasks, as in Table 2", header, rows)
    rows = [[name, str(count)] for name, count in found["eligible"].items()]
    yield Table("Tasks that Table 11 admits for a capability", ("", "tasks"), rows)
    rows = [[name, str(count)] for name, count in found["orders"].items()]
    yield Table("Valid orders of a task", ("", "tasks"), rows)


def _shortened(rows: list[list[str]]) -> list[list[str]]:
    """The first rows, and how many more there are; `--json` has them all."""
    more = len(rows) - _MOST
    return rows if more <= 0 else [*rows[:_MOST], [f"and {more} more", *("" for _ in rows[0][1:])]]
