"""Ranks of many runs on the same steps, with simultaneous intervals.

The interval of a rank follows from simultaneous intervals of all differences: a run is behind each
run whose difference to it is surely above 0, and ahead of each whose is surely below (M. Mogstad,
J. P. Romano, A. M. Shaikh and D. Wilhelm, "Inference for Ranks", Review of Economic Studies, 2024).
The critical value is that of the largest studentised difference over a bootstrap of groups of
episodes, with the same draws for all runs, so that with 95 % confidence **all** intervals contain
the true rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.analysis.alignment import Aligned, align, apply_errata, measure
from omnidata.analysis.inference import (
    MIN_DIFFERING,
    MIN_EPISODES,
    RESAMPLES,
    TIE,
    portions,
    resample,
)
from omnidata.analysis.runs import labels, read_runs, warnings
from omnidata.analysis.slices import main_metric
from omnidata.errors import RunError, plural
from omnidata.metrics.intervals import Floats, Ints, Mask
from omnidata.metrics.paired import Rates, Unit
from omnidata.run.errata import Errata
from omnidata.table import TextTable, number
from omnidata.table_formats import csv_text
from omnidata.types import LoadedDataset


@dataclass(frozen=True, slots=True)
class Place:
    """A run among the others.

    Attributes:
        run: the folder.
        model, setting: its labels.
        value: the metric, over the steps that all runs have.
        rank: from 1; runs with equal values share the best.
        ranks: the interval of the true rank.
    """

    run: str
    model: str
    setting: str
    value: float
    rank: int
    ranks: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of runs.

    Attributes:
        task, profile, metric, unit: of the ranks.
        places: of the runs, the best first.
        steps: the number that all runs have and that were judged.
        groups: the number of groups of related episodes; the bootstrap resamples these.
        critical: the value that a studentised difference must exceed; None if no two runs differ
            in enough groups.
        why: the reason why no order is sure; empty with enough groups.
        warnings: limits of the comparison.
        seed, resamples: of the bootstrap.
    """

    task: str
    profile: str
    metric: str
    unit: Unit
    places: Sequence[Place]
    steps: int
    groups: int
    critical: float | None
    why: str
    warnings: Sequence[str]
    seed: int
    resamples: int

    def as_dict(self) -> dict[str, Any]:
        """Return the ranking as a JSON object; fractions, not percent."""
        return asdict(self)


def rank(
    folders: Sequence[Path],
    *,
    data: Path | None = None,
    source: LoadedDataset | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    errata: Sequence[Errata] = (),
) -> Ranking:
    """Rank runs by their main metric on the steps that all of them have.

    Args:
        folders: of scored runs of one task, profile and dataset, two or more.
        data: the dataset, if it has moved.
        source: the dataset, if it is loaded.
        seed: of the bootstrap.
        resamples: of the bootstrap.
        errata: corrections of labels, by which all runs are judged.

    Raises:
        RunError: see `omnidata.analysis.alignment.align`; or a run has no value of the metric.
        UsageError: a folder is named twice, or the data cannot be found.
        DataError: the data cannot be read.
    """
    runs = read_runs(folders)
    found = align(runs, data=data, source=source)
    if errata:
        found = apply_errata(found, errata)
    sums = group_sums(found)
    values, groups = sums.values, sums.added.shape[1]
    why = f"too few groups of episodes ({groups})" if groups < MIN_EPISODES else ""
    critical, ahead = None, np.zeros((len(runs), len(runs)), dtype=np.bool_)
    if not why:
        critical, ahead = significant_order(sums, seed=seed, resamples=resamples)
    best = (values[:, None] > values[None] + TIE).sum(axis=0) + 1
    order = sorted(range(len(runs)), key=lambda each: (best[each], each))
    names = labels(runs)
    return Ranking(
        runs[0].task,
        runs[0].profile,
        sums.metric,
        sums.unit,
        [
            Place(
                str(runs[each].path),
                *names[each],
                float(sums.sign * values[each]),
                int(best[each]),
                (1 + int(ahead[:, each].sum()), len(runs) - int(ahead[each].sum())),
            )
            for each in order
        ],
        int(sums.judged.sum()),
        groups,
        critical,
        why,
        list(warnings(runs, found)),
        seed,
        resamples,
    )


@dataclass(frozen=True)
class GroupSums:
    """The sums of K runs over G groups of episodes, for the metric of their ranks.

    Attributes:
        metric, unit: the main metric of the runs.
        sign: -1 if lower is better, else 1.
        judged: bool (N,), the steps that are judged in all runs.
        added: float64 (K, G, C), the part of each group in each run's sums.
        rates: from sums (..., C) to all metrics.
        place: of the metric among them.
    """

    metric: str
    unit: Unit
    sign: int
    judged: Mask
    added: Floats
    rates: Rates
    place: int

    def of(self, sums: Floats) -> Floats:
        """Return the metric of sums (..., C) times `sign`; NaN if it is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.sign * self.rates(sums)[..., self.place], dtype=np.float64)

    @property
    def values(self) -> Floats:
        """The metric of each run, (K,)."""
        return self.of(self.added.sum(axis=1))


def group_sums(found: Aligned) -> GroupSums:
    """Return the sums of aligned runs.

    Raises:
        RunError: a run has no value of the metric over the steps that all runs have.
    """
    pairs, judged = measure(found)
    both = [each.sums(judged) for each in pairs]
    names = list(pairs[0].columns)
    main = main_metric(found.runs[0])
    metric = main if main in names else names[0]
    sums = GroupSums(
        metric,
        pairs[0].columns[metric],
        -1 if metric in found.runs[0].lower_is_better else 1,
        judged,
        np.stack([both[0].a, *(each.b for each in both)]),
        both[0].rates,
        names.index(metric),
    )
    for run, value in zip(found.runs, sums.values.tolist(), strict=True):
        if value != value:
            raise RunError(
                f"the run has no {metric} over the steps that all runs have",
                where=str(run.path),
                expected="runs of the same steps",
                remedy="leave it out",
            )
    return sums


def significant_order(sums: GroupSums, *, seed: int, resamples: int) -> tuple[float | None, Mask]:
    """Return the pairs of runs that differ significantly, with 95 % confidence for all pairs.

    Args:
        sums: of the runs.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Returns:
        The critical value, None if no two runs differ in enough groups or by chance; and bool
        (K, K), whether the first of two runs is ahead of the second.
    """
    values = sums.values
    drawn = _bootstrap(sums, seed, resamples) - values
    # The metric of a run may be undefined in a draw. Two runs are compared over the draws with
    # both, and not at all if these are few.
    defined = np.isfinite(drawn)
    drawn[~defined] = np.nan
    often = defined.T.astype(np.float64) @ defined
    comparable = (_differing_groups(sums.added) >= MIN_DIFFERING) & (often >= len(drawn) / 2)
    errors = np.stack(
        [
            np.std(
                drawn[:, [run]] - drawn,
                axis=0,
                where=defined[:, [run]] & defined | ~comparable[run],
            )
            for run in range(len(values))
        ]
    )
    tested = comparable & (errors > TIE)
    differences = values[:, None] - values[None]
    if not tested.any():
        return None, comparable & (differences > TIE)
    most = []
    scale = np.where(tested, errors, np.inf)
    drawn = drawn[defined.sum(axis=1) > 1]  # other draws compare no two runs
    for size in portions(len(drawn), len(values) ** 2):
        part, drawn = drawn[:size], drawn[size:]
        apart = np.nan_to_num(np.abs(part[:, :, None] - part[:, None]) / scale)
        most.append(apart.max(axis=(1, 2)))
    critical = float(np.quantile(np.concatenate(most), 0.95))
    return critical, comparable & (differences > np.maximum(critical * errors, TIE))


def _differing_groups(added: Floats) -> Ints:
    """Return the number of groups in which two runs differ, (K, K)."""
    return np.array(
        [[(np.abs(a - b) > TIE).any(axis=1).sum() for b in added] for a in added], dtype=np.int64
    )


def _bootstrap(sums: GroupSums, seed: int, resamples: int) -> Floats:
    """Return the metric of each run over draws of groups, (D, K)."""
    runs, groups, columns = sums.added.shape
    rows = sums.added.transpose(1, 0, 2).reshape(groups, runs * columns)
    kinds, count = np.unique(rows, axis=0, return_counts=True)
    return np.concatenate(
        [
            sums.of((often @ kinds).reshape(-1, runs, columns))
            for often in resample(count, np.random.default_rng(seed), resamples)
        ]
    )


def table(found: Ranking) -> TextTable:
    """Return a row per run, the best first, with settings only if they differ."""
    wide = 2 if any(place.setting for place in found.places) else 1
    rows = [
        (
            *(place.model, place.setting)[:wide],
            number(place.value, found.unit),
            str(place.rank),
            found.why or " - ".join(map(str, place.ranks)),
        )
        for place in found.places
    ]
    unit = " (%)" if found.unit == "share" else ""
    title = f"Ranks by {found.metric}{unit}: {found.task} by {found.profile}"
    header = (*("Model", "Setting")[:wide], found.metric, "Rank", "95 % interval of the rank")
    return TextTable(title, header, rows)


def method(found: Ranking) -> str:
    """Explain the intervals in a few sentences."""
    return (
        f"{plural(found.steps, 'step')} in all runs, in {plural(found.groups, 'group')} of "
        "related episodes; the bootstrap resamples groups. With 95 % confidence all intervals "
        f"together contain the true ranks ({found.resamples} resamples, largest studentised "
        f"difference of any two runs). Runs that differ in fewer than {MIN_DIFFERING} groups are "
        "never ranked apart."
    )


def as_csv(found: Ranking) -> str:
    """Return a line per run; fractions, nothing rounded."""
    fields = ("run", "model", "setting", "metric", "value", "rank", "low", "high", "why")
    return csv_text(
        fields,
        (
            {
                "run": place.run,
                "model": place.model,
                "setting": place.setting,
                "metric": found.metric,
                "value": place.value,
                "rank": place.rank,
                "low": place.ranks[0],
                "high": place.ranks[1],
                "why": found.why,
            }
            for place in found.places
        ),
    )
