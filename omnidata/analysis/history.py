"""What a history of the model's own answers costs, and how errors compound.

With `history=gold` every step shows the expert's earlier actions, so that an error cannot spread;
with `history=predicted` it shows the model's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnidata.analysis.run_tables import groups, title
from omnidata.analysis.runs import labels
from omnidata.analysis.tables import Cell, Column, Head, Row, Table
from omnidata.errors import RunError
from omnidata.metrics.intervals import wilson
from omnidata.run.scoring import Run
from omnidata.tasks.published import HISTORY

_EXACT = "exact_match"
Count = tuple[int, int]
"""Exact matches, and how many steps there are."""


@dataclass(frozen=True, slots=True)
class Compounding:
    """What exact matches say of the steps that follow them.

    Attributes:
        by_step: index of a step, 0-based -> its count over episodes.
        after_right: of the steps whose previous step is an exact match.
        after_wrong: of the steps whose previous step is not.
        first_errors: index of a step -> in how many episodes it is the first that is wrong.
        episodes: that have a judged step.
    """

    by_step: Mapping[int, Count]
    after_right: Count
    after_wrong: Count
    first_errors: Mapping[int, int]
    episodes: int


def compounding(run: Run) -> Compounding:
    """Counts over the steps that were judged.

    A step without a usable target is passed over: the one after it has no previous step here.

    Raises:
        RunError: the scores have no exact matches, or their ids are no episode and step.
    """
    return count(_verdicts(run))


def count(episodes: Mapping[str, Mapping[int, bool]]) -> Compounding:
    """Counts over verdicts.

    Args:
        episodes: per episode, index of a step -> whether it is an exact match.

    Examples:
        >>> found = count({"a": {0: True, 1: False, 2: False}, "b": {0: True, 1: True}})
        >>> found.after_right, found.after_wrong, dict(found.first_errors)
        ((1, 2), (0, 1), {1: 1})
    """
    hits: Counter[int] = Counter()
    steps: Counter[int] = Counter()
    after: dict[bool, list[bool]] = {True: [], False: []}
    first: Counter[int] = Counter()
    for verdicts in episodes.values():
        for index, exact in verdicts.items():
            steps[index] += 1
            hits[index] += exact
            if index - 1 in verdicts:
                after[verdicts[index - 1]].append(exact)
        wrong = [index for index, exact in verdicts.items() if not exact]
        if wrong:
            first[min(wrong)] += 1
    return Compounding(
        {index: (hits[index], steps[index]) for index in sorted(steps)},
        (sum(after[True]), len(after[True])),
        (sum(after[False]), len(after[False])),
        dict(sorted(first.items())),
        len(episodes),
    )


def _verdicts(run: Run) -> dict[str, dict[int, bool]]:
    """Per episode, index of a step -> whether it is an exact match."""
    episodes: dict[str, dict[int, bool]] = {}
    for sample_id, score in run.scores.items():
        episode, _, index = sample_id.rpartition("/")
        if _EXACT not in score or not index.isdecimal():
            raise RunError(
                "the scores do not say how steps of an episode follow each other",
                where=f"{run.path / 'scores.jsonl'}: {sample_id}",
                expected=f"ids like app/episode/step, and {_EXACT}",
            )
        if score[_EXACT] is not None:
            episodes.setdefault(episode, {})[int(index)] = bool(score[_EXACT])
    return episodes


def tables(runs: Sequence[Run]) -> list[Table]:
    """Of runs that differ in their history alone: by step, and how errors compound.

    Args:
        runs: of one task and profile.

    Raises:
        RunError: see `compounding`.
    """
    found = [run for group in groups(HISTORY, runs) for run in group]
    if not found:
        return []
    counts = [compounding(run) for run in found]
    names = [", ".join(filter(None, label)) for label in labels(found)]
    return [_by_step(found, names, counts), _after(found, names, counts)]


def _share(counted: Count) -> Cell:
    hits, total = counted
    return Cell(hits / total if total else None, wilson(hits, total))


def _by_step(runs: Sequence[Run], names: Sequence[str], counts: Sequence[Compounding]) -> Table:
    heads = tuple(
        Head(
            name,
            (
                Column("EM", "EM", "share", run=str(run.path)),
                Column("Steps", "steps", "count", run=str(run.path)),
                Column("First err.", "first_errors", "count", run=str(run.path)),
            ),
        )
        for run, name in zip(runs, names, strict=True)
    )
    rows = []
    for index in sorted({index for each in counts for index in each.by_step}):
        cells: list[Cell] = []
        for each in counts:
            counted = each.by_step.get(index, (0, 0))
            cells += [_share(counted), Cell(counted[1]), Cell(each.first_errors.get(index, 0))]
        rows.append(Row((str(index + 1),), tuple(cells), group=f"step {index + 1}"))
    return Table(
        "history-by-step",
        title("Exact match by step of the episode", runs),
        runs[0].task,
        runs[0].profile,
        ("Step",),
        heads,
        tuple(rows),
        ("First err.: episodes whose first wrong step this is.",),
    )


def _after(runs: Sequence[Run], names: Sequence[str], counts: Sequence[Compounding]) -> Table:
    columns = (
        Column("right", "EM", "share", "after a right step"),
        Column("Steps", "steps", "count", "after a right step"),
        Column("wrong", "EM", "share", "after a wrong step"),
        Column("Steps", "steps", "count", "after a wrong step"),
        Column("Episodes", "episodes", "count"),
        Column("with errors", "episodes_with_errors", "count"),
        Column("at step", "first_error", "episode"),
    )
    rows = []
    for run, name, each in zip(runs, names, counts, strict=True):
        wrong = sum(each.first_errors.values())
        places = sum((index + 1) * often for index, often in each.first_errors.items())
        cells = (
            _share(each.after_right),
            Cell(each.after_right[1]),
            _share(each.after_wrong),
            Cell(each.after_wrong[1]),
            Cell(each.episodes),
            Cell(wrong),
            Cell(places / wrong if wrong else None),
        )
        rows.append(Row((name,), cells, run=str(run.path)))
    return Table(
        "history-compounding",
        title("How errors compound", runs),
        runs[0].task,
        runs[0].profile,
        ("Model",),
        (
            Head("EM after a previous step that is", columns[:4]),
            Head("First error", columns[4:]),
        ),
        tuple(rows),
        ("At step: the mean place of an episode's first error, from 1, where there is one.",),
    )
