"""Where the time of one step goes, as it comes out of a DataLoader worker.

Each stage is measured as the difference between doing a little more and doing a little less, by
Pillow, PyAV and torch alone; what is left of the whole is what omnidata adds, and memory that is
fresh outside of a tight loop.
"""

from __future__ import annotations

import copy
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import av
import media_bare as bare
import numpy as np
import torch
import torch.multiprocessing  # registers how tensors are handed over
from media_timing import Work, measure
from media_workers import BATCH, make_steps
from PIL import Image

from omnidata.torch import Batch, Collate, Decoding, StepDataset

WIDTH = 44


def run(folder: Path) -> None:
    """Print the stages of a step with their milliseconds of CPU and shares."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as DataLoader does in its workers
    stages = {**decoding(folder), **handing(folder)}
    torch.set_num_threads(threads)
    whole = sum(stages.values())
    print(f"\nWhere the time goes: CPU of one step in a worker, {whole:.2f} ms")
    for label, spent in stages.items():
        bar = "#" * round(WIDTH * max(spent, 0.0) / whole)
        print(f"  {label:44} {spent:7.2f} ms {spent / whole:6.1%}  {bar}")


def decoding(folder: Path) -> dict[str, float]:
    """The stages up to an item of tensors."""
    png, mp4, wav = (folder / f"1.{end}" for end in ("png", "mp4", "wav"))
    dataset = StepDataset(make_steps(folder, 8), Decoding(num_frames=4))
    pixels = np.asarray(Image.open(png).convert("RGB"))
    four = [np.zeros((800, 360, 3), dtype=np.uint8) for _ in range(4)]
    works: dict[str, Work] = {
        "png open": lambda: Image.open(png).close(),
        "png load": lambda: load(png),
        "png array": lambda: bare.image(folder),
        "png copy": lambda: torch.from_numpy(pixels.copy()),
        "mp4 open": lambda: av.open(str(mp4)).close(),
        "mp4 decode": lambda: decode(mp4, "video"),
        "mp4 all": lambda: bare.frames(mp4, 4),
        "mp4 stack": lambda: np.stack(four),
        "wav open": lambda: av.open(str(wav)).close(),
        "wav decode": lambda: decode(wav, "audio"),
        "wav all": lambda: bare.audio(folder),
        "item": lambda: dataset[0],
    }
    cpu = {name: spent.cpu for name, spent in measure(works, times=8, rounds=8).items()}
    stages = {
        "open and parse the three files": cpu["png open"] + cpu["mp4 open"] + cpu["wav open"],
        "PNG: inflate and unfilter": cpu["png load"] - cpu["png open"],
        "PNG: to RGB, to an array": cpu["png array"] - cpu["png load"],
        "PNG: copy into a tensor": cpu["png copy"],
        "clip: decode 60 frames of H.264": cpu["mp4 decode"] - cpu["mp4 open"],
        "clip: 4 frames to RGB": cpu["mp4 all"] - cpu["mp4 decode"] - cpu["mp4 stack"],
        "clip: stack": cpu["mp4 stack"],
        "audio: decode": cpu["wav decode"] - cpu["wav open"],
        "audio: resample, join": cpu["wav all"] - cpu["wav decode"],
    }
    rest = cpu["item"] - sum(stages.values())
    return {**stages, "the rest: omnidata's checks, fresh memory": rest}


def handing(folder: Path) -> dict[str, float]:
    """The stages from items to the process that trains, per step."""
    dataset = StepDataset(make_steps(folder, BATCH), Decoding(num_frames=4))
    items = [dataset[index] for index in range(BATCH)]
    batches = [Collate()(copy.deepcopy(items)) for _ in range(2 * 4)]
    works: dict[str, Work] = {
        "collate": lambda: Collate()(items),
        "hand over": lambda: hand_over(batches),
    }
    collated = measure({"collate": works["collate"]}, times=16)["collate"].cpu
    handed = measure({"hand over": works["hand over"]}, times=2, rounds=4)["hand over"].cpu
    return {
        "collate: lists": collated / BATCH,
        "hand over: copy into shared memory": handed / BATCH,
    }


def hand_over(batches: list[Batch]) -> object:
    """What a worker's queue does with a batch; each batch can be moved only once."""
    return ForkingPickler.dumps(batches.pop())


def load(path: Path) -> None:
    """Inflate the picture."""
    with Image.open(path) as picture:
        picture.load()


def decode(path: Path, kind: str) -> None:
    """Decode every frame and drop it."""
    with av.open(str(path)) as container:
        for _ in container.decode(**{kind: 0}):
            pass
