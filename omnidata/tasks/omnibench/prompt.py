"""OmniBench's prompt, for a model that is shown the screenshot alone.

The paper prints the prompt of its trajectory synthesis (Appendix E.1), and its evaluation asks in
the same parts: an annotated screenshot beside a plain one, and a list of all controls. Trajectories
hold neither, and so what is asked for here is a point, as the release asks agents that see. Every
sentence that differs is in this module; the rest is the paper's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from omnidata.actions import Action, Space
from omnidata.types import Conversation, Message, Part, Step

SPACES: tuple[Space, ...] = ("px", "norm1000", "rel")
OPTIONS: Mapping[str, Sequence[str]] = {
    "history": ("gold", "none", "predicted"),
    "intent": ("off", "on"),
    "coordinates": SPACES,
}
"""The options of the task. `intent` tells the model what the task is for (section 5.3)."""

_UNITS: Mapping[Space, str] = {
    "px": "in pixels of the screenshot",
    "norm1000": "from 0 to 1000 along its width and its height",
    "rel": "from 0 to 1 along its width and its height",
}
_ANNOTATED = """\
- You are provided two versions of screenshots of the current application in a single image, one \
with annotation (right) and one without annotation (left)
- The annotation is to help you identify the control elements on the application
- The annotation is a small rectangle with a number in the center of the rectangle in the top left \
corner of the control item. The number is the label of the control item
- Different types of control items have different colors of annotation
"""
_PLAIN = "- You are provided a screenshot of the current screen\n"
_LIST = "- You are given the information of all available control items"
_OPERATIONS = "\n### Control Operations\n"
_LABEL, _FUNCTION = '  "ControlLabel": <', '  "Function": <'
_POINT = (
    '  "coordinates": <Specify the point to click at as [x, y], {unit}, from its top left corner. '
    "Leave it an empty list [] if the function needs no place or the task is complete>,\n"
)


@cache
def system_prompt(space: Space = "px") -> str:
    """The system prompt.

    Args:
        space: the unit of the coordinates that are asked for.

    Examples:
        >>> [line for line in system_prompt().splitlines() if "screenshot of" in line]
        ['- You are provided a screenshot of the current screen']
    """
    text = _read("trajectory").replace(_ANNOTATED, _PLAIN)
    text = _cut(text, _LIST, _OPERATIONS)
    text = text.replace("consisting of 8 distinct parts", "consisting of 6 distinct parts")
    text = text.replace(
        'the "ControlLabel", "ControlText", "Function"', 'the "coordinates", "Function"'
    )
    text = _cut(text, _LABEL, _FUNCTION, _POINT.replace("{unit}", _UNITS[space]))
    return text.replace("{apis}", _read("apis"))


def _cut(text: str, begin: str, end: str, between: str = "") -> str:
    """The text with what lies between two places replaced."""
    start = text.index(begin)
    return text[:start] + between + text[text.index(end, start) :]


def _read(name: str) -> str:
    folder = resources.files("omnidata.tasks.omnibench").joinpath("prompts")
    return folder.joinpath(f"omnibench_{name}.txt").read_text(encoding="utf-8")


class Prompt:
    """The conversation about a step: system prompt, screenshot, and the paper's lines.

    Args:
        options: resolved (`OPTIONS`).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options
        self.space = next(space for space in SPACES if space == options["coordinates"])
        self._system = system_prompt(self.space)
        self.hash = hashlib.sha256(json.dumps([dict(options), self._system]).encode()).hexdigest()

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """The system and user message for one step.

        Args:
            step: of OmniBench.
            predicted: the model's own actions so far; used with `history=predicted` only.
        """
        lines = [f"<Step History:> {self._history(step, predicted)}"]
        intent = step.tags.get("intent")
        if self.options["intent"] == "on" and intent:
            lines.append(f"<Task intent:> {intent}")
        lines.append(f"<Task instruction:> {step.instruction}")
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        return (
            Message("system", (Part("text", self._system),)),
            Message("user", (*shown, Part("text", "\n".join(lines)))),
        )

    def _history(self, step: Step, predicted: Sequence[Action | None] | None) -> str:
        wanted = self.options["history"]
        past = () if wanted == "none" else step.history if wanted == "gold" else predicted or ()
        said = [
            f"\nStep {number}: {action.words}"
            for number, action in enumerate(past)
            if action is not None
        ]
        return "".join(said) or "none"
