"""What a run on Ray costs beside the same run in one process, at the same number in flight.

The model is an instant server in another process of this machine; all share its cores. Steps are
linked: they have the media of one. Both are timed over the second half of their requests, because
workers start one after the other during the first. Start-up is printed by itself.

    python benchmarks/cluster.py [--steps 4000] [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner import PER_EPISODE, make_step, served

from omnidata.run.asker import Recipe
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.engines.ray import connect
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task

IN_FLIGHT = 16


def main() -> None:
    """Ask in turns, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # a cluster of this machine alone
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_step(folder)
        data = write(folder / "steps.json", given.steps)
        began = time.perf_counter()
        cluster = Cluster(workers=given.workers)
        with connect(cluster):
            print(f"Ray starts in {time.perf_counter() - began:.1f} s")
            for turn in range(3):
                alone = ask(data, folder / f"alone-{turn}", None, IN_FLIGHT)
                many = ask(data, folder / f"many-{turn}", cluster, IN_FLIGHT // given.workers)
                print(
                    f"second half of {given.steps} steps, {IN_FLIGHT} in flight: one process "
                    f"{alone['second_half_s']:.2f} s, {given.workers} workers "
                    f"{many['second_half_s']:.2f} s, "
                    f"{many['second_half_s'] / alone['second_half_s']:.3f} of it; all requests "
                    f"{many['span_s'] - alone['span_s']:+.1f} s; "
                    f"the whole command {many['wall_s'] - alone['wall_s']:+.1f} s; "
                    f"the driver's peak {many['peak_mib']:.0f} MiB"
                )


def rows(count: int) -> Iterator[dict[str, Any]]:
    """Rows that share the media of one step."""
    for number in range(count):
        yield {
            "episode_id": f"E{number // PER_EPISODE}",
            "step_id": number % PER_EPISODE,
            "instruction_en": f"Open item {number}.",
            "video_path": "1.mp4",
            "audio_path": "1.wav",
            "image_path": "1.png",
            "image_width": 720,
            "image_height": 1600,
            "result_action_type": 0,
            "result_action_text": "",
            "result_touch_xy": "[[210,786],[351,850]]",
            "result_lift_xy": "",
            "app": "App",
        }


def write(path: Path, count: int) -> Path:
    """A JSON file of `rows`."""
    path.write_text(json.dumps(list(rows(count))), encoding="utf-8")
    return path


def ask(data: Path, out: Path, cluster: Cluster | None, in_flight: int) -> dict[str, Any]:
    """One run: what the server saw, and what it took."""
    task = get_task("omnigui")
    source = task.load(data, check_media=False)
    with served(0.0) as url:
        model = Recipe("openai:m", base_url=f"{url}/v1")
        began = time.perf_counter()
        evaluate(task, source, model, out, limits=Limits(concurrency=in_flight), cluster=cluster)
        wall_s = time.perf_counter() - began
        with urllib.request.urlopen(f"{url}/stats") as answer:
            seen: dict[str, Any] = json.load(answer)
    assert seen["requests"] == len(source.steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**seen, "wall_s": wall_s, "peak_mib": peak}


if __name__ == "__main__":
    main()
