"""The media of a group's steps; those that the twins share are drawn and encoded once."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from omnidata.loaders.instructions import Language
from omnidata.media import Frame, Samples, encode_mp4, encode_wav, png
from omnidata.synth import sounds
from omnidata.synth.drawing import BADGES, Canvas, Span
from omnidata.synth.episodes.pages import Drawing
from omnidata.synth.episodes.plans import Drift, GroupPlan, Motion
from omnidata.synth.episodes.screens import Look
from omnidata.synth.episodes.settings import CODES, Settings

_CUE_SHARE = 0.6  # of the sound, that a cue takes
_LATEST = 0.3  # of the sound, when a cue begins


class Files(NamedTuple):
    """The media of a step in one twin: a PNG, an MP4 and a WAV file."""

    screenshot: bytes
    video: bytes
    audio: bytes


def make_files(
    settings: Settings, group: GroupPlan, index: int, *, twins: Sequence[int] = range(CODES)
) -> Sequence[Files]:
    """Return the media of step `index` in some twins, by number; shared ones are one object."""
    step = group.steps[index]
    codes = [step.codes[twin] for twin in twins]
    maker = _Maker(settings, group, index)
    shots = (
        _pad_png([png(np.asarray(maker.drawing.with_sign(step.cue, code))) for code in codes])
        if step.medium == "screen"
        else [png(np.asarray(maker.screen))] * len(codes)
    )
    clips = (
        _pad_mp4([maker.clip(Motion(step.cue, code, step.seed & 0xFFFFFF)) for code in codes])
        if step.medium == "video"
        else [maker.clip(step.distraction.motion)] * len(codes)
    )
    tracks = (
        [maker.track(step.cue, code) for code in codes]
        if step.medium == "audio"
        else [maker.track(*(step.distraction.sound or (None, 0)))] * len(codes)
    )
    return [Files(*files) for files in zip(shots, clips, tracks, strict=True)]


def still_clip(screen: Image.Image, look: Look, settings: Settings, *, seconds: float) -> bytes:
    """Return an MP4 file in which a screen comes in and nothing happens."""
    small = screen.resize(settings.clip_size, Image.Resampling.BOX)
    frames = _frames(small, look, round(seconds * settings.fps))
    return encode_mp4(frames, fps=settings.fps)


# Files of one size, so that the size of a picture or a clip does not reveal its content.

_END = 12  # bytes of a PNG file's last chunk


def _pad_png(files: Sequence[bytes]) -> list[bytes]:
    """Use a private chunk, which decoders skip (PNG, 5.4)."""
    padded = []
    for file, count in zip(files, _missing(files), strict=True):
        chunk = b"paDd" + bytes(count)
        whole = struct.pack(">I", count) + chunk + struct.pack(">I", zlib.crc32(chunk))
        padded.append(file[:-_END] + whole + file[-_END:])
    return padded


def _pad_mp4(files: Sequence[bytes]) -> list[bytes]:
    """Use a box of free space (ISO/IEC 14496-12, 8.1.2)."""
    return [
        file + struct.pack(">I4s", 8 + count, b"free") + bytes(count)
        for file, count in zip(files, _missing(files), strict=True)
    ]


def _missing(files: Sequence[bytes]) -> list[int]:
    longest = max(map(len, files))
    return [longest - len(file) for file in files]


class _Maker:
    """Draws and mixes once what the twins of a step share."""

    def __init__(self, settings: Settings, group: GroupPlan, index: int) -> None:
        self._settings = settings
        self._group = group
        self._step = step = group.steps[index]
        self.drawing = Drawing(
            group.look,
            step.layout,
            settings.size,
            question=step.question,
            labels=step.labels,
            icons=step.icons,
            passed=(index + 1) / len(group.steps),
            seed=step.seed,
        )
        sign = step.distraction.sign
        self.screen = self.drawing.with_sign(*sign) if sign else self.drawing.plain
        chance = random.Random(step.seed)
        self._vary = chance.uniform(-1, 1)
        self._volume = chance.uniform(0.6, 1.2)
        self._at = chance.uniform(0.05, _LATEST) * settings.seconds
        self._language: Language = "zh" if chance.random() < 0.5 else "en"
        self._ground = self._background()

    def clip(self, motion: Motion | None) -> bytes:
        """Make an MP4 file whose last frame is the screen alone.

        A sign that does not matter is gone during a motion, which could not be seen on a sign of
        the same colour. A sign that decides is not there yet.
        """
        settings, look, drift = self._settings, self._group.look, self._step.distraction.drift
        small = self.screen.resize(settings.clip_size, Image.Resampling.BOX)
        behind = small
        if motion is not None:
            behind = self.drawing.blank.resize(settings.clip_size, Image.Resampling.BOX)
        ratio = (small.width / self.screen.width, small.height / self.screen.height)
        stage, panel = _scale(self.drawing.signs, ratio), _scale(self._step.layout.page, ratio)

        def paint(share: float) -> Canvas:
            canvas = Canvas(behind.copy())
            if drift is not None:
                _paint_drift(canvas, drift, share, panel, look)
            if motion is not None:
                _paint_motion(canvas, motion, share, stage, look)
            return canvas

        frames = _frames(small, look, settings.frames, paint if motion or drift else None)
        return encode_mp4(frames, fps=settings.fps)

    def track(self, cue: str | None, code: int) -> bytes:
        if cue is None:
            return encode_wav(self._ground)
        sound = sounds.signal(
            cue,
            code,
            seconds=self._settings.seconds * _CUE_SHARE,
            language=self._language,
            vary=self._vary,
        )
        return encode_wav(sounds.over(self._ground, sound * self._volume, at=self._at))

    def _background(self) -> Samples:
        rng, seconds = np.random.default_rng(self._step.seed), self._settings.seconds
        ground = sounds.room(rng, seconds=seconds, level=float(rng.uniform(0.002, 0.01)))
        kind = self._step.distraction.noise
        if kind is None:
            return ground
        volume = 0.15 if self._step.medium == "audio" else 0.6
        noise = sounds.noise(kind, rng, seconds=seconds)
        return sounds.over(ground, noise * volume, at=0.0)


# What is seen for a moment: clips of a screen on which something happens and is gone again.

_ARRIVED = 0.12  # of the clip: before that the screen comes in, as after an action
_FROM, _TO = 0.15, 0.85  # of the clip: something happens; then it shows the screen alone
_FLASHES = 3
_RUNS = 6  # numbers that a counter shows
_LIT = (255, 214, 64)
_DARK = (40, 42, 50)


def _scale(rect: Span, ratio: tuple[float, float]) -> Span:
    left, top, right, bottom = rect
    return (left * ratio[0], top * ratio[1], right * ratio[0], bottom * ratio[1])


def _frames(
    screen: Image.Image, look: Look, count: int, paint: Callable[[float], Canvas] | None = None
) -> Iterator[Frame]:
    """Show a screen that comes in; `paint` draws one moment at its progress in [0, 1)."""
    still = np.asarray(screen)
    empty = Image.new("RGB", screen.size, look.theme.ground)
    for number in range(count):
        passed = number / (count - 1)
        share = (passed - _FROM) / (_TO - _FROM)
        if passed < _ARRIVED:
            yield np.asarray(Image.blend(empty, screen, passed / _ARRIVED))
        elif paint and 0 <= share < 1:
            yield np.asarray(paint(share).finish())
        else:
            yield still


def _paint_drift(canvas: Canvas, drift: Drift, share: float, panel: Span, look: Look) -> None:
    left, top, right, bottom = panel
    size = min(right - left, bottom - top) * 0.18
    x = left + (right - left) * (share * drift.turns % 1)
    y = top + (bottom - top) * drift.height
    canvas.icon(drift.icon, (x, y), size=size, fill=look.theme.faint)


def _paint_motion(canvas: Canvas, motion: Motion, share: float, stage: Span, look: Look) -> None:
    """Draw one moment of a motion, of whose time a share in [0, 1) has passed."""
    left, top, right, bottom = stage
    x, y = (left + right) / 2, (top + bottom) / 2
    size = min(right - left, bottom - top)
    code = motion.code
    if motion.kind == "lamp":
        wide = (right - left) / CODES
        for number in range(CODES):
            fill = _LIT if number == code else _DARK
            canvas.disc((left + wide * (number + 0.5), y), min(wide, bottom - top) * 0.38, fill)
    elif motion.kind == "colour":
        if int(share * 2 * _FLASHES) % 2 == 0:
            canvas.disc((x, y), size * 0.4, BADGES[code])
    elif motion.kind == "move":
        radius = size * 0.14
        along = 2 * share - 1
        dx, dy = ((0, -1), (0, 1), (-1, 0), (1, 0))[code]
        reach = ((right - left) / 2 - radius, (bottom - top) / 2 - radius)
        at = (x + dx * along * reach[0], y + dy * along * reach[1])
        canvas.disc(at, radius, look.theme.accent)
    elif motion.kind == "blink":
        slot = share * CODES
        if slot < code + 1 and slot % 1 < 0.5:
            canvas.disc((x, y), size * 0.4, look.theme.accent)
    else:
        number = min(int(share * _RUNS), _RUNS - 1)
        digits = [random.Random(motion.seed + k).randrange(10) for k in range(_RUNS - 2)]
        shown = digits[number] if number < len(digits) else code + 1
        pixels = max(5, round(size * 0.7))
        canvas.text(str(shown), (x, y), pixels=pixels, fill=look.theme.ink, face=look.face)
