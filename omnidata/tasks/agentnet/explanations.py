"""Why an answer to a step of AgentNet is right or wrong, one action after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.actions import Action, Point, Region, Space
from omnidata.errors import OmnidataError
from omnidata.tasks.agentnet.actions import POINTED, boxes_of, place_of, turn_of, type_of
from omnidata.tasks.agentnet.rows import truths_of
from omnidata.tasks.agentnet.rules import Rule, judge, parse, relative
from omnidata.tasks.explaining import (
    SCREENSHOT,
    Turn,
    explained,
    gap,
    in_pixels,
    of_turns,
    on_screen,
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
    truths = _truths(step)
    code = ((verdict and verdict.parsed) or {}).get("code", "")
    fixed = _read(code, "fixed", space)
    released = _read(code, "released", space) if rule == "released" or not fixed else ()
    drawn = fixed or released
    judged = fixed if rule == "fixed" else released

    def cause(parsed: Mapping[str, Any], right: bool) -> str:
        return _cause(step, truths, _placed(judged, space, step, receipt), rule, right=right)

    target = _turn(truths[0], step) if truths else None
    said = _placed(drawn, space, step, receipt)
    return explained(
        verdict,
        profile,
        cause,
        target_label=target.label if target else "",
        answer_label=lambda parsed: Turn(tuple(map(type_of, drawn))).label,
        places={SCREENSHOT: of_turns(target, _turn(said, step) if said else None)},
        noun="action",
    )


def _truths(step: Step) -> Sequence[Sequence[Action]]:
    """What is right; nothing where it cannot be used."""
    try:
        return truths_of(step.source)
    except ValueError:
        return ()


def _read(code: str, rule: Rule, space: Space) -> Sequence[Action]:
    """What an answer does, as a rule reads it; nothing where it does not."""
    said = parse(code, rule, space=space) if code else ""
    return () if isinstance(said, str) else said.actions


def _placed(
    actions: Sequence[Action], space: Space, step: Step, receipt: Mapping[str, Any] | None
) -> Sequence[Action]:
    """The same with places in shares of the screen; nothing where the receipt cannot be read."""
    try:
        return relative(actions, space, step, receipt)
    except OmnidataError:
        return ()


def _turn(actions: Sequence[Action], step: Step) -> Turn:
    starts: list[Region] = []
    ends: list[Region] = []
    for action in actions:
        if type_of(action) in POINTED:
            (ends if action.kind == "drag" else starts).extend(_regions(action, step))
    return Turn(tuple(map(type_of, actions)), tuple(starts), tuple(ends))


def _regions(action: Action, step: Step) -> tuple[Region, ...]:
    """Where an action is right, in pixels: its boxes, or else its place."""
    if boxes := boxes_of(action):
        return tuple(in_pixels(box, step.screen) for box in boxes)
    point = _point(action, step)
    return (point,) if point else ()


def _point(action: Action, step: Step) -> Point | None:
    """Its place in pixels; None where nobody says it, or how large the screen is."""
    place = place_of(action)
    return on_screen(step, Point(place.x, place.y, "rel"), {}) if place else None


def _cause(
    step: Step,
    truths: Sequence[Sequence[Action]],
    said: Sequence[Action],
    rule: Rule,
    *,
    right: bool,
) -> str:
    """How an answer differs from what comes nearest to it of all that is right."""
    if not said:
        return "the answer does nothing"
    truth = max(truths, key=lambda one: judge([one], said, rule))
    if right:
        return _rightly(step, truth, said)
    types, given = [type_of(one) for one in truth], [type_of(one) for one in said]
    if given[0] not in types:
        return f"the answer is {given[0]}, what is right is {', '.join(types)}"
    differ = []
    for number, action in enumerate(truth):
        if number >= len(said):
            differ.append(f"{types[number]} is missing")
        elif given[number] != types[number]:
            differ.append(f"{given[number]} is in place of {types[number]}")
        elif judge([[action]], [said[number]], rule) < 1:
            differ.append(_differs(step, action, said[number], rule))
    if rule == "fixed" and len(said) > len(truth):
        differ.append(f"{len(said)} things are done in place of {len(truth)}")
    return "; ".join(differ) or "what is done differs"


def _rightly(step: Step, truth: Sequence[Action], said: Sequence[Action]) -> str:
    action, answer = truth[0], said[0]
    name = type_of(action)
    if name == "scroll" and answer.direction != action.direction:
        return "the released evaluator takes any scroll for right"
    if name in POINTED and name == type_of(answer):
        return _where(step, action, answer)
    return f"the answer does what is right: {', '.join(map(type_of, truth))}"


def _where(step: Step, action: Action, said: Action) -> str:
    regions, point = _regions(action, step), _point(said, step)
    if point is None or not regions:
        return f"{type_of(said)} is at no place that can be told"
    return f"the point {shown(point)} is {gap(point, regions, step.screen)}"


def _differs(step: Step, action: Action, said: Action, rule: Rule) -> str:
    name = type_of(action)
    if name in POINTED:
        return _where(step, action, said)
    if name == "write":
        return f"the text differs: {quoted(said.text)} in place of {quoted(action.text)}"
    if name in ("press", "hotkey"):
        return f"the keys differ: {'+'.join(said.keys)} in place of {'+'.join(action.keys)}"
    if name == "terminate":
        return f"the status is {quoted(said.words)} in place of {quoted(action.words)}"
    if name in ("scroll", "hscroll") and rule == "fixed":
        return f"{name} goes {turn_of(said):+g} in place of {turn_of(action):+g}"
    return f"the released evaluator has no rule for {name}"
