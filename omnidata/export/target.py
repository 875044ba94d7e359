"""The answer that a step's prompt asks for, as a model is to learn it.

Short: compact JSON, whole numbers (four digits in [0, 1]) wherever such a point lies inside the
target, and otherwise as many digits as it takes to hit it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from omnidata.actions import (
    POSITIONAL,
    SWIPES,
    Action,
    Box,
    Point,
    Region,
    Screen,
    Space,
    answer,
    centre,
    convert,
    round_half_up,
)
from omnidata.loaders.agentstudio_boxes import target_box
from omnidata.loaders.agentstudio_window import shown
from omnidata.metrics.agentstudio_idm import letters_of
from omnidata.types import Step

BOX = "<bbox>"
"""What stands for a place in `Target.marked`, as ms-swift has it."""

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Target:
    """An answer.

    Attributes:
        text: the answer.
        marked: the answer with `BOX` for each place.
        places: those places, in the unit of the answer.
    """

    text: str
    marked: str
    places: tuple[Pair, ...] = ()


def write(task: str, step: Step, *, space: Space, size: Screen) -> Target | None:
    """The right answer to a step.

    Args:
        task: the benchmark.
        step: one of its steps.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it; the pixels of "px".

    Returns:
        None where the source has no answer.
    """
    if task == "omnigui":
        return _action(step, space, size) if step.action else None
    row = step.source
    if task == "groundui":
        box = target_box(row)
        if box is None or min(step.screen) < 1:
            return None
        place = _place(box, step.screen, space, size)
        return Target(f"({place[0]!r}, {place[1]!r})", BOX, (place,))
    if task == "criticbench":
        said = f"Answer: {row['is_success']}"
        return Target(said, said)
    actions = [row] if task == "idm-single" else shown("idm-multiple", row)
    letters = letters_of([action["operation"] for action in actions], row["action_space"])
    if not letters:
        return None
    said = "Answer: " + letters[0] if task == "idm-single" else "\n".join(("Answer:", *letters))
    return Target(said, said)


def _action(step: Step, space: Space, size: Screen) -> Target:
    assert step.action
    body = answer(step.action, step.screen)
    places: list[Pair] = []
    marked = dict(body)
    for key, region in _regions(step.action, body):
        place = _place(region, step.screen, space, size)
        places.append(place)
        body[key], marked[key] = list(place), BOX
    return Target(_compact(body), _compact(marked).replace(f'"{BOX}"', BOX), tuple(places))


def _regions(action: Action, body: dict[str, Any]) -> Iterator[tuple[str, Region]]:
    """The places that an action has, by the keys of its answer."""
    if action.kind in POSITIONAL and action.start:
        yield "coordinate", action.start[0]
    elif action.kind in SWIPES and action.start:
        yield "start_coordinate", action.start[0]
        yield "end_coordinate", action.end[0] if action.end else _lift(body)


def _lift(body: dict[str, Any]) -> Point:
    """Where a swipe ends whose source does not say it."""
    x, y = body["end_coordinate"]
    return Point(x, y, "norm1000")


def _compact(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _place(region: Region, screen: Screen, space: Space, size: Screen) -> Pair:
    """A point of the region, in the unit of the answer."""
    region = _on_screen(region, screen)
    middle = convert(centre(region), space, screen)
    edges: tuple[tuple[float, float] | None, ...] = (None, None)
    if isinstance(region, Box):
        edges = _edges(region, screen)
    x, y = (
        _coordinate(value, edge, extent, shown_as, space)
        for value, edge, extent, shown_as in zip(
            (middle.x, middle.y), edges, screen, size, strict=True
        )
    )
    return x, y


def _on_screen(region: Region, screen: Screen) -> Region:
    """The part of a box that is on the screen, where it goes beyond and there is such a part."""
    if isinstance(region, Point):
        return region
    (left, right), (top, bottom) = _edges(region, screen)
    if left >= 0 and top >= 0 and right <= screen[0] and bottom <= screen[1]:
        return region
    part = (max(0, left), max(0, top), min(screen[0], right), min(screen[1], bottom))
    return Box(*part, "px") if part[0] <= part[2] and part[1] <= part[3] else region


def _edges(box: Box, screen: Screen) -> tuple[Pair, Pair]:
    """Left and right, top and bottom in pixels of the screen."""
    low = convert(Point(box.left, box.top, box.space), "px", screen)
    high = convert(Point(box.right, box.bottom, box.space), "px", screen)
    return (low.x, high.x), (low.y, high.y)


def _coordinate(
    value: float, edge: tuple[float, float] | None, extent: int, shown_as: int, space: Space
) -> float:
    """The shortest number near a value that lies between two edges, which are in screen pixels.

    Args:
        value: in the unit of the answer, but pixels are the screen's.
        edge: the edges; None where the target is a point, near which is good enough.
        extent: pixels of the screen along the axis.
        shown_as: pixels of the screenshot as the model is shown it.
        space: the unit.
    """
    if space == "px":
        value = value * shown_as / extent
    short = round(value, 4) if space == "rel" else round_half_up(value)
    if edge is None:
        return short
    back = _to_screen(space, extent, shown_as)
    exact = (value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf))
    inside = (number for number in (short, *exact) if edge[0] < back(number) < edge[1])
    within = (number for number in (short, *exact) if edge[0] <= back(number) <= edge[1])
    return next(inside, next(within, value))


def _to_screen(space: Space, extent: int, shown_as: int) -> Callable[[float], float]:
    """From the unit of the answer to pixels of the screen, in the arithmetic of the profiles."""
    if space == "rel":
        return lambda number: number * extent
    parts = 1000 if space == "norm1000" else shown_as
    return lambda number: number * extent / parts
