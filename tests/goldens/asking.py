"""How the goldens ask a benchmark, read and judge answers, and add the verdicts up.

No other module of the goldens calls a member of a task or a profile. When the contract changes,
this one changes, and what was frozen does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

import omnidata
from omnidata.actions import Action, Point, Screen, Space
from omnidata.dialects import CannotSayError
from omnidata.run.histories import Histories
from omnidata.tasks.base import Benchmark
from omnidata.types import (
    Conversation,
    LoadedDataset,
    Outcome,
    Step,
    Target,
)


class Asking:
    """A benchmark, asked under options.

    Args:
        name: of the benchmark.
        options: as `-T` takes them, a dialect and histories too.

    Raises:
        UsageError: the benchmark does not take the options.
    """

    def __init__(self, name: str, options: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.given = dict(options or {})
        self._task = cast("Benchmark", omnidata.get_task(name, self.given))

    def load(self, data: Path, *, check_media: bool = True) -> LoadedDataset:
        """Read the data."""
        return self._task.load(data, check_media=check_media)

    @property
    def has_own_data(self) -> bool:
        """Whether it does not ask about the data of another benchmark."""
        return not self._task.asks_about

    @property
    def allowed(self) -> Mapping[str, Sequence[str]]:
        """Its own options and their values, the default first."""
        return self._task.allowed

    @property
    def rules(self) -> list[str]:
        """Names of its rules, the default first."""
        return list(self._task.profiles)

    @property
    def default_rule(self) -> str:
        """Name of the rule that judges unless another is named."""
        return self._task.default_profile

    # What is asked.

    @property
    def prompt_hash(self) -> str:
        """The hash of its words, as `run.json` has it."""
        return self._task.prompt_hash

    @property
    def shows_predictions(self) -> bool:
        """Whether prompts show a model's own earlier actions."""
        return self._task.needs_predictions

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """Return the prompt of a step."""
        return self._task.prompt(step, predicted)

    def action(self, text: str) -> Action | None:
        """Return an answer as the action that later prompts show."""
        return self._task.read(text)

    def histories(self) -> Histories:
        """Return an empty memory of answers, as a run fills it."""
        return Histories(self._task)

    # What is right.

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the right answer, in a unit of places and for a size of the screenshot."""
        return self._task.target(step, space=space, size=size)

    @property
    def baselines(self) -> Sequence[str]:
        """Names of its answers without a model."""
        return self._task.baselines

    def baseline_answers(self, name: str, steps: Sequence[Step]) -> list[str]:
        """Return what a baseline answers to each step."""
        return list(map(self._task.baseline(name, steps, {}), steps))

    def tap_answer(self, step: Step, point: Point) -> str | None:
        """Return the answer that taps at a point; None if no answer of the benchmark does."""
        try:
            return self._task.express([Action("tap", (point,))], step)
        except (CannotSayError, NotImplementedError):
            return None

    # Verdicts.

    def verdict(
        self, step: Step, text: str, rule: str, receipt: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the verdict on an answer, as JSON."""
        return _plain(self._task.profiles[rule].judge(step, text, receipt or {}))

    def failure(self, step: Step, outcome: Outcome, rule: str) -> dict[str, Any]:
        """Return the verdict on a request that brought no answer, as JSON."""
        return _plain(self._task.profiles[rule].failed(step, outcome))


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)
