"""What the episodes of the sample are made of: steps, twins, and the clips between two screens.

Twins are episodes that one medium alone tells apart.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw

from omnidata.actions import Action, Box, Region, centre
from omnidata.loaders.episode_tree import Dependency, Dimension
from omnidata.media import Frame, Samples, encode_mp4
from omnidata.synth import sounds
from omnidata.synth.drawing import GREEN, RED, WHITE, Colour, paint_disc, paint_icon
from omnidata.synth.sample.phone import Screen, launcher


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


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """One step: what is there, and what is right.

    Attributes:
        screen: the current screen.
        action: the target.
        sound: what was heard since the last action; its length is that of the clip.
        cue: what was seen since the last action, and is gone.
    """

    screen: Screen
    action: Action
    sound: Samples
    cue: Cue | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """Marks one of several episodes that are the same up to one step, in all but one medium.

    Attributes:
        group: the id of the first of them.
        modality: the medium that decides.
        step: the 0-based step at which it does.
    """

    group: str
    modality: Literal["audio", "video"]
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What the episodes of a group share.

    Attributes:
        dimension, dependency, language: as in the dataset.
        en, zh: the instruction in English and Chinese.
    """

    dimension: Dimension
    dependency: Dependency
    language: Literal["en", "zh"]
    en: str
    zh: str


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """One episode.

    Attributes:
        id: unique in the app.
        task: what the episode is about.
        moments: the steps.
        twin: None for an episode without twins.
    """

    id: str
    task: Task
    moments: tuple[Moment, ...]
    twin: Twin | None = None


class Script:
    """The episodes of one app, numbered in the order in which they are added.

    Args:
        app: the app's name; its first letter begins every id.
        seed: decides everything that chance decides.

    Attributes:
        start: the phone's start page, the same in all apps.
        rng: for names, places and the order of twins.
        noise: for sounds.
    """

    def __init__(self, app: str, *, seed: int) -> None:
        self.app = app
        self.plans: list[Plan] = []
        self.start = launcher(random.Random(seed).random())
        self.rng = random.Random(f"{seed}/{app}")
        self.noise = np.random.default_rng(self.rng.getrandbits(64))

    def hear(
        self, cue: Samples | None = None, *, seconds: float = 1.2, at: float = 0.65
    ) -> Samples:
        """A quiet room, with a sound from `at` seconds on where one is given."""
        ground = sounds.room(self.noise, seconds=seconds)
        return ground if cue is None else sounds.over(ground, cue, at=at)

    def add(self, task: Task, *moments: Moment) -> None:
        """Add an episode without twins."""
        self.plans.append(Plan(self._next(), task, moments))

    def twins(
        self,
        task: Task,
        modality: Literal["audio", "video"],
        *,
        start: Sequence[Moment],
        endings: Sequence[Sequence[Moment]],
    ) -> None:
        """Add one episode per ending, in random order.

        Args:
            task: what all of them are about.
            modality: the medium that decides.
            start: the steps that they share.
            endings: what follows; the first moment of each differs in the medium and the action.
        """
        group = self._next()
        for ending in self.rng.sample(endings, len(endings)):
            twin = Twin(group, modality, len(start))
            self.plans.append(Plan(self._next(), task, (*start, *ending), twin))

    def _next(self) -> str:
        return f"{self.app[0]}{len(self.plans) + 1:03d}"


def tap(screen: Screen, name: str, label: str = "TAP") -> Action:
    """Touch a widget: a tap, or another positional primitive."""
    return Action.of(label, (screen.targets[name],))


# Clips of the sample: what happened on the screen since the last action.
#
# A clip shows the finger of the last action on the screen before it, the change to the current
# screen, then, where there is one, a visual cue that is gone again before the clip ends.

_TOUCH_S = 0.35
_CHANGE_S = 0.25
_REST_S = 0.2  # the current screen alone, so that the last frame is what the screenshot shows


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
    before, after = clip.before.half, clip.after.half
    rest = np.asarray(after)
    start, end = _TOUCH_S + _CHANGE_S, clip.seconds - _REST_S
    for index in range(round(clip.seconds * clip.fps)):
        t = index / clip.fps
        if t < _TOUCH_S:
            picture = before.copy()
            _finger(picture, clip.last, t / _TOUCH_S)
        elif t < start:
            picture = _change(before, after, clip.last, (t - _TOUCH_S) / _CHANGE_S)
        elif clip.cue is not None and t < end:
            picture = after.copy()
            _show(picture, clip.cue, (t - start) / (end - start))
        else:
            yield rest
            continue
        yield np.asarray(picture)


def _finger(picture: Image.Image, action: Action, share: float) -> None:
    """The touch of the last action: a ripple, two, a growing one, or a trace."""
    if not action.start:
        return
    draw = ImageDraw.Draw(picture, "RGBA")
    x, y = _half(action.start[0])
    if action.kind == "swipe" and action.end:
        to_x, to_y = _half(action.end[0])
        at = (x + (to_x - x) * share, y + (to_y - y) * share)
        draw.line((x, y, *at), fill=(40, 120, 240, 110), width=14)
        paint_disc(draw, at, 13, (40, 120, 240, 200))
        return
    pulse = share * 2 % 1 if action.count == 2 else share
    reach = 34 if action.kind == "long_press" else 22
    paint_disc(draw, (x, y), 8 + reach * pulse, (40, 120, 240, round(150 * (1 - 0.6 * pulse))))
    paint_disc(draw, (x, y), 8, (255, 255, 255, 220))


def _change(before: Image.Image, after: Image.Image, last: Action, share: float) -> Image.Image:
    """From one screen to the next, in the direction that the last action suggests."""
    width, height = before.size
    eased = 1 - (1 - share) ** 2
    offset = {
        "SWIPE_UP": (0, 1),
        "SWIPE_DOWN": (0, -1),
        "SWIPE_RIGHT": (-1, 0),
        "BACK": (-1, 0),
        "SWIPE_LEFT": (1, 0),
        "TAP": (1, 0),
    }.get(last.label)
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
        paint_disc(
            draw, (middle[0] + cue.amount * reach * (2 * local - 1), middle[1]), 15, cue.colour
        )
    elif 0.1 < local < 0.9:
        good = cue.amount > 0
        paint_disc(draw, middle, 46, GREEN if good else RED)
        paint_icon(draw, "check" if good else "close", centre=middle, size=64, fill=WHITE)


def _half(region: Region) -> tuple[float, float]:
    """The middle of a target, in pixels of the clip."""
    middle = centre(region)
    return middle.x / 2, middle.y / 2
