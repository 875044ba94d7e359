"""Rows of single steps on phones, in the columns that people hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.data.tiny import SIZE, png
from tests.trees import write_lines


def graded(action: str, text: str = "no input text", place: Any = (-100, -100), **more: Any) -> Any:
    """A row of GUI-R1, as its inference keeps it: without the picture."""
    told = {"image": "", "history": "None", "instruction": "Set an alarm"}
    target = {"gt_action": action, "gt_bbox": [*place], "gt_input_text": text}
    return {**told, **target, "group": "android", "orig_w": SIZE[0], "orig_h": SIZE[1], **more}


def scrolls(*words: str, **more: Any) -> list[Any]:
    """Rows of GUI-R1 that scroll."""
    return [graded("scroll", word.upper(), **more) for word in words]


def answer(action: str, text: str = "no input text", place: Any = (-100, -100)) -> str:
    """An answer of a GUI-R1 model."""
    said = {"action": action, "point": [*place], "input_text": text}
    return f"<think>So.</think>\n<answer>[{said}]</answer>"


def table(path: Path, *rows: Any) -> Path:
    """Rows as a Parquet file that holds their pictures."""
    import datasets

    held = [
        {**row, "image": {"bytes": png(number), "path": None}} for number, row in enumerate(rows)
    ]
    found = datasets.Dataset.from_list(held).cast_column("image", datasets.Image())
    found.to_parquet(str(path))
    return path


def lines(path: Path, *rows: Any) -> Path:
    """Rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_lines(path, rows)
