"""Pools for tests of composition: the sample pool, made once, and pools of a few rows."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.synth.pool import make_pool


@functools.cache
def sample_pool() -> Path:
    """The sample pool of seed 0; nobody writes into it."""
    folder = Path(tempfile.mkdtemp(prefix="omnidata-pool-"))
    make_pool(folder / "pool")
    return folder / "pool"


def subtask(
    name: str,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    *bindings: Mapping[str, str],
    app: str = "Slidora",
    template: str | None = None,
    **columns: Any,
) -> dict[str, Any]:
    """A row of a pool; the template names all parameters."""
    places = list(bindings[0]) if bindings else []
    return {
        "id": name,
        "instruction_template": template
        or f"Do {name}" + "".join(f" with '{{{place}}}'" for place in places),
        "application": app,
        "available_parameters": list(bindings),
        "OS": "Windows",
        "input_resources": list(inputs),
        "output_resources": list(outputs),
        **columns,
    }


def write_pool(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "subtasks.jsonl").write_text(text, encoding="utf-8")
    return folder


EMILY = [
    subtask("A", (), ("ppt_path",), {"path": "./Project_Proposal.ppt"}, app="PowerPoint",
            template="Create a new PowerPoint file '{path}'"),
    subtask("B", ("img_path",), ("img_path",),
            {"filter_name": "Cartoon", "path": "./portrait.png"},
            app="Adobe Photoshop Express", template="Apply '{filter_name}' to the '{path}'"),
    subtask("C", ("ppt_path", "img_path"), ("ppt_path", "img_path"),
            {"img_path": "./portrait.png", "ppt_path": "./Project_Proposal.ppt"},
            app="PowerPoint", template="Insert '{img_path}' into '{ppt_path}'"),
    subtask("D", (), ("img_path",), {"path": "./portrait.png", "name": "Emily"}, app="Outlook",
            template="Download the image from the email sent by '{name}' to '{path}'"),
    subtask("E", ("ppt_path",), ("ppt_path",),
            {"path": "./Project_Proposal.ppt", "name": "Emily"}, app="Outlook",
            template="Send the PowerPoint file '{path}' to '{name}'"),
    subtask("F", (), ("text_in_clipboard",), {"path": "./Emily.txt"}, app="File Explorer",
            template="Open '{path}' and copy its contents to the clipboard"),
    subtask("G", ("text_in_clipboard", "ppt_path"), ("text_in_clipboard", "ppt_path"),
            {"path": "./Project_Proposal.ppt"}, app="PowerPoint",
            template="Paste the text from the clipboard into the title of '{path}'"),
]  # fmt: skip
"""The seven subtasks that OmniBench's authors gave their reviewers (paper 002), abridged."""
