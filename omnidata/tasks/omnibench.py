"""The task `omnibench`: steps of OmniBench's trajectories, its prompt, and a profile of our own.

What the paper scores, coverage and consistency of task graphs, needs no model's text:
`omnidata score omnibench TASKS SEQUENCES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Screen, Space
from omnidata.desktop import nearest, words
from omnidata.loaders import omnibench as loader
from omnidata.metrics.omnibench_answer import parse
from omnidata.metrics.omnigui_answer import Unread
from omnidata.tasks.omnibench_profile import StepProfile
from omnidata.tasks.omnibench_prompt import OPTIONS, Prompt
from omnidata.tasks.omnibench_target import BASELINES, policy, target
from omnidata.tasks.options import resolve
from omnidata.types import Conversation, Profile, Source, Step, Target


class OmniBench:
    """OmniBench: what does the agent click, turn or type next, given the screen?

    Args:
        options: `history`, `intent`, `coordinates`; unknown ones are a `UsageError`.
    """

    name = "omnibench"
    default_profile = StepProfile.name
    baselines: Sequence[str] = BASELINES
    allowed: Mapping[str, Sequence[str]] = OPTIONS

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options and prepare prompt and profile."""
        self.options: Mapping[str, str] = resolve(options, self.allowed, "-T")
        self._prompt = Prompt(self.options)
        self.prompt_hash = self._prompt.hash
        self._space: Space = self._prompt.space
        profile = StepProfile(self._space)
        self.profiles: Mapping[str, Profile] = {profile.name: profile}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> Source:
        """Read the dataset's annotations."""
        return loader.load(data, check_media=check_media, strict=strict)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step; `predicted` is used with `history=predicted` only."""
        return self._prompt.conversation(step, predicted)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The expert's action as compact JSON; None where the source has no usable one."""
        return target(step, space=space or self._space, size=size or step.screen)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer."""
        return policy(name, steps, space=self._space, options=options)

    @property
    def needs_predictions(self) -> bool:
        """Whether a step's prompt shows the model's own earlier answers."""
        return self.options["history"] == "predicted"

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Its words have the point as the model wrote it, in the unit that it was asked for.
        """
        answer = parse(text)
        if isinstance(answer, Unread) or answer.call is None:
            return None
        where = f"[{answer.point[0]:g}, {answer.point[1]:g}]" if answer.point else ""
        return nearest(answer.call, None, said=words(answer.call, where))


def make(name: str, options: Mapping[str, str]) -> OmniBench:
    """The task of that name, which is one."""
    return OmniBench(options)
