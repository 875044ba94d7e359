"""A pool of the paper's size: 255 subtasks of 49 applications for 20 intents, made up by chance."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from PIL import Image

from omnidata.tasks.omnibench.rows import table10

SUBTASKS = 255  # OmniBench, section 3.4
INTENTS = 20
STEPS = 6
_FILES = ("doc", "sheet", "deck", "img", "pdf", "zip", "audio", "video", "csv", "html")
_STATES = ("text_in_clipboard", "image_in_clipboard", "todo_in_list", "site_in_browser")
_KINDS = (*(f"{name}_path" for name in _FILES), *_STATES)
_SHAPES = ("make", "edit", "turn", "join", "end")
_WEIGHTS = (20, 25, 25, 20, 10)


def write_pool(folder: Path, *, seed: int = 0) -> Path:
    """Write subtasks, and a trajectory for every binding; all of them show one picture."""
    rng = random.Random(seed)
    folder.mkdir()
    (folder / "observations").mkdir()
    Image.new("RGB", (640, 400), (40, 80, 120)).save(folder / "observations" / "screen.png")
    subtasks = [_subtask(rng, number) for number in range(SUBTASKS)]
    done = [row for subtask in subtasks for row in _trajectories(subtask)]
    for name, rows in (("subtasks", subtasks), ("subtask_trajectories", done)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def _subtask(rng: random.Random, number: int) -> dict[str, Any]:
    first, second = rng.sample(_KINDS, 2)
    inputs, outputs = {
        "make": ([], [first]),
        "edit": ([first], [first]),
        "turn": ([first], [second]),
        "join": ([first, second], [first]),
        "end": ([first], []),
    }[rng.choices(_SHAPES, _WEIGHTS)[0]]
    places = [kind for kind in dict.fromkeys((*inputs, *outputs)) if kind.endswith("_path")]
    values = [{kind: f"D:\\work\\{name}.{kind[:3]}" for kind in places} for name in "abc"]
    words = " ".join(f"'{{{kind}}}'" for kind in places)
    return {
        "id": f"{rng.getrandbits(128):032x}",
        "instruction_template": f"Do job {number} with {words}" if words else f"Do job {number}",
        "application": rng.choice(list(table10())),
        "available_parameters": values if places else [{}],
        "OS": "Windows",
        "input_resources": inputs,
        "output_resources": outputs,
        "task_intents": [f"Intent {k}" for k in rng.sample(range(INTENTS), rng.randint(1, 3))],
    }


def _trajectories(subtask: dict[str, Any]) -> list[dict[str, Any]]:
    action = {
        "function": "click_input",
        "args": {"button": "left", "double": False},
        "rect": [10, 10, 90, 40],
        "control_text": "Open",
        "description": "The window is open.",
        "thought": "To go on, I click 'Open'.",
    }
    rows = []
    for number, binding in enumerate(subtask["available_parameters"]):
        text = subtask["instruction_template"]
        for place, value in binding.items():
            text = text.replace(f"{{{place}}}", value)
        rows.append(
            {
                "trajectory_id": f"{subtask['id']}({number})",
                "instruction": text,
                "observations": ["observations/screen.png"] * STEPS,
                "actions": [action] * STEPS,
                "subtask_id": subtask["id"],
            }
        )
    return rows
