"""Why an answer to a step of AgentNet is right or wrong, deed by deed and by the profile's rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.actions import Box, Region, Space
from omnidata.errors import OmnidataError
from omnidata.tasks.agentnet.actions import POINTED, Deed
from omnidata.tasks.agentnet.rows import truths_of
from omnidata.tasks.agentnet.rules import Rule, judge, parse, relative
from omnidata.tasks.explaining import (
    SCREENSHOT,
    Turn,
    explained,
    gap,
    in_pixels,
    of_turns,
    pair_on_screen,
    quoted,
    shown,
)
from omnidata.types import Explanation, Profile, Step, Verdict


def explain(
    step: Step,
    verdict: Verdict | None,
    profile: Profile,
    *,
    rule: Rule,
    space: Space,
    receipt: Mapping[str, Any] | None,
) -> Explanation:
    """The explanation of a step, and of a verdict on an answer to it.

    Args:
        step: of AgentNet.
        verdict: on an answer; None tells of the step alone.
        profile: whose verdict it is.
        rule: of the profile.
        space: the unit of places in answers.
        receipt: of the answer.
    """
    code = ((verdict and verdict.parsed) or {}).get("code", "")
    fixed = _deeds(code, "fixed")
    released = _deeds(code, "released") if rule == "released" or not fixed else ()
    drawn = fixed or released
    judged = fixed if rule == "fixed" else released

    def cause(parsed: Mapping[str, Any], right: bool) -> str:
        return _cause(step, _placed(judged, space, step, receipt), rule, right=right)

    target = _target(step)
    said = _placed(drawn, space, step, receipt)
    return explained(
        verdict,
        profile,
        cause,
        target_label=target.label if target else "",
        answer_label=lambda parsed: Turn(tuple(deed.type for deed in drawn)).label,
        places={SCREENSHOT: of_turns(target, _turn(said, step) if said else None)},
        noun="action",
    )


def _target(step: Step) -> Turn | None:
    """What is right; None where it cannot be used."""
    try:
        return _turn(truths_of(step.source)[0], step)
    except ValueError:
        return None


def _deeds(code: str, rule: Rule) -> Sequence[Deed]:
    """What an answer does, as a rule reads it; nothing where it does not."""
    said = parse(code, rule) if code else ""
    return () if isinstance(said, str) else said.deeds


def _placed(
    deeds: Sequence[Deed], space: Space, step: Step, receipt: Mapping[str, Any] | None
) -> Sequence[Deed]:
    """The same with places in shares of the screen; nothing where the receipt cannot be read."""
    try:
        return relative(deeds, space, step, receipt)
    except OmnidataError:
        return ()


def _turn(deeds: Sequence[Deed], step: Step) -> Turn:
    starts: list[Region] = []
    ends: list[Region] = []
    for deed in deeds:
        if deed.type in POINTED:
            (ends if deed.type == "dragTo" else starts).extend(_regions(deed, step))
    return Turn(tuple(deed.type for deed in deeds), tuple(starts), tuple(ends))


def _regions(deed: Deed, step: Step) -> tuple[Region, ...]:
    """Where a deed is right, in pixels: its boxes, or else its place."""
    if boxes := [Box(x, y, x + w, y + h, "rel") for x, y, w, h in deed.boxes if w >= 0 and h >= 0]:
        return tuple(in_pixels(box, step.screen) for box in boxes)
    point = pair_on_screen(step, deed.place, "rel", {})
    return (point,) if point else ()


def _cause(step: Step, said: Sequence[Deed], rule: Rule, *, right: bool) -> str:
    """How an answer differs from what comes nearest to it of all that is right."""
    if not said:
        return "the answer does nothing"
    truth = max(truths_of(step.source), key=lambda one: judge([one], said, rule))
    if right:
        return _rightly(step, truth, said)
    if said[0].type not in [deed.type for deed in truth]:
        return f"the answer is {said[0].type}, what is right is {_listed(truth)}"
    differ = []
    for number, deed in enumerate(truth):
        if number >= len(said):
            differ.append(f"{deed.type} is missing")
        elif said[number].type != deed.type:
            differ.append(f"{said[number].type} is in place of {deed.type}")
        elif judge([[deed]], [said[number]], rule) < 1:
            differ.append(_differs(step, deed, said[number], rule))
    if rule == "fixed" and len(said) > len(truth):
        differ.append(f"{len(said)} things are done in place of {len(truth)}")
    return "; ".join(differ) or "what is done differs"


def _rightly(step: Step, truth: Sequence[Deed], said: Sequence[Deed]) -> str:
    deed, answer = truth[0], said[0]
    if deed.type == "scroll" and answer.direction != deed.direction:
        return "the released evaluator takes any scroll for right"
    if deed.type in POINTED and deed.type == answer.type:
        return _where(step, deed, answer)
    return f"the answer does what is right: {_listed(truth)}"


def _listed(truth: Sequence[Deed]) -> str:
    return ", ".join(deed.type for deed in truth)


def _where(step: Step, deed: Deed, said: Deed) -> str:
    regions = _regions(deed, step)
    point = pair_on_screen(step, said.place, "rel", {})
    if point is None or not regions:
        return f"{said.type} is at no place that can be told"
    return f"the point {shown(point)} is {gap(point, regions, step.screen)}"


def _differs(step: Step, deed: Deed, said: Deed, rule: Rule) -> str:
    if deed.type in POINTED:
        return _where(step, deed, said)
    if deed.type == "write":
        return f"the text differs: {quoted(said.text)} in place of {quoted(deed.text)}"
    if deed.type in ("press", "hotkey"):
        return f"the keys differ: {'+'.join(said.keys)} in place of {'+'.join(deed.keys)}"
    if deed.type == "terminate":
        return f"the status is {quoted(said.status)} in place of {quoted(deed.status)}"
    if deed.type in ("scroll", "hscroll") and rule == "fixed":
        return f"{deed.type} goes {_turned(said)} in place of {_turned(deed)}"
    return f"the released evaluator has no rule for {deed.type}"


def _turned(deed: Deed) -> str:
    turn = deed.direction if deed.amount is None else deed.amount
    return f"{turn:+g}"
