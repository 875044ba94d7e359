"""Questions about drafts as a task of the runner, whose steps they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Screen, Space
from omnidata.errors import UsageError
from omnidata.synth.compose.order import EdgeRule
from omnidata.synth.compose.writing import prompt_hash
from omnidata.types import Conversation, Profile, Source, Step, Target


class Questions:
    """The task, in the sense of the runner, whose steps are questions about drafts."""

    name = "compose"
    default_profile = ""
    profiles: Mapping[str, Profile] = {}
    allowed: Mapping[str, Sequence[str]] = {}
    options: Mapping[str, str] = {}
    baselines: Sequence[str] = ()
    needs_predictions = False

    def __init__(self, rule: EdgeRule) -> None:
        """Know which edges there are."""
        self.prompt_hash = prompt_hash(rule)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> Source:
        """There are no files of questions.

        Raises:
            UsageError: always.
        """
        raise UsageError("questions about tasks are not loaded", where=str(data))

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The question, which was made with its step."""
        conversation: Conversation = step.source["conversation"]
        return conversation

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Nobody knows the right words."""
        return None

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """There is none: instructions without a model are those by template.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f'there is no baseline "{name}" that writes instructions',
            where=f"--model baseline:{name}",
            expected="a model",
            remedy="leave --model out: instructions are then written by template",
        )

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """An instruction is no action."""
        return None


def question(sample_id: str, conversation: Conversation) -> Step:
    """A question as the runner takes it: a step without media."""
    return Step(
        sample_id=sample_id,
        episode_id=sample_id,
        step_index=0,
        num_steps=1,
        instruction="",
        screen=(0, 0),
        media={},
        history=(),
        history_screens=(),
        action=None,
        tags={},
        source={"conversation": conversation},
    )
