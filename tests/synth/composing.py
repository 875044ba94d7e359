"""Pools for tests of composition: the sample pool, made once, and pools of a few rows."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cli.running import here

if TYPE_CHECKING:
    from tests.conftest import Once

_shared: list[Once] = []


def share(once: Once) -> None:
    """How the sample pool is made once for all test processes."""
    _shared[:] = [once]


def sample_pool() -> Path:
    """The sample pool of seed 0, as the command makes it; nobody writes into it."""
    return _shared[0]("sample-pool", lambda folder: here("synth", "pool", folder))


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


def shown(name: str, instruction: str, picture: str) -> dict[str, Any]:
    return {
        "trajectory_id": f"{name} {instruction} {picture}",
        "instruction": instruction,
        "observations": [picture],
        "actions": [{"function": "click_input", "args": {}, "rect": [0, 0, 9, 9]}],
        "subtask_id": name,
    }


def pair(folder: Path, picture: str, data: bytes) -> Path:
    pool = write_pool(
        folder / "pool",
        [
            subtask("A", (), ("doc_path",), {"doc_path": "a"}),
            subtask("B", ("doc_path",), (), {"doc_path": "a"}),
            shown("A", "Do A with 'a'", picture),
            shown("B", "Do B with 'a'", picture),
        ],
    )
    (pool / picture).write_bytes(data)
    return pool


def no_links(source: Path, target: Path) -> None:
    """In place of `os.link`: as where the pool lies on another disk."""
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file can become larger than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


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
