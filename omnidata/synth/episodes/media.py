"""The media of a group's steps: what the twins share is drawn once and encoded once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnidata.data.encode import Samples, encode_wav
from omnidata.data.sample.cues import over
from omnidata.loaders.omnigui_apps import Language
from omnidata.synth.episodes import sounds
from omnidata.synth.episodes.motions import Motion, encode_clip
from omnidata.synth.episodes.padding import pad_mp4, pad_png
from omnidata.synth.episodes.pages import Drawing, Page, encode_png
from omnidata.synth.episodes.plans import GroupPlan, StepPlan
from omnidata.synth.episodes.settings import Settings
from omnidata.synth.episodes.vocabulary import CODES

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
        pad_png([encode_png(maker.drawing.with_sign(step.cue, code)) for code in step.codes])
        if step.medium == "screen"
        else [encode_png(maker.screen)] * CODES
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
        sound = sounds.saying(
            cue,
            code,
            seconds=self._settings.seconds * _CUE_SHARE,
            language=self._language,
            vary=self._vary,
        )
        return encode_wav(over(self._ground, sound * self._volume, at=self._at))

    def _mixed_ground(self, rng: np.random.Generator) -> Samples:
        seconds = self._settings.seconds
        ground = sounds.ground(rng, seconds=seconds)
        kind = self._step.distraction.noise
        if kind is None:
            return ground
        volume = 0.15 if self._step.medium == "audio" else 0.6
        noise = sounds.noise(kind, rng, seconds=seconds, volume=volume)
        return over(ground, noise, at=0.0)
