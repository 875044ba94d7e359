"""Where AndroidWorld's results are written: checkpoints, JSON, tables as CSV or as printed.

Sources: AndroidWorld's `checkpointer.py`, `suite_utils.py` (`process_episodes` tabulates and
prints); droidrun's evaluation (`eval/tracker.py` of its droidrun-android-world).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isnan
from pathlib import Path
from typing import Any, Final, Literal

from omnidata.errors import Finding
from omnidata.files import ANY, open_text, read_text
from omnidata.loaders.files import SKIPPED, holds_rows, not_an_object
from omnidata.loaders.load import Note, RowContext
from omnidata.loaders.pickles import pickle_head, read_pickle
from omnidata.loaders.row_files import head_of, read_rows

Kind = Literal["checkpoint", "episodes", "droidrun", "csv", "printed"]

EXPECTED: Final = (
    "checkpoints (TASK_0.pkl.gz), JSON of episodes with task_template and is_successful, "
    "droidrun's result.json, or tables of tasks with mean_success_rate and num_complete_trials, "
    "as CSV or as printed"
)
LARGEST: Final = 64 * 1024**2
RESULT: Final = "result.json"
_PICKLED: Final = (".pkl", ".pickle", ".pkl.gz", ".pickle.gz")
_PRINTED: Final = ("", ".txt", ".log", ".out", ".md")
_COLUMNS: Final = ("num_complete_trials", "mean_success_rate")
_EPISODE: Final = (b'"task_template"', b'"is_successful"')
_DROIDRUN: Final = (b'"task_name"', b'"success"', b'"steps_taken"')
_LONGEST_LINE: Final = 1024**2
_RECORDS: Final = frozenset(
    f"android_world.env.{name}"
    for name in (
        "representation_utils.UIElement",
        "representation_utils.BoundingBox",
        "json_action.JSONAction",
    )
)
"""Classes of AndroidWorld whose objects its own agents M3A and T3A keep in their steps."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a file.

    Attributes:
        path: of the file.
        where: the file, and the line or item.
        kind: of the file.
        row: an episode in AndroidWorld's names, or a task of a table.
        source: the untouched row, without long columns.
    """

    path: Path
    where: str
    kind: Kind
    row: Mapping[str, Any]
    source: Mapping[str, Any]

    @property
    def is_table(self) -> bool:
        """Whether a row is about all episodes of a task."""
        return self.kind in ("csv", "printed")


def kind_of(path: Path) -> Kind | None:
    """Return the kind of a file by its beginning; None if it is not AndroidWorld's.

    Raises:
        OSError: the file cannot be read.
    """
    if is_pickle(path):
        return "checkpoint" if b"task_template" in pickle_head(path, 64 * 1024) else None
    if holds_rows(path):
        head = head_of(path)
        if all(sign in head for sign in _EPISODE):
            return "episodes"
        return "droidrun" if all(sign in head for sign in _DROIDRUN) else None
    if path.suffix == ".csv":
        return "csv" if all(name.encode() in head_of(path) for name in _COLUMNS) else None
    return "printed" if path.suffix in _PRINTED and _has_table(path) else None


def _has_table(path: Path) -> bool:
    lines = head_of(path).splitlines()
    return any(_is_header(_cells(line)) for line in lines)


def _cells(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace").strip()
    if text.startswith("|"):
        return [cell.strip() for cell in text[1:].removesuffix("|").split("|")]
    return text.split()


def _is_header(words: Sequence[str]) -> bool:
    return set(_COLUMNS) <= set(words)


def is_pickle(path: Path) -> bool:
    """Return whether a file has the ending of a pickle."""
    return path.name.endswith(_PICKLED)


def entries(path: Path, kind: Kind, note: Note) -> Iterator[Entry]:
    """Yield the rows of a file; unusable ones become findings."""
    readers: Mapping[Kind, Callable[[Path, Note], Iterator[Entry]]] = {
        "checkpoint": _checkpoint,
        "episodes": _episodes,
        "droidrun": _droidrun,
        "csv": _table,
        "printed": _last_table,
    }
    yield from readers[kind](path, note)


def _checkpoint(path: Path, note: Note) -> Iterator[Entry]:
    try:
        held = read_pickle(path, records=_RECORDS)
    except ValueError as error:
        note(
            Finding(
                "pickle-refused",
                "error",
                str(path),
                str(error),
                "a checkpoint with only dates, NumPy arrays and numbers, lists, dicts and texts",
                "export the episodes as JSON; nothing in the file is used or run",
            )
        )
        return
    if isinstance(held, tuple) and held:
        held = held[0]
    for number, episode in enumerate(held if isinstance(held, list) else [held]):
        where = f"{path}, episode {number}"
        if not isinstance(episode, dict):
            RowContext(where, note).refuse("episode-unusable", "it is not an episode", EXPECTED)
            continue
        row = {name: plain for name, value in episode.items() if (plain := _plain(value)) != ()}
        if (said := episode.get("is_successful")) is not None:
            row.setdefault("is_successful", f"a {type(said).__name__}")  # which is no number
        yield Entry(path, where, "checkpoint", row, row)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int | float) else ()


def _objects(path: Path, note: Note) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in read_rows(path):
        if isinstance(line.row, dict):
            yield line.where, line.row
        else:
            note(not_an_object(line, EXPECTED))


def _episodes(path: Path, note: Note) -> Iterator[Entry]:
    for where, row in _objects(path, note):
        yield Entry(path, where, "episodes", row, row)


_LONG: Final = ("trajectory", "logs")
_NAMES: Final = {
    "task_name": "task_template",
    "task_description": "goal",
    "task_idx": "instance_id",
    "success": "is_successful",
    "steps_taken": "episode_length",
    "execution_time": "run_time",
    "error": "exception_info",
}
"""What droidrun's tracker calls the columns of an episode."""


def _droidrun(path: Path, note: Note) -> Iterator[Entry]:
    for where, row in _objects(path, note):
        if "task_name" not in row and isinstance(row.get("tasks"), list):
            continue
        source = {name: value for name, value in row.items() if name not in _LONG}
        named = {_NAMES.get(name, name): value for name, value in source.items()}
        yield Entry(path, where, "droidrun", named, source)


def _table(path: Path, note: Note) -> Iterator[Entry]:
    text = read_text(path, LARGEST).decode("utf-8", "replace")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = reader.fieldnames or [""]
        for row in reader:
            name = row.get("task_template") or row.get("task") or row.get(names[0]) or ""
            where = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                _refuse_columns(where, names, note)
            elif not name.startswith("="):
                named = {**row, "task_template": name}
                yield Entry(path, where, "csv", named, named)
    except csv.Error as error:
        note(Finding("csv-invalid", "error", str(path), str(error), "a table as CSV", SKIPPED))


def _last_table(path: Path, note: Note) -> Iterator[Entry]:
    """A log prints the table after each episode, over all episodes so far; the last counts."""
    columns: list[str] = []
    lines: list[tuple[int, list[str]]] = []
    is_open = False
    with open_text(path, ANY) as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            words = _cells(line)
            if _is_header(words):
                columns = words[1:] if line.lstrip().startswith(b"|") else words
                lines, is_open = [], True
            elif is_open and words and not words[0].startswith("="):
                lines.append((number, words))
            elif is_open and (lines or words):
                is_open = False
    for number, (name, *values) in lines:
        where = f"{path}:{number}"
        if not values or not any(cell.strip(":-") for cell in (name, *values)):
            continue  # the name of the column of tasks, or the line below the header
        if len(values) != len(columns) or not name.strip("."):
            _refuse_columns(where, ["the task", *columns], note)
        else:
            row = dict(zip(columns, values, strict=True))
            row = {"task_template": row.get("task", name), **row}
            yield Entry(path, where, "printed", row, row)


def _refuse_columns(where: str, names: Sequence[str], note: Note) -> None:
    RowContext(where, note).refuse(
        "columns-differ", "the row has other columns than the table", ", ".join(names)
    )
