"""A task that another distribution brings: its failures name it, the line, and the data or step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnidata.files import staying_in
from omnidata.loaders.load import refuse_findings
from omnidata.loaders.torn import torn_episodes
from omnidata.plugins import Blame
from omnidata.tasks.base import Benchmark, explain
from omnidata.types import (
    Conversation,
    Explanation,
    Outcome,
    Profile,
    Rows,
    Source,
    Step,
    Target,
    Task,
    Verdict,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PluginTask:
    """The task as it is, but for what it raises.

    Attributes:
        task: of the distribution.
        blame: calls its code.
    """

    task: Task
    blame: Blame

    def __getattr__(self, name: str) -> Any:
        """Whatever else the task has."""
        if name in ("task", "blame") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.task, name)

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """By name."""
        found = self.task.profiles.items()
        return {name: PluginProfile(profile, self.blame) for name, profile in found}

    def load(self, data: Path, **options: Any) -> Source:
        """Read the dataset's annotations, and nothing outside the data.

        Raises:
            DataError: with `strict`, an episode is torn.
        """
        with staying_in(data):
            found: Source = self.blame.call(self.task.load, str(data), data, **options)
            torn = torn_episodes(found.steps)
        if torn and options.get("strict"):
            refuse_findings(torn, data)
        return replace(found, findings=[*found.findings, *torn]) if torn else found

    def prompt(self, step: Step, *predicted: Any, **options: Any) -> Conversation:
        """The conversation for one step."""
        said: Conversation = self.blame.call(
            self.task.prompt, step.sample_id, step, *predicted, **options
        )
        return said

    def target(self, step: Step, **options: Any) -> Target | None:
        """The right answer."""
        found: Target | None = self.blame.call(self.task.target, step.sample_id, step, **options)
        return found

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name."""
        where = f"baseline:{name}"
        rule = self.blame.call(self.task.baseline, where, name, steps, options)
        return lambda step: str(self.blame.call(rule, step.sample_id, step))

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Any:
        """A model's text as an action."""
        return self.blame.call(self.task.read, f"the answer {text[:60]!r}", text, receipt)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Its own explanation, or the one of `Benchmark`, whose answers are read as `read` does."""
        own = getattr(type(self.task), "explain", Benchmark.explain)
        if own is Benchmark.explain:
            return explain(self, self.profiles[profile], step, verdict, receipt=receipt)
        said: Explanation = self.blame.call(
            self.task.explain, step.sample_id, step, verdict, profile=profile, receipt=receipt
        )
        return said


@dataclass(frozen=True, slots=True)
class PluginProfile:
    """The profile as it is, but for what it raises.

    Attributes:
        profile: of the distribution.
        blame: calls its code.
    """

    profile: Profile
    blame: Blame

    @property  # type: ignore[misc]  # read only, as nobody sets it
    def __class__(self) -> Any:
        """That of the profile: `compare` asks which of our base classes it has."""
        return self.profile.__class__

    def __getattr__(self, name: str) -> Any:
        """Whatever else the profile has."""
        if name in ("profile", "blame") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.profile, name)

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the step."""
        found: Verdict = self.blame.call(self.profile.judge, step.sample_id, step, text, receipt)
        return found

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a step for which no answer came."""
        found: Verdict = self.blame.call(self.profile.failed, step.sample_id, step, outcome)
        return found

    def total(self, steps: Sequence[Step], rows: Rows) -> dict[str, Any]:
        """The table."""
        where = f"the table of {len(steps)} steps"
        found: dict[str, Any] = self.blame.call(self.profile.total, where, steps, rows)
        return found
