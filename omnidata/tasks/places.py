"""A place of the screen as the numbers that a model is to learn.

Short: whole numbers (four digits in [0, 1]) wherever such a point lies inside the target, and
otherwise as many digits as it takes to hit it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from omnidata.actions import (
    Box,
    Point,
    Region,
    Screen,
    Space,
    centre,
    convert,
    round_half_up,
)

Pair = tuple[float, float]


def place(region: Region, screen: Screen, *, space: Space, size: Screen) -> Pair:
    """A point of the region; of the part on the screen, where it goes beyond and there is one.

    Args:
        region: the target.
        screen: width and height of the screenshot in pixels.
        space: the unit of the answer.
        size: width and height of the screenshot as the model is shown it; the pixels of "px".

    Returns:
        x and y in the unit of the answer.

    Examples:
        >>> box = Box(210, 786, 351, 850, "px")
        >>> place(box, (720, 1600), space="norm1000", size=(720, 1600))
        (390, 511)
        >>> place(box, (720, 1600), space="px", size=(360, 800))
        (140, 409)
    """
    region = _on_screen(region, screen)
    middle = convert(centre(region), space, screen)
    edges: tuple[Pair | None, ...] = (None, None)
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


def _coordinate(value: float, edge: Pair | None, extent: int, shown_as: int, space: Space) -> float:
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
