"""How near a run comes to the speed of its model, and what a request costs.

Media as in the released form, made on the spot: a 720x1600 PNG of about 570 KB, 2 s of H.264 at 30
fps and 360x800 whose frames are PNGs of 250 KB, 64 KB of WAV.
The model is a server on this machine, in another process, which shares its cores.

    python benchmarks/runner.py [--only frames|whole|long|ceiling|start]

frames   120 steps, four frames, 0.5 s an answer, 16 in flight; floor 3.75 s
whole    the same with the clip passed through
long     2,579 steps at 1 s and 64 in flight, passed through
ceiling  an instant server, bodies of 200 KB
start    from the command to the first request, in seconds of CPU
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from omnidata.actions import Action, Box
from omnidata.adapters import get_adapter
from omnidata.media import encode_mp4, encode_wav
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import TAGS
from omnidata.tasks.omnigui.rows import ROLES
from omnidata.types import LoadedDataset, MediaRef, Step

SERVER = Path(__file__).with_name("runner_server.py")
CASES = ("frames", "whole", "long", "ceiling", "start")
PER_EPISODE = 4
TASK = get_task("omnigui")
PEERS_S = {"release": 87.6, "lmms-eval at its best": 24.0}
"""First to last request of the same 120 steps, as measured once on a like machine."""


def main() -> None:
    """Run the cases and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CASES)
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_step(folder)
        for case in (only,) if only else CASES:
            {
                "frames": lambda: paced(folder, "frames", 120, 0.5, 16, {}),
                "whole": lambda: paced(folder, "whole", 120, 0.5, 16, {"video": "native"}),
                "long": lambda: paced(folder, "long", 2579, 1.0, 64, {"video": "native"}),
                "ceiling": lambda: ceiling(folder),
                "start": lambda: start(folder),
            }[case]()


def paced(
    folder: Path, name: str, steps: int, delay_s: float, in_flight: int, options: dict[str, str]
) -> None:
    """A server that takes its time: the floor is that of waves without a gap."""
    floor = math.ceil(steps / in_flight) * delay_s
    if steps % in_flight:
        floor = steps * delay_s / in_flight
    with served(delay_s) as url:
        seen, cpu, timings = ask(folder, name, url, steps, in_flight, options)
    print(
        f"{name:8} {steps} steps, {delay_s:g} s an answer, {in_flight} in flight: "
        f"{seen['span_s']:.2f} s = {seen['span_s'] / floor:.3f} of the floor of {floor:.2f} s, "
        f"{floor / seen['span_s']:.3f} of the ideal speed; "
        f"{seen['mean']:.1f} in flight on average, at most {seen['most']}; "
        f"{1000 * cpu / steps:.0f} ms of CPU and {seen['bytes'] / steps / 1e6:.2f} MB a step; "
        f"media {timings['media_s']:.1f} s in threads, waited for {timings['media_wait_s']:.2f} s, "
        f"disk {timings['disk_s']:.2f} s"
    )
    if name == "frames":
        for peer, took in PEERS_S.items():
            print(f"{'':8} {peer}, as measured once: {took} s, {took / seen['span_s']:.1f} times")


def ceiling(folder: Path) -> None:
    """An instant server: what is left is ours and the sockets'."""
    small = folder / "small"
    small.mkdir()
    make_step(small, noisy_rows=62)
    steps = 2000
    task = get_task("omnigui", {"modalities": "I", "history_screenshot": "off"})
    with served(0.0) as url:
        seen, cpu, _ = ask(small, "ceiling", url, steps, 64, {}, task=task)
    print(
        f"ceiling  an instant server: {steps / seen['span_s']:.0f} requests/s, "
        f"{1e6 * cpu / steps:.0f} us of CPU and {seen['bytes'] / steps / 1e3:.0f} KB a step "
        f"(this process; all of the run, scoring included)"
    )


def start(folder: Path) -> None:
    """The command line, from nothing to the first request."""
    from omnidata.synth.sample import make_sample

    make_sample(folder / "sample")
    with served(5.0) as url:
        command = [
            *(sys.executable, "-m", "omnidata", "evaluate", "omnigui", str(folder / "sample")),
            *("--model", "openai:m", "--base-url", f"{url}/v1", "--out", str(folder / "started")),
        ]
        began = time.time()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ticks = os.sysconf("SC_CLK_TCK")
        while True:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            cpu = (int(fields[11]) + int(fields[12])) / ticks
            with urllib.request.urlopen(f"{url}/stats") as answer:
                first = json.load(answer)["first"]
            if first:
                break
            time.sleep(0.02)
        process.kill()
        process.wait()
    print(f"start    {cpu:.2f} s of CPU, {first - began:.2f} s by the clock to the first request")


def ask(
    folder: Path,
    name: str,
    url: str,
    count: int,
    in_flight: int,
    options: dict[str, str],
    *,
    task: Any = TASK,
) -> tuple[dict[str, Any], float, dict[str, float]]:
    """One run: what the server saw, CPU of this process in seconds, and the run's timings."""
    source = make(count, folder)
    adapter = get_adapter("openai:m", task, source.steps, options=options, base_url=f"{url}/v1")
    out = folder / "runs" / name
    before = resource.getrusage(resource.RUSAGE_SELF)
    results = evaluate(task, source, adapter, out, limits=Limits(concurrency=in_flight))
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert results["outcomes"] == {"ok": count}, results["outcomes"]
    with urllib.request.urlopen(f"{url}/stats") as answer:
        seen = json.load(answer)
    assert seen["requests"] == count
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seen, cpu, json.loads((out / "run.json").read_text())["timings"]


def make_step(folder: Path, *, noisy_rows: int = 255) -> None:
    """One step's files: a screen with flat areas and a band of noise, which scrolls in the clip."""
    rng = np.random.default_rng(0)
    screen = np.kron(rng.integers(0, 255, (50, 20, 3)), np.ones((32, 36, 1))).astype(np.uint8)
    screen[400 : 400 + noisy_rows] = rng.integers(0, 255, (noisy_rows, 720, 3))
    Image.fromarray(screen).save(folder / "1.png")
    clip = [np.roll(screen[::2, ::2], 4 * number, axis=0) for number in range(60)]
    (folder / "1.mp4").write_bytes(encode_mp4(clip, fps=30, crf=36))
    (folder / "1.wav").write_bytes(encode_wav(rng.uniform(-0.2, 0.2, 32_000)))


@contextmanager
def served(delay_s: float) -> Iterator[str]:
    """The server's address, while it runs."""
    command = [sys.executable, str(SERVER), str(delay_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def make(count: int, root: Path) -> LoadedDataset:
    """So many steps in episodes of four; each has files of its own, which are links to one's."""
    action = Action("tap", (Box(100, 100, 200, 200, "px"),))
    for number in range(count):
        for kind in ("png", "mp4", "wav"):
            with suppress(FileExistsError):
                os.link(root / f"1.{kind}", root / f"step{number}.{kind}")
    steps = [
        Step(
            sample_id=f"App/E{number // PER_EPISODE}/{number % PER_EPISODE}",
            episode_id=f"E{number // PER_EPISODE}",
            step_index=number % PER_EPISODE,
            num_steps=PER_EPISODE,
            instruction=f"Open item {number} and answer the caller.",
            screen=(720, 1600),
            media={
                "screenshot": MediaRef("image", root, f"step{number}.png"),
                "history_screenshot": MediaRef("image", root, f"step{number - 1}.png")
                if number % PER_EPISODE > 1
                else None,
                "video": MediaRef("video", root, f"step{number}.mp4"),
                "audio": MediaRef("audio", root, f"step{number}.wav"),
            },
            history=(action,) * (number % PER_EPISODE),
            history_screens=((720, 1600),) * (number % PER_EPISODE),
            action=action,
            tags={
                "app": "App",
                "language": "en",
                "dimension": "localization",
                "dependency": "none",
            },
            source={},
        )
        for number in range(count)
    ]
    row_ids = [step.sample_id for step in steps]
    return LoadedDataset("omnigui", root, steps, [], 0, "0" * 64, row_ids, TAGS, ROLES)


if __name__ == "__main__":
    main()
