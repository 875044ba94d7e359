"""Convert between screen positions and the coordinates that models read and write.

Coordinates are as short as possible: whole numbers (four digits in [0, 1]) if such a point lies
inside the target, otherwise as many digits as it takes to hit it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from sys import float_info
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from omnidata.actions import (
    Action,
    Box,
    Pair,
    Point,
    Region,
    Screen,
    Space,
    centre,
    convert,
    ratio,
    round_half_up,
)
from omnidata.dialects import CannotSayError
from omnidata.errors import OmnidataError, PredictionError
from omnidata.types import PLACE, Step, Target

Side = (
    Annotated[float, msgspec.Meta(ge=-float_info.max, le=float_info.max)]
    | Literal["inf", "-inf", "nan"]
)
"""A coordinate of an answer as scores have it: models name places beyond all screens, and JSON has
no infinity, which profiles write as a text."""

_FARTHEST: Final = 1e300
"""Beyond it whole numbers that are scaled may be no floats any more."""
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def answer_space(options: Mapping[str, str]) -> Space | None:
    """Return the unit of coordinates in a task's answers; None if answers have none.

    Args:
        options: of the task; `coordinates` names the unit.
    """
    spaces: Mapping[str, Space] = {
        "norm1000": "norm1000",
        "auto": "norm1000",
        "rel": "rel",
        "px": "px",
    }
    return spaces.get(options.get("coordinates", ""))


def center_places(target: Target, screen: Screen, *, space: Space) -> str:
    """Return a right answer with all its positions moved to the center of the screen.

    The number format stays. An answer whose marks do not fit its text is returned unchanged.

    Args:
        target: the answer.
        screen: width and height of the screenshot in pixels.
        space: the unit of its places.

    Examples:
        >>> click = Target("click(x=12, y=7)", "click(<bbox>)", ((12, 7),))
        >>> center_places(click, (720, 1600), space="norm1000")
        'click(x=500, y=500)'
        >>> center_places(click, (720, 1600), space="rel")
        'click(x=0.5, y=0.5)'
    """
    middle = convert(Point(0.5, 0.5, "rel"), space, screen)
    x, y = (side if space == "rel" else round(side) for side in (middle.x, middle.y))
    return replace_places(target, [(x, y)] * len(target.points))


def replace_places(target: Target, places: Sequence[Pair]) -> str:
    """Return a right answer with other positions, in the same number format.

    An answer whose marks do not fit its text is returned unchanged.

    Args:
        target: the right answer.
        places: the new places, in the answer's unit.

    Examples:
        >>> drag = Target("drag([1, 2], [3, 4])", "drag(<bbox>, <bbox>)", ((1, 2), (3, 4)))
        >>> replace_places(drag, [(5, 6), (0.7, 8)])
        'drag([5, 6], [0.7, 8])'
    """
    spelled = "(.+?)".join(map(re.escape, target.template.split(PLACE)))
    found = re.fullmatch(spelled, target.text, re.DOTALL)
    if found is None or not places:
        return target.text
    sides, text = cycle(repr(side) for pair in places for side in pair), target.template
    for written in found.groups():
        text = text.replace(PLACE, _NUMBER.sub(lambda old: next(sides), written), 1)
    return text


def place(region: Region, screen: Screen, *, space: Space, size: Screen) -> Pair:
    """Return a point inside a region, on the screen if the region is partly outside.

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
    if isinstance(box := in_pixels(region, screen), Box):
        edges = (box.left, box.right), (box.top, box.bottom)
    x, y = (
        _coordinate(value, edge, extent, shown_as, space)
        for value, edge, extent, shown_as in zip(
            (middle.x, middle.y), edges, screen, size, strict=True
        )
    )
    return x, y


def _on_screen(region: Region, screen: Screen) -> Region:
    box = in_pixels(region, screen)
    if isinstance(box, Point):
        return region
    left, top = max(0, box.left), max(0, box.top)
    right, bottom = min(screen[0], box.right), min(screen[1], box.bottom)
    if (left, top, right, bottom) == (box.left, box.top, box.right, box.bottom):
        return region
    return Box(left, top, right, bottom, "px") if left <= right and top <= bottom else region


def _coordinate(value: float, edge: Pair | None, extent: int, shown_as: int, space: Space) -> float:
    """Return the shortest number between two edges, which are in screen pixels."""
    if space == "px":
        value = value * shown_as / extent
    short = round(value, 4) if space == "rel" else round_half_up(value)
    if edge is None:
        return short
    parts = shown_as if space == "px" else ratio(space, extent)[1]
    exact = (value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf))
    back = [(number, number * extent / parts) for number in (short, *exact)]
    inside = (number for number, pixel in back if edge[0] < pixel < edge[1])
    within = (number for number, pixel in back if edge[0] <= pixel <= edge[1])
    return next(inside, next(within, value))


# The screenshot as a model was shown it, and the way from it back to the screen of the step.

Pixels = Annotated[int, msgspec.Meta(ge=1)]


class _Line(msgspec.Struct):
    role: str = ""
    width: Pixels | None = None
    height: Pixels | None = None
    original: tuple[Pixels, Pixels] | None = None
    pixels: str = ""


class _Receipt(msgspec.Struct):
    parts: list[_Line] = []


@dataclass(frozen=True, slots=True)
class Resizing:
    """The sizes of a screenshot and of the resized picture that the model got.

    Attributes:
        size: width and height of what was sent, in pixels.
        original: width and height of the screenshot, in pixels.
    """

    size: Screen
    original: Screen

    def to_screen(self, pair: Pair) -> Pair:
        """Convert a point from pixels of the sent picture to pixels of the screenshot.

        Integers too large for a float are returned unchanged.

        Examples:
            >>> Resizing((450, 1000), (720, 1600)).to_screen((225, 500))
            (360.0, 800.0)
        """
        try:
            return (
                pair[0] * self.original[0] / self.size[0],
                pair[1] * self.original[1] / self.size[1],
            )
        except OverflowError:
            return pair

    def to_sent(self, pair: Pair) -> Pair:
        """Convert a point from pixels of the screenshot to pixels of the sent picture.

        Examples:
            >>> Resizing((450, 1000), (720, 1600)).to_sent((360, 800))
            (225.0, 500.0)
        """
        return (
            pair[0] * self.size[0] / self.original[0],
            pair[1] * self.size[1] / self.original[1],
        )


def sent_size(receipt: Mapping[str, Any] | None, *, where: str) -> Resizing | None:
    """Return the sizes of the current screenshot; None if the receipt does not have them.

    Args:
        receipt: of a prediction.
        where: the step, for the message.

    Raises:
        PredictionError: omnidata did not write the receipt.

    Examples:
        >>> line = {"role": "screenshot", "width": 450, "height": 1000, "original": [720, 1600]}
        >>> sent_size({"parts": [line]}, where="")
        Resizing(size=(450, 1000), original=(720, 1600))
    """
    for line in _lines(receipt, where):
        if line.role == "screenshot" and line.width and line.height:
            size = line.width, line.height
            return Resizing(size, line.original or size)
    return None


def _lines(receipt: Mapping[str, Any] | None, where: str) -> Sequence[_Line]:
    if not receipt:
        return ()
    try:
        return msgspec.convert(receipt, _Receipt).parts
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # half a character has no bytes
        raise PredictionError(
            f"the receipt cannot be read: {error}",
            where=where,
            expected='"parts": for each medium its role and, where resized, width, height, '
            "original",
            remedy="remove the receipt if the model got the screenshot at its own size",
        ) from None


def resizing(receipt: Mapping[str, Any] | None, screen: Screen, *, where: str) -> Resizing | None:
    """Return the conversion from the sent picture to the step's screen, or None.

    The sent picture shows the whole screen. Targets are in the pixels of the row's screen size,
    even if the picture has another size. None if both sizes are equal, if the receipt has no size,
    or if the model got element positions in screen pixels.

    Args:
        receipt: of a prediction.
        screen: width and height of the step's screen in pixels; if unknown, the picture's own
            size is used.
        where: the step, for the message.

    Raises:
        PredictionError: as `sent_size`.
    """
    found = sent_size(receipt, where=where)
    if found is None or any(line.pixels == "screen" for line in _lines(receipt, where)):
        return None
    original = screen if min(screen) > 0 else found.original
    return Resizing(found.size, original) if found.size != original else None


def of_screen(receipt: Mapping[str, Any] | None, screen: Screen) -> Mapping[str, Any] | None:
    """Return the receipt with the row's screen size as the original size of its picture.

    Args:
        receipt: of a prediction.
        screen: width and height in pixels that the step's row states; (0, 0) where unknown.

    Raises:
        PredictionError: as `sent_size`.

    Examples:
        >>> line = {"role": "screenshot", "width": 90, "height": 200, "original": [360, 800]}
        >>> of_screen({"parts": [line]}, (720, 1600))["parts"][0]["original"]
        [720, 1600]
    """
    if min(screen) < 1 or receipt is None or sent_size(receipt, where="the step before") is None:
        return receipt
    parts = [
        {**line, "original": [*screen]} if line.get("role") == "screenshot" else line
        for line in receipt["parts"]
    ]
    return {**receipt, "parts": parts}


# Places of answers in pixels of the screen.


def to_screen(action: Action, resized: Resizing | None) -> Action:
    """Return an action whose points in pixels are those of the screen.

    Args:
        action: as a model wrote it.
        resized: how the picture was sent; None if it was not resized.
    """
    if resized is None:
        return action

    def move(regions: Sequence[Region]) -> tuple[Region, ...]:
        return tuple(
            Point(*resized.to_screen((region.x, region.y)), "px")
            if isinstance(region, Point) and region.space == "px"
            else region
            for region in regions
        )

    return replace(action, start=move(action.start), end=move(action.end))


def in_shares(action: Action, screen: Screen) -> Action:
    """Return an action with its points from 0 to 1 of the screen.

    Boxes stay as they are: the middle of one in another unit may differ in its last digit.

    Args:
        action: pixels are those of the screen.
        screen: width and height in pixels; if unknown, points in pixels are dropped.
    """

    def convert_points(regions: Sequence[Region]) -> tuple[Region, ...]:
        return tuple(
            region
            if isinstance(region, Box)
            # One product less: the last digit is that of value / 1000.
            else convert(region, "rel", screen if region.space == "px" else (1, 1))
            for region in regions
            if region.space != "px" or isinstance(region, Box) or min(screen) > 0
        )

    return replace(action, start=convert_points(action.start), end=convert_points(action.end))


def on_screen(step: Step, point: Point, receipt: Mapping[str, Any] | None) -> Point | None:
    """Return a point of an answer in pixels of the step's screen.

    Args:
        step: what was asked about.
        point: pixels are those of the picture as it was sent.
        receipt: of the answer, with the size of that picture.

    Returns:
        None if the receipt cannot be read, the screen size is unknown, or the numbers are out of
        range.
    """
    pair = scale_pair(point.x, point.y, scale_of(point.space, step.screen, receipt))
    return Point(*pair, "px") if pair else None


Scale = tuple[Pair, Pair]
"""For x and for y the numbers a and b with `value * a / b` in pixels of the screen."""


def scale_of(space: Space, screen: Screen, receipt: Mapping[str, Any] | None) -> Scale | None:
    """Return the factors from an answer's coordinates to screen pixels; None if unknown.

    Args:
        space: their unit; pixels are those of the picture as it was sent.
        screen: width and height in pixels; if unknown, only pixels can be converted.
        receipt: of the answer, with the size of the picture, if it can be read.
    """
    if space != "px":
        return (ratio(space, screen[0]), ratio(space, screen[1])) if min(screen) > 0 else None
    try:
        resized = resizing(receipt, screen, where="")
    except OmnidataError:
        return None
    if resized is None:
        return (1, 1), (1, 1)
    (width, height), (across, down) = resized.original, resized.size
    return (width, across), (height, down)


def scale_pair(x: float, y: float, scale: Scale | None) -> Pair | None:
    """Return two numbers of an answer in pixels; None without a scale, or if out of range."""
    if scale is None:
        return None
    (a, b), (c, d) = scale
    try:
        pair = x if a == b else x * a / b, y if c == d else y * c / d
        return pair if abs(pair[0]) <= _FARTHEST and abs(pair[1]) <= _FARTHEST else None
    except OverflowError:
        return None


def pair_on_screen(
    step: Step, pair: object, space: Space, receipt: Mapping[str, Any] | None
) -> Point | None:
    """Return two numbers of an answer as a point on the screen; None for other values."""
    point = point_of(pair, space)
    return on_screen(step, point, receipt) if point else None


def point_of(pair: object, space: Space) -> Point | None:
    """Return the point that two numbers of an answer name; None for anything else.

    Numbers outside the range of a float are stored as text and name no point.
    """
    if not isinstance(pair, Sequence) or len(pair) != 2:
        return None
    if not all(isinstance(side, int | float) for side in pair):
        return None
    return Point(pair[0], pair[1], space)


def point_said(action: Action) -> Pair:
    """Return the position of an action, for tasks that ask where something is.

    Raises:
        CannotSayError: it has no place.
    """
    if not action.start:
        raise CannotSayError(f"{action.label} is at no place")
    point = centre(action.start[0])
    return point.x, point.y


def in_pixels(region: Region, screen: Screen) -> Region:
    """Return a region in pixels of a screen.

    Examples:
        >>> in_pixels(Point(500, 500, "norm1000"), (720, 1600))
        Point(x=360.0, y=800.0, space='px')
    """
    if region.space == "px":
        return region
    if isinstance(region, Point):
        return convert(region, "px", screen)
    low = convert(Point(region.left, region.top, region.space), "px", screen)
    high = convert(Point(region.right, region.bottom, region.space), "px", screen)
    return Box(low.x, low.y, high.x, high.y, "px")
