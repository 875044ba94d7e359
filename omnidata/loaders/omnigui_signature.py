"""How OmniGUI's data are told from other benchmarks'."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnidata.errors import DataError
from omnidata.loaders.omnigui_files import Row, find

_PEEKED_ROWS = 20
_PEEKED_BYTES = 1024**2


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
    placed = bool(keys & {"episode_id", "ID"}) and bool(keys & {"step_id", "step_index"})
    return placed or "result_action_type" in keys


def _first_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The first objects of an array or of lines, as far as they can be read."""
    with path.open("rb") as file:
        text = file.read(_PEEKED_BYTES).decode("utf-8-sig", "replace")
    decoder, end = json.JSONDecoder(), 0
    for _ in range(_PEEKED_ROWS):
        try:
            row, end = decoder.raw_decode(text, text.index("{", end))
        except (ValueError, RecursionError):
            return
        yield row
