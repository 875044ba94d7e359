"""A table as a value: labels of the rows, and columns that know the unit of their cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

CellUnit = Literal["share", "number", "count", "episode", "money", "p", "text"]
"""Shares are fractions and printed as percent; `episode` is a number of a step, from 1; money is
printed to a hundredth of a cent; `p` is the p of a test."""
Mark = Literal["", "best", "drop", "gain"]
DASH = "-"
"""Stands in place of a number that is not defined."""
PUBLISHED = "as published, scorer not confirmed"
_SIGNS = "†‡§¶"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers or texts.

    Attributes:
        header: as printed.
        metric: as in `results.json`.
        unit: of its values.
        group: of the counted steps; empty for all of them, or if the row names it.
        run: the folder, in tables with a column per run.
        source: the publication; empty for values of runs.
        lower_is_better: whether a smaller value is a better one.
    """

    header: str
    metric: str
    unit: CellUnit = "share"
    group: str = ""
    run: str = ""
    source: str = ""
    lower_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """Columns under a common header, which may be empty."""

    header: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A number, or a text.

    Attributes:
        value: None where there is nothing to count, or nothing is known.
        ci95: both ends of its interval, where there is one.
        change: from the row that the table compares with, in the value's own unit.
        mark: why a reader should look at it.
        digits: decimals to print; None for those of the unit.
        text: printed in a column of texts.
    """

    value: float | None
    ci95: tuple[float, float] | None = None
    change: float | None = None
    mark: Mark = ""
    digits: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    Attributes:
        labels: one per label column.
        cells: one per column.
        group: of the counted steps, in tables with a row per group.
        run: the folder; empty for published figures.
        source: the publication; empty for values of runs.
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
        name: in one word, for files and programs; empty for tables that are only printed.
        title: names the content, the task and the profile.
        task, profile: of its own runs.
        labels: the headers of the label columns.
        heads: the columns.
        rows: the lines.
        notes: explain the table, below it.
        intervals: whether intervals are printed below their values.
        legend: header -> its meaning.
    """

    name: str
    title: str
    task: str
    profile: str
    labels: tuple[str, ...]
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    intervals: bool = False
    legend: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, in order."""
        return tuple(column for head in self.heads for column in head.columns)

    @property
    def caption(self) -> str:
        """The title, with the unit if there are shares."""
        shares = any(column.unit == "share" for column in self.columns)
        return f"{self.title} (%)" if shares else self.title

    @property
    def signs(self) -> Mapping[str, str]:
        """Publication -> the sign of its rows and columns; the last sign serves all others."""
        sources = [row.source for row in self.rows] + [column.source for column in self.columns]
        named = [source for source in dict.fromkeys(sources) if source]
        return {source: _SIGNS[min(nth, len(_SIGNS) - 1)] for nth, source in enumerate(named)}

    def footnotes(self) -> list[str]:
        """Return the lines below the table: the meaning of its signs, and its notes."""
        signs = [f"{sign} {source}: {PUBLISHED}." for source, sign in self.signs.items()]
        return [*signs, *self.notes]

    def row_labels(self) -> list[tuple[str, ...]]:
        """Return the labels of each row; those of published rows have a sign."""
        signs = self.signs
        return [
            (f"{row.labels[0]} {signs[row.source]}", *row.labels[1:]) if row.source else row.labels
            for row in self.rows
        ]

    def head_text(self, head: Head) -> str:
        """Return a common header, with a sign if its columns are published."""
        source = head.columns[0].source
        return f"{head.header} {self.signs[source]}" if source else head.header

    def values(self, row: Row) -> list[tuple[str, str]]:
        """Return each cell as printed: its value, and its change or interval or nothing."""
        return [
            (_value(cell, column.unit), self._beside(cell, column.unit))
            for column, cell in zip(self.columns, row.cells, strict=True)
        ]

    def _beside(self, cell: Cell, unit: CellUnit) -> str:
        if cell.change is not None:
            value, places = (100 * cell.change, 1) if unit == "share" else (cell.change, 2)
            return f"({round(value, places) + 0.0:+.{places}f})"  # 0.0 added: no -0.0
        if not self.intervals or not cell.ci95:
            return ""
        low, high = (number(end, unit) for end in cell.ci95)
        return f"[{low}, {high}]"

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one record per number, with its task, row and metric; nothing is rounded.

        A table without columns has one per label beside the row's first, which is its name.
        """
        for row in self.rows:
            if not self.heads:
                own = {"table": self.name, "task": self.task, "profile": self.profile}
                own |= {"row": row.labels[0], "run": row.run}
                for name, text in zip(self.labels[1:], row.labels[1:], strict=True):
                    yield {**own, "metric": name, "value": None if text == DASH else text}
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
                    "value": cell.text if column.unit == "text" else cell.value,
                    "low": low,
                    "high": high,
                    "change": cell.change,
                }


class TextTable(Table):
    """A table of texts, to print: the first column has the labels.

    Args:
        title: above the table.
        header: names of the columns; a column without one stays beside the one before it.
        rows: as wide as the header.
        legend: header -> its meaning.
        notes: explain the table, below it.
        beside: the header of further columns that stay beside the one before them.

    Raises:
        ValueError: a row is not as wide as the header.
    """

    __slots__ = ()

    def __init__(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        legend: Mapping[str, str] | None = None,
        *,
        notes: Sequence[str] = (),
        beside: str = "",
    ) -> None:
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"{title}: {len(row)} cells below {len(header)} headers: {row}")
        groups: list[list[Column]] = []
        for name in header[1:]:
            if name not in ("", beside) or not groups:
                groups.append([])
            groups[-1].append(Column(name, name, "text"))
        super().__init__(
            name="",
            title=title,
            task="",
            profile="",
            labels=(header[0],),
            heads=tuple(Head("", tuple(group)) for group in groups),
            rows=tuple(
                Row((row[0],), tuple(Cell(None, text=text) for text in row[1:])) for row in rows
            ),
            notes=tuple(notes),
            legend=legend or {},
        )


def number(
    value: float | None, unit: CellUnit, *, sign: bool = False, digits: int | None = None
) -> str:
    """Return a value as the papers print it: shares in percent, a dash for None.

    Args:
        value: in the unit.
        unit: of the value.
        sign: whether a plus is printed.
        digits: decimals of a share or a number; None: one of percent, two of others.

    Examples:
        >>> number(0.6361, "share"), number(2.3, "number"), number(2579, "count")
        ('63.6', '2.30', '2579')
        >>> number(-0.5, "number", sign=True), number(None, "share"), number(0.0371, "p")
        ('-0.50', '-', '0.037')
        >>> number(0.0195, "share", digits=2)
        '1.95'
    """
    if value is None:
        return DASH
    if unit == "count":
        return f"{value:.0f}"
    if unit == "money":
        return f"{value:.4f}"
    if unit == "p":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    if unit == "share":
        text = f"{round(100 * value, 9):+.{1 if digits is None else digits}f}"
    else:
        text = f"{value:+.{2 if digits is None else digits}f}"
    if not float(text):
        return text[1:]  # no sign before nothing
    return text if sign else text.removeprefix("+")


def _value(cell: Cell, unit: CellUnit) -> str:
    return cell.text if unit == "text" else number(cell.value, unit, digits=cell.digits)


def mark_best(columns: Sequence[Column], rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the best value of each column marked, where runs differ.

    Published values are left out, as their scorer is not confirmed.
    """
    best: list[float | None] = []
    for place, column in enumerate(columns):
        own = [row.cells[place] for row in rows if not row.source]
        values = {cell.value for cell in own if cell.value is not None}
        differ = len(values) > 1 and column.unit in ("share", "number")
        best.append((min if column.lower_is_better else max)(values) if differ else None)

    def cells(row: Row) -> Iterator[Cell]:
        for cell, top in zip(row.cells, best, strict=True):
            is_best = not row.source and top is not None and cell.value == top
            yield replace(cell, mark="best") if is_best else cell

    return [replace(row, cells=tuple(cells(row))) for row in rows]
