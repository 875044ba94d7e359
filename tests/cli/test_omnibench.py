"""`omnidata score omnibench`: coverage and consistency of task graphs, and the other verbs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import EXPORT, as_json, omnidata
from tests.loaders.agentstudio import ground
from tests.loaders.omnibench import APPS, COMPARISON, INTRODUCTION, library, task, write
from tests.trees import NO_SHARED, SHARED, read_lines

CASES = SHARED / "cases" / "omnibench_sample.jsonl"
EXCEL = {"nodes": ["a7310aa0", "df3fc68b"], "edges": {"a7310aa0": ["df3fc68b"], "df3fc68b": []}}


def graph(own: str, dag: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A task with the applications of its nodes."""
    nodes = dag["nodes"] if "nodes" in dag else {n for key in dag for n in (key, *dag[key])}
    return task(own, dag, application={n: APPS.get(n[0], "Excel") for n in nodes}, **changes)


def done(own: str | int, *nodes: str) -> dict[str, Any]:
    return {"task_id": own, "executed": list(nodes)}


def files(tmp_path: Path, tasks: list[Any], sequences: list[Any]) -> tuple[Path, Path]:
    return write(tmp_path / "tasks.jsonl", *tasks), write(tmp_path / "seq.jsonl", *sequences)


def test_the_papers_examples_score_as_computed_by_hand(tmp_path: Path) -> None:
    """Depths: 1 1 1 2 3 4 of the introduction, 1 1 2 3 4 5 of the comparison, 1 2 in Excel."""
    tasks = [graph("1", INTRODUCTION), graph("2", COMPARISON), graph("3", EXCEL)]
    sequences = [done("1", "D", "A", "C"), done(2, "A", "D", "C1"), done("3", *EXCEL["nodes"])]
    out = tmp_path / "out"
    results = as_json(
        omnidata("score", "omnibench", *files(tmp_path, tasks, sequences), "--out", out, "--json")
    )
    lines = read_lines(out / "scores.jsonl")
    assert [line["sample_id"] for line in lines] == ["1", "2", "3"]
    assert [line["CR"] for line in lines] == [4 / 12, 4 / 16, 1.0]
    assert [(line["CS_agent"], line["CS_max"]) for line in lines] == [(1, 2), (0, 1), (1, 1)]
    assert [line["LC"] for line in lines] == [0.5, 0.0, 1.0]
    assert lines[0]["parsed"] == {"executed": ["D", "A", "C"]}
    assert {line["profile"] for line in lines} == {"omnibench-paper"}
    assert results == json.loads((out / "results.json").read_text())
    assert results["overall"] == {
        "CR": pytest.approx((4 / 12 + 4 / 16 + 1) / 3), "LC": pytest.approx(0.5),
    }  # fmt: skip
    assert (results["task"], results["outcomes"]) == ("omnibench", {"ok": 3})
    assert results["by"]["intent"]["Send a presentation"]["tasks"] == 3
    assert results["by"]["hierarchy"]["medium"]["tasks"] == 1
    assert results["by"]["category"]["Outlook"]["tasks"] == 2


def test_graphs_are_scored_by_every_profile_that_needs_no_text(tmp_path: Path) -> None:
    given = files(tmp_path, [graph("3", EXCEL)], [done("3", "a7310aa0")])
    every, out = ("score", "omnibench", *given, "--profile", "all"), tmp_path / "scored"
    found = as_json(omnidata(*every, "--out", out, "--json"))
    assert {name: each["overall"] for name, each in found.items()} == {
        "omnibench-paper": {"CR": 1 / 3, "LC": 0.0},
        "omnibench-release": {"completion": 1.0, "coherence": 0.0},
    }
    shown = omnidata(*every, "--out", out).stdout
    assert "omnibench by omnibench-paper" in shown
    assert "omnibench by omnibench-release" in shown
    assert {path.name for path in out.iterdir()} == found.keys()
    assert "scored" in omnidata("report", out / "omnibench-paper").stdout


def test_a_missing_sequence_is_nothing_done_and_undefined_consistency_is_left_out(
    tmp_path: Path,
) -> None:
    tasks = [graph("3", EXCEL), graph("4", {"nodes": ["A"], "edges": {}}), graph("5", {"A": ["D"]})]
    out = tmp_path / "out"
    told = omnidata(
        "score", "omnibench", *files(tmp_path, tasks, [done("4", "A")]), "--out", out, "--json"
    )
    results = as_json(told)
    assert results["overall"] == {"CR": pytest.approx(1 / 3), "LC": 0.0}
    assert results["counts"] == {
        "tasks": 3, "undefined_LC": 2, "capped_LC": 0, "unknown_tasks": 0,
    }  # fmt: skip
    assert results["outcomes"] == {"ok": 1, "missing": 2}
    assert (results["answered"]["CR"], results["answered"]["LC"]) == (1.0, None)
    lines = read_lines(out / "scores.jsonl")
    assert [(line["outcome"], line["LC"]) for line in lines] == [
        ("missing", 0.0), ("ok", None), ("missing", None),
    ]  # fmt: skip


def test_the_table_is_for_people(tmp_path: Path) -> None:
    given = files(tmp_path, [graph("1", INTRODUCTION)], [done("1", "D"), done("9", "D")])
    told = omnidata("score", "omnibench", *given)
    (line,) = (text for text in told.stdout.splitlines() if "overall" in text)
    assert line.split() == ["overall", "8.3", "0.0", "1"]
    assert "tasks: 1 ok, 1 skipped" in told.stderr
    assert f"[task-unknown] {given[1]}:2" in told.stderr
    assert "[app-unknown]" in told.stderr
    assert "--strict" in omnidata("score", "omnibench", *given, "--strict", code=2).stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "object"),
        ('{"task_id": "1"}', "executed"),
        ('{"task_id": "1", "executed": "A"}', "array"),
        ('{"task_id": null, "executed": []}', "null"),
        ('{"task_id": "1", "executed": ["D"]}', "already has a sequence"),
        ('{"task_id": "2", "executed": ["E"]}', "'E'"),
        ('{"task_id": "2", "executed": ["A", "A"]}', "second time"),
        ('{"task_id": "2", "executed": ["Z"]}', "no node"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_bad_sequence_names_its_line_and_nothing_is_written(
    tmp_path: Path, line: str, says: str
) -> None:
    tasks, sequences = files(
        tmp_path, [graph("1", INTRODUCTION), graph("2", {"A": ["E"]})], [done("1", "D")]
    )
    with sequences.open("a") as file:
        file.write(f"\n{line}\n")
    out = tmp_path / "out"
    told = omnidata("score", "omnibench", tasks, sequences, "--out", out, code=2)
    assert f"{sequences}:3" in told.stderr
    assert says in told.stderr
    assert told.stdout == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (graph("2", {"A": ["C"], "C": ["A"]}), "cycle"),
        (graph("1", {"A": ["C"]}), "already"),
        (task("2", {"A": ["C"]}, application={"A": "Word"}), "'C' has no application"),
        ({"nothing": 1}, "the row has nothing"),
    ],
)
def test_a_bad_task_is_named_and_nothing_is_written(
    tmp_path: Path, row: dict[str, Any], says: str
) -> None:
    given = files(tmp_path, [graph("1", INTRODUCTION), row], [done("1", "D")])
    told = omnidata("score", "omnibench", *given, "--out", tmp_path / "out", code=2)
    assert says in told.stderr
    assert "tasks.jsonl" in told.stderr
    assert not (tmp_path / "out").exists()


def test_the_subtasks_beside_the_tasks_tell_the_applications(tmp_path: Path) -> None:
    data = library(tmp_path / "data")
    sequences = write(tmp_path / "seq.jsonl", done("1", "A", "E"))
    results = as_json(omnidata("score", "omnibench", data, sequences, "--json"))
    assert results["overall"] == {"CR": 1.0, "LC": None}
    assert set(results["by"]["app"]) == {"PowerPoint", "Outlook"}


def test_whole_numbers_and_the_marks_of_windows_are_read(tmp_path: Path) -> None:
    dag = {"nodes": [1, 2], "edges": {"1": [2]}}
    row = task(7, dag, application={"1": "Word", "2": "Word"})
    for name, line in (("tasks", row), ("seq", {"task_id": 7, "executed": [1, 2]})):
        content = b"\xef\xbb\xbf" + json.dumps(line).encode() + b"\r\n\r\n"
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    given = (tmp_path / "tasks.jsonl", tmp_path / "seq.jsonl")
    results = as_json(omnidata("score", "omnibench", *given, "--json"))
    assert results["overall"] == {"CR": 1.0, "LC": 1.0}


def test_a_run_that_stops_early_may_be_as_consistent_as_a_whole_one(tmp_path: Path) -> None:
    given = files(tmp_path, [graph("2", COMPARISON)], [done("2", "D", "A", "C1", "B")])
    results = as_json(omnidata("score", "omnibench", *given, "--json"))
    assert results["overall"] == {"CR": 7 / 16, "LC": 1.0}


def test_a_file_without_sequences_has_no_score(tmp_path: Path) -> None:
    given = files(tmp_path, [graph("3", EXCEL)], [])
    for more in ((), ("--profile", "all"), ("--out", tmp_path / "out")):
        told = omnidata("score", "omnibench", *given, *more, code=1)
        assert "no task of the data has an answer" in told.stderr
        assert told.stdout == ""
    assert not (tmp_path / "out").exists()


def test_labels_of_capabilities_are_an_axis(tmp_path: Path) -> None:
    tasks = [graph("1", EXCEL, capability="Parallel Planning"), graph("2", EXCEL)]
    given = files(tmp_path, tasks, [done("1", *EXCEL["nodes"])])
    by = as_json(omnidata("score", "omnibench", *given, "--json"))["by"]
    assert by["capability"]["Parallel Planning"]["CR"] == 1.0


def test_other_data_and_wrong_options_are_refused(tmp_path: Path) -> None:
    tasks, sequences = files(tmp_path, [graph("3", EXCEL)], [done("3")])
    other = write(tmp_path / "other" / "ground.jsonl", ground())
    for arguments, says in (
        ([other, sequences], "these are rows of groundui"),
        ([tmp_path / "none", sequences], "no such file"),
        ([tasks, tmp_path / "none"], "cannot be opened"),
        ([tasks, sequences, "--profile", "x"], "omnibench-step, omnibench-paper"),
        ([tasks, sequences, "-T", "intent=on"], "this option is for answers of a model"),
        ([tasks, sequences, "--from", "lmms-eval"], "no trajectory with an action"),
        (
            [tasks, sequences, "--from", "lmms-eval", "--profile", "omnibench-paper"],
            "this option is for answers of a model",
        ),
        ([library(tmp_path / "lib") / "subtasks.jsonl", sequences], "no task"),
        ([tasks, sequences, "--out", tmp_path], "holds other files"),
    ):
        assert says in omnidata("score", "omnibench", *arguments, code=2).stderr


def test_a_models_answers_are_scored_step_by_step(tmp_path: Path) -> None:
    data, out = library(tmp_path / "data"), tmp_path / "run"
    run = ("evaluate", "omnibench", data, "--model", "baseline:oracle", "--out", out, "--json")
    made = as_json(omnidata(*run))
    assert (made["profile"], made["overall"]["EM"]) == ("omnibench-step", 1.0)
    again = as_json(omnidata("score", "omnibench", data, out, "--json"))
    assert again["overall"] == made["overall"]
    lines = as_json(omnidata("score", "omnibench", data, out / "predictions.jsonl", "--json"))
    assert lines["overall"] == made["overall"]
    tasks = data / "tasks.jsonl"
    told = omnidata("score", "omnibench", tasks, out / "predictions.jsonl", code=2)
    assert "the data have no trajectory" in told.stderr


def test_the_verbs_know_it(tmp_path: Path) -> None:
    data = library(tmp_path / "data")
    info = as_json(omnidata("info", "omnibench", data, "--json"))
    assert info["metadata"]["apps"]["PowerPoint"] == {"subtasks": 1, "tasks": 1}
    assert info["metadata"]["levels"]["instruction"] == {"easy": 1, "medium": 0, "hard": 0}
    assert info["metadata"]["orders"] == {"1": 1}
    shown = omnidata("info", data).stdout
    assert "2 subtasks (1 with an evaluation function), 1 task, " in shown
    assert "Complexity of the tasks, as in Table 2" in shown
    omnidata("validate", "omnibench", data, "--workers", "1")
    omnidata("convert", "omnibench", data, tmp_path / "parquet", "--embed")
    packed = as_json(omnidata("info", tmp_path / "parquet", "--json"))
    assert (packed["steps"], packed["metadata"]) == (5, {})
    sequences = write(tmp_path / "seq.jsonl", done("1", "A"))
    told = omnidata("score", "omnibench", tmp_path / "parquet", sequences, code=2)
    assert "has steps, but no task graph" in told.stderr
    omnidata(*EXPORT, "omnibench", data, tmp_path / "train", "--format", "llamafactory")
    listed = as_json(omnidata("info", "--json"))["tasks"]["omnibench"]
    assert listed["profiles"] == ["omnibench-step", "omnibench-paper", "omnibench-release"]


def test_tasks_alone_can_be_shown(tmp_path: Path) -> None:
    data, _ = files(tmp_path, [graph("1", INTRODUCTION), graph("2", COMPARISON)], [])
    shown = omnidata("info", "omnibench", data)
    assert "0 steps" in shown.stdout and "2 tasks" in shown.stdout
    assert "steps-absent" in shown.stderr


@pytest.mark.skipif(not CASES.is_file(), reason=NO_SHARED)
@pytest.mark.parametrize("profile", ["omnibench-paper", "omnibench-release"])
def test_all_of_the_sample_graphs_score_as_brute_force_does(tmp_path: Path, profile: str) -> None:
    cases = read_lines(CASES)
    tasks = [
        {"task_id": c["id"], "dag": c["dag"], "application": c["app"], "category": c["category"]}
        for c in cases
    ]
    given = files(tmp_path, tasks, [done(c["id"], *c["executed"]) for c in cases])
    omnidata("score", "omnibench", *given, "--out", tmp_path / "out", "--profile", profile)
    lines = read_lines(tmp_path / "out" / "scores.jsonl")
    for line, case in zip(lines, cases, strict=True):
        wanted = case["released"] if profile == "omnibench-release" else case
        for name in line.keys() & {"CR", "LC", "CS_agent", "CS_max", "completion", "coherence"}:
            assert line[name] == pytest.approx(wanted[name]), (case["id"], name)


def logged(own: str | int, *passed: str, **changes: Any) -> dict[str, Any]:
    return {"task_id": own, "action": {"function": "click_input"}, "passed": list(passed)} | changes


def walked(*arguments: str | Path) -> Any:
    return as_json(omnidata("score", "omnibench", *arguments, "--json"))


def test_a_log_of_actions_scores_as_the_sequences_that_it_comes_to(tmp_path: Path) -> None:
    """Tasks alternate; what passes while it waits, and what comes after the end, does not count."""
    tasks = [graph("1", INTRODUCTION), graph("2", EXCEL), graph("3", EXCEL), graph("4", EXCEL)]
    first, second = EXCEL["nodes"]
    log = [
        logged("1", "D"), logged(2, second), logged("1", "A"), logged(2, first),
        logged("1", "A", "C"), logged(2, second), logged(2),
        logged("3", first, status="FINISH"), logged("3", second), logged("elsewhere"),
    ]  # fmt: skip
    given, actions = files(tmp_path, tasks, log)
    out = tmp_path / "out"
    found = walked(given, "--actions", actions, "--out", out)
    sequences = [done("1", "D", "A", "C"), done("2", first, second), done("3", first)]
    same = walked(given, write(tmp_path / "done.jsonl", *sequences))
    assert (found["overall"], found["by"]) == (same["overall"], same["by"])
    assert found["counts"] == same["counts"] | {
        "unknown_tasks": 1, "actions_after_end": 2, "passed_early": 1,
    }  # fmt: skip
    assert found["outcomes"] == {"ok": 3, "missing": 1}
    assert found["rollouts"]["endings"] == {"completed": 1, "finished": 1, "unknown": 1}
    assert found["rollouts"]["within"] == pytest.approx([5 / 36, 10 / 36, 5 / 9])
    lines = {line["sample_id"]: line for line in read_lines(out / "scores.jsonl")}
    assert lines["1"]["parsed"] == {"executed": ["D", "A", "C"], "at": [1, 2, 3]}
    assert (lines["2"]["ending"], lines["2"]["turns"]) == ("completed", 3)
    assert "ending" not in lines["4"]
    assert "Completed" in omnidata("report", out).stdout
    released = walked(given, "--actions", actions, "--profile", "omnibench-release")
    assert released["profile"] == "omnibench-release"


def test_coverage_within_so_many_turns_counts_each_subtask_from_its_action(tmp_path: Path) -> None:
    """A subtask of depth 1 of 3 is done at once, and then nothing for 20 actions."""
    dag = {"nodes": ["a", "b"], "edges": {"a": ["b"]}}
    given, actions = files(tmp_path, [graph("1", dag)], [logged("1", "a"), *[logged("1")] * 20])
    out = tmp_path / "out"
    for profile in ("omnibench-paper", "omnibench-release"):
        found = walked(given, "--actions", actions, "--out", out, "--profile", profile)["rollouts"]
        assert found["endings"] == {"no_progress": 1}
        assert found["within"] == pytest.approx([1 / 3] * 21)
        assert found["area"] == pytest.approx(1 / 3)
    told = omnidata("report", out, "--format", "csv").stdout
    curve = [line for line in told.splitlines() if "SR_within_1," in line]
    assert curve and "0.333" in curve[0]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"task_id": "1", "executed": []}, "the line has no valid action"),
        (logged("1", "Z"), "has no node 'Z'"),
        ({"task_id": "1", "passed": "A"}, "the line has no valid action"),
    ],
)
def test_a_bad_line_of_a_log_is_named(tmp_path: Path, line: dict[str, Any], says: str) -> None:
    given, actions = files(tmp_path, [graph("1", INTRODUCTION)], [logged("1", "A"), line])
    told = omnidata("score", "omnibench", given, "--actions", actions, code=2).stderr
    assert says in " ".join(told.split())
    assert "seq.jsonl:2" in told


def test_a_log_is_for_benchmarks_with_an_evaluator(tmp_path: Path) -> None:
    given, actions = files(tmp_path, [graph("1", INTRODUCTION)], [logged("1")])
    for arguments, says in (
        (("omnibench", given, actions, "--actions", actions), "exclude each other"),
        (("omnigui", given, "--actions", actions), "has no evaluator of actions"),
        (("osworld", given, "--actions", actions), "has no evaluator of actions"),
        (
            ("omnibench", given, "--actions", actions, "--profile", "omnibench-step"),
            "does not score",
        ),
        (("omnibench", given, "--actions", tmp_path / "none"), "none"),
    ):
        assert says in " ".join(omnidata("score", *arguments, code=2).stderr.split())
