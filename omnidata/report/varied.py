"""Tables of runs that differ in one thing, with the difference to the usual way of asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from omnidata.report import published
from omnidata.report.run_tables import cell, of_published, title
from omnidata.report.runs import grouped, labels
from omnidata.report.shapes import DEPENDENCY, Shape, shapes
from omnidata.report.tables import LOWER_IS_BETTER, Column, Mark, Row, Table
from omnidata.run.scored import Run


@dataclass(frozen=True, slots=True)
class Variation:
    """A task option that the rows of a table differ in.

    Attributes:
        option: its name.
        base: the value that the others are compared with.
        values: value -> how the paper calls it; others are called by their value.
        other: what a value without a name is called, before the value itself.
        title: of the table.
        label: header of the column with the value.
        besides: options that mean nothing where this one has its base value.
        across: whether marks go across groups (Table 5), not down a model's rows (Table 4).
    """

    option: str
    base: str
    values: Mapping[str, str]
    title: str
    label: str
    other: str = ""
    besides: frozenset[str] = frozenset()
    across: bool = False

    def called(self, value: str) -> str:
        """The value as the table has it."""
        return self.values.get(value) or " ".join(filter(None, (self.other, value)))

    def of(self, run: Run) -> str:
        """The run's value."""
        return str(run.settings.get("options", {}).get(self.option, self.base))


MODALITIES = Variation(
    "modalities",
    "IAV",
    {
        "IAV": "Full (I+A+V)",
        "IV": "No Audio (I+V)",
        "IA": "No Video (I+A)",
        "I": "No AV (Img Only)",
    },
    "Modality ablation",
    "Modality Input",
)
VOICE = Variation(
    "voice",
    "",
    {"": "Text (Baseline)", "TTS": "TTS Voice"},
    "Instruction as text and as voice",
    "Instruction",
    other="TTS Voice",
    besides=frozenset({"voice_form"}),
    across=True,
)
HISTORY = Variation(
    "history",
    "gold",
    {"gold": "Gold", "predicted": "Predicted", "none": "None"},
    "History of gold and of predicted actions",
    "History",
)
VARIATIONS = (MODALITIES, VOICE, HISTORY)


def groups(of: Variation, runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that differ in the option alone, the base first: groups with it and with another."""
    ignored = frozenset(f"options.{name}" for name in {of.option, *of.besides})
    ranks = {value: number for number, value in enumerate(of.values)}
    found = []
    for group in grouped(runs, ignored):
        values = {of.of(run) for run in group}
        if of.base in values and len(values) > 1:
            found.append(sorted(group, key=lambda run: ranks.get(of.of(run), len(ranks))))
    return found


def table(of: Variation, runs: Sequence[Run], *, with_published: bool) -> Table | None:
    """Rows per model and value, each with its difference to the model's base.

    Marks are the paper's. Table 4: of a model's other values, two or more, the worst change of each
    column is a drop, the best one a gain. Table 5: of each metric the worst change among the groups
    is a drop, and whatever is not lost is a gain.

    Args:
        of: what the runs differ in.
        runs: of one task and profile.
        with_published: whether the paper's rows come first.

    Returns:
        None where no two runs differ in the option alone.
    """
    found = groups(of, runs)
    if not found:
        return None
    shape = _shape(found[0][0])
    heads = shape.heads([run for group in found for run in group], shares=found[0][0])
    columns = tuple(column for head in heads for column in head.columns)
    others = published.figures(runs[0].task, of.option) if with_published else []
    rows = list(_published(of, others, columns))
    names = labels([group[0] for group in found])
    for group, name in zip(found, names, strict=True):
        own = [
            Row(
                (", ".join(filter(None, name)), of.called(of.of(run))),
                tuple(cell(run, shape.axis, each.group, each.metric) for each in columns),
                run=str(run.path),
            )
            for run in group
        ]
        rows += compared(own, columns, across=of.across)
    return Table(
        of.option,
        title(of.title + (" across dependency levels" if shape is DEPENDENCY else ""), runs),
        runs[0].task,
        runs[0].profile,
        ("Model", of.label),
        heads,
        tuple(rows),
        (
            f"In brackets: the difference to {of.called(of.base)}, in points.",
            *of_published(others, runs),
        ),
    )


def _shape(run: Run) -> Shape:
    """By dependency where the data tell it, else the task's main table."""
    return DEPENDENCY if run.results["by"].get("dependency") else shapes(run)[0]


def _published(
    of: Variation, others: Sequence[published.Figures], columns: Sequence[Column]
) -> Iterator[Row]:
    models: dict[str, list[Row]] = {}
    for figures in others:
        called = of.called(figures.options[of.option])
        row = published.row(figures, (figures.model, called), columns)
        models.setdefault(figures.model, []).append(row)
    for rows in models.values():
        yield from compared(rows, columns, across=of.across)


def compared(rows: Sequence[Row], columns: Sequence[Column], *, across: bool) -> list[Row]:
    """The first row as it is, the others with their change from it, the extremes marked.

    Args:
        rows: of one model, the base first.
        columns: of the rows.
        across: see `Variation`.
    """
    base, *others = rows
    changes = [
        [
            None if cell.value is None or first.value is None else cell.value - first.value
            for cell, first in zip(row.cells, base.cells, strict=True)
        ]
        for row in others
    ]
    if across:
        marks = [_marks_across(row, columns) for row in changes]
    else:
        down = [_marks([row[n] for row in changes], each) for n, each in enumerate(columns)]
        marks = [[column[n] for column in down] for n in range(len(others))]
    return [
        base,
        *(
            replace(
                row,
                cells=tuple(
                    replace(cell, change=change, mark=mark)
                    for cell, change, mark in zip(
                        row.cells, changes[number], marks[number], strict=True
                    )
                ),
            )
            for number, row in enumerate(others)
        ),
    ]


def _marks(changes: Sequence[float | None], column: Column) -> list[Mark]:
    """The largest loss and the largest gain of a column; of one change alone neither."""
    if len(changes) < 2:
        return [""] * len(changes)
    sign = -1 if column.metric in LOWER_IS_BETTER else 1
    told = [sign * change for change in changes if change is not None]
    worst, best = min(told, default=0.0), max(told, default=0.0)
    marks: list[Mark] = []
    for change in changes:
        value = None if change is None else sign * change
        if value == worst and worst < 0:
            marks.append("drop")
        else:
            marks.append("gain" if value == best and best > 0 else "")
    return marks


def _marks_across(changes: Sequence[float | None], columns: Sequence[Column]) -> list[Mark]:
    """Per metric the largest loss among the groups, and all that is no loss."""
    worst: dict[str, float] = {}
    told = []
    for change, column in zip(changes, columns, strict=True):
        sign = -1 if column.metric in LOWER_IS_BETTER else 1
        value = None if change is None else sign * change
        told.append(value)
        if column.group and value is not None:
            worst[column.metric] = min(value, worst.get(column.metric, 0.0))
    marks: list[Mark] = []
    for value, column in zip(told, columns, strict=True):
        if value is None or (value < 0 and value != worst.get(column.metric)):
            marks.append("")
        elif value < 0:
            marks.append("drop" if column.group else "")
        else:
            marks.append("gain")
    return marks
