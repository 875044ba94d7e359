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
from dataclasses import replace

from omnidata.actions import Action
from omnidata.loaders.files import RowFiles
from omnidata.loaders.row_files import head_of, read_rows
from omnidata.loaders.task_library import Library, Subtask
from omnidata.tasks.benchmark import About, Benchmark, Card, ParsedAnswer, Rule, UnreadError
from omnidata.tasks.totals import Column, EpisodeTotals, RowTotals
from omnidata.types import Annotation, MediaRef, Questions, Step, Target


def files(expected, key):
    return RowFiles(expected, lambda path: "known" if key in head_of(path) else "other")


class Exact(Rule):
    name = "chores-exact"
    totals = RowTotals()

    def judge(self, step, parsed):
        raise NotImplementedError


class Mute(Benchmark):
    """Nothing is asked of a model."""

    rules = (Exact(),)

    def steps(self, data, note):
        raise NotImplementedError

    def parse(self, text, step, receipt):
        raise NotImplementedError

    def target(self, step, *, space=None, size=None):
        return None


class Pool(Mute):
    """A pool of chores: who needs what, and what is there afterwards."""

    card = Card(title="Chores")
    files = files("chores with needs and gives", b'"needs"')

    def library(self, data):
        rows = [line.row for path in self.files.find(data) for line in read_rows(path)]
        subtasks = {
            row["chore"]: Subtask(
                row["chore"],
                "Do " + row["chore"],
                "Kitchen",
                inputs=(row["needs"],),
                outputs=(row["gives"],),
            )
            for row in rows
        }
        return Library(data, subtasks, categories={"Kitchen": "Home"})


class Kept(Rule):
    name = "chores-kept"
    totals = EpisodeTotals()

    def judge(self, step, parsed):
        right = parsed is not None and parsed.record["did"] == step.source["did"]
        return (right, right, True)


class Judged(Rule):
    name = "chores-judged"
    totals = RowTotals([Column("accuracy", "said")])

    def judge(self, step, parsed):
        return (parsed is not None and parsed.value == "done",)


class Diary(Mute):
    """Chores that somebody was filmed at: a picture of each step, and rarely what was done."""

    card = Card(title="Diary", roles={"screenshot": "image"})
    files = files("days with a wish", b'"wish"')

    def steps(self, data, note):
        for line in self.files.rows(self.files.find(data), note):
            row = line.row
            yield Step(
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


LABELS = Annotation(
    "action", known_from="diary", expected="days", remedy="wait a day", truth="look again"
)


class Labels(Diary):
    card = Card(title="Labels")
    rules = (Kept(),)
    about = About(
        benchmark="diary", annotation=LABELS, questions=lambda source: Questions(source, {})
    )

    def parse(self, text, step, receipt):
        if text != "went back":
            raise UnreadError("nothing was done")
        action = Action("back")
        return ParsedAnswer(action, {"did": text}, written=(action,))

    def target(self, step, *, space=None, size=None):
        return Target(step.source["seen"], step.source["seen"])


def days(source):
    first = [step for step in source.steps if step.step_index == 0]
    asked = [replace(step, sample_id=f"day {step.episode_id}") for step in first]
    return Questions(replace(source, steps=asked), {})


class Judges(Diary):
    card = Card(title="Judges")
    rules = (Judged(),)
    about = About(
        benchmark="diary", annotation=replace(LABELS, of="success"), questions=days
    )

    def parse(self, text, step, receipt):
        return ParsedAnswer(text, {"said": text})

    def target(self, step, *, space=None, size=None):
        return Target(step.source["ended"], step.source["ended"])
'''
CHORES = [
    {"chore": "fill", "needs": "empty_kettle", "gives": "full_kettle"},
    {"chore": "boil", "needs": "full_kettle", "gives": "hot_water"},
    {"chore": "brew", "needs": "hot_water", "gives": "tea"},
]


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
    (pool / "chores.json").write_text(json.dumps(CHORES), encoding="utf-8")
    done = here(
        *("synth", "compose", pool, out, "--tasks", 1, "--trajectories", 0, "--workers", 1),
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
