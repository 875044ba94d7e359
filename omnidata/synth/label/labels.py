"""A model's answers as targets, where they can be; whatever else came back is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnidata.actions import (
    POSITIONAL,
    SWIPES,
    Action,
    Point,
    Primitive,
    Region,
    Screen,
    centre,
    convert,
)
from omnidata.predictions import Prediction
from omnidata.tasks.omnigui_idm import OmniGuiIdm
from omnidata.types import Delivery, Profile, Step

_ENDS = frozenset({Primitive.TASK_COMPLETE, Primitive.TASK_IMPOSSIBLE})


@dataclass(frozen=True, slots=True)
class Label:
    """What came of asking about a step.

    Attributes:
        outcome: "ok"; "unparsed", nothing could be read; "unusable", what was read is no action
            that can have been made there; or the way in which no full answer came.
        answer: the model's text, untouched.
        action: the target; None unless the outcome is "ok".
        why: the reason, where there is no target.
        type_match, exact_match: whether the target is the known action, by `omnigui-paper`; None
            where there is no target, or no known action.
        extension: whether a known point was judged by the rule that the paper does not have.
    """

    outcome: Delivery | str
    answer: str
    action: Action | None = None
    why: str = ""
    type_match: bool | None = None
    exact_match: bool | None = None
    extension: bool = False

    def column(self, model: str, *, used: bool) -> dict[str, Any]:
        """What the step's row says of it.

        Args:
            model: the SPEC.
            used: whether the target of the row is this answer.
        """
        said = {"model": model, "answer": self.answer, "outcome": self.outcome, "used": used}
        return said | ({"why": self.why} if self.why else {})


def read_label(task: OmniGuiIdm, profile: Profile, step: Step, answer: Prediction) -> Label:
    """Read one answer.

    Args:
        task: reads texts.
        profile: `omnigui-paper`, which holds answers against known actions.
        step: as it was asked about.
        answer: what came back.
    """
    text = answer.output or ""
    if answer.delivery != "ok":
        return Label(answer.delivery, text, why=answer.error)
    verdict = profile.judge(step, text, answer.receipt)
    action = task.read(text, answer.receipt)
    if action is None:
        return Label("unparsed", text, why=verdict.reason)
    if why := lacks(action, step.screen):
        return Label("unusable", text, why=why)
    if step.action is None:
        return Label("ok", text, action)
    said = dict(zip(profile.values, verdict.values, strict=True))
    return Label(
        "ok",
        text,
        action,
        type_match=bool(said["type_match"]),
        exact_match=bool(said["exact_match"]),
        extension=bool(said["extension"]),
    )


def lacks(action: Action, screen: Screen) -> str:
    """Why an action cannot have been made between two screenshots; empty if it can.

    Args:
        action: as a model answered it.
        screen: width and height of the screenshot in pixels.

    Examples:
        >>> lacks(Action(Primitive.TAP, (Point(500, 1001, "norm1000"),)), (720, 1600))
        'its place lies off the screen'
        >>> lacks(Action(Primitive.TAP), (720, 1600)), lacks(Action(Primitive.BACK), (720, 1600))
        ('it has no place', '')
    """
    if action.kind in _ENDS:
        return "it ends the episode, which goes on"
    if action.kind is Primitive.INPUT and not action.text:
        return "it types nothing"
    if (action.kind in POSITIONAL or action.kind in SWIPES) and not action.start:
        return "it has no place"
    if not all(_on_screen(region, screen) for region in (*action.start, *action.end)):
        return "its place lies off the screen"
    return ""


def _on_screen(region: Region, screen: Screen) -> bool:
    pixel: Point = convert(centre(region), "px", screen)
    return 0 <= pixel.x <= screen[0] and 0 <= pixel.y <= screen[1]
