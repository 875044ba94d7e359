"""What was composed, counted as OmniBench's figure 3 does; counts of parts add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS, Complexity

AXES = ("intents", "apps", "categories", "apps_per_task", "repeated_subtasks")
"""What is counted by tasks, beside the levels and the values of each dimension."""


class Tally:
    """Counts of tasks."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._sums: Counter[str] = Counter()
        self._axes: dict[str, Counter[str]] = {axis: Counter() for axis in AXES}
        self._values: dict[str, Counter[int]] = {name: Counter() for name in DIMENSIONS}
        self._levels: dict[str, Counter[str]] = {name: Counter() for name in DIMENSIONS}

    def add(
        self,
        measured: Complexity,
        *,
        intent: str,
        apps: Sequence[str],
        categories: Iterable[str],
        repeated: int,
        sums: Mapping[str, int],
    ) -> None:
        """Count a task.

        Args:
            measured: its complexity.
            intent: what it is for.
            apps: of its nodes.
            categories: of its applications.
            repeated: subtasks that it has more than once.
            sums: whatever is added up.
        """
        self._sums.update(tasks=1, edges=measured.dependency, subtasks=measured.instruction, **sums)
        for name, level in measured.levels().items():
            self._levels[name][level] += 1
            self._values[name][getattr(measured, name)] += 1
        self._axes["intents"][intent] += 1
        self._axes["apps"].update(set(apps))
        self._axes["categories"].update(set(categories))
        self._axes["apps_per_task"][str(len(set(apps)))] += 1
        self._axes["repeated_subtasks"][str(repeated)] += 1

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add what `as_dict` gave of another one."""
        self._sums.update(other["sums"])
        for axis in AXES:
            self._axes[axis].update(other[axis])
        for name in DIMENSIONS:
            self._levels[name].update(other["levels"][name])
            self._values[name].update({int(k): n for k, n in other["values"][name].items()})

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON values, in the order of their names."""
        return {
            "sums": dict(sorted(self._sums.items())),
            "levels": {
                name: {level: self._levels[name][level] for level in LEVELS} for name in DIMENSIONS
            },
            "values": {
                name: {
                    str(value): self._values[name][value] for value in sorted(self._values[name])
                }
                for name in DIMENSIONS
            },
            **{axis: dict(sorted(counts.items())) for axis, counts in self._axes.items()},
        }
