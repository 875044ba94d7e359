"""An OmniGUI dataset with known numbers: 44 episodes and 149 steps in five apps.

Its rows are data, `sample.json.xz`. Its media are drawn on the spot, one pattern for each number
that the rows name, because no test reads a word on a screen.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.media import AUDIO_RATE, Frame, encode_mp4, encode_wav, png
from tests.full import FULL

CLIP_FPS = 15 if FULL else 5
"""Frames per second of the clips of the sample that tests share; Reelio's have twice as many."""

_ROWS = Path(__file__).with_name("sample.json.xz")
_BLOCK = 80  # pixels; 720x1600 in squares


def write_sample(out: Path, *, fps: int = CLIP_FPS, media_of: Collection[str] = ()) -> Path:
    """Write the dataset into a folder and return it; twins share the media that are equal.

    Args:
        out: the folder.
        fps: frames per second of most clips.
        media_of: episodes whose media are written; those of all where there is none.
    """
    rows = json.loads(lzma.decompress(_ROWS.read_bytes()))

    def is_wanted(path: Path) -> bool:
        return not media_of or path.parent.parent.name != "media" or path.parent.name in media_of

    for name, text in rows["texts"].items():
        path = out / name
        if not is_wanted(path):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    @cache
    def file(number: int, name: str) -> bytes:
        if name.endswith(".png"):
            return png(_screen(number))
        seconds = rows["seconds"][str(rows["media"][f"{name[:-4]}.wav"])]
        if name.endswith(".wav"):
            return _sound(number, seconds)
        rate = fps * (2 if name.startswith("Reelio") else 1)
        screen = _screen(rows["media"][f"{name[:-4]}.png"])
        return encode_mp4(_frames(number, screen, round(seconds * rate)), fps=rate)

    wanted = {name: number for name, number in rows["media"].items() if is_wanted(out / name)}
    first: dict[int, str] = {}
    for name, number in rows["media"].items():
        first.setdefault(number, name)
    drawn = {number: first[number] for number in wanted.values()}
    with ThreadPoolExecutor(2) as threads:
        files = dict(zip(drawn, threads.map(file, drawn, drawn.values()), strict=True))
    for name, number in wanted.items():
        (out / name).write_bytes(files[number])
    return out


def _screen(number: int) -> Frame:
    blocks = np.random.default_rng(number).integers(0, 256, (20, 9, 3), dtype=np.uint8)
    pixels: Any = blocks.repeat(_BLOCK, axis=0).repeat(_BLOCK, axis=1)
    pixels[::40] = 255 - pixels[::40]  # every target has an edge in it
    return pixels  # type: ignore[no-any-return]  # NumPy's


def _frames(number: int, screen: Frame, count: int) -> Iterator[Frame]:
    still = np.ascontiguousarray(screen[::2, ::2])
    rng = np.random.default_rng(number)
    for index in range(count):
        frame = still.copy()
        frame[:40] = 255 - 255 * index // count  # no two frames are alike
        if index == count - 1:
            frame = still.copy()
        frame[-8:] = number % 256  # nor two clips of one screen
        if count // 3 < index < count - 2:
            top, left = rng.integers(0, 600), rng.integers(0, 200)
            frame[top : top + 200, left : left + 160] = rng.integers(0, 256, 3)
        yield frame


def _sound(number: int, seconds: float) -> bytes:
    rng = np.random.default_rng(number)
    times = np.arange(round(seconds * AUDIO_RATE)) / AUDIO_RATE
    tone = 0.3 * np.sin(2 * np.pi * (300 + 17 * number) * times)
    return encode_wav(rng.normal(0, 0.006, times.size) + tone * (times > 0.6))
