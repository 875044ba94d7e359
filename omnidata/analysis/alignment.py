"""Scored runs side by side: their data, and their verdicts on the steps that all of them have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from omnidata import remote
from omnidata.errors import RunError, UsageError, plural
from omnidata.loaders.steps import ids_of, select_steps
from omnidata.metrics.intervals import Mask
from omnidata.metrics.paired import Measures, means
from omnidata.run.errata import Errata
from omnidata.run.recorded import recorded_data
from omnidata.run.rejudging import open_rejudging
from omnidata.run.run_files import Run
from omnidata.run.selection import whole_episodes
from omnidata.types import OUTCOMES, LoadedDataset, Step, VerdictColumns

ANSWERED: Final = ("ok", "unparsed")
"""Outcomes with an answer; all others are failures."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Runs on the steps that all of them have.

    Attributes:
        runs: two or more.
        ids: sample ids, in the order of the data.
        steps: of the same ids; none for runs that are scored task by task.
        order: all ids of the data.
        source: all steps of the data.
        rows: each run's verdicts, aligned with `ids`.
        answered: the ids that each run has, those of `missing` steps left out.
    """

    runs: Sequence[Run]
    ids: Sequence[str]
    steps: Sequence[Step]
    order: Sequence[str]
    source: Sequence[Step]
    rows: Sequence[VerdictColumns]
    answered: Sequence[Collection[str]]

    @property
    def unit(self) -> str:
        """The noun for one of the ids: "step", or "task" if runs are scored task by task."""
        return "step" if self.steps else "task"


def align(
    runs: Sequence[Run], *, data: Path | None = None, source: LoadedDataset | None = None
) -> Aligned:
    """Align scored runs on the steps that all of them have.

    Args:
        runs: two or more.
        data: the dataset, if it has moved.
        source: the data, if they are loaded already.

    Raises:
        RunError: the runs are of different tasks, profiles or data, or have no step in common.
        UsageError: the data cannot be found.
        DataError: the data cannot be read.
    """
    for other in runs[1:]:
        _check_alike(runs[0], other)
    every = _load_steps(runs, data, source)
    order = [*ids_of(every)] or list(dict.fromkeys(name for run in runs for name in run.scores))
    known = set(order)
    for run in runs:
        _check_ids(run, known)
    answered = [
        {name for name, score in run.scores.items() if score["outcome"] != "missing"}
        for run in runs
    ]
    shared = set.intersection(*answered)
    if not shared:
        raise RunError(
            "the runs have no step in common",
            where=", ".join(
                f"{run.path} has {len(own)}" for run, own in zip(runs, answered, strict=True)
            ),
            expected="answers to the same steps",
            remedy="check --where, --limit and --shard of the runs",
        )
    places = [place for place, name in enumerate(order) if name in shared]
    ids = [order[place] for place in places]
    steps = select_steps(every, places) if every else []
    whole = whole_episodes(every, steps) if steps else np.ones(len(ids), dtype=np.bool_)
    rows = [verdict_columns(run, ids, whole) for run in runs]
    return Aligned(runs, ids, steps, order, every, rows, answered)


def _check_alike(a: Run, b: Run) -> None:
    if a.task != b.task:
        raise RunError(
            f"the runs are of different tasks: {a.task} and {b.task}",
            where=f"{a.path} and {b.path}",
            expected="two runs of one task",
            remedy="name runs of the same task",
        )
    if a.profile != b.profile:
        raise RunError(
            f"the runs were scored by different rules: {a.profile} and {b.profile}",
            where=f"{a.path} and {b.path}",
            expected="one profile",
            remedy=f"score one of them again: omnidata score {b.task} DATA {b.path} "
            f"--profile {a.profile} --out {b.path}",
        )
    if a.fingerprint and b.fingerprint and a.fingerprint != b.fingerprint:
        raise RunError(
            "the runs were made on different data: fingerprints "
            f"{a.fingerprint[:16]} ({a.data}) and {b.fingerprint[:16]} ({b.data})",
            where=f"{a.path} and {b.path}",
            expected="the same annotations, byte for byte",
            remedy="run one of the two again on the other's data",
        )


def _load_steps(
    runs: Sequence[Run], data: Path | None, source: LoadedDataset | None
) -> Sequence[Step]:
    """Return all steps of the runs' data; none for runs that are scored task by task."""
    if runs[0].offline_scorer:
        return []
    if source is None:
        run = next((run for run in runs if not run.imported), runs[0])
        source = run.asking.load(find_data(runs, data), check_media=False)
    for run in runs:
        _check_source(run, source)
    return source.steps


def find_data(runs: Sequence[Run], data: Path | None = None) -> Path:
    """Return the place of the data that runs were scored on.

    Args:
        runs: of one dataset.
        data: the place, if it is known; else the first that a run recorded.

    Raises:
        UsageError: no run names its data, or they are missing.
    """
    run = next((run for run in runs if run.data), runs[0])
    if data is None and not run.data:
        raise UsageError(
            "no run names its data",
            where=" and ".join(str(run.path) for run in runs),
            expected="the data that the answers were scored on",
            remedy="add --data DATA",
        )
    place = remote.get(recorded_data(run.settings, run.path, data))
    if not place.exists():
        raise UsageError(
            "the data are missing",
            where=str(place),
            expected="the data of the runs, for their episodes and labels",
            remedy="add --data DATA with their current place",
        )
    return place


def load_data(run: Run, data: Path | None = None) -> LoadedDataset:
    """Load the data that a run was scored on.

    Args:
        run: scored.
        data: their place, if it is known; else the recorded one.

    Raises:
        UsageError: as `find_data`.
        RunError: the data are not the run's.
        DataError: the data cannot be read.
    """
    source = run.asking.load(find_data([run], data), check_media=False)
    check_data(run, source)
    return source


def check_data(run: Run, source: LoadedDataset) -> None:
    """Check that the data are the run's, and have all of its scored steps.

    Raises:
        RunError: they are not, or a step is unknown.
    """
    _check_source(run, source)
    _check_ids(run, set(ids_of(source.steps)))


def _check_source(run: Run, source: LoadedDataset) -> None:
    if run.fingerprint and run.fingerprint != source.fingerprint:
        raise RunError(
            f"the run was made on other data: fingerprint {run.fingerprint[:16]}, and "
            f"{source.fingerprint[:16]} of {source.root}",
            where=str(run.path),
            expected="the run's annotations, byte for byte",
            remedy="name the run's data with --data, or run again on these",
        )


def _check_ids(run: Run, known: set[str]) -> None:
    unknown = [name for name in run.scores if name not in known]
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        steps = plural(len(unknown), "step")
        raise RunError(
            f"{steps} of the run {are} not in the data, e.g. {unknown[0]:.80}",
            where=str(run.path),
            expected="scores of steps of the data",
            remedy="name the scored data with --data",
        )


def verdict_columns(run: Run, ids: Sequence[str], whole: Mask) -> VerdictColumns:
    """Return the verdicts of a run on steps.

    Args:
        run: scored.
        ids: of the steps.
        whole: bool (N,), see `VerdictColumns`.

    Raises:
        RunError: a line of the scores cannot be read.
    """
    scores = [run.scores[name] for name in ids]
    scorer = run.offline_scorer
    names = scorer.paired_totals(run.profile) if scorer else run.asking.profiles[run.profile].values
    if lacking := [name for name in names if name not in scores[0]]:
        raise RunError(
            f"runs of the profile {run.profile} cannot be compared",
            where=str(run.path / "scores.jsonl"),
            expected=f"{lacking[0]} of every step or task",
            remedy="compare runs that answer steps, or score these again with this version",
        )
    try:
        outcomes = np.array([OUTCOMES.index(score["outcome"]) for score in scores], dtype=np.uint8)
        values = {
            name: np.array([score[name] for score in scores], dtype=np.float64)  # None is NaN
            for name in names
        }
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"a line of the scores cannot be read ({type(error).__name__}: {error})",
            where=str(run.path / "scores.jsonl"),
            expected="a file written by `omnidata score`",
            remedy="score the run again: omnidata score TASK DATA RUN --out RUN",
        ) from None
    return VerdictColumns(outcomes, values, whole)


def failures(rows: VerdictColumns) -> dict[str, int]:
    """Return how many steps a run failed on, by outcome; they count as wrong."""
    counts = Counter(OUTCOMES[code] for code in rows.outcomes.tolist())
    return {name: counts[name] for name in OUTCOMES if counts[name] and name not in ANSWERED}


def apply_errata(found: Aligned, errata: Sequence[Errata]) -> Aligned:
    """Return the runs with verdicts by corrected labels.

    Args:
        found: runs with their answers.
        errata: apply in order.

    Raises:
        RunError, DataError, UsageError: as `omnidata.run.rejudging.open_rejudging`.
    """
    corrected = [
        open_rejudging(run, found.steps, errata).correct(rows)[0]
        for run, rows in zip(found.runs, found.rows, strict=True)
    ]
    return replace(found, rows=corrected)


def measure(found: Aligned) -> tuple[list[Measures], Mask]:
    """Return the metrics of the first run with each other run, and bool (N,): judged in all runs.

    Raises:
        RunError: runs of the profile cannot be compared.
    """
    run, (first, *others) = found.runs[0], found.rows
    if scorer := run.offline_scorer:
        columns = scorer.paired_totals(run.profile)
        flips = (scorer.right, scorer.right) if scorer.right else None
        owner = np.arange(len(found.ids), dtype=np.int64)
        tables = [np.column_stack([rows.values[name] for name in columns]) for rows in found.rows]
        measures = [
            Measures(columns, {}, flips, *means(tables[0], table, owner)) for table in tables[1:]
        ]
    else:
        profile = run.asking.profiles[run.profile]
        measures = [profile.measures(found.steps, first, rows) for rows in others]
    return measures, np.logical_and.reduce([each.judged for each in measures], dtype=np.bool_)
