"""Where a step's target is and where an answer points, in pixels of the picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omnidata.actions import Action, Box, Point, Region, Screen, convert
from omnidata.desktop import Click
from omnidata.errors import OmnidataError
from omnidata.loaders.agentstudio_boxes import action_box, target_box
from omnidata.loaders.omnibench_rows import call_of, rect_of
from omnidata.tasks.resizing import resizing
from omnidata.types import Step, Task

SCREENSHOT = "screenshot"
TRAJECTORIES = ("idm-single", "idm-multiple", "criticbench")
"""Benchmarks that ask what was done; what can be drawn is where it was done, and no target."""


@dataclass(frozen=True, slots=True)
class Places:
    """What can be drawn on one picture of a step, in its pixels.

    Attributes:
        start: the target, or where a swipe must begin; several are alternatives.
        end: where a swipe must end.
        said: where the answer points, or where its swipe begins; None if nowhere.
        said_end: where its swipe ends.
    """

    start: tuple[Region, ...] = ()
    end: tuple[Region, ...] = ()
    said: Point | None = None
    said_end: Point | None = None


def places(
    task: Task, step: Step, parsed: Mapping[str, Any] | None, receipt: Mapping[str, Any]
) -> Mapping[str, Places]:
    """What can be drawn, by the role of the picture.

    Args:
        task: with the options of the run.
        step: the step.
        parsed: the answer as the profile read it; None if there is none.
        receipt: of the answer: the sizes of what was sent.
    """
    if task.name == "groundui":
        box = target_box(step.source)
        return {SCREENSHOT: Places((box,) if box else (), (), _ground_said(parsed))}
    if task.name == "omnibench":
        call = call_of(step.source)
        box = rect_of(step.source) if isinstance(call, Click) else None
        said = _omnibench_said(task, step, parsed, receipt)
        return {SCREENSHOT: Places((box,) if box else (), (), said)}
    if task.name in TRAJECTORIES:
        return _recorded(task.name, step)
    start: tuple[Region, ...] = ()
    end: tuple[Region, ...] = ()
    if step.action:
        start, end = _in_pixels(step.action.start, step), _in_pixels(step.action.end, step)
    return {SCREENSHOT: Places(start, end, *_said(task, step, parsed, receipt))}


def _recorded(task: str, step: Step) -> Mapping[str, Places]:
    """Where the recorded actions of a trajectory were made, on the picture before each."""
    if task == "idm-single":
        actions = {"before": step.source}
    else:
        actions = {f"observation_{n}": action for n, action in enumerate(step.source["actions"])}
    found = ((role, action_box(step.source, action)) for role, action in actions.items())
    return {
        role: Places(_in_pixels((region,), step)) for role, region in found if region is not None
    }


def _in_pixels(regions: Sequence[Region], step: Step) -> tuple[Region, ...]:
    return tuple(in_pixels(region, step.screen) for region in regions)


def in_pixels(region: Region, screen: Screen) -> Region:
    """A region in pixels of a screen.

    Examples:
        >>> in_pixels(Point(500, 500, "norm1000"), (720, 1600))
        Point(x=360.0, y=800.0, space='px')
    """
    if isinstance(region, Point):
        return convert(region, "px", screen)
    low = convert(Point(region.left, region.top, region.space), "px", screen)
    high = convert(Point(region.right, region.bottom, region.space), "px", screen)
    return Box(low.x, low.y, high.x, high.y, "px")


def action_of(
    task: Task, parsed: Mapping[str, Any] | None, receipt: Mapping[str, Any]
) -> Action | None:
    """An answer as an action: what was read is read again, by the rules for histories of answers.

    None where there is no answer, or the benchmark's answers are no such actions.
    """
    if parsed is None:
        return None
    try:
        return task.read(json.dumps(parsed), receipt)
    except (OmnidataError, ValueError, OverflowError):
        return None


def _said(
    task: Task, step: Step, parsed: Mapping[str, Any] | None, receipt: Mapping[str, Any]
) -> tuple[Point | None, Point | None]:
    action = action_of(task, parsed, receipt)
    if action is None:
        return None, None
    start, end = _in_pixels(action.start, step), _in_pixels(action.end, step)
    return _point(start), _point(end)


def _point(regions: Sequence[Region]) -> Point | None:
    return regions[0] if regions and isinstance(regions[0], Point) else None


def _ground_said(parsed: Mapping[str, Any] | None) -> Point | None:
    pair = (parsed or {}).get("point")
    if not pair or not all(isinstance(number, int | float) for number in pair):
        return None
    return Point(pair[0], pair[1], "px")


def _omnibench_said(
    task: Task, step: Step, parsed: Mapping[str, Any] | None, receipt: Mapping[str, Any]
) -> Point | None:
    pair = (parsed or {}).get("coordinates")
    if not pair:
        return None
    space = task.options["coordinates"]
    if space == "px":
        try:
            resized = resizing(receipt, where=step.sample_id)
        except OmnidataError:
            return None
        x, y = resized.to_screen((pair[0], pair[1])) if resized else (pair[0], pair[1])
        return Point(x, y, "px")
    unit: Literal["rel", "norm1000"] = "rel" if space == "rel" else "norm1000"
    return convert(Point(pair[0], pair[1], unit), "px", step.screen)
