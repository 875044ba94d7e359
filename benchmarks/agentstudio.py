"""How fast are AgentStudio's four sets judged, and does reading stay linear on hostile responses?

Every row of GroundUI-1K, IDM-Single, IDM-Multiple and CriticBench gets 20 responses, all judged by
both readings and added up, in one run. Then hostile strings of growing length are read, beside the
pattern that a person would write first, which backtracks. CPU time: the machine may be shared.

    python benchmarks/agentstudio.py --data ../shared/data/agentstudio
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.loaders.agentstudio_window import shown
from omnidata.metrics.agentstudio_critic import Confusion, read_success, released_score
from omnidata.metrics.agentstudio_idm import Reading, judge_multiple, judge_single, letters_of
from omnidata.metrics.agentstudio_letters import read_letters, released_letters
from omnidata.metrics.agentstudio_point import (
    judge_point,
    judge_released,
    read_point,
    read_released,
)
from omnidata.metrics.agentstudio_totals import PLATFORMS, by_group, critic_table, means

Row = dict[str, Any]
Pairs = Sequence[tuple[Row, str]]

FILES = {
    "groundui": "groundui_1k.jsonl",
    "idm-single": "metadata_idm.jsonl",
    "idm-multiple": "metadata_idmn2n.jsonl",
    "criticbench": "metadata_success_detection.jsonl",
}
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
    sets = {name: read_rows(options.data / file) for name, file in FILES.items()}
    judge_all(sets, options.responses)
    for title, text, readings in GROWTH:
        grow(title, text, readings)


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- verdicts -------------------------------------------------------------------------------------


def judge_all(sets: dict[str, list[Row]], count: int) -> None:
    """Judge `count` responses for every row of every set, and print rates."""
    rng = random.Random(0)
    verdicts, spent = 0, 0.0
    print(f"{'set':14}{'verdicts':>10}{'release':>12}{'paper':>12}{'tables':>12}   CPU seconds")
    for name, rows in sets.items():
        pairs = [(row, respond(name, row, rng)) for row in rows for _ in range(count)]
        seconds = []
        columns: list[tuple[Any, ...]] = []
        for reading in ("release", "paper"):
            begin = time.process_time()
            columns.append(judge(name, pairs, reading))
            seconds.append(time.process_time() - begin)
        begin = time.process_time()
        for column in columns:
            add_up(pairs, column)
        seconds.append(time.process_time() - begin)
        print(f"{name:14}{len(pairs):10,}" + "".join(f"{value:12.3f}" for value in seconds))
        verdicts, spent = verdicts + len(pairs), spent + sum(seconds)
    rate = 2 * verdicts / spent
    print(f"{verdicts:,} responses by two readings and their tables: {spent:.2f} s, {rate:,.0f} /s")


def respond(name: str, row: Row, rng: random.Random) -> str:
    """A response as models write them: right in half of the cases, in one of several forms."""
    frame = rng.choice(["{}", PROSE + "{}", PROSE * 8 + "\n{}\n\n" + PROSE])
    right = rng.random() < 0.5
    if name == "groundui":
        (left, top, end, bottom), (width, height) = row["bbox"], row["resolution"]
        x = (left + end) / 2 / width if right else rng.random()
        y = (top + bottom) / 2 / height if right else rng.random()
        return frame.format(
            rng.choice(["({:.6f}, {:.6f})", "(x={}, y={})", "[{}, {}]"]).format(x, y)
        )
    if name == "criticbench":
        said = str(row["is_success"] == right)
        return frame.format(rng.choice(["Answer: {}", "**Answer:** {}"]).format(said))
    letters = list(letters_of(operations(name, row), row["action_space"]) or ())
    if not right:
        rng.shuffle(letters)
    joint = rng.choice(["\n", ", ", "\n- "])
    return frame.format(rng.choice(["Answer:\n{}", "**Answer:** {}"]).format(joint.join(letters)))


def operations(name: str, row: Row) -> list[str]:
    """What an IDM row asks for."""
    if name == "idm-single":
        return [row["operation"]]
    return [action["operation"] for action in shown("idm-multiple", row)]


def judge(name: str, pairs: Pairs, reading: Reading) -> tuple[Any, ...]:
    """The verdicts, as one column or two."""
    if name == "groundui":
        rule = judge_released if reading == "release" else judge_point
        return ([rule(row, text, space="rel").hit for row, text in pairs],)
    if name == "criticbench":
        if reading == "paper":
            return ([read_success(text) for _, text in pairs],)
        scores = [released_score(row["is_success"], text) for row, text in pairs]
        return (
            [row["is_success"] == score for (row, _), score in zip(pairs, scores, strict=True)],
        )
    if name == "idm-single":
        found = [
            judge_single(row["operation"], row["action_space"], text, reading=reading)
            for row, text in pairs
        ]
    else:
        found = [
            judge_multiple(operations(name, row), row["action_space"], text, reading=reading)
            for row, text in pairs
        ]
    return [verdict.correct for verdict in found], [verdict.distance for verdict in found]


def add_up(pairs: Pairs, columns: tuple[Any, ...]) -> None:
    """The tables overall, by platform and by source."""
    if "is_success" in pairs[0][0] and len(columns) == 1:
        truth = np.array([row["is_success"] for row, _ in pairs])
        said = np.array(columns[0], dtype=object)

        def table(rows: Any) -> dict[str, Any]:
            return critic_table(Confusion.of(truth[rows], said[rows]))
    else:
        names = ("accuracy", "edit_distance")[: len(columns)]
        values = {
            name: np.array(column, dtype=np.float64)
            for name, column in zip(names, columns, strict=True)
        }

        def table(rows: Any) -> dict[str, Any]:
            return means({name: column[rows] for name, column in values.items()})

    table(np.ones(len(pairs), dtype=np.bool_))
    by_group(table, [row["platform"] for row, _ in pairs], PLATFORMS)
    by_group(table, [row["source"] for row, _ in pairs])


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
