"""Resampling, and how far a share that was counted can be from the true one."""

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
    """Wilson's 95 % interval of a share (E. B. Wilson, 1927), which holds for few trials too.

    It takes the trials for independent: steps of one episode are less than that, and the true
    interval is wider.

    Args:
        hits: successes, 0 to `total`.
        total: trials.

    Returns:
        Both ends, as fractions; None over nothing.

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
    """(G, C): what the rows (N, C) of each owner add up to."""
    _, numbers = np.unique(owner, return_inverse=True)
    sums = np.zeros((int(numbers.max(initial=-1)) + 1, added.shape[1]))
    np.add.at(sums, numbers, added)
    return sums


def resample(frequency: Ints, seed: int, *added: Floats | Ints) -> list[Floats]:
    """What is drawn adds up to, for each of `added`, (RESAMPLES, C).

    Where kinds are many, some resamples are drawn at a time; all are what one call would draw.

    Args:
        frequency: (K,), how many there are of each kind; as many are drawn as there are of all.
        seed: of the draws.
        added: (K, C) each, what one of a kind adds.
    """
    random, number = np.random.default_rng(seed), int(frequency.sum())
    size = next((each for each in _SIZES if each * len(frequency) <= _DRAWN), _SIZES[-1])
    found = []
    for _ in range(RESAMPLES // size):
        draws = random.multinomial(number, frequency / number, size=size)
        found.append([draws @ each for each in added])
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def percentiles(draws: Floats) -> list[list[float]]:
    """The 95 % interval of each column of draws, (D, M): both ends."""
    found: list[list[float]] = np.percentile(draws, [2.5, 97.5], axis=0).T.tolist()
    return found


def bootstrap_interval(drawn: Sequence[float], trials: int) -> tuple[list[float] | None, Method]:
    """The interval of a bootstrap, and where it comes from.

    Every resample of one group is that group: its interval would have no width, whatever the value.

    Args:
        drawn: both ends.
        trials: what was resampled: groups of episodes, rows or tasks.

    Examples:
        >>> bootstrap_interval([0.4, 0.6], 44), bootstrap_interval([0.5, 0.5], 1)
        (([0.4, 0.6], 'bootstrap'), (None, 'none: one group'))
    """
    return (list(drawn), "bootstrap") if trials > 1 else (None, "none: one group")


def spread(found: float, drawn: Sequence[float], trials: int) -> tuple[list[float] | None, Method]:
    """The interval of a share, and where it comes from.

    Where nothing or everything is right, every resample of a bootstrap says the same, which tells
    nothing of the true share: Wilson's interval over what was resampled stands there. Any other
    share of one group has none (see `bootstrap_interval`).

    Args:
        found: the share, or a mean of values from 0 to 1.
        drawn: both ends of the bootstrap's interval.
        trials: what was resampled: episodes, rows or tasks.

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
    """`ci95_method`, for a table: the columns that have no bootstrap's interval, and why.

    Examples:
        >>> method_column({"TM": "bootstrap", "EM": "wilson"}), method_column({"TM": "bootstrap"})
        ({'ci95_method': {'EM': 'wilson'}}, {})
    """
    named = {name: method for name, method in methods.items() if method in _NAMED}
    return {"ci95_method": named} if named else {}


def share(hits: int, total: int) -> dict[str, Any]:
    """A share with its interval, as JSON values.

    Returns:
        `hits`, `n`, `share` and `ci95` (see `wilson`), both None over nothing.

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
