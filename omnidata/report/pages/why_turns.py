"""Why turns on a desktop are right or wrong: AgentNet's by its rule, OSWorld's by ours."""

from __future__ import annotations

from collections.abc import Sequence

from omnidata.actions import Point, Screen
from omnidata.agentnet import POINTED, Deed
from omnidata.loaders.agentnet_rows import truths_of
from omnidata.loaders.osworld_actions import calls_of
from omnidata.metrics.agentnetbench import Rule, judge
from omnidata.metrics.osworld_acts import Act, acts
from omnidata.metrics.osworld_acts import judge as judge_acts
from omnidata.report.pages.answers import pair_on_screen
from omnidata.report.pages.gaps import gap, quoted, shown
from omnidata.report.pages.turns import deed_regions
from omnidata.types import Step


def bench(step: Step, said: Sequence[Deed], rule: Rule, right: bool) -> str:
    """How an answer differs from what comes nearest to it of all that is right.

    Args:
        step: of AgentNet, one that can be judged.
        said: what the answer does, its places in shares of the screen.
        rule: by which it was judged.
        right: whether it is.
    """
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
        return _placed(step, deed, answer)
    return f"the answer does what is right: {_listed(truth)}"


def _listed(truth: Sequence[Deed | Act]) -> str:
    return ", ".join(one.type if isinstance(one, Deed) else one.kind for one in truth)


def _placed(step: Step, deed: Deed, said: Deed) -> str:
    regions = deed_regions(deed, step)
    point = pair_on_screen(step, said.place, "rel", {})
    if point is None or not regions:
        return f"{said.type} is at no place that can be told"
    return f"the point {shown(point)} is {gap(point, regions, step.screen)}"


def _differs(step: Step, deed: Deed, said: Deed, rule: Rule) -> str:
    if deed.type in POINTED:
        return _placed(step, deed, said)
    if deed.type == "write":
        return f"the text differs: {quoted(said.text)} in place of {quoted(deed.text)}"
    if deed.type in ("press", "hotkey"):
        return f"the keys differ: {'+'.join(said.keys)} in place of {'+'.join(deed.keys)}"
    if deed.type == "terminate":
        return f"the status is {quoted(said.status)} in place of {quoted(deed.status)}"
    if deed.type in ("scroll", "hscroll") and rule == "fixed":
        return f"{deed.type} goes {_turn(said)} in place of {_turn(deed)}"
    return f"the released evaluator has no rule for {deed.type}"


def _turn(deed: Deed) -> str:
    turn = deed.direction if deed.amount is None else deed.amount
    return f"{turn:+g}"


def recorded(step: Step, said: Sequence[Act] | None, right: bool) -> str:
    """How an answer differs from what the recorded agent did.

    Args:
        step: of OSWorld, one that can be judged.
        said: what the answer does, its places in pixels of the screen; None for code that is not
            understood.
        right: whether it is the same.
    """
    done = acts(calls_of(step.source).calls) or []
    if said is None:
        return "a line of the answer is not understood"
    if right:
        return f"the answer does what the recorded agent did: {_listed(done)}"
    if [act.kind for act in said] != [act.kind for act in done]:
        return (
            f"the answer is {_listed(said) or 'nothing'}, the recorded agent's is {_listed(done)}"
        )
    pairs = zip(done, said, strict=True)
    unlike = (
        (one, other) for one, other in pairs if not judge_acts([one], [other], step.screen)[1]
    )
    return next((_unlike(one, other, step.screen) for one, other in unlike), "what is done differs")


def _unlike(done: Act, said: Act, screen: Screen) -> str:
    if done.detail != said.detail:
        return f"{done.kind}: {quoted(_detail(said))} in place of {quoted(_detail(done))}"
    found = []
    for name, wanted_at, given_at in (
        ("point", done.start, said.start),
        ("end", done.end, said.end),
    ):
        if wanted_at and given_at and wanted_at != given_at:
            point = Point(*given_at, "px")
            where = gap(point, [Point(*wanted_at, "px")], screen, noun="recorded")
            found.append(f"the {name} {shown(point)} is {where}")
        elif wanted_at and not given_at:
            found.append(f"{done.kind} is at no place")
    return "; ".join(found)


def _detail(act: Act) -> str:
    """Keys that are typed one after the other as a text; other things with spaces between."""
    if act.kind != "keys":
        return " ".join(map(str, act.detail))
    keys = (" " if key == "space" else str(key) for key in act.detail)
    return "".join(key if len(key) == 1 else f"[{key}]" for key in keys)
