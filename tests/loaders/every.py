"""A little data of every benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnidata.loaders.steps import Steps
from omnidata.types import LoadedDataset
from tests.loaders import desk, neighbours, omnibench, osworld, phones, published_forms
from tests.loaders.agentstudio import act, ground, single, trajectory, write
from tests.trees import row, write_rows


def is_on_disk(source: LoadedDataset) -> bool:
    return isinstance(source.steps, Steps) and source.steps.file is not None


def rows_of(task: str, folder: Path) -> Path:
    """A file with two rows of the benchmark, alone in its folder."""
    if task == "omnigui":
        return write_rows(folder / "steps.json", [row("A", app="TED"), row("B", app="TED")])
    if task == "osworld":
        return osworld.bare(folder)
    if task in ("aitw", "androidcontrol"):
        return phones.two_episodes(task, folder)
    if task in ("gui-odyssey", "cagui-grounding"):
        return published_forms.bare(task, folder)
    if task in ("agentnet", "screenspot"):
        return desk.bare(task, folder)
    if task == "mind2web":
        two = neighbours.web_row("t1"), neighbours.web_row("t2")
        return neighbours.mind2web(folder, *two) / "data" / neighbours.SHARD
    if task == "osworld-g":
        two = neighbours.region("g1"), neighbours.region("g2", "refusal")
        return write(folder / "OSWorld-G.jsonl", *two)
    if task == "androidworld":
        two = neighbours.episode(), neighbours.episode("CameraTakePhoto", 0.0)
        return write(folder / "episodes.jsonl", *two)
    if task == "online-mind2web":
        two = neighbours.label("t1", Seer="1"), neighbours.label("t2", Seer="0")
        return write(folder / "labels.jsonl", *two)
    if task in ("step-critic", "trajectory-critic"):
        return write(folder / "rows.jsonl", *(judged(task, right=right) for right in (True, False)))
    part = omnibench.trajectory(omnibench.act(), intent="Save")
    own = {"trajectory_id": "1(0)", "subtask_id": None, "task_id": "1"}
    whole = {**part, **own, "topological_order": ["A"]}
    rows = {
        "omnibench": [omnibench.subtask("A"), part, whole],
        "groundui": [ground(), ground(image="b.png", platform="mobile", source="motif")],
        "idm-single": [single(), single(action_id="b", source="agent-studio", platform="desktop")],
    }
    pair = [trajectory(), trajectory(act(0), annotation_id="e2", is_success=False)]
    return write(folder / "rows.jsonl", *rows.get(task, pair))


def judged(task: str, *, right: bool) -> dict[str, Any]:
    """A row of a critic's task."""
    return {
        "sample_id": f"App/E{int(right)}/0#0",
        "asks": task,
        "instruction": "Save",
        "group": f"app/E{int(right)}",
        "source": "omnigui",
        "model": "tiny",
        "right": right,
        "screen": [72, 160],
        "media": {"screenshot": {"kind": "image", "path": "media/a.png"}},
        "turns": [{"shown": ["Goal: Save", {"medium": "screenshot"}], "answer": "tap"}],
    }
