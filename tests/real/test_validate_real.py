"""On real material `validate` is quiet, but for a listed few."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from omnidata.data.validate import validate
from omnidata.tasks import get_task
from tests.real import agentnet

pytestmark = [
    pytest.mark.skipif(agentnet.missing() is not None, reason=str(agentnet.missing())),
    pytest.mark.full("a real recording is cut"),
]

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
