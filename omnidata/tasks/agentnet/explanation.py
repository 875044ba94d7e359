"""How an answer differs from the right actions, one action after the other."""

from __future__ import annotations

from collections.abc import Sequence

from omnidata.actions import Action, Point, Region
from omnidata.tasks.agentnet.actions import POINTED, boxes_of, place_of, turn_of, type_of
from omnidata.tasks.agentnet.answers import Response, Version
from omnidata.tasks.agentnet.load import truths_of
from omnidata.tasks.agentnet.rules import REACH, judge
from omnidata.tasks.benchmark import ParsedAnswer, Receipt
from omnidata.tasks.coordinates import in_pixels, on_screen
from omnidata.tasks.diagnosis import diagnose
from omnidata.tasks.explaining import (
    SCREENSHOT,
    Turn,
    explain,
    format_point,
    gap,
    of_turns,
    quote,
)
from omnidata.types import Explanation, Profile, Step, Verdict


def explain_turn(
    step: Step,
    verdict: Verdict | None,
    parsed: ParsedAnswer[Response] | None,
    profile: Profile,
    receipt: Receipt,
) -> Explanation:
    """Explain a verdict, as `Benchmark.explain`."""
    version: Version = "fixed" if profile.name == "agentnetbench-fixed" else "released"
    try:
        truths = truths_of(step.source)
    except ValueError:
        truths = []
    done = parsed.value.actions if parsed else ()
    written = parsed.value.written if parsed else ()
    target = _turn(truths[0], step) if truths else None

    def nearest() -> Sequence[Action]:
        return max(truths, key=lambda one: judge([one], done, version), default=())

    return explain(
        verdict,
        profile,
        lambda record, right: _sentence(step, nearest(), done, version, right=right),
        target_label=target.label if target else "",
        target_labels=target.kinds if target else (),
        answer_label=lambda record: Turn(tuple(map(type_of, written))).label,
        overlays=lambda: {SCREENSHOT: of_turns(target, _turn(done, step) if done else None)},
        noun="action",
        diagnosis=lambda record: diagnose(
            step, nearest(), written, receipt=receipt, reach=1000 * REACH
        ),
    )


def _turn(actions: Sequence[Action], step: Step) -> Turn:
    starts: list[Region] = []
    ends: list[Region] = []
    for action in actions:
        if type_of(action) in POINTED:
            (ends if action.kind == "drag" else starts).extend(_regions(action, step))
    return Turn(tuple(map(type_of, actions)), tuple(starts), tuple(ends))


def _regions(action: Action, step: Step) -> tuple[Region, ...]:
    if boxes := boxes_of(action):
        return tuple(in_pixels(box, step.screen) for box in boxes)
    point = _point(action, step)
    return (point,) if point else ()


def _point(action: Action, step: Step) -> Point | None:
    place = place_of(action)
    return on_screen(step, Point(place.x, place.y, "rel"), {}) if place else None


def _sentence(
    step: Step, truth: Sequence[Action], done: Sequence[Action], version: Version, *, right: bool
) -> str:
    if not done:
        return "the answer does nothing"
    if right:
        return _rightly(step, truth, done)
    types, given = [type_of(one) for one in truth], [type_of(one) for one in done]
    if given[0] not in types:
        return f"the answer is {given[0]}, the target is {', '.join(types)}"
    differ = []
    for number, action in enumerate(truth):
        if number >= len(done):
            differ.append(f"{types[number]} is missing")
        elif given[number] != types[number]:
            differ.append(f"{given[number]} is in place of {types[number]}")
        elif judge([[action]], [done[number]], version) < 1:
            differ.append(_difference(step, action, done[number], version))
    if version == "fixed" and len(done) > len(truth):
        differ.append(f"{len(done)} actions in place of {len(truth)}")
    return "; ".join(differ) or "the actions differ"


def _rightly(step: Step, truth: Sequence[Action], done: Sequence[Action]) -> str:
    action, answer = truth[0], done[0]
    name = type_of(action)
    if name == "scroll" and answer.direction != action.direction:
        return "the released evaluator accepts any scroll"
    if name in POINTED and name == type_of(answer):
        return _where(step, action, answer)
    return f"the answer has the right actions: {', '.join(map(type_of, truth))}"


def _where(step: Step, action: Action, done: Action) -> str:
    regions, point = _regions(action, step), _point(done, step)
    if point is None or not regions:
        return f"{type_of(done)} has no usable place"
    return f"the point {format_point(point)} is {gap(point, regions, step.screen)}"


def _difference(step: Step, action: Action, done: Action, version: Version) -> str:
    name = type_of(action)
    if name in POINTED:
        return _where(step, action, done)
    if name == "write":
        return f"the text differs: {quote(done.text)} in place of {quote(action.text)}"
    if name in ("press", "hotkey"):
        return f"the keys differ: {'+'.join(done.keys)} in place of {'+'.join(action.keys)}"
    if name == "terminate":
        return f"the status is {quote(done.words)} in place of {quote(action.words)}"
    if name in ("scroll", "hscroll") and version == "fixed":
        return f"{name} goes {turn_of(done):+g} in place of {turn_of(action):+g}"
    return f"the released evaluator has no rule for {name}"
