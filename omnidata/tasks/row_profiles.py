"""The way from verdicts on rows to a table of rows, which several profiles share.

`episode_profiles` has the same for steps of episodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omnidata.metrics.agentstudio_totals import by_group, means
from omnidata.metrics.episodes import Ints
from omnidata.metrics.proportion import named_methods
from omnidata.tasks.episode_profiles import numbered
from omnidata.types import OUTCOMES, Outcome, Rows, Step, Verdict

Unit = Literal["share", "number"]
Mask = npt.NDArray[np.bool_]
_ANSWERED = [OUTCOMES.index("ok"), OUTCOMES.index("unparsed")]


class RowProfile(ABC):
    """Means over rows, with bootstrap intervals; a profile adds its name and how it judges a row.

    Rows of one group, as of one page, are drawn together.

    Attributes:
        name: e.g. "agentstudio-paper".
        values: what a verdict has, in order; a row whose first value is None cannot be judged, and
            is counted and left out.
        columns: what the mean of each is called in the table.
        by: the axes of the table, which are tags, and the order of the groups on each; others are
            sorted.
    """

    name: str
    values: tuple[str, ...] = ("score",)
    columns: Mapping[str, Unit] = {"accuracy": "share"}
    by: Mapping[str, Sequence[str]] = {}

    @abstractmethod
    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the row."""

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a row for which no answer came: that on an empty one."""
        return Verdict(outcome, self.judge(step, "").values)

    def total(self, steps: Sequence[Step], rows: Rows) -> dict[str, Any]:
        """The table; rows that cannot be judged are counted and left out.

        Returns:
            `overall`, `answered` (rows with an answer, readable or not), `ci95`, `by` the axes,
            `counts`, `outcomes`.
        """
        judged = ~np.isnan(rows.values[self.values[0]])
        overall = self._table(steps, rows, judged)
        answered = self._table(steps, rows, judged & np.isin(rows.outcomes, _ANSWERED))
        outcomes = np.bincount(rows.outcomes, minlength=len(OUTCOMES)).tolist()
        return {
            "overall": {name: overall[name] for name in self.columns},
            "ci95": overall["ci95"],
            **named_methods(overall.get("ci95_method", {})),
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
            "outcomes": {name: n for name, n in zip(OUTCOMES, outcomes, strict=True) if n},
        }

    def _table(self, steps: Sequence[Step], rows: Rows, mask: Mask) -> dict[str, Any]:
        found = zip(self.columns, self.values, strict=True)
        shares = [name for name, unit in self.columns.items() if unit == "share"]
        columns = {name: rows.values[value][mask] for name, value in found}
        return sized(means(columns, shares=shares, owner=owners(steps, mask)))


def owners(steps: Sequence[Step], mask: Mask) -> Ints:
    """A number per chosen step, equal for those of one group: what a bootstrap draws together."""
    return numbered(steps[place].group for place in np.flatnonzero(mask).tolist())


def sized(table: dict[str, Any]) -> dict[str, Any]:
    """The table with its number of rows as `steps` too, as tables of episodes have it."""
    return {**table, "steps": table["rows"]}
