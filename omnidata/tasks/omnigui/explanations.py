"""Why an answer to a step of OmniGUI is right or wrong, by the rules of its two profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnidata.actions import Action
from omnidata.tasks.explaining import Reader, Rule, acted, by_action, read_again
from omnidata.tasks.omnigui.rules import POINT_RADIUS
from omnidata.types import Explanation, Places, Profile, Step, Verdict

_PAPER: Final = Rule(unlike="", reach=POINT_RADIUS)
_RELEASE: Final = Rule(
    borderline="the released evaluator truncates both to whole thousandths of the screen first",
    same_text="one text holds the other",
    unlike="",
    reach=POINT_RADIUS,
)
_NEVER_EXACT: Final = frozenset({"NONE", "DOUBLE_TAP"})
"""What the released evaluator counts as an exact match in no answer."""


def explain(
    reader: Reader,
    profile: Profile,
    step: Step,
    verdict: Verdict | None,
    *,
    is_release: bool,
    receipt: Mapping[str, Any] | None,
) -> Explanation:
    """The explanation of a step, and of a verdict on an answer to it.

    Args:
        reader: reads answers in the unit of the task's options.
        profile: whose verdict it is.
        step: of OmniGUI.
        verdict: on an answer; None tells of the step alone.
        is_release: whether the rules are the released evaluator's.
        receipt: of the answer.
    """

    def sentence(wanted: Action, said: Action, places: Places, right: bool) -> str:
        label = said.label
        if is_release and not right and label == wanted.label and label in _NEVER_EXACT:
            return f"the released evaluator counts no {label} as an exact match"
        rule = _RELEASE if is_release else _PAPER
        return acted(step, wanted, said, places, right=right, rule=rule)

    said = read_again(reader, verdict)
    return by_action(step, verdict, profile, said, receipt=receipt, sentence=sentence)
