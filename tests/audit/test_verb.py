"""`omnidata audit` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata.tasks import get_task
from tests.audit.planted import WORD, rows
from tests.cli.running import as_json, omnidata
from tests.loaders.agentstudio import REAL, TASKS, TaskName
from tests.tasks.scored import scored
from tests.trees import NO_SHARED, SHARED, row, write_app, write_lines

real = pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "leaky.jsonl", rows("last part", 1.0, count=60, seed=5))


def rules(found: dict[str, Any]) -> dict[str, float]:
    return {rule["name"]: rule["metric"] for rule in found["rules"]}


def test_a_leak_is_named_with_exit_code_1_and_no_leak_is_0(tmp_path: Path) -> None:
    clean = write_lines(tmp_path / "clean.jsonl", rows("none", 0.5, count=60, seed=5))
    assert "no leak found" in omnidata("audit", "criticbench", clean).stdout
    leaky = write_lines(tmp_path / "leaky.jsonl", rows("word", 0.75, count=200, seed=5))
    done = omnidata("audit", "criticbench", leaky, code=1)
    assert "LEAK" in done.stdout
    assert f'has "{WORD}" <= 0.50' in done.stdout
    assert "class: baseline always-true" in done.stdout
    assert "class: baseline always-false" in done.stdout
    assert "exceeds the best published accuracy" in done.stdout
    assert "on 350 other steps" in done.stderr


def test_the_option_and_the_profile_are_those_asked_for(leaky: Path) -> None:
    options = ("--profile", "agentstudio-release", "-T", "symmetric=true", "--seed", "3", "--json")
    found = as_json(omnidata("audit", "criticbench", leaky, *options))
    assert found["profile"] == "agentstudio-release"
    assert found["options"]["symmetric"] == "true"
    assert not found["leak"]
    assert found["published"] is None
    own = ("--profile", "agentstudio-paper", "-T", "symmetric=true", "--json")
    found = as_json(omnidata("audit", "criticbench", leaky, *own))
    assert found["published"]["metrics"]["accuracy"]["score"] == 0.714


def test_published_scores_of_other_rules_are_not_shown(leaky: Path) -> None:
    released = ("--profile", "agentstudio-release", "-T", "symmetric=true")
    done = omnidata("audit", "criticbench", leaky, *released)
    assert "best published" not in done.stdout
    assert "Fix: add --profile agentstudio-paper" in done.stderr


def test_omniguis_published_scores_stand_beside_the_released_rules_alone(tmp_path: Path) -> None:
    """Too few steps to learn from."""
    data = write_app(tmp_path / "TED", [row(f"T{number}") for number in range(3)])
    asked = ("audit", "omnigui", data, "--json", "--profile")
    assert as_json(omnidata(*asked, "omnigui-paper"))["published"] is None
    found = as_json(omnidata(*asked, "omnigui-release"))["published"]
    assert found["metrics"]["GP"]["score"] == 0.464


def test_the_report_is_the_same_whoever_learns_from_the_shuffles(tmp_path: Path) -> None:
    """Data without a leak, where some shuffles are drawn before one does as well."""
    data = write_lines(tmp_path / "rows.jsonl", rows("none", 0.5, count=60, seed=9))
    command = ("audit", "criticbench", data, "--json")
    alone = as_json(omnidata(*command))
    assert 10 < alone["chance"]["shuffles"] < 40
    assert as_json(omnidata(*command, "--workers", "2")) == alone


def test_an_unknown_profile_is_bad_usage(leaky: Path) -> None:
    done = omnidata("audit", "criticbench", leaky, "--profile", "no", code=2)
    assert "one of agentstudio-paper" in done.stderr


def test_steps_of_an_episode_are_told_apart_by_their_position(sample: Path) -> None:
    found = as_json(omnidata("audit", "omnigui", sample, "--json", code=1))
    assert found["learned"] not in {"baseline majority", found["unlearned"]}
    assert found["leak"]
    names = rules(found)
    assert names[found["learned"]] > names["baseline majority"] + 0.1
    assert {"lines", "characters"} & found["carriers"].keys()


@pytest.mark.parametrize("name", ["omnigui", *TASKS])
def test_published_scores_are_of_columns_that_a_profile_has(name: str) -> None:
    task = get_task(name)
    found = task.benchmark.paper.published().best(task.options)
    assert found is not None
    assert list(found.metrics) == list(task.profiles[task.default_profile].columns)


@real
@pytest.mark.parametrize("name", TASKS)
def test_a_profiles_first_value_is_that_of_its_first_column(name: TaskName) -> None:
    task = get_task(name)
    steps = task.load(REAL[name], check_media=False).steps
    rule = task.baseline(task.baselines[1], steps, {})
    for profile in task.profiles.values():
        values = [profile.judge(step, rule(step)).values[0] for step in steps]
        table = scored(task, steps, map(rule, steps), profile.name)
        mean = float(np.nanmean(np.array(values, dtype=np.float64)))
        assert table["overall"][next(iter(profile.columns))] == pytest.approx(mean)


@real
def test_criticbench_is_passed_blind() -> None:
    found = as_json(omnidata("audit", "criticbench", REAL["criticbench"], "--json", code=1))
    scores = rules(found)
    assert found["leak"]
    assert scores["kind of part 2 from the end, alone"] == pytest.approx(270 / 350)
    assert scores[found["learned"]] >= 0.77
    assert scores[found["learned"]] > found["published"]["metrics"]["accuracy"]["score"]


@real
def test_a_symmetric_criticbench_leaves_no_leak() -> None:
    found = as_json(
        omnidata("audit", "criticbench", REAL["criticbench"], "-T", "symmetric=true", "--json")
    )
    assert not found["leak"]
    assert rules(found)[found["learned"]] < 0.62


@real
def test_groundui_has_a_floor_of_3_6_percent() -> None:
    found = as_json(omnidata("audit", "groundui", REAL["groundui"], "--json"))
    assert rules(found)["baseline center"] == pytest.approx(0.036)
    assert rules(found)["baseline center"] <= rules(found)[found["unlearned"]] < 0.06


@real
def test_constants_of_idm_are_scored() -> None:
    found = as_json(omnidata("audit", "idm-single", REAL["idm-single"], "--json"))
    assert rules(found)["baseline majority"] == pytest.approx(118 / 350)
    assert rules(found)["always Answer: A"] == pytest.approx(75 / 350)
    assert json.dumps(found).count("NaN") == 0


@real
def test_the_windows_length_of_idm_multiple_is_a_cue() -> None:
    found = as_json(omnidata("audit", "idm-multiple", REAL["idm-multiple"], "--json", code=1))
    assert list(found["carriers"]) == ["number of parts"]
    best = found["published"]["metrics"]["accuracy"]["score"]
    majority = rules(found)["baseline majority"]
    assert majority == pytest.approx(61 / 345)
    assert rules(found)[found["learned"]] > majority > best
