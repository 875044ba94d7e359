"""Runs that differ in their seed only: how much of a result is chance, and pass@k."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from omnidata.analysis.compounding import step_positions
from omnidata.analysis.runs import repeats
from omnidata.analysis.slices import (
    NotTracedError,
    cell,
    make_table,
    metric_column,
    run_names,
    step_metric,
)
from omnidata.errors import plural
from omnidata.metrics.rollouts import choices, pass_all, pass_at
from omnidata.run.run_files import Run
from omnidata.table import Cell, Column, Head, Row, Table

_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Mean": statistics.fmean,
    "SD between runs": statistics.stdev,
    "Least": min,
    "Most": max,
}
_NO_VERDICT = ("sample_id", "parsed", "reason", "profile")


def seed_tables(runs: Sequence[Run]) -> list[Table]:
    """Return mean, deviation between runs, least and most of each total, and pass@k.

    The deviation is that of a sample (n - 1).
    """
    groups = repeats(runs)
    names = run_names([group[0] for group in groups])
    pairs = zip(groups, names, strict=True)
    return [table for pair in pairs for table in (_statistics(*pair), *_passes(*pair))]


def _statistics(runs: Sequence[Run], name: str) -> Table:
    units = runs[0].columns
    totals = [[cell(run, "", "", metric).value for run in runs] for metric in units]
    values = [[value for value in each if value is not None] for each in totals]
    rows = [
        Row(
            (header,),
            tuple(Cell(of(each) if len(each) == len(runs) else None) for each in values),
            group=header,
        )
        for header, of in _STATISTICS.items()
    ]
    steps = [name for name in runs[0].scores if all(name in run.scores for run in runs)]
    notes = [f"Runs: {', '.join(str(run.path) for run in runs)}."]
    kinds: dict[str, Callable[[Run, str], object]] = {"verdicts": _verdict}
    if all(run.predictions for run in runs):
        kinds = {"answers": _answer, **kinds}
    for kind, of_step in kinds.items():
        differing = sum(len({of_step(run, step) for run in runs}) > 1 for step in steps)
        notes.append(f"The {kind} differ on {differing} of {plural(len(steps), 'step')}.")
    what = f"{len(runs)} runs of {name} that differ in their seed alone"
    columns = tuple(metric_column(runs[0], metric) for metric in units)
    return make_table("repeats", what, runs, ("",), [Head("", columns)], rows, notes)


def _verdict(run: Run, step: str) -> object:
    score = run.scores[step].items()
    return tuple((name, str(value)) for name, value in score if name not in _NO_VERDICT)


def _answer(run: Run, step: str) -> object:
    answer = run.predictions.get(step)
    return answer.output if answer else None


def _passes(runs: Sequence[Run], name: str) -> Iterator[Table]:
    """Yield how likely one of k runs, or each of k, has a step or a whole episode right.

    There is no such table of steps that may be partly right. Episodes count where all of them are
    whole, and the ids or the data say which steps they have.
    """
    metric, value = step_metric(runs[0])
    shared = [
        step
        for step in runs[0].scores
        if all(run.scores.get(step, {}).get("outcome", "missing") != "missing" for run in runs)
    ]
    verdicts: dict[str, list[Any]] = {
        step: [run.scores[step].get(value) for run in runs] for step in shared
    }
    judged = {step: own for step, own in verdicts.items() if None not in own}
    if not judged or any(one not in (0, 1) for own in judged.values() for one in own):
        return
    hits = {f"{metric} of steps": [sum(own) for own in judged.values()]}
    if len(shared) == len(runs[0].scores) and (whole := _whole_episodes(runs, judged)):
        hits["episodes, all steps right"] = whole
    size = len(runs)
    rules = (
        ("pass@k: one of k is right", "pass@", pass_at),
        ("pass^k: all k are", "pass^", pass_all),
    )
    yield make_table(
        "repeats-pass",
        f"pass@k and pass^k of {size} runs of {name}",
        runs,
        ("",),
        [
            Head(header, tuple(Column(f"k = {k}", f"{short}{k}") for k in choices(size)))
            for header, short, _ in rules
        ],
        [
            Row(
                (header,),
                tuple(
                    Cell(statistics.fmean(rule(size, right, k) for right in own))
                    for *_, rule in rules
                    for k in choices(size)
                ),
                group=header,
            )
            for header, own in hits.items()
        ],
        (
            f"Over {plural(len(judged), 'step')} that all runs have; without bias: "
            "1 - C(n-c, k) / C(n, k) and C(c, k) / C(n, k), c right of n runs.",
        ),
    )


def _whole_episodes(runs: Sequence[Run], judged: Mapping[str, Sequence[int]]) -> list[int]:
    """Return in how many runs each episode is right from end to end; none if that is unknown."""
    counts = [run.results["counts"] for run in runs]
    episodes = counts[0].get("episodes")
    if any((own.get("episodes"), own.get("whole_episodes")) != (episodes,) * 2 for own in counts):
        return []
    try:
        positions = step_positions(runs[0], {})
    except NotTracedError:
        return []
    verdicts: dict[str, list[Sequence[int]]] = {}
    for step, own in judged.items():
        verdicts.setdefault(positions[step][0], []).append(own)
    right = [sum(map(all, zip(*steps, strict=True))) for steps in verdicts.values()]
    return right if len(right) == episodes else []
