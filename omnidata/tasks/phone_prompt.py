"""The prompt for phones: OmniGUI's unified prompt, its actions those of the dataset, by name.

Actions have names here where OmniGUI's prompt has numbers: Android in the Wild has numbers of its
own, and the same ones for other actions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from omnidata.actions import Action, Space, history_text
from omnidata.types import Conversation, Message, Part, Step

SPACES: tuple[Space, ...] = ("norm1000", "px", "rel")
HISTORY = ("gold", "none", "predicted")
_UNITS: Mapping[Space, str] = {
    "norm1000": "Range: 0-1000 (normalized). [0, 0] = top-left, [1000, 1000] = bottom-right.",
    "px": "In pixels of the screenshot.",
    "rel": "Range: 0-1 (normalized). [0, 0] = top-left, [1, 1] = bottom-right.",
}
_ASK = "Analyze the current screenshot and output the next action as JSON."


@dataclass(frozen=True, slots=True)
class Wording:
    """What a dataset puts into the prompt.

    Attributes:
        actions: the rows of the table: name and parameters.
        rules: its own, one sentence each.
        examples: what for, and the answer.
    """

    actions: Sequence[tuple[str, str]]
    rules: Sequence[str]
    examples: Sequence[tuple[str, str]]

    def system(self, space: Space) -> str:
        """The system prompt.

        Args:
            space: the unit of coordinates that is asked for.
        """
        folder = resources.files("omnidata.tasks").joinpath("prompts")
        text = folder.joinpath("phone_v1.txt").read_text(encoding="utf-8").rstrip("\n")
        actions = "\n".join(f"| {name} | {given or '(none)'} |" for name, given in self.actions)
        rules = "\n".join(f"- {rule}" for rule in self.rules)
        examples = "\n".join(f"- {what}: {answer}" for what, answer in self.examples)
        for key, value in (
            ("{actions}", actions),
            ("{unit}", _UNITS[space]),
            ("{rules}", rules),
            ("{examples}", examples),
        ):
            text = text.replace(key, value)
        return text


class Prompt:
    """Builds conversations: system prompt, screenshot, goal, history.

    Args:
        wording: the dataset's.
        options: resolved; `history`, `coordinates`.
    """

    def __init__(self, wording: Wording, options: Mapping[str, str]) -> None:
        """Prepare the system prompt."""
        self.options = options
        self.space = next(space for space in SPACES if space == options["coordinates"])
        self._system = wording.system(self.space)
        self.hash = hashlib.sha256(
            json.dumps([dict(options), self._system, _ASK]).encode()
        ).hexdigest()

    def conversation(
        self, step: Step, goal: str, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """The system and user message for one step.

        Args:
            step: the step.
            goal: what is to be done.
            predicted: the model's own actions so far; used with `history=predicted` only.
        """
        blocks = [f"Goal: {goal}", f"Step: {step.step_index}"]
        if lines := self._history(step, predicted):
            blocks.append("Action History:\n" + "\n".join(lines))
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        return (
            Message("system", (Part("text", self._system),)),
            Message("user", (*shown, Part("text", "\n\n".join([*blocks, _ASK])))),
        )

    def _history(self, step: Step, predicted: Sequence[Action | None] | None) -> list[str]:
        wanted = self.options["history"]
        past = () if wanted == "none" else step.history if wanted == "gold" else predicted or ()
        return [
            f"Step {number}: {history_text(action, screen if min(screen) > 0 else (1, 1))}"
            for number, (action, screen) in enumerate(zip(past, step.history_screens, strict=False))
            if action is not None
        ]
