"""The task `agentnet`: steps of AgentNet and AgentNetBench, scored as OpenCUA scores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Screen, Space
from omnidata.loaders import agentnet as loader
from omnidata.metrics.agentnetbench_answer import parse
from omnidata.pyautogui import nearest, read_code
from omnidata.tasks.agentnet_profiles import BenchProfile
from omnidata.tasks.agentnet_prompt import OPTIONS, Prompt
from omnidata.tasks.agentnet_target import BASELINES, policy, target
from omnidata.tasks.options import resolve
from omnidata.types import Conversation, Profile, Source, Step, Target

SPACES: tuple[Space, ...] = ("rel", "px", "norm1000")


class AgentNet:
    """AgentNet: what does a person do next on the desktop, given the screenshot?

    Args:
        options: `history`, `coordinates`; unknown ones are a `UsageError`.
    """

    name = "agentnet"
    default_profile = "agentnetbench"
    baselines: Sequence[str] = BASELINES
    allowed: Mapping[str, Sequence[str]] = OPTIONS

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options and prepare prompt and profiles."""
        self.options: Mapping[str, str] = resolve(options, self.allowed, "-T")
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self._prompt = Prompt(self.options, self._space)
        self.prompt_hash = self._prompt.hash
        profiles = [BenchProfile("released", self._space), BenchProfile("fixed", self._space)]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> Source:
        """Read the trajectories."""
        return loader.load(data, check_media=check_media, strict=strict)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step; `predicted` is used with `history=predicted` only."""
        return self._prompt.conversation(step, predicted)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The ground truth, as code; None where it cannot be used."""
        return target(step, space=space or self._space, size=size or step.screen)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer."""
        return policy(name, options, space=self._space)

    @property
    def needs_predictions(self) -> bool:
        """Whether a step's prompt shows the model's own earlier answers."""
        return self.options["history"] == "predicted"

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Its words are the model's code, with places as it wrote them.
        """
        said = parse(text, "fixed")
        if isinstance(said, str):
            return None
        return nearest(read_code(said.code), space=self._space, said=said.code)


def make(name: str, options: Mapping[str, str]) -> AgentNet:
    """The task of that name, which is one."""
    return AgentNet(options)
