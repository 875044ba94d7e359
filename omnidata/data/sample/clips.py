"""Clips of the sample: what happened on the screen since the last action.

A clip shows the finger of the last action on the screen before it, the change to the current
screen, then, where there is one, a visual cue that is gone again before the clip ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw

from omnidata.actions import SWIPES, Action, Box, Primitive, Region, centre
from omnidata.data.encode import Frame, encode_mp4
from omnidata.data.sample.canvas import GREEN, RED, WHITE, Screen
from omnidata.data.sample.icons import Colour, paint_icon

_TOUCH_S = 0.35
_CHANGE_S = 0.25
_REST_S = 0.2  # the current screen alone, so that the last frame is what the screenshot shows

Point2 = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Cue:
    """Something that is seen in the clip only.

    Attributes:
        kind: "flash" (a frame around a box lights up), "fill" (a bar fills), "move" (a disc moves
            across the box), "toast" (a round sign appears in the box).
        boxes: where, one after the other, in pixels of the screenshot.
        amount: flash: how often each; fill: how far, in [0, 1]; move: -1 to the left, 1 to the
            right; toast: 1 a green check mark, -1 a red cross.
        colour: of flash, fill and move.
    """

    kind: Literal["flash", "fill", "move", "toast"]
    boxes: tuple[Box, ...]
    amount: float
    colour: Colour = WHITE


@dataclass(frozen=True, slots=True)
class Clip:
    """What a clip is made of; equal clips have equal bytes.

    Attributes:
        before: the screen that the last action was made on.
        last: the last action.
        after: the current screen.
        cue: what is shown between the change and the end.
        seconds: the length; at least 1.
        fps: frames per second.
    """

    before: Screen
    last: Action
    after: Screen
    cue: Cue | None
    seconds: float
    fps: int

    def encode(self) -> bytes:
        """The clip as an MP4 file."""
        return encode_mp4(_frames(self), fps=self.fps)


def _frames(clip: Clip) -> Iterator[Frame]:
    before, after = (screen.image.reduce(2) for screen in (clip.before, clip.after))
    start, end = _TOUCH_S + _CHANGE_S, clip.seconds - _REST_S
    for index in range(round(clip.seconds * clip.fps)):
        t = index / clip.fps
        if t < _TOUCH_S:
            picture = before.copy()
            _finger(picture, clip.last, t / _TOUCH_S)
        elif t < start:
            picture = _change(before, after, clip.last, (t - _TOUCH_S) / _CHANGE_S)
        else:
            picture = after.copy()
            if clip.cue is not None and t < end:
                _show(picture, clip.cue, (t - start) / (end - start))
        yield np.asarray(picture)


def _finger(picture: Image.Image, action: Action, share: float) -> None:
    """The touch of the last action: a ripple, two, a growing one, or a trace."""
    if not action.start:
        return
    draw = ImageDraw.Draw(picture, "RGBA")
    x, y = _half(action.start[0])
    if action.kind in SWIPES and action.end:
        to_x, to_y = _half(action.end[0])
        at = (x + (to_x - x) * share, y + (to_y - y) * share)
        draw.line((x, y, *at), fill=(40, 120, 240, 110), width=14)
        _disc(draw, at, 13, (40, 120, 240, 200))
        return
    pulse = share * 2 % 1 if action.kind is Primitive.DOUBLE_TAP else share
    reach = 34 if action.kind is Primitive.LONG_PRESS else 22
    _disc(draw, (x, y), 8 + reach * pulse, (40, 120, 240, round(150 * (1 - 0.6 * pulse))))
    _disc(draw, (x, y), 8, (255, 255, 255, 220))


def _change(before: Image.Image, after: Image.Image, last: Action, share: float) -> Image.Image:
    """From one screen to the next, in the direction that the last action suggests."""
    width, height = before.size
    eased = 1 - (1 - share) ** 2
    offset = {
        Primitive.SWIPE_UP: (0, 1),
        Primitive.SWIPE_DOWN: (0, -1),
        Primitive.SWIPE_RIGHT: (-1, 0),
        Primitive.BACK: (-1, 0),
        Primitive.SWIPE_LEFT: (1, 0),
        Primitive.TAP: (1, 0),
    }.get(last.kind)
    if before is after or offset is None:
        return Image.blend(before, after, eased)
    picture = before.copy()
    left, top = (round(side * (1 - eased)) for side in (width, height))
    picture.paste(after, (offset[0] * left, offset[1] * top))
    return picture


def _show(picture: Image.Image, cue: Cue, share: float) -> None:
    draw = ImageDraw.Draw(picture, "RGBA")
    place = min(int(share * len(cue.boxes)), len(cue.boxes) - 1)
    local = share * len(cue.boxes) - place
    box = cue.boxes[place]
    left, top, right, bottom = box.left / 2, box.top / 2, box.right / 2, box.bottom / 2
    middle = ((left + right) / 2, (top + bottom) / 2)
    if cue.kind == "flash":
        light = max(0.0, math.sin(2 * math.pi * cue.amount * local - 0.5))
        tint = (*cue.colour, round(120 * light))
        edge = (*cue.colour, round(255 * light))
        draw.rounded_rectangle((left, top, right, bottom), 10, fill=tint, outline=edge, width=4)
    elif cue.kind == "fill":
        end = left + (right - left) * cue.amount * min(1.0, local * 1.4)
        draw.rounded_rectangle((left, top, max(end, left + 8), bottom), 4, fill=cue.colour)
    elif cue.kind == "move":
        reach = (right - left) / 2 - 16
        _disc(draw, (middle[0] + cue.amount * reach * (2 * local - 1), middle[1]), 15, cue.colour)
    elif 0.1 < local < 0.9:
        good = cue.amount > 0
        _disc(draw, middle, 46, GREEN if good else RED)
        paint_icon(draw, "check" if good else "close", centre=middle, size=64, fill=WHITE)


def _disc(draw: ImageDraw.ImageDraw, at: Point2, radius: float, fill: tuple[int, ...]) -> None:
    draw.ellipse((at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius), fill=fill)


def _half(region: Region) -> Point2:
    """The middle of a target, in pixels of the clip."""
    middle = centre(region)
    return middle.x / 2, middle.y / 2
