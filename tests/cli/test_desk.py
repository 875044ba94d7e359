"""Every verb on AgentNet and ScreenSpot, and what `omnidata info` says of all sources."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from omnidata import registry
from tests.cli.running import EXPORT, as_json, omnidata
from tests.loaders.desk import agentnet, bench, bench_step, click, screenspot, spot, trajectory
from tests.trees import NO_SHARED, SHARED, read_lines, write_lines

REAL = SHARED / "data" / "agentnet_raw_win10"
real = pytest.mark.skipif(not REAL.is_dir(), reason=NO_SHARED)
CLICK, END = "pyautogui.click(x=0.5, y=0.25)", "computer.terminate(status='success')"


def data_of(task: str, folder: Path) -> Path:
    if task == "screenspot":
        return screenspot(folder, *(spot(instruction=f"open {n}") for n in range(6)))
    agentnet(folder, *(trajectory(CLICK, END, own=f"t{n}") for n in range(3)))
    return bench(folder / "bench", bench_step(0, click()), bench_step(2)).parent


def test_info_names_every_source_and_what_it_holds() -> None:
    held = {name: registry.get_benchmark(name).card.holds for name in registry.benchmarks()}
    said = omnidata("info").stdout
    for task, holds in held.items():
        assert holds
        assert f"task {task}: {holds}\n" in said
    listed = as_json(omnidata("info", "--json"))
    told, others = listed["tasks"], listed["tasks_about_others"]
    assert {name: task["holds"] for name, task in told.items()} == held
    for task in ("omnigui-idm", "omnigui-critic"):
        assert re.search(rf"task {task}: .+\n  asks about the data of omnigui\n", said)
    assert {name: one["asks_about"] for name, one in others.items()} == {
        "omnigui-critic": "omnigui",
        "omnigui-idm": "omnigui",
    }
    assert "asks about the data of omnigui\n" in omnidata("info", "omnigui-idm").stdout
    sources = "omnigui omnibench osworld aitw androidcontrol agentnet screenspot groundui"
    assert told.keys() >= set(sources.split())
    assert told["agentnet"]["profiles"] == ["agentnetbench", "agentnetbench-fixed"]


@pytest.mark.parametrize("task", ["agentnet", "screenspot"])
def test_every_verb_takes_the_data(tmp_path: Path, task: str) -> None:
    data, run = data_of(task, tmp_path / "data"), tmp_path / "run"
    assert as_json(omnidata("info", data, "--json"))["task"] == task
    omnidata("validate", task, data, "--workers", "1")
    omnidata("evaluate", task, data, "--model", "baseline:oracle", "--out", run)
    found = as_json(omnidata("score", task, data, run, "--json"))
    assert set(found["overall"].values()) <= {1.0, None}
    score = "accuracy" if task == "screenspot" else "score"
    assert found["overall"][score] == 1.0
    omnidata("convert", task, data, tmp_path / "repo", "--embed")
    again = as_json(omnidata("score", task, tmp_path / "repo", run, "--json"))
    assert again["overall"] == found["overall"]
    omnidata(*EXPORT, task, data, tmp_path / "sft", "--format", "trl")
    omnidata("audit", task, data)


def test_runs_of_points_beyond_all_screens_are_reported_and_compared(tmp_path: Path) -> None:
    data = data_of("screenspot", tmp_path / "data")
    runs = []
    for name, point in (("far", "(1e400, -1e400)"), ("large", "(1e30, 2)")):
        answers = [{"sample_id": f"screenspot_web/{n}", "output": point} for n in range(6)]
        lines, run = write_lines(tmp_path / f"{name}.jsonl", answers), tmp_path / name
        fixed = ("--profile", "screenspot-fixed", "--out", run)
        omnidata("score", "screenspot", data, lines, *fixed)
        runs.append(run)
    omnidata("report", *runs)
    omnidata("report", runs[0], "--data", data, "--html", tmp_path / "page.html")
    omnidata("compare", *runs, "--data", data)


def test_the_table_tells_places_from_texts_and_ends(tmp_path: Path) -> None:
    data, run = data_of("agentnet", tmp_path / "data"), tmp_path / "run"
    omnidata("evaluate", "agentnet", data, "--model", "baseline:center", "--out", run)
    kinds = as_json(omnidata("score", "agentnet", data, run, "--json"))["by"]["kind"]
    assert {kind: group["steps"] for kind, group in kinds.items()} == {
        "coordinate": 5, "function": 3,
    }  # fmt: skip
    assert kinds["coordinate"]["score"] == pytest.approx(0.4)
    assert kinds["function"]["score"] == 0


def test_code_in_an_action_or_an_answer_is_never_run(tmp_path: Path) -> None:
    victim = tmp_path / "precious.txt"
    victim.write_text("kept")
    attack = f"__import__('pathlib').Path({str(victim)!r}).unlink()"
    data = agentnet(tmp_path / "data", trajectory(attack, CLICK))
    answers = tmp_path / "answers.jsonl"
    rows = [
        {"sample_id": f"t1/{n}", "output": f"```python\n{attack}\npyautogui.press('a')\n```"}
        for n in range(2)
    ]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    omnidata("validate", "agentnet", data, "--workers", "1", code=1)
    for profile in ("agentnetbench", "agentnetbench-fixed"):
        omnidata("score", "agentnet", data, answers, "--profile", profile)
    omnidata("convert", "agentnet", data, tmp_path / "repo", "--embed", code=1)
    assert victim.read_text() == "kept"


def test_columns_that_do_not_tell_ask_for_an_option(tmp_path: Path) -> None:
    row = {**spot(bbox=[0.1, 0.1, 0.2, 0.2]), "file_name": "a.png"}
    del row["img_filename"]
    data = screenspot(tmp_path / "data", row)
    done = omnidata("info", "screenspot", data, code=2)
    assert "-T boxes=" in done.stderr
    model = ("--model", "baseline:oracle", "--out", tmp_path / "run")
    run: tuple[str | Path, ...] = ("evaluate", "screenspot", data, *model)
    omnidata(*run, code=2)
    omnidata(*run, "-T", "boxes=xyxy-rel", "--dry-run")


@real
def test_the_real_recording_is_evaluated_and_exported(tmp_path: Path) -> None:
    run, sft = tmp_path / "run", tmp_path / "sft"
    omnidata("evaluate", "agentnet", REAL, "--model", "baseline:oracle", "--out", run)
    overall = as_json(omnidata("score", "agentnet", REAL, run, "--json"))["overall"]
    assert overall == {"score": 1.0}
    how = ("--format", "llamafactory", "-T", "coordinates=px", "--limit", "2")
    omnidata(*EXPORT, "agentnet", REAL, sft, *how)
    rows = [row for path in sft.rglob("*.jsonl") for row in read_lines(path)]
    texts = json.dumps(rows)
    assert "pyautogui.click(x=1241, y=697)" in texts
