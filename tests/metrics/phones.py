"""Actions on phones and the rules of their evaluators, for tests by hand.

Places are (x, y) from 0 to 1, elements (y, x, height, width).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import omnidata
from omnidata.actions import Action, Pair, Point
from omnidata.tasks.phones.actions import Truth

Rect = tuple[float, float, float, float]
Match = tuple[bool, bool] | None
Rule = Callable[[Action, Action, tuple[Rect, ...]], Match]

BACK, HOME, ENTER, RECENTS = Action("back"), Action("home"), Action("enter"), Action("recent")
WAIT, STOP = Action("wait"), Action("done")
COMPLETE, IMPOSSIBLE = Action("done", status="success"), Action("done", status="failure")
DUAL_POINT = 4


@cache
def phone(name: str) -> Any:
    return omnidata.get_task(name)


def rules(task: str, *profiles: str, screen: tuple[int, int] = (1000, 1000)) -> list[Rule]:
    def rule_of(profile: str) -> Rule:
        rule = phone(task).benchmark.evaluators[profile].match
        return lambda wanted, said, rects: rule(Truth(wanted, tuple(rects), screen), said)

    return [rule_of(profile) for profile in profiles]


def at(place: Pair) -> tuple[Point]:
    return (Point(*place, "rel"),)


def drag(touch: Pair, lift: Pair) -> Action:
    """A finger's way, as a row of Android in the Wild has it."""
    row = {"results/action_type": [DUAL_POINT], "results/yx_touch": [*touch[::-1]],
           "results/yx_lift": [*lift[::-1]]}  # fmt: skip
    return cast("Action", phone("aitw").benchmark.truth(row, (0, 0)).action)


def tap(x: float, y: float = 0.5) -> Action:
    return drag((x, y), (x, y))


def open_app(name: str) -> Action:
    return Action("open_app", app=name)
