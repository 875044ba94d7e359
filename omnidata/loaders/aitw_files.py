"""Where Android in the Wild lies, in its three forms, known by their columns.

TFRecords            one example per step: the dataset's own form
NAME.json            one list of steps per episode, NAME_0.png and so on beside it: Android in
                     the Zoo; with image sizes and boxes from 0 to 1: AgentCPM-GUI's CAGUI
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from omnidata.errors import DataError, Finding
from omnidata.files import ANY, open_file, read_file
from omnidata.loaders import file_search, phone_files
from omnidata.loaders.json_lines import BOM, decoded
from omnidata.loaders.place import SKIPPED, Note
from omnidata.loaders.tfexample import Example, read_example
from omnidata.loaders.tfrecord import Record, records

Row = Mapping[str, Any]
Form = Literal["aitw", "aitz", "cagui"]

COLUMNS = "result_action_type, result_touch_yx, result_lift_yx, ui_positions"
FEATURES = "results/action_type, results/yx_touch, results/yx_lift, image/encoded"
PICTURE = "image/encoded"
"""The feature that holds a screenshot."""

_SIGNS = (b'"result_touch_yx"', b'"result_action_type"')
_FOREIGN = (b'"result_touch_xy"', b'"video_path"', b'"current_video"')
"""Columns of OmniGUI, whose numbers have other meanings."""

_HEAD = 1024**2
_PEEKED = 20
_MAX_FILE = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a file.

    Attributes:
        where: the file and the step or record, for findings.
        path: the file.
        row: the row; of an example, its features as lists, with "pixels" or "file" for the picture.
        form: what it is a row of.
        record: the record that holds the picture; None for a row of a JSON file.
        picture: where the picture lies in the record's data.
    """

    where: str
    path: Path
    row: Row
    form: Form
    record: Record | None = None
    picture: slice | None = None


def find(data: Path) -> list[Path]:
    """The files of the dataset, sorted.

    Raises:
        DataError: nothing is there, or nothing of Android in the Wild.
        OSError: a file cannot be read.
    """
    looks = {path: _look(path) for path in file_search.walk(data)}
    expected = f"TFRecords with {FEATURES}; or JSON files of steps with {COLUMNS}"
    return file_search.chosen(data, looks, expected)


def recognises(data: Path, benchmark: str = "") -> bool:
    """Whether one of the first files there is Android in the Wild's.

    Raises:
        OSError: a file cannot be read.
    """
    paths = islice(filter(_may_be, file_search.walk(data)), _PEEKED)
    return any(_look(path) == "known" for path in paths)


def _may_be(path: Path) -> bool:
    return path.suffix == ".json" or phone_files.may_hold_records(path)


def _look(path: Path) -> file_search.Look:
    if path.suffix != ".json":
        return phone_files.look(path, frozenset({"results/action_type"}))
    with open_file(path, ANY) as file:
        head = file.read(_HEAD)
    ours = all(sign in head for sign in _SIGNS) and not any(sign in head for sign in _FOREIGN)
    return "known" if ours else "other"


def fingerprint(data: Path) -> str:
    """SHA-256 over the files, pictures of JSON files left out.

    Raises:
        DataError: as `find`.
    """
    return file_search.fingerprint(find(data), data if data.is_dir() else data.parent)


def read(paths: Sequence[Path], note: Note) -> Iterator[Line]:
    """Every row of the files; those that cannot be read have a finding instead.

    Args:
        paths: as `find` gives them.
        note: takes the findings.
    """
    for path in paths:
        yield from _steps(path, note) if path.suffix == ".json" else _examples(path, note)


def _steps(path: Path, note: Note) -> Iterator[Line]:
    value = decoded(read_file(path, _MAX_FILE).removeprefix(BOM))
    if not isinstance(value, list):
        note(_broken(str(path), "the file is no list of steps", "one list of JSON objects"))
        return
    for number, row in enumerate(value):
        where = f"{path}, item {number}"
        if isinstance(row, dict):
            yield Line(where, path, row, form_of(row))
        else:
            note(_broken(where, "the step is no object", "a JSON object"))


def form_of(row: Row) -> Form:
    """What a row belongs to, by its columns: its numbers would not tell.

    Rows of Android in the Zoo have no size of the picture, and boxes in pixels; whoever gives the
    size, as AgentCPM-GUI does when it converts them, has boxes from 0 to 1.

    Examples:
        >>> form_of({"results/action_type": [4]}), form_of({"image_width": 1080})
        ('aitw', 'cagui')
    """
    if "results/action_type" in row:
        return "aitw"
    return "cagui" if "image_width" in row or "image_height" in row else "aitz"


def _examples(path: Path, note: Note) -> Iterator[Line]:
    try:
        for record in records(path):
            where = f"{path}, record {record.number}"
            try:
                example = read_example(record.data)
                row = example.as_json(but=PICTURE)
            except ValueError as error:
                note(_broken(where, f"the record is no example: {error}", "a tf.train.Example"))
                continue
            parts = example.texts.get(PICTURE, [])
            if parts:
                row[PICTURE] = ["file" if _is_file(example, parts[0]) else "pixels"]
            yield Line(where, path, row, "aitw", record, parts[0] if parts else None)
    except DataError as error:
        note(Finding("record-broken", "error", error.where, error.what, error.expected, SKIPPED))


def _is_file(example: Example, part: slice) -> bool:
    """Whether a picture is a PNG or JPEG file; the dataset's own are bare pixels."""
    start = example.data[part.start : part.start + 4]
    return start.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF"))


def _broken(where: str, what: str, expected: str) -> Finding:
    return Finding("json-invalid", "error", where, what, expected, SKIPPED)
