"""Tables of rows: micro averages, with intervals.

Totals are averages over all rows, not over groups (as in AgentStudio, Tables 4 to 10). Values are
unrounded fractions; intervals are 95 % percentile bootstraps over rows, or over groups of related
rows; a single group has no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from omnidata.metrics.classification import RATES, Confusion, rates
from omnidata.metrics.episodes import codes
from omnidata.metrics.intervals import (
    Floats,
    Ints,
    Method,
    bootstrap_interval,
    method_column,
    percentiles,
    resample,
    spread,
    sum_by,
)


def means(
    columns: Mapping[str, Floats],
    *,
    shares: Collection[str] = (),
    owner: Ints | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the mean of each column.

    Args:
        columns: name -> float64 (N,), e.g. accuracy as 0 and 1, and edit distance; rows with a NaN
            in any column are unjudged and left out.
        shares: the columns with values from 0 to 1.
        owner: (N,), equal numbers for rows that are resampled together; None for no groups.
        seed: of the bootstrap.

    Returns:
        The means by name, None over no rows; `ci95` with a pair or None for each; `ci95_method` if
        an interval is not a bootstrap's (see `intervals.spread`); `rows`, the number of judged
        rows.

    Examples:
        >>> table = means({"accuracy": np.array([1.0, 0.0, 1.0, np.nan])})
        >>> round(table["accuracy"], 3), table["rows"]
        (0.667, 3)
    """
    values = np.column_stack([*columns.values()])
    known = ~np.isnan(values).any(axis=1)
    values = values[known]
    rows = len(values)
    if not rows:
        nothing = dict.fromkeys(columns, None)
        return {**nothing, "ci95": nothing, "rows": 0}
    added = np.column_stack([values, np.ones(rows)])
    if owner is not None:
        added = sum_by(added, owner[known])
    # What adds the same is interchangeable: resampling costs kinds, not rows.
    kinds, frequency = np.unique(added, axis=0, return_counts=True)
    sums = frequency @ kinds
    values_by_name = dict(zip(columns, (sums[:-1] / sums[-1]).tolist(), strict=True))
    (draws,) = resample(frequency, seed, kinds)
    drawn = percentiles(draws[:, :-1] / draws[:, -1:])
    return {
        **values_by_name,
        **_interval_columns(values_by_name, drawn, shares=shares, trials=len(added)),
        "rows": rows,
    }


def critic_table(
    counts: Confusion, *, per_group: Sequence[Confusion] = (), seed: int = 0
) -> dict[str, Any]:
    """Return accuracy, precision, recall and F1 of the positive class, success.

    Args:
        counts: responses by truth and prediction.
        per_group: the same for each group of responses that are resampled together; empty for no
            groups.
        seed: of the bootstrap.

    Returns:
        `RATES` by name; `ci95` with a pair or None for each; `ci95_method` as in `means`: only
        accuracy can have Wilson's interval, because the denominators of the others vary between
        resamples; `undefined`, the rates that divide zero by zero, which are 0 as in scikit-learn
        (None without rows); `confusion`, the counts; `rows`.

    Examples:
        >>> table = critic_table(Confusion(tp=0, fp=0, fn=3, tn=1))
        >>> [table[name] for name in RATES], table["undefined"]
        ([0.25, 0.0, 0.0, 0.0], ['precision'])
    """
    cells = np.array(counts, dtype=np.int64)
    found = rates(cells)
    undefined = [name for name, rate in zip(RATES, found.tolist(), strict=True) if rate != rate]
    table: dict[str, Any] = dict.fromkeys(RATES)
    told: dict[str, Any] = {"ci95": dict.fromkeys(RATES)}
    if cells.any():
        table = dict(zip(RATES, np.nan_to_num(found).tolist(), strict=True))
        if per_group:
            kinds, frequency = np.unique(np.array(per_group), axis=0, return_counts=True)
            (drawn,) = resample(frequency, seed, kinds)
        else:
            (drawn,) = resample(cells, seed, np.eye(len(cells), dtype=np.int64))
        drawn_rates = percentiles(np.nan_to_num(rates(drawn)))
        trials = len(per_group) or int(cells.sum())
        told = _interval_columns(table, drawn_rates, shares=("accuracy",), trials=trials)
    return {
        **table,
        **told,
        "undefined": undefined,
        "confusion": counts._asdict(),
        "rows": int(cells.sum()),
    }


def by_group(
    table: Callable[[npt.NDArray[np.bool_]], dict[str, Any]],
    labels: Sequence[str | None],
    order: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Return a table for each label.

    Args:
        table: returns the table of the rows of a mask, bool (N,).
        labels: one per row; None = in no group.
        order: labels to put first, in this order; the others follow sorted.

    Examples:
        >>> hits = np.array([1.0, 0.0, 1.0])
        >>> groups = by_group(lambda rows: means({"hit": hits[rows]}), ["web", "web", "mobile"])
        >>> {name: group["hit"] for name, group in groups.items()}
        {'mobile': 1.0, 'web': 0.5}
    """
    numbers, names = codes(labels, order)
    return {name: table(numbers == code) for code, name in enumerate(names)}


def _interval_columns(
    found: Mapping[str, float],
    drawn: Sequence[list[float]],
    *,
    shares: Collection[str],
    trials: int,
) -> dict[str, Any]:
    intervals: dict[str, list[float] | None] = {}
    methods: dict[str, Method] = {}
    for (name, value), ends in zip(found.items(), drawn, strict=True):
        interval = (
            spread(value, ends, trials) if name in shares else bootstrap_interval(ends, trials)
        )
        intervals[name], methods[name] = interval
    return {"ci95": intervals, **method_column(methods)}
