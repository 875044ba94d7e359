"""What another distribution's benchmark says of itself is used as what ours say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnidata.cli import main
from omnidata.loaders.task_library import SUBTASKS
from tests import plugs

PLUGIN = '''
from omnidata.cli import main
from omnidata.loaders.task_library import Library, Subtask
from omnidata.tasks.base import Benchmark
from omnidata.tasks.profiles import RowProfile


class Exact(RowProfile):
    name = "chores-exact"

    def judge(self, step, text, receipt=None):
        raise NotImplementedError


class Chores(Benchmark):
    """A pool of chores in a file of words: who needs what, and what is there afterwards."""

    question = ""
    profiles = {"chores-exact": Exact()}

    def load(self, data, *, check_media=True, strict=False):
        raise NotImplementedError

    def answer(self, step):
        return None

    def detect(self, data):
        return (data / "chores.txt").exists()

    def library(self, data):
        rows = [line.split() for line in (data / "chores.txt").read_text("utf-8").splitlines()]
        subtasks = {
            name: Subtask(name, f"Do {name}", "Kitchen", inputs=(needs,), outputs=(gives,))
            for name, needs, gives in rows
        }
        return Library(data, subtasks, categories={"Kitchen": "Home"})
'''
CHORES = "fill empty_kettle full_kettle\nboil full_kettle hot_water\nbrew hot_water tea\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = plugs.on_path(tmp_path / "site", "chores_plugin", monkeypatch)
    (folder / "chores_plugin.py").write_text(PLUGIN, encoding="utf-8")
    plugs.install(folder, "omnidata-chores", "omnidata.tasks", "chores = chores_plugin:Chores")
    return folder


def said(*argv: str | Path | int, code: int = 0) -> None:
    with pytest.raises(SystemExit) as end:
        main([str(each) for each in argv])
    assert (end.value.code or 0) == code


def test_tasks_are_composed_of_a_library_that_only_a_plug_in_reads(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, out = tmp_path / "pool", tmp_path / "out"
    pool.mkdir()
    (pool / "chores.txt").write_text(CHORES, encoding="utf-8")
    said(
        *("synth", "compose", pool, out, "--tasks", 1, "--trajectories", 0),
        *("--initial", "empty_kettle", "--level", "dependency=easy", "--json"),
    )
    assert json.loads(capsys.readouterr().out)["made"]["pool"]["subtasks"] == 3
    (task,) = [json.loads(line) for line in (out / "tasks.jsonl").read_text().splitlines()]
    assert set(task["category"].values()) == {"Home"}
    used = [json.loads(line) for line in (out / SUBTASKS).read_text().splitlines()]
    assert {subtask["id"] for subtask in used} == {"fill", "boil"}


def test_data_that_no_library_is_of_are_refused_with_what_is_expected(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pool").mkdir()
    said("synth", "compose", tmp_path / "pool", tmp_path / "out", code=2)
    told = capsys.readouterr().err
    assert "no task takes the data" in told
    assert "rows of chores or omnibench" in told
