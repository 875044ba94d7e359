"""The benchmarks in `odyssey_like` and `colours_like`, and small data of the first."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import plugs
from tests.data.tiny import SIZE, png

HOME = Path(__file__).with_name("odyssey_like.py")
ROWS = Path(__file__).with_name("colours_like.py")
STEPS: tuple[tuple[str, Any], ...] = (
    ("CLICK", [[500, 480]]),
    ("SCROLL", [[500, 800], [480, 200]]),
    ("CLICK", [[880, 90]]),
    ("TYPE", "tea shops"),
    ("LONG_PRESS", [[120, 900]]),
    ("CLICK", "KEY_HOME"),
    ("CLICK", [[450, 560]]),
    ("COMPLETE", ""),
)


def install(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    plugs.on_path(folder, HOME.stem, patch)
    patch.delitem(sys.modules, ROWS.stem, raising=False)
    for path in (HOME, ROWS):
        (folder / path.name).write_bytes(path.read_bytes())
    points = f"odyssey = {HOME.stem}:Odyssey\ncolours = {ROWS.stem}:Colours"
    plugs.install(folder, "odyssey-like", "omnidata.tasks", points)
    return folder


def write(data: Path, *, episodes: int = 12) -> Path:
    """Episodes of several goals, three of each; the last but one has a step nobody understands."""
    for folder in ("annotations", "screenshots"):
        (data / folder).mkdir(parents=True)
    for number in range(episodes):
        steps = [*STEPS[number % 4 :][:4], STEPS[-1]]
        if number == episodes - 2:
            steps[1] = ("KNOCK", "twice")
        rows = []
        for step, (action, info) in enumerate(steps):
            shot = f"E{number}_{step}.png"
            (data / "screenshots" / shot).write_bytes(png(10 * number + step))
            rows.append({"step": step, "screenshot": shot, "action": action, "info": info})
        about = {
            "category": ("Shopping", "Travel")[number % 2],
            "meta_task": f"look up {number // 3}",
            "instruction": f"Look up {number // 3} in the browser and note it, way {number}",
        }
        device = {"product": ("Pixel Fold", "Pixel 7")[number % 5 > 1], "w": SIZE[0], "h": SIZE[1]}
        row = {"episode_id": f"E{number}", "task_info": about, "device_info": device}
        (data / "annotations" / f"E{number}.json").write_text(json.dumps(row | {"steps": rows}))
    return data
