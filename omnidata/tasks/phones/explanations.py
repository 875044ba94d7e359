"""Why an answer to a step on a phone is right or wrong, by the rules of the phones' evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnidata.actions import Action, Space
from omnidata.tasks.explaining import (
    Reader,
    Rule,
    by_action,
    gap,
    is_inside,
    placed,
    quoted,
    read_again,
    shown,
    typed,
)
from omnidata.tasks.phones.actions import headed
from omnidata.tasks.phones.answers import from_dict
from omnidata.types import Explanation, Places, Profile, Step, Verdict


def explain(
    reader: Reader,
    profile: Profile,
    step: Step,
    verdict: Verdict | None,
    *,
    space: Space,
    reach: int,
    misses: str,
    receipt: Mapping[str, Any] | None,
) -> Explanation:
    """The explanation of a step, and of a verdict on an answer to it.

    Args:
        reader: reads answers in the form that the prompt asks for.
        profile: whose verdict it is; it knows elements and directions beside places.
        step: on a phone.
        verdict: on an answer; None tells of the step alone.
        space: the unit of coordinates in that form.
        reach: how far from the expert's a tap may be, in thousandths of the screen.
        misses: why a tap is wrong that lies where it should; empty where no rule is broken.
        receipt: of the answer.
    """

    def sentence(wanted: Action, said: Action, places: Places, right: bool) -> str:
        return _sentence(step, wanted, said, places, reach, misses, right=right)

    said = _said(reader, verdict, space)
    return by_action(step, verdict, profile, said, receipt=receipt, sentence=sentence, reach=reach)


def _said(reader: Reader, verdict: Verdict | None, space: Space) -> Action | None:
    """The answer as an action; a profile tells of other forms than the prompt's by their kinds."""
    parsed = verdict.parsed if verdict else None
    if parsed is None or "form" not in parsed:
        return read_again(reader, verdict)
    try:
        return headed(from_dict(parsed, space if parsed["form"] == "prompted" else "norm1000"))
    except (LookupError, TypeError, ValueError, OverflowError):
        return None


def _sentence(
    step: Step,
    wanted: Action,
    said: Action,
    places: Places,
    reach: int,
    misses: str,
    *,
    right: bool,
) -> str:
    label = said.label
    if label != wanted.label:
        sentence = f"the answer is {label}, the expert's action is {wanted.label}"
        return f"{sentence}, which the profile takes for the same" if right else sentence
    if said.kind == "type":
        if right and said.text != wanted.text:
            return f"the profile takes {quoted(said.text)} for {quoted(wanted.text)}"
        return typed(wanted, said, right=right, rule=Rule())
    if said.kind not in ("tap", "long_press"):
        return f"both are {label}" + ("" if right else ", and the profile tells them apart")
    point, regions = places.answer, places.target
    if point is None or not regions or min(step.screen) < 1:
        return placed(step, "the point", point, regions, right=right, rule=Rule())
    sentence = f"the point {shown(point)} is {gap(point, regions, step.screen)}"
    near = is_inside(point, regions, step.screen, reach=reach)
    if right:
        return sentence if near else f"{sentence}, which the profile's boxes allow"
    if misses:
        return f"{sentence}, but {misses}"
    return f"{sentence}, but the profile tells them apart" if near else f"{sentence}, too far"
