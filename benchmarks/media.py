"""What a step's media cost to decode: against a bare loop, in workers, against peers, and where.

One step is a 720x1600 PNG, four frames of a 2 s H.264 clip of 30 fps at 360x800, and its WAV,
all made on the spot. Those that are compared take turns; ratios are of CPU time, because the
machine may be shared, and the milliseconds by the clock stand in brackets.

    python benchmarks/media.py [--recording RECORDING.mp4] [--only bare|workers|peers|where]

Peers run where they are installed beside omnidata: torchcodec (with FFmpeg's libraries), decord.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import media_bare as bare
import media_peers
import media_where
import media_workers
import numpy as np
from media_timing import compare
from PIL import Image

from omnidata.media import encode_mp4, encode_wav, frames, image, samples
from omnidata.types import MediaRef

STEPS = 24


def main() -> None:
    """Run the comparisons and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recording", type=Path, help="a real screen recording, for frames alone")
    parser.add_argument("--only", choices=("bare", "workers", "peers", "where"))
    options = parser.parse_args()
    wanted = {options.only} if options.only else {"bare", "workers", "peers", "where"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_step(folder)
        if "bare" in wanted:
            against_bare(folder, options.recording)
        if "workers" in wanted:
            media_workers.run(folder)
        if "peers" in wanted:
            media_peers.run(folder, options.recording)
        if "where" in wanted:
            media_where.run(folder)


def make_step(folder: Path) -> None:
    """One step's files, with enough noise to cost what real ones cost."""
    rng = np.random.default_rng(0)
    screen = np.kron(rng.integers(0, 255, (100, 45, 3)), np.ones((16, 16, 1))).astype(np.uint8)
    screen[400:800] = rng.integers(0, 255, (400, 720, 3))
    Image.fromarray(screen).save(folder / "1.png")
    clip = [np.roll(screen[::2, ::2], 4 * number, axis=0) for number in range(60)]
    (folder / "1.mp4").write_bytes(encode_mp4(clip, fps=30))
    (folder / "1.wav").write_bytes(encode_wav(rng.normal(0, 0.1, 32_000)))


def against_bare(folder: Path, recording: Path | None) -> None:
    """Each medium, and the whole step, against Pillow and PyAV by hand."""
    screenshot = MediaRef("image", folder, "1.png")
    video, audio = MediaRef("video", folder, "1.mp4"), MediaRef("audio", folder, "1.wav")
    stages = {
        "screenshot": (lambda: bare.image(folder), lambda: image(screenshot)),
        "4 frames": (
            lambda: bare.frames(folder / "1.mp4", 4),
            lambda: frames(video, num_frames=4),
        ),
        "audio": (lambda: bare.audio(folder), lambda: samples(audio)),
        "full step": (
            lambda: bare.step(folder),
            lambda: (image(screenshot), frames(video, num_frames=4), samples(audio)),
        ),
    }
    print("Against a bare Pillow and PyAV loop that decodes the same")
    for label, (theirs, ours) in stages.items():
        compare(label, "bare", theirs, ours, times=STEPS)
    if recording:
        ref = MediaRef("video", recording.parent, recording.name)
        compare(
            "recording",
            "bare",
            lambda: bare.frames(recording, 4),
            lambda: frames(ref, num_frames=4),
            times=1,
            rounds=2,
        )


if __name__ == "__main__":
    main()
