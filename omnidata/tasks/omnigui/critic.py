"""The task `omnigui-critic`: did an OmniGUI episode fulfil its instruction?

CriticBench's prompt, window and reading (AgentStudio, section 5.3 and Appendix E) over OmniGUI's
episodes: the screenshots are the observations, the expert's actions in words are the actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from omnidata.actions import NUMBERS, Action, Screen, Space, history_text
from omnidata.loaders.stored_steps import collect
from omnidata.tasks.agentstudio.criticbench import CriticBench, SameOutcome
from omnidata.tasks.agentstudio.rows import window
from omnidata.tasks.asking import AskedProfile, Asking
from omnidata.tasks.base import Benchmark
from omnidata.tasks.benchmark import ParsedAnswer, Values
from omnidata.tasks.omnigui import load as loader
from omnidata.tasks.omnigui.files import app_key, find
from omnidata.tasks.omnigui.rows import states_target, success_of
from omnidata.types import (
    Annotation,
    Conversation,
    LoadedDataset,
    MediaRef,
    Modality,
    Profile,
    Questions,
    Step,
    Target,
)

SPACE = tuple(NUMBERS)
"""What the prompt calls the action space."""

_LEAK = (
    "CriticBench gives itself away: of two of its sources every failure ends with an observation "
    "and no success does, which a critic can learn; -T symmetric=true leaves that observation out"
)


class OmniGuiCritic(Benchmark):
    """CriticBench's question about every episode of an OmniGUI source.

    The last step of an episode, where it has no action, is what was seen after the action before
    it: so end recordings whose actions were labelled afterwards. Whether an episode succeeded is
    known where its rows say `is_success`, its own or those of its steps.

    Args:
        options: those of `criticbench`; unknown ones are a `UsageError`.
    """

    asks_about = "omnigui"
    baselines = ("oracle", "always-true", "always-false")

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._critic = Asking(CriticBench("criticbench", options))
        self.allowed = self._critic.allowed
        super().__init__(name, options)
        self.prompt_hash = self._critic.prompt_hash
        self.annotates = Annotation(
            "success",
            known_from=self._critic.name,
            expected="episodes with screenshots and actions",
            remedy="label the steps first (`omnidata synth label`), or judge without the actions: "
            "-T observations_only=true",
            truth='add a column "is_success" to the known episodes, or name a file of CriticBench '
            "with --known",
            caveat=_LEAK if self.options["symmetric"] == "false" else "",
        )
        profile = AskedProfile(self._critic.benchmark, _SameOutcome("paper"))
        self.profiles: Mapping[str, Profile] = {profile.name: profile}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        return self.ask_about(loader.load(data, check_media=check_media, strict=strict)).source

    def fingerprint(self, data: Path) -> str:
        return find(data).fingerprint()

    def ask_about(self, source: LoadedDataset) -> Questions:
        """The episodes of an OmniGUI source that can be asked about."""
        unasked: dict[str, str] = {}

        def questions() -> Iterator[Step]:
            for _, same in groupby(source.steps, key=lambda step: step.episode):
                steps = tuple(same)
                question = episode(steps, source.episode_rows.get(steps[0].episode, {}))
                if reason := self.unaskable(steps):
                    unasked[question.sample_id] = reason
                else:
                    yield question

        episodes = collect(questions())
        longest: list[str] = max((list(step.media) for step in episodes), key=len, default=[])
        roles: dict[str, Modality] = dict.fromkeys(longest, "image")
        return Questions(replace(source, steps=episodes, roles=roles), unasked)

    def unaskable(self, steps: Sequence[Step]) -> str:
        """Why nobody can be asked about an episode; empty if somebody can.

        Args:
            steps: all of it, in order.
        """
        missing = sorted(set(range(steps[-1].step_index + 1)) - {step.step_index for step in steps})
        if missing:
            return f"step {missing[0]} is missing"
        actions = _acting_steps(steps)
        if not actions:
            return "the episode has no action"
        kept = window("criticbench", [{}] * len(actions))
        for step in actions[kept.start : kept.stop]:
            if step.media.get("screenshot") is None:
                return f"step {step.step_index} has no screenshot"
            if step.action is None and self.options["observations_only"] == "false":
                return f"step {step.step_index} has no action"
        return ""

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        return self._critic.prompt(step)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return whether the episode succeeded, as an answer; None if unknown."""
        return self._critic.target(step) if _success_of_step(step) is not None else None

    def spelling(self, tag: str, value: str) -> str:
        return app_key(value) if tag == "app" else value

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """Return that rule; `oracle` is silent about unknown outcomes."""
        rule = self._critic.baseline(name, steps, options)
        return lambda step: (
            rule(step) if name != "oracle" or _success_of_step(step) is not None else ""
        )


class _SameOutcome(SameOutcome):
    def judge(self, step: Step, parsed: ParsedAnswer[bool] | None) -> Values:
        if _success_of_step(step) is not None:
            return super().judge(step, parsed)
        return (None, parsed.value if parsed else None)


def _success_of_step(step: Step) -> bool | None:
    """CriticBench's trajectories have the same column."""
    success = step.source.get("is_success")
    return success if isinstance(success, bool) else None


def episode(steps: Sequence[Step], row: Mapping[str, Any] = {}) -> Step:
    """An episode as a row of CriticBench.

    Args:
        steps: of an OmniGUI source, all of the episode, in order.
        row: the episode's own, where the source has one.

    Returns:
        A step named `app/episode`, with `observation_0`, `observation_1`, ... for screenshots.
    """
    actions = _acting_steps(steps)
    media: dict[str, MediaRef | None] = {
        f"observation_{number}": step.media.get("screenshot") for number, step in enumerate(steps)
    }
    seen = [ref and ref.path for ref in media.values()] + [None]
    question = {
        "instruction": steps[0].instruction,
        "actions": [
            {
                "operation": step.action.label if step.action else None,
                "obs_before": seen[number],
                "obs_after": seen[number + 1],
                "metadata": {"repr": history_text(step.action, step.screen) if step.action else ""},
            }
            for number, step in enumerate(actions)
        ],
        "action_space": list(SPACE),
        "is_success": success_of((row, *(step.source for step in steps))),
    }
    return replace(
        steps[0],
        sample_id=steps[0].sample_id.rpartition("/")[0],
        step_index=0,
        num_steps=1,
        media=media,
        history=(),
        history_screens=(),
        action=None,
        source=question,
    )


def _acting_steps(steps: Sequence[Step]) -> Sequence[Step]:
    return steps if states_target(steps[-1].source) else steps[:-1]
