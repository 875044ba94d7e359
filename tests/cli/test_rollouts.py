"""How OSWorld's rollouts ended, several attempts, and several agents side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.figures import drawings
from omnidata.analysis.report import report
from omnidata.run.run_files import read_run
from tests.cli.running import as_json, omnidata
from tests.loaders.osworld import RUN, line, results, rollout
from tests.trees import read_lines

OTHER = "computer_13/som/agent"
NEVER = "045bf3ff-9077-4b86-b483-a1040a949cff"
"""One of the release's infeasible tasks of gimp."""


def ended(
    tree: Path,
    endings: Mapping[str, tuple[Sequence[Mapping[str, Any]], str | None]],
    *,
    run: str = RUN,
    limit: int | None = 4,
) -> Path:
    for place, (rows, result) in endings.items():
        rollout(tree, *rows, place=f"{run}/{place}", result=result, pictures=False)
    if limit:
        (tree / run / "args.json").write_text(json.dumps({"max_steps": limit}))
    return tree


def scored(*arguments: str | Path, code: int = 0) -> Any:
    return as_json(omnidata("score", "osworld", *arguments, "--json", code=code))


def acts(*actions: Any) -> list[dict[str, Any]]:
    return [line(number, action) for number, action in enumerate(actions, 1)]


CLICKS = [f"pyautogui.click({n}, {n})" for n in range(9)]
ALL: Mapping[str, tuple[str, Sequence[Mapping[str, Any]], str | None]] = {
    "os/done": ("finished", acts("pyautogui.click(1, 1)", "DONE"), "1.0"),
    "os/last-line": ("finished", acts("pyautogui.click(1, 1)\nDONE"), "0"),
    "os/object": ("finished", acts({"action_type": "DONE"}), None),
    f"gimp/{NEVER}": ("fail_right", acts("FAIL"), "1"),
    "gimp/other": ("fail_wrong", acts("computer.terminate(status='failure')"), "0"),
    "vlc/limit": ("step_limit", acts(*CLICKS[:4]), "0"),
    "vlc/wheel": ("repetition", acts("WAIT", *["pyautogui.scroll(-3)"] * 3), "0"),
    "vlc/silent": ("parse_error", acts(*CLICKS[:2]), "0"),
    "vlc/gap": ("step_limit", [line(1), line(4, "pyautogui.press('a')")], "0"),
    "chrome/late": ("time_limit", [line(1), {"Error": "Time limit exceeded in chrome/x"}], None),
    "chrome/broken": ("crash", [line(1), {"Error": "no such file"}], None),
    "chrome/at-once": ("crash", [{"Error": "connection refused"}], None),
    "vlc/killed": ("unknown", acts(*CLICKS[:2]), None),
}


def test_each_ending_is_told_by_its_trajectory(tmp_path: Path) -> None:
    data = ended(tmp_path / "tree", {place: told[1:] for place, told in ALL.items()})
    results(data, RUN, {"thunderbird": ["1.0"]})
    out = tmp_path / "out"
    found = scored(data, "--out", out)["rollouts"]
    lines = {row["sample_id"]: row for row in read_lines(out / "scores.jsonl")}
    assert {place: lines[place].get("ending") for place in lines} == {
        **{place: ending for place, (ending, _, _) in ALL.items()},
        "thunderbird/thunderbird-0": None,
    }  # fmt: skip
    assert lines["vlc/gap"]["turns"] == 4, "what could not be run was a turn"
    assert (lines["vlc/limit"]["turns"], lines["vlc/limit"]["seconds"]) == (4, 30.0)
    assert (found["attempts"], found["unrecorded"], found["step_limit"]) == (13, 1, 4)
    assert found["false_finish"] == 0.5, "the third has no score"
    assert found["by"]["feasibility"]["infeasible"]["endings"] == {"fail_right": 1}
    assert found["by"]["group"]["Professional"]["endings"] == {"fail_right": 1, "fail_wrong": 1}
    assert "endings: 3 said to be done" in omnidata("score", "osworld", data).stderr
    assert "there is no record of how 1 attempt went" in omnidata("report", out).stdout


def test_without_a_limit_nothing_says_why_a_rollout_stopped(tmp_path: Path) -> None:
    data = ended(tmp_path, {"os/a": (acts(*CLICKS[:3]), "0")}, limit=None)
    assert scored(data)["rollouts"]["endings"] == {"unknown": 1}


def test_tokens_are_those_of_turns_and_not_of_lines(tmp_path: Path) -> None:
    row = {"usage": {"prompt_tokens": 90, "completion_tokens": 10}}
    rows = [
        line(1, **row),
        line(1, **row),
        line(2, "DONE", response={"usage": {"total_tokens": 7}}),
    ]
    found = scored(ended(tmp_path, {"os/a": (rows, "1")}))["rollouts"]
    assert found["tokens"]["mean"] == 107


def test_rates_are_by_what_the_data_say_of_the_tasks(tmp_path: Path) -> None:
    told = {"a": (1, 59, "x"), "b": (3, 200, "infeasible"), "c": (3, 61, "x")}
    data = ended(tmp_path, {
        f"multi_apps/{name}": (acts("DONE"), str(number % 2)) for number, name in enumerate(told)
    })  # fmt: skip
    examples = data / "evaluation_examples" / "examples" / "multi_apps"
    examples.mkdir(parents=True)
    for name, (apps, seconds, function) in told.items():
        row = {"related_apps": ["os"] * apps, "human_seconds": seconds,
               "evaluator": {"func": function}}  # fmt: skip
        (examples / f"{name}.json").write_text(json.dumps(row))
    by = scored(data)["by"]
    assert {name: found["SR_finished"] for name, found in by["apps"].items()} == {"1": 0, "3": 0.5}
    assert by["apps"]["3"]["SR_all"] is None, "nobody says how many need three"
    assert {name: found["SR_finished"] for name, found in by["difficulty"].items()} == {
        "easy": 0.0, "medium": 0.0, "hard": 1.0,
    }  # fmt: skip
    assert by["feasibility"]["infeasible"]["SR_finished"] == 1.0
    sizes = {name: (one["tasks"], one["SR_all"]) for name, one in by["feasibility"].items()}
    assert sizes == {"feasible": (339, 0.0), "infeasible": (30, 1 / 30)}
    assert [one["tasks"] for one in by["workflow"].values()] == [268, 101]


@pytest.mark.parametrize("layout", ["{attempt}/{run}/{place}", "{run}/{attempt}/{place}",
                                    "{run}/{place}/{attempt}"])  # fmt: skip
def test_attempts_of_an_agent_are_one_line_for_each_task(tmp_path: Path, layout: str) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out"
    said: dict[str, list[str | None]] = {
        "os/a": ["1", "0"],
        "os/b": ["1"] * 2,
        "vlc/c": ["1", None],
    }
    for place, texts in said.items():
        for number, text in enumerate(texts, 1):
            where = layout.format(attempt=f"attempt_{number}", run=RUN, place=place)
            rollout(tree, *acts("DONE"), place=where, result=text, pictures=False)
    told = omnidata("score", "osworld", tree).stderr
    assert "2 attempts per task: pass@2 100.0, pass^2 50.0 over 2 tasks that all finished" in told
    found = scored(tree, "--out", out)
    assert found["agent"] == RUN
    assert found["overall"] == {"SR_finished": 2.5 / 3, "SR_all": 2 / 369}
    assert found["attempts"]["finished"] == 2
    assert found["attempts"]["k"]["2"]["pass@k"] == 1.0
    assert found["attempts"]["k"]["2"]["pass^k"] == 0.5
    assert found["attempts"]["k"]["1"]["pass@k_all"] == pytest.approx(2 / 369)
    assert found["counts"]["finished"] == 3
    lines = {row["sample_id"]: row for row in read_lines(out / "scores.jsonl")}
    assert lines["vlc/c"]["scores"] == [1.0, None]
    assert lines["os/a"]["ending"] == ["finished", "finished"]
    assert table("attempts", out)[RUN, "", "pass^2"] == 0.5


def test_attempts_with_other_limits_are_not_pooled(tmp_path: Path) -> None:
    for number in (1, 2):
        run = f"seed{number}/{RUN}"
        ended(tmp_path, {"os/a": (acts("DONE"), "1")}, run=run, limit=15 * number)
    told = omnidata("score", "osworld", tmp_path, code=2).stderr
    assert "was given 15 and 30 turns" in " ".join(told.split())


@pytest.fixture
def agents(tmp_path: Path) -> list[Path]:
    """Two agents over the same three tasks, and one over another."""
    tree, out = tmp_path / "tree", tmp_path / "out"
    for run, texts in ((RUN, "101"), (OTHER, "111"), ("mine/som/agent", "0")):
        rows = {f"os/{n}": (acts(*CLICKS[: n + 1], "DONE"), text) for n, text in enumerate(texts)}
        ended(tree, rows, run=run)
    omnidata("score", "osworld", tree, "--out", out)
    return sorted(out.iterdir())


def table(name: str, *runs: Path, by: Sequence[str] = ()) -> dict[tuple[str, str, str], Any]:
    (found,) = [each for each in report([*map(read_run, runs)], by=by).tables if each.name == name]
    return {(one["row"], one["group"], one["metric"]): one["value"] for one in found.records()}


def test_agents_over_the_same_tasks_are_ranked_and_paired(agents: list[Path]) -> None:
    other, _, own = agents
    ranks = table("ranking", own, other)
    assert (ranks[OTHER, "", "rank"], ranks[RUN, "", "rank"]) == (1, 2)
    assert next(iter(ranks))[0] == OTHER
    pairs = table("pairs", own, other)
    row = f"{OTHER} | {RUN}"
    assert pairs[row, "", "difference"] == pytest.approx(-1 / 3)
    assert (pairs[row, "", "only_a"], pairs[row, "", "only_b"], pairs[row, "", "tasks"]) == (
        1,
        0,
        3,
    )


def test_who_tried_other_tasks_than_most_has_no_rank(agents: list[Path], tmp_path: Path) -> None:
    _, mine, _ = agents
    ranks = table("ranking", *agents)
    assert [ranks[name, "", "rank"] for name in (OTHER, RUN, "mine/som/agent")] == [1, 2, None]
    told = omnidata("score", "osworld", tmp_path / "tree").stdout
    said = "No rank: mine/som/agent lacks 2 tasks of the ranked ones, e.g. os/1."
    assert said in " ".join(told.split())
    assert f"other tasks than the rest: {mine}" in omnidata("report", *agents).stderr
    for run, domain in ((RUN, "os"), (OTHER, "vlc")):
        results(tmp_path / "alone", run, {domain: ["1"]})
    told = omnidata("score", "osworld", tmp_path / "alone").stdout
    assert "No ranks: the agents tried different tasks." in told


def test_tables_of_endings_and_turns_are_those_of_the_results(agents: list[Path]) -> None:
    other, _, own = agents
    ends = table("rollout-endings", own, other, by=["feasibility"])
    assert (ends[RUN, "", "finished"], ends[RUN, "", "false_finish"]) == (1.0, 1 / 3)
    assert table("rollout-failures", own, other)[RUN, "", "finished"] == 1.0
    assert table("rollout-failures", own, other)[OTHER, "", "finished"] is None
    curve = table("rollout-within", own, other)
    assert [curve[RUN, "", f"SR_within_{turns}"] for turns in (1, 2, 3, 4)] == [
        pytest.approx(value) for value in (0, 1 / 3, 1 / 3, 2 / 3)
    ]
    assert curve[RUN, "", "area"] == pytest.approx((0 + 1 + 1 + 2) / 12)
    assert table("rollout-effort", own, other)[RUN, "", "turns_mean"] == 3.0
    by = table("rollout-endings-by-feasibility", own, other, by=["feasibility"])
    assert by[f"{RUN} | feasible", "feasible", "n"] == 3
    names = [drawing.name for drawing in drawings([read_run(own), read_run(other)])]
    assert "osworld-turns" in names


def test_broken_results_are_refused(agents: list[Path]) -> None:
    path = agents[0] / "results.json"
    held = json.loads(path.read_text())
    held["rollouts"]["lengths"] = {"many": 1}
    path.write_text(json.dumps(held))
    assert "rollouts.lengths" in omnidata("report", agents[0], code=2).stderr


DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.skipif(not DOCS.is_dir(), reason="needs a checkout: the sdist has no docs")
def test_the_pages_tables_are_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (DOCS / "rollouts.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(code, {})
    omnidata("score", "osworld", "results", "--out", "scored")
    axes = ("--by", "feasibility", "--by", "workflow")
    told = omnidata("report", *sorted(Path("scored").iterdir()), *axes).stdout
    shown = re.findall(r"```text\n(.*?)\n```", text, re.S)
    assert len(shown) == 7
    assert [each for each in shown if each not in told] == []
