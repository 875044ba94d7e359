"""What a set of runs is shown as: the tables that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omnidata.analysis import history, run_tables, seed_variance
from omnidata.analysis import tables as formats
from omnidata.analysis.runs import by_profile, warnings
from omnidata.analysis.tables import Table
from omnidata.errors import UsageError
from omnidata.run.scoring import Run

Form = Literal["terminal", "md", "latex", "csv"]


@dataclass(frozen=True, slots=True)
class Report:
    """Tables, and what forbids or makes doubtful to compare their rows."""

    tables: Sequence[Table]
    warnings: Sequence[str]

    def text(self, form: Form, *, width: int | None = 100) -> str:
        """All tables in a format.

        Warnings are remarks in Markdown and LaTeX, whose readers see nothing else.

        Args:
            form: of the text; CSV is one line per number, the others one table after the other.
            width: of the terminal; None: of no terminal, whose tables are whole.
        """
        if form == "csv":
            return formats.as_csv(self.tables)
        if form == "terminal":
            return "\n".join(formats.text(table, width=width) for table in self.tables)
        printed = formats.markdown if form == "md" else formats.latex
        remark = formats.markdown_remark if form == "md" else formats.latex_remark
        return "\n".join([*map(remark, self.warnings), *map(printed, self.tables)])

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON values: fractions, unrounded."""
        return {"warnings": list(self.warnings), "tables": [*map(formats.as_json, self.tables)]}


def report(runs: Sequence[Run], *, with_published: bool = False, by: Sequence[str] = ()) -> Report:
    """The tables of runs, for each task and profile apart.

    Args:
        runs: of any tasks.
        with_published: whether published rows stand beside the runs'.
        by: further axes to have a table by, e.g. "app"; a single run has that anyway.

    Raises:
        UsageError: no run has the axis.
        RunError: scores cannot be read, or are of another kind than their profile's.
    """
    tables: list[Table] = []
    told: list[str] = []
    known = dict.fromkeys(axis for run in runs for axis in run.results["by"])
    for axis in by:
        if axis not in known:
            raise UsageError(
                f'the runs have no groups by "{axis}"',
                where=f"--by {axis}",
                expected=f"one of {', '.join(known)}" if known else "no --by with these runs",
            )
    for task in dict.fromkeys(run.task for run in runs):
        told += warnings([run for run in runs if run.task == task])
    for same in by_profile(runs):
        tables += _tables(same, with_published, by)
    return Report(tables, told)


def _tables(runs: Sequence[Run], with_published: bool, by: Sequence[str]) -> list[Table]:
    """The tables of one task and profile."""
    found = [
        run_tables.by_spec(spec, runs, with_published=with_published)
        for spec in run_tables.specs(runs[0])
        if spec.name == "main" or any(run.results["by"].get(spec.axis) for run in runs)
    ]
    found.append(run_tables.overall(runs))
    for variation in runs[0].benchmark.variations:
        table = run_tables.table(variation, runs, with_published=with_published)
        if table:
            found.append(table)
    found += history.tables(runs)
    found += seed_variance.tables(runs)
    axes = [*by, *(["app"] if len(runs) == 1 else [])]
    for axis in dict.fromkeys(axes):
        if any(run.results["by"].get(axis) for run in runs):
            found.append(run_tables.by_axis(axis, runs, with_published=with_published))
    return found
