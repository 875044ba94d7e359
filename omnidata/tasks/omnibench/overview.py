"""OmniBench's metadata: subtasks and tasks by application, category, intent and level."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import plural
from omnidata.loaders.task_library import Library
from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS, capabilities, complexity, eligible
from omnidata.table import TextTable
from omnidata.tasks import overview
from omnidata.tasks.asking import Asking
from omnidata.tasks.omnibench import load as loader
from omnidata.tasks.omnibench.load import Metadata
from omnidata.tasks.omnibench.rows import categories_of, row_categories
from omnidata.tasks.overview import share
from omnidata.types import LoadedDataset

_MOST = 30
"""Rows of a table by application or intent."""


class View(overview.View):
    """The metadata and the steps of trajectories; a Parquet repository holds the steps alone."""

    def __init__(self, source: LoadedDataset) -> None:
        super().__init__(source)
        self.library = source.library if isinstance(source, Metadata) else None
        self.metadata: Mapping[str, Any] = _metadata(self.library) if self.library else {}

    @classmethod
    def read(cls, task: Asking, data: Path, *, strict: bool) -> LoadedDataset:
        return loader.load(data, strict=strict, needs_steps=False)

    def as_dict(self) -> dict[str, Any]:
        return {"counts": self.counts, "metadata": self.metadata}

    def tables(self) -> list[TextTable]:
        found = [*_tables(self.metadata)] if self.metadata else []
        return [*found, *(super().tables() if self.source.steps else ())]

    def remarks(self) -> list[str]:
        if self.library is None:
            return []
        kinds = Counter("task" if t.task_id else "subtask" for t in self.library.trajectories)
        evaluated = sum(s.evaluation is not None for s in self.library.subtasks.values())
        subtasks = plural(len(self.library.subtasks), "subtask")
        return [
            f"{subtasks} ({evaluated} with an evaluation function)",
            plural(len(self.library.tasks), "task"),
            f"{plural(kinds['subtask'], 'trajectory')} of subtasks and {kinds['task']} of tasks",
        ]


def _metadata(library: Library) -> dict[str, Any]:
    subtasks, tasks = library.subtasks.values(), library.tasks.values()
    placed = [task for task in tasks if len(task.applications) == len(task.graph.nodes)]
    found = [complexity(task.graph, task.applications, task.categories) for task in placed]
    levels = [each.levels() for each in found]
    apps = dict.fromkeys(subtask.application for subtask in subtasks if subtask.application)
    categories = categories_of(apps, row_categories(subtasks))
    sizes = Counter(_SIZES[bisect(_LEAST, len(task.orders))] for task in tasks)
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
            dimension: _count_in_order((each[dimension] for each in levels), LEVELS)
            for dimension in DIMENSIONS
        },
        "eligible": _count_in_order(
            (name for each in found for name in eligible(each)), capabilities()
        ),
        "orders": {name: sizes[name] for name in _SIZES if sizes[name]},
        "tasks_measured": len(found),
    }


def _pairs(subtasks: Iterable[str], tasks: Iterable[str]) -> dict[str, dict[str, int]]:
    own, used = Counter(subtasks), Counter(tasks)
    names = sorted(own.keys() | used.keys(), key=lambda name: (-own[name], -used[name], name))
    return {name: {"subtasks": own[name], "tasks": used[name]} for name in names}


def _count_in_order(values: Iterable[str], order: Iterable[str]) -> dict[str, int]:
    counts = Counter(values)
    return {name: counts[name] for name in order}


_SIZES = ("unknown", "1", "2-9", "10-99", "100+")
"""The tasks by their number of orders, which is unknown if there are too many to count."""
_LEAST = (1, 2, 10, 100)


def _tables(found: Mapping[str, Any]) -> Iterable[TextTable]:
    for title, key in (("Applications", "apps"), ("Categories", "categories")):
        rows = [[n, str(c["subtasks"]), str(c["tasks"])] for n, c in found[key].items()]
        yield TextTable(title, ("", "subtasks", "tasks"), _shorten(rows))
    if not found["intents"]:
        return
    rows = [[name, str(count)] for name, count in found["intents"].items()]
    yield TextTable("Intents", ("", "tasks"), _shorten(rows))
    total = found["tasks_measured"]
    rows = [
        [dimension, *(cell for n in counts.values() for cell in (str(n), share(n, total)))]
        for dimension, counts in found["levels"].items()
    ]
    header = ("", *(cell for level in LEVELS for cell in (level, "")))
    yield TextTable("Complexity of the tasks, as in Table 2 of the paper", header, rows)
    rows = [[name, str(count)] for name, count in found["eligible"].items()]
    yield TextTable("Tasks that Table 11 admits for a capability", ("", "tasks"), rows)
    rows = [[name, str(count)] for name, count in found["orders"].items()]
    yield TextTable("Valid orders of a task", ("", "tasks"), rows)


def _shorten(rows: list[list[str]]) -> list[list[str]]:
    more = len(rows) - _MOST
    return rows if more <= 0 else [*rows[:_MOST], [f"and {more} more", *("" for _ in rows[0][1:])]]
