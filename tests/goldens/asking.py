"""How the goldens ask a benchmark, read and judge answers, and add the verdicts up.

No other module of the goldens calls a member of a task or a profile. When the contract changes,
this one changes, and what was frozen does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

import omnidata
from omnidata.actions import Action, Point, Screen, Space, convert
from omnidata.errors import OmnidataError, UsageError
from omnidata.predictions import Prediction
from omnidata.run.histories import Histories
from omnidata.run.judging import Judge
from omnidata.run.scoring import get_profile, score
from omnidata.tasks.coordinates import replace_places
from omnidata.training.rewards import Reward
from omnidata.types import (
    OUTCOMES,
    Conversation,
    LoadedDataset,
    Step,
    Target,
    VerdictColumns,
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
        self._task = omnidata.get_task(name, self.given)
        self._judges = cache(lambda rule: Judge(self._task, self._task.profiles[rule]))

    def load(self, data: Path, *, check_media: bool = True) -> LoadedDataset:
        """Read the data."""
        return self._task.load(data, check_media=check_media)

    @property
    def has_own_data(self) -> bool:
        """Whether it does not ask about the data of another benchmark."""
        return not self._task.benchmark.about

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
        return self._task.conversation(step, predicted)

    def action(self, step: Step, text: str) -> Action | None:
        """Return an answer as the action that later prompts show."""
        return self._task.history_action(step, text)

    def histories(self) -> Histories:
        """Return an empty memory of answers, as a run fills it."""
        return Histories(self._task)

    # What is right.

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the right answer, in a unit of places and for a size of the screenshot."""
        return self._task.target(step, space=space, size=size)

    def answers_beside(self, step: Step, reach: float) -> list[str]:
        """Return the right answer with its places moved, if it has any.

        Args:
            step: of the data.
            reach: how far, in thousandths of the screen: to the right, and down.
        """
        target = self.target(step)
        if target is None or min(step.screen) < 1:
            return []
        unit = self._task.options.get("coordinates", "px")
        space: Space = "norm1000" if unit == "auto" else cast("Space", unit)
        one = convert(Point(reach, reach, "norm1000"), space, step.screen)
        moved = [
            [(x + one.x * right, y + one.y * down) for x, y in target.points]
            for right, down in ((1, 0), (0, 1), (-1, 0))
        ]
        return [replace_places(target, places) for places in moved if places]

    @property
    def baselines(self) -> Sequence[str]:
        """Names of its answers without a model."""
        return self._task.baselines

    def baseline_answers(self, name: str, steps: Sequence[Step]) -> list[str]:
        """Return what a baseline answers to each step."""
        return list(map(self._task.baseline(name, steps, {}), steps))

    def tap_answer(self, step: Step, point: Point) -> str | None:
        """Return the answer that taps at a point; None if no answer of the benchmark does."""
        target = self._task.target(step, space=point.space)
        one = target is not None and len(target.points) == 1
        return replace_places(target, [(point.x, point.y)]) if target and one else None

    # Verdicts.

    def verdict(
        self, step: Step, text: str, rule: str, receipt: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the verdict on an answer, as JSON."""
        found = self._task.profiles[rule].judge(step, text, receipt or {})
        verdict: dict[str, Any] = msgspec.to_builtins(found)
        return verdict

    def scores_line(self, step: Step, answer: Prediction | None, rule: str) -> dict[str, Any] | str:
        """Return the line of `scores.jsonl` for an answer, or for none, with its cause.

        Returns:
            The line without the ids of step and rule; the name of the error where judging fails.
        """
        try:
            _, line = self._judges(rule).judge([(step, answer)])
        except OmnidataError as error:
            return type(error).__name__
        found = json.loads(line)
        return {key: value for key, value in found.items() if key not in ("sample_id", "profile")}

    def explanation(self, step: Step, answer: Prediction, rule: str) -> dict[str, Any] | str:
        """Return all that a step's page says of an answer, as JSON."""
        profile, text = self._task.profiles[rule], answer.output or ""
        try:
            if answer.delivery == "ok":
                verdict = profile.judge(step, text, answer.receipt)
            else:
                verdict = profile.without_answer(step, answer.delivery)
            found = self._task.explanation(
                step, verdict, text, profile=rule, receipt=answer.receipt
            )
        except OmnidataError as error:
            return type(error).__name__
        parts = {name: getattr(found, name) for name in _EXPLAINED}
        return {name: as_json(part) for name, part in parts.items() if part}

    # Tables.

    def columns(self, rule: str) -> dict[str, Any]:
        """Return the values of a rule's verdicts, the columns of its table and its axes."""
        profile: Any = self._task.profiles[rule]
        return {
            "values": list(profile.values),
            "columns": [
                [name, unit, "lower" if name in profile.lower_is_better else "higher"]
                for name, unit in profile.columns.items()
            ],
            "axes": {axis: list(names) for axis, names in profile.by.items()},
            "shares": sorted(profile.shares),
            "step metric": list(profile.step_metric),
            "reach": profile.reach,
        }

    def results(
        self, steps: Sequence[Step], answers: Iterable[Prediction], rule: str
    ) -> dict[str, Any]:
        """Return the content of `results.json`."""
        whole = np.ones(len(steps), dtype=np.bool_)
        profile = get_profile(self._task, rule)
        return score(self._task, profile, steps, answers, whole=whole)

    def paired_rates(
        self,
        steps: Sequence[Step],
        answers: tuple[Sequence[Prediction], Sequence[Prediction]],
        rule: str,
    ) -> dict[str, Any]:
        """Return the metrics of two sets of answers, as a comparison of runs adds them up."""
        profile: Any = self._task.profiles[rule]
        sides = [self._verdict_columns(steps, each, rule) for each in answers]
        found = profile.measures(steps, *sides)
        sums = found.sums(np.ones(len(steps), dtype=np.bool_))
        return {
            "flips": found.flips,
            "judged": int(found.judged.sum()),
            "columns": list(found.columns),
            "rates": [sums.rates(side.sum(axis=0)).tolist() for side in (sums.a, sums.b)],
        }

    def _verdict_columns(
        self, steps: Sequence[Step], answers: Sequence[Prediction], rule: str
    ) -> VerdictColumns:
        profile = self._task.profiles[rule]
        found = [
            profile.judge(step, answer.output or "", answer.receipt)
            if answer.delivery == "ok"
            else profile.without_answer(step, answer.delivery)
            for step, answer in zip(steps, answers, strict=True)
        ]
        table = np.array([verdict.values for verdict in found], dtype=np.float64)
        return VerdictColumns(
            np.array([OUTCOMES.index(verdict.outcome) for verdict in found], dtype=np.uint8),
            {name: table[:, number] for number, name in enumerate(profile.values)},
            np.ones(len(steps), dtype=np.bool_),
        )

    # Rewards.

    def reward(self, source: LoadedDataset, rule: str, terms: Any) -> Reward | None:
        """Return the reward of reinforcement learning; None if the benchmark has no such terms."""
        try:
            return Reward(self._task, source, profile=rule, terms=terms)
        except UsageError:
            return None


_EXPLAINED = (
    "mark",
    "sentence",
    "target_label",
    "answer_label",
    "overlays",
    "noun",
    "frames",
    "diagnosis",
    "target_labels",
)


def as_json(value: Any) -> Any:
    """Return an action, a conversation or a place as JSON, without fields that are empty."""
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return list(map(as_json, value))
    names = getattr(value, "__struct_fields__", None) or [field.name for field in fields(value)]
    parts = {name: getattr(value, name) for name in names if name not in _PLACES}
    if isinstance(parts.get("path"), str):  # of a medium
        parts["path"] = Path(parts["path"]).name
    return {name: as_json(part) for name, part in parts.items() if part not in (None, "", (), {})}


_PLACES = frozenset({"root", "within", "cell", "inline", "sha256"})
"""Fields of media that say where a file is."""
