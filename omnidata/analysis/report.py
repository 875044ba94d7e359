"""The tables of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from omnidata import table_formats as formats
from omnidata.analysis import elements, errata_tables, rollouts, run_tables, usage_tables
from omnidata.analysis.compounding import history_tables
from omnidata.analysis.decisions import decision_tables
from omnidata.analysis.elements import Clicks
from omnidata.analysis.repeats import seed_tables
from omnidata.analysis.runs import by_profile, warnings
from omnidata.analysis.sensitivity import sensitivity_tables
from omnidata.analysis.slices import NotTracedError, specs
from omnidata.errors import UsageError
from omnidata.run.run_files import Run
from omnidata.table import Table
from omnidata.tasks import common_options

Form = Literal["terminal", "md", "latex", "csv"]


@dataclass(frozen=True, slots=True)
class Report:
    """Tables, and warnings about comparing their rows."""

    tables: Sequence[Table]
    warnings: Sequence[str]

    def text(self, form: Form, *, width: int | None = 100) -> str:
        """Return all tables in a format.

        Warnings are remarks in Markdown and LaTeX.

        Args:
            form: of the text; CSV has one line per number, the others one table after the other.
            width: of the terminal; None for whole tables.
        """
        if form == "csv":
            return formats.as_csv(self.tables)
        if form == "terminal":
            parts = [formats.text(table, width=width) for table in self.tables]
        elif form == "md":
            parts = [*map(formats.markdown_remark, self.warnings)]
            parts += map(formats.markdown, self.tables)
        else:
            parts = [*map(formats.latex_remark, self.warnings), *map(formats.latex, self.tables)]
        return "\n\n".join(parts) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values: fractions, unrounded."""
        return {"warnings": list(self.warnings), "tables": [*map(formats.as_json, self.tables)]}


def report(
    runs: Sequence[Run],
    *,
    with_published: bool = False,
    by: Sequence[str] = (),
    errors: bool = False,
    clicks: Sequence[Clicks] = (),
) -> Report:
    """Return the tables of runs, of each task and profile.

    Args:
        runs: of any tasks.
        with_published: whether to add published rows.
        by: axes of further tables, e.g. "app"; a single run has that anyway.
        errors: whether the tables have causes of wrong answers, in place of scores.
        clicks: of the runs with a table by size of elements.

    Raises:
        UsageError: no run has the axis.
        RunError: scores cannot be read, are of another kind than their profile's, or have no causes
            of wrong answers.
    """
    _check_axes(runs, by)
    notes: list[str] = []
    for task in dict.fromkeys(run.task for run in runs):
        notes += warnings([run for run in runs if run.task == task])
    tables: list[Table] = []
    for same in by_profile(runs):
        if errors:
            tables += run_tables.by_cause(same, by)
            continue
        tables += _tables(same, with_published, by, notes)
        if own := [each for each in clicks if any(each.run is run for run in same)]:
            tables += elements.tables(own, by, with_published=with_published)
    return Report(tables, notes)


def _check_axes(runs: Sequence[Run], by: Sequence[str]) -> None:
    known = dict.fromkeys(axis for run in runs for axis in run.results["by"])
    for axis in by:
        if axis not in known:
            raise UsageError(
                f'the runs have no groups by "{axis}"',
                where=f"--by {axis}",
                expected=f"one of {', '.join(known)}" if known else "no --by with these runs",
                remedy=("name one of these, or drop --by" if known else "drop --by")
                + "; for a tag, add it to `by` of the rule's totals and score the runs again",
            )


def _tables(
    runs: Sequence[Run], with_published: bool, by: Sequence[str], notes: list[str]
) -> list[Table]:
    """Return the tables of one task; `notes` gets a sentence for each that is left out."""
    axes = {axis for run in runs for axis, groups in run.results["by"].items() if groups}
    found = [
        run_tables.by_spec(spec, runs, with_published=with_published)
        for spec in specs(runs[0])
        if spec.name == "main" or spec.axis in axes
    ]
    found.append(run_tables.overall(runs))
    if table := errata_tables.table(runs):
        found.append(table)
    found += rollouts.tables(runs, by, notes)
    for variation in (*runs[0].asking.benchmark.paper.variations, *common_options.VARIATIONS):
        if table := run_tables.by_option(variation, runs, with_published=with_published):
            found.append(table)
    found += _tables_of_steps(runs, with_published, notes)
    found += seed_tables(runs)
    for axis in dict.fromkeys([*by, "app"] if len(runs) == 1 else by):
        if axis in axes:
            found.append(run_tables.by_axis(axis, runs, with_published=with_published))
    return found + usage_tables.tables(runs)


def _tables_of_steps(
    runs: Sequence[Run], with_published: bool, notes: list[str]
) -> Iterator[Table]:
    """Yield the tables that need the data of the runs; `notes` says why one is left out."""
    for which, make in (
        ("tables of how errors compound are", history_tables),
        ("table of time to decision is", decision_tables),
        ("table of sensitivity is", partial(sensitivity_tables, with_published=with_published)),
    ):
        try:
            yield from make(runs)
        except NotTracedError as error:
            notes.append(
                f"{runs[0].task}: the {which} left out: {error.what} "
                f"({error.where}). Expected: {error.expected}. Fix: {error.remedy}"
            )
