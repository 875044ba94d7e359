"""Totals of runs with errata, beside those without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnidata.analysis.alignment import load_data, verdict_columns
from omnidata.analysis.slices import make_cell, make_table, metric_column, run_labels
from omnidata.errors import UsageError, plural
from omnidata.loaders.steps import Positions, ids_of, select_steps
from omnidata.run.errata import Errata
from omnidata.run.rejudging import open_rejudging
from omnidata.run.run_files import Run
from omnidata.run.selection import whole_episodes
from omnidata.table import Column, Head, Row, Table


def correct_runs(runs: Sequence[Run], errata: Sequence[Errata], data: Path | None) -> list[Run]:
    """Return the runs, those of the errata's benchmark with the totals that errata lead to.

    Args:
        runs: of any tasks.
        errata: apply in order; in place of those that the runs were scored with.
        data: the dataset, if it has moved.

    Raises:
        UsageError: no run is of the benchmark of some errata, or the data cannot be found.
        RunError: a run has no answers, or was made on other data.
    """
    for one in errata:
        if all(run.task != one.benchmark for run in runs):
            raise UsageError(
                f"the errata correct {one.benchmark}, and no run is of it",
                where=f"--errata {one.where}",
                expected=f"errata for {', '.join(dict.fromkeys(run.task for run in runs))}",
            )
    found = []
    for run in runs:
        own = [one for one in errata if one.benchmark == run.task]
        found.append(replace(run, results={**run.results, **_entries(run, own, data)}))
    return found


def _entries(run: Run, errata: Sequence[Errata], data: Path | None) -> dict[str, Any]:
    if not errata:
        return {}
    source = load_data(run, data)
    numbers = [number for number, name in enumerate(ids_of(source.steps)) if name in run.scores]
    steps = select_steps(source.steps, numbers)
    rows = verdict_columns(run, [*ids_of(steps)], whole_episodes(source.steps, steps))
    known = Positions(source.steps)
    return open_rejudging(run, steps, errata, known).results(rows)


def table(runs: Sequence[Run]) -> Table | None:
    """Return the totals without and with errata, two rows per run; None if no run has any."""
    if not any("with_errata" in run.results for run in runs):
        return None
    columns = [metric_column(runs[0], name) for name in runs[0].columns]
    columns.append(Column("Steps", "steps", "count"))
    headers, names = run_labels(runs)
    rows, notes = [], []
    for run, label in zip(runs, names, strict=True):
        for words, results in (("", run.results), *_errata_totals(run)):
            values = {**results["counts"], **results["overall"], "ci95": results.get("ci95")}
            cells = tuple(make_cell(values, column.metric) for column in columns)
            rows.append(Row((*label, words or "none"), cells, run=str(run.path)))
        for one in run.results.get("errata", ()):
            notes.append(
                f"{', '.join(filter(None, label))}, {one['name']} {one['version']} "
                f"({one['hash'][:12]}): {plural(one['steps'], 'step')}, "
                f"{plural(one['verdicts_changed'], 'verdict')} changed, {one['dropped']} dropped."
            )
    head = [Head("", tuple(columns))]
    what = "Without and with errata"
    return make_table("errata", what, runs, (*headers, "Errata"), head, rows, notes)


def _errata_totals(run: Run) -> list[tuple[str, Any]]:
    if "with_errata" not in run.results:
        return []
    names = [f"{one['name']} {one['version']}" for one in run.results["errata"]]
    return [(", then ".join(names), run.results["with_errata"])]
