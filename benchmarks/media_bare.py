"""A step's media by Pillow and PyAV and nothing else: no limits, no checks, no messages."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from av.audio.resampler import AudioResampler
from PIL import Image


def image(folder: Path) -> object:
    """The screenshot."""
    with Image.open(folder / "1.png") as picture:
        return np.asarray(picture.convert("RGB"))


def frames(path: Path, count: int) -> object:
    """Evenly spread frames: decode in order, convert those."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        wanted = set(np.linspace(0, stream.frames - 1, count).astype(int).tolist())
        return np.stack(
            [
                frame.to_ndarray(format="rgb24")
                for number, frame in enumerate(container.decode(stream))
                if number in wanted
            ]
        )


def audio(folder: Path) -> object:
    """The waveform."""
    resampler = AudioResampler(format="flt", layout="mono", rate=16_000)
    parts: list[npt.NDArray[np.float32]] = []
    with av.open(str(folder / "1.wav")) as container:
        for frame in container.decode(audio=0):
            parts += [part.to_ndarray()[0] for part in resampler.resample(frame)]
    parts += [part.to_ndarray()[0] for part in resampler.resample(None)]
    return np.concatenate(parts)


def step(folder: Path) -> object:
    """All three."""
    return image(folder), frames(folder / "1.mp4", 4), audio(folder)
