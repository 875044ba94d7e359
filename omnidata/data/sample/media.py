"""Sounds of the sample: signals that decide, and the noise of a room around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw

from omnidata.actions import Action, Box, Region, centre
from omnidata.data.sample.canvas import GREEN, RED, WHITE, Colour, Screen, paint_icon
from omnidata.media.encoding import AUDIO_RATE, Frame, Samples, encode_mp4

Rng = np.random.Generator


def _time(seconds: float) -> Samples:
    return np.arange(round(seconds * AUDIO_RATE)) / AUDIO_RATE


def _faded(signal: Samples, *, seconds: float = 0.01) -> Samples:
    """Without the click that an abrupt start and end would make."""
    ramp = np.linspace(0, 1, round(seconds * AUDIO_RATE))
    shaped = signal.copy()
    shaped[: ramp.size] *= ramp
    shaped[-ramp.size :] *= ramp[::-1]
    return shaped


def room(rng: Rng, *, seconds: float, level: float = 0.006) -> Samples:
    """Quiet noise with a low hum; `level` is the standard deviation of the noise."""
    hum = 0.5 * level * np.sin(2 * np.pi * 100 * _time(seconds))
    return rng.normal(0, level, round(seconds * AUDIO_RATE)) + hum


def over(ground: Samples, cue: Samples, *, at: float) -> Samples:
    """`cue` on top of `ground` from `at` seconds on; what lies beyond its end is cut off."""
    mixed = ground.copy()
    start = round(at * AUDIO_RATE)
    part = cue[: max(0, mixed.size - start)]
    mixed[start : start + part.size] += part
    return mixed


def tone(frequency: float, *, seconds: float, volume: float = 0.35) -> Samples:
    """A steady note with two overtones; `frequency` in hertz."""
    t = _time(seconds)
    waves = (np.sin(2 * np.pi * frequency * k * t) / k**2 for k in (1, 2, 3))
    return _faded(volume * np.sum(list(waves), axis=0))


def pluck(frequency: float, *, seconds: float = 0.5, volume: float = 0.45) -> Samples:
    """A note that dies away, as of a bell or a string."""
    return tone(frequency, seconds=seconds, volume=volume) * np.exp(-7 * _time(seconds))


def sequence(notes: Sequence[Samples], *, every: float) -> Samples:
    """Signals one after the other, one start every `every` seconds; long ones ring on."""
    total = every * (len(notes) - 1) + max(note.size for note in notes) / AUDIO_RATE
    ground = np.zeros(round(total * AUDIO_RATE))
    for index, note in enumerate(notes):
        ground = over(ground, note, at=index * every)
    return ground


def chime(frequencies: Sequence[float]) -> Samples:
    """Bell notes in quick succession."""
    return sequence([pluck(frequency, seconds=0.6) for frequency in frequencies], every=0.22)


def beeps(count: int, *, frequency: float, every: float = 0.32) -> Samples:
    """`count` short beeps, one every `every` seconds."""
    beep = tone(frequency, seconds=min(0.16, every * 0.6))
    return sequence([beep] * count, every=every)


def ring(frequency: float) -> Samples:
    """A telephone that rings twice, a warble about `frequency` hertz."""
    notes = [tone(frequency * (1, 1.12)[k % 2], seconds=0.06) for k in range(8)]
    burst = sequence(notes, every=0.055)
    return sequence([burst, burst], every=0.75)


def glide(low: float, high: float, *, seconds: float = 1.0) -> Samples:
    """A tone that moves evenly on the scale from `low` to `high` hertz (or falls)."""
    t = _time(seconds) / seconds
    phase = 2 * np.pi * np.cumsum(low * (high / low) ** t) / AUDIO_RATE
    return _faded(0.4 * np.sin(phase), seconds=0.04)


def applause(rng: Rng, *, seconds: float = 1.4) -> Samples:
    """Many hands: short bursts of noise at random times."""
    ground = np.zeros(round(seconds * AUDIO_RATE))
    decay = np.exp(-_time(0.03) * 160)
    for start in rng.uniform(0, seconds - 0.05, size=round(seconds * 90)):
        clap = rng.normal(0, 0.08, decay.size) * decay
        ground = over(ground, clap, at=float(start))
    return _faded(ground, seconds=0.15)


def laughter(rng: Rng) -> Samples:
    """Several voices that go ha-ha-ha."""
    voices = []
    for base in (150.0, 210.0, 265.0):
        pitch = base * rng.uniform(0.95, 1.05)
        notes = [_vowel(pitch * 0.97**k, seconds=0.13) for k in range(7)]
        voices.append(over(np.zeros(round(1.5 * AUDIO_RATE)), sequence(notes, every=0.19), at=0.0))
    crowd: Samples = 0.35 * np.sum(voices, axis=0)
    return crowd


def babble(rng: Rng, *, seconds: float) -> Samples:
    """Speech-like syllables without words."""
    count = max(1, int(seconds / 0.24))
    notes = [
        _vowel(rng.uniform(110, 190), seconds=0.18, formant=rng.uniform(400, 900))
        for _ in range(count)
    ]
    return 0.5 * sequence(notes, every=0.24)


def _vowel(pitch: float, *, seconds: float, formant: float = 800.0) -> Samples:
    """A voiced sound: harmonics of `pitch`, loudest about `formant` hertz."""
    t = _time(seconds)
    numbers = np.arange(1, int(3000 / pitch))
    weights = np.exp(-((numbers * pitch - formant) ** 2) / 2 / 350**2) + 0.15 / numbers
    waves = np.sin(2 * np.pi * pitch * np.outer(numbers, t)) * weights[:, None]
    voice: Samples = 0.25 * waves.sum(axis=0) * np.sin(np.pi * t / seconds)
    return _faded(voice, seconds=0.02)


def music(rng: Rng, *, seconds: float, held: bool = False) -> Samples:
    """A tune in a major key: plucked notes, or long held ones."""
    scale = np.array([0, 2, 4, 7, 9, 12])
    length = 0.6 if held else 0.2
    steps = rng.choice(scale, size=int(seconds / length))
    notes = []
    for step in steps:
        frequency = 262 * 2 ** (float(step) / 12)
        notes.append(
            tone(frequency, seconds=length, volume=0.22)
            if held
            else pluck(frequency, seconds=0.35, volume=0.35)
        )
    return sequence(notes, every=length)


# Clips of the sample: what happened on the screen since the last action.
#
# A clip shows the finger of the last action on the screen before it, the change to the current
# screen, then, where there is one, a visual cue that is gone again before the clip ends.

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
        _disc(draw, at, 13, (40, 120, 240, 200))
        return
    pulse = share * 2 % 1 if action.count == 2 else share
    reach = 34 if action.kind == "long_press" else 22
    _disc(draw, (x, y), 8 + reach * pulse, (40, 120, 240, round(150 * (1 - 0.6 * pulse))))
    _disc(draw, (x, y), 8, (255, 255, 255, 220))


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
