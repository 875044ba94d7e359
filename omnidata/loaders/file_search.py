"""Where the files of a dataset lie: in folders of folders, each known by a look at it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from omnidata.errors import DataError
from omnidata.files import STREAMED, followed, open_file

Look = Literal["known", "broken", "other"]

_DEPTH = 5


def walk(data: Path) -> Iterator[Path]:
    """The file, or all but the folders in the folder and in those below it, sorted.

    What leads outside is among them, and no regular file either: whoever opens it says so. Of links
    to folders only those are followed that the user asked for.

    Raises:
        OSError: a folder cannot be read.
    """
    if data.is_dir():
        yield from _below(data, _DEPTH)
    elif data.exists():
        yield data


def _below(folder: Path, depth: int) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if path.is_dir():
            if depth > 1 and (not entry.is_symlink() or followed(path)):
                yield from _below(path, depth - 1)
        elif path.exists():
            yield path


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
        with open_file(path, STREAMED) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
