"""A model that several runs ask is made once, and closed once."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import here
from tests.export.small import tree
from tests.plugs import install, on_path
from tests.trees import read_lines

COUNTING = """
from omnidata.adapters import Model
from omnidata.types import Completion, GenerationParams

EVENTS = []


class Counting(Model):
    accepts = None
    params = GenerationParams(temperature=1.0)

    def __init__(self, rest, options):
        self.name = "counting"
        EVENTS.append("made")

    async def generate(self, prepared, params):
        EVENTS.append("asked")
        return [Completion(text=f'{{"action_type": -1, "seed": {params.seed or 0}}}')]

    async def close(self):
        EVENTS.append("closed")
"""


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    site = on_path(tmp_path / "site", "counting", monkeypatch)
    (site / "counting.py").write_text(COUNTING, encoding="utf-8")
    install(site, "counting", "omnidata.adapters", "counting = counting:Counting")

    def read() -> list[str]:
        found: list[str] = importlib.import_module("counting").EVENTS
        return found

    return read


def made_once(events: Callable[[], list[str]], asked: int) -> bool:
    return events() == ["made", *["asked"] * asked, "closed"]


def test_samples_are_asked_of_one_model_with_a_seed_each(
    tmp_path: Path, events: Callable[[], list[str]]
) -> None:
    data, run = tree(tmp_path / "data", episodes=2), tmp_path / "run"
    command = ("evaluate", "omnigui", data, "--model", "counting", "--out", run, "--samples", "3")
    here(*command, "--json")
    folders = (run, run / "samples" / "02", run / "samples" / "03")
    lines = [read_lines(folder / "predictions.jsonl") for folder in folders]
    assert made_once(events, sum(map(len, lines)))
    seeds = [{json.loads(line["output"])["seed"] for line in each} for each in lines]
    assert seeds == [{0}, {1}, {2}]


def test_a_suite_opens_a_model_once_for_all_of_its_tasks_and_prints_the_files_order(
    tmp_path: Path, events: Callable[[], list[str]]
) -> None:
    for name in ("one", "two"):
        tree(tmp_path / name, episodes=2)
    (tmp_path / "suite.toml").write_text(
        """
        out = "runs"
        [[tasks]]
        task = "omnigui"
        data = "one"
        name = "one"
        [[tasks]]
        task = "omnigui"
        data = "two"
        name = "two"
        [[models]]
        model = "counting"
        [[models]]
        model = "baseline:center"
        """
    )
    cells: Any = json.loads(here("suite", tmp_path / "suite.toml", "--json").stdout)
    assert made_once(events, sum(cell["asked"] for cell in cells if cell["model"] == "counting"))
    assert [(cell["task"], cell["model"]) for cell in cells] == [
        (task, model) for task in ("one", "two") for model in ("counting", "baseline:center")
    ]


def test_an_ablation_of_options_opens_a_model_once(
    tmp_path: Path, events: Callable[[], list[str]]
) -> None:
    data, out = tree(tmp_path / "data", episodes=2), tmp_path / "out"
    vary = ("--vary", "history=gold,none", "--controls", "none")
    here("ablate", "omnigui", data, "--model", "counting", "--out", out, *vary, "--json")
    lines = [len(read_lines(run / "predictions.jsonl")) for run in (out / "runs").iterdir()]
    assert len(lines) == 2
    assert made_once(events, sum(lines))
