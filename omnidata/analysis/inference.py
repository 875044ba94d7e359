"""Uncertainty of differences: bootstrap, permutation test, McNemar's test, Benjamini-Hochberg.

Steps of one episode are correlated, so whole episodes are drawn: a resample draws episodes with the
results of both runs (the paired cluster bootstrap), and a permutation swaps the runs on an episode.
Episodes with equal results are interchangeable, so the time depends on the number of distinct
results; `scipy.stats.bootstrap` and `permutation_test`, whose time depends on the number of
episodes, give the same results. Related episodes (`Step.group`) count as one episode here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omnidata.metrics.intervals import Floats, Ints, Mask
from omnidata.metrics.paired import Rates, Sums

RESAMPLES = 10_000
MIN_EPISODES = 10
"""With fewer, percentiles of a bootstrap are far too narrow."""
MIN_DIFFERING = 6
"""If five episodes differ, no two-sided test reaches 0.05: 2 / 2**5 is 0.0625."""
_AT_ONCE = 1 << 21  # random numbers in memory
TIE = 1e-12
"""A sum differs by less if it is added in another order."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One metric in both runs, and the uncertainty of its difference.

    Attributes:
        a, b: the metric; None if it is undefined.
        difference: b - a.
        ci95: the bootstrap's 2.5th and 97.5th percentile of the difference; None if there is none.
        p: two-sided, of the permutation test; None if the difference is undefined.
        episodes: number of episodes that have the metric.
        differing: number of these in which the runs differ.
        why: the reason if there is no interval, else empty.
    """

    a: float | None
    b: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    p: float | None
    episodes: int
    differing: int
    why: str


class McNemar(NamedTuple):
    """McNemar's exact test.

    Attributes:
        a_only, b_only: number of steps that only run A, only run B has right.
        p: two-sided.
    """

    a_only: int
    b_only: int
    p: float


def mcnemar(a: Mask, b: Mask) -> McNemar:
    """Return McNemar's exact test (Q. McNemar, 1947): are flips as frequent in both directions?

    It assumes independent steps; p is too small when steps of an episode are correlated.

    Args:
        a: bool (N,), whether run A has each step right.
        b: the same of run B.

    Examples:
        >>> found = mcnemar(np.array([True] * 9 + [False]), np.array([False] * 8 + [True, True]))
        >>> found.a_only, found.b_only, round(found.p, 4)
        (8, 1, 0.0391)
    """
    from scipy.stats import binomtest

    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    flips = only_a + only_b
    p = float(binomtest(only_a, flips, 0.5).pvalue) if flips else 1.0
    return McNemar(only_a, only_b, p)


def correct_p_values(ps: Sequence[float | None]) -> list[float | None]:
    """Return each p corrected for all of them (Y. Benjamini and Y. Hochberg, 1995).

    None stays None.

    Examples:
        >>> correct_p_values([0.01, None, 0.04, 0.03])
        [0.03, None, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    known = [p for p in ps if p is not None]
    found = iter(false_discovery_control(known).round(12).tolist() if known else ())
    return [None if p is None else next(found) for p in ps]


def estimate(sums: Sums, *, seed: int = 0, resamples: int = RESAMPLES) -> list[Estimate]:
    """Return each metric's difference with its interval and its p.

    Args:
        sums: of the episodes.
        seed: of the draws; equal sums and seeds give equal numbers.
        resamples: of the bootstrap and of the permutation test, each.

    Returns:
        One estimate per metric, in the order of `sums.uses`.
    """
    kinds = _find_kinds(sums)
    rng = np.random.default_rng(seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates_a, rates_b = sums.rates(kinds.count @ kinds.a), sums.rates(kinds.count @ kinds.b)
        differences = rates_b - rates_a
        intervals = _intervals(kinds, sums.rates, rng, resamples)
        ps = _permutation_test(kinds, sums.rates, differences, rng, resamples)
    estimates = []
    for metric, columns in enumerate(sums.uses):
        denominator = columns[-1]
        has_metric = (kinds.a[:, denominator] > 0) | (kinds.b[:, denominator] > 0)
        differs = has_metric & _differ(kinds.a[:, columns], kinds.b[:, columns])
        episodes, differing = int(kinds.count @ has_metric), int(kinds.count @ differs)
        is_defined = bool(np.isfinite(differences[metric]))
        why = _why_not(episodes, differing, is_defined=is_defined)
        low, high = intervals[metric].tolist()
        estimates.append(
            Estimate(
                _number(rates_a[metric]),
                _number(rates_b[metric]),
                _number(differences[metric]),
                None if why else (low, high),
                float(ps[metric]) if is_defined else None,
                episodes,
                differing,
                why,
            )
        )
    return estimates


def _why_not(episodes: int, differing: int, *, is_defined: bool) -> str:
    """Return the reason if there is no interval, else an empty text."""
    if not is_defined:
        return "undefined"
    if episodes < MIN_EPISODES:
        return f"too few episodes ({episodes})"
    if differing < MIN_DIFFERING:
        return f"too few episodes differ ({differing})" if differing else "no episode differs"
    return ""


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Episodes with equal results in both runs are of one kind.

    Attributes:
        a, b: float64 (K, C), the sums of one episode of each kind.
        count: int64 (K,), the number of episodes of each kind.
    """

    a: Floats
    b: Floats
    count: Ints


def _find_kinds(sums: Sums) -> _Kinds:
    rows, count = np.unique(np.column_stack([sums.a, sums.b]), axis=0, return_counts=True)
    columns = sums.a.shape[1]
    return _Kinds(rows[:, :columns], rows[:, columns:], count)


def _differ(a: Floats, b: Floats) -> Mask:
    """Return a mask (K,) of the rows that differ by more than the order of adding explains."""
    return np.asarray((np.abs(b - a) > TIE).any(axis=1), dtype=np.bool_)


def portions(resamples: int, numbers: int) -> Iterator[int]:
    """Yield the sizes of portions of resamples, of so many numbers each, that fit in memory."""
    size = max(1, _AT_ONCE // max(1, numbers))
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def resample(count: Ints, rng: np.random.Generator, resamples: int) -> Iterator[Ints]:
    """Yield how often each kind of episode is drawn in each resample, (S, K), portion by portion.

    Args:
        count: (K,), the number of episodes of each kind.
        rng: draws.
        resamples: in all.
    """
    episodes = count.sum()
    for size in portions(resamples, len(count)):
        yield rng.multinomial(episodes, count / episodes, size=size)


def _intervals(kinds: _Kinds, rates: Rates, rng: np.random.Generator, resamples: int) -> Floats:
    """Return 95 % percentile intervals (M, 2) of the differences over resampled episodes."""
    if not len(kinds.count):
        return np.full((rates(kinds.count @ kinds.a).shape[-1], 2), np.nan)
    differences = np.concatenate(
        [
            rates(counts @ kinds.b) - rates(counts @ kinds.a)
            for counts in resample(kinds.count, rng, resamples)
        ]
    )
    # A draw may lack all episodes that have a metric.
    differences[~np.isfinite(differences)] = np.nan
    differences[:, np.isnan(differences).all(axis=0)] = 0.0  # undefined in both runs, and unused
    intervals: Floats = np.nanpercentile(differences, [2.5, 97.5], axis=0).T
    return intervals


def _permutation_test(
    kinds: _Kinds, rates: Rates, observed: Floats, rng: np.random.Generator, resamples: int
) -> Floats:
    """Return the share (M,) of swaps whose difference is at least the observed, which is one.

    All swaps are tried if there are no more than resamples.
    """
    differ = _differ(kinds.a, kinds.b)
    gained, count = (kinds.b - kinds.a)[differ], kinds.count[differ]
    total_a, total_b = kinds.count @ kinds.a, kinds.count @ kinds.b

    def count_extremes(swaps: Ints, gained: Floats) -> Floats:
        """Return how many swaps (S, K) of rows of gains (K, C) are as extreme, (M,)."""
        moved = swaps @ gained
        differences = rates(total_b - moved) - rates(total_a + moved)
        is_less = np.abs(differences) < np.abs(observed) - TIE
        extremes: Floats = (~is_less).sum(axis=0).astype(np.float64)  # NaN counts as extreme
        return extremes

    episodes = int(count.sum())
    if episodes < resamples.bit_length():
        swaps = np.arange(1 << episodes, dtype=np.int64)[:, None] >> np.arange(episodes) & 1
        return count_extremes(swaps, np.repeat(gained, count, axis=0)) / len(swaps)
    extremes = np.ones(len(observed))
    for size in portions(resamples, len(count)):
        extremes += count_extremes(rng.binomial(count, 0.5, size=(size, len(count))), gained)
    return extremes / (resamples + 1)
