"""Pictures, clips and sounds with known contents, the same bytes on every run."""

from __future__ import annotations

import io
import wave
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
from PIL import Image, ImageDraw

from omnidata.actions import Pair, Screen
from omnidata.media import AUDIO_RATE, Samples
from omnidata.media.encoding import encode_mp4, encode_wav
from omnidata.synth import sounds
from omnidata.synth.drawing import font
from omnidata.types import MediaRef, Modality

RED: Final = (220, 20, 30)
COLOURS: Final = {
    "red": (230, 20, 20),
    "blue": (20, 20, 230),
    "yellow": (240, 230, 20),
    "cyan": (20, 230, 240),
}
SWAPPED: Final = {"red": "blue", "blue": "red", "yellow": "cyan", "cyan": "yellow"}
"""Each colour with red and blue swapped."""
LOW, HIGH = 330.0, 1760.0
"""Hertz of beeps."""
_TURNED: Final = 6
"""The EXIF orientation of a picture that is stored a quarter turn to the left."""
_FPS: Final = 4
_CLIP: Final = (448, 448)


class Exhibits:
    """Writes media into a folder, and returns their references.

    A process draws each content once, for all folders.

    Args:
        folder: of the media; it exists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _write(self, name: str, kind: Modality, content: bytes) -> MediaRef:
        (self.folder / name).write_bytes(content)
        return MediaRef(kind, self.folder, name)

    def square(self, name: str, size: Screen, at: Pair, form: str = "") -> MediaRef:
        """Draw a red square on white.

        Args:
            name: of the file, without its suffix.
            size: width and height in pixels.
            at: the square's centre, in shares of the sides.
            form: "turned" by EXIF, "palette" or "alpha"; empty for plain RGB.
        """
        return self._write(f"{name}.png", "image", _draw_square(size, at, form))

    def text(self, name: str, text: str) -> MediaRef:
        """Write a text in the middle of a white square of 448 pixels."""
        return self._write(f"{name}.png", "image", _draw_text(text))

    def row(self, name: str, size: Screen, texts: str) -> MediaRef:
        """Write letters along the longer side of a white picture, from edge to edge.

        Args:
            name: of the file, without its suffix.
            size: width and height in pixels.
            texts: the letters.
        """
        return self._write(f"{name}.png", "image", _draw_row(size, texts))

    def colour(self, name: str, colour: str, form: Literal["PNG", "JPEG"] = "PNG") -> MediaRef:
        """Paint a whole picture in one of `COLOURS`."""
        buffer = io.BytesIO()
        Image.new("RGB", _CLIP, COLOURS[colour]).save(buffer, form, quality=95)
        suffix = "png" if form == "PNG" else "jpg"
        return self._write(f"{name}.{suffix}", "image", buffer.getvalue())

    def clip(self, name: str, shown: Sequence[str], sound: Samples | None = None) -> MediaRef:
        """Film texts, each for a second.

        Args:
            name: of the file, without its suffix.
            shown: the texts.
            sound: of the clip, at `AUDIO_RATE`; None for a clip without.
        """
        track = b"" if sound is None else sound.astype(np.float32).tobytes()
        return self._write(f"{name}.mp4", "video", _film(tuple(shown), track))

    def sound(self, name: str, signal: Samples) -> MediaRef:
        """Record a signal at `AUDIO_RATE`."""
        return self._write(f"{name}.wav", "audio", encode_wav(signal))

    def stereo(self, name: str, signal: Samples, side: str) -> MediaRef:
        """Record a signal on the "left" or the "right" alone."""
        pair = np.zeros((signal.size, 2))
        pair[:, int(side == "right")] = signal
        buffer = io.BytesIO()
        with wave.open(buffer, "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(AUDIO_RATE)
            file.writeframes((pair * 32767).astype("<i2").tobytes())
        return self._write(f"{name}.wav", "audio", buffer.getvalue())


@cache
def _draw_square(size: Screen, at: Pair, form: str) -> bytes:
    picture = Image.new("RGB", size, "white")
    reach = max(6, min(size) // 24)
    x, y = at[0] * size[0], at[1] * size[1]
    ImageDraw.Draw(picture).rectangle((x - reach, y - reach, x + reach, y + reach), RED)
    exif = Image.Exif()
    if form == "turned":
        picture = picture.transpose(Image.Transpose.ROTATE_90)
        exif[0x0112] = _TURNED
    elif form == "palette":
        picture = picture.quantize(16)
    elif form == "alpha":
        picture = picture.convert("RGBA")
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", exif=exif, compress_level=1)
    return buffer.getvalue()


@cache
def _draw_row(size: Screen, texts: str) -> bytes:
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    for number, letter in enumerate(texts):
        along = 0.06 + 0.88 * number / (len(texts) - 1)
        x, y = (along, 0.5) if size[0] > size[1] else (0.5, along)
        draw.text((x * size[0], y * size[1]), letter, "black", font(144), anchor="mm")
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


@cache
def _draw_text(text: str) -> bytes:
    buffer = io.BytesIO()
    _write_text(text).save(buffer, "PNG")
    return buffer.getvalue()


@cache
def _film(shown: Sequence[str], track: bytes) -> bytes:
    """Film texts, with a sound of float32 at `AUDIO_RATE`."""
    pictures = [np.asarray(_write_text(text)) for text in shown]
    frames = [picture for picture in pictures for _ in range(_FPS)]
    sound = np.frombuffer(track, np.float32) if track else None
    return encode_mp4(frames, fps=_FPS, sound=sound)


def _write_text(text: str) -> Image.Image:
    picture = Image.new("RGB", _CLIP, "white")
    middle = (_CLIP[0] // 2, _CLIP[1] // 2)
    ImageDraw.Draw(picture).text(middle, text, "black", font(144), anchor="mm")
    return picture


def beeps(times: Sequence[float], pitches: Sequence[float], *, seconds: float) -> Samples:
    """Return beeps in silence.

    Args:
        times: when they begin, in seconds.
        pitches: of each, in hertz.
        seconds: of the whole.
    """
    cues = [sounds.tone(pitch, seconds=0.4) for pitch in pitches]
    return place_sounds(times, cues, seconds=seconds)


def place_sounds(times: Sequence[float], cues: Sequence[Samples], *, seconds: float) -> Samples:
    """Return sounds in silence.

    Args:
        times: when they begin, in seconds.
        cues: the sounds, at `AUDIO_RATE`.
        seconds: of the whole.
    """
    ground: Samples = np.zeros(round(seconds * AUDIO_RATE))
    for at, cue in zip(times, cues, strict=True):
        ground = sounds.over(ground, cue, at=at)
    return ground


def spoken_digits() -> Mapping[str, Samples]:
    """Return the English words for "1" to "4" by their digits.

    Raises:
        PlatformError: the extra `voice` is not installed.
    """
    return {str(number): word for number, word in enumerate(sounds.speech("en"), 1)}
