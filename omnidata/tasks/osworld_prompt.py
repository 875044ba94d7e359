"""OSWorld's prompt for agents that see the screenshot alone (paper, Appendix C.2.1).

The lines around it are those of the release's agent. It shows the last three screenshots with the
answers to them; a step holds one screenshot, and so the last three actions are said in words here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

from omnidata.actions import Action
from omnidata.types import Conversation, Message, Part, Step

OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "history": ("gold", "none", "predicted"),
    "alignment": ("clock", "pictures"),
    "examples": ("",),
}
"""The options of the task. `alignment` says how clips are cut out of recordings; `examples` is the
release's folder of that name, which has the instructions."""

_TASK: Final = "\nYou are asked to complete the following task: {}"
_NEXT: Final = (
    "Given the screenshot as below. What's the next step that you will do to help with the task?"
)
_BEFORE: Final = "\nThe last actions, the latest at the end:"
_UNSAID: Final = "(an action that cannot be shown)"
_LAST: Final = 3
"""Rounds that an agent is reminded of (section 4.1)."""


@cache
def system_prompt() -> str:
    """The system prompt without the task.

    Examples:
        >>> system_prompt().splitlines()[0]
        'You are an agent which follow my instruction and perform desktop computer tasks ...'
    """
    folder = resources.files("omnidata.tasks").joinpath("prompts")
    return folder.joinpath("osworld.txt").read_text(encoding="utf-8")


class Prompt:
    """The conversation about a step.

    Args:
        options: resolved (`OPTIONS`).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        """Hash all that the model reads of ours."""
        self._history = options["history"]
        said = [self._history, system_prompt(), _TASK, _NEXT, _BEFORE, _UNSAID, _LAST]
        self.hash = hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """The system and user message for one step.

        Args:
            step: of OSWorld.
            predicted: the model's own actions so far; used with `history=predicted` only.
        """
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        return (
            Message("system", (Part("text", system_prompt() + _TASK.format(step.instruction)),)),
            Message("user", (Part("text", _NEXT + self._past(step, predicted)), *shown)),
        )

    def _past(self, step: Step, predicted: Sequence[Action | None] | None) -> str:
        past = step.history if self._history == "gold" else predicted or ()
        if self._history == "none" or not past:
            return ""
        first = max(0, len(past) - _LAST)
        said = [
            f"\n{number}. {_UNSAID if action is None else action.words}"
            for number, action in enumerate(past[first:], first + 1)
        ]
        return _BEFORE + "".join(said)
