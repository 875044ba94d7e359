"""The tree of the real recording is what the recording says."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from tests.real import agentnet

pytestmark = [
    pytest.mark.skipif(agentnet.missing() is not None, reason=str(agentnet.missing())),
    pytest.mark.full("a real recording is cut"),
]

BOXED = (0, 2, 4, 6, 7)
"""Steps whose accessibility rectangle can be trusted. Step 1's element is not in the tree, the drag
(3) and the scroll (5) have none. Step 7 changes the scale of the desktop: the rectangles after it
are those of other elements (9, 11), of whole windows (10), or not there (8, 12, 13)."""
AFTERWARDS_S = 2.0


@pytest.fixture(scope="module")
def app(agentnet_tree: Path) -> Path:
    return agentnet_tree / agentnet.APP


@pytest.fixture(scope="module")
def steps(app: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((app / f"dataset_{agentnet.APP}.json").read_text())
    return rows


def loudness(path: Path) -> float:
    with wave.open(str(path)) as file:
        data = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    return float(np.abs(data).max())


def test_the_recording_has_fifteen_steps_of_these_primitives(steps: list[dict[str, Any]]) -> None:
    kinds = [row["result_action_type"] for row in steps]
    assert kinds == [0, 2, 0, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 10]
    assert [row["step_id"] for row in steps] == list(range(15))
    assert steps[1]["source_action"] == "Single right Click"


def test_every_clicked_point_lies_in_its_target(steps: list[dict[str, Any]]) -> None:
    example = json.loads((agentnet.ROOT / "raw_example.jsonl").read_text())
    boxed = []
    for row, raw in zip(steps, example["traj"], strict=True):
        if row["result_action_type"] == 10:
            assert row["result_touch_xy"] == ""
            continue
        x, y = (
            float(raw["value"]["code"].split(f"{axis}=")[1].split(",")[0].split(")")[0]) * extent
            for axis, extent in (("x", 1276), ("y", 718))
        )
        target = np.array(json.loads(row["result_touch_xy"]))
        if target.ndim == 1:
            assert target == pytest.approx([x, y], abs=0.1)
        else:
            (left, top), (right, bottom) = target
            assert left <= x <= right
            assert top <= y <= bottom
            boxed.append(row["step_id"])
    assert tuple(boxed) == BOXED


def test_the_drag_has_both_ends(steps: list[dict[str, Any]]) -> None:
    start, end = (json.loads(steps[3][f"result_{role}_xy"]) for role in ("touch", "lift"))
    assert start == pytest.approx([0.4546 * 1276, 0.2682 * 718], abs=0.1)
    assert end == pytest.approx([0.4107 * 1276, 0.2773 * 718], abs=0.1)


def test_the_media_decode_and_last_as_long_as_the_wait(
    app: Path, steps: list[dict[str, Any]]
) -> None:
    timing = json.loads((agentnet.ROOT / "derived" / "step_timing.json").read_text())
    before = 0.0
    for row, times in zip(steps, timing["rows"], strict=True):
        end = times["action_start_s"]
        expected = AFTERWARDS_S if end is None else min(10.0, end - before)
        before = times["action_end_s"] or 0.0
        with Image.open(app / "media" / row["image_path"]) as image:
            image.load()
            assert image.size == (row["image_width"], row["image_height"]) == (1276, 718)
        with av.open(str(app / "media" / row["video_path"]), "r") as container:
            stream = container.streams.video[0]
            assert stream.average_rate == 30
            frames = sum(frame.width == 1276 for frame in container.decode(stream))
        assert frames / 30 == pytest.approx(expected, abs=0.02)
        with wave.open(str(app / "media" / row["audio_path"])) as track:
            assert track.getframerate() == 16_000
            assert track.getnframes() / 16_000 == pytest.approx(expected, abs=0.002)


def test_the_clip_shows_the_screen_of_its_step(app: Path, steps: list[dict[str, Any]]) -> None:
    for row in steps:
        with Image.open(app / "media" / row["image_path"]) as image:
            still = np.asarray(image.convert("L").resize((640, 360)), dtype=np.int16)
        with av.open(str(app / "media" / row["video_path"]), "r") as container:
            frames = [
                frame.to_ndarray(format="gray", width=640, height=360)
                for frame in container.decode(video=0)
            ]
        apart = [np.abs(frame.astype(np.int16) - still).mean() for frame in frames]
        assert min(apart) < 8, row["step_id"]


def test_each_step_begins_with_the_sound_of_the_action_before(
    app: Path, steps: list[dict[str, Any]]
) -> None:
    silent = [row["step_id"] for row in steps if loudness(app / "media" / row["audio_path"]) < 0.01]
    assert silent == [0, 11]
