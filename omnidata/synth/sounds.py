"""Sounds of the invented apps: signals that decide, and background noise."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from omnidata.loaders.instructions import Language
from omnidata.media import AUDIO_RATE, Samples

Rng = np.random.Generator


def _time(seconds: float) -> Samples:
    return np.arange(round(seconds * AUDIO_RATE)) / AUDIO_RATE


def _fade(signal: Samples, *, seconds: float = 0.01) -> Samples:
    ramp = np.linspace(0, 1, round(seconds * AUDIO_RATE))
    shaped = signal.copy()
    shaped[: ramp.size] *= ramp
    shaped[-ramp.size :] *= ramp[::-1]
    return shaped


def room(rng: Rng, *, seconds: float, level: float = 0.006) -> Samples:
    """Return quiet noise with a low hum; `level` is the standard deviation of the noise."""
    hum = 0.5 * level * np.sin(2 * np.pi * 100 * _time(seconds))
    return rng.normal(0, level, round(seconds * AUDIO_RATE)) + hum


def over(ground: Samples, cue: Samples, *, at: float) -> Samples:
    """Return `ground` with `cue` on top from `at` seconds on, cut off at the end of `ground`."""
    mixed = ground.copy()
    start = round(at * AUDIO_RATE)
    part = cue[: max(0, mixed.size - start)]
    mixed[start : start + part.size] += part
    return mixed


def tone(frequency: float, *, seconds: float, volume: float = 0.35) -> Samples:
    """Return a steady note with two overtones; `frequency` in hertz."""
    t = _time(seconds)
    waves = (np.sin(2 * np.pi * frequency * k * t) / k**2 for k in (1, 2, 3))
    return _fade(volume * np.sum(list(waves), axis=0))


def _pluck(frequency: float, *, seconds: float = 0.5, volume: float = 0.45) -> Samples:
    return tone(frequency, seconds=seconds, volume=volume) * np.exp(-7 * _time(seconds))


def sequence(notes: Sequence[Samples], *, every: float) -> Samples:
    """Return signals that start every `every` seconds; long ones ring on."""
    total = every * (len(notes) - 1) + max(note.size for note in notes) / AUDIO_RATE
    ground = np.zeros(round(total * AUDIO_RATE))
    for index, note in enumerate(notes):
        ground = over(ground, note, at=index * every)
    return ground


def chime(frequencies: Sequence[float]) -> Samples:
    """Return bell notes in quick succession."""
    return sequence([_pluck(frequency, seconds=0.6) for frequency in frequencies], every=0.22)


def _glide(low: float, high: float, *, seconds: float = 1.0) -> Samples:
    t = _time(seconds) / seconds
    phase = 2 * np.pi * np.cumsum(low * (high / low) ** t) / AUDIO_RATE
    return _fade(0.4 * np.sin(phase), seconds=0.04)


def _applause(rng: Rng, *, seconds: float = 1.4) -> Samples:
    ground = np.zeros(round(seconds * AUDIO_RATE))
    decay = np.exp(-_time(0.03) * 160)
    for start in rng.uniform(0, seconds - 0.05, size=round(seconds * 90)):
        clap = rng.normal(0, 0.08, decay.size) * decay
        ground = over(ground, clap, at=float(start))
    return _fade(ground, seconds=0.15)


def _babble(rng: Rng, *, seconds: float) -> Samples:
    count = max(1, int(seconds / 0.24))
    notes = [
        _vowel(rng.uniform(110, 190), seconds=0.18, formant=rng.uniform(400, 900))
        for _ in range(count)
    ]
    return 0.5 * sequence(notes, every=0.24)


def _vowel(pitch: float, *, seconds: float, formant: float = 800.0) -> Samples:
    t = _time(seconds)
    numbers = np.arange(1, int(3000 / pitch))
    weights = np.exp(-((numbers * pitch - formant) ** 2) / 2 / 350**2) + 0.15 / numbers
    waves = np.sin(2 * np.pi * pitch * np.outer(numbers, t)) * weights[:, None]
    voice: Samples = 0.25 * waves.sum(axis=0) * np.sin(np.pi * t / seconds)
    return _fade(voice, seconds=0.02)


def _music(rng: Rng, *, seconds: float) -> Samples:
    steps = rng.choice(np.array([0, 2, 4, 7, 9, 12]), size=int(seconds / 0.2))
    frequencies = [262 * 2 ** (float(step) / 12) for step in steps]
    notes = [_pluck(frequency, seconds=0.35, volume=0.35) for frequency in frequencies]
    return sequence(notes, every=0.2)


# Sounds that say one of four codes, and sounds without a meaning.

PITCHES = (262.0, 523.0, 1047.0, 2093.0)
"""Hertz, an octave apart: each in mel bands of its own."""

_SPOKEN: dict[Language, tuple[str, ...]] = {
    "en": ("one", "two", "three", "four"),
    "zh": ("一", "二", "三", "四"),
}
_MAX_SPEECH_S = 10

Noise = Literal["babble", "music", "claps"]
NOISES: tuple[Noise, ...] = ("babble", "music", "claps")
"""Sounds without a meaning."""


def noise(kind: Noise, rng: Rng, *, seconds: float) -> Samples:
    """Return a sound without a meaning; it may be longer than `seconds`."""
    if kind == "babble":
        return _babble(rng, seconds=seconds)
    if kind == "music":
        return _music(rng, seconds=max(0.6, seconds))
    return _applause(rng, seconds=seconds)


def signal(kind: str, code: int, *, seconds: float, language: Language, vary: float) -> Samples:
    """Return a sound that says a code.

    Args:
        kind: an audio cue.
        code: 0 to 3.
        seconds: approximate length; speech is shorter.
        language: of speech.
        vary: pitch in [-1, 1], so that no two episodes sound the same.
    """
    bend = 1 + 0.04 * vary
    if kind == "pitch":
        return tone(PITCHES[code] * bend, seconds=seconds)
    if kind == "count":
        every = seconds / 4
        beep = tone(900 * bend, seconds=min(0.16, every * 0.6))
        return sequence([beep] * (code + 1), every=every)
    if kind == "glide":
        low, high = 300 * bend, 1500 * bend
        if code < 2:
            return _glide(*((low, high), (high, low))[code], seconds=seconds)
        ends = ((low, high), (high, low))[code - 2]
        halves = [_glide(*pair, seconds=seconds / 2) for pair in (ends, ends[::-1])]
        return np.concatenate(halves)
    if kind == "timbre":
        base = 660 * bend
        if code == 0:
            return tone(base, seconds=seconds)
        if code == 1:
            notes = [
                tone(base * (1, 1.26)[k % 2], seconds=0.05) for k in range(int(seconds / 0.05))
            ]
            return np.concatenate(notes)
        if code == 2:
            return _pluck(base, seconds=seconds, volume=0.6)
        fixed = np.random.default_rng(round(bend * 1e6))
        return fixed.normal(0, 0.15, round(seconds * AUDIO_RATE))
    wave = speech(language)[code]
    places = np.arange(0, wave.size - 1, 1 + 0.12 * vary)
    bent: Samples = np.interp(places, np.arange(wave.size), wave)
    return bent


@lru_cache(maxsize=2)
def speech(language: Language) -> tuple[Samples, ...]:
    """Return the numbers one to four, spoken by espeak-ng, without silence around them.

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
