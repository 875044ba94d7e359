"""OmniBench's metadata as its paper and its reviews have them, in values of our own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import Finding
from tests.loaders.agentstudio import pictures, write

__all__ = [
    "APPS", "COMPARISON", "INTRODUCTION", "act", "codes", "library", "pictures", "plain", "subtask",
    "task", "trajectory", "write", "written",
]  # fmt: skip

APPS = {
    "A": "PowerPoint",
    "B": "Adobe Photoshop Express",
    "C": "PowerPoint",
    "D": "Outlook",
    "E": "Outlook",
    "F": "File Explorer",
    "G": "PowerPoint",
}
"""The seven subtasks that the reviews show (paper 002), and whose they are."""

INTRODUCTION = {"A": ["C"], "D": ["C"], "F": ["G"], "C": ["G"], "G": ["E"]}
"""Their first task, as a bare object of edges."""

COMPARISON = {"D": ["C1"], "A": ["C1"], "C1": ["C2", "B"], "B": ["C2"], "C2": ["E"]}
"""Their second, in which subtask C occurs twice."""


def subtask(own: str | int = "A", **changes: Any) -> dict[str, Any]:
    """A subtask's row as in Appendix C.1."""
    return {
        "id": own,
        "instruction_template": "Make '{path}' ready.",
        "application": APPS.get(str(own), "Excel"),
        "available_parameters": [{"path": "C:\\one.ppt"}, {"path": "C:\\two.ppt"}],
        "OS": "Windows",
        "input_resources": [],
        "output_resources": ["ppt_path"],
        **changes,
    }


def act(function: str = "click_input", **changes: Any) -> dict[str, Any]:
    """An action as in Appendix C.2: a left click unless said otherwise."""
    return {
        "function": function,
        "args": {"button": "left", "double": False} if function == "click_input" else {},
        "rect": [10, 20, 30, 40],
        "description": "A window with a button.",
        "thought": "I press it.",
        "control_text": "Save",
        **changes,
    }


def plain(function: str, **args: Any) -> dict[str, Any]:
    """An action of function and arguments alone."""
    return {"function": function, "args": args}


def trajectory(*actions: Any, **changes: Any) -> dict[str, Any]:
    """A subtask's trajectory as in Appendix C.2; one more observation than actions."""
    done = list(actions) or [act(), plain("keyboard_input", keys="^s")]
    return {
        "trajectory_id": "A(0)",
        "instruction": "Make 'C:\\one.ppt' ready.",
        "observations": [f"shots/{number}.png" for number in range(len(done) + 1)],
        "actions": done,
        "subtask_id": "A",
        **changes,
    }


def task(own: str | int = "1", dag: Any = None, **changes: Any) -> dict[str, Any]:
    """A task's row as in Appendix C.4, with the id that the paper's schema lacks."""
    return {
        "task_id": own,
        "task_instruction": "Make a presentation and send it.",
        "dag": {"nodes": ["A", "E"], "edges": {"A": ["E"], "E": []}} if dag is None else dag,
        "task_intent": "Send a presentation",
        **changes,
    }


def written(folder: Path, files: Mapping[str, Any]) -> Path:
    """A folder of files: lists are JSON lines, texts stay texts, the rest is one JSON value."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif isinstance(content, list) and name.endswith(".jsonl"):
            write(path, *content)
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def library(folder: Path) -> Path:
    """A folder with all four kinds of metadata, and pictures."""
    order = ["A", "E"]
    whole = trajectory(
        act(), act("wheel_mouse_input", args={"wheel_dist": -3}), plain(""),
        trajectory_id="1(0)", task_id="1", topological_order=order,
        intent="Send a presentation", observations=["shots/0.png", "shots/1.png", "shots/2.png"],
    )  # fmt: skip
    del whole["subtask_id"]
    pictures(folder, [f"shots/{number}.png" for number in range(3)], size=(200, 100))
    return written(
        folder,
        {
            "subtasks.jsonl": [subtask("A"), subtask("E", available_parameters=[{"path": "x"}])],
            "evaluations/A.txt": "def evaluate_agent_task_completion(path):\n    1 / 0\n",
            "tasks.jsonl": [task("1", successful_topo=[order])],
            "subtask_trajectories.jsonl": [trajectory()],
            "trajectories.jsonl": [whole],
        },
    )


def codes(findings: Iterable[Finding]) -> Counter[str]:
    """Findings by code, but for the absent pictures of data without any."""
    found = Counter(finding.code for finding in findings)
    del found["media-absent"]
    return found
