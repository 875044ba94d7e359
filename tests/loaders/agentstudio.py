"""Rows of AgentStudio's benchmarks, as the authors' files have them, and as the Hub has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from PIL import Image

from omnidata.tasks.agentstudio.load import load
from omnidata.types import LoadedDataset
from tests.trees import SHARED

TaskName = Literal["groundui", "idm-single", "idm-multiple", "criticbench"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
REAL: Mapping[TaskName, Path] = {
    "groundui": SHARED / "data/agentstudio/groundui_1k.jsonl",
    "idm-single": SHARED / "data/agentstudio/metadata_idm.jsonl",
    "idm-multiple": SHARED / "data/agentstudio/metadata_idmn2n.jsonl",
    "criticbench": SHARED / "data/agentstudio/metadata_success_detection.jsonl",
}
SPACE = ["CLICK", "SELECT", "TYPE"]


def ground(**changes: Any) -> dict[str, Any]:
    """A row of GroundUI."""
    return {
        "image": "a.png",
        "instruction": 'Click on "Discounts".',
        "bbox": [106, 9, 114, 14],
        "source": "omniact",
        "platform": "web",
        "resolution": [144, 90],
        "raw_instruction": "redirect_discounts",
        **changes,
    }


def act(number: int = 0, **changes: Any) -> dict[str, Any]:
    """An action of a trajectory, seen on `<number>.png` and followed by the next."""
    return {
        "action_id": f"a{number}",
        "obs_before": f"m2w/{number}.png",
        "obs_after": f"m2w/{number + 1}.png",
        "operation": "CLICK",
        "bbox": {"x": 3.5, "y": 4, "width": 10, "height": 2.25},
        "metadata": {"repr": f"[link]  Thing {number} -> CLICK"},
        **changes,
    }


def single(**changes: Any) -> dict[str, Any]:
    """A row of IDM-Single."""
    rest = {"source": "mind2web_data_test_task", "platform": "web", "action_space": SPACE}
    return {**act(), "instruction": "Find a house", **rest, **changes}


def trajectory(*actions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A row of IDM-Multiple or CriticBench; two actions unless given."""
    return {
        "instruction": "Find a house",
        "annotation_id": "e1:1",
        "actions": list(actions) or [act(0), act(1)],
        "source": "mind2web_data_test_task",
        "platform": "web",
        "metadata": {},
        "action_space": SPACE,
        "is_success": True,
        **changes,
    }


def write(path: Path, *rows: Mapping[str, Any]) -> Path:
    """A JSON-lines file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def real_rows(task: TaskName) -> list[dict[str, Any]]:
    return [json.loads(line) for line in REAL[task].read_text(encoding="utf-8").splitlines()]


@cache
def real_source(task: TaskName) -> LoadedDataset:
    """What is loaded of all real rows; nobody changes it."""
    return load(REAL[task], task)


def columnwise(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as the Hub has it, without the decoded images."""
    found = _named(row)
    if "actions" in row:
        actions = [_named(action) for action in row["actions"]]
        keys = {key for action in actions for key in action}
        found["actions"] = {key: [action.get(key) for action in actions] for key in keys}
    return found


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(row)
    for key in ("image", "obs_before", "obs_after"):
        if key in row:
            folder = "evals/datasets/x/images/"
            found[f"{key}_path"] = row[key] and folder + row[key]
            found[key] = row[key] and {"bytes": None, "path": row[key].split("/")[-1]}
    if isinstance(row.get("metadata"), dict):
        found["metadata"] = {**dict.fromkeys(("repr", "text", "value")), **row["metadata"]}
    return found


def pictures(folder: Path, names: Sequence[str], size: tuple[int, int] = (144, 90)) -> None:
    """An image file for each name, each in another colour."""
    for number, name in enumerate(dict.fromkeys(names)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (number % 256, number // 256, 99)).save(path)
