"""Step verdicts that print a given table: counts by integer programming, then one row per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnidata.metrics.episodes import StepVerdicts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TIE = 1e-6
"""Percent by which a mean of ratios stays clear of the values that print either way."""


@dataclass(frozen=True, slots=True)
class Part:
    """Episodes that are counted together.

    Attributes:
        lengths: int64 (E,), steps of each episode.
        cells: published percentages by TM, EM, SR, GP; empty where nothing was published.
    """

    lengths: Ints
    cells: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a part's episodes got right.

    Attributes:
        lengths: int64 (E,), steps of each episode.
        prefixes: int64 (E,), exact matches before an episode's first miss; its length = no miss.
        late: exact matches after the first miss of their episode.
        type_only: steps with a type match and no exact match.
    """

    lengths: Ints
    prefixes: Ints
    late: int
    type_only: int


def printed(value: float) -> str:
    """A fraction as the tables print it.

    Examples:
        >>> printed(88 / 709)
        '12.4'
    """
    return f"{100 * value:.1f}"


def counts_that_print(cell: float, total: int) -> range:
    """Every k for which k / total prints as `cell`; empty if there is none.

    Examples:
        >>> counts_that_print(12.4, 709), counts_that_print(12.5, 709)
        (range(88, 89), range(0, 0))
    """
    near = round(cell * total / 100)
    reach = range(max(near - total // 1000 - 2, 0), min(near + total // 1000 + 2, total) + 1)
    found = [k for k in reach if printed(k / total) == f"{cell:.1f}"]
    return range(found[0], found[-1] + 1) if found else range(0)


def spread(episodes: int, steps: int) -> Ints:
    """Episode lengths, ascending, of a stated sum: many short, few long, none empty.

    Weibull quantiles of shape 4/3; rounding their running sum instead of each makes the sum exact.

    Examples:
        >>> spread(10, 23).tolist()
        [1, 1, 2, 2, 2, 2, 2, 3, 4, 4]
    """
    quantiles = (np.arange(episodes) + 0.5) / episodes
    weights = (-np.log1p(-quantiles)) ** 0.75
    ends = np.rint(np.cumsum(weights) / weights.sum() * (steps - episodes)).astype(np.int64)
    return np.sort(1 + np.diff(ends, prepend=0))


def solve(
    parts: Sequence[Part], overall: Mapping[str, float], *, late: bool = True
) -> list[Counts] | None:
    """Counts for which every cell of every part, and of all parts together, prints as published.

    Args:
        parts: the rows of the table.
        overall: the cells over all parts; empty = none.
        late: allow exact matches after a miss. Without them the prefix holds every correct step,
            so GP_prefix and GP_ratio are one number: asking for a solution asks about GP_ratio.

    Returns:
        Counts per part, in order; None if no integers do it.
    """
    kinds = np.array(
        [
            (index, length, prefix)
            for index, part in enumerate(parts)
            for length in np.unique(part.lengths)
            for prefix in range(length + 1)
        ]
    )
    owner, length, prefix = kinds.T
    width = len(kinds) + 2 * len(parts)  # episodes of each kind; late and type_only of each part
    rows: list[Floats] = []
    lows: list[float] = []
    highs: list[float] = []

    def row(values: npt.NDArray[np.generic], column: int | None = None, factor: int = 1) -> Floats:
        full = np.zeros(width)
        full[: len(kinds)] = values
        if column is not None:
            full[column] = factor
        return full

    def bound(coefficients: Floats, low: float, high: float) -> None:
        rows.append(coefficients)
        lows.append(low)
        highs.append(high)

    def publish(sums: Mapping[str, Floats], cells: Mapping[str, float], lengths: Ints) -> bool:
        for name, cell in cells.items():
            total = len(lengths) if name in ("SR", "GP") else int(lengths.sum())
            if name == "GP":
                reach = 0.05 - TIE
                bound(sums[name], (cell - reach) / 100 * total, (cell + reach) / 100 * total)
            elif allowed := counts_that_print(cell, total):
                bound(sums[name], allowed[0], allowed[-1])
            else:
                return False
        return True

    everything: dict[str, Floats] = {name: np.zeros(width) for name in ("TM", "EM", "SR", "GP")}
    for index, part in enumerate(parts):
        mine, late_column = owner == index, len(kinds) + index
        type_column = late_column + len(parts)
        for size, count in zip(*np.unique(part.lengths, return_counts=True), strict=True):
            bound(row(mine & (length == size)), count, count)
        room = mine * np.maximum(length - prefix - 1, 0) * late
        bound(row(room, late_column, -1), 0, np.inf)
        exact = row(mine * prefix, late_column)
        typed = exact + row(np.zeros(len(kinds)), type_column)
        bound(typed, 0, part.lengths.sum())
        complete = row(mine & (prefix == length))
        progress = row(mine * prefix / length)
        sums = {"TM": typed, "EM": exact, "SR": complete, "GP": progress}
        everything = {name: everything[name] + sums[name] for name in sums}
        if not publish(sums, part.cells, part.lengths):
            return None
    if not publish(everything, overall, np.concatenate([part.lengths for part in parts])):
        return None
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        np.zeros(width),
        constraints=LinearConstraint(np.array(rows), lows, highs),
        integrality=np.ones(width),
        bounds=Bounds(0, np.inf),
    )
    if found.status == 2:  # infeasible; any other failure says nothing about the table
        return None
    if found.status != 0:
        raise RuntimeError(found.message)
    values = np.rint(found.x).astype(np.int64)
    episodes = values[: len(kinds)]
    late_steps, type_only = values[len(kinds) :].reshape(2, -1)
    return [
        Counts(
            np.repeat(length[owner == index], episodes[owner == index]),
            np.repeat(prefix[owner == index], episodes[owner == index]),
            int(late_steps[index]),
            int(type_only[index]),
        )
        for index in range(len(parts))
    ]


def lay_out(
    counts: Sequence[Counts], labels: Sequence[int], *, seed: int = 0
) -> tuple[StepVerdicts, Ints]:
    """A row per step, in no order, and its label.

    Args:
        counts: per part.
        labels: per part, for `by_group`.
        seed: of the row order, the episode codes, and the places of late and type-only matches.
    """
    rng = np.random.default_rng(seed)
    columns: list[tuple[Ints, ...]] = []
    first = 0
    for part, label in zip(counts, labels, strict=True):
        starts = np.cumsum(part.lengths) - part.lengths
        episode = np.repeat(np.arange(len(part.lengths)), part.lengths)
        place = np.arange(len(episode)) - starts[episode]
        exact = (place < part.prefixes[episode]).astype(np.int64)
        after_the_miss = np.flatnonzero(place > part.prefixes[episode])
        exact[rng.choice(after_the_miss, part.late, replace=False)] = 1
        typed = exact.copy()
        typed[rng.choice(np.flatnonzero(exact == 0), part.type_only, replace=False)] = 1
        columns.append((first + episode, place, typed, exact, np.full_like(episode, label)))
        first += len(part.lengths)
    rows = np.concatenate([np.column_stack(part) for part in columns])
    rng.shuffle(rows)
    codes = rng.permutation(first)  # episodes of one part must not happen to be neighbours
    verdicts = StepVerdicts(
        episode=codes[rows[:, 0]],
        order=rows[:, 1],
        type_match=rows[:, 2].astype(np.float64),
        exact_match=rows[:, 3].astype(np.float64),
        format_ok=np.zeros(len(rows)),
        whole=np.ones(len(rows), dtype=np.bool_),
    )
    return verdicts, rows[:, 4]
