"""What a profile read in an answer, read again: as an action, and as a place on the screen."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from omnidata.actions import Action, Box, Point, Region, Screen, Space, convert
from omnidata.errors import OmnidataError
from omnidata.phone import Kind, Move, nearest
from omnidata.tasks.resizing import resizing
from omnidata.types import Step, Task


def action_of(task: Task, parsed: Mapping[str, Any] | None) -> Action | None:
    """An answer as an action, by the rules for histories of answers; its places as it wrote them.

    None where there is no answer, or the benchmark's answers are no such actions.
    """
    if parsed is None:
        return None
    try:
        if "form" in parsed:
            return nearest(_move(task, parsed))
        text = fenced(parsed["code"]) if "code" in parsed else json.dumps(parsed)
        return task.read(text, {})
    except (OmnidataError, LookupError, TypeError, ValueError, OverflowError):
        return None


def fenced(code: str) -> str:
    """Code as an answer has it."""
    return f"```python\n{code}\n```"


def _move(task: Task, parsed: Mapping[str, Any]) -> Move:
    """A move on a phone in another form than the prompt's (`metrics.phone_answer`)."""
    touch, lift = (tuple(parsed[name]) if name in parsed else None for name in ("touch", "lift"))
    return Move(
        Kind(parsed["kind"]),
        touch,
        lift,
        direction=parsed.get("direction"),
        text=parsed.get("text", ""),
        space=unit_of(task) if parsed["form"] == "prompted" else "norm1000",
    )


def unit_of(task: Task) -> Space:
    """The unit that answers have their places in, by the task's options."""
    spaces: tuple[Space, ...] = get_args(Space)
    return next(space for space in spaces if space == task.options["coordinates"])


def on_screen(step: Step, point: Point, receipt: Mapping[str, Any]) -> Point | None:
    """A point of an answer in pixels of the step's screen.

    Args:
        step: what was asked about.
        point: pixels are those of the picture as it was sent.
        receipt: of the answer; it tells how large that was.

    Returns:
        None where the receipt cannot be read, or the size of the screen is not known, or the
        numbers are beyond any screen.
    """
    try:
        if point.space != "px":
            found = convert(point, "px", step.screen) if min(step.screen) > 0 else None
        else:
            resized = resizing(receipt, where=step.sample_id)
            pair = (point.x, point.y)
            found = Point(*(resized.to_screen(pair) if resized else pair), "px")
        return found if found and math.isfinite(found.x) and math.isfinite(found.y) else None
    except (OmnidataError, OverflowError):
        return None


def pair_on_screen(
    step: Step, pair: object, space: Space, receipt: Mapping[str, Any]
) -> Point | None:
    """Two numbers of an answer as such a point; None for anything else."""
    if not isinstance(pair, Sequence) or len(pair) != 2:
        return None
    if not all(isinstance(side, int | float) for side in pair):
        return None
    return on_screen(step, Point(pair[0], pair[1], space), receipt)


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
