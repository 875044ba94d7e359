"""Why answers are wrong: how many for each cause, of whole runs, by axis, and by what was right.

As OmniGUI's section 4.4, OmniBench's Figure 7 and OSWorld's appendix D.4 ask, in causes that all
benchmarks share (`omnidata.types.CAUSES`). Each wrong answer has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from omnidata.analysis.run_tables import named_rows, title
from omnidata.analysis.tables import Cell, Column, Head, Row, Table
from omnidata.errors import RunError, plural
from omnidata.run.run_files import Run
from omnidata.types import CAUSES

Counts = Mapping[str, int]
"""Cause -> how many answers are wrong for it."""

_NOTES = (
    "Wrong: answers that are not right. Causes: shares of these, which add up to 100 %.",
    "An answer that differs in several things has the first of them as its cause.",
    "By what was right: a row for what is wrong at least once.",
)


def error_tables(runs: Sequence[Run], by: Sequence[str] = ()) -> list[Table]:
    """The causes over all steps, by each axis, and by what was right.

    Args:
        runs: of one task and profile.
        by: axes, e.g. "app".

    Raises:
        RunError: a run's scores do not say why answers are wrong.
    """
    for run in runs:
        if "causes" not in run.results:
            raise _without_causes(run)
    causes = [run.results["causes"] for run in runs]
    found = [_table("", "", runs, [{"": each["overall"]} for each in causes])]
    for axis in by:
        told = [each["by"].get(axis, {}) for each in causes]
        if any(told):
            found.append(_table(axis, axis.capitalize(), runs, told))
    targets = [run["by_target"] for run in causes]
    return [*found, _table("target", "What was right", runs, targets)] if any(targets) else found


def _without_causes(run: Run) -> RunError:
    if run.offline_scorer:
        expected, remedy = "scores of a model's answers", "leave --errors out"
    else:
        expected = "scores that this version wrote"
        answers = "PREDICTIONS" if run.imported else run.path
        remedy = f"score it again: omnidata score {run.task} DATA {answers} --out {run.path}"
    return RunError(
        "the scores do not say why answers are wrong",
        where=str(run.path),
        expected=expected,
        remedy=remedy,
    )


def _table(
    axis: str, header: str, runs: Sequence[Run], causes: Sequence[Mapping[str, Counts]]
) -> Table:
    """A row per group and run.

    Args:
        axis: what the groups are of; empty where all steps are the only one.
        header: of the groups.
        runs: of one task and profile.
        causes: group -> counts, of each run.
    """
    shown = [
        cause
        for cause in CAUSES
        if any(cause in counts for groups in causes for counts in groups.values())
    ]
    columns = [Column("Wrong", "wrong", "count")]
    columns += [Column(CAUSES[cause].partition(":")[0], cause) for cause in shown]
    headers, named = named_rows(runs)
    rows = tuple(
        Row(
            (*filter(None, [group]), *named[number]),
            _cells(causes[number][group], shown),
            group=group,
            run=str(runs[number].path),
        )
        for group in dict.fromkeys(group for groups in causes for group in groups)
        for number in range(len(runs))
        if group in causes[number]
    )
    told = [*_readings(runs)] if not axis else []
    return Table(
        f"errors-by-{axis}" if axis else "errors",
        title("Why answers are wrong" + (f", by {header.lower()}" if header else ""), runs),
        runs[0].task,
        runs[0].profile,
        (*filter(None, [header]), *headers),
        (Head("", tuple(columns)),),
        rows,
        (*told, *_NOTES),
    )


def _readings(runs: Sequence[Run]) -> Iterator[str]:
    """How places of answers would be right, and how often chance alone makes them so."""
    for run in runs:
        if not (places := run.results.get("places")):
            continue
        readings = ", ".join(f"{count:,} as {name}" for name, count in places["readings"].items())
        told = f"{run.name}: {plural(places['missed'], 'answer')} at a wrong place; right if read "
        told += f"otherwise: {readings}; "
        if chance := places["by_chance"]:
            shares = ", ".join(f"{100 * share:.1f} % {CAUSES[c]}" for c, share in chance.items())
            yield f"{told}by chance (right answers to other steps): {shares}."
        else:
            yield f"{told}chance is unknown, because all targets are alike."


def _cells(counts: Counts, shown: Sequence[str]) -> tuple[Cell, ...]:
    wrong = sum(counts.values())
    shares = (Cell(counts.get(cause, 0) / wrong if wrong else None) for cause in shown)
    return (Cell(wrong), *shares)
