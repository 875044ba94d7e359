"""What a step's media cost to decode, against a bare Pillow and PyAV loop that does the same.

One step is a 720x1600 PNG, four frames of a 2 s H.264 clip of 30 fps at 360x800, and its WAV,
all made on the spot. The two take turns, and CPU time is compared: the machine may be shared.

    python benchmarks/media.py [--recording RECORDING.mp4]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from av.audio.resampler import AudioResampler
from PIL import Image

from omnidata.data.encode import encode_mp4, encode_wav
from omnidata.media import frames, image, samples
from omnidata.types import MediaRef

STEPS = 24


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recording", type=Path, help="a real screen recording, for frames alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_step(folder)
        stages = {
            "screenshot": (lambda: bare_image(folder), lambda: our_image(folder)),
            "4 frames": (lambda: bare_frames(folder / "1.mp4", 4), lambda: our_frames(folder)),
            "audio": (lambda: bare_audio(folder), lambda: our_audio(folder)),
            "full step": (lambda: bare_step(folder), lambda: our_step(folder)),
        }
        for label, (bare, ours) in stages.items():
            compare(label, bare, ours, STEPS)
        workers(folder)
    if options.recording:
        ref = MediaRef("video", options.recording.parent, options.recording.name)
        compare(
            "4 frames of the recording",
            lambda: bare_frames(options.recording, 4),
            lambda: frames(ref, num_frames=4),
            1,
        )


def make_step(folder: Path) -> None:
    """One step's files, with enough noise to cost what real ones cost."""
    rng = np.random.default_rng(0)
    screen = np.kron(rng.integers(0, 255, (100, 45, 3)), np.ones((16, 16, 1))).astype(np.uint8)
    screen[400:800] = rng.integers(0, 255, (400, 720, 3))
    Image.fromarray(screen).save(folder / "1.png")
    clip = [np.roll(screen[::2, ::2], 4 * number, axis=0) for number in range(60)]
    (folder / "1.mp4").write_bytes(encode_mp4(clip, fps=30))
    (folder / "1.wav").write_bytes(encode_wav(rng.normal(0, 0.1, 32_000)))


def our_image(folder: Path) -> object:
    """The screenshot, through omnidata."""
    return image(MediaRef("image", folder, "1.png"))


def our_frames(folder: Path) -> object:
    """Four frames, through omnidata."""
    return frames(MediaRef("video", folder, "1.mp4"), num_frames=4)


def our_audio(folder: Path) -> object:
    """The waveform, through omnidata."""
    return samples(MediaRef("audio", folder, "1.wav"))


def our_step(folder: Path) -> object:
    """All three."""
    return our_image(folder), our_frames(folder), our_audio(folder)


def bare_image(folder: Path) -> object:
    """The screenshot, by Pillow."""
    with Image.open(folder / "1.png") as picture:
        return np.asarray(picture.convert("RGB"))


def bare_frames(path: Path, count: int) -> object:
    """Evenly spread frames by PyAV: decode in order, convert those."""
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


def bare_audio(folder: Path) -> object:
    """The waveform, by PyAV."""
    resampler = AudioResampler(format="flt", layout="mono", rate=16_000)
    parts: list[npt.NDArray[np.float32]] = []
    with av.open(str(folder / "1.wav")) as container:
        for frame in container.decode(audio=0):
            parts += [part.to_ndarray()[0] for part in resampler.resample(frame)]
    parts += [part.to_ndarray()[0] for part in resampler.resample(None)]
    return np.concatenate(parts)


def bare_step(folder: Path) -> object:
    """All three."""
    return bare_image(folder), bare_frames(folder / "1.mp4", 4), bare_audio(folder)


def compare(label: str, bare: Callable[[], object], ours: Callable[[], object], times: int) -> None:
    """Take turns, print the CPU of each and the ratio of the best rounds."""
    spent: dict[str, list[float]] = {"bare": [], "ours": []}
    for _ in range(5):
        for name, work in (("bare", bare), ("ours", ours)):
            began = time.process_time()
            for _ in range(times):
                work()
            spent[name].append((time.process_time() - began) / times)
    best = {name: min(rounds) for name, rounds in spent.items()}
    print(
        f"{label:26} bare {1000 * best['bare']:8.2f} ms  omnidata {1000 * best['ours']:8.2f} ms"
        f"  {best['bare'] / best['ours']:.3f} of its speed"
    )


def workers(folder: Path) -> None:
    """Steps per second of one and of two processes, by the clock."""
    rates = {}
    for count in (1, 2):
        with ProcessPoolExecutor(max_workers=count) as pool:
            list(pool.map(run_steps, [folder] * count, [1] * count))  # started and warm
            began = time.perf_counter()
            list(pool.map(run_steps, [folder] * count, [STEPS * 2] * count))
            rates[count] = count * STEPS * 2 / (time.perf_counter() - began)
    print(
        f"{'workers':26} one {rates[1]:.0f} steps/s, two {rates[2]:.0f} steps/s"
        f"  {rates[2] / rates[1]:.2f} times, on {os.cpu_count()} cores"
    )


def run_steps(folder: Path, times: int) -> None:
    """Decode the step so many times."""
    for _ in range(times):
        our_step(folder)


if __name__ == "__main__":
    main()
