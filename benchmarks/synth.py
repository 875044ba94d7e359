"""How fast synthetic episodes are made, and whether that stays so as the dataset grows.

Makes datasets of 1,000, 3,000 and 10,000 steps, or as many of these as the time allows by the rate
of the one before, each in a new folder, and prints steps per second, processor time per step (of
all processes, which other work on the machine disturbs less), bytes per step, and the peak memory
of the process that joins the parts. Fails where a step of a larger dataset takes more than 1.25 of
the processor time of one of the smallest.

    python benchmarks/synth.py [--size small|sample] [--workers N] [--minutes 3]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from omnidata.run.engines.local import cores
from omnidata.synth.episodes import Settings, make_episodes

STEPS = (1000, 3000, 10000)
MOST = 1.25
SIZES: Mapping[str, Settings] = {
    "small": Settings(max_steps=1, size=(112, 168), clip_size=(56, 84), fps=8, seconds=1.0,
                      cues=("pitch", "count", "glide", "timbre", "lamp", "colour", "move", "digit",
                            "badge", "arrow", "dots")),
    "sample": Settings(max_steps=1),
}  # fmt: skip
"""For a tiny model on a laptop, and the sample dataset's."""


def main() -> None:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=list(SIZES), default="small")
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--minutes", type=float, default=3.0)
    chosen = parser.parse_args()
    settings = SIZES[chosen.size]
    print(
        f"screens {settings.size[0]}x{settings.size[1]}, clips {settings.clip_size[0]}x"
        f"{settings.clip_size[1]}, {settings.seconds:g} s at {settings.fps} fps, "
        f"{chosen.workers} workers"
    )
    print("   steps        s  steps/s  cpu ms/step  bytes/step  peak MB")
    left = chosen.minutes * 60
    rate, costs = 0.0, list[float]()
    for steps in STEPS:
        if rate and steps / rate > left:
            print(f"{steps:8,}  left out: {steps / rate:.0f} s, {max(0, left):.0f} s are left")
            continue
        seconds, busy, size = timed(settings, steps, chosen.workers)
        left -= seconds
        rate = steps / seconds
        costs.append(1e3 * busy / steps)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        line = f"{steps:8,} {seconds:8.1f} {rate:8.0f} {costs[-1]:12.2f}"
        print(f"{line} {size:11,} {peak:8.0f}", flush=True)
    if max(costs) > MOST * costs[0]:
        sys.exit(f"a step takes up to {max(costs) / costs[0]:.2f} of one of the smallest dataset")


def timed(settings: Settings, steps: int, workers: int) -> tuple[float, float, int]:
    """Seconds, processor seconds, and bytes per step."""
    with tempfile.TemporaryDirectory() as name:
        began, busy = time.perf_counter(), processor_s()
        report = make_episodes(Path(name) / "data", settings, episodes=steps, workers=workers)
        took = time.perf_counter() - began
        return took, processor_s() - busy, report["made"]["bytes_per_step"]


def processor_s() -> float:
    """Of this process and of those that it started and that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, whose))


if __name__ == "__main__":
    main()
