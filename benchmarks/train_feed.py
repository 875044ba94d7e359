"""Whether the collator keeps a trainer busy.

The same optimiser steps on the same batches: once with tensors that were made before, once with
steps that DataLoader workers read, decode and collate on the way.

    python benchmarks/train_feed.py [--checkpoint FOLDER] [--steps 40] [--batch 4] [--workers 2]

Without a checkpoint a tiny Qwen2.5-Omni is made, and torch is given one thread, so that the other
core can prepare, as the cores of a machine with a GPU can.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from omnidata.adapters.tiny import make_tiny
from omnidata.data.convert import convert
from omnidata.synth.sample import make_sample
from omnidata.tasks import get_task
from omnidata.torch import OmniCollator, training_stream, training_table

TASK = get_task("omnigui")
SMALL_CLIPS = {"min_video_pixels": "3136", "max_video_pixels": "50176"}
ROUNDS = 3
WARM = 2
"""Batches before the clock starts: workers start, and weights are touched for the first time."""


def main() -> None:
    """Run the comparisons and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options: dict[str, str] = {}
        checkpoint = given.checkpoint
        if checkpoint is None:
            torch.set_num_threads(1)
            checkpoint = make_tiny("qwen2.5-omni", folder / "tiny")
            options = SMALL_CLIPS
        source = TASK.load(make_sample(folder / "sample"))
        convert(source, folder / "parquet", embed=True)
        collator = OmniCollator(checkpoint, TASK, options=options)
        table = training_table(TASK, source)
        compare(checkpoint, collator, table, folder / "parquet", given)


def compare(
    checkpoint: Path, collator: OmniCollator, table: Any, parquet: Path, given: Any
) -> None:
    """Cached tensors, steps from a list, and rows of a Parquet repository, in turn."""
    wanted = given.steps + WARM
    order = [number % len(table) for number in range(wanted * given.batch)]
    batches = [order[at : at + given.batch] for at in range(0, len(order), given.batch)]
    began = time.perf_counter()
    cached = [collator([table[number] for number in batch]) for batch in batches]
    made = (time.perf_counter() - began) / wanted
    model = load(checkpoint)
    how: dict[str, Any] = {"num_workers": given.workers, "collate_fn": collator}
    times: dict[str, list[float]] = {"cached": [], "steps": [], "Parquet rows": []}
    for _ in range(ROUNDS):
        times["cached"].append(train(model, cached))
        times["steps"].append(train(model, DataLoader(table, batch_sampler=batches, **how)))
        stream = training_stream(TASK, parquet)
        rows = DataLoader(stream.repeat(None), batch_size=given.batch, **how)
        times["Parquet rows"].append(train(model, itertools.islice(rows, wanted)))
    own = statistics.median(times["cached"])
    tokens = cached[0]["input_ids"].shape
    print(f"batches of {tokens[0]} x about {tokens[1]} tokens; {made:.2f} s to make one")
    for name, found in times.items():
        took = statistics.median(found)
        print(f"{name}: {took:.3f} s a step ({min(found):.3f} to {max(found):.3f}), "
              f"{own / took:.2f} of the trainer's own speed")  # fmt: skip


def load(checkpoint: Path) -> Any:
    """The weights."""
    from transformers import AutoModelForMultimodalLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    build: Any = AutoModelForMultimodalLM
    return build.from_pretrained(checkpoint).train().to(device)


def train(model: Any, batches: Iterable[dict[str, Any]]) -> float:
    """Seconds of an optimiser step, the wait for its batch included."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    began, count = 0.0, 0
    for number, batch in enumerate(batches):
        if number == WARM:
            began = time.perf_counter()
        placed = {
            name: value.to(model.device) if isinstance(value, torch.Tensor) else value
            for name, value in batch.items()
        }
        model(**placed).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        count = number + 1 - WARM
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / count


if __name__ == "__main__":
    main()
