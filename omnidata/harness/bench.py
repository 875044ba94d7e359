"""A task with its data and rules, for other harnesses: judge one answer, compute the totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from omnidata.errors import UsageError
from omnidata.run.scoring import get_profile
from omnidata.run.selection import whole_episodes
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.profile import Profile
from omnidata.types import OUTCOMES, LoadedDataset, Outcome, Step, VerdictColumns


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome of a verdict, and its values by name (None if they cannot be judged)."""

    outcome: Outcome
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Bench:
    """A task with its data.

    Attributes:
        task, profile, source: of ours.
        steps: by sample id.
    """

    task: Asking
    profile: Profile
    source: LoadedDataset
    steps: Mapping[str, Step] = field(init=False)

    def __post_init__(self) -> None:
        steps = {step.sample_id: step for step in self.source.steps}
        object.__setattr__(self, "steps", steps)

    @classmethod
    def load(cls, name: str, data: str, profile: str | None, options: Mapping[str, str]) -> Bench:
        """Load the data of a task.

        Raises:
            UsageError: there is no such task, option or profile, or the prompts show the model's
                own earlier answers, which need an order of steps that harnesses do not keep.
            DataError: the data cannot be read.
        """
        task = get_task(name, options)
        if task.needs_predictions:
            raise UsageError(
                "other harnesses ask about steps in any order, and a prompt with the model's own "
                "earlier answers needs them one after the other",
                where="-T history=predicted",
                expected="history=gold or history=none",
                remedy=f"omnidata evaluate {name} {data} -T history=predicted",
            )
        judge = get_profile(task, profile)
        return cls(task, judge, task.load(Path(data), check_media=False))

    def overall(self, judged: Mapping[str, Judged]) -> dict[str, float]:
        """Return the profile's metrics over the judged steps.

        Metrics over episodes leave out episodes without all of their steps, as with
        `omnidata evaluate --limit`.

        Args:
            judged: by sample id.
        """
        steps = [step for step in self.source.steps if step.sample_id in judged]
        if not steps:
            return {}
        own = [judged[step.sample_id] for step in steps]
        rows = VerdictColumns(
            np.array([OUTCOMES.index(one.outcome) for one in own], dtype=np.uint8),
            {  # None becomes NaN
                name: np.array([one.values[name] for one in own], dtype=np.float64)
                for name in self.profile.values
            },
            whole_episodes(self.source.steps, steps),
        )
        found = self.profile.total(steps, rows)["overall"]
        return {
            name: value
            for name, value in found.items()
            if isinstance(value, int | float) and name not in ("steps", "rows")
        }
