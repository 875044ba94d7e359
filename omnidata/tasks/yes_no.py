"""Profiles of questions that are answered by yes or no: rates of the confusion of both."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from omnidata.metrics.classification import RATES, Confusion, rates
from omnidata.metrics.intervals import Floats, Mask, sum_by
from omnidata.metrics.paired import Measures, Sums, Unit, both_known
from omnidata.metrics.row_tables import critic_table
from omnidata.tasks.profiles import RowProfile, owners, sized
from omnidata.types import Step, VerdictColumns


class YesNoProfile(RowProfile):
    """Accuracy, precision, recall and F1 of yes; a profile adds what is true, and how it judges.

    Verdicts have `score`, whether the answer is right, and `said`, which is None where the answer
    says neither.
    """

    values: tuple[str, ...] = ("score", "said")
    columns: Mapping[str, Unit] = dict.fromkeys(RATES, "share")

    @abstractmethod
    def truth(self, step: Step) -> bool:
        """Return whether yes is right; meaningless for a row that cannot be judged."""

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
        return sized(critic_table(counts, per_group=per_group if shared else ()))


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
