"""Slice runs by an axis, an option or a tag, and lay out the slices as rows or columns.

The runs of a table are of one task and profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from omnidata.analysis.alignment import check_data, find_data
from omnidata.analysis.runs import group_alike, labels, unlike
from omnidata.errors import OmnidataError, RunError
from omnidata.run.run_files import Run
from omnidata.table import Cell, Column, Head, Mark, Row, Table
from omnidata.tasks.published import PublishedRow, TableSpec, Variation
from omnidata.types import LoadedDataset, Step

Values = Mapping[str, Any]
"""Metric or count -> its value, and under `ci95` metric -> both ends of its interval."""


class RunSlice(NamedTuple):
    """A part of the steps of each run.

    Attributes:
        group: its name; empty for all steps.
        header: its name as printed.
        values: of each run; empty where the run has no such steps.
    """

    group: str
    header: str
    values: Sequence[Values]


def slice_runs(
    runs: Sequence[Run], axis: str = "", names: Mapping[str, str] = {}, whole: str = "Overall"
) -> list[RunSlice]:
    """Return the slice of all steps, and one for each group of an axis of `results.json`.

    Args:
        runs: of the table.
        axis: e.g. "app"; empty for all steps only.
        names: group -> header; other groups follow under their own names.
        whole: header of the slice of all steps.
    """
    present = dict.fromkeys(name for run in runs for name in run.results["by"].get(axis, {}))
    groups = dict.fromkeys([*(name for name in names if name in present), *present])
    return [
        RunSlice(group, header, [_values(run, axis, group) for run in runs])
        for group, header in [("", whole), *((name, names.get(name, name)) for name in groups)]
    ]


def slice_steps(steps: Sequence[Step], spec: TableSpec) -> list[tuple[str, str, list[Step]]]:
    """Return group, header and steps of all steps, and of each value of the table's tag."""
    by: dict[str, list[Step]] = {name: [] for name in spec.groups}
    for step in steps:
        if group := step.tags.get(spec.axis):
            by.setdefault(group, []).append(step)
    parts = [(group, spec.groups.get(group, group), own) for group, own in by.items() if own]
    return [("", spec.whole, list(steps)), *parts]


def group_by_option(of: Variation, runs: Sequence[Run]) -> list[tuple[str, list[Run]]]:
    """Return name and runs of each group of runs that differ in one option, the base first.

    A group has a run with the option's base value and one with another value.
    """
    ranks = {value: number for number, value in enumerate(of.values)}
    groups = []
    for group in group_alike(runs, frozenset(f"options.{n}" for n in {of.option, *of.besides})):
        values = {option_of(of, run) for run in group}
        if of.base in values and len(values) > 1:
            groups.append(sorted(group, key=lambda run: ranks.get(option_of(of, run), len(ranks))))
    return list(zip(run_names([group[0] for group in groups]), groups, strict=True))


def option_of(of: Variation, run: Run) -> str:
    """Return the run's value of an option."""
    return of.value(run.settings.get("options", {}))


def specs(run: Run) -> tuple[TableSpec, ...]:
    """Return the tables that the run's task has for its profile, the main one first."""
    by = run.results["by"]
    found: dict[str, TableSpec] = {}
    for spec in run.asking.benchmark.paper.tables:
        if spec.profiles and run.profile not in spec.profiles:
            continue
        first = found.setdefault(spec.name, spec)
        if first.axis not in by and spec.axis in by:
            found[spec.name] = spec
    main = found.pop("main", None) or TableSpec("main", "Main results", next(iter(by), ""))
    return (main, *found.values())


# Cells, rows and tables.


def cell(run: Run, axis: str, group: str, metric: str) -> Cell:
    """Return a metric or a count of `results.json`; an empty group is all steps."""
    return make_cell(_values(run, axis, group), metric)


def _values(run: Run, axis: str, group: str) -> Values:
    results = run.results
    if group:
        found: Values = results["by"].get(axis, {}).get(group, {})
        return found
    return {**results["counts"], **results["overall"], "ci95": results.get("ci95")}


def make_cell(values: Values, metric: str) -> Cell:
    """Return a value and its interval; an empty cell where there is none."""
    ends = (values.get("ci95") or {}).get(metric)
    return Cell(values.get(metric), (ends[0], ends[1]) if ends else None)


def rows_of_runs(
    slices: Sequence[RunSlice],
    runs: Sequence[Run],
    names: Sequence[tuple[str, ...]],
    columns: Sequence[Column],
) -> list[Row]:
    """Return a row per run; each column shows the slice of its group."""
    by = {part.group: part.values for part in slices}
    return [
        Row(
            label,
            tuple(make_cell(by[column.group][number], column.metric) for column in columns),
            run=str(run.path),
        )
        for number, (run, label) in enumerate(zip(runs, names, strict=True))
    ]


def rows_of_groups(slices: Sequence[RunSlice], heads: Sequence[Head]) -> list[Row]:
    """Return a row per slice; the heads are one per run."""
    return [
        Row(
            (part.header,),
            tuple(
                make_cell(values, column.metric)
                for values, head in zip(part.values, heads, strict=True)
                for column in head.columns
            ),
            group=part.group,
        )
        for part in slices
    ]


def make_table(
    name: str,
    what: str,
    runs: Sequence[Run],
    labels: Sequence[str],
    heads: Sequence[Head],
    rows: Sequence[Row],
    notes: Sequence[str] = (),
    *,
    intervals: bool = False,
) -> Table:
    """Return a table of runs of one task and profile, which its title names."""
    task, profile = runs[0].task, runs[0].profile
    head = title(what, runs)
    return Table(
        name,
        head,
        task,
        profile,
        tuple(labels),
        tuple(heads),
        tuple(rows),
        tuple(notes),
        intervals=intervals,
    )


def title(what: str, runs: Sequence[Run]) -> str:
    """Return a table's title, with task and profile."""
    return f"{what}: {runs[0].task} by {runs[0].profile}"


def run_names(runs: Sequence[Run]) -> list[str]:
    """Return model and setting of each run in one text."""
    return [", ".join(filter(None, label)) for label in labels(runs)]


def run_labels(runs: Sequence[Run]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headers of the label columns, and each run's labels; settings if they differ."""
    found = labels(runs)
    wide = 2 if any(setting for _, setting in found) else 1
    return ("Model", "Setting")[:wide], [label[:wide] for label in found]


def metric_column(
    run: Run, metric: str, header: str = "", *, group: str = "", path: str = "", source: str = ""
) -> Column:
    """Return a column of one of a run's metrics, with the unit and direction of its profile.

    Args:
        run: of the table.
        metric: one of `run.columns`.
        header: as printed; the metric if empty.
        group: as `Column.group`.
        path: as `Column.run`.
        source: as `Column.source`.
    """
    lower = metric in run.lower_is_better
    return Column(header or metric, metric, run.columns[metric], group, path, source, lower)


def main_metric(run: Run) -> str:
    """Return the metric of figures and orders: the share of right steps, or the first column."""
    own = step_metric(run)[0]
    return own if own in run.columns else next(iter(run.columns))


def step_metric(run: Run) -> tuple[str, str]:
    """Return the share of right steps, and the value that says whether a step is right."""
    profile = run.asking.profiles.get(run.profile)
    return profile.step_metric if profile else ("exact_match", "exact_match")


def size(run: Run) -> int:
    """Return how many steps, tasks or rows were judged."""
    return int(run.results["counts"].get(_size_unit(run), 0))


def _size_unit(run: Run) -> str:
    counts = run.results["counts"]
    return next((name for name in ("steps", "tasks", "rows") if name in counts), "steps")


def reasons_apart(runs: Sequence[Run]) -> list[str]:
    """Return notes on rows that are not about the same steps, and so are not ranked."""
    return [f"No ranking: {why}." for why in unlike(runs)]


# Changes from a row or a column, and marks.


def add_change(of: Cell, base: Cell | None, mark: Mark = "") -> Cell:
    """Return the cell with its change from another one; as it is if a value is missing."""
    if base is None or of.value is None or base.value is None:
        return of
    return replace(of, change=of.value - base.value, mark=mark)


def compare_rows(rows: Sequence[Row], columns: Sequence[Column], *, across: bool) -> list[Row]:
    """Return the rows, all but the first with their changes from it; the extremes are marked.

    The largest loss of a column is a drop, its largest gain a gain, where there are two rows or
    more beside the base. Across groups, the largest loss among a row's groups of one metric is a
    drop, and everything that is no loss is a gain.

    Args:
        rows: of one model, the base first.
        columns: of the rows.
        across: see `Variation`.
    """
    base, *others = rows
    gains = [
        [_gain(*each) for each in zip(row.cells, base.cells, columns, strict=True)]
        for row in others
    ]

    def mark(own: Sequence[float | None], place: int) -> Mark:
        column = columns[place]
        if across:
            same = [c.group != "" and c.metric == column.metric for c in columns]
            pool = [gain for gain, is_same in zip(own, same, strict=True) if is_same]
            pool = pool if column.group else []
        else:
            pool = [row[place] for row in gains] if len(others) > 1 else []
        values = [gain for gain in pool if gain is not None]
        gain = own[place]
        if gain is None:
            return ""
        if gain < 0:
            return "drop" if values and gain == min(values) else ""
        return "gain" if across or (values and gain == max(values) > 0) else ""

    return [
        base,
        *(
            replace(
                row,
                cells=tuple(
                    add_change(each, first, mark(own, place))
                    for place, (each, first) in enumerate(zip(row.cells, base.cells, strict=True))
                ),
            )
            for row, own in zip(others, gains, strict=True)
        ),
    ]


def _gain(of: Cell, base: Cell, column: Column) -> float | None:
    change = add_change(of, base).change
    lower = column.lower_is_better
    return -change if change is not None and lower else change


# Published rows.


def published_rows(
    name: str,
    runs: Sequence[Run],
    with_published: bool,
    wanted: Callable[[PublishedRow], bool] = lambda row: True,
) -> tuple[list[PublishedRow], list[str]]:
    """Return the wanted published rows that follow the rules of the runs' profile, and notes."""
    if not with_published:
        return [], []
    printed = runs[0].asking.benchmark.paper.published().of(name)
    rows = [row for row in printed if row.has_rules_of(runs[0].profile) and wanted(row)]
    return rows, [*_notes_on_published(rows, runs), *_notes_on_other_rules(printed, runs)]


def _notes_on_published(rows: Sequence[PublishedRow], runs: Sequence[Run]) -> Iterator[str]:
    steps = {row.steps for row in rows if row.steps}
    own = {size(run) for run in runs}
    if steps and own != steps:
        here = ", ".join(f"{number:,}" for number in sorted(own))
        yield f"Published on {max(steps):,} {_size_unit(runs[0])}; the runs here on {here}."
    metrics = {metric for row in rows for _, metric in row.values}
    notes = runs[0].asking.benchmark.paper.published().notes.get(runs[0].profile, {})
    yield from (note for metric, note in notes.items() if metric in metrics)


def _notes_on_other_rules(rows: Sequence[PublishedRow], runs: Sequence[Run]) -> Iterator[str]:
    profile, own = runs[0].profile, runs[0].asking.profiles
    sources: dict[tuple[str, ...], dict[str, None]] = {}
    for row in rows:
        if not row.has_rules_of(profile):
            sources.setdefault(tuple(row.profiles), {})[row.source] = None
    for profiles, names in sources.items():
        rules = " or ".join(profiles)
        note = f"Not shown: {' and '.join(names)}, scored by the rules of {rules}"
        if profile in own and own.keys().isdisjoint(profiles):
            yield f"{note}, which judge rollouts instead of steps."
        else:
            yield f"{note}. Fix: score the runs with --profile {rules}."


def published_row(row: PublishedRow, labels: tuple[str, ...], columns: Sequence[Column]) -> Row:
    """Return a published row as a row of a table; a cell without a published value is empty."""
    keys = [(column.group, column.metric) for column in columns]
    cells = tuple(Cell(row.values.get(key), digits=row.digits.get(key)) for key in keys)
    return Row(labels, cells, source=row.source)


def add_published(
    other: PublishedRow, axis: str, run: Run, heads: Sequence[Head], rows: Sequence[Row]
) -> tuple[list[Head], list[Row]]:
    """Return a table's heads and rows with columns of published values beside them.

    Published groups may be spelled differently.
    """
    metrics = [name for name in run.columns if any(name == metric for _, metric in other.values)]
    columns = [metric_column(run, name, source=other.source) for name in metrics]
    key = partial(run.asking.benchmark.wordings.spelling, axis)
    cells = {
        (key(group), metric): Cell(value, digits=other.digits.get((group, metric)))
        for (group, metric), value in other.values.items()
    }
    wider = []
    for row in rows:
        more = (cells.get((key(row.group), metric), Cell(None)) for metric in metrics)
        wider.append(replace(row, cells=(*row.cells, *more)))
    return [*heads, Head(other.model, tuple(columns))], wider


# The data of a run, for tables of single steps.


class NotTracedError(RunError):
    """The verdicts, the order or the texts of a run's steps are unknown."""


def run_data(run: Run, known: dict[Path, LoadedDataset]) -> LoadedDataset:
    """Return the data of a run; `known` holds loaded data by their path, and gets the run's.

    Raises:
        NotTracedError: the data are missing or have changed.
    """
    try:
        place = find_data([run])
        if place not in known:
            known[place] = run.asking.load(place, check_media=False)
        check_data(run, known[place])
    except OmnidataError as error:
        raise NotTracedError(
            error.what,
            where=error.where,
            expected="the data where run.json says that they lie, as the run was made on them",
            remedy="put them back",
        ) from None
    return known[place]
