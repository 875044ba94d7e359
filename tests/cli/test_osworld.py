"""`omnidata score osworld`: success rates of a tree of results, and the other verbs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.loaders.builders import load_dataset
from omnidata.media import probe
from omnidata.tasks import get_task
from omnidata.tasks.osworld.load import dump
from tests.cli.running import EXPORT, as_json, omnidata
from tests.loaders.osworld import RUN, line, plain, recording, results, rollout
from tests.trees import read_lines

OTHER = "computer_13/som/agent"


def scored(*arguments: str | Path, code: int = 0) -> Any:
    return as_json(omnidata("score", "osworld", *arguments, "--json", code=code))


def test_a_tree_is_scored_as_computed_by_hand_without_media(tmp_path: Path) -> None:
    """OS: 1, 0, one unfinished. VLC: 0.5. Workflow: "False" is 0, "True" is 1."""
    data = results(
        tmp_path / "tree",
        RUN,
        {"os": ["1.0\n", "0.0", None], "vlc": ["0.5\n"], "multi_apps": ["False", "True"]},
    )
    out = tmp_path / "out"
    found = scored(data, "--out", out)
    assert found["overall"] == {"SR_finished": 0.5, "SR_all": 2.5 / 369}
    assert (found["task"], found["profile"]) == ("osworld", "osworld")
    assert found["agent"] == RUN
    assert found["by"]["group"]["Workflow"]["SR_finished"] == 0.5
    assert found["by"]["domain"]["os"]["SR_all"] == pytest.approx(1 / 24)
    assert found["by"]["group"]["Office"]["SR_finished"] is None, "a domain that is not there"
    assert found["counts"] == {
        "tasks": 369, "finished": 5, "unfinished": 1, "absent": 363, "unknown_tasks": 0,
    }  # fmt: skip
    assert found["outcomes"] == {"ok": 5, "missing": 364}
    assert found == json.loads((out / "results.json").read_text())
    lines = {row["sample_id"]: row for row in read_lines(out / "scores.jsonl")}
    assert lines["multi_apps/multi_apps-0"]["score"] == 0.0
    assert lines["os/os-2"] == {
        "sample_id": "os/os-2", "outcome": "missing", "profile": "osworld", "score": None,
        "SR_finished": None, "domain": "os", "parsed": {f"{RUN}/os/os-2": None},
    }  # fmt: skip
    table = omnidata("score", "osworld", data).stdout
    assert "SR_finished" in table
    assert "domain: libreoffice_writer" in table


def test_a_tree_is_scored_by_the_sets_that_its_domains_are_of(tmp_path: Path) -> None:
    tree, every = tmp_path / "tree", ("--profile", "all")
    results(tree, RUN, {"os": ["1.0"]})
    results(tree, OTHER, {"os": ["0.0"]})
    found = scored(tree, *every, "--out", tmp_path / "out")
    assert {name: [*agents] for name, agents in found.items()} == {"osworld": [OTHER, RUN]}
    told = omnidata("score", "osworld", tree, *every, "--out", tmp_path / "out").stderr
    assert (
        "not scored by osworld-windows: no example belongs to a domain of osworld-windows" in told
    )
    assert len([*(tmp_path / "out" / "osworld").iterdir()]) == 2
    (tmp_path / "out" / "osworld" / "mine.txt").write_text("")
    again = omnidata("score", "osworld", tree, *every, "--out", tmp_path / "out", code=2).stderr
    assert "the folder holds other files" in again


def test_several_agents_are_never_pooled(tmp_path: Path) -> None:
    results(tmp_path, RUN, {"os": ["1.0"]})
    results(tmp_path, OTHER, {"os": ["0.0"], "gimp": ["1.0"]})
    found = scored(tmp_path)
    assert list(found) == [OTHER, RUN]
    assert {agent: own["overall"] for agent, own in found.items()} == {
        RUN: {"SR_finished": 1.0, "SR_all": 1 / 369},
        OTHER: {"SR_finished": 0.5, "SR_all": 1 / 369},
    }
    assert found[OTHER] == scored(tmp_path / OTHER), "whether others lie beside it or not"
    table = omnidata("score", "osworld", tmp_path).stdout
    assert f"osworld by osworld (%): {RUN}" in table
    assert f"osworld by osworld (%): {OTHER}" in table


def test_agents_of_one_tree_are_ranked_and_compared_by_task(tmp_path: Path) -> None:
    """Of twelve tasks that both finished the agents agree on five; the other agent is better."""
    tree, out = tmp_path / "tree", tmp_path / "out"
    results(tree, RUN, {"os": ["1.0"] * 3 + ["0.0"] * 7, "vlc": ["0.5", "1.0", None]})
    results(tree, OTHER, {"os": ["0.0"] + ["1.0"] * 9, "vlc": ["1.0", "1.0", "1.0"]})
    names = ["computer_13-som-agent", "pyautogui-screenshot-agent"]
    for _ in range(2):  # scores of the same agents are replaced
        scored(tree, "--out", out)
        assert sorted(path.name for path in out.iterdir()) == names
    other, own = (out / name for name in names)
    ids = [row["sample_id"] for row in read_lines(own / "scores.jsonl")]
    assert ids == [row["sample_id"] for row in read_lines(other / "scores.jsonl")]
    assert {row["sample_id"] for row in read_lines(own / "scores.jsonl")} >= {
        "os/os-0",
        "vlc/vlc-2",
    }

    rows = as_json(omnidata("report", own, other, "--format", "json"))
    told = json.dumps(rows)
    assert all(name in told for name in names)
    found = as_json(omnidata("compare", own, other, "--json"))
    assert found["steps"] == {
        "compared": 12, "only_a": 0, "only_b": 1, "neither": 0, "unjudged": 0,
    }  # fmt: skip
    rates = found["slices"][0]["metrics"]["SR_finished"]
    assert (rates["a"], rates["b"]) == (4.5 / 12, 11 / 12)
    assert (found["slices"][0]["mcnemar"]["a_only"], found["slices"][0]["mcnemar"]["b_only"]) == (
        1,
        8,
    )
    flips = {flip["sample_id"]: flip["direction"] for flip in found["flips"]}
    assert flips["os/os-0"] == "right->wrong"
    assert flips["vlc/vlc-0"] == "wrong->right"
    assert "1 task that only B has is left out" in omnidata("compare", own, other).stderr


@pytest.mark.parametrize("text", ["no score", None])
def test_an_agent_without_any_result_has_no_rate(tmp_path: Path, text: str | None) -> None:
    """Neither alone nor beside another; with one result it has."""
    data = results(tmp_path, RUN, {"os": [text, text]})
    said = " ".join(omnidata("score", "osworld", data, code=2).stderr.split())
    assert f"{RUN} has no result that can be used" in said
    assert ("result.txt: it is not a score" in said) is (text is not None)
    results(tmp_path, OTHER, {"os": ["1.0"]})
    assert RUN in omnidata("score", "osworld", data, code=2).stderr
    (tmp_path / RUN / "os" / "os-0" / "result.txt").write_text("0.0")
    assert scored(data)[RUN]["overall"]["SR_finished"] == 0.0


def test_folders_of_agents_hold_nothing_else(tmp_path: Path) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out"
    results(tree, RUN, {"os": ["1.0"]})
    scored(tree, "--out", out)
    results(tree, OTHER, {"os": ["0.0"]})
    assert "holds other files" in omnidata("score", "osworld", tree, "--out", out, code=2).stderr
    for place in ("a-b", "a/b", "A+b", "a--b", "日本", "中国", "-", "x" * 200, "x" * 199):
        results(tree, f"pyautogui/screenshot/{place}", {"os": ["1.0"]})
    agents = scored(tree, "--out", tmp_path / "all")
    places = list((tmp_path / "all").iterdir())
    assert len({path.name.lower() for path in places}) == len(agents) == 11
    for path in places:
        assert path.name.isascii() and path.name[0].isalnum() and len(path.name) < 120
    told = {path.name: json.loads((path / "results.json").read_text())["agent"] for path in places}
    assert sorted(told.values()) == sorted(agents)
    assert told["pyautogui-screenshot-A+b"] == "pyautogui/screenshot/A+b"


@pytest.mark.parametrize("places", [("gpt", "cogagent"), (f"1/{RUN}", f"2/{RUN}")])
def test_runs_that_only_folders_tell_apart_stay_two(
    tmp_path: Path, places: tuple[str, str]
) -> None:
    results(tmp_path, places[0], {"os": ["1.0", "1.0"]})
    results(tmp_path, places[1], {"os": ["0.0", None]})
    found = scored(tmp_path)
    assert {name: own["overall"] for name, own in found.items()} == {
        places[0]: {"SR_finished": 1.0, "SR_all": 2 / 369},
        places[1]: {"SR_finished": 0.0, "SR_all": 0.0},
    }


@pytest.mark.parametrize("bad", ["nan", "inf", "", "yes", "2.0", "__import__('os')", "1" * 5000])
def test_a_result_that_is_no_score_is_an_error_finding_and_unfinished(
    tmp_path: Path, bad: str
) -> None:
    data = results(tmp_path, RUN, {"os": ["1.0", bad]})
    done = omnidata("score", "osworld", data, "--json", code=0)
    assert as_json(done)["overall"]["SR_finished"] == 1.0
    assert as_json(done)["counts"]["unfinished"] == 1
    assert "error [result-broken]" in done.stderr
    assert omnidata("score", "osworld", data, "--strict", code=2)


def test_the_mean_over_instructions_is_the_examples_score(tmp_path: Path) -> None:
    for number, text in enumerate(("1.0", "0.0", None)):
        rollout(tmp_path, line(), place=f"{RUN}/os/e1/instruction_{number}", result=text)
    found = scored(tmp_path)
    assert found["counts"]["finished"] == 1
    assert found["overall"] == {"SR_finished": 0.5, "SR_all": 0.5 / 369}


SUITE = {"notepad": 3, "clock": 3, "settings": 3, "chrome": 3, "msedge": 3, "files": 3, "paint": 3}
"""Another suite of which one domain is called as one of OSWorld's."""


def suite(root: Path, run: str = RUN, text: str = "1.0") -> Path:
    return results(root, run, {domain: [text] * size for domain, size in SUITE.items()})


def listed(folder: Path, tasks: Mapping[str, Sequence[str]], name: str = "test_all.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(tasks))
    return folder / name


def example(folder: Path, domain: str, own: str, **row: Any) -> None:
    place = folder / "evaluation_examples" / "examples" / domain
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{own}.json").write_text(json.dumps({"id": own, "instruction": "Go", **row}))


def test_another_suite_is_scored_over_its_own_tasks(tmp_path: Path) -> None:
    done = omnidata("score", "osworld", suite(tmp_path / "tree"), "--json")
    found = as_json(done)
    assert found["overall"] == {"SR_finished": 1.0, "SR_all": 1.0}
    assert found["counts"] == {
        "tasks": 21, "finished": 21, "unfinished": 0, "absent": 0, "unknown_tasks": 0,
    }  # fmt: skip
    by = found["by"]
    assert {name: own["tasks"] for name, own in by["domain"].items()} == SUITE
    assert not by["group"] and "feasibility" not in by, "nobody says which of them cannot be done"
    assert "domain-unknown" in done.stderr and "the 21 tasks that agents tried" in done.stderr
    assert "skipped, because" not in done.stderr
    every = scored(tmp_path / "tree", "--profile", "all")
    assert list(every) == ["osworld"], "its domains are none of the Windows set's"
    assert "no example belongs to a domain" in omnidata(
        "score", "osworld", tmp_path / "tree", "--profile", "osworld-windows", code=2
    ).stderr  # fmt: skip


def test_a_trials_number_above_the_domains_is_no_domain(tmp_path: Path) -> None:
    """WindowsAgentArena writes <action_space>/<observation_type>/<model>/<trial>/<domain>/<id>."""
    found = scored(suite(tmp_path, f"{RUN}/0"))
    assert found["agent"] == f"{RUN}/0"
    assert {name: own["tasks"] for name, own in found["by"]["domain"].items()} == SUITE
    rollout(tmp_path / "tree", line(1, "WAIT", instruction="Wait"), place=f"{RUN}/0/os/e1")
    (step,) = get_task("osworld").load(tmp_path / "tree").steps
    assert [step.tags[name] for name in ("action_space", "observation_type", "model")] == (
        RUN.split("/")
    )


def test_agents_of_another_suite_are_scored_over_the_tasks_of_all_of_them(tmp_path: Path) -> None:
    results(tmp_path, RUN, {"notepad": ["1.0", "0.0"], "chrome": [None]})
    results(tmp_path, OTHER, {"notepad": ["1.0"], "clock": ["1.0"]})
    found = scored(tmp_path)
    assert {agent: own["overall"]["SR_all"] for agent, own in found.items()} == {
        RUN: 1 / 4, OTHER: 2 / 4,
    }  # fmt: skip
    assert [own["counts"]["tasks"] for own in found.values()] == [4, 4]


@pytest.mark.parametrize("place", ["evaluation_examples", "evaluation_examples_windows", "."])
def test_a_list_in_the_tree_says_the_tasks(tmp_path: Path, place: str) -> None:
    tree = suite(tmp_path)
    tasks = {domain: [f"{domain}-{n}" for n in range(4)] for domain in SUITE}
    path = listed(tree / place, tasks)
    (tree / RUN / "clock" / "clock-3").mkdir()  # which was begun
    (tree / "evaluation_examples" / "settings" / "proxy").mkdir(parents=True)  # no rollout
    done = omnidata("score", "osworld", tree, "--json")
    assert as_json(done)["overall"]["SR_all"] == 21 / 28
    assert (as_json(done)["counts"]["unfinished"], as_json(done)["counts"]["absent"]) == (1, 6)
    assert "domain-unknown" not in done.stderr
    rollout(tree, line(), place=f"{RUN}/notepad/7", result="0")
    numbers: Any = {"notepad": [7, 8]}
    path.write_text(json.dumps(numbers))
    assert scored(tree)["overall"] == {"SR_finished": 0.0, "SR_all": 0.0}
    path.write_text("[]")
    assert "it is not a list of tasks" in omnidata("score", "osworld", tree, code=2).stderr
    assert as_json(omnidata("info", "osworld", tree, "--json"))["tasks"] == 23


def test_a_list_that_the_user_names_says_the_tasks(tmp_path: Path) -> None:
    """What was tried beside it is left out: a part of OSWorld is scored over that part."""
    tree = results(tmp_path / "tree", RUN, {"os": ["1.0", "0.0", "1.0"], "vlc": ["1.0"]})
    folder = tmp_path / "evaluation_examples"
    small = listed(folder, {"os": ["os-0", "os-1"], "gimp": ["gimp-0"]}, "test_small.json")
    listed(folder, {"os": ["os-0", "os-1", "os-2", "os-3"], "vlc": ["vlc-0"]})
    done = omnidata("score", "osworld", tree, "-T", f"examples={small}", "--json")
    found = as_json(done)
    assert found["overall"] == {"SR_finished": 0.5, "SR_all": 1 / 3}
    assert found["counts"] == {
        "tasks": 3, "finished": 2, "unfinished": 0, "absent": 1, "unknown_tasks": 2,
    }  # fmt: skip
    assert "task-unlisted" in done.stderr
    assert [*found["by"]["group"]] == ["OS", "Professional"]
    assert [one["tasks"] for one in found["by"]["feasibility"].values()] == [3]
    found = scored(tree, "-T", f"examples={folder}")
    assert found["overall"]["SR_all"] == 3 / 5
    for value, says in (
        (tmp_path / "none", "no such file"),
        (listed(tmp_path / "other", {"os": ["x"]}), "one of the listed"),
        (listed(tmp_path / "odd", {"os": "x"}), "not a list of tasks"),
        (listed(tmp_path / "null", {"os": ["x", ""]}), "not a list of tasks"),
        (listed(tmp_path / "empty", {}), "has no task"),
    ):
        told = omnidata("score", "osworld", tree, "-T", f"examples={value}", code=2).stderr
        assert says in " ".join(told.split())


def test_examples_say_what_another_suites_tasks_are(tmp_path: Path) -> None:
    tree = results(tmp_path / "tree", RUN, {"notepad": ["1.0"], "clock": ["0.0"]})
    for domain, own, func in (
        ("notepad", "notepad-0", "infeasible"),
        ("clock", "clock-0", "exact"),
        ("clock", "clock-1", "exact"),
    ):
        example(tree, domain, own, evaluator={"func": func}, related_apps=[domain, "x"][: len(own)])
    done = omnidata("score", "osworld", tree, "--json")
    found = as_json(done)
    assert found["overall"]["SR_all"] == 1 / 3
    assert "domain-unknown" not in done.stderr
    can = found["by"]["feasibility"]
    assert {name: (one["tasks"], one["SR_all"]) for name, one in can.items()} == {
        "feasible": (2, 0.0), "infeasible": (1, 1.0),
    }  # fmt: skip
    assert found["by"]["workflow"]["several apps"]["tasks"] == 3
    assert found["by"]["apps"]["2"]["SR_all"] == 1 / 3, "the examples say how many need two"
    apart = results(tmp_path / "apart", RUN, {"os": ["1.0"]})
    example(tmp_path, "os", "os-0")
    example(tmp_path, "os", "os-1")
    named = scored(apart, "-T", f"examples={tmp_path / 'evaluation_examples' / 'examples'}")
    assert named["overall"]["SR_all"] == 1 / 2


def test_examples_with_a_folder_for_each_task_are_read(tmp_path: Path) -> None:
    """Spider2-V has the files of a task beside it: examples/<domain>/<id>/<id>.json."""
    tree = results(tmp_path / "tree", RUN, {"dbt": ["1.0"], "airbyte": ["0.0"]})
    for domain, own in (("dbt", "dbt-0"), ("airbyte", "airbyte-0"), ("airbyte", "airbyte-1")):
        example(tree, f"{domain}/{own}", own, related_apps=[domain, "chromium"])
        example(tree, f"{domain}/{own}", "connection")  # which is no task
    found = scored(tree)
    assert found["overall"]["SR_all"] == 1 / 3
    assert found["by"]["apps"]["2"]["tasks"] == 3
    fingerprint = get_task("osworld").benchmark.fingerprint
    before = fingerprint(tree)
    example(tree, "dbt/dbt-0", "dbt-0", instruction="Stop")
    assert fingerprint(tree) != before


def test_examples_that_lie_elsewhere_through_a_link_are_no_tasks(tmp_path: Path) -> None:
    tree = results(tmp_path / "tree", RUN, {"notepad": ["1.0"]})
    example(tmp_path, "keys", "mine")
    folder = tree / "evaluation_examples" / "examples"
    folder.mkdir(parents=True)
    (folder / "notepad").symlink_to(tmp_path / "evaluation_examples" / "examples" / "keys")
    assert scored(tree)["counts"]["tasks"] == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_text_of_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    """As PowerShell's `>` writes it."""
    tree = results(tmp_path / "tree", RUN, {"notepad": ["1.0", "0.0"], "clock": ["1.0"]})
    tasks = {"notepad": ["notepad-0", "notepad-1", "notepad-2"], "clock": ["clock-0"]}
    place = listed(tree, tasks)
    example(tree, "clock", "clock-0", evaluator={"func": "infeasible"})
    for path in (place, *tree.rglob("result.txt"), *tree.rglob("clock-0.json")):
        path.write_text(path.read_text(), encoding=encoding, newline="\r\n")
    found = scored(tree)
    assert found["overall"] == {"SR_finished": 2 / 3, "SR_all": 2 / 4}
    assert found["by"]["feasibility"]["infeasible"]["tasks"] == 1


def test_a_rollout_inside_anothers_folder_is_no_second_agent(tmp_path: Path) -> None:
    results(tmp_path, RUN, {"os": ["1.0", "0.0"], "notes": ["1.0"]})
    for place, text in (
        ("os/os-0/vlc/v", "1.0"),  # an example of its own
        ("notes/notes-0/cache/os/o", "0.0"),
        ("os/os-1/old", "1.0"),  # copies that somebody kept
        ("os/os-1/backup/os/os-1", "1.0"),
        ("os/os-1/attempt_2", "1.0"),
    ):
        rollout(tmp_path, line(), place=f"{RUN}/{place}", result=text, pictures=False)
    done = omnidata("score", "osworld", tmp_path, "--json")
    found = as_json(done)
    assert found["agent"] == RUN
    assert (found["counts"]["tasks"], found["counts"]["finished"]) == (5, 5)
    assert found["overall"]["SR_finished"] == pytest.approx((1 + 0.5 + 1 + 1 + 0) / 5)
    assert "2 rollout-inside" in done.stderr


def test_a_result_above_the_examples_is_none_of_them(tmp_path: Path) -> None:
    results(tmp_path, RUN, {"os": ["1.0", "0.0"]})
    (tmp_path / RUN / "result.txt").write_text("0.5")
    done = omnidata("score", "osworld", tmp_path, "--json")
    assert as_json(done)["agent"] == RUN
    assert as_json(done)["overall"]["SR_all"] == 1 / 369
    assert "result-outside" in done.stderr


def test_published_rates_beside_ours_say_over_how_many_tasks_each_is(tmp_path: Path) -> None:
    omnidata("score", "osworld", suite(tmp_path / "tree"), "--out", tmp_path / "out")
    told = omnidata("report", tmp_path / "out", "--published").stdout
    assert "Published on 369 tasks; the runs here on 21." in told


def test_more_examples_than_the_set_has_are_a_finding(tmp_path: Path) -> None:
    data = results(tmp_path, RUN, {"thunderbird": ["0.0"] * 16})
    assert "examples-many" in omnidata("score", "osworld", data).stderr


def test_the_windows_set_is_a_profile_of_its_own(tmp_path: Path) -> None:
    data = results(tmp_path, RUN, {"excel": ["1.0"], "multi_app": ["0.0"]})
    found = scored(data, "--profile", "osworld-windows")
    assert found["overall"] == {"SR_finished": 0.5, "SR_all": 1 / 43}
    assert "osworld-windows" in omnidata("score", "osworld", data, code=2).stderr


def test_wrong_usage_is_explained(tmp_path: Path) -> None:
    data = results(tmp_path / "tree", RUN, {"os": ["1.0"]})
    answers = tmp_path / "a.jsonl"
    answers.write_text("")
    for arguments, says in (
        ((data, answers, "--profile", "osworld"), "takes no predictions"),
        ((data, "--profile", "osworld-step"), "needs predictions"),
        ((data, "-T", "history=none"), "this option is for answers of a model"),
        ((tmp_path / "none",), "no such file or folder"),
    ):
        assert says in omnidata("score", "osworld", *arguments, code=2).stderr
    assert "no predictions are named" in omnidata("score", "omnibench", data, code=2).stderr
    assert "no predictions are named" in omnidata("score", "omnigui", data, code=2).stderr


def test_every_verb_takes_the_tree(tmp_path: Path) -> None:
    data = tmp_path / "tree"
    rollout(data, *(line(n, instruction="Go") for n in (1, 2)), film=recording((11.0,), 25.0))
    assert (
        as_json(omnidata("validate", "osworld", data, "--json", "--workers", "1"))["summary"][
            "errors"
        ]
        == 0
    )
    run = tmp_path / "run"
    asked = ("evaluate", "osworld", data, "--model", "baseline:oracle", "--out", run, "--json")
    assert as_json(omnidata(*asked))["overall"]["EM"] == 1.0
    assert scored(data, run)["overall"]["EM"] == 1.0
    assert scored(data, run / "predictions.jsonl")["profile"] == "osworld-step"
    assert scored(data)["profile"] == "osworld"
    assert as_json(omnidata("audit", "osworld", data, "--json"))
    out = tmp_path / "train"
    omnidata(*EXPORT, "osworld", data, out, "--format", "llamafactory", "--json")
    answers = [row["messages"][-1]["content"] for row in read_lines(out / "train.jsonl")]
    assert answers == ["```python\npyautogui.click(96, 54)\n```"] * 2


def test_a_tree_goes_into_parquet_and_back_with_its_clips(tmp_path: Path) -> None:
    data, out = plain(tmp_path / "tree"), tmp_path / "parquet"
    made = get_task("osworld").load(data)
    linked = omnidata("convert", "osworld", data, tmp_path / "no", "--link", code=2)
    assert "cannot be linked" in linked.stderr and "--embed" in linked.stderr
    omnidata("convert", "osworld", data, out, "--embed")
    shutil.rmtree(data)
    back = get_task("osworld").load(out)
    assert dump(back.steps) == dump(made.steps)
    for one, other in zip(back.steps, made.steps, strict=True):
        assert (one.sample_id, one.action, one.history) == (
            other.sample_id, other.action, other.history,
        )  # fmt: skip
        assert (one.tags, one.source, one.screen) == (other.tags, other.source, other.screen)
    clip = back.steps[0].media["video_after"]
    assert clip is not None
    assert probe(clip).seconds == 10
    assert "a Parquet repository has steps" in omnidata("score", "osworld", out, code=2).stderr


def test_info_shows_results_without_a_single_turn(tmp_path: Path) -> None:
    data = results(tmp_path, RUN, {"os": ["1.0", "0.5", "0", None], "vlc": ["nan"]})
    done = omnidata("info", "osworld", data, "--json", code=1)
    assert as_json(done)["rollouts"] == {
        "os": {"success": 1, "partial": 1, "failure": 1, "unfinished": 1},
        "vlc": {"success": 0, "partial": 0, "failure": 0, "unfinished": 1},
    }
    told = omnidata("info", "osworld", data, code=1).stdout
    assert "5 rollouts, 3 finished (60.0 %)" in told


def test_info_counts_a_task_once_whoever_tried_it(tmp_path: Path) -> None:
    for run in (RUN, OTHER, f"attempt_2/{RUN}"):
        results(tmp_path, run, {"os": ["1.0"] * 3, "notes": ["0"] * 5})
    done = as_json(omnidata("info", "osworld", tmp_path, "--json"))
    assert (done["tasks"], done["tasks_by_domain"]) == (8, {"notes": 5, "os": 3})
    assert sum(sum(found.values()) for found in done["rollouts"].values()) == 24
    told = omnidata("info", "osworld", tmp_path).stdout
    assert "8 tasks, 24 rollouts, 24 finished (100.0 %)" in told


def test_the_tree_is_a_dataset_of_hugging_face(tmp_path: Path) -> None:
    data = plain(tmp_path / "tree")
    rows = load_dataset("osworld", data, "daily", split="test", cache_dir=tmp_path / "cache")
    assert [row["sample_id"] for row in rows] == [f"{RUN}/chrome/e1/{n}" for n in range(3)]
    assert rows[0]["screenshot"]["bytes"].startswith(b"\x89PNG"), "cut out of the recording"
    assert rows[1]["screenshot"]["path"].endswith("step_1_20240501@120010.png")
    assert rows[0]["video_after"]["bytes"][4:8] == b"ftyp"
