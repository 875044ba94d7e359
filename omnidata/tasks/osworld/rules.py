"""`osworld-step`: does an answer do the same as the recorded agent? OSWorld has no rule for a step.

The recorded agent may be wrong: this compares models with a rollout, or one rollout with another,
not success.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from omnidata.actions import Action, Region, Screen, centre
from omnidata.tasks.benchmark import ParsedAnswer, Rule, Values
from omnidata.tasks.osworld.actions import actions_of, calls_of
from omnidata.tasks.osworld.tree import GROUPS, OUTCOMES, SETS
from omnidata.tasks.totals import EpisodeTotals
from omnidata.types import Step

NEAR: Final = 0.01 * math.sqrt(2)
"""Allowed distance of two points, in shares of the screen's width and height: AgentNetBench's
evaluator takes them for the same point if it knows no box."""

_TYPES: Final = {"tap": "click", "hold": "mouse_down", "release": "mouse_up", "done": "terminate"}
_KEYED: Final = {"hold": "key_down", "release": "key_up"}
_ASIDE: Final = frozenset({"left", "right"})
_AIMED: Final = frozenset({"click", "move", "mouse_down", "mouse_up"})


def type_of(action: Action) -> str:
    """Return the name by which actions are compared.

    Examples:
        >>> type_of(Action("release", keys=("shift",))), type_of(Action("release"))
        ('key_up', 'mouse_up')
    """
    if action.kind == "scroll":
        return "hscroll" if action.direction in _ASIDE else "scroll"
    name = _KEYED.get(action.kind) if action.keys else None
    return name or _TYPES.get(action.kind, action.kind)


def details_of(action: Action) -> tuple[str | int | None, ...]:
    """Return the parts that must be equal beside the type: button, direction, keys, or status."""
    if action.kind == "scroll":
        return (1 if action.direction in ("up", "right") else -1,)
    if action.kind == "tap":
        return action.words, action.count
    if action.kind == "drag" or (action.kind in _KEYED and not action.keys):
        return (action.words,)
    return (action.status,) if action.kind == "done" else action.keys


def needs_places(found: Sequence[Action]) -> bool:
    """Return whether an action needs a place."""
    return any(type_of(one) in _AIMED or one.kind == "drag" for one in found)


def is_whole(found: Sequence[Action]) -> bool:
    """Return whether every action that needs a place has one."""
    return all(
        (type_of(one) not in _AIMED or one.start)
        and (one.kind != "drag" or (one.start and one.end))
        for one in found
    )


def judge(
    reference: Sequence[Action] | None, answer: Sequence[Action] | None, screen: Screen
) -> tuple[bool | None, bool | None]:
    """Compare an answer with the recorded turn; OSWorld itself has no rule for a step.

    `type_match`: the same types of actions, in the same order. `exact_match`: also the same
    buttons, directions, keys and status, and every point that is clicked, moved or dragged to lies
    within `NEAR` of the other. The place and the amount of a scroll do not matter.

    Args:
        reference: actions of the recorded turn; None if it is not understood.
        answer: actions of the model; None if its answer cannot be read.
        screen: width and height in pixels, the unit of all places.

    Returns:
        `type_match` and `exact_match`; both None if the recorded turn is too vague to judge by.

    Examples:
        >>> from omnidata.actions import Point
        >>> recorded, said = ([Action("tap", (Point(at, at, "px"),))] for at in (100, 110))
        >>> judge(recorded, said, (1000, 1000)), judge(recorded, said, (900, 900))
        ((True, True), (True, False))
    """
    if not reference or not is_whole(reference):
        return None, None
    if needs_places(reference) and min(screen) < 1:
        return None, None
    if answer is None or list(map(type_of, reference)) != list(map(type_of, answer)):
        return False, False
    return True, all(
        details_of(one) == details_of(other)
        and (
            one.kind == "scroll"
            or (_near(one.start, other.start, screen) and _near(one.end, other.end, screen))
        )
        for one, other in zip(reference, answer, strict=True)
    )


def _near(one: Sequence[Region], other: Sequence[Region], screen: Screen) -> bool:
    if not one or not other:
        return not one and not other
    shares = ((at.x / screen[0], at.y / screen[1]) for at in (centre(one[0]), centre(other[0])))
    return math.dist(*shares) <= NEAR * (1 + 1e-9)  # whatever the last digit of the shares


class Done(NamedTuple):
    """The actions of an answer's code, as `judge` compares them; None if it is not understood.

    Attributes:
        on_screen: with places in pixels of the screen.
        written: with places in pixels of the sent screenshot.
    """

    on_screen: Sequence[Action] | None
    written: Sequence[Action] | None


class StepRule(Rule[Done]):
    """The rule of `judge`."""

    name = "osworld-step"
    totals = EpisodeTotals(
        by={
            "group": tuple(GROUPS),
            "domain": tuple(SETS["osworld"]),
            "model": (),
            "outcome": OUTCOMES,
        }
    )

    def judge(self, step: Step, parsed: ParsedAnswer[Done] | None) -> Values:
        """Compare the answer with the recorded turn."""
        recorded = actions_of(calls_of(step.source).calls)
        match = judge(recorded, parsed.value.on_screen if parsed else None, step.screen)
        return (*match, parsed is not None and parsed.is_exact)
