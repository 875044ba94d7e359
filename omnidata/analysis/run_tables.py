"""Tables with a row per run, and tables with a row per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnidata.analysis import table_specs
from omnidata.analysis.runs import grouped, labels, unlike
from omnidata.analysis.table_specs import DEPENDENCY, Shape, shapes
from omnidata.analysis.tables import (
    LOWER_IS_BETTER,
    Cell,
    Column,
    Head,
    Mark,
    Row,
    Table,
    Unit,
    marked_best,
)
from omnidata.loaders.apps import app_key
from omnidata.run.scoring import Run

_COUNTS: Mapping[str, str] = {"episodes": "Ep.", "steps": "Steps", "tasks": "Tasks", "rows": "Rows"}


def cell(run: Run, axis: str, group: str, metric: str) -> Cell:
    """A number of `results.json`.

    Args:
        run: the run.
        axis: of `by`.
        group: on the axis; empty: all steps.
        metric: or a count.
    """
    results = run.results
    if group:
        found: Mapping[str, Any] = results["by"].get(axis, {}).get(group, {})
        intervals = found.get("ci95") or {}
    else:
        found = {**results["counts"], **results["overall"]}
        intervals = results.get("ci95") or {}
    ends = intervals.get(metric)
    return Cell(found.get(metric), (ends[0], ends[1]) if ends else None)


def title(what: str, runs: Sequence[Run]) -> str:
    """A table's title; the profile is always named."""
    return f"{what}: {runs[0].task} by {runs[0].profile}"


def by_shape(shape: Shape, runs: Sequence[Run], *, with_published: bool) -> Table:
    """A row per run.

    Args:
        shape: which columns.
        runs: of one task and profile.
        with_published: whether rows of the paper come first.
    """
    heads = shape.heads(runs)
    columns = tuple(column for head in heads for column in head.columns)
    named = labels(runs)
    others = table_specs.figures(runs[0].task, shape.name, runs) if with_published else []
    others = [row for row in others if any((c.group, c.metric) in row.values for c in columns)]
    apart = _apart(runs)
    asked = {_options(row.options) for row in others}
    has_setting = any(setting for _, setting in named) or len(asked) > 1
    wide = 2 if has_setting else 1
    rows = [
        table_specs.row(row, (row.model, _options(row.options))[:wide], columns) for row in others
    ]
    rows += [
        Row(
            label[:wide],
            tuple(cell(run, shape.axis, column.group, column.metric) for column in columns),
            run=str(run.path),
        )
        for label, run in zip(named, runs, strict=True)
    ]
    return Table(
        shape.name,
        title(shape.title, runs),
        runs[0].task,
        runs[0].profile,
        ("Model", "Setting")[:wide],
        heads,
        tuple(rows if apart else marked_best(columns, rows)),
        (*apart, *of_published(others, runs)),
    )


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


def _apart(runs: Sequence[Run]) -> tuple[str, ...]:
    """What the reader must know where rows are not about the same steps."""
    return tuple(f"No ranking: {why}." for why in unlike(runs))


def of_published(rows: Sequence[table_specs.Figures], runs: Sequence[Run]) -> tuple[str, ...]:
    """What the reader must know where published figures are not what the runs' are."""
    told = []
    steps = {row.steps for row in rows if row.steps}
    own = {size(run) for run in runs}
    if steps and own != steps:
        here = ", ".join(f"{number:,}" for number in sorted(own))
        told.append(f"Published on {max(steps):,} steps; the runs here on {here}.")
    progress = any(metric == "GP" for row in rows for _, metric in row.values)
    if progress and runs[0].profile == "omnigui-paper":
        told.append(
            "GP here is the ratio, as the paper describes it; the published GP can only be the "
            "prefix. Beside it belongs GP_prefix, which is the GP of the profile omnigui-release."
        )
    return tuple(told)


def size(run: Run) -> int:
    """How many steps, tasks or rows were judged."""
    counts = run.results["counts"]
    return int(next((counts[name] for name in ("steps", "tasks", "rows") if name in counts), 0))


def overall(runs: Sequence[Run]) -> Table:
    """The totals with their intervals, and over how much they go."""
    units = runs[0].columns
    counts = counted([run.results["counts"] for run in runs])
    columns = [Column(name, name, unit) for name, unit in units.items()]
    columns += [Column(_COUNTS[name], name, "count") for name in counts]
    named = labels(runs)
    wide = 2 if any(setting for _, setting in named) else 1
    rows = tuple(
        Row(
            label[:wide],
            tuple(cell(run, "", "", column.metric) for column in columns),
            run=str(run.path),
        )
        for label, run in zip(named, runs, strict=True)
    )
    return Table(
        "overall",
        title("Overall, with 95 % intervals", runs),
        runs[0].task,
        runs[0].profile,
        ("Model", "Setting")[:wide],
        (Head("", tuple(columns)),),
        rows,
        _apart(runs),
    )


def by_axis(axis: str, runs: Sequence[Run], *, with_published: bool) -> Table:
    """A row per group, e.g. per app, as in the paper's Figure 5; the best at the top.

    Args:
        axis: of `by` in `results.json`.
        runs: of one task and profile.
        with_published: whether columns of the paper stand beside them.
    """
    heads = [_of_run(run, axis, label) for run, label in zip(runs, labels(runs), strict=True)]
    rows = []
    for group in ranked(axis, runs):
        cells = tuple(
            cell(run, axis, group, column.metric)
            for run, head in zip(runs, heads, strict=True)
            for column in head.columns
        )
        rows.append(Row((group,), cells, group=group))
    notes = _apart(runs)
    if with_published:
        apps = {app_key(row.group) for row in rows}
        others = [
            each
            for each in table_specs.figures(runs[0].task, axis)
            if apps & {app_key(group) for group, _ in each.values}
        ]
        for figures in others:
            heads, rows = _beside(figures, runs[0], heads, rows)
        notes += of_published(others, runs)
    name, what = f"by-{axis}", f"Results by {axis}"
    label = axis.capitalize()
    return Table(
        name, title(what, runs), runs[0].task, runs[0].profile, (label,), tuple(heads),
        tuple(rows), notes,
    )  # fmt: skip


def _of_run(run: Run, axis: str, label: tuple[str, str]) -> Head:
    groups = list(run.results["by"].get(axis, {}).values())
    counts = counted(groups)
    path = str(run.path)
    return Head(
        ", ".join(filter(None, label)),
        (
            *(Column(name, name, unit, run=path) for name, unit in run.columns.items()),
            *(Column(_COUNTS[name], name, "count", run=path) for name in counts),
        ),
    )


def counted(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """What groups are counted in; rows of AgentStudio are its steps."""
    found = [name for name in _COUNTS if any(name in group for group in groups)]
    return [name for name in found if name != "rows" or "steps" not in found]


def ranked(axis: str, runs: Sequence[Run]) -> list[str]:
    """The groups: in the data's order where they have one, apps by the first run's results."""
    names = list(dict.fromkeys(name for run in runs for name in run.results["by"].get(axis, {})))
    if axis != "app":
        return names
    metric = main_metric(runs[0])
    values = {name: cell(runs[0], axis, name, metric).value for name in names}
    return sorted(names, key=lambda name: (-(values[name] or 0.0), name))


def main_metric(run: Run) -> str:
    """The metric that figures show and that groups are ordered by: EM where there is one."""
    return "EM" if "EM" in run.columns else next(iter(run.columns))


def _beside(
    figures: table_specs.Figures, run: Run, heads: Sequence[Head], rows: Sequence[Row]
) -> tuple[list[Head], list[Row]]:
    """The tables with columns of published figures, whose apps may be spelled otherwise."""
    metrics = [name for name in run.columns if any(name == metric for _, metric in figures.values)]
    units: list[Unit] = [run.columns[name] for name in metrics]
    columns = [
        Column(name, name, unit, source=figures.source)
        for name, unit in zip(metrics, units, strict=True)
    ]
    keyed = {(app_key(group), metric): value for (group, metric), value in figures.values.items()}
    head = Head(figures.model, tuple(columns))
    wider = [
        Row(
            row.labels,
            (*row.cells, *(Cell(keyed.get((app_key(row.group), name))) for name in metrics)),
            group=row.group,
        )
        for row in rows
    ]
    return [*heads, head], wider


# Tables of runs that differ in one thing, with the difference to the usual way of asking.


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
    others = table_specs.figures(runs[0].task, of.option) if with_published else []
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
    of: Variation, others: Sequence[table_specs.Figures], columns: Sequence[Column]
) -> Iterator[Row]:
    models: dict[str, list[Row]] = {}
    for figures in others:
        called = of.called(figures.options[of.option])
        row = table_specs.row(figures, (figures.model, called), columns)
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
