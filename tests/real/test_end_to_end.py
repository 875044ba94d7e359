"""The main job on a real recording, by the public API: files -> steps -> runs -> tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnidata
from omnidata.actions import Point
from omnidata.data.validate import validate
from omnidata.media import check
from omnidata.tasks import get_task
from tests.cli.running import as_json
from tests.cli.running import omnidata as command
from tests.real import agentnet

pytestmark = [
    pytest.mark.skipif(agentnet.missing() is not None, reason=str(agentnet.missing())),
    pytest.mark.full("a real recording is cut"),
]


def test_the_recording_goes_from_end_to_end(agentnet_tree: Path, tmp_path: Path) -> None:
    task = get_task("omnigui")
    source = task.load(agentnet_tree, strict=True)
    assert len(source.steps) == 15
    for step in source.steps:
        for part in task.conversation(step)[1].parts:
            if part.media:
                check(part.media)
    results = omnidata.evaluate(task, source, "baseline:oracle", tmp_path / "oracle")
    assert results["overall"]["EM"] == results["overall"]["SR"] == 1.0
    points = sum(
        any(isinstance(region, Point) for region in (*step.action.start, *step.action.end))
        for step in source.steps
        if step.action
    )
    assert results["counts"]["judged_by_extension"] == points > 0
    floor = omnidata.evaluate(task, source, "baseline:majority", tmp_path / "majority")
    taps = sum(step.action.label == "TAP" for step in source.steps if step.action)
    assert floor["overall"]["TM"] == pytest.approx(taps / 15)
    assert floor["overall"]["SR"] == 0.0


def test_segment_validate_and_evaluate_take_one_command_each(
    agentnet_tree: Path, tmp_path: Path
) -> None:
    report = as_json(command("validate", "omnigui", agentnet_tree, "--json", "--workers", "1"))
    assert {found["code"] for found in report["findings"]} == {"audio-silent"}
    run = tmp_path / "run"
    model = ("--model", "baseline:oracle", "--out", run, "--json")
    results = as_json(command("evaluate", "omnigui", agentnet_tree, *model))
    assert results["overall"]["EM"] == 1.0
    assert results["counts"]["without_usable_target"] == 0


def test_the_recording_opens_as_a_dataset(agentnet_tree: Path) -> None:
    data = omnidata.load_dataset("omnigui", agentnet_tree, agentnet.APP, split="test")
    assert data["step_index"] == list(range(15))
    assert data["action"][-1]["kind"] == "TASK_COMPLETE"
    assert len(data["history"][-1]) == 14


SILENT = [f"{agentnet.APP}/{agentnet.EPISODE}/{step}" for step in (0, 11)]
"""The recording has no sound of its own. Earcons follow actions: there is none before step 0, and
step 11 waits so long that its track no longer holds the one of step 10."""


def test_the_recording_has_two_silent_tracks_and_nothing_else(agentnet_tree: Path) -> None:
    report = validate(get_task("omnigui").load(agentnet_tree, check_media=False))
    assert report.checked["media"] == {"image": 15, "video": 15, "audio": 15}
    assert [(found.code, found.where) for found in report.findings] == [
        ("audio-silent", place) for place in SILENT
    ]


def test_real_media_that_are_cut_are_found(agentnet_tree: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(agentnet_tree, tmp_path / "copy")
    media = copy / agentnet.APP / "media" / agentnet.EPISODE
    for name in ("3.png", "6.mp4", "9.wav"):
        path = media / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    report = validate(get_task("omnigui").load(copy, check_media=False))
    found = [finding.where for finding in report.findings if finding.code == "media-truncated"]
    assert found == [f"{agentnet.APP}/{agentnet.EPISODE}/{step}" for step in (2, 5, 8)]
    assert len(report.findings) == len(found) + len(SILENT)
