"""Resampling, and confidence intervals of shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

RESAMPLES = 1000
"""Of the bootstrap of a table."""

_DRAWN = 2_000_000
"""Numbers of draws that are held at a time: 16 MB, and as much again while they are multiplied."""
_SIZES = (1000, 200, 40)
"""Resamples that are drawn at a time: parts of `RESAMPLES`. Products of fewer rows, or of a rest,
are summed in another order by OpenBLAS, and their last digits are others."""

Method = Literal["bootstrap", "wilson", "none: one group"]
_NAMED: tuple[Method, ...] = ("wilson", "none: one group")
_Z = NormalDist().inv_cdf(0.975)


def wilson(hits: int, total: int) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval of a share (E. B. Wilson, 1927), valid for few trials too.

    It assumes independent trials; the true interval of correlated steps of an episode is wider.

    Args:
        hits: successes, 0 to `total`.
        total: trials.

    Returns:
        Both ends, as fractions; None over no trials.

    Examples:
        >>> [round(end, 4) for end in wilson(8, 10)], wilson(0, 0)
        ([0.4902, 0.9433], None)
    """
    if not total:
        return None
    found, weight = hits / total, _Z * _Z / total
    middle = found + weight / 2
    half = _Z * math.sqrt(found * (1 - found) / total + weight / (4 * total))
    low, high = ((middle + sign * half) / (1 + weight) for sign in (-1, 1))
    # Rounding must not put the share itself outside, or an end beyond 0 and 1.
    return max(0.0, min(low, found)), min(1.0, max(high, found))


def sum_by(added: Floats, owner: Ints) -> Floats:
    """Return the sums (G, C) of the rows (N, C) of each owner."""
    _, numbers = np.unique(owner, return_inverse=True)
    sums = np.zeros((int(numbers.max(initial=-1)) + 1, added.shape[1]))
    np.add.at(sums, numbers, added)
    return sums


def resample(frequency: Ints, seed: int, *added: Floats | Ints) -> list[Floats]:
    """Return the sums of bootstrap resamples, (RESAMPLES, C) for each of `added`.

    Many kinds are drawn in slices; the result is the same as of one draw.

    Args:
        frequency: (K,), the number of members of each kind; a resample has as many as all kinds.
        seed: of the draws.
        added: (K, C) each, the values of one member of each kind.
    """
    random, number = np.random.default_rng(seed), int(frequency.sum())
    size = next((each for each in _SIZES if each * len(frequency) <= _DRAWN), _SIZES[-1])
    found = []
    for _ in range(RESAMPLES // size):
        draws = random.multinomial(number, frequency / number, size=size)
        found.append([draws @ each for each in added])
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def percentiles(draws: Floats) -> list[list[float]]:
    """Return both ends of the 95 % interval of each column of draws, (D, M)."""
    found: list[list[float]] = np.percentile(draws, [2.5, 97.5], axis=0).T.tolist()
    return found


def bootstrap_interval(drawn: Sequence[float], trials: int) -> tuple[list[float] | None, Method]:
    """Return the interval of a bootstrap, and its method.

    A single group has no interval, because every resample would be the same.

    Args:
        drawn: both ends.
        trials: the number of resampled groups, episodes, rows or tasks.

    Examples:
        >>> bootstrap_interval([0.4, 0.6], 44), bootstrap_interval([0.5, 0.5], 1)
        (([0.4, 0.6], 'bootstrap'), (None, 'none: one group'))
    """
    return (list(drawn), "bootstrap") if trials > 1 else (None, "none: one group")


def spread(found: float, drawn: Sequence[float], trials: int) -> tuple[list[float] | None, Method]:
    """Return the interval of a share, and its method.

    A share of 0 or 1 has Wilson's interval over the trials, because all its resamples are equal.
    Any other share of a single group has no interval (see `bootstrap_interval`).

    Args:
        found: the share, or a mean of values from 0 to 1.
        drawn: both ends of the bootstrap's interval.
        trials: the number of resampled episodes, rows or tasks.

    Examples:
        >>> spread(0.5, [0.4, 0.6], 44)
        ([0.4, 0.6], 'bootstrap')
        >>> (low, high), method = spread(0.0, [0.0, 0.0], 44)
        >>> low, round(high, 3), method
        (0.0, 0.08, 'wilson')
    """
    interval = wilson(int(found) * trials, trials) if found in (0, 1) else None
    if interval is None or drawn[0] != drawn[1]:
        return bootstrap_interval(drawn, trials)
    return list(interval), "wilson"


def method_column(methods: Mapping[str, str]) -> dict[str, Any]:
    """Return `ci95_method` for a table: the columns without a bootstrap's interval, and why.

    Examples:
        >>> method_column({"TM": "bootstrap", "EM": "wilson"}), method_column({"TM": "bootstrap"})
        ({'ci95_method': {'EM': 'wilson'}}, {})
    """
    named = {name: method for name, method in methods.items() if method in _NAMED}
    return {"ci95_method": named} if named else {}


def share(hits: int, total: int) -> dict[str, Any]:
    """Return a share with its interval, as JSON values.

    Returns:
        `hits`, `n`, `share` and `ci95` (see `wilson`), the last two None over no trials.

    Examples:
        >>> share(0, 0)
        {'hits': 0, 'n': 0, 'share': None, 'ci95': None}
    """
    interval = wilson(hits, total)
    return {
        "hits": hits,
        "n": total,
        "share": hits / total if total else None,
        "ci95": None if interval is None else list(interval),
    }
