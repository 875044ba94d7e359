"""Where ScreenSpot lies: JSON lists, or JSON lines, known by their columns.

screenspot_web.json, screenspot_web_v2.json       a list per platform: ScreenSpot, ScreenSpot-v2
annotations/photoshop_windows.json                a list per application: ScreenSpot-Pro
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from omnidata.errors import Finding
from omnidata.files import ANY, open_file
from omnidata.jsontext import BROKEN
from omnidata.loaders import desk_files, file_search
from omnidata.loaders.json_lines import values
from omnidata.loaders.place import SKIPPED, Note
from omnidata.loaders.screenspot_rows import Form

COLUMNS: Final = (
    "JSON lists of img_filename, bbox, instruction and data_type (ScreenSpot, -v2), or with "
    "img_size and ui_type (ScreenSpot-Pro)"
)
_IMAGES: Final = ("images", "screenspot_imgs", "screenspotv2_image")
_PLATFORM: Final = re.compile(r"screenspot_(mobile|desktop|web)(_v2)?")
_SIGNS: Final = (b'"bbox"', b'"instruction"')
_FILES: Final = (b'"img_filename"', b'"file_name"')
_TYPES: Final = (b'"data_type"', b'"ui_type"')
_SUFFIXES: Final = (".json", ".jsonl")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a file.

    Attributes:
        where: the file and the place in it, for findings.
        path: the file.
        number: 0-based, in the file.
        row: untouched.
    """

    where: str
    path: Path
    number: int
    row: Mapping[str, Any]


def find(data: Path) -> list[Path]:
    """The files of the dataset, sorted.

    Raises:
        DataError: nothing is there, or nothing of ScreenSpot.
        OSError: a file cannot be read.
    """
    looks = {path: look(path) for path in file_search.walk(data)}
    return file_search.chosen(data, looks, COLUMNS)


def look(path: Path) -> file_search.Look:
    """Whether a file has the columns.

    Raises:
        OSError: the file cannot be read.
    """
    if path.suffix not in _SUFFIXES:
        return "other"
    with open_file(path, ANY) as file:
        head = file.read(desk_files.HEAD)
    named = any(sign in head for sign in _FILES) and any(sign in head for sign in _TYPES)
    return "known" if named and all(sign in head for sign in _SIGNS) else "other"


def recognises(data: Path, benchmark: str = "") -> bool:
    """Whether one of the first files there is ScreenSpot's.

    Raises:
        OSError: a file cannot be read.
    """
    return desk_files.recognises(data, _SUFFIXES, look)


def fingerprint(data: Path) -> str:
    """SHA-256 over the files, pictures left out.

    Raises:
        DataError: as `find`.
    """
    return file_search.fingerprint(find(data), data if data.is_dir() else data.parent)


def read(paths: Sequence[Path], note: Note) -> Iterator[Line]:
    """Every row; what is none has a finding instead.

    Args:
        paths: as `find` gives them.
        note: takes the findings.
    """
    for path in paths:
        for number, (where, row) in enumerate(_rows(path)):
            if isinstance(row, dict):
                yield Line(where, path, number, row)
            else:
                what = "this is no JSON object"
                note(Finding("json-invalid", "error", where, what, COLUMNS, SKIPPED))


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".jsonl":
        yield from values(path)
        return
    found = desk_files.whole(path)
    if isinstance(found, list):
        yield from ((f"{path}, item {number}", row) for number, row in enumerate(found))
    else:
        yield str(path), found if isinstance(found, dict) else BROKEN


def form_of(path: Path, row: Mapping[str, Any]) -> Form:
    """Which of the three a row is of; the boxes of the first two are alike.

    Examples:
        >>> form_of(Path("screenspot_web_v2.json"), {"data_type": "icon"})
        'screenspot-v2'
    """
    if "ui_type" in row:
        return "screenspot-pro"
    named = _PLATFORM.match(path.stem)
    return "screenspot-v2" if named and named[2] else "screenspot"


def platform_of(path: Path, row: Mapping[str, Any]) -> str:
    """The platform, as the row says, or the file's name as in the release; empty otherwise.

    Examples:
        >>> platform_of(Path("screenspot_mobile.json"), {})
        'mobile'
    """
    said = row.get("platform")
    if isinstance(said, str) and said:
        return said
    named = _PLATFORM.match(path.stem)
    return named[1] if named else ""


def images(path: Path) -> Path:
    """The folder with the pictures of a file's rows; it need not exist."""
    return desk_files.images(path, _IMAGES)
