"""Where the files of phone datasets lie: TFRecords and JSON files, in folders of folders."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from omnidata.actions import Screen
from omnidata.errors import DataError, Finding
from omnidata.loaders.place import Place, short
from omnidata.loaders.tfexample import read_example
from omnidata.loaders.tfrecord import is_tfrecord, records

Look = Literal["known", "broken", "other"]

_DEPTH = 5
_LONGEST_SIDE = 65_535  # more than pictures of any format here can have
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_RECORD_SUFFIXES = ("", ".gz", ".tfrecord", ".tfrecords")


def walk(data: Path) -> Iterator[Path]:
    """The file, or the files of the folder and of those in it, sorted; no link leads outside.

    Raises:
        OSError: a folder cannot be read.
    """
    if data.is_file():
        yield data
    elif data.is_dir():
        yield from _below(data, data.resolve(), _DEPTH)


def _below(folder: Path, root: Path, depth: int) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = Path(entry.path)
        if entry.name.startswith(".") or not _inside(entry, path, root):
            continue
        if path.is_file():
            yield path
        elif entry.is_dir(follow_symlinks=False) and depth > 1:
            yield from _below(path, root, depth - 1)


def _inside(entry: os.DirEntry[str], path: Path, root: Path) -> bool:
    return not entry.is_symlink() or Path(os.path.realpath(path)).is_relative_to(root)


def may_hold_records(path: Path) -> bool:
    """Whether a file is called like a TFRecord: `name-00000-of-00020`, or by its suffix."""
    return path.suffix in _RECORD_SUFFIXES or bool(_SHARD.search(path.name))


def look(path: Path, features: frozenset[str]) -> Look:
    """Whether a file is a TFRecord whose first example has these features.

    Raises:
        OSError: the file cannot be read.
    """
    if not may_hold_records(path) or not is_tfrecord(path):
        return "other"
    try:
        for record in records(path):
            example = read_example(record.data)
            return "known" if features <= {*example.texts, *example.numbers} else "other"
    except (DataError, ValueError):
        return "broken"
    return "other"


def chosen(data: Path, looks: Mapping[Path, Look], expected: str) -> list[Path]:
    """The files that are known, and the broken ones with them: nobody may overlook those.

    Args:
        data: as the user named it.
        looks: what each file is.
        expected: what would be right, for the message.

    Raises:
        DataError: none is known, unless the one that the user named is broken.
    """
    if "known" not in looks.values() and looks.get(data) != "broken":
        broken = next((path for path, found in looks.items() if found == "broken"), None)
        what = "no file there has the columns of the benchmark"
        remedy = "name other data; `omnidata info` lists the tasks"
        if broken:
            what += f", and {broken.relative_to(data)} is broken"
            remedy = f"download that file again, or {remedy}"
        raise DataError(
            what if data.exists() else "there is no such file or folder",
            where=str(data),
            expected=expected,
            remedy=remedy,
        )
    return [path for path, found in looks.items() if found != "other"]


def fingerprint(paths: Sequence[Path], root: Path) -> str:
    """SHA-256 over files: the same wherever the folder lies.

    Args:
        paths: below the root.
        root: the folder.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0{path.stat().st_size}\0".encode("utf-8", "surrogateescape"))
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def stated_size(width: object, height: object, place: Place) -> Screen:
    """Width and height of a screenshot as a row states them; (0, 0) where they are no size.

    Args:
        width: the row's value; None where it has none.
        height: likewise.
        place: where a finding goes about values that are no size.
    """
    sides = range(1, _LONGEST_SIDE + 1)
    if type(width) is int and type(height) is int and width in sides and height in sides:
        return width, height
    if width is not None or height is not None:
        place.warn(
            "size-unusable",
            f"the screenshot's size is {short(width)} x {short(height)}",
            f"two whole numbers from 1 to {_LONGEST_SIDE}",
            "mend the row; the size counts as unknown until then",
        )
    return 0, 0


def picture_broken(sample_id: str, what: str, expected: str) -> Finding:
    """The finding for a screenshot within a TFRecord that no model can take.

    Args:
        sample_id: of the step, or the name of the picture.
        what: what is wrong with it.
        expected: what would be right.
    """
    return Finding(
        "media-broken",
        "error",
        sample_id,
        f"screenshot: {what}",
        expected,
        "download the file again; a model is not asked about this step until then",
    )
