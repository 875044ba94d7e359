"""Android in the Wild and AndroidControl through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnidata.run.run_files import read_run
from tests.cli.running import EXPORT, as_json, omnidata
from tests.loaders import phones
from tests.trees import NO_SHARED, SHARED, read_lines, write_lines

REAL = SHARED / "data" / "aitz_google_apps"
OPEN = {"action_type": "open_app", "app_name": "Clock"}


@pytest.fixture
def control(tmp_path: Path) -> Path:
    rows = phones.episode(phones.CLICK, phones.SCROLL), phones.episode(OPEN, number=4)
    return phones.records(tmp_path / "control" / "android_control-00000-of-00001", *rows).parent


def test_a_run_is_made_and_scored_by_another_profile(control: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    made = omnidata(
        "evaluate", "androidcontrol", control, "--model", "baseline:oracle", "--out", run, "--json"
    )
    results = as_json(made)
    assert results["profile"] == "agentcpm-ac-fixed"
    assert (results["overall"]["EM"], results["counts"]["steps"]) == (1.0, 3)
    released = as_json(
        omnidata("score", "androidcontrol", control, run, "--profile", "agentcpm-ac", "--json")
    )
    assert released["counts"]["steps"] == 2
    assert released["counts"]["without_usable_target"] == 1
    shown = omnidata("score", "androidcontrol", control, run, "--profile", "agentcpm-ac")
    assert "steps: 3 ok, 2 in the table, 1 left out (no usable target)" in shown.stderr


def test_one_run_stands_under_every_protocol_with_whose_it_is(
    control: Path, tmp_path: Path
) -> None:
    run, out = tmp_path / "run", tmp_path / "scored"
    level = ("-T", "level=low")
    oracle = ("--model", "baseline:oracle")
    omnidata("evaluate", "androidcontrol", control, *oracle, *level, "--out", run)
    every = ("score", "androidcontrol", control, run, "--profile", "all")
    found = as_json(omnidata(*every, "--out", out, "--json"))
    assert {
        name: (each["counts"]["steps"], each["overall"]["EM"]) for name, each in found.items()
    } == {
        "agentcpm-ac-fixed": (3, 1.0),
        "agentcpm-ac": (2, 1.0),
        "os-atlas-ac": (3, 1.0),
        "uground-ac": (3, 1.0),
        "gui-r1": (3, 1.0),
        "curated": (3, 1.0),
    }
    assert "Gou et al., 2025" in found["uground-ac"]["source"]
    assert {path.name for path in out.iterdir()} == found.keys()
    for name, results in found.items():
        del results["source"], results["leaves_out"]
        assert json.loads((out / name / "results.json").read_text()) == results
    shown = omnidata(*every)
    assert "level=low" in shown.stdout
    assert "agentcpm-ac: AgentCPM-GUI (Zhang et al., 2025)" in shown.stdout
    assert "leaves out: steps that open an app" in shown.stdout
    refused = omnidata(*every, "--out", run, code=2)
    assert "other files" in refused.stderr
    assert read_run(out / "uground-ac").name == "baseline:oracle"
    answers = ("score", "androidcontrol", control, run / "predictions.jsonl", "--profile", "all")
    strangers = omnidata(*answers, "--out", tmp_path / "somebodys")
    assert "androidcontrol by every profile" in strangers.stdout, "nobody knows its options"
    low = omnidata(*answers, *level)
    assert "androidcontrol (level=low) by every profile" in low.stdout
    assert read_run(tmp_path / "somebodys" / "uground-ac").name == "somebodys"


def test_two_readings_of_goal_progress_have_columns_of_their_own(tmp_path: Path) -> None:
    data = phones.two_episodes("aitw", tmp_path / "aitw")
    run = tmp_path / "run"
    omnidata("evaluate", "aitw", data, "--model", "baseline:majority", "--out", run)
    done = omnidata("score", "aitw", data, run, "--profile", "all")
    header = next(line.split() for line in done.stdout.splitlines() if "left out" in line)
    assert "GP" not in header
    assert [name for name in header if name.startswith("GP")] == ["GP_ratio", "GP_prefix"]
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    ratio, prefix = (header.index(name) for name in ("GP_ratio", "GP_prefix"))
    assert rows["aitw"][prefix] == "-" and rows["aitw"][ratio] != "-"
    assert rows["agentcpm"][ratio] == "-" and rows["agentcpm"][prefix] != "-"
    assert "before the first wrong one" in done.stderr


def test_answers_of_an_agentcpm_model_are_scored_as_they_are(control: Path, tmp_path: Path) -> None:
    outputs = ['{"POINT":[500,500]}', '{"POINT":[500,500],"to":"up"}', '{"STATUS":"finish"}']
    lines = [
        {"sample_id": own, "output": output}
        for own, output in zip(("3/0", "3/1", "4/0"), outputs, strict=True)
    ]
    predictions, out = write_lines(tmp_path / "p.jsonl", lines), tmp_path / "scored"
    results = as_json(
        omnidata("score", "androidcontrol", control, predictions, "--out", out, "--json")
    )
    assert results["overall"]["EM"] == pytest.approx(2 / 3)
    assert [line["exact_match"] for line in read_lines(out / "scores.jsonl")] == [True, True, False]


def test_every_verb_works_on_what_records_hold(control: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    omnidata("convert", "androidcontrol", control, repository)
    for data in (control, repository):
        assert (
            "0 errors, 0 warnings"
            in omnidata("validate", "androidcontrol", data, "--workers", "1").stdout
        )
        omnidata("audit", "androidcontrol", data)
        out = tmp_path / f"exported-{data.name}"
        omnidata(*EXPORT, "androidcontrol", data, out, "--format", "llamafactory")
        rows = [row for path in out.glob("*.jsonl") for row in read_lines(path)]
        answers = {json.loads(row["messages"][-1]["content"])["action_type"] for row in rows}
        assert answers == {"click", "scroll", "open_app"}
        assert all((out / row["images"][0]).read_bytes()[:4] == b"\x89PNG" for row in rows)


def test_a_cut_file_is_an_error_with_its_record_and_not_a_traceback(control: Path) -> None:
    (path,) = control.iterdir()
    path.write_bytes(path.read_bytes()[:-200])
    done = omnidata("validate", "androidcontrol", control, "--workers", "1", code=1)
    assert "[record-broken]" in done.stdout + done.stderr
    assert f"{path}, record 1" in done.stdout + done.stderr


@pytest.mark.skipif(not REAL.is_dir(), reason=NO_SHARED)
def test_the_real_episode_goes_all_the_way(tmp_path: Path) -> None:
    run = tmp_path / "run"
    omnidata("evaluate", "aitw", REAL, "--model", "baseline:center", "--out", run)
    # The middle is 0.107 from the one tap, and in none of its elements.
    for profile, right in (("aitw", 0.25), ("agentcpm", 0.25), ("aitz", 0.0), ("aitz-fixed", 0.0)):
        found = as_json(omnidata("score", "aitw", REAL, run, "--profile", profile, "--json"))
        assert found["overall"]["EM"] == right, profile
