"""Where OmniBench's metadata lie: JSON lines, or JSON files, known by their columns.

The paper names no files (Appendix C). A folder may hold them all, beside each other or one level
below; what a file is called does not matter. Files of other things are passed over.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NoReturn

from omnidata.errors import DataError, Finding
from omnidata.files import ANY, STREAMED, open_file
from omnidata.jsontext import BROKEN, MAX_LINE, json_file, json_lines
from omnidata.loaders.files import SKIPPED
from omnidata.loaders.load import Note

Row = Mapping[str, Any]
Kind = Literal["subtask", "trajectory", "task"]

COLUMNS: Mapping[Kind, str] = {
    "subtask": "instruction_template, application, available_parameters, OS, input_resources, "
    "output_resources",
    "trajectory": "trajectory_id, instruction, observations, actions, and subtask_id or task_id",
    "task": "task_instruction, dag, task_intent, successful_topo",
}
"""What the rows have (Appendix C); the first ones are what they are known by."""

MAX_FILE = 512 * 1024**2
_PEEKED = 20
_HEAD = 1024**2
_SIGNS = (b'"instruction_template"', b'"dag"', b'"actions"', b'"observations"')
_SUFFIXES = (".json", ".jsonl")
_NO_ROW = (
    "the row is not a JSON object",
    f"one JSON object in UTF-8 of at most {MAX_LINE} bytes",
)
_NO_DOCUMENT = (
    "the file is neither a JSON object nor a list",
    f"one of them in UTF-8 of at most {MAX_FILE} bytes; JSON lines belong into a .jsonl file",
)
"""What is wrong with a row or a file, and what is expected."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a file.

    Attributes:
        where: the file and the line, or the item of a list.
        row: the row.
        kind: what it is; None for a row that is none of the three.
        name: what the row is called if it does not say so itself: the name of its file if it is
            alone in there, else its 0-based number.
    """

    where: str
    row: Row
    kind: Kind | None
    name: str


def kind_of(row: object) -> Kind | None:
    """What a row is, by its columns.

    Examples:
        >>> kind_of({"dag": {"A": ["B"]}}), kind_of({"actions": [], "action_space": []})
        ('task', None)
    """
    if not isinstance(row, Mapping):
        return None
    if "instruction_template" in row:
        return "subtask"
    if "dag" in row:
        return "task"
    named = not row.keys().isdisjoint(("trajectory_id", "observations", "subtask_id", "task_id"))
    return "trajectory" if "actions" in row and named and "action_space" not in row else None


def find(data: Path) -> list[Path]:
    """The files of a dataset that have OmniBench's columns, or none that can be read, sorted.

    Args:
        data: a file, or a folder.

    Raises:
        DataError: nothing is there, or nothing with such columns. One file without any JSON is not
            refused: its findings will say more.
    """
    if data.is_file():
        looks = {data: _look(data)}
    elif data.is_dir():
        looks = {path: _look(path) for path in _candidates(data)}
    else:
        _refuse("there is no such file or folder", data)
    if "known" not in looks.values() and looks.get(data) != "broken":
        _refuse("no rows there have the columns of the benchmark", data)
    return [path for path, look in looks.items() if look != "other"]


def _refuse(what: str, data: Path) -> NoReturn:
    raise DataError(
        what,
        where=str(data),
        expected="JSON lines or JSON files of OmniBench, or a folder with them: "
        + "; or ".join(f"a {kind} with {columns}" for kind, columns in COLUMNS.items()),
    )


def recognises(data: Path) -> bool:
    """Whether a file there has rows of OmniBench.

    Raises:
        OSError: a file cannot be read.
    """
    paths = [data] if data.is_file() else _candidates(data)
    return any(_look(path) == "known" for path in paths)


def _candidates(folder: Path) -> Iterator[Path]:
    """JSON files in a folder and one level below, sorted; none that leads outside is opened."""
    for entry in sorted(_entries(folder), key=lambda entry: entry.name):
        if entry.is_dir():
            below = [item for item in _entries(Path(entry.path)) if _is_candidate(item)]
            yield from sorted(Path(item.path) for item in below)
        elif _is_candidate(entry):
            yield Path(entry.path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def _is_candidate(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(_SUFFIXES) and Path(entry.path).exists() and not entry.is_dir()


def _look(path: Path) -> Literal["known", "broken", "other"]:
    """Whether one of the first rows is of a known kind, or none of them is JSON.

    A document is not decoded where nothing in its first megabyte looks like ours: other benchmarks
    have documents of hundreds of them.
    """
    if path.suffix == ".json":
        with open_file(path, ANY) as file:
            head = file.read(_HEAD)
        if not any(sign in head for sign in _SIGNS):
            return "other"
    first = [value for _, value in islice(_values(path), _PEEKED)]
    if any(map(kind_of, first)):
        return "known"
    return "broken" if first and all(value is BROKEN for value in first) else "other"


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    """Every row of a file and its place; `BROKEN` for a line that is no JSON."""
    if path.suffix == ".json":
        yield from _document(path)
        return
    yield from json_lines(path)


def _document(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows of a JSON file: one object, or a list of them."""
    value = json_file(path, MAX_FILE)
    if not isinstance(value, list):
        yield str(path), value
        return
    for number, item in enumerate(value):
        yield f"{path}, item {number}", item


def read(paths: Sequence[Path], note: Note) -> Iterator[Line]:
    """Every row of the files; those that cannot be read have a finding instead.

    Args:
        paths: as `find` gives them.
        note: takes the findings.

    Raises:
        OSError: a file cannot be read.
    """
    for path in paths:
        alone = path.suffix == ".json"
        for number, (where, value) in enumerate(_values(path)):
            name = path.stem if alone and where == str(path) else str(number)
            if isinstance(value, Mapping):
                yield Line(where, value, kind_of(value), name)
                continue
            what, expected = _NO_ROW
            if alone and where == str(path):
                what, expected = _NO_DOCUMENT
            note(Finding("json-invalid", "error", where, what, expected, SKIPPED))


def fingerprint(data: Path) -> str:
    """SHA-256 over the annotations: the same wherever the data lie, pictures left out.

    Raises:
        DataError: as `find`.
    """
    root = data if data.is_dir() else data.parent
    digest = hashlib.sha256()
    for path in find(data):
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0{path.stat().st_size}\0".encode("utf-8", "surrogateescape"))
        with open_file(path, STREAMED) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


# The applications of OmniBench and their categories (Table 10).


@cache
def _content() -> Mapping[str, Any]:
    text = resources.files("omnidata.tasks.omnibench").joinpath("table10.json").read_bytes()
    content: Mapping[str, Any] = json.loads(text)
    return content


@cache
def table10() -> Mapping[str, str]:
    """Application -> category, as printed.

    Examples:
        >>> len(table10()), len(set(table10().values()))
        (49, 12)
    """
    categories = _content()["categories"].items()
    return {app: category for category, apps in categories for app in apps}


@cache
def _by_key() -> Mapping[str, str]:
    spellings = {said: table10()[app] for said, app in _content()["spellings"].items()}
    return {_key(app): category for app, category in {**table10(), **spellings}.items()}


def _key(app: str) -> str:
    return " ".join(app.split()).casefold()


def category_of(app: str) -> str | None:
    """The category of an application; None for one that Table 10 does not have.

    Case and repeated spaces do not count, and the released code's spellings are known. Nothing else
    is guessed: the paper's own figure has an Outlook that the table lacks.

    Examples:
        >>> category_of("excel"), category_of("Outlook")
        ('Office', None)
    """
    return _by_key().get(_key(app))


def categories_of(apps: Iterable[str], given: Mapping[str, str] = {}) -> dict[str, str]:
    """Application -> category; an unknown application is a category of its own.

    Args:
        apps: the applications of a task.
        given: what the source says, which comes first.

    Examples:
        >>> categories_of(["Word", "Outlook"])
        {'Word': 'Office', 'Outlook': 'Outlook'}
    """
    return {app: given.get(app) or category_of(app) or app for app in apps}
