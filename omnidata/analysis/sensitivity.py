"""Instruction sensitivity: what a score owes to the wording of a task (OmniBench, section 5.3).

Wordings are told apart in two ways: runs that differ in an option that only says the same in other
words (`Variation.wordings`), and data that have a task several times, with its parts in another
order for one (`Benchmark.task_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from omnidata.analysis.run_tables import (
    of_other_rules,
    of_published,
    published_row,
    title,
    with_rules,
)
from omnidata.analysis.runs import labels
from omnidata.analysis.tables import Cell, Column, Head, Row, Table
from omnidata.analysis.variations import NotTracedError, data_of, groups, right_of, value_of
from omnidata.metrics.row_tables import means
from omnidata.run.run_files import Run
from omnidata.tasks import get_task
from omnidata.tasks.common_options import VARIATIONS
from omnidata.tasks.published import Variation
from omnidata.types import LoadedDataset, Step

_METRICS = ("mean", "sensitivity", "worst", "best")


@dataclass(frozen=True, slots=True)
class Worded:
    """A task, and how it came out under each of its wordings.

    Attributes:
        group: what it belongs together with, for intervals.
        scores: the share of right steps under each wording, two or more.
    """

    group: str
    scores: tuple[float, ...]

    def values(self) -> tuple[float, float, float, float]:
        """Mean, the population's standard deviation, least and most.

        Examples:
            >>> Worded("a", (0.0, 0.5, 1.0)).values()
            (0.5, 0.408248290463863, 0.0, 1.0)
        """
        deviation = float(np.std(self.scores))
        return float(np.mean(self.scores)), deviation, min(self.scores), max(self.scores)


def across(
    runs: Sequence[Run], data: LoadedDataset, said: Sequence[Mapping[str, str]]
) -> list[Worded]:
    """The episodes of runs that word them differently, over the steps that all have judged.

    Args:
        runs: alike but for the wording.
        data: of the runs.
        said: the instruction of each step, of each run: runs with equal ones are one wording.
    """
    value = right_of(runs[0])[1]
    wordings: dict[str, dict[tuple[str, ...], list[int]]] = {}
    steps: dict[str, list[str]] = {}
    for step in data.steps:
        steps.setdefault(step.episode, []).append(step.sample_id)
    for episode, names in steps.items():
        for number, texts in enumerate(said):
            told = tuple(texts.get(name, "") for name in names)
            wordings.setdefault(episode, {}).setdefault(told, []).append(number)
    found: dict[str, list[list[float]]] = {}
    group: dict[str, str] = {}
    for step in data.steps:
        judged = [run.scores.get(step.sample_id, {}).get(value) for run in runs]
        known = [float(each) for each in judged if each is not None]
        if len(known) == len(runs):
            found.setdefault(step.episode, []).append(known)
            group[step.episode] = step.group
    made = []
    for name, rows in found.items():
        scores = np.mean(rows, axis=0)
        if len(same := wordings[name]) > 1:
            each = tuple(float(scores[numbers].mean()) for numbers in same.values())
            made.append(Worded(group[name], each))
    return made


def _said(run: Run, of: Variation, data: LoadedDataset) -> dict[str, str]:
    """The instruction of each step as a run was told it."""
    options = {**run.benchmark.options, of.option: value_of(of, run)}
    source = get_task(run.task, options).load(data.root, check_media=False)
    return {step.sample_id: step.instruction for step in source.steps}


def within(run: Run, data: LoadedDataset, task_of: Callable[[Step], str]) -> list[Worded]:
    """The tasks that the data of a run have under several instructions."""
    value = right_of(run)[1]
    found: dict[str, dict[str, list[float]]] = {}
    for step in data.steps:
        judged = run.scores.get(step.sample_id, {}).get(value)
        if judged is not None and (task := task_of(step)):
            found.setdefault(task, {}).setdefault(step.instruction, []).append(float(judged))
    return [
        Worded(task, tuple(float(np.mean(judged)) for judged in wordings.values()))
        for task, wordings in found.items()
        if len(wordings) > 1
    ]


def sensitivity_tables(runs: Sequence[Run], *, with_published: bool) -> list[Table]:
    """One table, if wordings can be told apart.

    Args:
        runs: of one task and profile.
        with_published: whether published rows come first.

    Raises:
        RunError: scores cannot be read.
        NotTracedError: the data, which say what belongs together, are not there.
    """
    rows = list(_rows(runs))
    if not rows:
        return []
    metric = right_of(runs[0])[0]
    columns = (
        Column("Tasks", "tasks", "count"),
        Column(f"Mean {metric}", "mean"),
        Column("Sensitivity", "sensitivity"),
        Column("Worst", "worst"),
        Column("Best", "best"),
    )
    printed = runs[0].benchmark.published.of("sensitivity") if with_published else []
    others = with_rules(printed, runs)
    rows = [*(published_row(each, (each.model, ""), columns) for each in others), *rows]
    return [
        Table(
            "sensitivity",
            title("Sensitivity to the wording of instructions", runs),
            runs[0].task,
            runs[0].profile,
            ("Model", "Wordings"),
            (Head("", columns),),
            tuple(rows),
            (
                "A task's score under a wording is its share of right steps. Sensitivity: the mean "
                "over tasks of the (population's) standard deviation over wordings, in points; "
                "Worst and Best: of the score under the worst and the best wording of each task.",
                *of_published(others, runs),
                *of_other_rules(printed, runs),
            ),
        )
    ]


def _rows(runs: Sequence[Run]) -> Iterator[Row]:
    known: dict[Path, LoadedDataset] = {}
    benchmark = runs[0].benchmark
    for of in (*benchmark.variations, *VARIATIONS):
        same = groups(of, runs) if of.wordings else []
        for group, name in zip(same, labels([group[0] for group in same]), strict=True):
            called = ", ".join(of.called(value_of(of, run)) for run in group)
            label = ", ".join(filter(None, name)), f"{of.label}: {called}"
            data = data_of(group[0], known)
            yield from _row(label, across(group, data, [_said(run, of, data) for run in group]))
    if benchmark.task_of is None or any(run.offline_scorer for run in runs):
        return
    for run, name in zip(runs, labels(runs), strict=True):
        if not run.imported:
            label = ", ".join(filter(None, name)), "of the data"
            with suppress(NotTracedError):  # nothing but the data says that there is such a task
                yield from _row(label, within(run, data_of(run, known), benchmark.task_of))


def _row(label: tuple[str, str], found: Sequence[Worded]) -> Iterator[Row]:
    """A row, unless there is nothing in it."""
    if not found:
        return
    values = np.array([each.values() for each in found])
    columns: Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = dict(
        zip(_METRICS, values.T, strict=True)
    )
    owner = np.unique([each.group for each in found], return_inverse=True)[1]
    told = means(columns, shares=("mean", "worst", "best"), owner=owner)
    cells = [Cell(len(found))]
    for metric in _METRICS:
        ends = told["ci95"][metric]
        cells.append(Cell(told[metric], (ends[0], ends[1]) if ends else None))
    yield Row(label, tuple(cells))
