"""Inference about differences: bootstrap intervals, sign flips, McNemar, Benjamini-Hochberg.

The unit is the episode, because steps of an episode are correlated; related episodes (`Step.group`)
count as one. A resample draws whole episodes with both runs' results (the paired cluster
bootstrap); a sign flip swaps both runs' results on an episode. Episodes with equal results are
interchangeable, so the cost grows with the kinds of episodes only; `scipy.stats.bootstrap` and
`permutation_test`, whose cost grows with episodes, give the same numbers.
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
"""With five episodes that differ no two-sided test reaches 0.05: 2 / 2**5 is 0.0625."""
_AT_ONCE = 1 << 21  # random numbers held at a time
TIE = 1e-12
"""Tolerance for sums that were added in another order."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One metric in both runs, with the interval and the p-value of its difference.

    Attributes:
        a, b: the metric; None = undefined.
        difference: b - a.
        ci95: 2.5th and 97.5th percentile of the bootstrapped difference; None for the reason `why`.
        p: two-sided, of the sign-flip test; None if the difference is undefined.
        episodes: number of episodes of the metric.
        differing: number of episodes in which the runs differ.
        why: the reason for no interval; empty if there is one.
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
        a_only: number of steps that only run A has right.
        b_only: number of steps that only run B has right.
        p: two-sided.
    """

    a_only: int
    b_only: int
    p: float


def mcnemar(a: Mask, b: Mask) -> McNemar:
    """Return McNemar's exact test of equal accuracy (Q. McNemar, 1947).

    It assumes independent steps; its p-value is too small if steps of an episode are correlated.

    Args:
        a: bool (N,), whether run A has each step right.
        b: the same for run B.

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


def corrected(ps: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for their number (Benjamini and Hochberg, 1995); None stays None.

    Examples:
        >>> corrected([0.01, None, 0.04, 0.03])
        [0.03, None, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    known = [p for p in ps if p is not None]
    found = iter(false_discovery_control(known).round(12).tolist() if known else ())
    return [None if p is None else next(found) for p in ps]


def estimate(sums: Sums, *, seed: int = 0, resamples: int = RESAMPLES) -> list[Estimate]:
    """Return each metric's difference with its interval and its p-value.

    Args:
        sums: sums of the episodes.
        seed: of the draws; the same sums and seed give the same numbers.
        resamples: number of draws, of the bootstrap and of the sign flips each.

    Returns:
        One estimate per metric, in the order of `sums.uses`.
    """
    a, b, frequency = _kinds(sums)
    total_a, total_b = frequency @ a, frequency @ b
    with np.errstate(divide="ignore", invalid="ignore"):
        rates_a, rates_b = sums.rates(total_a), sums.rates(total_b)
        found = rates_b - rates_a
        rng = np.random.default_rng(seed)
        spans = _intervals(a, b, frequency, sums.rates, rng, resamples)
        ps = _flipped(a, b, frequency, sums.rates, found, rng, resamples)
    estimates = []
    for metric, used in enumerate(sums.uses):
        of_it = np.maximum(a[:, used[-1]], b[:, used[-1]]) > 0
        differs = of_it & _differ(a[:, used], b[:, used])
        episodes, differing = int(frequency @ of_it), int(frequency @ differs)
        defined = bool(np.isfinite(found[metric]))
        why = _why_not(episodes, differing, defined=defined)
        low, high = spans[metric].tolist()
        estimates.append(
            Estimate(
                _number(rates_a[metric]),
                _number(rates_b[metric]),
                _number(found[metric]),
                None if why else (low, high),
                float(ps[metric]) if defined else None,
                episodes,
                differing,
                why,
            )
        )
    return estimates


def _why_not(episodes: int, differing: int, *, defined: bool) -> str:
    """Why there is no interval; empty if there is one."""
    if not defined:
        return "undefined"
    if episodes < MIN_EPISODES:
        return f"too few episodes ({episodes})"
    if differing < MIN_DIFFERING:
        return f"too few episodes differ ({differing})" if differing else "no episode differs"
    return ""


def _number(value: float) -> float | None:
    return None if value != value else float(value)


def _differ(a: Floats, b: Floats) -> Mask:
    """(K,): where the runs differ; a group's fractions may have been added in another order."""
    return np.asarray((np.abs(b - a) > TIE).any(axis=1), dtype=np.bool_)


def _kinds(sums: Sums) -> tuple[Floats, Floats, Ints]:
    """The distinct rows of both runs' sums, (K, C) each, and how often each occurs, (K,)."""
    both = np.column_stack([sums.a, sums.b])
    kinds, frequency = np.unique(both, axis=0, return_counts=True)
    columns = sums.a.shape[1]
    return kinds[:, :columns], kinds[:, columns:], frequency


def portions(resamples: int, kinds: int) -> Iterator[int]:
    """Yield sizes of portions of the resamples that fit into memory."""
    size = max(1, _AT_ONCE // max(1, kinds))
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def _intervals(
    a: Floats,
    b: Floats,
    frequency: Ints,
    rates: Rates,
    rng: np.random.Generator,
    resamples: int,
) -> Floats:
    """(M, 2): 95 % percentile intervals of the differences over resampled episodes."""
    episodes = int(frequency.sum())
    if not episodes:
        return np.full((rates(frequency @ a).shape[-1], 2), np.nan)
    found = []
    for size in portions(resamples, len(frequency)):
        draws = rng.multinomial(episodes, frequency / episodes, size=size)
        found.append(rates(draws @ b) - rates(draws @ a))
    differences = np.concatenate(found)
    # A draw may lack all episodes that a metric is over.
    usable = np.where(np.isfinite(differences), differences, np.nan)
    usable[:, np.isnan(usable).all(axis=0)] = 0.0  # undefined in both runs: nobody asks
    spans: Floats = np.nanpercentile(usable, [2.5, 97.5], axis=0).T
    return spans


def _flipped(
    a: Floats,
    b: Floats,
    frequency: Ints,
    rates: Rates,
    found: Floats,
    rng: np.random.Generator,
    resamples: int,
) -> Floats:
    """(M,): the share of swaps that give at least the difference found, itself among them.

    All swaps are tried where there are no more of them than resamples.
    """
    differ = _differ(a, b)
    gained, often = (b - a)[differ], frequency[differ]
    total_a, total_b = frequency @ a, frequency @ b

    def reached(swaps: Ints) -> Floats:
        moved = swaps @ gained
        drawn = np.abs(rates(total_b - moved) - rates(total_a + moved))
        counted: Floats = (~(drawn < np.abs(found) - TIE)).sum(axis=0).astype(np.float64)
        return counted

    episodes = int(often.sum())
    if episodes < resamples.bit_length():
        gained = np.repeat(gained, often, axis=0)
        every = np.arange(1 << episodes, dtype=np.int64)[:, None] >> np.arange(episodes) & 1
        return reached(every) / len(every)
    times = np.ones(len(found))
    for size in portions(resamples, len(often)):
        times += reached(rng.binomial(often, 0.5, size=(size, len(often))))
    return times / (resamples + 1)
