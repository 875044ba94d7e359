"""How fast are AgentStudio's four sets scored, and does reading stay linear on hostile responses?

Every row of GroundUI-1K, IDM-Single, IDM-Multiple and CriticBench gets 20 responses, which the code
that `omnidata score` runs reads from files, judges by both profiles, writes down and adds up. Then
hostile strings of growing length are read, beside the pattern that a person would write first,
which backtracks. CPU time: the machine may be shared.

    python benchmarks/agentstudio.py --data ../shared/data/agentstudio
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.predictions import read
from omnidata.run.scoring import score
from omnidata.tasks import get_task
from omnidata.tasks.agentstudio.answers import read_letters, read_released, released_letters
from omnidata.tasks.agentstudio.rows import actions_in_window
from omnidata.tasks.agentstudio.rules import letters_of
from omnidata.tasks.asking import Asking
from omnidata.tasks.points import read_point
from omnidata.types import LoadedDataset, Step

FILES = {
    "groundui": "groundui_1k.jsonl",
    "idm-single": "metadata_idm.jsonl",
    "idm-multiple": "metadata_idmn2n.jsonl",
    "criticbench": "metadata_success_detection.jsonl",
}
PROFILES = ("agentstudio-release", "agentstudio-paper")
PROSE = (
    "Looking at the screenshots, the list moved and the header (top left) stayed where it was.\n"
)
PATIENCE = 10.0  # seconds that one string may take before a pattern is given up


def main() -> None:
    """Run both parts and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the four .jsonl files")
    parser.add_argument("--responses", type=int, default=20, help="responses per row")
    options = parser.parse_args()
    if missing := [file for file in FILES.values() if not (options.data / file).is_file()]:
        parser.error(f"--data {options.data}: there is no {', no '.join(missing)} in it")
    with tempfile.TemporaryDirectory() as folder:
        score_all(options.data, options.responses, Path(folder))
    for title, text, readings in GROWTH:
        grow(title, text, readings)


# --- scores ---------------------------------------------------------------------------------------


def score_all(data: Path, count: int, folder: Path) -> None:
    """Score `count` runs over each set by both profiles, and print rates."""
    rng = random.Random(0)
    total, spent = 0, 0.0
    print(
        f"{'set':14}{'rows':>8}{'responses':>11}{'load':>8}{'release':>9}{'paper':>9}   CPU seconds"
    )
    for name, file in FILES.items():
        task = get_task(name)
        begin = time.process_time()
        source = task.load(data / file, check_media=False)
        seconds = [time.process_time() - begin, 0.0, 0.0]
        for _ in range(count):
            path = write_predictions(folder / "predictions.jsonl", task, source, rng)
            for place, profile in enumerate(PROFILES, 1):
                begin = time.process_time()
                score_run(task, profile, source, path)
                seconds[place] += time.process_time() - begin
        rows = len(source.steps)
        print(
            f"{name:14}{rows:8,}{rows * count:11,}{seconds[0]:8.2f}"
            f"{seconds[1]:9.2f}{seconds[2]:9.2f}"
        )
        total, spent = total + rows * count, spent + seconds[1] + seconds[2]
    rate = len(PROFILES) * total / spent
    print(f"{total:,} responses scored by two profiles: {spent:.2f} s, {rate:,.0f} verdicts/s")


def write_predictions(path: Path, task: Asking, source: LoadedDataset, rng: random.Random) -> Path:
    """A run's file: one response per row."""
    with path.open("w", encoding="utf-8") as file:
        for step in source.steps:
            output = respond(task.name, step, rng)
            file.write(json.dumps({"sample_id": step.sample_id, "output": output}) + "\n")
    return path


def score_run(task: Asking, profile: str, source: LoadedDataset, path: Path) -> None:
    """What `omnidata score` does once the data is loaded."""
    whole = np.ones(len(source.steps), dtype=np.bool_)
    out = path.parent / "scores"
    results = score(
        task, task.profiles[profile], source.steps, read(path), whole=whole, out=out, origin=path
    )
    if results["counts"]["steps"] != len(source.steps):
        raise RuntimeError(f"{task.name}: some rows were not judged: {results['counts']}")


def respond(name: str, step: Step, rng: random.Random) -> str:
    """A response as models write them: right in half of the cases, in one of several forms."""
    row = step.source
    frame = rng.choice(["{}", PROSE + "{}", PROSE * 8 + "\n{}\n\n" + PROSE])
    right = rng.random() < 0.5
    if name == "groundui":
        (left, top, end, bottom), (width, height) = row["bbox"], row["resolution"]
        x = (left + end) / 2 / width if right else rng.random()
        y = (top + bottom) / 2 / height if right else rng.random()
        form = rng.choice(["({:.6f}, {:.6f})", "(x={}, y={})", "[{}, {}]"])
        return frame.format(form.format(x, y))
    if name == "criticbench":
        said = str(row["is_success"] == right)
        return frame.format(rng.choice(["Answer: {}", "**Answer:** {}"]).format(said))
    actions = [row] if name == "idm-single" else actions_in_window("idm-multiple", row)
    operations = [action["operation"] for action in actions]
    letters = list(letters_of(operations, row["action_space"]) or ())
    if not right:
        rng.shuffle(letters)
    joint = rng.choice(["\n", ", ", "\n- "])
    return frame.format(rng.choice(["Answer:\n{}", "**Answer:** {}"]).format(joint.join(letters)))


# --- growth ---------------------------------------------------------------------------------------

_NUMBER = r"[-+]?\d*\.?\d+"
BACKTRACKING_PAIR = re.compile(rf"\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\)")
BACKTRACKING_LETTER = re.compile(r"answer\s*:\s*\n*\s*([a-z])\b", re.IGNORECASE)
"""What one writes first; it is right, and slow."""

Readings = dict[str, Callable[[str], Any]]
POINTS: Readings = {
    "release": read_released,
    "paper": read_point,
    "backtracking": BACKTRACKING_PAIR.findall,
}
LISTS: Readings = {
    "release": released_letters,
    "paper": read_letters,
    "backtracking": BACKTRACKING_LETTER.search,
}
GROWTH: list[tuple[str, Callable[[int], str], Readings]] = [
    ("a bracket and digits", lambda size: "(" + "9" * size, POINTS),
    (
        "a bracket, digits, a comma, digits",
        lambda size: "(" + "9" * (size // 2) + "," + "9" * (size // 2),
        POINTS,
    ),
    ("an answer of blank lines", lambda size: "Answer:" + "\n" * size + "1", LISTS),
]


def grow(title: str, text: Callable[[int], str], readings: Readings) -> None:
    """Print milliseconds by length; a reading that loses its patience is not asked again."""
    sizes = [100, 200, 400, 800, 1_000, 10_000, 100_000]
    print(f"\n{title}: milliseconds by length")
    print(f"{'':14}" + "".join(f"{size:>12,}" for size in sizes))
    for name, reading in readings.items():
        cells, last = "", 0.0
        for before, size in zip([sizes[0], *sizes], sizes, strict=False):
            if last * (size / before) ** 3 > PATIENCE:
                cells += f"{'-':>12}"
                last = PATIENCE
                continue
            begin = time.process_time()
            reading(text(size))
            last = time.process_time() - begin
            cells += f"{last * 1000:12.2f}"
        print(f"{name:14}{cells}")


if __name__ == "__main__":
    main()
