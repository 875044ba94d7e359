"""Step and episode metrics of OmniGUI (section 3.4): TM, EM, SR and both readings of GP.

The functions over one episode are the definitions. `table` computes the same for millions of steps
at once; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omnidata.metrics.intervals import (
    Floats,
    Ints,
    method_column,
    percentiles,
    resample,
    spread,
)

_SLICE = 50_000
"""Episodes whose terms are held at a time."""
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]
METRICS = ("TM", "EM", "SR", "GP_ratio", "GP_prefix", "format_ok")
_BY_STEP = ("TM", "EM", "format_ok")


def success(exact: Sequence[bool]) -> float:
    """Return 1.0 if every step of the episode is an exact match, else 0.0 (section 3.4).

    Args:
        exact: exact-match verdicts of one episode, in step order; not empty.

    Examples:
        >>> success([True, False, True])
        0.0
    """
    return float(all(exact))


def goal_progress_ratio(exact: Sequence[bool]) -> float:
    """Return the share of an episode's exact-match steps, as section 3.4 defines it.

    Args:
        exact: exact-match verdicts of one episode, in step order; not empty.

    Examples:
        >>> goal_progress_ratio([True, False, True, True])
        0.75
    """
    return sum(exact) / len(exact)


def goal_progress_prefix(exact: Sequence[bool]) -> float:
    """Return the share of an episode's steps before the first mistake.

    The paper describes the ratio of correct steps (`goal_progress_ratio`), but its Table 3 can only
    come from this prefix, which is also what the released evaluator computes.

    Args:
        exact: exact-match verdicts of one episode, in step order; not empty.

    Returns:
        A fraction in [0, 1].

    Examples:
        >>> goal_progress_prefix([True, False, True, True])
        0.25
    """
    steps = next((index for index, verdict in enumerate(exact) if not verdict), len(exact))
    return steps / len(exact)


@dataclass(frozen=True, slots=True)
class StepVerdicts:
    """Verdicts as columns of equal length N; each row is one step.

    Attributes:
        episode: int32 or int64 (N,), a code per episode.
        order: int32 or int64 (N,), the step's place in its episode; equal places keep their row
            order.
        type_match: uint8 or float64 (N,), 0 or 1.
        exact_match: uint8 or float64 (N,), 0 or 1.
        format_ok: uint8 or float64 (N,), 0 or 1.
        whole: bool (N,), False where the episode was cut and has no SR and GP.
        group: int32 or int64 (N,), a code per group of episodes that the bootstrap draws together;
            each episode is its own group if None.
    """

    episode: Codes | Ints
    order: Codes | Ints
    type_match: Flags | Floats
    exact_match: Flags | Floats
    format_ok: Flags | Floats
    whole: npt.NDArray[np.bool_]
    group: Codes | Ints | None = None

    @property
    def owner(self) -> Ints:
        """int64 (N,), equal for the steps that the bootstrap draws together."""
        if self.group is None:
            return self.episode.astype(np.int64)
        _, first, episode = np.unique(self.episode, return_index=True, return_inverse=True)
        return self.group[first][episode].astype(np.int64)

    def where(self, rows: npt.NDArray[np.bool_] | Ints) -> StepVerdicts:
        """Return the rows of a mask, bool (N,), or an index, int64."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        held = {name: getattr(self, name) for name in self.__slots__}
        columns: dict[str, Any] = {n: None if c is None else c[rows] for n, c in held.items()}
        return StepVerdicts(**columns)


def table(verdicts: StepVerdicts, *, seed: int = 0) -> dict[str, Any]:
    """Return TM and EM over steps, SR and GP over whole episodes, with 95 % bootstrap intervals.

    The bootstrap resamples episodes, or groups of related episodes.

    Args:
        verdicts: the steps to count.
        seed: of the bootstrap.

    Returns:
        The six `METRICS` as fractions, None over no steps; `ci95` with a pair or None for each;
        `ci95_method` if an interval is not a bootstrap's (see `intervals.spread`); `steps`,
        `episodes`, and `whole_episodes`, the number behind SR and GP.
    """
    per_episode = counts(verdicts)
    added, frequency = _draw_units(verdicts, per_episode)
    whole = added["SR"][1] > 0
    if whole.all():
        found = _ratios(added, frequency, seed)
    else:
        by_step = {name: added[name] for name in _BY_STEP}
        by_episode = {
            name: (above[whole], below[whole])
            for name, (above, below) in added.items()
            if name not in _BY_STEP
        }
        found = {**_ratios(by_step, frequency, seed), **_ratios(by_episode, frequency[whole], seed)}
    return {
        **{name: found[name][0] for name in METRICS},
        "ci95": {name: found[name][1] for name in METRICS},
        **method_column({name: found[name][2] for name in METRICS}),
        "steps": int(per_episode[:, 0].sum()),
        "episodes": len(per_episode),
        "whole_episodes": int(per_episode[:, 4].sum()),
    }


def by_group(
    verdicts: StepVerdicts, labels: Codes | Ints, names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the `table` of each label.

    Args:
        verdicts: the steps.
        labels: int32 or int64 (N,), index into `names`; -1 = in no group.
        names: the groups; those without a step are left out.
    """
    present = np.unique(labels)
    return {names[code]: table(verdicts.where(labels == code)) for code in present if code >= 0}


def _draw_units(
    verdicts: StepVerdicts, per_episode: Codes
) -> tuple[dict[str, tuple[Floats, Floats]], Ints]:
    if verdicts.group is None or not len(per_episode):
        kinds, frequency = _kinds(per_episode)
        return terms(kinds), frequency
    added = by_owner(verdicts, per_episode)
    rows, frequency = np.unique(_side_by_side(added), axis=0, return_counts=True)
    return _in_pairs(added, rows), frequency


def by_owner(verdicts: StepVerdicts, per_episode: Codes) -> dict[str, tuple[Floats, Floats]]:
    """Return the sums of `terms` per group of episodes, or per episode without groups.

    Args:
        verdicts: the steps.
        per_episode: their `counts`.
    """
    if verdicts.group is None or not len(per_episode):
        return terms(per_episode)
    _, first = np.unique(verdicts.episode, return_index=True)
    _, owner = np.unique(verdicts.group[first], return_inverse=True)
    names = terms(per_episode[:0])
    sums = np.zeros((int(owner.max()) + 1, 2 * len(names)))
    for start in range(0, len(owner), _SLICE):
        part = slice(start, start + _SLICE)
        np.add.at(sums, owner[part], _side_by_side(terms(per_episode[part])))
    return _in_pairs(names, sums)


def _side_by_side(added: Mapping[str, tuple[Floats, Floats]]) -> Floats:
    """(E, 2 M): numerator and denominator of each metric."""
    return np.column_stack([part for pair in added.values() for part in pair])


def _in_pairs(names: Iterable[str], columns: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Inverse of `_side_by_side`."""
    pairs = zip(columns.T[::2], columns.T[1::2], strict=True)
    return dict(zip(names, pairs, strict=True))


def terms(per_episode: Codes | Ints) -> dict[str, tuple[Floats, Floats]]:
    """Return each episode's numerator and denominator of each of the `METRICS`, (E,) each.

    Args:
        per_episode: (E, 6), see `counts`; an episode that is not whole adds nothing to SR and GP.

    Examples:
        >>> above, below = terms(np.array([[4, 4, 3, 4, 1, 1]]))["GP_prefix"]
        >>> (above / below).tolist()
        [0.25]
    """
    steps, matched, exact, as_prompted, whole, prefix = per_episode.T.astype(np.float64)
    return {
        "TM": (matched, steps),
        "EM": (exact, steps),
        "format_ok": (as_prompted, steps),
        "SR": (whole * (exact == steps), whole),
        "GP_ratio": (whole * exact / steps, whole),
        "GP_prefix": (whole * prefix / steps, whole),
    }


def counts(verdicts: StepVerdicts) -> Codes:
    """Return (E, 6): steps, type matches, exact matches, format_ok, whole, correct prefix.

    Episodes are in the order of their codes.
    """
    if not len(verdicts.episode):
        return np.zeros((0, 6), dtype=np.int32)
    verdicts = _in_order(verdicts)
    episode = verdicts.episode
    starts = np.flatnonzero(np.r_[True, episode[1:] != episode[:-1]])
    lengths = np.diff(np.r_[starts, len(episode)])
    wrong = 1 - verdicts.exact_match
    exact = wrong.dtype == np.uint8
    wrong_so_far: npt.NDArray[Any] = np.cumsum(wrong, dtype=np.int32 if exact else np.float64)
    right_so_far = wrong_so_far == np.repeat(wrong_so_far[starts] - wrong[starts], lengths)
    found = np.empty((len(starts), 6), np.int32)
    found[:, 0] = lengths
    few = np.uint8 if lengths.max() < 256 else np.int32  # `reduceat` copies what it casts
    for place, name in enumerate(("type_match", "exact_match", "format_ok"), 1):
        values = getattr(verdicts, name)
        kind = few if values.dtype == np.uint8 else np.float64
        found[:, place] = np.add.reduceat(values, starts, dtype=kind)
    found[:, 4] = np.minimum.reduceat(verdicts.whole, starts)
    found[:, 5] = np.add.reduceat(right_so_far.view(np.uint8), starts, dtype=few)
    return found


def _in_order(verdicts: StepVerdicts) -> StepVerdicts:
    """Data are usually sorted; the sort would cost more than all else."""
    episode, order = verdicts.episode, verdicts.order
    is_same, in_order = episode[1:] == episode[:-1], order[1:] >= order[:-1]
    if np.all((episode[1:] > episode[:-1]) | (is_same & in_order)):
        return verdicts
    return verdicts.where(np.lexsort((order, episode)))  # stable, as the release's sort is


def _kinds(counts: Codes) -> tuple[Codes, Ints]:
    """Return the distinct rows (K, 6) and their frequencies (K,).

    Equal counts are interchangeable, so metrics and resampling cost kinds, not episodes.
    """
    if not len(counts):
        return counts, np.zeros(0, dtype=np.int64)
    base = int(counts.max()) + 1
    if base**6 >= 2**63:  # episodes beyond a thousand steps do not fit one number
        rows: Codes
        rows, frequency = np.unique(counts, axis=0, return_counts=True)
        return rows, frequency
    key = np.zeros(len(counts), np.int64)
    for power, column in enumerate(counts.T):
        key += column * np.int64(base**power)
    _, first, often = np.unique(key, return_index=True, return_counts=True)
    return counts[first], often


def _ratios(
    terms: Mapping[str, tuple[Floats, Floats]], frequency: Ints, seed: int
) -> dict[str, tuple[float | None, list[float] | None, str]]:
    episodes = int(frequency.sum())
    if not episodes:
        return dict.fromkeys(terms, (None, None, ""))
    above = np.column_stack([part for part, _ in terms.values()])
    below = np.column_stack([part for _, part in terms.values()])
    values = (frequency @ above) / (frequency @ below)
    drawn_above, drawn_below = resample(frequency, seed, above, below)
    intervals = percentiles(drawn_above / drawn_below)
    return {
        name: (value, *spread(value, interval, episodes))
        for name, value, interval in zip(terms, values.tolist(), intervals, strict=True)
    }


def codes(
    labels: Sequence[str | None], order: Sequence[str] = ()
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return labels as codes for `by_group`, and their names; None becomes -1.

    Args:
        labels: one per step.
        order: names to put first, in this order; the others follow sorted.

    Examples:
        >>> codes(["b", None, "a"])
        (array([ 1, -1,  0]), ['a', 'b'])
    """
    found = set(labels) - {None}
    names = [name for name in order if name in found]
    names += sorted(name for name in found.difference(order) if name is not None)
    index: Mapping[str | None, int] = {None: -1, **{name: i for i, name in enumerate(names)}}
    return np.array([index[name] for name in labels], dtype=np.int64), names
