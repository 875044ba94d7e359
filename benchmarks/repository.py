"""How long `datasets` takes to open a Parquet repository of a million linked steps.

Makes the steps (30 apps, five dimensions, three levels; the media are paths without files),
converts them, and opens the repository three times, each in a process of its own, after
`import datasets`.

    python benchmarks/repository.py [--steps 1000000]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from omnidata.actions import Action, Box
from omnidata.data.convert import convert
from omnidata.loaders.episode_tree import DEPENDENCIES, DIMENSIONS
from omnidata.tasks.omnigui.load import TAGS
from omnidata.tasks.omnigui.rows import ROLES
from omnidata.types import LoadedDataset, MediaRef, Step

LIMIT_S, LIMIT_MB = 1.0, 300.0
STEPS_PER_EPISODE = 10

OPEN = """
import datasets, json, pathlib, sys, time
datasets.disable_progress_bars()
def peak():  # of this process alone: getrusage's begins with its parent's
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])
before = peak()
began = time.perf_counter()
data = datasets.load_dataset(sys.argv[1], split="test", cache_dir=sys.argv[2])
seconds = time.perf_counter() - began
data[len(data) // 2]
after = peak()
print(json.dumps({"rows": len(data), "s": seconds, "mb": after / 1e3, "import_mb": before / 1e3}))
"""


def main() -> None:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    count = parser.parse_args().steps
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        repository = folder / "repository"
        source = make(count, folder / "media")
        made = time.perf_counter()
        manifest = convert(source, repository, embed=False).manifest
        converted = time.perf_counter() - made
        del source
        size = sum(path.stat().st_size for path in repository.rglob("*.parquet"))
        print(
            f"{count} steps made in {made - began:.0f} s, converted in {converted:.0f} s "
            f"({count / converted:.0f} steps/s): {len(manifest.shards)} files, {size / 1e6:.0f} MB"
        )
        for label in ("first time (builds the cache)", "second time", "third time"):
            done = subprocess.run(
                [sys.executable, "-c", OPEN, str(repository), str(folder / "cache")],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            found = json.loads(done.stdout)
            assert found["rows"] == count
            print(
                f"{label:30} {found['s']:6.2f} s = {found['s'] / LIMIT_S:.2f} of the limit, "
                f"{found['mb']:.0f} MB = {found['mb'] / LIMIT_MB:.2f} of the limit "
                f"({found['import_mb']:.0f} MB after the import)"
            )


def make(count: int, root: Path) -> LoadedDataset:
    """So many steps in episodes of ten."""
    steps = list(_steps(count, root))
    row_ids = [step.sample_id for step in steps]
    return LoadedDataset("omnigui", root, steps, [], 0, "0" * 64, row_ids, TAGS, ROLES)


def _steps(count: int, root: Path) -> Iterator[Step]:
    rng = random.Random(0)
    dimensions, levels = list(DIMENSIONS), list(DEPENDENCIES)
    for episode in range(count // STEPS_PER_EPISODE):
        name = f"E{episode}"
        tags = {
            "app": f"App{episode % 30}",
            "language": "en" if episode % 2 else "zh",
            "dimension": dimensions[episode // 30 % 5],
            "dependency": levels[episode // 7 % 3],
        }
        actions = tuple(_tap(rng) for _ in range(STEPS_PER_EPISODE))
        shots = [
            MediaRef("image", root, f"{name}/{number + 1}.png")
            for number in range(STEPS_PER_EPISODE)
        ]
        for number, action in enumerate(actions):
            yield Step(
                sample_id=f"{tags['app']}/{name}/{number}",
                episode_id=name,
                step_index=number,
                num_steps=STEPS_PER_EPISODE,
                instruction="Open the settings and turn on the night light.",
                screen=(720, 1600),
                media={
                    "screenshot": shots[number],
                    "history_screenshot": shots[number - 2] if number > 1 else None,
                    "video": MediaRef("video", root, f"{name}/{number + 1}.mp4"),
                    "audio": MediaRef("audio", root, f"{name}/{number + 1}.wav"),
                },
                history=actions[:number],
                history_screens=((720, 1600),) * number,
                action=action,
                tags=tags,
                source={"episode_id": name, "step_id": number, "image_path": shots[number].path},
            )


def _tap(rng: random.Random) -> Action:
    left, top = rng.randrange(600), rng.randrange(1500)
    return Action("tap", (Box(left, top, left + 100, top + 80, "px"),))


if __name__ == "__main__":
    main()
