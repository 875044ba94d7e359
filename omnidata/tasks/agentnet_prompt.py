"""The prompt of `agentnet`: ours, in the words of OpenCUA's actions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

from omnidata.actions import Action, Space
from omnidata.types import Conversation, Message, Part, Step

OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "history": ("gold", "none", "predicted"),
    "coordinates": ("rel", "px", "norm1000"),
}
"""The options of the task; the benchmark's own coordinates are shares of the screen."""

_UNITS: Final[Mapping[Space, str]] = {
    "rel": "shares of the screenshot, from 0 to 1, with four decimals.",
    "px": "pixels of the screenshot.",
    "norm1000": "from 0 to 1000, thousandths of the screenshot's width and height.",
}
_TASK: Final = "Task: {instruction}\n\nActions so far:\n{history}"
_NOTHING: Final = "(none)"
_UNSAID: Final = "(an action that cannot be shown)"


@cache
def template() -> str:
    """The system prompt, with a place for the unit of coordinates.

    Examples:
        >>> template().count("{unit}")
        1
    """
    folder = resources.files("omnidata.tasks").joinpath("prompts")
    return folder.joinpath("agentnet_v1.txt").read_text(encoding="utf-8")


class Prompt:
    """The conversation about a step.

    Args:
        options: resolved (`OPTIONS`).
        space: the unit of coordinates.
    """

    def __init__(self, options: Mapping[str, str], space: Space) -> None:
        """Hash all that the model reads of ours."""
        self._history = options["history"]
        self._system = template().replace("{unit}", _UNITS[space])
        said = [self._history, self._system, _TASK, _NOTHING, _UNSAID]
        self.hash = hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """The system and user message for one step.

        Args:
            step: of AgentNet.
            predicted: the model's own actions so far; used with `history=predicted` only.
        """
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        asked = _TASK.format(instruction=step.instruction, history=self._past(step, predicted))
        return (
            Message("system", (Part("text", self._system),)),
            Message("user", (*shown, Part("text", asked))),
        )

    def _past(self, step: Step, predicted: Sequence[Action | None] | None) -> str:
        past = step.history if self._history == "gold" else predicted or ()
        if self._history == "none" or not past:
            return _NOTHING
        return "\n".join(
            f"{number}. {action.words if action and action.words else _UNSAID}"
            for number, action in enumerate(past, 1)
        )
