"""Instruction sensitivity: how a score depends on the wording of a task (OmniBench, section 5.3).

Wordings are runs that differ in an option that says the same in other words (`Variation.wordings`),
or rows of one task with several instructions, e.g. its parts in another order
(`Benchmark.task_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from omnidata.analysis.slices import (
    NotTracedError,
    group_by_option,
    make_cell,
    make_table,
    option_of,
    published_row,
    published_rows,
    run_data,
    run_names,
    step_metric,
)
from omnidata.metrics.row_tables import means
from omnidata.run.run_files import Run
from omnidata.table import Cell, Column, Head, Row, Table
from omnidata.tasks import get_task
from omnidata.tasks.common_options import VARIATIONS
from omnidata.tasks.totals import number_keys
from omnidata.types import LoadedDataset, Step

Worded = tuple[str, Sequence[float]]
"""The group of a task, and its share of right steps under each wording, two or more."""

_METRICS: Mapping[str, Callable[[Sequence[float]], object]] = {
    "mean": np.mean,
    "sensitivity": np.std,  # of the population
    "worst": min,
    "best": max,
}


def sensitivity_tables(runs: Sequence[Run], *, with_published: bool) -> list[Table]:
    """Return a table with a row per model, or none without several wordings.

    Raises:
        NotTracedError: the data, which say which steps are related, are missing or have changed.
    """
    rows = list(_rows(runs))
    if not rows:
        return []
    columns = (
        Column("Tasks", "tasks", "count"),
        Column(f"Mean {step_metric(runs[0])[0]}", "mean"),
        Column("Sensitivity", "sensitivity"),
        Column("Worst", "worst"),
        Column("Best", "best"),
    )
    others, notes = published_rows("sensitivity", runs, with_published)
    rows = [*(published_row(each, (each.model, ""), columns) for each in others), *rows]
    note = (
        "A task's score under a wording is its share of right steps. Sensitivity: the mean "
        "over tasks of the (population's) standard deviation over wordings, in points; "
        "Worst and Best: of the score under the worst and the best wording of each task."
    )
    what = "Sensitivity to the wording of instructions"
    labels = ("Model", "Wordings")
    heads = [Head("", columns)]
    return [make_table("sensitivity", what, runs, labels, heads, rows, [note, *notes])]


def _rows(runs: Sequence[Run]) -> Iterator[Row]:
    known: dict[Path, LoadedDataset] = {}
    asking = runs[0].asking
    for of in (*asking.benchmark.paper.variations, *VARIATIONS):
        for name, group in group_by_option(of, runs) if of.wordings else []:
            values = [option_of(of, run) for run in group]
            data = run_data(group[0], known)
            texts = []
            for run, value in zip(group, values, strict=True):
                task = get_task(run.task, {**run.asking.options, of.option: value})
                source = task.load(data.root, check_media=False)
                texts.append({step.sample_id: step.instruction for step in source.steps})
            called = ", ".join(map(of.wording, values))
            yield from _row((name, f"{of.label}: {called}"), _across(group, data, texts))
    if asking.benchmark.wordings.task_of is None or any(run.offline_scorer for run in runs):
        return
    for run, name in zip(runs, run_names(runs), strict=True):
        if not run.imported:
            with suppress(NotTracedError):  # only the data say whether there is such a task
                found = _within(run, run_data(run, known), asking.benchmark.wordings.task_of)
                yield from _row((name, "of the data"), found)


def _across(
    runs: Sequence[Run], data: LoadedDataset, texts: Sequence[Mapping[str, str]]
) -> list[Worded]:
    """Return the episodes of runs with different wordings, over the steps that all have judged.

    `texts` has the instruction of each step, of each run; runs with equal ones are one wording.
    """
    value = step_metric(runs[0])[1]
    episodes: dict[str, list[Step]] = {}
    for step in data.steps:
        episodes.setdefault(step.episode, []).append(step)
    made: list[Worded] = []
    for steps in episodes.values():
        names = [step.sample_id for step in steps]
        wordings: dict[tuple[str, ...], list[int]] = {}
        for number, own in enumerate(texts):
            wordings.setdefault(tuple(own.get(name, "") for name in names), []).append(number)
        judged = [[run.scores.get(name, {}).get(value) for run in runs] for name in names]
        rows = [[float(each) for each in own if each is not None] for own in judged]
        rows = [own for own in rows if len(own) == len(runs)]
        if rows and len(wordings) > 1:
            scores = np.mean(rows, axis=0)
            shares = [float(scores[numbers].mean()) for numbers in wordings.values()]
            made.append((steps[0].group, shares))
    return made


def _within(run: Run, data: LoadedDataset, task_of: Callable[[Step], str]) -> list[Worded]:
    """Return the tasks that the data of a run have under several instructions."""
    value = step_metric(run)[1]
    found: dict[str, dict[str, list[float]]] = {}
    for step in data.steps:
        judged = run.scores.get(step.sample_id, {}).get(value)
        if judged is not None and (task := task_of(step)):
            found.setdefault(task, {}).setdefault(step.instruction, []).append(float(judged))
    return [
        (task, [float(np.mean(judged)) for judged in wordings.values()])
        for task, wordings in found.items()
        if len(wordings) > 1
    ]


def _row(label: tuple[str, str], found: Sequence[Worded]) -> Iterator[Row]:
    if found:
        columns = {
            name: np.array([of(scores) for _, scores in found], dtype=np.float64)
            for name, of in _METRICS.items()
        }
        owner = number_keys(group for group, _ in found)
        values = means(columns, shares=("mean", "worst", "best"), owner=owner)
        yield Row(label, (Cell(len(found)), *(make_cell(values, name) for name in _METRICS)))
