"""What N processes make of one's time: `export`, `segment --list`, `voice`, shuffles of `audit`.

In turns, so that what else the machine does weighs on both; the best of the turns counts. Processor
time is of all processes: what is more of it with many is what it costs to start them.

    python benchmarks/verbs.py [--workers 2] [--episodes 40] [--turns 3]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from omnidata.analysis.audit_learning import (
    CrossValidation,
    group_near_duplicates,
    permutation_test,
)
from omnidata.analysis.prompt_features import features
from omnidata.data.segment.many import read_list, segment_all
from omnidata.data.voice import render
from omnidata.data.voice_engines import Espeak
from omnidata.media import encode_mp4
from omnidata.synth.episodes import Settings, make_episodes
from omnidata.tasks import get_task
from omnidata.training.export import Options, Sizing, export
from omnidata.types import LoadedDataset

SIZE = 720, 1600
RECORDINGS = 8
Work = Callable[[Path, int], object]


def main() -> None:
    """Do each with one process and with many, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_episodes(folder / "data", Settings(size=SIZE), episodes=given.episodes)
        source = get_task("omnigui").load(folder / "data", check_media=False)
        print(f"{len(source.steps)} steps with screens of {SIZE[0]} x {SIZE[1]}")
        works: dict[str, Work] = {
            "export, media linked": exporting(source, Options(format="llamafactory")),
            "export, resized, clips as frames": exporting(
                source, Options(format="llamafactory", video="frames", sizing=Sizing(factor=28))
            ),
            f"segment, {RECORDINGS} recordings of 20 s": segmenting(folder),
            "voice, 100 texts": speaking(source),
            "audit, shuffles of 5,000 prompts": learning(source),
        }
        for number, (title, work) in enumerate(works.items()):
            best = dict.fromkeys((1, given.workers), float("inf"))
            spent = dict(best)
            for turn in range(given.turns):
                for workers in best:
                    began, before = time.perf_counter(), sum(os.times()[:4])
                    work(folder / f"out-{number}-{turn}-{workers}", workers)
                    best[workers] = min(best[workers], time.perf_counter() - began)
                    spent[workers] = min(spent[workers], sum(os.times()[:4]) - before)
            one, many = best.values()
            costs, more = spent.values()
            print(
                f"{title}: one process {one:.1f} s, {given.workers} {many:.1f} s, "
                f"{one / many:.2f} times as fast; processor time {costs:.1f} s and {more:.1f} s"
            )


def exporting(source: LoadedDataset, options: Options) -> Work:
    """Export all."""
    task = get_task("omnigui")
    return lambda out, workers: export(task, source, out, options, workers=workers)


def segmenting(folder: Path) -> Work:
    """Cut recordings of which every second differs, with a tap every two seconds."""
    noise = np.random.default_rng(0).integers(0, 255, (20, 90, 40, 3), np.uint8)
    frames = [frame.repeat(10, axis=0).repeat(10, axis=1) for frame in noise for _ in range(10)]
    (folder / "film.mp4").write_bytes(encode_mp4(frames, fps=10))
    taps = [{"time": 2.0 * n, "action": "TAP", "point": [9, 9]} for n in range(1, 10)]
    head = {"app": "TED", "instruction_en": "Like it."}
    (folder / "film.jsonl").write_text("\n".join(map(json.dumps, [head, *taps])))
    line = {"recording": "film.mp4", "events": "film.jsonl"}
    lines = [{**line, "episode": f"E{number}"} for number in range(RECORDINGS)]
    (folder / "list.jsonl").write_text("\n".join(map(json.dumps, lines)))
    jobs = read_list(folder / "list.jsonl")
    return lambda out, workers: segment_all(jobs, out, workers=workers)


def speaking(source: LoadedDataset) -> Work:
    """Have texts spoken that all differ."""
    steps = [
        replace(
            source.steps[n % len(source.steps)], instruction=f"Open item {n} of the second list."
        )
        for n in range(100)
    ]
    engine = Espeak()
    return lambda out, workers: render(steps, out, engine, workers=workers)


def learning(source: LoadedDataset) -> Work:
    """Learn from shuffles, none of which does as well as is asked for."""
    task, draw = get_task("omnigui"), np.random.default_rng(0)
    steps = [
        replace(
            source.steps[n % len(source.steps)],
            sample_id=f"App/E{n}/0",
            episode_id=f"E{n}",
            instruction=" ".join(f"w{w}" for w in draw.integers(0, 40, 5 + n % 7)),
        )
        for n in range(5000)
    ]
    prompts = [task.conversation(step) for step in steps]
    group = group_near_duplicates(steps, prompts)
    hits = (draw.random((4, len(steps))) < 0.3).astype(np.float64)
    cv = CrossValidation.split(features(prompts), hits, group, seed=0)
    return lambda out, workers: permutation_test(cv, 1.1, seed=0, workers=workers)


if __name__ == "__main__":
    main()
