"""Tables as values: what is in them, not how they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["share", "number", "count", "episode"]
"""Shares are fractions and printed as percent; `episode` is a number of a step, from 1."""
Mark = Literal["", "best", "drop", "gain"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers.

    Attributes:
        header: as printed.
        metric: as in `results.json`.
        unit: of its values.
        group: of the steps that are counted; empty: all of them, or the row says.
        run: the folder, in tables with a column per run.
        source: where it is published; empty for a run's own.
    """

    header: str
    metric: str
    unit: Unit = "share"
    group: str = ""
    run: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """Columns under a common header."""

    header: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A number.

    Attributes:
        value: None where there is nothing to count, or nothing is known.
        ci95: both ends of its interval, where there is one.
        change: from the row that the table compares with, in the value's own unit.
        mark: what a reader should see first.
    """

    value: float | None
    ci95: tuple[float, float] | None = None
    change: float | None = None
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    Attributes:
        labels: one per label column.
        cells: one per column.
        group: of the steps that are counted, in tables with a row per group.
        run: the folder; empty for published figures.
        source: where it is published; empty for a run's own.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    group: str = ""
    run: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: in one word, for files and programs.
        title: what it shows, of which task and by which profile.
        task, profile: of its own runs.
        labels: the headers of the label columns.
        heads: the columns.
        rows: the lines.
        notes: what a reader must know to read it rightly.
    """

    name: str
    title: str
    task: str
    profile: str
    labels: tuple[str, ...]
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, in order."""
        return tuple(column for head in self.heads for column in head.columns)

    def records(self) -> Iterator[dict[str, Any]]:
        """One record per number, with everything that says what it is; nothing is rounded."""
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                low, high = cell.ci95 or (None, None)
                source = row.source or column.source
                yield {
                    "table": self.name,
                    "task": self.task,
                    "profile": "" if source else self.profile,
                    "row": " | ".join(filter(None, row.labels)),
                    "run": row.run or column.run,
                    "source": source and f"{PUBLISHED}: {source}",
                    "group": column.group or row.group,
                    "metric": column.metric,
                    "value": cell.value,
                    "low": low,
                    "high": high,
                    "change": cell.change,
                }


PUBLISHED = "as published, scorer not confirmed"
LOWER_IS_BETTER = frozenset({"edit_distance"})


def marked_best(columns: Sequence[Column], rows: Sequence[Row]) -> list[Row]:
    """The rows with the best value of each column marked, where runs differ.

    Published figures take no part: nobody knows that they were scored by the same rules.
    """
    from dataclasses import replace

    best: list[float | None] = []
    for place, column in enumerate(columns):
        found = [row.cells[place].value for row in rows if not row.source]
        values = [value for value in found if value is not None]
        choose = min if column.metric in LOWER_IS_BETTER else max
        told = len(set(values)) > 1 and column.unit in ("share", "number")
        best.append(choose(values) if told else None)
    return [
        row
        if row.source
        else replace(
            row,
            cells=tuple(
                replace(cell, mark="best") if top is not None and cell.value == top else cell
                for cell, top in zip(row.cells, best, strict=True)
            ),
        )
        for row in rows
    ]
