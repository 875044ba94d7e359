"""What another distribution's benchmark says of itself is used as what ours say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnidata.loaders.task_library import SUBTASKS
from tests import plugs
from tests.cli.running import as_json, here
from tests.data.tiny import png
from tests.synth.recordings import rows

PLUGIN = '''
import json
from dataclasses import replace

from omnidata.actions import Action
from omnidata.loaders.task_library import Library, Subtask
from omnidata.tasks.base import Benchmark
from omnidata.tasks.rollouts import EpisodeProfile, RowProfile
from omnidata.types import Annotation, MediaRef, Questions, LoadedDataset, Step, Verdict


class Exact(RowProfile):
    name = "chores-exact"

    def judge(self, step, text, receipt=None):
        raise NotImplementedError


class Pool(Benchmark):
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

class Kept(EpisodeProfile):
    name = "chores-kept"
    by = {}

    def judge(self, step, text, receipt=None):
        return Verdict("ok", (text == step.source["did"], text == step.source["did"], True))

    def failed(self, step, outcome):
        return Verdict(outcome, (False, False, False))


class Judged(RowProfile):
    name = "chores-judged"
    values = ("said",)

    def judge(self, step, text, receipt=None):
        return Verdict("ok", (text == "done",))


class Diary(Benchmark):
    """Chores that somebody was filmed at: a picture of each step, and rarely what was done."""

    question = ""
    profiles = {"chores-exact": Exact()}

    def answer(self, step):
        return None

    def detect(self, data):
        return (data / "diary.json").exists()

    def load(self, data, *, check_media=True, strict=False):
        rows = json.loads((data / "diary.json").read_text("utf-8"))
        steps = [
            Step(
                sample_id=f"{row['day']}/{row['hour']}",
                episode_id=row["day"],
                step_index=row["hour"],
                num_steps=2,
                instruction=row["wish"],
                screen=(36, 80),
                media={"screenshot": MediaRef("image", data, "room.png")},
                history=(),
                history_screens=(),
                action=Action("back") if row["did"] else None,
                tags={},
                source=row,
            )
            for row in rows
        ]
        names = [step.sample_id for step in steps]
        roles: dict[str, Modality] = {"screenshot": "image"}
        return LoadedDataset(self.name, data, steps, [], 0, "0" * 64, names, (), roles)


class Labels(Diary):
    asks_about = "diary"
    profiles = {"chores-kept": Kept()}
    annotates = Annotation(
        "action", known_from="diary", expected="days", remedy="wait a day", truth="look again"
    )

    def read(self, text, receipt=None):
        return Action("back") if text == "went back" else None

    def answer(self, step):
        return step.source["seen"]


class Judges(Labels):
    profiles = {"chores-judged": Judged()}
    annotates = replace(Labels.annotates, of="success")

    def ask_about(self, source):
        first = [step for step in source.steps if step.step_index == 0]
        days = [replace(step, sample_id=f"day {step.episode_id}") for step in first]
        return Questions(replace(source, steps=days), {})

    def answer(self, step):
        return step.source["ended"]
'''
CHORES = "fill empty_kettle full_kettle\nboil full_kettle hot_water\nbrew hot_water tea\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = plugs.on_path(tmp_path / "site", "chores_plugin", monkeypatch)
    (folder / "chores_plugin.py").write_text(PLUGIN, encoding="utf-8")
    classes = {"chores": "Pool", "diary": "Diary", "diary-idm": "Labels", "diary-critic": "Judges"}
    points = "\n".join(f"{name} = chores_plugin:{own}" for name, own in classes.items())
    plugs.install(folder, "omnidata-chores", "omnidata.tasks", points)
    return folder


def test_tasks_are_composed_of_a_library_that_only_a_plug_in_reads(
    site: Path, tmp_path: Path
) -> None:
    pool, out = tmp_path / "pool", tmp_path / "out"
    pool.mkdir()
    (pool / "chores.txt").write_text(CHORES, encoding="utf-8")
    done = here(
        *("synth", "compose", pool, out, "--tasks", 1, "--trajectories", 0),
        *("--initial", "empty_kettle", "--level", "dependency=easy", "--json"),
    )
    assert as_json(done)["made"]["pool"]["subtasks"] == 3
    (task,) = [json.loads(line) for line in (out / "tasks.jsonl").read_text().splitlines()]
    assert set(task["category"].values()) == {"Home"}
    used = [json.loads(line) for line in (out / SUBTASKS).read_text().splitlines()]
    assert {subtask["id"] for subtask in used} == {"fill", "boil"}


def test_data_that_no_library_is_of_are_refused_with_what_is_expected(
    site: Path, tmp_path: Path
) -> None:
    (tmp_path / "pool").mkdir()
    told = here("synth", "compose", tmp_path / "pool", tmp_path / "out", code=2).stderr
    assert "no task takes the data" in told
    assert "rows of chores or omnibench" in told


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    folder = tmp_path / "diary"
    folder.mkdir()
    (folder / "room.png").write_bytes(png(1))
    days = [("mon", "done", "went back"), ("tue", "broke the cup", "slept")]
    told = [
        {"day": day, "hour": n, "wish": "Tidy up.", "did": "", "seen": seen, "ended": ended}
        for day, ended, seen in days
        for n in range(2)
    ]
    (folder / "diary.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def test_a_plug_in_labels_the_data_that_it_asks_about(
    site: Path, diary: Path, tmp_path: Path
) -> None:
    told = as_json(
        here("synth", "label", diary, tmp_path / "out", "--model", "baseline:oracle", "--json")
    )
    assert told["task"] == "diary-idm"
    assert told["steps"]["labelled"] == 2
    assert told["steps"]["unlabelled"] == {"unparsed": 2}
    assert told["warnings"][0].endswith("; look again")
    first, second = rows(tmp_path / "out", "diary", "mon")
    assert first["instruction_en"] == "Tidy up."
    assert "result_action_type" in first and "result_action_type" in second


def test_a_plug_in_s_critic_chooses_of_the_data_that_it_asks_about(
    site: Path, diary: Path, tmp_path: Path
) -> None:
    told = as_json(
        here("synth", "filter", diary, tmp_path / "out", "--model", "baseline:oracle", "--json")
    )
    assert told["task"] == "diary-critic"
    assert told["rejected"] == [{"episode": "day tue", "answer": "broke the cup"}]
    assert [path.name for path in (tmp_path / "out" / "diary" / "media").iterdir()] == ["mon"]
