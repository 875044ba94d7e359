"""Sounds of the made-up apps: signals that decide, and the noise of a room around them."""

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


# Sounds that say one of four things, and sounds that do not matter.

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


def noise(kind: Noise, rng: Rng, *, seconds: float) -> Samples:
    """A sound that does not matter; it may be longer than asked for."""
    if kind == "babble":
        return babble(rng, seconds=seconds)
    if kind == "music":
        return music(rng, seconds=max(0.6, seconds))
    return applause(rng, seconds=seconds)


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
        return tone(PITCHES[code] * bend, seconds=seconds)
    if kind == "count":
        every = seconds / 4
        return beeps(code + 1, frequency=900 * bend, every=every)
    if kind == "glide":
        low, high = 300 * bend, 1500 * bend
        if code < 2:
            return glide(*((low, high), (high, low))[code], seconds=seconds)
        ends = ((low, high), (high, low))[code - 2]
        halves = [glide(*pair, seconds=seconds / 2) for pair in (ends, ends[::-1])]
        return np.concatenate(halves)
    if kind == "timbre":
        return _timbre(code, seconds=seconds, bend=bend)
    return _bent(speech(language)[code], 1 + 0.12 * vary)


def _timbre(code: int, *, seconds: float, bend: float) -> Samples:
    base = 660 * bend
    if code == 0:
        return tone(base, seconds=seconds)
    if code == 1:
        notes = [tone(base * (1, 1.26)[k % 2], seconds=0.05) for k in range(int(seconds / 0.05))]
        return np.concatenate(notes)
    if code == 2:
        return pluck(base, seconds=seconds, volume=0.6)
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
