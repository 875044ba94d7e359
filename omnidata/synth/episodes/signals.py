"""What is heard: sounds that say a code, and sounds that do not matter."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw

from omnidata.actions import Screen
from omnidata.data.sample import media
from omnidata.data.sample.canvas import Rect
from omnidata.loaders.language_check import Language
from omnidata.media.encoding import AUDIO_RATE, Frame, Samples, encode_mp4
from omnidata.synth.episodes.pages import BADGES, Span, paint_disc, paint_mark, paint_text
from omnidata.synth.episodes.theme import CODES, Look

PITCHES = (262.0, 523.0, 1047.0, 2093.0)
"""Hertz, an octave apart: each in mel bands of its own."""

_SPOKEN: dict[Language, tuple[str, ...]] = {
    "en": ("one", "two", "three", "four"),
    "zh": ("一", "二", "三", "四"),
}
_MAX_SPEECH_S = 10

Noise = Literal["babble", "music", "claps"]
NOISES: tuple[Noise, ...] = ("babble", "music", "claps")
"""Sounds that say nothing."""


def ground(rng: np.random.Generator, *, seconds: float) -> Samples:
    """A quiet room."""
    return media.room(rng, seconds=seconds, level=float(rng.uniform(0.002, 0.01)))


def noise(kind: Noise, rng: np.random.Generator, *, seconds: float, volume: float) -> Samples:
    """A sound that does not matter, of the given length."""
    if kind == "babble":
        sound = media.babble(rng, seconds=seconds)
    elif kind == "music":
        sound = media.music(rng, seconds=max(0.6, seconds))
    else:
        sound = media.applause(rng, seconds=seconds)
    return media.over(np.zeros(round(seconds * AUDIO_RATE)), sound * volume, at=0.0)


def saying(kind: str, code: int, *, seconds: float, language: Language, vary: float) -> Samples:
    """A sound that says a code.

    Args:
        kind: an audio cue.
        code: 0 to 3.
        seconds: what there is time for; the sound takes about so long, speech less.
        language: of speech.
        vary: -1 to 1; a little higher or lower, so that no two episodes sound the same.
    """
    bend = 1 + 0.04 * vary
    if kind == "pitch":
        return media.tone(PITCHES[code] * bend, seconds=seconds)
    if kind == "count":
        every = seconds / 4
        return media.beeps(code + 1, frequency=900 * bend, every=every)
    if kind == "glide":
        low, high = 300 * bend, 1500 * bend
        if code < 2:
            return media.glide(*((low, high), (high, low))[code], seconds=seconds)
        ends = ((low, high), (high, low))[code - 2]
        halves = [media.glide(*pair, seconds=seconds / 2) for pair in (ends, ends[::-1])]
        return np.concatenate(halves)
    if kind == "timbre":
        return _timbre(code, seconds=seconds, bend=bend)
    return _bent(speech(language)[code], 1 + 0.12 * vary)


def _timbre(code: int, *, seconds: float, bend: float) -> Samples:
    base = 660 * bend
    if code == 0:
        return media.tone(base, seconds=seconds)
    if code == 1:
        notes = [
            media.tone(base * (1, 1.26)[k % 2], seconds=0.05) for k in range(int(seconds / 0.05))
        ]
        return np.concatenate(notes)
    if code == 2:
        return media.pluck(base, seconds=seconds, volume=0.6)
    fixed = np.random.default_rng(round(bend * 1e6))
    return fixed.normal(0, 0.15, round(seconds * AUDIO_RATE))


@lru_cache(maxsize=2)
def speech(language: Language) -> tuple[Samples, ...]:
    """The numbers one to four, spoken by espeak-ng, without the silence around them.

    Raises:
        PlatformError: the extra `voice` is not installed, or does not work here.
    """
    from omnidata.data.voice_engines import Espeak
    from omnidata.media import Budget, samples

    engine = Espeak()
    budget = Budget(max_seconds=_MAX_SPEECH_S)
    words = []
    with tempfile.TemporaryDirectory() as scratch:
        for text in _SPOKEN[language]:
            ref = engine.speak(text, language, Path(scratch))
            wave = samples(ref, rate=AUDIO_RATE, budget=budget).astype(np.float64)
            loud = np.flatnonzero(np.abs(wave) > 0.02 * np.abs(wave).max())
            word = wave[loud[0] : loud[-1] + 1]
            words.append(0.5 * word / np.abs(word).max())
    return tuple(words)


def _bent(wave: Samples, speed: float) -> Samples:
    """The sound played faster or slower, and so higher or lower."""
    places = np.arange(0, wave.size - 1, speed)
    bent: Samples = np.interp(places, np.arange(wave.size), wave)
    return bent


# What is seen for a moment: clips of a screen on which something happens and is gone again.

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
