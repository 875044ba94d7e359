"""A part of the data that keeps the ranking of runs, and how far it is off for a run unseen.

Whole groups of episodes are taken at random, many times; kept is the part on which most of the runs
that all steps tell apart come in their order (`omnidata.analysis.ranking`: the order of others is
chance, and none to keep), and of such parts the one with the least error.
What was chosen to fit fits: the error that counts is that of a run that had no part in the choice,
so each run is left out once, and the part that the others choose is tried on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.analysis.comparison import Aligned, align
from omnidata.analysis.inference import MIN_EPISODES, TIE
from omnidata.analysis.items import several
from omnidata.analysis.ranking import GroupSums, group_sums, significant_order
from omnidata.analysis.runs import labels, warnings
from omnidata.errors import RunError, UsageError, plural
from omnidata.metrics.intervals import Floats, Mask
from omnidata.metrics.paired import Unit
from omnidata.table import TextTable, number
from omnidata.tasks.profiles import number_keys
from omnidata.types import LoadedDataset

CANDIDATES = 2000
_RESAMPLES = 2000
_HELD = 1 << 24  # groups of all candidates at a time


@dataclass(frozen=True, slots=True)
class Kept:
    """A run on all steps and on the subset.

    Attributes:
        run, model, setting: the folder, and its labels.
        whole, part: the metric on all steps, and on those of the subset.
        unseen: the metric on the subset that the other runs choose, without this one.
    """

    run: str
    model: str
    setting: str
    whole: float
    part: float
    unseen: float


@dataclass(frozen=True, slots=True)
class Subset:
    """A part of the data, whole groups of episodes, on which runs come out as on all of it.

    Attributes:
        task, profile, metric, unit: what the runs are ranked by.
        ids: of the steps in the subset.
        left_out: all other steps of the data, as `--exclude` takes them.
        groups: in the subset, and in all.
        steps: of those that all runs have, in the subset, and in all.
        runs: each run on both.
        sure: how many pairs of runs all steps tell apart.
        order: the share of these that come in their order on the subset; None of none.
        unseen_order: the share of each run's such pairs that do on the subset that is chosen
            without the run; None of none.
        unseen_mean, unseen_most: the absolute error of a run on it, on average and at most.
        random_mean: the mean absolute error of subsets of that size that are taken at random.
        warnings: what a reader must know before the numbers.
    """

    task: str
    profile: str
    metric: str
    unit: Unit
    ids: Sequence[str]
    left_out: Sequence[str]
    groups: tuple[int, int]
    steps: tuple[int, int]
    runs: Sequence[Kept]
    sure: int
    order: float | None
    unseen_order: float | None
    unseen_mean: float
    unseen_most: float
    random_mean: float
    warnings: Sequence[str]

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON values; fractions, not percent."""
        return asdict(self)


def choose(
    folders: Sequence[Path],
    share: float,
    *,
    data: Path | None = None,
    source: LoadedDataset | None = None,
    seed: int = 0,
) -> Subset:
    """Choose a part of the steps that all runs have.

    Args:
        folders: of scored runs of one task, profile and dataset, three or more.
        share: of the judged steps; above 0, below 1. The part has as many groups as fit into it.
        data: where the data lie, if not where the runs say.
        source: the data, where they are loaded already.
        seed: of the candidates.

    Raises:
        RunError: see `omnidata.analysis.comparison.pair`; or what is scored has no steps.
        UsageError: too few runs, a share that no group fits into, or data that cannot be found.
        DataError: the data cannot be read.
    """
    runs = several(folders)
    found = align(runs, data=data, source=source)
    if not found.steps:
        raise RunError(
            "what is scored task by task has no steps to choose from",
            where=str(runs[0].path),
            expected="runs that answer steps",
        )
    sums = group_sums(found)
    owner = _owners(found, sums)
    sizes = np.bincount(owner[sums.judged], minlength=int(owner.max()) + 1)
    candidates = _candidates(sizes[sizes > 0], share, seed)
    whole = sums.values
    ahead = np.zeros((len(runs), len(runs)), dtype=np.bool_)
    if sums.added.shape[1] >= MIN_EPISODES:
        _, ahead = significant_order(sums, seed=seed, resamples=_RESAMPLES)
    parts = np.concatenate(
        [_on(sums, part) for part in np.array_split(candidates, _pieces(candidates))]
    )
    usable = np.isfinite(parts).all(axis=1)
    candidates, parts = candidates[usable], parts[usable]
    if not len(parts):
        raise _too_small(share)
    best = _best(parts, whole, ahead)
    unseen = np.empty(len(runs))
    in_order: list[bool] = []
    for run in range(len(runs)):
        others = np.arange(len(runs)) != run
        chosen = parts[_best(parts[:, others], whole[others], ahead[np.ix_(others, others)])]
        unseen[run] = chosen[run]
        in_order += (chosen[run] - chosen[ahead[run]] > TIE).tolist()
        in_order += (chosen[ahead[:, run]] - chosen[run] > TIE).tolist()
    held = set(np.flatnonzero(sizes > 0)[candidates[best]].tolist())
    groups = {
        step.group for step, own in zip(found.steps, owner.tolist(), strict=True) if own in held
    }
    errors = np.abs(unseen - whole)
    return Subset(
        runs[0].task,
        runs[0].profile,
        sums.metric,
        sums.unit,
        [step.sample_id for step in found.source if step.group in groups],
        [step.sample_id for step in found.source if step.group not in groups],
        (len(held), int((sizes > 0).sum())),
        (sum(step.group in groups for step in found.steps), len(found.steps)),
        [
            Kept(str(run.path), *label, *(float(sums.sign * value) for value in values))
            for run, label, *values in zip(
                runs, labels(runs), whole, parts[best], unseen, strict=True
            )
        ],
        int(ahead.sum()),
        float(_in_order(parts[[best]], ahead)[0]) if ahead.any() else None,
        float(np.mean(in_order)) if in_order else None,
        float(errors.mean()),
        float(errors.max()),
        float(np.abs(parts - whole).mean()),
        list(warnings(runs, found)),
    )


def _owners(found: Aligned, sums: GroupSums) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The group of each step, (N,), numbered as the sums have them.

    Raises:
        RunError: the profile's sums are of other groups.
    """
    owner = number_keys(step.group for step in found.steps)
    if len(np.unique(owner[sums.judged])) != sums.added.shape[1]:
        raise RunError(
            f"the profile {found.runs[0].profile} adds up other things than groups of episodes",
            where=str(found.runs[0].path),
            expected="a profile derived from EpisodeProfile or RowProfile",
        )
    return owner


def _too_small(share: float) -> UsageError:
    return UsageError(
        "no subset of this size judges every run",
        where=f"--subset {share:g}",
        expected="a share of at least one group of episodes",
        remedy="name a larger share",
    )


def _candidates(sizes: Any, share: float, seed: int) -> Mask:
    """Masks (M, G): groups in a random order, as many as fit into the share of steps."""
    rng = np.random.default_rng(seed)
    room = share * sizes.sum()
    made = np.zeros((CANDIDATES, len(sizes)), dtype=np.bool_)
    for row in made:
        order = rng.permutation(len(sizes))
        row[order[np.cumsum(sizes[order]) <= room + TIE]] = True
    made = made[made.any(axis=1)]
    if not len(made):
        raise _too_small(share)
    return made


def _pieces(candidates: Mask) -> int:
    return 1 + candidates.size // _HELD


def _on(sums: GroupSums, candidates: Mask) -> Floats:
    """(M, K): the metric of each run on each candidate."""
    groups = sums.added.transpose(1, 0, 2).reshape(sums.added.shape[1], -1)
    added = candidates.astype(np.float64) @ groups
    return sums.of(added.reshape(len(candidates), *sums.added.shape[::2]))


def _in_order(parts: Floats, ahead: Mask) -> Floats:
    """(M,): the share of pairs that are told apart that come in their order; 1 of none."""
    first, second = np.nonzero(ahead)
    if not len(first):
        return np.ones(len(parts))
    return np.asarray((parts[:, first] - parts[:, second] > TIE).mean(axis=1), dtype=np.float64)


def _best(parts: Floats, whole: Floats, ahead: Mask) -> int:
    """The candidate that keeps most of the order, and of such the one with the least error."""
    error = ((parts - whole) ** 2).sum(axis=1)
    return int(np.lexsort((error, -_in_order(parts, ahead)))[0])


# A subset as people read it.


def table(found: Subset) -> TextTable:
    """A row per run: on all steps, on the subset, and on one chosen without it."""
    wide = 2 if any(each.setting for each in found.runs) else 1
    rows = [
        (
            *(each.model, each.setting)[:wide],
            *(number(value, found.unit) for value in (each.whole, each.part, each.unseen)),
        )
        for each in found.runs
    ]
    header = (*("Model", "Setting")[:wide], "all steps", "subset", "chosen without it")
    unit = " (%)" if found.unit == "share" else ""
    title = f"{found.metric}{unit} on a part of {found.task}, by {found.profile}"
    return TextTable(title, header, rows)


def facts(found: Subset) -> list[str]:
    """How far the subset can be relied on, in sentences."""
    part, total = found.steps

    def points(value: float) -> str:
        return number(value, found.unit)

    sure = f"{plural(found.sure, 'pair')} of runs that differ on all steps"
    told = [
        f"{plural(part, 'step')} of the {total} that all runs have, in {found.groups[0]} of "
        f"{plural(found.groups[1], 'group')} of episodes",
        f"error of {found.metric} for a run outside the choice: {points(found.unseen_mean)} on "
        f"average, {points(found.unseen_most)} at most ({plural(len(found.runs), 'run')} left out "
        f"in turn); a random subset of this size: {points(found.random_mean)} on average",
    ]
    if found.order is not None and found.unseen_order is not None:
        told.append(
            f"{sure}: {number(found.order, 'share')} % keep their order on the subset, "
            f"{number(found.unseen_order, 'share')} % if one of the two is outside the choice"
        )
    return told
