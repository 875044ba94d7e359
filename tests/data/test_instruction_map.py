"""The map of instructions: a sample that is the same for the same data, and a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from omnidata.analysis.instruction_map import places
from tests.cli.running import here
from tests.loaders.agentstudio import ground, write


def test_each_dataset_gives_as_many_different_instructions(tmp_path: Path) -> None:
    rows = [ground(image=f"{n}.png", instruction=f"Click ${n}_{{") for n in range(350)]
    many = write(tmp_path / "many.jsonl", *rows, *rows[:9])
    texts = {"web": "abc", "mobile": "de"}
    few = [ground(instruction=text, platform=key) for key in texts for text in texts[key] + "a"]
    mixed = write(tmp_path / "few.jsonl", *few)
    both = drawn(tmp_path, "groundui", many, "groundui", mixed)
    assert "GroundUI: many.jsonl (300)" in both and "GroundUI: few.jsonl (5)" in both
    groups = drawn(tmp_path, "groundui", mixed)
    assert "platform: web (3)" in groups and "platform: mobile (2)" in groups
    assert drawn(tmp_path, "groundui", mixed) == groups
    one = write(tmp_path / "one.jsonl", ground(instruction="点击"))
    done = here("info", "groundui", one, "--map", tmp_path / "none.svg", code=2)
    assert "there are 1 different instructions" in done.stderr
    assert not (tmp_path / "none.svg").exists()


def drawn(folder: Path, *data: str | Path) -> str:
    here("info", *data, "--map", folder / "map.svg")
    return (folder / "map.svg").read_text("utf-8")


def test_what_is_worded_alike_lies_together() -> None:
    texts = [f"Open the settings of app {n}" for n in range(8)]
    texts += [f"把第{n}个视频暂停" for n in range(8)]
    found = places(texts)
    assert found.shape == (16, 2) and np.isfinite(found).all()
    centres = found.reshape(2, 8, 2).mean(axis=1)
    apart = np.linalg.norm(centres[0] - centres[1])
    assert apart > np.linalg.norm(found[:8] - centres[0], axis=1).mean()
    np.testing.assert_array_equal(places(texts), found)
