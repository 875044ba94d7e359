"""The task `osworld`: turns of OSWorld's rollouts, the paper's prompt, and a profile of our own.

What the paper scores, the share of examples that succeed, needs no model's text:
`omnidata score osworld RESULTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Screen, Space
from omnidata.errors import UsageError
from omnidata.loaders import osworld as loader
from omnidata.loaders.osworld_steps import AlignBy
from omnidata.metrics.osworld_answer import parse
from omnidata.pyautogui import nearest
from omnidata.tasks.options import resolve
from omnidata.tasks.osworld_profile import StepProfile
from omnidata.tasks.osworld_prompt import OPTIONS, Prompt
from omnidata.tasks.osworld_target import BASELINES, policy, target
from omnidata.types import Conversation, Profile, Source, Step, Target


class OsWorld:
    """OSWorld: what does the agent do next on the desktop, given the screenshot?

    Args:
        options: `history`, `alignment`, `examples`; unknown ones are a `UsageError`.
    """

    name = "osworld"
    default_profile = StepProfile.name
    baselines: Sequence[str] = BASELINES
    allowed: Mapping[str, Sequence[str]] = OPTIONS

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options and prepare prompt and profile."""
        self.options: Mapping[str, str] = resolve(options, self.allowed, "-T")
        self._examples = Path(self.options["examples"]) if self.options["examples"] else None
        if self._examples is not None and not self._examples.is_dir():
            raise UsageError(
                "there is no such folder",
                where=f"-T examples={self._examples}",
                expected="OSWorld's evaluation_examples/examples",
            )
        self._align: AlignBy = "pictures" if self.options["alignment"] == "pictures" else "clock"
        self._prompt = Prompt(self.options)
        self.prompt_hash = self._prompt.hash
        profile = StepProfile()
        self.profiles: Mapping[str, Profile] = {profile.name: profile}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> Source:
        """Read the rollouts."""
        return loader.load(
            data,
            examples=self._examples,
            align=self._align,
            check_media=check_media,
            strict=strict,
        )

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step; `predicted` is used with `history=predicted` only."""
        return self._prompt.conversation(step, predicted)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """What the recorded agent did, as code; None where it cannot be said.

        Raises:
            UsageError: a unit other than pixels, in which code has its places.
        """
        if space not in (None, "px"):
            raise UsageError(
                f"code has its places in pixels, not in {space}",
                expected="px",
                remedy="leave the unit out",
            )
        return target(step, size=size or step.screen)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer."""
        return policy(name, options)

    @property
    def needs_predictions(self) -> bool:
        """Whether a step's prompt shows the model's own earlier answers."""
        return self.options["history"] == "predicted"

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Its words are the model's code, with places as it wrote them.
        """
        said = parse(text)
        return (
            None if isinstance(said, str) else nearest(said.statements, space="px", said=said.code)
        )


def make(name: str, options: Mapping[str, str]) -> OsWorld:
    """The task of that name, which is one."""
    return OsWorld(options)
