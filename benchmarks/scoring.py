"""How fast are answers scored, against a loop that only decodes and re-encodes the same lines?

One million distinct predictions, mutated from real and corner cases, are read, parsed, judged,
aggregated and written by the code that `omnidata score` runs; nearly all of them are wrong. The
peers of each batch are timed right after it, in this process. CPU time is compared: the machine
may be shared.

A profile's own line is of judging, which is what a scorer without causes does; "with causes" is the
same and why each wrong answer is wrong, as the command writes it.

    python benchmarks/scoring.py --cases ../shared/cases/omnigui_steps_sample.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from omnidata.predictions import read
from omnidata.run.scoring import score
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset

RELEASED_RATE = 37_700  # steps/s that the released evaluator judges (docs/benchmarks/omnigui.md)
EPISODE = 4  # steps; the benchmark's mean is 3.6
_NUMBER = re.compile(r"\b\d{2,4}\b")


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path, required=True, help="JSON lines of {doc, output}")
    parser.add_argument("--predictions", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=50_000, help="predictions per run")
    options = parser.parse_args()
    if not options.cases.is_file():
        parser.error(f"--cases {options.cases}: there is no such file")
    cases = [json.loads(line) for line in options.cases.read_text(encoding="utf-8").splitlines()]
    cases = [case for case in cases if case["coordinate_type"] == "normalized"]
    with tempfile.TemporaryDirectory() as folder:
        compare(cases, options.predictions, options.batch, Path(folder))
    start_up()


def compare(cases: list[dict[str, Any]], total: int, batch: int, folder: Path) -> None:
    """Score `total` predictions in runs of `batch` steps, each beside its peer."""
    task = get_task("omnigui")
    source = make_source(task, cases, batch, folder)
    rows = [
        (f"{name}{', with causes' * why}", name, why) for name in task.profiles for why in (0, 1)
    ]
    spent: dict[str, float] = dict.fromkeys((*(row[0] for row in rows), "json", "msgspec"), 0.0)
    memory: list[float] = []
    seen: set[int] = set()
    for number in range(total // batch):
        path = folder / "predictions.jsonl"
        write_predictions(path, source, cases, random.Random(number), seen)
        for row, name, why in rows:
            spent[row] += cpu(score_all, task, name, source, path, folder / "run", bool(why))
        spent["json"] += cpu(reencode, path, json.loads, json.dumps)
        spent["msgspec"] += cpu(
            reencode, path, msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
        )
        memory.append(resident_mb() - len(seen) * 60 / 1e6)
    report(spent, total // batch * batch, len(seen), memory)


def make_source(
    task: Asking, cases: list[dict[str, Any]], steps: int, folder: Path
) -> LoadedDataset:
    """A dataset of so many steps: the rows of the cases again and again, under ids of their own."""
    rows = []
    for number in range(steps):
        row = {**cases[number % len(cases)]["doc"], "app": "ted", "subset": "ted"}
        row.pop("step_index", None)
        row |= {"episode_id": f"E{number // EPISODE}", "step_id": number % EPISODE}
        rows.append(row)
    path = folder / "steps.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return task.load(path, check_media=False)


def write_predictions(
    path: Path,
    source: LoadedDataset,
    cases: list[dict[str, Any]],
    rng: random.Random,
    seen: set[int],
) -> None:
    """One line per step; `seen` holds hashes of all outputs so far, so that each is another."""
    with path.open("w", encoding="utf-8") as file:
        for number, step in enumerate(source.steps):
            text = cases[number % len(cases)]["output"]
            mutant = mutate(text, rng)
            while hash(mutant) in seen:
                mutant = mutate(text, rng) + " " * rng.randrange(3) + f"\n#{rng.random()}"
            seen.add(hash(mutant))
            file.write(json.dumps({"sample_id": step.sample_id, "output": mutant}) + "\n")


def mutate(text: str, rng: random.Random) -> str:
    """Other numbers; in an object without any, a reason that nobody has given."""
    mutant = _NUMBER.sub(lambda _: str(rng.randrange(10, 1000)), text)
    if mutant == text and text.rstrip().endswith("}"):
        return text.rstrip()[:-1] + f', "reasoning": "{rng.randrange(10**9)}"}}'
    return mutant


def score_all(
    task: Asking, profile: str, source: LoadedDataset, path: Path, out: Path, causes: bool
) -> None:
    """What `omnidata score` does once the data is loaded."""
    whole = np.ones(len(source.steps), dtype=np.bool_)
    judge = task.profiles[profile]
    score(task, judge, source.steps, read(path), whole=whole, out=out, causes=causes)


def reencode(path: Path, decode: Callable[[bytes], Any], encode: Callable[[Any], object]) -> None:
    """The peer: decode and encode every line, and do nothing else."""
    with path.open("rb") as file:
        for line in file:
            encode(decode(line))


def cpu(work: Callable[..., None], *arguments: Any) -> float:
    """Seconds of CPU of this process."""
    began = time.process_time()
    work(*arguments)
    return time.process_time() - began


def resident_mb() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def report(spent: dict[str, float], count: int, distinct: int, memory: list[float]) -> None:
    """Print rates, ratios and memory."""
    print(f"{count:,} predictions, {distinct:,} distinct outputs, {len(memory)} runs")
    for name, seconds in spent.items():
        print(
            f"  {name:30} {seconds:7.2f} s CPU  {count / seconds:11,.0f} lines/s"
            f"  {seconds / spent['json']:5.2f} x json  {seconds / spent['msgspec']:5.2f} x msgspec"
        )
    print(f"  the released evaluator judges {RELEASED_RATE:,} steps/s, without reading or writing")
    print(
        f"memory (without this script's set of hashes) after the first run {memory[0]:.0f} MB, "
        f"in the middle {memory[len(memory) // 2]:.0f} MB, after the last {memory[-1]:.0f} MB"
    )


def start_up() -> None:
    """Print the CPU of the cheapest commands."""
    show_help = "import sys; sys.argv[1:] = ['-h']; import omnidata.cli as cli; cli.main()"
    for label, code in (
        ("an empty Python", "pass"),
        ("import omnidata", "import omnidata"),
        ("omnidata --help", show_help),
    ):
        best = min(child_cpu(code) for _ in range(5))
        print(f"{label}: {best:.3f} s of CPU")


def child_cpu(code: str) -> float:
    """Seconds of CPU, user and system, of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
