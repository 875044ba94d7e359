"""What is seen for a moment: clips of a screen on which something happens and is gone again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from omnidata.actions import Screen
from omnidata.data.encode import Frame, encode_mp4
from omnidata.data.sample.canvas import Rect
from omnidata.synth.episodes.looks import Look
from omnidata.synth.episodes.pages import BADGES, Span, paint_disc, paint_mark, paint_text
from omnidata.synth.episodes.vocabulary import CODES

_ARRIVED = 0.12  # of the clip: before that the screen comes in, as after an action
_FROM, _TO = 0.15, 0.85  # of the clip: something happens; then it shows the screen alone
_FLASHES = 3
_RUNS = 6  # numbers that a counter shows
_LIT = (255, 214, 64)
_DARK = (40, 42, 50)


@dataclass(frozen=True, slots=True)
class Motion:
    """Something that says a code.

    Attributes:
        kind: a video cue.
        code: 0 to 3.
        seed: of what is the same for all codes: the numbers before the last one.
    """

    kind: str
    code: int
    seed: int


@dataclass(frozen=True, slots=True)
class Drift:
    """Something that moves all the time and does not matter.

    Attributes:
        icon: a name of `ICONS`.
        turns: how often it crosses the screen; negative = from the right to the left.
        height: where, in [0, 1] of the panel.
    """

    icon: str
    turns: float
    height: float


def encode_clip(
    picture: Image.Image,
    *,
    plain: Image.Image,
    size: Screen,
    fps: int,
    count: int,
    stage: Rect,
    panel: Rect,
    look: Look,
    motion: Motion | None,
    drift: Drift | None,
) -> bytes:
    """A clip as an MP4 file; its last frame is the screen alone.

    Args:
        picture: the screen, at the screenshot's size.
        plain: the same without a sign, which is gone while there is a motion: on a sign of the same
            colour nobody would see it.
        size: of the clip in pixels, even.
        fps: frames per second.
        count: of frames, at least 2.
        stage: where the motion is, in pixels of the screenshot.
        panel: where the drift is, in pixels of the screenshot.
        look: of the app.
        motion: what matters, if anything in the clip does.
        drift: what does not matter, if there is something.
    """
    small = picture.resize(size, Image.Resampling.BOX)
    behind = small if motion is None else plain.resize(size, Image.Resampling.BOX)
    ratio = (size[0] / picture.width, size[1] / picture.height)
    scene = _Scene(small, behind, _scaled(stage, ratio), _scaled(panel, ratio), look, motion, drift)
    return encode_mp4(scene.frames(count), fps=fps)


def _scaled(rect: Rect, ratio: tuple[float, float]) -> Span:
    left, top, right, bottom = rect
    return (left * ratio[0], top * ratio[1], right * ratio[0], bottom * ratio[1])


@dataclass(frozen=True, slots=True)
class _Scene:
    screen: Image.Image
    behind: Image.Image
    stage: Span
    panel: Span
    look: Look
    motion: Motion | None
    drift: Drift | None

    def frames(self, count: int) -> Iterator[Frame]:
        still = np.asarray(self.screen)
        empty = Image.new("RGB", self.screen.size, self.look.theme.ground)
        for number in range(count):
            passed = number / (count - 1)
            if passed < _ARRIVED:
                yield np.asarray(Image.blend(empty, self.screen, passed / _ARRIVED))
                continue
            share = (passed - _FROM) / (_TO - _FROM)
            if not 0 <= share < 1 or (self.motion is None and self.drift is None):
                yield still
                continue
            picture = self.behind.copy()
            draw = ImageDraw.Draw(picture)
            if self.drift is not None:
                _paint_drift(draw, self.drift, share, self.panel, self.look)
            if self.motion is not None:
                _paint_motion(draw, self.motion, share, self.stage, self.look)
            yield np.asarray(picture)


def _paint_drift(
    draw: ImageDraw.ImageDraw, drift: Drift, share: float, panel: Span, look: Look
) -> None:
    left, top, right, bottom = panel
    size = min(right - left, bottom - top) * 0.18
    x = left + (right - left) * (share * drift.turns % 1)
    y = top + (bottom - top) * drift.height
    paint_mark(draw, drift.icon, centre=(x, y), size=size, fill=look.theme.faint)


def _paint_motion(
    draw: ImageDraw.ImageDraw, motion: Motion, share: float, stage: Span, look: Look
) -> None:
    """One moment of a motion, of whose time a share in [0, 1) has passed."""
    left, top, right, bottom = stage
    x, y = (left + right) / 2, (top + bottom) / 2
    size = min(right - left, bottom - top)
    code = motion.code
    if motion.kind == "lamp":
        _paint_lamps(draw, code, stage)
    elif motion.kind == "colour":
        if int(share * 2 * _FLASHES) % 2 == 0:
            paint_disc(draw, (x, y), size * 0.4, BADGES[code])
    elif motion.kind == "move":
        radius = size * 0.14
        along = 2 * share - 1
        dx, dy = ((0, -1), (0, 1), (-1, 0), (1, 0))[code]
        reach = ((right - left) / 2 - radius, (bottom - top) / 2 - radius)
        at = (x + dx * along * reach[0], y + dy * along * reach[1])
        paint_disc(draw, at, radius, look.theme.accent)
    elif motion.kind == "blink":
        slot = share * CODES
        if slot < code + 1 and slot % 1 < 0.5:
            paint_disc(draw, (x, y), size * 0.4, look.theme.accent)
    else:
        number = min(int(share * _RUNS), _RUNS - 1)
        digits = [random.Random(motion.seed + k).randrange(10) for k in range(_RUNS - 2)]
        shown = digits[number] if number < len(digits) else code + 1
        pixels = max(5, round(size * 0.7))
        paint_text(draw, str(shown), (x, y), pixels=pixels, fill=look.theme.ink, face=look.type)


def _paint_lamps(draw: ImageDraw.ImageDraw, lit: int, stage: Span) -> None:
    left, top, right, bottom = stage
    wide = (right - left) / CODES
    radius = min(wide, bottom - top) * 0.38
    for number in range(CODES):
        at = (left + wide * (number + 0.5), (top + bottom) / 2)
        paint_disc(draw, at, radius, _LIT if number == lit else _DARK)
