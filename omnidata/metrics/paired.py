"""The sums behind the metrics of two runs, per episode, for paired tests over episodes.

Episodes of one group (`Step.group`) form one unit, which is resampled and swapped as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from omnidata.metrics.intervals import Floats, Ints, Mask, sum_by

Unit = Literal["share", "number"]
Rates = Callable[[Floats], Floats]
"""Sums over episodes, (..., C), to metrics, (..., M); NaN where a metric is undefined."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Each episode's part of the sums behind the metrics of both runs.

    Attributes:
        a, b: float64 (E, C), one row per episode, the same episodes in the same order.
        rates: returns the metrics of sums.
        uses: the columns of each metric; the last one is its denominator.
    """

    a: Floats
    b: Floats
    rates: Rates
    uses: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Measures:
    """The metrics of a pair of runs.

    Attributes:
        columns: names and units, as in tables.
        by: the axes, which are tags, and the order of their groups.
        flips: the share of right steps, and the value of a verdict behind it; None if steps are
            neither right nor wrong.
        judged: bool (N,), the steps that the rules of both runs could judge.
        sums: returns the `Sums` of chosen steps, bool (N,).
    """

    columns: Mapping[str, Unit]
    by: Mapping[str, Sequence[str]]
    flips: tuple[str, str] | None
    judged: Mask
    sums: Callable[[Mask], Sums]


@dataclass(frozen=True, slots=True)
class Fractions:
    """Metrics that divide sums; the columns are all numerators, then all denominators.

    Attributes:
        count: number of metrics.
    """

    count: int

    def __call__(self, sums: Floats) -> Floats:
        """Return the metrics of sums (..., 2 * count)."""
        found: Floats = sums[..., : self.count] / sums[..., self.count :]
        return found

    @property
    def uses(self) -> list[tuple[int, int]]:
        """As `Sums.uses`."""
        return [(metric, self.count + metric) for metric in range(self.count)]


def both_known(a: Floats, b: Floats) -> Mask:
    """Return a mask, (N,) or (N, C), of the values that both runs have.

    Examples:
        >>> both_known(np.array([1.0, np.nan, 0.0]), np.array([0.0, 1.0, np.nan])).tolist()
        [True, False, False]
    """
    return np.logical_not(np.isnan(a) | np.isnan(b), dtype=np.bool_)


def means(a: Floats, b: Floats, owner: Ints) -> tuple[Mask, Callable[[Mask], Sums]]:
    """Return the mask and sums of metrics that are means of row values.

    A value that only one run has is left out.

    Args:
        a: (N, M), a column per metric; NaN for no value. A row without a first value is unjudged.
        b: those of the other run.
        owner: (N,), equal numbers for rows that are resampled together.

    Returns:
        `judged` and `sums` of `Measures`.

    Examples:
        >>> a, b = np.array([[1.0], [0.0]]), np.array([[1.0], [np.nan]])
        >>> judged, sums = means(a, b, np.arange(2))
        >>> judged.tolist(), sums(np.array([True, True])).a.tolist()
        ([True, False], [[1.0, 1.0]])
    """
    both = both_known(a, b)
    judged: Mask = both[:, 0]
    sides = [
        np.column_stack([np.where(both, side, 0.0), both.astype(np.float64)]) for side in (a, b)
    ]

    def sums(chosen: Mask) -> Sums:
        kept = chosen & judged
        added_a, added_b = (sum_by(side[kept], owner[kept]) for side in sides)
        rates = Fractions(a.shape[1])
        return Sums(added_a, added_b, rates, rates.uses)

    return judged, sums
