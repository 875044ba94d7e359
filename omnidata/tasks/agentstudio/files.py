"""AgentStudio's files: a file of rows beside `images/`, or the Hub's Parquet files.

Files are found by their columns, not by their names. If several have the columns of the benchmark,
the one with the name of the release is taken; without one, it is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NoReturn

from omnidata.errors import DataError
from omnidata.files import read_file
from omnidata.loaders import parquet as parquet_rows
from omnidata.loaders.files import holds_rows, not_an_object
from omnidata.loaders.load import Note, RowContext
from omnidata.loaders.row_files import head_of, is_parquet, leaf_parts, read_rows
from omnidata.types import MediaRef, ParquetLocation

# The Hub's form of AgentStudio's rows -> the form of the authors' files.
#
# On the Hub, images are decoded, their names are in columns of their own (`image_path`,
# `obs_before_path`, `obs_after_path`), and the actions of a trajectory are a dict of columns.
# `metadata` has the keys of all rows there, null where a row lacks one.

Row = Mapping[str, Any]
Form = Literal["groundui", "idm-single", "trajectory"]

IMAGES = ("image", "obs_before", "obs_after")
_BOX = ("x", "y", "width", "height")


def form(row: Row) -> Form | None:
    """Return the form of a row by its columns; IDM-Multiple and CriticBench have the same.

    Examples:
        >>> form({"actions": [], "action_space": [], "is_success": True})
        'trajectory'
        >>> form({"text": ""}) is None
        True
    """
    keys = {key.removesuffix("_path") for key in row}
    if {"actions", "action_space"} <= keys:
        return "trajectory"
    if {"operation", "action_space", "obs_before"} <= keys:
        return "idm-single"
    if {"image", "bbox", "resolution"} <= keys:
        return "groundui"
    return None


def rezip(row: Row) -> dict[str, Any]:
    """Return the row in the form of the authors' files, without the images.

    Raises:
        ValueError: the columns of the actions are not lists of one length.

    Examples:
        >>> columns = {"operation": ["click"], "obs_before_path": ["x/images/a/1.png"]}
        >>> rezip({"actions": columns, "action_space": ["click"]})["actions"]
        [{'operation': 'click', 'obs_before': 'a/1.png'}]
    """
    plain = _plain(row)
    actions = row.get("actions")
    if isinstance(actions, Mapping):
        lengths = {len(v) if isinstance(v, list) else -1 for v in actions.values()}
        if len(lengths) > 1 or -1 in lengths:
            raise ValueError("the columns of its actions are not lists of one length")
        actions = [
            dict(zip(actions, values, strict=True))
            for values in zip(*actions.values(), strict=True)
        ]
    if isinstance(actions, list):
        plain["actions"] = [_plain(a) if isinstance(a, Mapping) else a for a in actions]
    return plain


def _plain(row: Row) -> dict[str, Any]:
    plain = {}
    for key, value in row.items():
        name = key.removesuffix("_path")
        if name in IMAGES:
            if key == name and f"{name}_path" not in row:
                plain[name] = _name(value.get("path") if isinstance(value, Mapping) else value)
            elif key != name:
                plain[name] = _name(value)
        elif key == "metadata" and isinstance(value, Mapping):
            plain[key] = {k: v for k, v in value.items() if v is not None}
        elif key == "bbox" and isinstance(value, Mapping):
            plain[key] = dict(value) if any(value.get(k) is not None for k in _BOX) else None
        else:
            plain[key] = value
    return plain


def _name(value: Any) -> Any:
    """Return the path below `images`: the Hub's paths include the folders above."""
    below = f"/{value}".partition("/images/")[2] if isinstance(value, str) else ""
    return below or value


# Parquet files of the Hub's form: rows without their images, and the places of the images.


@dataclass(frozen=True, slots=True)
class Held:
    """The images in a row of a Parquet file.

    Attributes:
        path: the file.
        row: its number in the file, from 0.
        columns: the columns of the images, by the names in the authors' files.
    """

    path: Path
    row: int
    columns: Mapping[str, str]

    def image(self, column: str, name: str, item: int | None) -> MediaRef:
        """Return a reference to an image by its old name; `item` is the action's number."""
        # The Hub's cache links its files to others elsewhere, and the rows are from there too.
        path = self.path.resolve()
        cell = ParquetLocation(path.name, self.columns[column], self.row, item)
        return MediaRef("image", path.parent, name, cell=cell)


def _is_image(leaf: str) -> bool:
    *above, column, last = ["", *leaf_parts(leaf)]
    return last == "bytes" and column in IMAGES and above in ([""], ["", "actions"])


TaskName = Literal["groundui", "idm-single", "idm-multiple", "criticbench"]
TASKS: tuple[TaskName, ...] = ("groundui", "idm-single", "idm-multiple", "criticbench")

_FORMS: dict[TaskName, Form] = {
    "groundui": "groundui",
    "idm-single": "idm-single",
    "idm-multiple": "trajectory",
    "criticbench": "trajectory",
}
_COLUMNS: dict[Form, str] = {
    "groundui": "image, instruction, bbox and resolution",
    "idm-single": "obs_before, obs_after, operation and action_space",
    "trajectory": "actions and action_space",
}
_RELEASED: dict[TaskName, str] = {
    "idm-multiple": "metadata_idmn2n",
    "criticbench": "metadata_success_detection",
}
"""Stems of the two files of the release with the same columns."""
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})")
_SIGNS = (b'"action_space"', b'"resolution"')
_PEEKED_LINES = 20


@dataclass(frozen=True, slots=True)
class Files:
    """The annotation files of one benchmark.

    Attributes:
        paths: one file of rows, or Parquet files in the order of their rows.
        images: the folder that image paths are relative to; it need not exist.
        stem: the beginning of the samples' ids.
        missing: the number of missing shards, by the names of the others.
    """

    paths: Sequence[Path]
    images: Path
    stem: str
    missing: int = 0

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for path in self.paths:
            if is_parquet(path):  # the rows without their images, and the images' sizes
                with parquet_rows.open_checked(path) as file:
                    leaves = [leaf for leaf in parquet_rows.leaves(file) if not _is_image(leaf)]
                    content = parquet_rows.digest(path, file, leaves)
            else:
                content = read_file(path)
            digest.update(f"{path.name}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            digest.update(content)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a file.

    Attributes:
        where: the file and the line, or the row of a Parquet file.
        row: in the form of the authors' files; None for an unreadable line.
        held: the images in the file itself.
    """

    where: str
    row: Row | None
    held: Held | None = None


def find(data: Path, task: TaskName) -> Files:
    """Return the files with the benchmark's columns.

    Raises:
        DataError: nothing is there, or no file or several have the columns.
    """
    if data.is_file():
        groups = [[data]]
    elif data.is_dir():
        groups = _groups(data)
    else:
        _refuse("there is no such file or folder", data, task)
    forms = [_peek(paths[0]) for paths in groups]
    wanted = _FORMS[task]
    matching = [paths for paths, found in zip(groups, forms, strict=True) if found == wanted]
    if data.is_file() and forms == [None]:
        matching = groups  # its rows may be broken; the findings will say how
    released = [paths for paths in matching if _stem(paths[0])[0] == _RELEASED.get(task)]
    if len(released) == 1:
        matching = released
    if len(matching) > 1:
        raise DataError(
            f"several files have the columns of {task}: "
            + ", ".join(paths[0].name for paths in matching),
            where=str(data),
            expected="one such file, or the name of one",
            remedy=f'name the file of {task}; in Python, omnidata.load_dataset("{task}", FILE)',
        )
    if not matching:
        _refuse("no rows have the columns of the benchmark", data, task)
    paths = matching[0]
    stem, count = _stem(paths[0])
    missing = count - len(paths) if count and data.is_dir() else 0
    return Files(paths, _images(paths[0].parent), stem, missing)


@dataclass(frozen=True, slots=True)
class BenchmarkFiles:
    """The files of one of the benchmarks, as `omnidata.tasks.benchmark.Files`."""

    task: TaskName

    @property
    def columns(self) -> str:
        """The columns of the rows, in words."""
        return f"rows with {_COLUMNS[_FORMS[self.task]]}"

    def recognises(self, data: Path) -> bool:
        """Return whether the first row of a file has the benchmark's columns."""
        groups = [[data]] if data.is_file() else _groups(data)
        return any(_peek(paths[0]) == _FORMS[self.task] for paths in groups)

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 of the annotations."""
        return find(data, self.task).fingerprint()


def _groups(data: Path) -> list[list[Path]]:
    groups: dict[tuple[Path, str], list[Path]] = {}
    for folder in (data, data / "data"):
        for path in sorted(folder.glob("*")):
            if holds_rows(path) and path.exists():
                stem, count = _stem(path)
                name = f"{stem} {count}" if count else path.name
                groups.setdefault((folder, name), []).append(path)
    return list(groups.values())


def _stem(path: Path) -> tuple[str, int]:
    found = _SHARD.fullmatch(path.stem)
    if found and path.suffix == ".parquet":
        return found["stem"], int(found["count"])
    return path.stem, 0


def _images(folder: Path) -> Path:
    beside_data = folder.parent / "images"  # as on the Hub
    own = folder / "images"
    return beside_data if beside_data.is_dir() and not own.is_dir() else own


def _peek(path: Path) -> Form | None:
    if is_parquet(path):
        with parquet_rows.open_checked(path) as file:
            return form(dict.fromkeys(file.schema_arrow.names))
    head = head_of(path)
    if not any(sign in head for sign in _SIGNS):
        return None  # large documents of others are not decoded
    first = (line.row for line in islice(read_rows(path), _PEEKED_LINES))
    return next((form(row) for row in first if isinstance(row, dict)), None)


def _refuse(what: str, data: Path, task: TaskName) -> NoReturn:
    raise DataError(
        what,
        where=str(data),
        expected=f"a file of {task}, or a folder with one: {BenchmarkFiles(task).columns}",
    )


def read(files: Files, note: Note) -> Iterator[Line]:
    """Yield every row, also unreadable ones, which have a finding.

    Raises:
        DataError: a Parquet file cannot be read.
    """
    if files.missing:
        RowContext(str(files.paths[0].parent), note).refuse(
            "shard-missing",
            f"{files.missing} of {files.missing + len(files.paths)} shards are missing",
            "all shards that the file names announce",
            "download the others; the present rows are used until then",
        )
    for path in files.paths:
        if is_parquet(path):
            yield from _parquet(path, note)
            continue
        for line in read_rows(path):
            if not isinstance(line.row, dict):
                note(not_an_object(line, "one JSON object in UTF-8"))
                yield Line(line.where, None)
                continue
            actions = line.row.get("actions")
            listed = actions if isinstance(actions, list) else []
            is_columnwise = isinstance(actions, Mapping) or any(
                f"{key}_path" in held or isinstance(held.get(key), Mapping)
                for held in (line.row, *(each for each in listed if isinstance(each, Mapping)))
                for key in IMAGES
            )
            row = _rezip(line.row, line.where, note) if is_columnwise else line.row
            yield Line(line.where, row)


def _parquet(path: Path, note: Note) -> Iterator[Line]:
    with parquet_rows.open_checked(path) as file:
        leaves = parquet_rows.leaves(file)
        images = [leaf for leaf in leaves if _is_image(leaf)]
        columns = {leaf_parts(leaf)[-2]: leaf.removesuffix(".bytes") for leaf in images}
        wanted = [leaf for leaf in leaves if leaf not in images]
        for number, row in enumerate(parquet_rows.rows(path, file, wanted)):
            where = f"{path}, row {number}"
            yield Line(where, _rezip(row, where, note), Held(path, number, columns))


def _rezip(row: Row, where: str, note: Note) -> Row | None:
    try:
        return rezip(row)
    except ValueError as error:
        RowContext(where, note).refuse(
            "columns-differ",
            f"the row cannot be read: {error}",
            "a list of actions, or a dict of lists of one length",
            "correct the row; it is skipped until then",
        )
        return None
