"""Steps per second of a DataLoader over `omnidata.torch`, by the clock."""

from __future__ import annotations

import os
import time
from pathlib import Path

from torch.utils.data import DataLoader

from omnidata.torch import Collate, Decoding, StepDataset
from omnidata.types import MediaRef, Step

STEPS = 192
BATCH = 4


def make_steps(folder: Path, count: int) -> list[Step]:
    """So many steps of one episode, all with the same files."""
    media: dict[str, MediaRef | None] = {
        "screenshot": MediaRef("image", folder, "1.png"),
        "video": MediaRef("video", folder, "1.mp4"),
        "audio": MediaRef("audio", folder, "1.wav"),
    }
    return [
        Step(
            sample_id=f"App/E/{index}",
            episode_id="E",
            step_index=index,
            num_steps=count,
            instruction="Tap Share",
            screen=(720, 1600),
            media=media,
            history=(),
            history_screens=(),
            action=None,
            tags={"app": "App"},
            source={},
        )
        for index in range(count)
    ]


def run(folder: Path) -> None:
    """Workers side by side; the best of three rounds each."""
    print(f"\nDataLoader over omnidata.torch, batches of {BATCH}, on {os.cpu_count()} cores")
    rates: dict[tuple[bool, int], float] = {}
    for pad in (False, True):
        for workers in (1, 2):
            rates[pad, workers] = max(rate(folder, workers, pad) for _ in range(3))
        print(
            f"  {'padded' if pad else 'lists':16} 1 worker {rates[pad, 1]:6.1f} steps/s"
            f"   2 workers {rates[pad, 2]:6.1f} steps/s"
            f"   {rates[pad, 2] / rates[pad, 1]:.2f} times"
        )


def rate(folder: Path, workers: int, pad: bool) -> float:
    """Steps per second from the third batch to the last, when all workers are at it."""
    loader = DataLoader(
        StepDataset(make_steps(folder, STEPS), Decoding(num_frames=4)),
        batch_size=BATCH,
        num_workers=workers,
        collate_fn=Collate(pad=pad),
    )
    batches = iter(loader)
    for _ in range(2 * workers):
        next(batches)
    began, count = time.perf_counter(), 0
    for batch in batches:
        count += len(batch)
    return count / (time.perf_counter() - began)
