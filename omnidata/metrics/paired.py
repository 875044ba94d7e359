"""What metrics of two runs are sums of, episode by episode, so that chance can work on episodes.

Episodes of one group (`Step.group`) add as one: they are drawn and swapped as one.
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
    """What each episode adds to the sums that metrics are made of, in both runs.

    Attributes:
        a, b: float64 (E, C), one row per episode, the same episodes in the same order.
        rates: from sums to metrics.
        uses: for each metric the columns that it is made of; the last of them is what it divides
            by.
    """

    a: Floats
    b: Floats
    rates: Rates
    uses: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Measures:
    """The metrics of a pair of runs.

    Attributes:
        columns: names and units, as tables have them.
        by: the axes, which are tags, and the order of the groups on each.
        flips: the metric over steps that are right or wrong, and the value that says so; None
            where no step is right or wrong.
        judged: bool (N,), the steps that both runs' rules could judge.
        sums: what the episodes, or groups of episodes, of chosen steps, bool (N,), add.
    """

    columns: Mapping[str, Unit]
    by: Mapping[str, Sequence[str]]
    flips: tuple[str, str] | None
    judged: Mask
    sums: Callable[[Mask], Sums]


@dataclass(frozen=True, slots=True)
class Fractions:
    """Metrics that are one sum by another; the columns are all sums above, then all below.

    Attributes:
        count: of metrics.
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


def known_in_both(a: Floats, b: Floats) -> Mask:
    """(N,) or (N, C): where both runs have a value.

    Examples:
        >>> known_in_both(np.array([1.0, np.nan, 0.0]), np.array([0.0, 1.0, np.nan])).tolist()
        [True, False, False]
    """
    return np.logical_not(np.isnan(a) | np.isnan(b), dtype=np.bool_)


def means(a: Floats, b: Floats, owner: Ints) -> tuple[Mask, Callable[[Mask], Sums]]:
    """Metrics that are means of values of rows.

    Where a value is known in one run alone, that metric has no pair there.

    Args:
        a: (N, M), a column per metric; NaN where the row has none. A row whose first value is not
            known was not judged.
        b: those of the other run.
        owner: (N,), equal numbers for rows that are drawn together.

    Returns:
        `judged` and `sums` of `Measures`.

    Examples:
        >>> a, b = np.array([[1.0], [0.0]]), np.array([[1.0], [np.nan]])
        >>> judged, sums = means(a, b, np.arange(2))
        >>> judged.tolist(), sums(np.array([True, True])).a.tolist()
        ([True, False], [[1.0, 1.0]])
    """
    both = known_in_both(a, b)
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
