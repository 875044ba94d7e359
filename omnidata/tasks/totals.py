"""How verdicts on steps are added up to a table: over rows, parts of rows, or steps and episodes.

A rule declares its totals, e.g. `RowTotals([Column("accuracy", "score")], by={"platform": ()})`. A
benchmark with totals of its own derives from one of these classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omnidata.loaders.steps import as_steps
from omnidata.metrics import episodes
from omnidata.metrics.classification import RATES, Confusion, rates
from omnidata.metrics.intervals import Floats, Ints, method_column, sum_by
from omnidata.metrics.paired import Fractions, Measures, Sums, Unit, both_known
from omnidata.metrics.paired import means as paired_means
from omnidata.metrics.row_tables import by_group, critic_table, means
from omnidata.types import OUTCOMES, Step, VerdictColumns

Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
VALUES = ("type_match", "exact_match", "format_ok")
"""The first values of a verdict of `EpisodeTotals`."""

_ANSWERED = [OUTCOMES.index("ok"), OUTCOMES.index("unparsed")]


@dataclass(frozen=True, slots=True)
class Runs:
    """Neighbouring steps of one episode that share their tags.

    Attributes:
        number: int32 (N,), the run of each step.
        order: int32 or int64 (N,), the number of each step in its episode.
        episode, group: int32 (R,), equal for runs of one.
        tags: of each run.
        lacks: bool (R,), whether the episode lacks steps: the last step's number is too large, or
            the source states more steps.
    """

    number: Codes
    order: Codes | Ints
    episode: Codes
    group: Codes
    tags: Sequence[Mapping[str, str]]
    lacks: Mask

    @classmethod
    def of(
        cls,
        steps: Sequence[Step],
        stated_length: Callable[[Any], int | None] | None = None,
    ) -> Runs:
        """Return the runs of a sequence of steps.

        Args:
            steps: any.
            stated_length: returns how many steps a row's `episode_length` states.
        """
        steps = as_steps(steps)
        episodes, tags = steps.episodes, steps.codes("tags")
        changes = (episodes[1:] != episodes[:-1]) | (tags[1:] != tags[:-1])
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1]) if len(steps) else episodes
        episodes, tags = episodes[starts], tags[starts]
        group = steps.codes("group")[starts]
        ends = np.append(starts, len(steps))[1:]
        number = np.repeat(np.arange(len(starts), dtype=np.int32), ends - starts)
        order, counts = steps.integers("step_index"), steps.integers("num_steps")
        lacks = order[ends - 1] >= counts[ends - 1]
        firsts = steps.select(starts)
        if stated_length:
            rows = firsts.sources("episode_length")
            stated = (stated_length(row.get("episode_length")) for row in rows)
            longer = (
                length is not None and length > count
                for length, count in zip(stated, counts[starts], strict=True)
            )
            lacks |= np.fromiter(longer, np.bool_, len(starts))
        kinds = [*firsts.select(np.unique(tags, return_index=True)[1]).column("tags")]
        near = order.min(initial=0) > -(2**30) and order.max(initial=0) < 2**30
        return cls(
            number,
            order.astype(np.int32) if near else order,
            episodes,
            group,
            [kinds[code] for code in tags.tolist()],
            lacks,
        )

    def incomplete(self, judged: npt.NDArray[np.bool_]) -> int:
        """Count episodes with missing or left-out steps."""
        cut = self.lacks.copy()
        cut[self.number[~judged]] = True
        return len(np.unique(self.episode[cut]))


def number_keys(keys: Iterable[Hashable]) -> Ints:
    """Number keys in order of their first appearance; equal keys get equal numbers."""
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: as it is printed, e.g. "EM".
        value: the value of verdicts that it is the mean of; of rows its name if empty.
        metric: of episodes without a `value`, the metric of `omnidata.metrics.episodes`; its name
            if empty. "GP" is the one of its two readings that the totals choose.
        unit: "share" is printed in percent.
        meaning: one line for legends.
        lower_is_better: whether a smaller value is a better one.
    """

    name: str
    value: str = ""
    metric: str = ""
    unit: Unit = "share"
    meaning: str = ""
    lower_is_better: bool = False


class _Totals:
    """The declarations that totals over episodes and over rows share.

    Attributes:
        values: names of the values of a verdict, in order.
        columns: what tables show, in order, and their units.
        lower_is_better: columns whose smaller values are better.
        legend: column -> its meaning.
        by: tag -> order of its groups in the table; groups that are not listed are sorted.
        repeated: names that several columns have, which `Benchmark.check` refuses.

    Args:
        columns: the columns; None for those of the class.
        by: as the attribute; None for that of the class.
    """

    values: tuple[str, ...]
    columns: Mapping[str, Unit]
    lower_is_better: Collection[str] = ()
    legend: Mapping[str, str] = {}
    by: Mapping[str, Sequence[str]] = {}
    repeated: Collection[str] = ()

    def __init__(
        self,
        columns: Sequence[Column] | None = None,
        *,
        by: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if columns is not None:
            counts = Counter(column.name for column in columns)
            self.repeated = [name for name, count in counts.items() if count > 1]
            self.columns = {column.name: column.unit for column in columns}
            self.lower_is_better = [column.name for column in columns if column.lower_is_better]
            self.legend = {column.name: column.meaning for column in columns if column.meaning}
        if by is not None:
            self.by = by


class EpisodeTotals(_Totals):
    """TM and EM over steps, SR and GP over episodes, with bootstrap intervals.

    A column with a `value` is its mean over the steps that have one.

    Attributes:
        values: names of the values of a verdict, in order. `exact_match`, or else the first value,
            says whether a step is right. Values of `VALUES` that are missing equal that one.
        metrics: name in the results -> metric of `omnidata.metrics.episodes`; "GP" is the one that
            `goal_progress` names.
        means: column -> the value of verdicts that it is the mean of.
        goal_progress: which of the two readings is `GP`.
        of_nothing: value of the metrics over no steps.

    Args:
        columns: the columns; None for those of the class.
        values: as the attribute; None for those of the class. Values of `columns` that are not
            among them follow.
        by: as the attribute; None for those of the class.
    """

    values: tuple[str, ...] = VALUES
    columns: Mapping[str, Unit] = dict.fromkeys(("TM", "EM", "SR", "GP"), "share")
    metrics: Mapping[str, str] = {
        name: name for name in ("TM", "EM", "SR", "GP", "GP_ratio", "GP_prefix", "format_ok")
    }
    means: Mapping[str, str] = {}
    legend: Mapping[str, str] = {
        "TM": "type match",
        "EM": "exact match",
        "SR": "success rate of episodes",
        "GP": "goal progress",
    }
    goal_progress: Literal["GP_ratio", "GP_prefix"] = "GP_ratio"
    of_nothing: float | None = None

    def __init__(
        self,
        columns: Sequence[Column] | None = None,
        *,
        values: tuple[str, ...] | None = None,
        by: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(columns, by=by)
        if columns is not None:
            self.metrics = {
                column.name: column.metric or column.name for column in columns if not column.value
            }
            self.means = {column.name: column.value for column in columns if column.value}
        own = self.values if values is None else values
        self.values = tuple(dict.fromkeys((*own, *self.means.values())))

    def _stated_length(self, value: Any) -> int | None:
        return None

    def _more_counts(self, rows: VerdictColumns, judged: Mask) -> dict[str, int]:
        return {}

    @property
    def _right(self) -> str:
        return "exact_match" if "exact_match" in self.values else self.values[0]

    @property
    def shares(self) -> Collection[str]:
        """The values in [0, 1] that its columns average; empty if it has its own totals."""
        if type(self).total is not EpisodeTotals.total:
            return ()
        own = {value for name, value in self.means.items() if self.columns[name] == "share"}
        return {self._right, *VALUES, *own}

    @property
    def step_metric(self) -> tuple[str, str]:
        """The metric for the share of right steps, and the value that marks a right step."""
        names = [name for name in (*self.columns, *self.metrics) if self._is_step_metric(name)]
        return (names[0] if names else self._right), self._right

    def _is_step_metric(self, name: str) -> bool:
        return self.metrics.get(name) == "EM" or self.means.get(name) == self._right

    def metric_of(self, name: str) -> str:
        """Return the metric of `omnidata.metrics.episodes` for a column; else its name."""
        metric = self.metrics.get(name, name)
        return self.goal_progress if metric == "GP" else metric

    def _episodes(self, steps: Sequence[Step], runs: Runs) -> Codes | Ints:
        """(N,): a code per episode."""
        return runs.episode[runs.number]

    def verdicts(
        self, steps: Sequence[Step], rows: VerdictColumns, runs: Runs
    ) -> episodes.StepVerdicts:
        """Return the verdicts as columns; unjudged steps are 0 and to be ignored.

        Args:
            steps: the judged steps.
            rows: the verdicts, aligned with the steps.
            runs: of the steps.
        """
        type_match, exact_match, format_ok = (
            _flags(rows.values[name if name in self.values else self._right]) for name in VALUES
        )
        episode = self._episodes(steps, runs)
        group = runs.group[runs.number]
        shared = group.max(initial=0) < episode.max(initial=0)
        return episodes.StepVerdicts(
            episode,
            runs.order,
            type_match,
            exact_match,
            format_ok,
            rows.whole,
            group if shared else None,
        )

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table; unjudged steps are counted and left out.

        Returns:
            `overall`, `answered` (steps with an answer, readable or not), `ci95`, `by`, `counts`,
            `outcomes`. `GP` is this profile's own definition of goal progress.
        """
        judged = ~np.isnan(rows.values[self.values[0]])
        runs = Runs.of(steps, self._stated_length)
        verdicts = self.verdicts(steps, rows, runs)
        overall = self._table_of(rows, verdicts, judged)
        by = {}
        for tag, names_first in self.by.items():
            labels, names = episodes.codes([tags.get(tag) for tags in runs.tags], names_first)
            own = labels.astype(np.int32)[runs.number]
            groups = {}
            for code in np.unique(own[judged]):
                if code >= 0:
                    chosen = judged & (own == code)
                    is_all = np.array_equal(chosen, judged)
                    groups[names[code]] = (
                        overall if is_all else self._table_of(rows, verdicts, chosen)
                    )
            if groups:
                by[tag] = groups
        answered = _has_answer(rows) & judged
        return {
            "overall": {name: overall[name] for name in (*self.metrics, *self.means)},
            "ci95": overall["ci95"],
            **method_column(overall.get("ci95_method", {})),
            "answered": overall
            if np.array_equal(answered, judged)
            else self._answered_table(rows, verdicts, answered, judged),
            "by": by,
            "counts": {
                "steps": overall["steps"],
                "episodes": overall["episodes"],
                "whole_episodes": overall["whole_episodes"],
                "incomplete_episodes": runs.incomplete(judged),
                "without_usable_target": int((~judged).sum()),
                **self._more_counts(rows, judged),
            },
            "outcomes": _count_outcomes(rows),
        }

    def measures(self, steps: Sequence[Step], a: VerdictColumns, b: VerdictColumns) -> Measures:
        """Return the sums behind the metrics of two runs; override it for other metrics.

        Args:
            steps: of both runs.
            a: the verdicts of one run, aligned with the steps.
            b: those of the other.
        """
        runs = Runs.of(steps)
        sides = [self.verdicts(steps, rows, runs) for rows in (a, b)]
        judged = both_known(a.values[self.values[0]], b.values[self.values[0]])
        known = {
            value: both_known(a.values[value], b.values[value]) for value in self.means.values()
        }
        columns = {
            name: unit
            for name, unit in self.columns.items()
            if name in self.means or name in self.metrics
        }
        rates = Fractions(len(columns))

        def column_sums(
            rows: VerdictColumns, verdicts: episodes.StepVerdicts, kept: Mask
        ) -> Floats:
            """(E, 2 M): each episode's numerators of the columns, then their denominators."""
            counted = verdicts.where(kept)
            found = episodes.by_owner(counted, episodes.counts(counted))
            used = []
            for name in columns:
                if value := self.means.get(name):
                    has = known[value][kept]
                    parts = np.column_stack([np.where(has, rows.values[value][kept], 0), has])
                    used.append(tuple(sum_by(parts, counted.owner).T))
                else:
                    used.append(found[self.metric_of(name)])
            return np.column_stack([part for end in zip(*used, strict=True) for part in end])

        def sums(chosen: Mask) -> Sums:
            kept = chosen & judged
            found = [column_sums(*side, kept) for side in zip((a, b), sides, strict=True)]
            return Sums(found[0], found[1], rates, rates.uses)

        exact = next(filter(self._is_step_metric, self.columns), None)
        flips = (exact, self._right) if exact else None
        return Measures(columns, self.by, flips, judged, sums)

    def _answered_table(
        self, rows: VerdictColumns, verdicts: episodes.StepVerdicts, answered: Any, judged: Any
    ) -> dict[str, Any]:
        broken = np.unique(verdicts.episode[judged & ~answered])
        whole = verdicts.whole & ~np.isin(verdicts.episode, broken)
        return self._table_of(rows, replace(verdicts, whole=whole), answered)

    def _table_of(
        self, rows: VerdictColumns, verdicts: episodes.StepVerdicts, mask: Mask
    ) -> dict[str, Any]:
        """Return a table of the steps of a mask with the names of the columns, and the means."""
        table = episodes.table(verdicts.where(mask))
        if self.of_nothing is not None and not table["steps"]:
            table |= dict.fromkeys(episodes.METRICS, self.of_nothing)

        def rename(found: Mapping[str, Any]) -> dict[str, Any]:
            own = {name: self.metric_of(name) for name in self.metrics}
            return {name: found[metric] for name, metric in own.items() if metric in found}

        rest = {name: value for name, value in table.items() if name not in episodes.METRICS}
        named = {**rename(table), **rest, "ci95": rename(table["ci95"])}
        methods = rename(table.get("ci95_method", {}))
        if self.means:
            owner = verdicts.where(mask).owner
            own = _part_means(self.means, self.columns, rows, mask, owner)
            methods |= own.pop("ci95_method", {})
            named["ci95"] |= own.pop("ci95")
            named |= own
        if methods or "ci95_method" in named:
            named["ci95_method"] = methods
        return named


def _flags(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | npt.NDArray[np.uint8]:
    """Unknown values are 0; returns bytes if all values are 0 or 1."""
    is_one = values == 1
    if (is_one | (values == 0) | np.isnan(values)).all():
        return np.asarray(is_one, np.uint8)
    return np.asarray(np.nan_to_num(values))


def _count_outcomes(rows: VerdictColumns) -> dict[str, int]:
    counts = np.bincount(rows.outcomes, minlength=len(OUTCOMES)).tolist()
    return {name: count for name, count in zip(OUTCOMES, counts, strict=True) if count}


def _has_answer(rows: VerdictColumns) -> Mask:
    return np.asarray((rows.outcomes == _ANSWERED[0]) | (rows.outcomes == _ANSWERED[1]))


class RowTotals(_Totals):
    """Means over rows with bootstrap intervals, which resample groups such as the rows of one page.

    Each column is the mean of one value. A row whose first value is None is unjudged: counted and
    left out.
    """

    values: tuple[str, ...] = ("score",)
    columns: Mapping[str, Unit] = {"accuracy": "share"}

    def __init__(
        self,
        columns: Sequence[Column] | None = None,
        *,
        by: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(columns, by=by)
        if columns is not None:
            self.values = tuple(column.value or column.name for column in columns)

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table; unjudged rows are counted and left out.

        Returns:
            `overall`, `answered` (rows with an answer, readable or not), `ci95`, `by` the axes,
            `counts`, `outcomes`.
        """
        judged = ~np.isnan(rows.values[self.values[0]])
        overall = self._table(steps, rows, judged)
        answered = self._table(steps, rows, judged & _has_answer(rows))
        return {
            "overall": {name: overall[name] for name in self.columns if name in overall},
            "ci95": overall["ci95"],
            **method_column(overall.get("ci95_method", {})),
            "answered": answered,
            "by": {
                tag: by_group(
                    lambda mask: self._table(steps, rows, mask & judged),
                    [step.tags.get(tag) for step in steps],
                    order,
                )
                for tag, order in self.by.items()
            },
            "counts": {
                "steps": int(judged.sum()),
                "without_usable_target": int((~judged).sum()),
                **{name: overall[name] for name in ("confusion", "undefined") if name in overall},
            },
            "outcomes": _count_outcomes(rows),
        }

    def measures(self, steps: Sequence[Step], a: VerdictColumns, b: VerdictColumns) -> Measures:
        """Return the sums behind the metrics of two runs; override it for other totals.

        Args:
            steps: of both runs.
            a: the verdicts of one run, aligned with the steps.
            b: those of the other.
        """
        used = self._means
        stacked = [
            np.column_stack([rows.values[value] for value in used.values()]) for rows in (a, b)
        ]
        owner = owners(steps, np.ones(len(steps), dtype=np.bool_))
        judged, sums = paired_means(stacked[0], stacked[1], owner)
        first = next(iter(self.columns))
        flips = (first, self.values[0]) if self.columns[first] == "share" else None
        columns = {name: self.columns[name] for name in used}
        return Measures(columns, self.by, flips, judged, sums)

    @property
    def _means(self) -> Mapping[str, str]:
        """Column -> the value that it is the mean of; further columns are those of a subclass."""
        return dict(zip(self.columns, self.values, strict=False))

    @property
    def shares(self) -> Collection[str]:
        """As `EpisodeTotals.shares`."""
        own = type(self)
        if (own.total, own._table) != (RowTotals.total, RowTotals._table):
            return ()
        return {value for name, value in self._means.items() if self.columns[name] == "share"}

    @property
    def step_metric(self) -> tuple[str, str]:
        """The metric for the share of right rows, and the value that marks a right row."""
        return next(iter(self.columns)), self.values[0]

    def _table(self, steps: Sequence[Step], rows: VerdictColumns, mask: Mask) -> dict[str, Any]:
        shares = [name for name, unit in self.columns.items() if unit == "share"]
        columns = {name: rows.values[value][mask] for name, value in self._means.items()}
        return with_steps(means(columns, shares=shares, owner=owners(steps, mask)))


class PartTotals(RowTotals):
    """`RowTotals` that average each column over the rows with a value for it."""

    def _table(self, steps: Sequence[Step], rows: VerdictColumns, mask: Mask) -> dict[str, Any]:
        found = _part_means(self._means, self.columns, rows, mask, owners(steps, mask))
        return {**found, "steps": int(mask.sum())}


def _part_means(
    used: Mapping[str, str],
    units: Mapping[str, Unit],
    rows: VerdictColumns,
    mask: Mask,
    owner: Ints,
) -> dict[str, Any]:
    """Return the mean of each column's value, over the rows of the mask that have it.

    Args:
        used: column -> value.
        units: of the columns.
        rows: the verdicts.
        mask: the rows to count.
        owner: per row of the mask, equal for rows that are resampled together.
    """
    found: dict[str, Any] = {"ci95": {}}
    methods: dict[str, str] = {}
    for name, value in used.items():
        shares = (name,) if units[name] == "share" else ()
        part = means({name: rows.values[value][mask]}, shares=shares, owner=owner)
        found[name] = part[name]
        found["ci95"][name] = part["ci95"][name]
        methods |= part.get("ci95_method", {})
    return {**found, **method_column(methods)}


class YesNoTotals(RowTotals):
    """Accuracy, precision, recall and F1 of yes.

    Verdicts have `score`, whether the answer is right, and `said`, which is None where the answer
    says neither.

    Args:
        truth: whether yes is right; meaningless for a row that cannot be judged.
        by: as the attribute.
    """

    values: tuple[str, ...] = ("score", "said")
    columns: Mapping[str, Unit] = dict.fromkeys(RATES, "share")

    def __init__(
        self,
        truth: Callable[[Step], bool],
        *,
        by: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(by=by)
        self.truth = truth

    def measures(self, steps: Sequence[Step], a: VerdictColumns, b: VerdictColumns) -> Measures:
        """Return the rates of the cells of the confusion."""
        judged = both_known(a.values["score"], b.values["score"])
        owner = owners(steps, np.ones(len(steps), dtype=np.bool_))
        truth = np.array([self.truth(step) for step in steps], dtype=np.bool_)
        sides = [_cells(truth, rows.values["said"]) for rows in (a, b)]

        def sums(chosen: Mask) -> Sums:
            kept = chosen & judged
            added_a, added_b = (sum_by(side[kept], owner[kept]) for side in sides)
            return Sums(added_a, added_b, _critic_rates, [tuple(range(7))] * len(RATES))

        return Measures(dict.fromkeys(RATES, "share"), self.by, ("accuracy", "score"), judged, sums)

    def _table(self, steps: Sequence[Step], rows: VerdictColumns, mask: Mask) -> dict[str, Any]:
        chosen = np.flatnonzero(mask).tolist()
        said = rows.values["said"][chosen].tolist()
        truth = [self.truth(steps[number]) for number in chosen]
        read = [None if value != value else bool(value) for value in said]
        groups: dict[int, list[int]] = {}
        for number, owner in enumerate(owners(steps, mask).tolist()):
            groups.setdefault(owner, []).append(number)
        per_group = [
            Confusion.of([truth[number] for number in places], [read[number] for number in places])
            for places in groups.values()
        ]
        shared = len(groups) < len(chosen)
        counts = Confusion.of(truth, read)
        return with_steps(critic_table(counts, per_group=per_group if shared else ()))


def _critic_rates(sums: Floats) -> Floats:
    """Empty ratios are 0, as in the table; the last column counts rows."""
    found: Floats = np.nan_to_num(rates(sums[..., :6]))
    return np.where(sums[..., 6:] > 0, found, np.nan)


def _cells(truth: Mask, said: Floats) -> Floats:
    """(N, 7): each row's cell of `Confusion` and a 1."""
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


def owners(steps: Sequence[Step], mask: Mask) -> Ints:
    """Return a number per chosen step, equal within a group, for the bootstrap."""
    return number_keys(steps[place].group for place in np.flatnonzero(mask).tolist())


def with_steps(table: dict[str, Any]) -> dict[str, Any]:
    """Return the table with its number of rows as `steps` too, as in tables of episodes."""
    return {**table, "steps": table["rows"]}
