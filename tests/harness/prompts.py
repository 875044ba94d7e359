"""Prompts for a trainer of reinforcement learning, and what `omnidata score` says of answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.tasks import get_task
from tests.export.small import tree, written
from tests.harness.command import omnidata
from tests.trees import write_lines

HIT = '{"action_type":0,"coordinate":[222,177]}'
ANSWERS = (HIT, '{"action_type":0,"coordinate":[900,900]}', '{"action_type":8}', "I would tap.")
Rows = list[dict[str, Any]]


def exported(folder: Path, form: Any, **options: Any) -> tuple[Path, Rows]:
    """An export of eight steps, and its rows."""
    data = tree(folder / "data", episodes=2)
    written(data, folder / "out", format=form, **options)
    path = folder / "out" / f"train.{'json' if form == 'verl' else 'jsonl'}"
    return path, [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def asked(row: dict[str, Any]) -> list[tuple[str, str]]:
    """The turns of a row's prompt, as the evaluation writes them: (role, text)."""
    return [
        (turn["role"], turn["content"]) for turn in row["prompt" if "prompt" in row else "messages"]
    ]


def worth(folder: Path, rows: Rows) -> dict[tuple[str, str], float]:
    """What a trainer is to give for each answer to each step, by the table of `omnidata score`."""
    found: dict[tuple[str, str], Any] = {}
    for number, text in enumerate(ANSWERS):
        lines = [{"sample_id": row["sample_id"], "output": text} for row in rows]
        said = write_lines(folder / f"said{number}.jsonl", lines)
        omnidata("score", "omnigui", folder / "data", said, "--out", folder / f"table{number}")
        table = (folder / f"table{number}" / "scores.jsonl").read_text(encoding="utf-8")
        for line in map(json.loads, table.splitlines()):
            value = 0.1 * line["format_ok"] + 0.4 * line["type_match"] + 0.5 * line["exact_match"]
            found[line["sample_id"], text] = pytest.approx(value)
    assert len({value.expected for value in found.values()}) > 2
    return found


def tiny_prompts(data: Path) -> list[str]:
    """Texts from which a tiny model learns its words."""
    task = get_task("omnigui")
    steps = task.load(data, check_media=False).steps
    return [
        part.text for step in steps for turn in task.conversation(step) for part in turn.parts
    ] * 10
