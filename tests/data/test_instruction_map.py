"""The map of instructions: a sample that is the same for the same data, and a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from omnidata.analysis.instruction_map import SAMPLE, places, sample
from omnidata.tasks import get_task
from tests.cli.running import omnidata
from tests.loaders.agentstudio import ground, write


def test_each_dataset_gives_as_many_different_instructions(tmp_path: Path) -> None:
    rows = [ground(image=f"{n}.png", instruction=f"Click on {n}") for n in range(SAMPLE + 50)]
    task = get_task("groundui")
    many = task.load(write(tmp_path / "many.jsonl", *rows, *rows[:9]), check_media=False)
    mixed = [ground(instruction=text, platform=text[0]) for text in ("web", "mobile", "web")]
    mixed = [{**row, "platform": row["instruction"]} for row in mixed]
    few = task.load(write(tmp_path / "few.jsonl", *mixed), check_media=False)
    found = sample({"many": many, "few": few})
    assert {name: len(texts) for name, texts in found.items()} == {"many": SAMPLE, "few": 2}
    assert len(set(found["many"])) == SAMPLE
    assert sample({"many": many, "few": few}) == found
    assert sample({"few": few}) == {"platform: web": ["web"], "platform: mobile": ["mobile"]}


def test_what_is_worded_alike_lies_together() -> None:
    texts = [f"Open the settings of app {n}" for n in range(8)]
    texts += [f"把第{n}个视频暂停" for n in range(8)]
    found = places(texts)
    assert found.shape == (16, 2) and np.isfinite(found).all()
    centres = found.reshape(2, 8, 2).mean(axis=1)
    apart = np.linalg.norm(centres[0] - centres[1])
    assert apart > np.linalg.norm(found[:8] - centres[0], axis=1).mean()
    np.testing.assert_array_equal(places(texts), found)


def test_a_map_of_several_datasets_is_drawn(tmp_path: Path) -> None:
    rows = [ground(image=f"{n}.png", instruction=f"Click ${n}_{{") for n in range(4)]
    data = write(tmp_path / "a.jsonl", *rows)
    other = write(tmp_path / "b.jsonl", ground(instruction="点击"))
    omnidata("info", "groundui", data, "groundui", other, "--map", tmp_path / "map.svg")
    assert "GroundUI: a.jsonl (4)" in (tmp_path / "map.svg").read_text("utf-8")
    done = omnidata("info", "groundui", other, "--map", tmp_path / "none.svg", code=2)
    assert "there are 1 different instructions" in done.stderr
    assert not (tmp_path / "none.svg").exists()
