"""What one would do today: typed columns of `datasets`, which torchcodec decodes; decord."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from media_timing import Work, compare

from omnidata.media import frames, image, samples
from omnidata.types import MediaRef

SampleFour = Callable[[Path], object]


def run(folder: Path, recording: Path | None) -> None:
    """Each peer that can be loaded, on the step and on the recording."""
    print("\nAgainst what one would do today")
    video, audio = MediaRef("video", folder, "1.mp4"), MediaRef("audio", folder, "1.wav")
    screenshot = MediaRef("image", folder, "1.png")

    def full() -> object:
        return image(screenshot), frames(video, num_frames=4), samples(audio)

    for peer, load in (("datasets", datasets_and_torchcodec), ("decord", decord)):
        try:
            four, step = load(folder)
        except Exception as error:  # whatever keeps it from working is its reason
            reason = str(error).strip().partition("\n")[0]
            print(f"  {peer} not installed: {type(error).__name__}: {reason[:90]}")
            continue
        against(peer, four, folder / "1.mp4", "4 frames", times=12)
        if step:
            compare("full step", peer, step, full, times=12)
        if recording:
            against(peer, four, recording, "recording", times=1, rounds=2)


def against(
    peer: str, four: SampleFour, path: Path, label: str, *, times: int, rounds: int = 5
) -> None:
    """Four frames of a clip, by the peer and by omnidata."""
    ref = MediaRef("video", path.parent, path.name)
    compare(
        label,
        peer,
        lambda: four(path),
        lambda: frames(ref, num_frames=4),
        times=times,
        rounds=rounds,
    )


def datasets_and_torchcodec(folder: Path) -> tuple[SampleFour, Work]:
    """Columns of `datasets` with decode=True."""
    import datasets
    from torchcodec.decoders import VideoDecoder

    table = datasets.Dataset.from_dict(
        {name: [str(folder / f"1.{end}")] for name, end in _COLUMNS.items()}
    )
    typed = (
        table.cast_column("screenshot", datasets.Image())
        .cast_column("video", datasets.Video())
        .cast_column("audio", datasets.Audio(sampling_rate=16_000))
    )

    def of(decoder: Any) -> object:
        return decoder.get_frames_at(evenly(decoder.metadata.num_frames)).data

    def step() -> object:
        row = typed[0]
        return (
            np.asarray(row["screenshot"].convert("RGB")),
            of(row["video"]),
            row["audio"].get_all_samples().data,
        )

    step()
    return (lambda path: of(VideoDecoder(str(path)))), step


_COLUMNS = {"screenshot": "png", "video": "mp4", "audio": "wav"}


def decord(folder: Path) -> tuple[SampleFour, None]:
    """The four-frame sampler that papers use: seek to each frame."""
    from decord import VideoReader, cpu

    def four(path: Path) -> object:
        reader = VideoReader(str(path), ctx=cpu(0))
        return reader.get_batch(evenly(len(reader))).asnumpy()

    four(folder / "1.mp4")
    return four, None


def evenly(count: int) -> list[int]:
    """Four indices from the first frame to the last."""
    found: list[int] = np.linspace(0, count - 1, 4).astype(int).tolist()
    return found
