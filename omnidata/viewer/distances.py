"""How far a point is from where it should be, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from omnidata.actions import Point, Region, Screen, convert
from omnidata.tasks.omnigui.rules import POINT_RADIUS

_FAR: Final = 10**9
"""Thousandths of a screen that nobody needs to tell apart."""


def shown(point: Point) -> str:
    """A point in pixels, to a tenth.

    Examples:
        >>> shown(Point(512.44, 300, "px"))
        '(512.4, 300)'
    """
    return f"({_number(point.x)}, {_number(point.y)})"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if abs(value) < 1e9 else f"{value:.1e}"


def quoted(text: object) -> str:
    """A text between quotation marks, a long one cut off."""
    said = str(text)
    return f"“{said if len(said) <= 80 else said[:80] + '…'}”"


def gap(point: Point, regions: Sequence[Region], screen: Screen, *, noun: str = "target") -> str:
    """Where a point lies, seen from the nearest of some regions, all in pixels.

    Args:
        point: of an answer.
        regions: at least one.
        screen: width and height in pixels.
        noun: what the regions are called.

    Examples:
        >>> from omnidata.actions import Box
        >>> box = Box(100, 200, 300, 260, "px")
        >>> gap(Point(343, 230, "px"), [box], (720, 1600))
        '43 px right of the target box'
        >>> gap(Point(90, 190, "px"), [box, Box(600, 600, 700, 700, "px")], (720, 1600))
        '10 px left of and 10 px above the nearest of 2 target boxes'
        >>> gap(Point(300, 260, "px"), [box], (720, 1600))
        'inside the target box'
    """
    region = min(regions, key=lambda each: math.hypot(*_off(point, each)))
    several = len(regions) > 1
    outside = "" if _is_on(point, screen) else ", off the screen"
    if isinstance(region, Point):
        about = f"the nearest of {len(regions)} {noun} points" if several else f"the {noun} point"
        distance = _thousandths(point, region, screen)
        away = f"{distance} of 1000" if distance < _FAR else "farther than any screen"
        return f"{away} away from {about}{outside}"
    about = f"the nearest of {len(regions)} {noun} boxes" if several else f"the {noun} box"
    x, y = _off(point, region)
    parts = []
    if x:
        parts.append(f"{_pixels(x)} {'left' if x < 0 else 'right'} of")
    if y:
        parts.append(f"{_pixels(y)} {'above' if y < 0 else 'below'}")
    return f"{' and '.join(parts)} {about}{outside}" if parts else f"inside {about}{outside}"


def is_inside(
    point: Point, regions: Sequence[Region], screen: Screen, *, reach: float = POINT_RADIUS
) -> bool:
    """Whether a point lies in one of the boxes, edges included, or near enough to a point.

    Args:
        point: of an answer.
        regions: all in pixels, as the point.
        screen: width and height in pixels.
        reach: how far from a point is near enough, in thousandths of the screen.
    """
    return any(
        _thousandths(point, region, screen) <= reach
        if isinstance(region, Point)
        else _off(point, region) == (0, 0)
        for region in regions
    )


def _off(point: Point, region: Region) -> tuple[float, float]:
    """How far right of and below the region the point is; negative: left of and above."""
    if isinstance(region, Point):
        return point.x - region.x, point.y - region.y
    return (
        _beyond(region.left, point.x, region.right),
        _beyond(region.top, point.y, region.bottom),
    )


def _beyond(low: float, value: float, high: float) -> float:
    """The distance from an interval; what lies within a billionth of an end is on it."""
    off = min(0.0, value - low) + max(0.0, value - high)
    return off if abs(off) > 1e-9 * max(1.0, abs(value)) else 0.0


def _thousandths(point: Point, target: Point, screen: Screen) -> int:
    one, other = (convert(each, "norm1000", screen) for each in (point, target))
    distance = math.dist((one.x, one.y), (other.x, other.y))
    return math.ceil(distance - 1e-9) if distance < _FAR else _FAR


def _pixels(distance: float) -> str:
    """A distance; less than 10 pixels with a digit after the point."""
    size = abs(distance)
    if size >= 1e9:
        return f"{size:.1e} px"
    if size < 0.05:
        return "less than 0.1 px"
    return f"{size:.0f} px" if size >= 10 or size == int(size) else f"{size:.1f} px"


def _is_on(point: Point, screen: Screen) -> bool:
    return 0 <= point.x <= screen[0] and 0 <= point.y <= screen[1]
