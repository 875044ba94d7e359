"""How long does judging an answer in a dialect take, here and in another checkout?

The right answers of a little data of each benchmark, in each dialect, are judged on all of its
steps, half of them with other numbers. Each step is judged once, as `omnidata score` does. CPU
time is compared, the best of some rounds, in processes of the two checkouts in turns: the machine
may be shared. The other checkout runs in this environment.

    python benchmarks/judging.py --against ../other --only aitw omnigui
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from omnidata.errors import UsageError
from omnidata.tasks import get_task

TREE = Path(__file__).resolve().parents[1]
WORLDS = {
    "omnigui": "omnigui-few",
    "aitw": "aitz",
    "agentnet": "agentnetbench",
    "mind2web": "mind2web",
    "screenspot": "screenspot",
}
"""Benchmark -> its data, in `tests.goldens.worlds`."""
DIALECTS = (
    *("ui-tars-1.5", "qwen3", "opencua", "os-atlas-pro", "agentcpm-gui"),
    "claude-computer-20251124",
)
ANSWERS = 300
_NUMBER = re.compile(r"\b\d{2,4}\b")


def main() -> None:
    """Run the comparison and print it, or judge what another process prepared."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--only", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--dialects", nargs="*", default=list(DIALECTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.judge:
        print(json.dumps(judge(asked.judge)))
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), asked.only, asked.dialects)
        trees = [TREE, *([asked.against.resolve()] if asked.against else [])]
        best: list[dict[str, float]] = [{} for _ in trees]
        for _ in range(asked.rounds):
            for tree, times in zip(trees, best, strict=True):
                for case, spent in run(tree, Path(folder)).items():
                    times[case] = min(spent, times.get(case, spent))
    report(*best)


def prepare(folder: Path, benchmarks: list[str], dialects: list[str]) -> None:
    """Write data and answers: one file of cases, `[benchmark, dialect, data, answers]` each."""
    from tests.goldens.worlds import build

    cases, rng = [], random.Random(0)
    for benchmark in benchmarks:
        data = build(WORLDS[benchmark], folder)
        for dialect in dialects:
            try:
                task = get_task(benchmark, {"dialect": dialect})
            except UsageError:
                continue
            targets = map(task.target, task.load(data, check_media=False).steps)
            right = [target.text for target in targets if target]
            answers = [rng.choice(right) for _ in range(ANSWERS)] if right else []
            answers[::2] = [
                _NUMBER.sub(lambda _: str(rng.randrange(10, 1000)), text) for text in answers[::2]
            ]
            cases.append([benchmark, dialect, str(data), answers])
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")


def run(tree: Path, folder: Path) -> dict[str, float]:
    """Judge all cases in a process of a checkout; gives microseconds per answer by case."""
    command = [sys.executable, __file__, "--judge", str(folder / "cases.json")]
    env = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=env, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def judge(cases: Path) -> dict[str, float]:
    """Judge every case once to warm up and twice by the clock."""
    found = {}
    for benchmark, dialect, data, answers in json.loads(cases.read_text(encoding="utf-8")):
        task = get_task(benchmark, {"dialect": dialect})
        steps = task.load(Path(data), check_media=False).steps
        profile = task.profiles[task.default_profile]
        best = math.inf
        for _ in range(3 if answers else 0):
            fresh = [replace(steps[n % len(steps)], group="") for n in range(len(answers))]
            began = time.process_time()
            for step, text in zip(fresh, answers, strict=True):
                profile.judge(step, text, {})
            best = min(best, time.process_time() - began)
        if answers:
            found[f"{benchmark} in {dialect}"] = best / len(answers) * 1e6
    return found


def report(here: dict[str, float], there: dict[str, float] | None = None) -> None:
    """Print a line for each case, and the geometric mean of the ratios."""
    for case, spent in here.items():
        beside = f"  {there[case]:8.1f} there  {spent / there[case]:5.2f} x" if there else ""
        print(f"{case:30} {spent:8.1f} us{beside}")
    if there:
        mean = math.exp(sum(math.log(here[case] / there[case]) for case in here) / len(here))
        print(f"geometric mean of the ratios: {mean:.2f}")


if __name__ == "__main__":
    main()
