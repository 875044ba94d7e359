"""Errors compound: the steps after a right and after a wrong step, and first errors of episodes.

With `history=gold` every step shows the expert's earlier actions, so an error cannot spread; with
`history=predicted` it shows the model's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnidata.analysis.slices import (
    NotTracedError,
    RunSlice,
    Values,
    group_by_option,
    make_table,
    rows_of_groups,
    rows_of_runs,
    run_data,
    run_names,
    step_metric,
)
from omnidata.metrics.intervals import wilson
from omnidata.run.run_files import Run
from omnidata.table import Column, Head, Table
from omnidata.tasks.published import HISTORY
from omnidata.types import LoadedDataset

Episodes = Mapping[str, Mapping[int, bool]]
"""Episode -> index of a judged step, 0-based -> whether it is right."""


def history_tables(runs: Sequence[Run]) -> list[Table]:
    """Return tables of runs that differ in their history only: by step, and how errors compound.

    Raises:
        NotTracedError: steps are neither right nor wrong, or their order is unknown.
    """
    found = [run for _, group in group_by_option(HISTORY, runs) for run in group]
    if not found:
        return []
    known: dict[Path, LoadedDataset] = {}
    verdicts = [_verdicts(run, known) for run in found]
    names = run_names(found)
    metric = step_metric(found[0])[0]
    legend = getattr(found[0].asking.profiles.get(found[0].profile), "legend", {})
    columns = (
        Column(metric, metric, "share"),
        Column("Steps", "steps", "count"),
        Column("First err.", "first_errors", "count"),
    )
    heads = [
        Head(name, tuple(replace(column, run=str(run.path)) for column in columns))
        for run, name in zip(found, names, strict=True)
    ]
    firsts = [_first_errors(each) for each in verdicts]

    def values(index: int, episodes: Episodes, first: Sequence[int]) -> Values:
        own = [steps[index] for steps in episodes.values() if index in steps]
        return {**_share(metric, own), "first_errors": first.count(index)}

    indices = sorted({index for run in verdicts for steps in run.values() for index in steps})
    slices = [
        RunSlice(
            f"step {index + 1}",
            str(index + 1),
            [values(index, *each) for each in zip(verdicts, firsts, strict=True)],
        )
        for index in indices
    ]
    return [
        make_table(
            "history-by-step",
            f"{legend[metric].capitalize() if metric in legend else metric} by step of the episode",
            found,
            ("Step",),
            heads,
            rows_of_groups(slices, heads),
            ("First err.: episodes whose first wrong step this is.",),
        ),
        _after(found, names, verdicts),
    ]


def _verdicts(run: Run, known: dict[Path, LoadedDataset]) -> Episodes:
    value = step_metric(run)[1]
    for sample_id, score in run.scores.items():
        if score.get(value, "") not in (None, 0, 1):
            raise NotTracedError(
                f"{value} is {score[value]}" if value in score else f"there is no {value}",
                where=f"{run.path / 'scores.jsonl'}: {sample_id}",
                expected=f"{value}, which is right or wrong (true or false), of every step",
                remedy="steps that are partly right have no such tables"
                if value in score
                else "score the run again with this version: omnidata score",
            )
    positions = step_positions(run, known)
    episodes: dict[str, dict[int, bool]] = {}
    for sample_id, score in run.scores.items():
        if score[value] is not None:
            episode, index = positions[sample_id]
            episodes.setdefault(episode, {})[index] = bool(score[value])
    return episodes


def step_positions(run: Run, known: dict[Path, LoadedDataset]) -> Mapping[str, tuple[str, int]]:
    """Return episode and 0-based index of each scored step, by its id or else by the data.

    Ids count if they end in the index, from 0, in no fewer episodes than were scored.

    Raises:
        NotTracedError: the ids say no order, and the data are missing or have changed.
    """
    parts = {name: name.rpartition("/") for name in run.scores}
    if all(episode and index.isdecimal() for episode, _, index in parts.values()):
        positions = {name: (episode, int(index)) for name, (episode, _, index) in parts.items()}
        profile = run.asking.profiles.get(run.profile)
        first = profile.values[0] if profile else ""
        judged = {
            positions[n][0] for n, score in run.scores.items() if score.get(first) is not None
        }
        from_0 = min((index for _, index in positions.values()), default=0) == 0
        episodes = run.results["counts"].get("episodes")
        if positions and from_0 and episodes is not None and len(judged) >= episodes:
            return positions
    try:
        source = run_data(run, known)
    except NotTracedError as why:
        raise NotTracedError(
            f"the ids do not tell how the steps of an episode follow each other, and {why.what}",
            where=why.where,
            expected=why.expected,
            remedy=f"{why.remedy}; or let ids end in the step's place, from 0: EPISODE/0",
        ) from None
    return {step.sample_id: (step.episode, step.step_index) for step in source.steps}


def _first_errors(episodes: Episodes) -> list[int]:
    """Return the index of the first wrong step of each episode that has one."""
    wrong = [[n for n, right in verdicts.items() if not right] for verdicts in episodes.values()]
    return [min(each) for each in wrong if each]


def _share(metric: str, verdicts: Sequence[bool]) -> dict[str, Any]:
    hits, total = sum(verdicts), len(verdicts)
    share = hits / total if total else None
    return {metric: share, "ci95": {metric: wilson(hits, total)}, "steps": total}


def _after(runs: Sequence[Run], names: Sequence[str], verdicts: Sequence[Episodes]) -> Table:
    metric = step_metric(runs[0])[0]

    def after(episodes: Episodes, before: bool) -> Values:
        own = [
            right
            for steps in episodes.values()
            for index, right in steps.items()
            if steps.get(index - 1) is before
        ]
        return _share(metric, own)

    def whole(episodes: Episodes) -> Values:
        first = _first_errors(episodes)
        mean = sum(index + 1 for index in first) / len(first) if first else None
        counts = {"episodes": len(episodes), "episodes_with_errors": len(first)}
        return {**counts, "first_error": mean}

    slices = [RunSlice("", "", [whole(each) for each in verdicts])]
    columns = []
    for before, word in ((True, "right"), (False, "wrong")):
        group = f"after a {word} step"
        slices.append(RunSlice(group, group, [after(each, before) for each in verdicts]))
        columns.append(Column(word, metric, "share", group))
        columns.append(Column("Steps", "steps", "count", group))
    first = (
        Column("Episodes", "episodes", "count"),
        Column("with errors", "episodes_with_errors", "count"),
        Column("at step", "first_error", "episode"),
    )
    heads = [
        Head(f"{metric} after a previous step that is", tuple(columns)),
        Head("First error", first),
    ]
    labels = [(name,) for name in names]
    every = [column for head in heads for column in head.columns]
    return make_table(
        "history-compounding",
        "How errors compound",
        runs,
        ("Model",),
        heads,
        rows_of_runs(slices, runs, labels, every),
        ("At step: the mean place of an episode's first error, from 1, where there is one.",),
        intervals=True,
    )
