"""Where the files of a dataset lie: in folders of folders, each known by a look at it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from omnidata.errors import DataError

Look = Literal["known", "broken", "other"]

_DEPTH = 5


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
