"""What is heard: sounds that say a code, and sounds that do not matter."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from omnidata.data.encode import AUDIO_RATE, Samples
from omnidata.data.sample import cues
from omnidata.loaders.omnigui_apps import Language

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
    return cues.room(rng, seconds=seconds, level=float(rng.uniform(0.002, 0.01)))


def noise(kind: Noise, rng: np.random.Generator, *, seconds: float, volume: float) -> Samples:
    """A sound that does not matter, of the given length."""
    if kind == "babble":
        sound = cues.babble(rng, seconds=seconds)
    elif kind == "music":
        sound = cues.music(rng, seconds=max(0.6, seconds))
    else:
        sound = cues.applause(rng, seconds=seconds)
    return cues.over(np.zeros(round(seconds * AUDIO_RATE)), sound * volume, at=0.0)


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
        return cues.tone(PITCHES[code] * bend, seconds=seconds)
    if kind == "count":
        every = seconds / 4
        return cues.beeps(code + 1, frequency=900 * bend, every=every)
    if kind == "glide":
        low, high = 300 * bend, 1500 * bend
        if code < 2:
            return cues.glide(*((low, high), (high, low))[code], seconds=seconds)
        ends = ((low, high), (high, low))[code - 2]
        halves = [cues.glide(*pair, seconds=seconds / 2) for pair in (ends, ends[::-1])]
        return np.concatenate(halves)
    if kind == "timbre":
        return _timbre(code, seconds=seconds, bend=bend)
    return _bent(speech(language)[code], 1 + 0.12 * vary)


def _timbre(code: int, *, seconds: float, bend: float) -> Samples:
    base = 660 * bend
    if code == 0:
        return cues.tone(base, seconds=seconds)
    if code == 1:
        notes = [
            cues.tone(base * (1, 1.26)[k % 2], seconds=0.05) for k in range(int(seconds / 0.05))
        ]
        return np.concatenate(notes)
    if code == 2:
        return cues.pluck(base, seconds=seconds, volume=0.6)
    fixed = np.random.default_rng(round(bend * 1e6))
    return fixed.normal(0, 0.15, round(seconds * AUDIO_RATE))


@lru_cache(maxsize=2)
def speech(language: Language) -> tuple[Samples, ...]:
    """The numbers one to four, spoken by espeak-ng, without the silence around them.

    Raises:
        PlatformError: the extra `voice` is not installed, or does not work here.
    """
    from omnidata.data.voice import Espeak
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
