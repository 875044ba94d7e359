"""Tables with a row per run, and tables with a row per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from omnidata.analysis.runs import labels, unlike
from omnidata.analysis.tables import (
    Cell,
    CellUnit,
    Column,
    Head,
    Row,
    Table,
    marked_best,
)
from omnidata.run.run_files import Run
from omnidata.tasks.published import PublishedRow, TableSpec

_COUNTS: Mapping[str, str] = {"episodes": "Ep.", "steps": "Steps", "tasks": "Tasks", "rows": "Rows"}


def specs(run: Run) -> tuple[TableSpec, ...]:
    """The tables that the run's task has for its profile, the main one first."""
    by = run.results["by"]
    found: dict[str, TableSpec] = {}
    for spec in run.benchmark.tables:
        if spec.profiles and run.profile not in spec.profiles:
            continue
        held = found.setdefault(spec.name, spec)
        if held.axis not in by and spec.axis in by:
            found[spec.name] = spec
    main = found.pop("main", None) or TableSpec("main", "Main results", next(iter(by), ""))
    return (main, *found.values())


def heads_of(
    spec: TableSpec, runs: Sequence[Run], *, shares: Run | None = None
) -> tuple[Head, ...]:
    """The columns that any of the runs has something for.

    Args:
        spec: the table.
        runs: of one task and profile.
        shares: the run whose shares of episodes stand beside the groups' headers.
    """
    units = runs[0].columns
    shown = list(units)[: spec.most]
    groups = [("", spec.whole), *present(spec, runs)]
    if spec.whole_last:
        groups = groups[1:] + groups[:1]
    if spec.per == "metric":
        return tuple(
            Head(
                metric,
                tuple(Column(header, metric, units[metric], name) for name, header in groups),
            )
            for metric in units
        )
    return tuple(
        Head(
            header + (_share(shares, spec.axis, name) if shares else ""),
            tuple(
                Column(metric, metric, units[metric], name) for metric in (shown if name else units)
            ),
        )
        for name, header in groups
    )


def present(spec: TableSpec, runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """The groups that a run has, and their headers."""
    found = [name for run in runs for name in run.results["by"].get(spec.axis, {})]
    names = dict.fromkeys([name for name in spec.groups if name in found] + found)
    for name in names:
        yield name, spec.groups.get(name, name)


def _share(run: Run, axis: str, group: str) -> str:
    """The group's share of episodes, for the header."""
    of = run.results["by"].get(axis, {}).get(group, {}) if group else run.results["counts"]
    total = run.results["counts"].get("episodes")
    part = of.get("episodes")
    return f" ({100 * part / total:.1f}%)" if total and part is not None else ""


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


def by_spec(spec: TableSpec, runs: Sequence[Run], *, with_published: bool) -> Table:
    """A row per run.

    Args:
        spec: which columns.
        runs: of one task and profile.
        with_published: whether rows of the paper come first.
    """
    heads = heads_of(spec, runs)
    columns = tuple(column for head in heads for column in head.columns)
    named = labels(runs)
    others: list[PublishedRow] = []
    notes: tuple[str, ...] = ()
    if with_published:
        found = runs[0].benchmark.published.of(spec.name)
        others = [row for row in with_rules(found, runs) if any(_asks(run, row) for run in runs)]
        notes = of_other_rules(found, runs)
    others = [row for row in others if any((c.group, c.metric) in row.values for c in columns)]
    apart = _apart(runs)
    asked = {_options(row.options) for row in others}
    has_setting = any(setting for _, setting in named) or len(asked) > 1
    wide = 2 if has_setting else 1
    rows = [
        published_row(row, (row.model, _options(row.options))[:wide], columns) for row in others
    ]
    rows += [
        Row(
            label[:wide],
            tuple(cell(run, spec.axis, column.group, column.metric) for column in columns),
            run=str(run.path),
        )
        for label, run in zip(named, runs, strict=True)
    ]
    shown = rows if apart else marked_best(columns, rows)
    notes = (*apart, *of_published(others, runs), *notes)
    if spec.rising:
        shown = [_from_level_to_level(row, columns, list(spec.groups)) for row in shown]
        notes = ("In brackets: the difference to the level before, in points.", *notes)
    return Table(
        spec.name,
        title(spec.title, runs),
        runs[0].task,
        runs[0].profile,
        ("Model", "Setting")[:wide],
        heads,
        tuple(shown),
        notes,
    )


def _from_level_to_level(row: Row, columns: Sequence[Column], levels: Sequence[str]) -> Row:
    """The row with each level's change from the level before it, where both are known."""
    before = dict(zip(levels[1:], levels, strict=False))
    values = {(c.group, c.metric): e.value for c, e in zip(columns, row.cells, strict=True)}
    cells = []
    for column, each in zip(columns, row.cells, strict=True):
        last = values.get((before.get(column.group, ""), column.metric))
        if column.group in before and each.value is not None and last is not None:
            each = replace(each, change=each.value - last)
        cells.append(each)
    return replace(row, cells=tuple(cells))


def _asks(run: Run, row: PublishedRow) -> bool:
    """Whether the row is of the run's own setting."""
    return row.options.items() <= run.benchmark.options.items()


def published_row(row: PublishedRow, labels: tuple[str, ...], columns: Sequence[Column]) -> Row:
    """A published row as a line of a table; a dash where nothing is published."""
    keys = [(column.group, column.metric) for column in columns]
    cells = tuple(Cell(row.values.get(key), digits=row.digits.get(key)) for key in keys)
    return Row(labels, cells, source=row.source)


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


def _apart(runs: Sequence[Run]) -> tuple[str, ...]:
    """What the reader must know where rows are not about the same steps."""
    return tuple(f"No ranking: {why}." for why in unlike(runs))


def with_rules(rows: Sequence[PublishedRow], runs: Sequence[Run]) -> list[PublishedRow]:
    """The published rows that were scored by the rules of the runs' profile."""
    return [row for row in rows if row.has_rules_of(runs[0].profile)]


def of_other_rules(rows: Sequence[PublishedRow], runs: Sequence[Run]) -> tuple[str, ...]:
    """Say which published rows are not shown, and which profile shows them."""
    profile, own = runs[0].profile, runs[0].benchmark.profiles
    other: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if not row.has_rules_of(profile):
            sources = other.setdefault(tuple(row.profiles), [])
            sources += [row.source] * (row.source not in sources)
    notes = []
    for profiles, sources in other.items():
        names = " or ".join(profiles)
        note = f"Not shown: {' and '.join(sources)}, scored by the rules of {names}"
        of_rollouts = profile in own and own.keys().isdisjoint(profiles)
        notes.append(
            f"{note}, which judge rollouts instead of steps."
            if of_rollouts
            else f"{note}. Fix: score the runs with --profile {names}."
        )
    return tuple(notes)


def of_published(rows: Sequence[PublishedRow], runs: Sequence[Run]) -> tuple[str, ...]:
    """What the reader must know where published figures are not what the runs' are."""
    told = []
    steps = {row.steps for row in rows if row.steps}
    own = {size(run) for run in runs}
    if steps and own != steps:
        here = ", ".join(f"{number:,}" for number in sorted(own))
        told.append(f"Published on {max(steps):,} {size_unit(runs[0])}; the runs here on {here}.")
    shown = {metric for row in rows for _, metric in row.values}
    notes = runs[0].benchmark.published.notes.get(runs[0].profile, {})
    told += [note for metric, note in notes.items() if metric in shown]
    return tuple(told)


def size(run: Run) -> int:
    """How many steps, tasks or rows were judged."""
    return int(run.results["counts"].get(size_unit(run), 0))


def size_unit(run: Run) -> str:
    """What its size counts."""
    counts = run.results["counts"]
    return next((name for name in ("steps", "tasks", "rows") if name in counts), "steps")


def overall(runs: Sequence[Run]) -> Table:
    """The totals with their intervals, and over how much they go."""
    units = runs[0].columns
    counts = counted([run.results["counts"] for run in runs])
    columns = [Column(name, name, unit) for name, unit in units.items()]
    columns += [Column(_COUNTS[name], name, "count") for name in counts]
    headers, named = named_rows(runs)
    rows = tuple(
        Row(
            label,
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
        headers,
        (Head("", tuple(columns)),),
        rows,
        _apart(runs),
        intervals=True,
    )


def named_rows(runs: Sequence[Run]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The headers of the label columns, and each run's labels; settings only where they differ."""
    named = labels(runs)
    wide = 2 if any(setting for _, setting in named) else 1
    return ("Model", "Setting")[:wide], [label[:wide] for label in named]


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
        task = runs[0].benchmark
        groups = {task.spelling(axis, row.group) for row in rows}
        found = task.published.of(axis)
        others = [
            each
            for each in with_rules(found, runs)
            if groups & {task.spelling(axis, group) for group, _ in each.values}
        ]
        for other in others:
            heads, rows = beside(other, axis, runs[0], heads, rows)
        notes += (*of_published(others, runs), *of_other_rules(found, runs))
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
    """What groups are counted in; `rows` are left out where steps are counted, which they are."""
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


def beside(
    other: PublishedRow, axis: str, run: Run, heads: Sequence[Head], rows: Sequence[Row]
) -> tuple[list[Head], list[Row]]:
    """The tables with columns of published values, whose groups may be spelled otherwise."""
    metrics = [name for name in run.columns if any(name == metric for _, metric in other.values)]
    units: list[CellUnit] = [run.columns[name] for name in metrics]
    columns = [
        Column(name, name, unit, source=other.source)
        for name, unit in zip(metrics, units, strict=True)
    ]
    key = partial(run.benchmark.spelling, axis)
    keyed = {
        (key(group), metric): Cell(value, digits=other.digits.get((group, metric)))
        for (group, metric), value in other.values.items()
    }
    head = Head(other.model, tuple(columns))
    wider = [
        Row(
            row.labels,
            (*row.cells, *(keyed.get((key(row.group), name), Cell(None)) for name in metrics)),
            group=row.group,
        )
        for row in rows
    ]
    return [*heads, head], wider
