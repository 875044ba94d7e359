"""What a score owes to the wording: of runs that differ in it, and of data that have several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.report import report
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import Run, read_run
from omnidata.table import Table
from omnidata.tasks import get_task
from omnidata.types import Completion
from tests.loaders.omnibench import act, task, trajectory, written
from tests.report.made import write_run, write_scores
from tests.run.scripted import Scripted
from tests.trees import row, write_app

# Right in the benchmark's own language, in English and in Chinese, which is its own: two wordings.
RIGHT: dict[str, tuple[bool | None, ...]] = {
    "App/T1/0": (False, True, False),
    "App/T1/1": (False, False, False),
    "App/T2/0": (True, True, True),
    "App/T2/1": (True, None, True),  # not judged in one of them: left out of all
    "App/T3/0": (True, False, True),  # one wording in both languages: no task
}


def only(name: str, runs: list[Run], *, with_published: bool = False) -> Table:
    made = report(runs, with_published=with_published)
    (found,) = [each for each in made.tables if each.name == name]
    return found


def test_runs_that_word_their_steps_otherwise_are_one_task_each_episode(tmp_path: Path) -> None:
    app = write_app(tmp_path / "data" / "App", [row(n.split("/")[1], int(n[-1])) for n in RIGHT])
    with (app / "localization.jsonl").open("r+", encoding="utf-8") as file:
        *lines, last = file.readlines()
        file.seek(0)
        file.truncate()
        file.writelines([*lines, json.dumps({**json.loads(last), "instruction_zh": "Tap Share"})])
    source = get_task("omnigui").load(tmp_path / "data", check_media=False)
    runs = [
        write_run(
            tmp_path / language,
            options={"language": language} if language != "own" else {},
            scores={name: right[number] for name, right in RIGHT.items()},
            by={"language": {"en": {"TM": 0.5, "EM": 0.5, "SR": 0.5, "GP": 0.5}}},
            data=str(tmp_path / "data"),
            dataset_fingerprint=source.fingerprint,
        )
        for number, language in enumerate(("own", "en", "zh"))
    ]
    (told,) = only("sensitivity", runs).rows
    assert told.labels == ("openai:a", "Instruction: Own, English, Chinese")
    assert [cell.value for cell in told.cells] == pytest.approx(
        [2, (0.25 + 1) / 2, (0.25 + 0) / 2, (0 + 1) / 2, (0.5 + 1) / 2]
    )
    languages = only("language", runs)
    assert [column.group for column in languages.columns if column.metric == "EM"] == ["", "en"]
    assert [each.labels[1] for each in languages.rows] == ["Own", "English", "Chinese"]


def test_orders_of_one_task_are_its_wordings(tmp_path: Path) -> None:
    """Task 1 in two orders, right in one; task 2 has one wording; subtasks are no task's."""

    def told(own: str, of: str, said: str) -> dict[str, object]:
        whole = trajectory(act(), trajectory_id=own, task_id=of, instruction=said, intent="x")
        return {key: value for key, value in whole.items() if key != "subtask_id"}

    rows = [
        told("1(0)", "1", "A, then E."),
        told("1(1)", "1", "E after A."),
        told("2(0)", "2", "B."),
    ]
    subtasks = [trajectory(act(), trajectory_id=f"A({n})", instruction=f"Do {n}.") for n in "01"]
    data = written(
        tmp_path / "data",
        {"tasks.jsonl": [task("1"), task("2")], "trajectories.jsonl": rows,
         "subtask_trajectories.jsonl": subtasks},
    )  # fmt: skip
    asking = get_task("omnibench")
    source = asking.load(data, check_media=False)
    targets = {step.sample_id: asking.target(step) for step in source.steps}
    right = asking.baseline("oracle", source.steps, {})
    said = {s.sample_id: "{}" if s.instruction == "E after A." else right(s) for s in source.steps}
    assert len(targets) == 5
    evaluate(
        asking, source, Scripted(lambda name, n: Completion(text=said[name])), tmp_path / "run"
    )
    found = only("sensitivity", [read_run(tmp_path / "run")], with_published=True)
    *published, own = found.rows
    assert own.labels == ("scripted", "of the data")
    assert [cell.value for cell in own.cells] == [1, 0.5, 0.5, 0.0, 1.0]
    assert {each.labels[0]: each.cells[2].value for each in published}["Aguvis"] == 0.129
    assert all(each.source == "OmniBench, Table 6" for each in published)
    assert any("ran in an environment" in note for note in found.notes)


def test_levels_have_their_drops_and_the_papers_rows(tmp_path: Path) -> None:
    by: dict[str, Any] = {
        dimension: {
            level: {"CR": value, "LC": None, "ci95": {}, "tasks": 1}
            for level, value in (("easy", 0.9), ("medium", 0.6), ("hard", None))
        }
        for dimension in ("dependency", "branch")
    }
    by["capability"] = {"Parallel Planning": {"CR": 0.5, "LC": None, "ci95": {}, "tasks": 3}}
    own_totals = {"CR": 0.7, "LC": 0.5}
    run = write_scores(tmp_path / "run", "omnibench", "omnibench-paper", own_totals, by, tasks=3)
    made = {t.name: t for t in report([run], with_published=True).tables}
    paper = {each.labels[0]: each for each in made["branch"].rows}
    columns = [column.group for column in made["branch"].columns]
    cells = dict(zip(columns, paper["Aguvis-7B"].cells, strict=True))
    assert [cells[level].change for level in ("easy", "medium", "hard")] == pytest.approx(
        [None, -0.044, -0.062]
    )  # as the paper prints them
    own = dict(zip(columns, made["branch"].rows[-1].cells, strict=True))
    assert own["medium"].change == pytest.approx(-0.3)
    assert (own["easy"].change, own["hard"].change) == (None, None)
    drops = [
        cell.change
        for name in ("dependency", "branch")
        for each in made[name].rows[:-1]
        for cell in each.cells
        if cell.change is not None
    ]
    assert len(drops) == 2 * 5 * 2 and max(drops) < 0
    planned = {each.labels[0]: each.source for each in made["main"].rows}
    assert planned["GPT-4o with UGround-V1-7B, intent prompt"] == "OmniBench, Table 7"
