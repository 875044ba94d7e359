"""Tables of totals: a row per run, a row per group, a row per value of an option, and causes.

The runs of a table are of one task and profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omnidata.analysis.runs import labels
from omnidata.analysis.slices import (
    RunSlice,
    Values,
    add_change,
    add_published,
    cell,
    compare_rows,
    group_by_option,
    main_metric,
    make_cell,
    make_table,
    metric_column,
    option_of,
    published_row,
    published_rows,
    reasons_apart,
    rows_of_groups,
    rows_of_runs,
    run_labels,
    run_names,
    slice_runs,
    specs,
)
from omnidata.errors import RunError, plural
from omnidata.run.run_files import Run
from omnidata.table import Cell, Column, Head, Row, Table, mark_best
from omnidata.tasks.published import TableSpec, Variation
from omnidata.types import CAUSES

_COUNTS: Mapping[str, str] = {"episodes": "Ep.", "steps": "Steps", "tasks": "Tasks", "rows": "Rows"}


# A row per run.


def overall(runs: Sequence[Run]) -> Table:
    """Return the totals with their intervals, and the number of steps, tasks or rows."""
    columns = [metric_column(runs[0], name) for name in runs[0].columns]
    columns += _count_columns([run.results["counts"] for run in runs])
    headers, names = run_labels(runs)
    rows = rows_of_runs(slice_runs(runs), runs, names, columns)
    heads = [Head("", tuple(columns))]
    what = "Overall, with 95 % intervals"
    notes = reasons_apart(runs)
    return make_table("overall", what, runs, headers, heads, rows, notes, intervals=True)


def by_spec(spec: TableSpec, runs: Sequence[Run], *, with_published: bool) -> Table:
    """Return a table with a row per run, in the shape of a paper's, whose rows may come first."""
    slices = slice_runs(runs, spec.axis, spec.groups, spec.whole)
    heads = _spec_heads(spec, runs[0], slices)
    columns = [column for head in heads for column in head.columns]
    keys = {(column.group, column.metric) for column in columns}
    settings = [run.asking.options.items() for run in runs]
    others, notes = published_rows(
        spec.name,
        runs,
        with_published,
        lambda row: (
            any(row.options.items() <= own for own in settings) and not keys.isdisjoint(row.values)
        ),
    )
    names = labels(runs)
    options = [
        ", ".join(f"{name}={value}" for name, value in row.options.items()) for row in others
    ]
    wide = 2 if any(setting for _, setting in names) or len({*options}) > 1 else 1
    rows = [
        published_row(row, (row.model, said)[:wide], columns)
        for row, said in zip(others, options, strict=True)
    ]
    rows += rows_of_runs(slices, runs, [name[:wide] for name in names], columns)
    apart = reasons_apart(runs)
    if not apart:
        rows = mark_best(columns, rows)
    notes = [*apart, *notes]
    if spec.rising:
        rows = [_compare_levels(row, columns, list(spec.groups)) for row in rows]
        notes = ["In brackets: the difference to the level before, in points.", *notes]
    return make_table(spec.name, spec.title, runs, ("Model", "Setting")[:wide], heads, rows, notes)


def _spec_heads(
    spec: TableSpec, run: Run, slices: Sequence[RunSlice], *, shares: bool = False
) -> list[Head]:
    """Return the columns; with `shares`, headers say each group's share of the run's episodes."""
    slices = [*slices[1:], slices[0]] if spec.whole_last else slices
    if spec.per == "metric":
        return [
            Head(
                name,
                tuple(metric_column(run, name, part.header, group=part.group) for part in slices),
            )
            for name in run.columns
        ]
    total = run.results["counts"].get("episodes")
    heads = []
    for part in slices:
        header, own = part.header, part.values[0].get("episodes")
        if shares and total and own is not None:
            header += f" ({100 * own / total:.1f}%)"
        names = list(run.columns)[: spec.most if part.group else None]
        columns = tuple(metric_column(run, name, group=part.group) for name in names)
        heads.append(Head(header, columns))
    return heads


def _compare_levels(row: Row, columns: Sequence[Column], levels: Sequence[str]) -> Row:
    before = dict(zip(levels[1:], levels, strict=False))
    by: dict[tuple[str | None, str], Cell] = {
        (c.group, c.metric): each for c, each in zip(columns, row.cells, strict=True)
    }
    bases = (by.get((before.get(column.group), column.metric)) for column in columns)
    cells = map(add_change, row.cells, bases)
    return Row(row.labels, tuple(cells), row.group, row.run, row.source)


# A row per group.


def by_axis(axis: str, runs: Sequence[Run], *, with_published: bool) -> Table:
    """Return a table with a row per group, e.g. per app as in OmniGUI's Figure 5.

    Columns of the paper may stand beside the runs'.
    """
    heads = []
    for run, name in zip(runs, run_names(runs), strict=True):
        path = str(run.path)
        columns = [metric_column(run, each, path=path) for each in run.columns]
        columns += _count_columns(list(run.results["by"].get(axis, {}).values()), path)
        heads.append(Head(name, tuple(columns)))
    order = group_order(axis, runs)
    rows = rows_of_groups(slice_runs(runs, axis, {name: name for name in order})[1:], heads)
    asking = runs[0].asking
    groups = {asking.benchmark.wordings.spelling(axis, name) for name in order}
    others, notes = published_rows(
        axis,
        runs,
        with_published,
        lambda row: (
            not groups.isdisjoint(
                asking.benchmark.wordings.spelling(axis, name) for name, _ in row.values
            )
        ),
    )
    for other in others:
        heads, rows = add_published(other, axis, runs[0], heads, rows)
    notes = [*reasons_apart(runs), *notes]
    return make_table(
        f"by-{axis}", f"Results by {axis}", runs, (axis.capitalize(),), heads, rows, notes
    )


def group_order(axis: str, runs: Sequence[Run]) -> list[str]:
    """Return the groups of an axis in the order of the data; apps by the first run's results."""
    names = [part.group for part in slice_runs(runs, axis)[1:]]
    if axis != "app":
        return names
    metric = main_metric(runs[0])
    values = {name: cell(runs[0], axis, name, metric).value for name in names}
    if metric in runs[0].lower_is_better:
        return sorted(names, key=lambda name: (values[name] is None, values[name] or 0.0, name))
    return sorted(names, key=lambda name: (-(values[name] or 0.0), name))


def count_names(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the units in which groups are counted; of steps and rows, which are equal, steps."""
    found = [name for name in _COUNTS if any(name in group for group in groups)]
    return [name for name in found if name != "rows" or "steps" not in found]


def _count_columns(groups: Sequence[Mapping[str, Any]], run: str = "") -> list[Column]:
    return [Column(_COUNTS[name], name, "count", run=run) for name in count_names(groups)]


# A row per value of an option, with its change from the usual way of asking.


def by_option(of: Variation, runs: Sequence[Run], *, with_published: bool) -> Table | None:
    """Return a table with a row per model and value of an option, each with its change.

    The paper's rows may come first. If no two runs differ only in the option, there is no table.
    """
    groups = group_by_option(of, runs)
    if not groups:
        return None
    every = [run for _, group in groups for run in group]
    spec = TableSpec(of.option, of.title, of.axis)
    if not of.axis:
        found, by = specs(every[0]), every[0].results["by"]
        spec = next((one for one in found if one.varied and by.get(one.axis)), found[0])
    slices = slice_runs(every, spec.axis, spec.groups, spec.whole)
    heads = _spec_heads(spec, every[0], slices, shares=True)
    columns = [column for head in heads for column in head.columns]
    others, notes = published_rows(of.option, runs, with_published)
    by_model: dict[str, list[Row]] = {}
    for other in others:
        row = published_row(other, (other.model, of.wording(of.value(other.options))), columns)
        by_model.setdefault(other.model, []).append(row)
    names = [(name, value) for name, group in groups for value in _value_names(of, group)]
    own = iter(rows_of_runs(slices, every, names, columns))
    parts = [*by_model.values(), *([next(own) for _ in group] for _, group in groups)]
    return make_table(
        of.option,
        of.title + (f" across {spec.varied}" if spec.varied else ""),
        runs,
        ("Model", of.label),
        heads,
        [row for part in parts for row in compare_rows(part, columns, across=of.across)],
        [f"In brackets: the difference to {of.wording(of.base)}, in points.", *notes],
    )


def _value_names(of: Variation, group: Sequence[Run]) -> list[str]:
    """Return each run's value, the options besides in which the runs differ, and what else does."""
    besides: list[dict[str, str]] = []
    for run in group:
        options = run.settings.get("options", {}) if option_of(of, run) != of.base else {}
        besides.append({name: options[name] for name in sorted(of.besides) if name in options})
    several = {
        name for name in of.besides if len({each[name] for each in besides if name in each}) > 1
    }
    names = [
        ", ".join(
            [of.wording(option_of(of, run))]
            + [f"{name}={value}" for name, value in each.items() if name in several]
        )
        for run, each in zip(group, besides, strict=True)
    ]
    alike = {name: [n for n, other in enumerate(names) if other == name] for name in names}
    for numbers in alike.values():
        if len(numbers) > 1:
            for number, (_, text) in zip(numbers, labels([group[n] for n in numbers]), strict=True):
                names[number] += f", {text}"
    return names


# Causes of wrong answers, as OmniGUI's section 4.4, OmniBench's Figure 7 and OSWorld's appendix D.4
# count them, with names that all benchmarks share.

_CAUSE_NOTES = (
    "Wrong: answers that are not right. Causes: shares of these, which add up to 100 %.",
    "An answer that differs in several things has the first of them as its cause.",
    "By what was right: a row for what is wrong at least once.",
)


def by_cause(runs: Sequence[Run], by: Sequence[str] = ()) -> list[Table]:
    """Return the causes of wrong answers over all steps, by each axis, and by the right answer.

    Raises:
        RunError: a run's scores have no causes.
    """
    for run in runs:
        if "causes" not in run.results:
            answers = "PREDICTIONS" if run.imported else run.path
            rollouts = bool(run.offline_scorer)
            raise RunError(
                "the scores do not say why answers are wrong",
                where=str(run.path),
                expected="scores of a model's answers"
                if rollouts
                else "scores that this version wrote",
                remedy="leave --errors out"
                if rollouts
                else f"score it again: omnidata score {run.task} DATA {answers} --out {run.path}",
            )
    causes = [run.results["causes"] for run in runs]
    parts = [("", "", [{"": each["overall"]} for each in causes])]
    parts += [
        (axis, axis.capitalize(), [each["by"].get(axis, {}) for each in causes]) for axis in by
    ]
    parts.append(("target", "What was right", [each["by_target"] for each in causes]))
    return [_cause_table(*part, runs) for part in parts if any(part[2])]


def _cause_table(
    axis: str, header: str, counts: Sequence[Mapping[str, Mapping[str, int]]], runs: Sequence[Run]
) -> Table:
    """Return a table with a row per group and run; `counts` are by run, group and cause."""
    present = {cause for groups in counts for own in groups.values() for cause in own}
    causes = [cause for cause in CAUSES if cause in present]
    columns = [Column("Wrong", "wrong", "count")]
    columns += [Column(CAUSES[cause].partition(":")[0], cause) for cause in causes]

    def shares(own: Mapping[str, int]) -> Values:
        wrong = sum(own.values())
        return {"wrong": wrong} | {cause: own.get(cause, 0) / wrong for cause in causes if wrong}

    headers, names = run_labels(runs)
    rows = [
        Row(
            (*filter(None, [group]), *name),
            tuple(make_cell(shares(own[group]), column.metric) for column in columns),
            group=group,
            run=str(run.path),
        )
        for group in dict.fromkeys(group for own in counts for group in own)
        for run, name, own in zip(runs, names, counts, strict=True)
        if group in own
    ]
    return make_table(
        f"errors-by-{axis}" if axis else "errors",
        "Why answers are wrong" + (f", by {header.lower()}" if header else ""),
        runs,
        (*filter(None, [header]), *headers),
        [Head("", tuple(columns))],
        rows,
        [*([] if axis else _notes_on_places(runs)), *_CAUSE_NOTES],
    )


def _notes_on_places(runs: Sequence[Run]) -> Iterator[str]:
    """Yield in which other units wrong places would be right, and how often by chance."""
    for run in runs:
        if not (places := run.results.get("places")):
            continue
        readings = ", ".join(f"{count:,} as {name}" for name, count in places["readings"].items())
        note = f"{run.name}: {plural(places['missed'], 'answer')} at a wrong place; right if read "
        note += f"otherwise: {readings}; "
        if chance := places["by_chance"]:
            shares = ", ".join(f"{100 * share:.1f} % {CAUSES[c]}" for c, share in chance.items())
            yield f"{note}by chance (right answers to other steps): {shares}."
        else:
            yield f"{note}chance is unknown, because all targets are alike."
