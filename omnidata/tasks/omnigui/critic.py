"""The task `omnigui-critic`: did an OmniGUI episode fulfil its instruction?

CriticBench's prompt, window and reading (AgentStudio, section 5.3 and Appendix E) over OmniGUI's
episodes: the screenshots are the observations, the expert's actions in words are the actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from omnidata.actions import NUMBERS, Screen, Space, history_text
from omnidata.loaders.steps import Steps
from omnidata.tasks.agentstudio.criticbench import CriticBench, SameOutcome
from omnidata.tasks.agentstudio.rows import window
from omnidata.tasks.benchmark import About, Benchmark, Card, Paper, ParsedAnswer, Values
from omnidata.tasks.omnigui import load as loader
from omnidata.tasks.omnigui.rows import states_target, success_of
from omnidata.tasks.omnigui.task import AppSpellings
from omnidata.types import (
    Annotation,
    LoadedDataset,
    MediaRef,
    Modality,
    Questions,
    Step,
    Target,
)

_LEAK = (
    "CriticBench gives itself away: of two of its sources every failure ends with an observation "
    "and no success does, which a critic can learn; -T symmetric=true leaves that observation out"
)


class KnownOutcome(SameOutcome):
    """Compares the answer with `is_success` of the rows; without it, the answer is not judged."""

    def judge(self, step: Step, parsed: ParsedAnswer[bool] | None) -> Values:
        """Compare the answer with the row."""
        if not isinstance(step.source.get("is_success"), bool):
            return (None, parsed.value if parsed else None)
        return super().judge(step, parsed)


class OmniGuiCritic(CriticBench):
    """CriticBench's question about every episode of an OmniGUI source.

    A last step without an action is the observation after the action before it, as in recordings
    whose actions were labelled afterwards. `is_success` of the rows of the episode or its steps is
    the truth.

    Args:
        name: "omnigui-critic".
        options: those of `criticbench`; unknown ones are a `UsageError`.
    """

    card = Card(
        title="omnigui-critic",
        holds="CriticBench's question about every episode of an OmniGUI source.",
    )
    baselines = ("oracle", "always-true", "always-false")
    wordings = AppSpellings()
    explain = Benchmark.explain

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self.files, self.paper, self.derivation = loader.OmniGuiFiles(), Paper(), None
        self.rules = (KnownOutcome("paper"),)
        annotation = Annotation(
            "success",
            known_from="criticbench",
            expected="episodes with screenshots and actions",
            remedy="label the steps first (`omnidata synth label`), or judge without the actions: "
            "-T observations_only=true",
            truth='add a column "is_success" to the known episodes, or name a file of CriticBench '
            "with --known",
            caveat=_LEAK if self.options["symmetric"] == "false" else "",
        )
        self.about = About(benchmark="omnigui", annotation=annotation, questions=self._questions)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        source = loader.load(data, check_media=check_media, strict=strict)
        return self._questions(source).source

    def _questions(self, source: LoadedDataset) -> Questions:
        unasked: dict[str, str] = {}

        def questions() -> Iterator[Step]:
            for _, same in groupby(source.steps, key=lambda step: step.episode):
                steps = tuple(same)
                question = _question(steps, source.episode_rows.get(steps[0].episode, {}))
                if reason := self._unaskable(steps):
                    unasked[question.sample_id] = reason
                else:
                    yield question

        episodes = Steps.of(questions())
        longest: list[str] = max((list(step.media) for step in episodes), key=len, default=[])
        roles: dict[str, Modality] = dict.fromkeys(longest, "image")
        return Questions(replace(source, steps=episodes, roles=roles), unasked)

    def _unaskable(self, steps: Sequence[Step]) -> str:
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

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return whether the episode succeeded, as an answer; None if unknown."""
        return super().target(step) if isinstance(step.source.get("is_success"), bool) else None


def _question(steps: Sequence[Step], row: Mapping[str, Any]) -> Step:
    """Return an episode as a row of CriticBench, with a screenshot `observation_N` per step."""
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
        "action_space": list(NUMBERS),
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
