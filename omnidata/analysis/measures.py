"""What the metrics of a profile are sums of, episode by episode.

Episodes of one group (`Step.group`) add as one: they are drawn and swapped as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from omnidata.analysis.inference import Floats, Ints, Mask, Sums
from omnidata.analysis.pairing import Pair, textless
from omnidata.errors import RunError
from omnidata.metrics.classification import RATES, rates
from omnidata.metrics.episodes import by_owner, counts
from omnidata.metrics.row_tables import summed
from omnidata.run.scoring import Run, Unit
from omnidata.tasks.agentstudio.task import CriticProfile
from omnidata.tasks.profiles import EpisodeProfile, RowProfile, Runs, numbered
from omnidata.types import Rows


class Measures(Protocol):
    """The metrics of a pair of runs.

    Attributes:
        columns: names and units, as tables have them.
        by: the axes, which are tags, and the order of the groups on each.
        flips: the metric over steps that are right or wrong, and the value that says so; None
            where no step is right or wrong.
        judged: bool (N,), the steps that both runs' rules could judge.
    """

    columns: Mapping[str, Unit]
    by: Mapping[str, Sequence[str]]
    flips: tuple[str, str] | None
    judged: Mask

    def sums(self, chosen: Mask) -> Sums:
        """What the episodes, or groups of episodes, of the chosen steps add."""


def measures(pair: Pair) -> Measures:
    """The metrics of the profile that both runs were scored by.

    Raises:
        RunError: the profile is of a kind whose totals are not known to be sums.
    """
    if scorer := textless(pair.a):
        columns = scorer.paired(pair.a.profile)
        flips = (scorer.RIGHT, scorer.RIGHT) if scorer.RIGHT else None
        return _Means(pair, columns, columns, by={}, flips=flips)
    profile = pair.a.benchmark.profiles[pair.a.profile]
    if isinstance(profile, EpisodeProfile):
        return _Episodes(pair, profile)
    if isinstance(profile, CriticProfile):
        return _Critic(pair, profile)
    if isinstance(profile, RowProfile):
        first = (next(iter(profile.columns)), profile.values[0])
        flips = first if profile.columns[first[0]] == "share" else None
        return _Means(pair, profile.columns, profile.values, by=profile.by, flips=flips)
    raise _unknown(pair.a)


def _unknown(run: Run) -> RunError:
    return RunError(
        f"runs of the profile {run.profile} cannot be compared",
        where=str(run.path),
        expected="a profile derived from EpisodeProfile or RowProfile",
    )


@dataclass(frozen=True, slots=True)
class _Fractions:
    """Sums as (above, below) of one metric after the other."""

    count: int

    def __call__(self, sums: Floats) -> Floats:
        found: Floats = sums[..., : self.count] / sums[..., self.count :]
        return found

    @property
    def uses(self) -> list[tuple[int, int]]:
        return [(metric, self.count + metric) for metric in range(self.count)]


class _Episodes:
    """TM, EM, SR and GP of `EpisodeProfile`."""

    flips: tuple[str, str] | None = ("EM", "exact_match")

    def __init__(self, pair: Pair, profile: EpisodeProfile) -> None:
        runs = Runs.of(pair.steps)
        self.columns = profile.columns
        self.by = profile.by
        self._source = {"GP": profile.goal_progress}
        both = (pair.rows_a, pair.rows_b)
        self._a, self._b = (profile.verdicts(pair.steps, rows, runs) for rows in both)
        self.judged = _known(both, ("type_match",))

    def sums(self, chosen: Mask) -> Sums:
        sides = []
        for verdicts in (self._a, self._b):
            kept = verdicts.where(chosen & self.judged)
            found = by_owner(kept, counts(kept))
            used = [found[self._source.get(name, name)] for name in self.columns]
            sides.append(np.column_stack([part for end in zip(*used, strict=True) for part in end]))
        rates = _Fractions(len(self.columns))
        return Sums(sides[0], sides[1], rates, rates.uses)


class _Means:
    """Means over rows or tasks."""

    def __init__(
        self,
        pair: Pair,
        columns: Mapping[str, Unit],
        values: Sequence[str] | Mapping[str, Unit],
        *,
        by: Mapping[str, Sequence[str]],
        flips: tuple[str, str] | None,
    ) -> None:
        self.columns, self.by, self.flips = columns, by, flips
        used = [name for _, name in zip(columns, values, strict=True)]
        both = (pair.rows_a, pair.rows_b)
        # Where a value is known in one run alone, that metric has no pair.
        known = np.column_stack([_known(both, (name,)) for name in used])
        self.judged = known[:, 0]
        self._owner = _owners(pair)
        self._a, self._b = (
            np.column_stack([np.where(known, _stacked(rows, used), 0.0), known.astype(np.float64)])
            for rows in both
        )

    def sums(self, chosen: Mask) -> Sums:
        rates = _Fractions(len(self.columns))
        chosen = chosen & self.judged
        a, b = (summed(side[chosen], self._owner[chosen]) for side in (self._a, self._b))
        return Sums(a, b, rates, rates.uses)


class _Critic:
    """Accuracy, precision, recall and F1 of success, from the cells of the confusion."""

    flips: tuple[str, str] | None = ("accuracy", "score")

    def __init__(self, pair: Pair, profile: CriticProfile) -> None:
        self.columns, self.by = profile.columns, profile.by
        both = (pair.rows_a, pair.rows_b)
        self.judged = _known(both, ("score",))
        self._owner = _owners(pair)
        truth = np.array([bool(step.source["is_success"]) for step in pair.steps])
        self._a, self._b = (_cells(truth, rows.values["said"]) for rows in both)

    def sums(self, chosen: Mask) -> Sums:
        chosen = chosen & self.judged
        a, b = (summed(side[chosen], self._owner[chosen]) for side in (self._a, self._b))
        return Sums(a, b, _critic_rates, [tuple(range(7))] * len(RATES))


def _critic_rates(sums: Floats) -> Floats:
    """`rates`, where nothing by nothing is 0 as in the table; the last column counts rows."""
    found: Floats = np.nan_to_num(rates(sums[..., :6]))
    return np.where(sums[..., 6:] > 0, found, np.nan)


def _cells(truth: Mask, said: Floats) -> Floats:
    """(N, 7): for each row its cell of `Confusion`, and 1."""
    unread = np.isnan(said)
    yes = np.nan_to_num(said) == 1
    cells = [
        truth & yes,
        ~truth & yes,
        truth & ~yes & ~unread,
        ~truth & ~yes & ~unread,
        truth & unread,
        ~truth & unread,
        np.ones_like(truth),
    ]
    return np.column_stack(cells).astype(np.float64)


def _known(both: Sequence[Rows], names: Sequence[str]) -> Mask:
    """Where both runs have the values."""
    lacking = np.isnan(np.column_stack([_stacked(rows, names) for rows in both]))
    return np.logical_not(lacking.any(axis=1), dtype=np.bool_)


def _stacked(rows: Rows, names: Sequence[str]) -> Floats:
    return np.column_stack([rows.values[name] for name in names])


def _owners(pair: Pair) -> Ints:
    """A code per row for what it is drawn with: its group, or itself where it is of no step."""
    if not pair.steps:
        return np.arange(len(pair.ids), dtype=np.int64)
    return numbered(step.group for step in pair.steps)
