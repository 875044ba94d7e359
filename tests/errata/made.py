"""Data of a few targets, right answers to them, and errata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.loaders import desk, phones
from tests.trees import row, write_lines, write_rows


def box(left: float, top: float, right: float, bottom: float) -> dict[str, Any]:
    edges = {"left": left, "top": top, "right": right, "bottom": bottom}
    return {**edges, "space": "px", "is_point": (left, top) == (right, bottom)}


def errata(path: Path, task: str, *lines: Mapping[str, Any], **head: Any) -> Path:
    """A file of corrections, each with a reason."""
    first = {"errata": path.stem, "version": "1", "benchmark": task, **head}
    return write_lines(path, [first, *({"reason": "seen by two", **line} for line in lines)])


def loaded(task: str, data: Path) -> LoadedDataset:
    return get_task(task).load(data, check_media=False)


def oracle(task: str, data: Path, path: Path) -> Path:
    asked = get_task(task)
    rows = [
        {"sample_id": step.sample_id, "output": target.text}
        for step in asked.load(data, check_media=False).steps
        if (target := asked.target(step))
    ]
    return write_lines(path, rows)


def taps(folder: Path, *targets: Sequence[Sequence[int]]) -> Path:
    """Episodes of OmniGUI of two steps: a tap at a target each."""
    rows = [
        row(f"E{number // 2}", number % 2, app="TED", result_touch_xy=json.dumps(target))
        for number, target in enumerate(targets)
    ]
    return write_rows(folder / "steps.json", rows)


def control(folder: Path, *actions: Mapping[str, Any]) -> Path:
    return phones.records(folder / "android_control-0", phones.episode(*actions)).parent


def spots(folder: Path, *boxes: Sequence[int]) -> Path:
    rows = [
        desk.pro(id=f"word_windows_{n}", bbox=[*edges], img_size=[3840, 2160])
        for n, edges in enumerate(boxes)
    ]
    return desk.screenspot(folder, *rows, name="word_windows.json")
