"""A part of the data that keeps the ranking of runs, and its error for a run it has not seen.

Whole groups of episodes are drawn at random, many times. The best part keeps most of the order of
the runs that differ significantly on all steps (see `omnidata.analysis.ranking`; the order of
others is chance), and of such parts has the least error. A part that was chosen to fit some runs
fits these runs, so each run is left out once, and the error is that of the part that the others
choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.analysis.alignment import align
from omnidata.analysis.inference import MIN_EPISODES, TIE
from omnidata.analysis.items import several
from omnidata.analysis.ranking import GroupSums, group_sums, significant_order
from omnidata.analysis.runs import labels, warnings
from omnidata.errors import RunError, UsageError, plural
from omnidata.metrics.intervals import Floats, Ints, Mask
from omnidata.metrics.paired import Unit
from omnidata.table import TextTable, number
from omnidata.tasks.totals import number_keys
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
    """A part of the data, whole groups of episodes, on which runs score as on all of it.

    Attributes:
        task, profile, metric, unit: of the ranking.
        ids: of the steps in the subset.
        left_out: all other steps of the data, for `--exclude`.
        groups: how many in the subset, and in all.
        steps: how many of those that all runs have, in the subset, and in all.
        runs: each run on both.
        sure: number of pairs of runs that differ significantly on all steps.
        order: share of these pairs whose order the subset keeps; None without such pairs.
        unseen_order: the same for a run on the subset that the other runs choose.
        unseen_mean, unseen_most: the mean and the largest absolute error of a run on it.
        random_mean: the mean absolute error of random subsets of that size.
        warnings: to read before the numbers.
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
        """Return JSON values; fractions, not percent."""
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
        share: of the judged steps, above 0 and below 1; the part has as many groups as fit.
        data: the dataset, if it has moved.
        source: the data, if they are loaded already.
        seed: for the candidates.

    Raises:
        RunError: see `omnidata.analysis.alignment.align`; or the runs are scored task by task.
        UsageError: too few runs, a share smaller than any group, or no data.
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
    owner = number_keys(step.group for step in found.steps)
    if len(np.unique(owner[sums.judged])) != sums.added.shape[1]:
        raise RunError(
            f"the profile {runs[0].profile} adds up other things than groups of episodes",
            where=str(runs[0].path),
            expected="a rule with `RowTotals`, `PartTotals` or `EpisodeTotals`",
        )
    sizes = np.bincount(owner[sums.judged], minlength=int(owner.max()) + 1)
    candidates, parts = _usable_candidates(sums, sizes[sizes > 0], share, seed)
    whole = sums.values
    ahead = np.zeros((len(runs), len(runs)), dtype=np.bool_)
    if sums.added.shape[1] >= MIN_EPISODES:
        _, ahead = significant_order(sums, seed=seed, resamples=_RESAMPLES)
    best = _best(parts, whole, ahead)
    unseen, in_order = _leave_each_out(parts, whole, ahead)
    errors = np.abs(unseen - whole)
    held = set(np.flatnonzero(sizes > 0)[candidates[best]].tolist())
    groups = {
        step.group for step, own in zip(found.steps, owner.tolist(), strict=True) if own in held
    }
    scores = zip(runs, labels(runs), whole, parts[best], unseen, strict=True)
    return Subset(
        task=runs[0].task,
        profile=runs[0].profile,
        metric=sums.metric,
        unit=sums.unit,
        ids=[step.sample_id for step in found.source if step.group in groups],
        left_out=[step.sample_id for step in found.source if step.group not in groups],
        groups=(len(held), int((sizes > 0).sum())),
        steps=(sum(step.group in groups for step in found.steps), len(found.steps)),
        runs=[
            Kept(str(run.path), *label, *(float(sums.sign * value) for value in values))
            for run, label, *values in scores
        ],
        sure=int(ahead.sum()),
        order=float(_order_kept(parts[[best]], ahead)[0]) if ahead.any() else None,
        unseen_order=float(np.mean(in_order)) if in_order else None,
        unseen_mean=float(errors.mean()),
        unseen_most=float(errors.max()),
        random_mean=float(np.abs(parts - whole).mean()),
        warnings=list(warnings(runs, found)),
    )


def _usable_candidates(
    sums: GroupSums, sizes: Ints, share: float, seed: int
) -> tuple[Mask, Floats]:
    """Return the candidates that judge every run, and the metric of each run on them."""
    candidates = _candidates(sizes, share, seed)
    pieces = np.array_split(candidates, 1 + candidates.size // _HELD)
    parts = np.concatenate([_score(sums, piece) for piece in pieces])
    usable = np.isfinite(parts).all(axis=1)
    if not usable.any():
        raise _too_small(share)
    return candidates[usable], parts[usable]


def _leave_each_out(parts: Floats, whole: Floats, ahead: Mask) -> tuple[Floats, list[bool]]:
    """Return each run's metric on the candidate that the other runs choose.

    The second value is, for each significantly different pair with the run, whether the two keep
    their order there.
    """
    unseen = np.empty(len(whole))
    in_order: list[bool] = []
    for run in range(len(whole)):
        others = np.arange(len(whole)) != run
        chosen = parts[_best(parts[:, others], whole[others], ahead[np.ix_(others, others)])]
        unseen[run] = chosen[run]
        in_order += (chosen[run] - chosen[ahead[run]] > TIE).tolist()
        in_order += (chosen[ahead[:, run]] - chosen[run] > TIE).tolist()
    return unseen, in_order


def _too_small(share: float) -> UsageError:
    return UsageError(
        "no subset of this size judges every run",
        where=f"--subset {share:g}",
        expected="a share of at least one group of episodes",
        remedy="name a larger share",
    )


def _candidates(sizes: Ints, share: float, seed: int) -> Mask:
    """Return masks (M, G): groups in a random order, as many as fit into the share of steps."""
    rng = np.random.default_rng(seed)
    most = share * sizes.sum()
    made = np.zeros((CANDIDATES, len(sizes)), dtype=np.bool_)
    for row in made:
        order = rng.permutation(len(sizes))
        row[order[np.cumsum(sizes[order]) <= most + TIE]] = True
    made = made[made.any(axis=1)]
    if not len(made):
        raise _too_small(share)
    return made


def _score(sums: GroupSums, candidates: Mask) -> Floats:
    """Return the metric of each run on each candidate, (M, K)."""
    groups = sums.added.transpose(1, 0, 2).reshape(sums.added.shape[1], -1)
    added = candidates.astype(np.float64) @ groups
    return sums.of(added.reshape(len(candidates), *sums.added.shape[::2]))


def _order_kept(parts: Floats, ahead: Mask) -> Floats:
    """Return the share (M,) of significantly different pairs that keep their order; 1 of none."""
    first, second = np.nonzero(ahead)
    if not len(first):
        return np.ones(len(parts))
    return np.asarray((parts[:, first] - parts[:, second] > TIE).mean(axis=1), dtype=np.float64)


def _best(parts: Floats, whole: Floats, ahead: Mask) -> int:
    """Return the candidate that keeps most of the order; of such, the one with the least error."""
    error = ((parts - whole) ** 2).sum(axis=1)
    return int(np.lexsort((error, -_order_kept(parts, ahead)))[0])


# A subset as text.


def table(found: Subset) -> TextTable:
    """Return a row per run: on all steps, on the subset, and on one chosen without the run."""
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
    """Return sentences on the error of the subset."""
    part, total = found.steps
    mean, most, random = (
        number(value, found.unit)
        for value in (found.unseen_mean, found.unseen_most, found.random_mean)
    )
    lines = [
        f"{plural(part, 'step')} of the {total} that all runs have, in {found.groups[0]} of "
        f"{plural(found.groups[1], 'group')} of episodes",
        f"error of {found.metric} for a run outside the choice: {mean} on average, {most} at most "
        f"({plural(len(found.runs), 'run')} left out in turn); a random subset of this size: "
        f"{random} on average",
    ]
    if found.order is not None and found.unseen_order is not None:
        lines.append(
            f"{plural(found.sure, 'pair')} of runs that differ on all steps: "
            f"{number(found.order, 'share')} % keep their order on the subset, "
            f"{number(found.unseen_order, 'share')} % if one of the two is outside the choice"
        )
    return lines
