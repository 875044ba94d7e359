"""Where the files of a dataset lie: in folders of folders, each known by a look at it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from omnidata.errors import DataError
from omnidata.files import STREAMED, bounds, inside, open_file, outside, real

Look = Literal["known", "broken", "other"]

_DEEPEST: Final = 32  # folders in folders: no dataset has so many, and recursion has an end


def walk(data: Path) -> Iterator[Path]:
    """The file, or all but the folders in the folder and in those below it, sorted.

    What leads outside is among the files, and no regular file either: whoever opens it says so. A
    link to a folder of the data is passed over, as what lies there is found there.

    Raises:
        DataError: folders lie too deep in one another.
        FileError: links to folders lead outside. It comes last, so that a look at the first files
            knows the data whatever else lies there.
        OSError: a folder cannot be read.
    """
    if data.is_dir():
        far: list[Path] = []
        yield from _below(data, (real(data),), far, 0)
        refuse_far(far, data)
    elif data.exists():
        yield data


def _below(folder: Path, trees: tuple[str, ...], far: list[Path], depth: int) -> Iterator[Path]:
    check_depth(folder, depth)
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if not path.is_dir():
            if path.exists():
                yield path
        elif not entry.is_symlink():
            yield from _below(path, trees, far, depth + 1)
        elif not is_walked(leads := real(path), trees):
            if inside(leads, bounds() or trees):
                yield from _below(path, (*trees, leads), far, depth + 1)
            else:
                far.append(path)


def is_walked(leads: str, trees: Sequence[str]) -> bool:
    """Whether a folder to which a link leads is come to without the link; no hidden one is.

    Args:
        leads: the folder's real path.
        trees: the real paths of the data, and of the linked folders that the link lies in.

    Examples:
        >>> is_walked("/data/a/b", ["/data"]), is_walked("/data/.store/b", ["/data"])
        (True, False)
    """
    return any(
        inside(leads, [tree])
        and not any(part.startswith(".") for part in Path(leads).relative_to(tree).parts)
        for tree in trees
    )


def refuse_far(links: Sequence[Path], data: Path) -> None:
    """Refuse data with links to folders elsewhere: without what lies there each number is wrong.

    Args:
        links: all of them.
        data: as the user named it.

    Raises:
        FileError: there is one.
    """
    if links:
        raise outside(links, bounds() or (real(data),))


def check_depth(folder: Path, depth: int) -> None:
    """Refuse a folder that lies deeper than any dataset's: nothing in it is left out in silence.

    Args:
        folder: to be looked into.
        depth: how many folders it lies in, from the data on.

    Raises:
        DataError: there are too many.
    """
    if depth > _DEEPEST:
        raise DataError(
            "folders lie too deep in one another",
            where=str(folder),
            expected=f"at most {_DEEPEST} folders below the one that was named",
            remedy="name a folder further down, or move what lies there up",
        )


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
