"""The tasks `groundui`, `idm-single`, `idm-multiple` and `criticbench`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Screen, Space
from omnidata.loaders import agentstudio as loader
from omnidata.loaders.agentstudio_files import TASKS, TaskName
from omnidata.loaders.agentstudio_rows import Instructions
from omnidata.tasks import agentstudio_baselines
from omnidata.tasks.agentstudio_profiles import (
    CriticProfile,
    LetterProfile,
    LettersProfile,
    PointProfile,
    Reading,
)
from omnidata.tasks.agentstudio_prompt import OPTIONS, Prompt
from omnidata.tasks.agentstudio_targets import TARGETS
from omnidata.tasks.options import resolve
from omnidata.types import Conversation, Profile, Source, Step, Target

SPACES: tuple[Space, ...] = ("rel", "px", "norm1000")
READINGS: tuple[Reading, ...] = ("paper", "release")


class AgentStudio:
    """One of the four benchmarks of AgentStudio.

    Args:
        name: which one.
        options: of its prompt, and `coordinates` of GroundUI; unknown ones are a `UsageError`.
    """

    default_profile = "agentstudio-paper"
    needs_predictions = False

    def __init__(self, name: TaskName, options: Mapping[str, str]) -> None:
        """Check the options and prepare prompt and profiles."""
        self.name = name
        self.baselines = agentstudio_baselines.NAMES[name]
        points: Mapping[str, Sequence[str]] = {"coordinates": SPACES} if name == "groundui" else {}
        self.allowed: Mapping[str, Sequence[str]] = {**OPTIONS[name], **points}
        self.options: Mapping[str, str] = resolve(options, self.allowed, "-T")
        self._space = next(
            space for space in SPACES if space == self.options.get("coordinates", SPACES[0])
        )
        self._prompt = Prompt(name, self.options)
        self.prompt_hash = self._prompt.hash
        # The released evaluator knows [0, 1] and, for one model, pixels.
        readings = READINGS[:1] if self._space == "norm1000" else READINGS
        profiles = [self._profile(reading) for reading in readings]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def _profile(self, reading: Reading) -> Profile:
        if self.name == "groundui":
            return PointProfile(reading, self._space)
        kinds: Mapping[str, Callable[[Reading], Profile]] = {
            "idm-single": LetterProfile,
            "idm-multiple": LettersProfile,
            "criticbench": CriticProfile,
        }
        return kinds[self.name](reading)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> Source:
        """Read the dataset's annotations."""
        wanted = self.options.get("instructions")
        instructions: Instructions = "raw" if wanted == "raw" else "recaptioned"
        return loader.load(
            data, self.name, instructions=instructions, check_media=check_media, strict=strict
        )

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step."""
        return self._prompt.conversation(step)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The row's point, letters or truth value; None where it has no usable one."""
        return TARGETS[self.name](step, space or self._space, size or step.screen)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer."""
        return agentstudio_baselines.policy(
            self.name, name, steps, space=self._space, options=options
        )

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """Nothing: no prompt shows the model's own earlier answers."""
        return None


def make(name: str, options: Mapping[str, str]) -> AgentStudio:
    """The task of that name, one of four."""
    return AgentStudio(next(known for known in TASKS if known == name), options)
