"""Where a step's target is and where an answer points, in pixels of the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnidata.actions import Point, Region
from omnidata.tasks.agentstudio.rows import action_box, target_box
from omnidata.tasks.omnibench.actions import Click
from omnidata.tasks.omnibench.rows import call_of, rect_of
from omnidata.types import Step, Task
from omnidata.viewer.action_summary import (
    action_of,
    answer_turn,
    in_pixels,
    on_screen,
    pair_on_screen,
    target_turn,
    unit_of,
)

Parsed = Mapping[str, Any] | None
SCREENSHOT: Final = "screenshot"
TRAJECTORIES: Final = ("idm-single", "idm-multiple", "criticbench")
"""Benchmarks that ask what was done; what can be drawn is where it was done, and no target."""


@dataclass(frozen=True, slots=True)
class Places:
    """What can be drawn on one picture of a step, in its pixels.

    Attributes:
        start: the target, or where a swipe must begin; several are alternatives, or of several
            actions.
        end: where a swipe must end.
        said: where the answer points, or where its swipe begins; None if nowhere.
        said_end: where its swipe ends.
    """

    start: tuple[Region, ...] = ()
    end: tuple[Region, ...] = ()
    said: Point | None = None
    said_end: Point | None = None


def places(
    task: Task, step: Step, parsed: Parsed, receipt: Mapping[str, Any]
) -> Mapping[str, Places]:
    """What can be drawn, by the role of the picture.

    Args:
        task: with the options of the run.
        step: the step.
        parsed: the answer as the profile read it; None if there is none.
        receipt: of the answer: the sizes of what was sent.
    """
    if task.name in TRAJECTORIES:
        return _recorded(task.name, step)
    return {SCREENSHOT: _FOUND.get(task.name, _acted)(task, step, parsed, receipt)}


def _recorded(task: str, step: Step) -> Mapping[str, Places]:
    """Where the recorded actions of a trajectory were made, on the picture before each."""
    if task == "idm-single":
        actions = {"before": step.source}
    else:
        actions = {f"observation_{n}": action for n, action in enumerate(step.source["actions"])}
    found = ((role, action_box(step.source, action)) for role, action in actions.items())
    return {
        role: Places((in_pixels(region, step.screen),))
        for role, region in found
        if region is not None
    }


def _acted(task: Task, step: Step, parsed: Parsed, receipt: Mapping[str, Any]) -> Places:
    """Of a step and an answer that are actions."""
    said = action_of(task, parsed)
    start, end, said_start, said_end = (
        regions
        for action in (step.action, said)
        for regions in ((action.start, action.end) if action else ((), ()))
    )
    return Places(
        tuple(in_pixels(region, step.screen) for region in start),
        tuple(in_pixels(region, step.screen) for region in end),
        *(
            on_screen(step, regions[0], receipt)
            if regions and isinstance(regions[0], Point)
            else None
            for regions in (said_start, said_end)
        ),
    )


def _grounded(task: Task, step: Step, parsed: Parsed, receipt: Mapping[str, Any]) -> Places:
    box = target_box(step.source)
    said = (parsed or {}).get("point")  # the profile has brought it to the screen
    return Places((box,) if box else (), (), pair_on_screen(step, said, "px", {}))


def _spotted(task: Task, step: Step, parsed: Parsed, receipt: Mapping[str, Any]) -> Places:
    said = parsed or {}
    point = pair_on_screen(step, said.get("point"), said.get("space", unit_of(task)), receipt)
    start = step.action.start if step.action else ()
    return Places(tuple(in_pixels(region, step.screen) for region in start), (), point)


def _called(task: Task, step: Step, parsed: Parsed, receipt: Mapping[str, Any]) -> Places:
    call = call_of(step.source)
    box = rect_of(step.source) if isinstance(call, Click) else None
    said = pair_on_screen(step, (parsed or {}).get("coordinates"), unit_of(task), receipt)
    return Places((box,) if box else (), (), said)


def _turned(task: Task, step: Step, parsed: Parsed, receipt: Mapping[str, Any]) -> Places:
    target = target_turn(task.name, step)
    said = answer_turn(task, step, parsed, receipt) if parsed else None
    start, end = (
        next((region for region in regions if isinstance(region, Point)), None)
        for regions in ((said.starts, said.ends) if said else ((), ()))
    )
    return Places(target.starts if target else (), target.ends if target else (), start, end)


_FOUND: Final[Mapping[str, Callable[[Task, Step, Parsed, Mapping[str, Any]], Places]]] = {
    "groundui": _grounded,
    "screenspot": _spotted,
    "omnibench": _called,
    "agentnet": _turned,
    "osworld": _turned,
}
"""By benchmark; the others have actions of one primitive."""
