"""Runs that differ in their seed alone: how much of a result is chance."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnidata.analysis.run_tables import cell, title
from omnidata.analysis.runs import labels, repeats
from omnidata.analysis.tables import Cell, Column, Head, Row, Table
from omnidata.errors import counted
from omnidata.run.scoring import Run

_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Mean": statistics.fmean,
    "SD between runs": statistics.stdev,
    "Least": min,
    "Most": max,
}
_LEFT_OUT = ("sample_id", "parsed", "reason", "profile")


@dataclass(frozen=True, slots=True)
class Differing:
    """On how many steps the runs of a group do not agree.

    Attributes:
        steps: that all of them have.
        answers: on which the texts differ; None where a run has no texts.
        verdicts: on which the outcome or a value of the profile differs.
    """

    steps: int
    answers: int | None
    verdicts: int


def differing(runs: Sequence[Run]) -> Differing:
    """Compare the runs step by step.

    Args:
        runs: of one task and profile, two or more.
    """
    first = runs[0]
    shared = [name for name in first.scores if all(name in run.scores for run in runs)]
    verdicts = sum(len({_verdict(run.scores[name]) for run in runs}) > 1 for name in shared)
    answers = None
    if all(run.predictions for run in runs):
        told = [[_text(run, name) for run in runs] for name in shared]
        answers = sum(len(set(texts)) > 1 for texts in told)
    return Differing(len(shared), answers, verdicts)


def _verdict(score: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in score.items() if name not in _LEFT_OUT)


def _text(run: Run, sample_id: str) -> str | None:
    found = run.predictions.get(sample_id)
    return found.output if found else None


def tables(runs: Sequence[Run]) -> list[Table]:
    """Mean, deviation between runs, least and most of each total; one table per group.

    The deviation is that of a sample (n - 1).

    Args:
        runs: of one task and profile.
    """
    groups = repeats(runs)
    names = labels([group[0] for group in groups])
    return [
        _table(group, ", ".join(filter(None, name)))
        for group, name in zip(groups, names, strict=True)
    ]


def _table(runs: Sequence[Run], name: str) -> Table:
    units = runs[0].columns
    values = {
        metric: [value for run in runs if (value := cell(run, "", "", metric).value) is not None]
        for metric in units
    }
    rows = tuple(
        Row(
            (called,),
            tuple(Cell(of(each) if len(each) == len(runs) else None) for each in values.values()),
            group=called,
        )
        for called, of in _STATISTICS.items()
    )
    found = differing(runs)
    notes = [f"Runs: {', '.join(str(run.path) for run in runs)}."]
    if found.answers is not None:
        notes.append(f"The answers differ on {found.answers} of {counted(found.steps, 'step')}.")
    notes.append(f"The verdicts differ on {found.verdicts} of {counted(found.steps, 'step')}.")
    return Table(
        "repeats",
        title(f"{len(runs)} runs of {name} that differ in their seed alone", runs),
        runs[0].task,
        runs[0].profile,
        ("",),
        (Head("", tuple(Column(metric, metric, unit) for metric, unit in units.items())),),
        rows,
        tuple(notes),
    )
