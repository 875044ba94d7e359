"""A model's text is read once when it is scored, by every profile of every task.

What was read of a wrong answer is read once more, to say why it is wrong. Where most answers are
wrong, some of them are read in other forms too.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Set
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

import omnidata
from omnidata.registry import names
from omnidata.tasks import get_task
from tests.goldens.record import call
from tests.loaders.every import rows_of
from tests.trees import row, write_lines, write_rows

PACKAGE = str(Path(omnidata.__file__).parent)
SCANS = {"answers", "call", "last_pair", "objects"}
"""What splits or measures a text for several readers, which is cheap."""


def readings(texts: Set[str], verb: Callable[[], str]) -> tuple[Counter[str], str]:
    """How often each function takes one of the texts, in all threads, and what the verb prints."""
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and PACKAGE in code.co_filename and code.co_name not in SCANS:
            given = map(frame.f_locals.get, code.co_varnames[: code.co_argcount])
            if any(isinstance(value, str) and value in texts for value in given):
                found[f"{code.co_filename}:{code.co_firstlineno} {code.co_name}"] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        printed = verb()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found, printed


def three_steps(folder: Path) -> Path:
    """An episode, for the tasks that ask about what lies between steps."""
    return write_rows(folder / "steps.json", [row("T1", number) for number in range(3)])


@pytest.mark.parametrize("name", names())
def test_score_reads_every_answer_once(name: str, tmp_path: Path) -> None:
    task = get_task(name)
    data = rows_of(name, tmp_path / "data") if not task.benchmark.about else three_steps(tmp_path)
    steps = task.load(data, check_media=False).steps
    targets = [task.target(step) for step in steps]
    rows = [
        {"sample_id": step.sample_id, "output": target.text if target else "I am done."}
        for step, target in zip(steps, targets, strict=True)
    ]
    lines = write_lines(tmp_path / "answers.jsonl", rows)
    for profile in task.profiles:
        score = partial(call, "score", name, data, lines, "--profile", profile, "--json")
        read, printed = readings({row["output"] for row in rows}, score)
        results = json.loads(printed.removeprefix("exit 1\n"))
        wrong = sum(results["causes"]["overall"].values())
        assert max(read.values()) >= len(rows), profile
        if 2 * wrong <= len(rows):
            (function, often), *_ = read.most_common(1)
            assert often <= len(rows) + wrong, (profile, function)
