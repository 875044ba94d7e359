"""AgentNet, AgentNetBench and ScreenSpot as their releases describe them, in values of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.loaders.agentstudio import pictures
from tests.trees import write_lines

SCREEN = (64, 36)
"""Width and height of the pictures."""


def code(index: int, text: str, image: str | None = None) -> dict[str, Any]:
    """A step of AgentNet."""
    return {"index": index, "image": image or f"{index}.png", "value": {"code": text}}


def trajectory(*codes: str, own: str = "t1", **changes: Any) -> dict[str, Any]:
    """A line of AgentNet."""
    steps = [code(number, text, f"{own}_{number}.png") for number, text in enumerate(codes)]
    return {"task_id": own, "instruction": "Save the file", "traj": steps, **changes}


def agentnet(folder: Path, *rows: Mapping[str, Any], name: str = "agentnet.jsonl") -> Path:
    """A file of AgentNet, with a picture for every step."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")
    names = [step["image"] for row in rows for step in row["traj"]]
    pictures(folder / "images", names, size=SCREEN)
    return folder


def gold(kind: str, *boxes: list[float], **params: Any) -> dict[str, Any]:
    """A ground truth action."""
    found = [{"rel_bbox": box, "abs_bbox": box, "category_id": 1, "area": 4} for box in boxes]
    return {"type": kind, "params": params, "metadata": {"bboxes": found}}


def click(x: float = 0.5, y: float = 0.5, *boxes: list[float]) -> dict[str, Any]:
    """A click as ground truth."""
    return gold("click", *boxes, position={"x": x, "y": y})


def bench_step(number: int, *truth: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A step of AgentNetBench."""
    return {
        "step_num": number,
        "image": f"b_{number}.png",
        "action": "pyautogui.click(x=0.5, y=0.5)",
        "milestone": False,
        "inner_monologue": {"observation": "o", "thought": "t", "low_level_instruction": "l"},
        "ground_truth_actions": list(truth) or [click()],
        **changes,
    }


def bench(folder: Path, *steps: Mapping[str, Any], own: str = "b1", **changes: Any) -> Path:
    """A trajectory of AgentNetBench, with a picture for every step."""
    folder.mkdir(parents=True, exist_ok=True)
    row = {
        "task_id": own,
        "user_task_description": "save",
        "high_level_task_description": "Save the file",
        "steps": list(steps),
        **changes,
    }
    (folder / f"{own}.json").write_text(json.dumps(row), encoding="utf-8")
    pictures(folder / "images", [step["image"] for step in steps], size=SCREEN)
    return folder


def spot(**changes: Any) -> dict[str, Any]:
    """A row of ScreenSpot: 16 x 9 pixels in the middle of the upper left quarter."""
    return {
        "img_filename": "web_1.png",
        "bbox": [8, 9, 16, 9],
        "instruction": "open the shop",
        "data_type": "text",
        "data_source": "shop",
        **changes,
    }


def pro(**changes: Any) -> dict[str, Any]:
    """A row of ScreenSpot-Pro."""
    return {
        "img_filename": "photoshop/1.png",
        "bbox": [8, 9, 24, 18],
        "instruction": "crop the layer",
        "instruction_cn": "裁剪图层",
        "id": "photoshop_windows_1",
        "application": "photoshop",
        "platform": "windows",
        "img_size": list(SCREEN),
        "ui_type": "icon",
        "group": "Creative",
        **changes,
    }


def screenspot(
    folder: Path,
    *rows: Mapping[str, Any],
    name: str = "screenspot_web.json",
    images: str = "images",
) -> Path:
    """A file of ScreenSpot, with a picture for every row."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(list(rows), ensure_ascii=False), encoding="utf-8")
    names = [row["img_filename"] for row in rows if "img_filename" in row]
    pictures(folder / images, names, size=SCREEN)
    return folder


def bare(task: str, folder: Path) -> Path:
    """A file with two rows of either benchmark, without pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    if task == "screenspot":
        path = folder / "screenspot_web.json"
        path.write_text(json.dumps([spot(), spot(data_type="icon")]), encoding="utf-8")
        return path
    end = "computer.terminate(status='success')"
    return write_lines(folder / "a.jsonl", [trajectory(end), trajectory(end, own="t2")])
