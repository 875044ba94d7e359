"""How OmniGUI's data are told from other benchmarks'."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnidata.errors import DataError
from omnidata.files import ANY, open_file
from omnidata.loaders.omnigui_files import Row, find
from omnidata.loaders.omnigui_rows import MEDIA_COLUMNS

_PEEKED_ROWS = 20
_PEEKED_BYTES = 1024**2
_SEEN = frozenset({"result_touch_xy", "instruction_en", "instruction_zh"}) | MEDIA_COLUMNS - {
    "image_path"
}
"""Columns of which a row of OmniGUI has one at least."""


def recognises(data: Path, task: str = "omnigui") -> bool:
    """Whether the folder has the paper's layout, or one of a file's first rows is a step.

    Rows in JSON lines count as well, although the loader wants an array: they are no other
    benchmark's.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        files = find(data)
    except DataError:
        paths = sorted(data.glob("*.jsonl"))
    else:
        if files.steps is None:
            return True
        paths = [files.steps]
    return any(_is_step(row) for path in paths for row in _first_rows(path))


def _is_step(row: Row) -> bool:
    keys = row.keys()
    if "result_touch_yx" in keys and _SEEN.isdisjoint(keys):
        return False  # Android in the Wild's columns
    placed = bool(keys & {"episode_id", "ID"}) and bool(keys & {"step_id", "step_index"})
    return placed or "result_action_type" in keys


def _first_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The first objects of an array or of lines, as far as they can be read."""
    with open_file(path, ANY) as file:
        text = file.read(_PEEKED_BYTES).decode("utf-8-sig", "replace")
    decoder, end = json.JSONDecoder(), 0
    for _ in range(_PEEKED_ROWS):
        try:
            row, end = decoder.raw_decode(text, text.index("{", end))
        except (ValueError, RecursionError):
            return
        yield row
