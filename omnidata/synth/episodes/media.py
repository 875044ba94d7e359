"""The media of a group's steps: what the twins share is drawn once and encoded once."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnidata.data.sample.media import over
from omnidata.loaders.language_check import Language
from omnidata.media.encoding import Samples, encode_wav, png
from omnidata.synth.episodes import signals
from omnidata.synth.episodes.pages import Drawing, Page
from omnidata.synth.episodes.plans import GroupPlan, StepPlan
from omnidata.synth.episodes.settings import Settings
from omnidata.synth.episodes.signals import Motion, encode_clip
from omnidata.synth.episodes.theme import CODES

# Files of one size: how many bytes a picture or a clip takes must not tell what it shows.

_END = 12  # bytes of a PNG file's last chunk


def pad_png(files: Sequence[bytes]) -> list[bytes]:
    """PNG files of equal length, by a private chunk that decoders pass over (PNG, 5.4)."""
    return [
        file[:-_END] + _chunk(b"paDd", bytes(count)) + file[-_END:]
        for file, count in zip(files, _missing(files), strict=True)
    ]


def pad_mp4(files: Sequence[bytes]) -> list[bytes]:
    """MP4 files of equal length, by a box of free space (ISO/IEC 14496-12, 8.1.2)."""
    return [
        file + struct.pack(">I4s", 8 + count, b"free") + bytes(count)
        for file, count in zip(files, _missing(files), strict=True)
    ]


def _missing(files: Sequence[bytes]) -> list[int]:
    longest = max(map(len, files))
    return [longest - len(file) for file in files]


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check


_CUE_SHARE = 0.6  # of the sound, that a cue takes
_LATEST = 0.3  # of the sound, when a cue begins


@dataclass(frozen=True, slots=True)
class Files:
    """The media of a step in one twin.

    Attributes:
        screenshot: a PNG file.
        video: an MP4 file.
        audio: a WAV file.
    """

    screenshot: bytes
    video: bytes
    audio: bytes


def make_files(settings: Settings, group: GroupPlan, index: int) -> Sequence[Files]:
    """The media of a step in all twins; what they share is the same object.

    Args:
        settings: sizes.
        group: the plan.
        index: of the step, from 0 on.
    """
    step = group.steps[index]
    maker = _Maker(settings, group, index)
    shots = (
        pad_png([png(np.asarray(maker.drawing.with_sign(step.cue, code))) for code in step.codes])
        if step.medium == "screen"
        else [png(np.asarray(maker.screen))] * CODES
    )
    clips = (
        pad_mp4([maker.clip(Motion(step.cue, code, step.seed & 0xFFFFFF)) for code in step.codes])
        if step.medium == "video"
        else [maker.clip(step.distraction.motion)] * CODES
    )
    tracks = (
        [maker.track(step.cue, code) for code in step.codes]
        if step.medium == "audio"
        else [maker.track(*(step.distraction.sound or (None, 0)))] * CODES
    )
    return [Files(*files) for files in zip(shots, clips, tracks, strict=True)]


class _Maker:
    """Draws and mixes what a step's twins share, once."""

    def __init__(self, settings: Settings, group: GroupPlan, index: int) -> None:
        self._settings = settings
        self._group = group
        self._step: StepPlan = group.steps[index]
        name = group.look.name
        count = len(group.steps)
        page = Page(
            group.look,
            group.places,
            self._step.question,
            self._step.labels,
            self._step.icons,
            name if count == 1 else f"{name} {index + 1}/{count}",
            (index + 1) / count,
        )
        self.drawing = Drawing(page, settings.size)
        sign = self._step.distraction.sign
        self.screen = self.drawing.with_sign(*sign) if sign else self.drawing.plain
        chance = random.Random(self._step.seed)
        self._vary = chance.uniform(-1, 1)
        self._volume = chance.uniform(0.6, 1.2)
        self._at = chance.uniform(0.05, _LATEST) * settings.seconds
        self._language: Language = "zh" if chance.random() < 0.5 else "en"
        self._ground = self._mixed_ground(np.random.default_rng(self._step.seed))

    def clip(self, motion: Motion | None) -> bytes:
        """The clip; where the screenshot decides, of the screen before the sign appears."""
        settings, places = self._settings, self._group.places
        return encode_clip(
            self.screen,
            plain=self.drawing.plain,
            size=settings.clip_size,
            fps=settings.fps,
            count=settings.frames,
            stage=places.stage,
            panel=places.panel,
            look=self._group.look,
            motion=motion,
            drift=self._step.distraction.drift,
        )

    def track(self, cue: str | None, code: int) -> bytes:
        """The sound, with a cue or without."""
        if cue is None:
            return encode_wav(self._ground)
        sound = signals.saying(
            cue,
            code,
            seconds=self._settings.seconds * _CUE_SHARE,
            language=self._language,
            vary=self._vary,
        )
        return encode_wav(over(self._ground, sound * self._volume, at=self._at))

    def _mixed_ground(self, rng: np.random.Generator) -> Samples:
        seconds = self._settings.seconds
        ground = signals.ground(rng, seconds=seconds)
        kind = self._step.distraction.noise
        if kind is None:
            return ground
        volume = 0.15 if self._step.medium == "audio" else 0.6
        noise = signals.noise(kind, rng, seconds=seconds, volume=volume)
        return over(ground, noise, at=0.0)
