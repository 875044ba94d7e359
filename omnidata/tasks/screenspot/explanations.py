"""Why an answer to a row of ScreenSpot is right or wrong: a point, or that there is nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnidata.actions import Space
from omnidata.tasks.explaining import (
    SCREENSHOT,
    Rule,
    explained,
    in_pixels,
    pair_on_screen,
    placed,
)
from omnidata.tasks.screenspot.load import is_negative
from omnidata.types import Explanation, Places, Profile, Step, Verdict

_RULE: Final = Rule(borderline="the profile compares in shares of the screen")
_NEGATIVE: Final = "negative"
_POINT: Final = "point"


def explain(
    step: Step,
    verdict: Verdict | None,
    profile: Profile,
    *,
    space: Space,
    receipt: Mapping[str, Any] | None,
) -> Explanation:
    """The explanation of a row, and of a verdict on an answer to it.

    Args:
        step: of ScreenSpot.
        verdict: on an answer; None tells of the row alone.
        profile: whose verdict it is.
        space: the unit of answers that name none.
        receipt: of the answer.
    """
    absent = is_negative(step.source["row"])
    given = (verdict and verdict.parsed) or {}
    said = pair_on_screen(step, given.get("point"), given.get("space", space), receipt)
    boxes = step.action.start if step.action else ()
    regions = tuple(in_pixels(region, step.screen) for region in boxes)

    def cause(parsed: Mapping[str, Any], right: bool) -> str:
        if parsed.get("negative"):
            so = "and so it is" if absent else "but it is"
            return f"by the answer the element is not there, {so}"
        if absent:
            return "the element is not on the screen, and the answer names a point"
        return placed(step, "the point", said, regions, right=right, rule=_RULE)

    present = _POINT if step.action else ""
    return explained(
        verdict,
        profile,
        cause,
        target_label=_NEGATIVE if absent else present,
        answer_label=lambda parsed: _NEGATIVE if parsed.get("negative") else _POINT,
        places={SCREENSHOT: Places(regions, (), said)},
        noun="kind",
    )
