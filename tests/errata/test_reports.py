"""`report`, `compare`, `items` and `view` with errata."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import as_json, omnidata
from tests.compare.making import Says, data, loaded, run
from tests.errata import made
from tests.export.small import TAP, tree
from tests.report.test_view import served
from tests.trees import read_lines

TAP_THERE = {"kind": "TAP", "start": [made.box(1, 1, 30, 30)]}


ANSWERS: dict[str, list[Says]] = {
    "a": ["right", "right", "right", "right", "right", "elsewhere"],
    "b": ["right", "right", "right", "right", "right", "elsewhere"],
    "c": ["other", "right", "other", "other", "other", "right"],
}


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Three runs: two strong ones contradict the last label alike."""
    source = loaded(data(tmp_path / "data", episodes=6, steps=1))
    ids = [step.sample_id for step in source.steps]

    def made_by(name: str) -> Path:
        answers = dict(zip(ids, ANSWERS[name], strict=True))
        return run(tmp_path / "runs" / name, source, lambda step: answers[step.sample_id])

    return [*map(made_by, ANSWERS)]


def test_candidates_are_corrections_that_score_and_report_take(
    runs: list[Path], tmp_path: Path
) -> None:
    file, place = tmp_path / "candidates.jsonl", tmp_path / "data" / "steps.json"
    printed = omnidata("items", *runs, "--errata", file)
    assert f"1 candidate to decide on: {file}" in printed.stderr
    head, line = read_lines(file)
    assert (head["benchmark"], head["fingerprint"]) == ("omnigui", loaded(place).fingerprint)
    assert (line["kind"], line["value"]["kind"]) == ("also_right", "TAP")
    assert line["reason"].startswith("2 strong runs say TAP at")
    omnidata("items", *runs, "--errata", file, code=2)
    checked = omnidata("validate", "omnigui", place, "--errata", file).stdout
    assert "0 errors, 0 warnings" in checked, "boxes are cut at the edges of the screen"
    table = next(
        table
        for table in as_json(omnidata("report", *runs, "--errata", file, "--json"))["tables"]
        if table["name"] == "errata"
    )
    assert len(table["rows"]) == 6
    shown = omnidata("report", runs[0], "--errata", file).stdout
    assert "Without and with errata" in shown and "candidates 1" in shown
    scored = tmp_path / "scored"
    omnidata("score", "omnigui", place, runs[0], "--errata", file, "--out", scored)
    assert "Without and with errata" in omnidata("report", scored).stdout, "as it was scored"


def test_both_runs_are_compared_without_and_with_errata(runs: list[Path], tmp_path: Path) -> None:
    ids = [step.sample_id for step in loaded(tmp_path / "data" / "steps.json").steps]
    lines: list[dict[str, Any]] = [
        {"sample_id": ids[5], "kind": "replace", "value": TAP_THERE},
        {"sample_id": ids[0], "kind": "drop"},
    ]
    file = made.errata(tmp_path / "ours.jsonl", "omnigui", *lines)
    compare = ("compare", runs[0], runs[2], "--errata", file)
    found = as_json(omnidata(*compare, "--json"))
    plain = as_json(omnidata(*compare[:3], "--json"))
    corrected = found.pop("with_errata")
    (about,) = found.pop("errata")
    assert found == plain
    assert about["name"] == "ours"
    (without, beside) = (each["slices"][0]["metrics"]["EM"] for each in (plain, corrected))
    assert (without["a"], without["b"]) == pytest.approx((5 / 6, 2 / 6))
    assert (beside["a"], beside["b"]) == pytest.approx((5 / 5, 1 / 5))
    shown = omnidata(*compare).stdout
    assert "With errata: ours 1" in shown
    omnidata(*compare, "--format", "csv", code=2)
    found = as_json(omnidata("compare", *runs, "--errata", file, "--json"))
    corrected = found.pop("with_errata")
    assert found.pop("errata") == [about]
    assert found == as_json(omnidata("compare", *runs, "--json"))
    assert [place["value"] for place in corrected["places"]] == pytest.approx([1, 1, 1 / 5])
    assert corrected["steps"] == found["steps"] - 1
    assert "With errata: ours 1" in omnidata("compare", *runs, "--errata", file).stdout


def test_a_run_without_its_answers_or_of_another_task_is_refused(
    runs: list[Path], tmp_path: Path
) -> None:
    ids = [step.sample_id for step in loaded(tmp_path / "data" / "steps.json").steps]
    line = {"sample_id": ids[5], "kind": "replace", "value": TAP_THERE}
    other = made.errata(tmp_path / "other.jsonl", "aitw")
    refused = omnidata("report", runs[0], "--errata", other, code=2)
    assert "the errata correct aitw, and no run is of it" in refused.stderr
    (runs[0] / "predictions.jsonl").write_text("")
    file = made.errata(tmp_path / "ours.jsonl", "omnigui", line)
    refused = omnidata("report", runs[0], "--errata", file, code=2)
    assert "the answer to" in refused.stderr and "is not in the folder" in refused.stderr


def test_the_pages_of_steps_show_corrections_old_and_new(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", actions=[TAP] * 3)
    names = [step.sample_id for step in made.loaded("omnigui", data).steps]
    values = ("also_right", {"kind": "BACK"}), ("also_right", TAP_THERE), ("replace", TAP_THERE)
    lines = [
        {"sample_id": name, "kind": kind, "value": value}
        for name, (kind, value) in zip(names, values, strict=True)
    ]
    file = made.errata(tmp_path / "ours.jsonl", "omnigui", *lines)
    with served("omnigui", data, "--errata", file) as server:
        pages = [server.ask(f"/steps/{number}.html")[2].decode() for number in range(3)]
    assert "Errata · also right" in pages[0] and "seen by two" in pages[0]
    assert "{&#34;action_type&#34;:8}" in pages[0]
    assert [re.findall(r'<li class="(\w+)">([^<]+)</li>', page) for page in pages] == [
        [("target", "target")],
        [("target", "target"), ("errata", "target by errata")],
        [("old", "target before errata"), ("errata", "target by errata")],
    ]
    drawn = re.findall(r'<rect class="(old|errata)" x="([\d.]+)" y="([\d.]+)"', pages[2])
    assert [(by, float(x), float(y)) for by, x, y in drawn] == [("old", 10, 20), ("errata", 1, 1)]
    omnidata("evaluate", "omnigui", data, "--model", "baseline:oracle", "--out", tmp_path / "run")
    omnidata("report", tmp_path / "run", "--errata", file, "--html", tmp_path / "pages")
    assert "target before errata" in (tmp_path / "pages" / "steps" / "2.html").read_text()
