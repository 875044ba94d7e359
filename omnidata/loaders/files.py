"""Find a benchmark's files in nested folders, and read their rows."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from omnidata.errors import (
    DataError,
    Finding,
    StoreError,
    plural,
)
from omnidata.files import STREAMED, bounds, inside, open_file, outside, real
from omnidata.loaders import parquet
from omnidata.loaders.row_files import Line, head_of, is_parquet, read_rows, readable
from omnidata.media import (
    unpack_command,
)
from omnidata.types import MediaRef

Look = Literal["known", "broken", "other"]

OTHER_DATA: Final = "name other data; `omnidata info` lists the tasks"
"""The remedy of an error about data that are none of a task's."""
_DEEPEST: Final = 32  # folders in folders: no dataset has so many, and recursion has an end


def walk(data: Path) -> Iterator[Path]:
    """Yield the file itself, or all files in and below the folder, sorted.

    Links to files outside and special files are among them: opening one raises the error. A link to
    a folder of the data is skipped, because that folder is walked itself.

    Raises:
        DataError: the folders are nested too deeply.
        FileError: links to folders lead outside; raised after the last file, so the first files
            can be recognised.
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
        elif not path.is_symlink():
            yield from _below(path, trees, far, depth + 1)
        elif not is_walked(leads := real(path), trees):
            if inside(leads, bounds() or trees):
                yield from _below(path, (*trees, leads), far, depth + 1)
            else:
                far.append(path)


def is_walked(leads: str, trees: Sequence[str]) -> bool:
    """Return whether a link's target is walked anyway; hidden folders are not.

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
    """Refuse data with links to folders outside: numbers without them would be wrong.

    Args:
        links: all of them.
        data: as the user named it.

    Raises:
        FileError: there is one.
    """
    if links:
        raise outside(links, bounds() or (real(data),))


def check_depth(folder: Path, depth: int) -> None:
    """Refuse a folder that is nested too deeply, so nothing is skipped silently.

    Args:
        folder: to be looked into.
        depth: how many folders it lies in, from the data on.

    Raises:
        DataError: there are too many.
    """
    if depth > _DEEPEST:
        raise DataError(
            "the folders are nested too deeply",
            where=str(folder),
            expected=f"at most {_DEEPEST} levels below the named folder",
            remedy="name a folder further down, or move its content up",
        )


def select_files(data: Path, looks: Mapping[Path, Look], expected: str) -> list[Path]:
    """Return the recognised files, together with broken ones, which must not be overlooked.

    Args:
        data: as the user named it.
        looks: what each file is.
        expected: what would be right, for the message.

    Raises:
        DataError: none is known, unless the one that the user named is broken.
    """
    if "known" not in looks.values() and looks.get(data) != "broken":
        broken = next((path for path, found in looks.items() if found == "broken"), None)
        what = "no file has the columns of the benchmark"
        remedy = OTHER_DATA
        if zips := sorted(data.glob("*.zip")):
            what += f", and {plural(len(zips), 'zip')} must be unpacked first"
            remedy = unpack_command(zips[0])
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
    """Return SHA-256 over files, independent of the folder's location.

    Args:
        paths: below the root.
        root: the folder.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        digest.update(_digest(path, root))
    return digest.hexdigest()


def _digest(path: Path, root: Path) -> bytes:
    name = path.relative_to(root).as_posix()
    about = f"{name}\0{path.stat().st_size}\0".encode("utf-8", "surrogateescape")
    with open_file(path, STREAMED) as file:
        return about + hashlib.file_digest(file, "sha256").digest()


# The files of a benchmark's rows.

SKIPPED: Final = "correct the row; it is skipped until then"
"""The usual remedy for a row that cannot be used."""
_PEEKED: Final = 50
_SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson", ".parquet"})


@dataclass(frozen=True, slots=True)
class RowFiles:
    """The files of a benchmark's rows, in any format that `read_rows` reads.

    Attributes:
        columns: of the rows, for messages.
        look: whether a file is the benchmark's; a broken one may be. Uses `head_of`.
        listed: returns the files that the user's path may mean.
        unread: columns that are left out, such as whole pages of HTML.
        text_first: whether the benchmark is published both as JSON and as Parquet, so that of both
            in one folder the JSON alone is read.
    """

    columns: str
    look: Callable[[Path], Look]
    listed: Callable[[Path], Iterable[Path]] = walk
    unread: Collection[str] = ()
    text_first: bool = False

    def find(self, data: Path) -> list[Path]:
        """Return the benchmark's files, sorted.

        Raises:
            DataError: nothing is there, or nothing of the benchmark.
            OSError: a file cannot be read.
        """
        looks = {path: self._look(path, data) for path in self.listed(data)}
        found = select_files(data, looks, self.columns)
        texts = [path for path in found if looks[path] == "known" and not is_parquet(path)]
        return texts if self.text_first and texts else found

    def recognises(self, data: Path) -> bool:
        """Return whether one of the first files is the benchmark's.

        Raises:
            OSError: a file cannot be read.
        """
        paths = (path for path in self.listed(data) if holds_rows(path) or path == data)
        return any(self._look(path, data) == "known" for path in islice(paths, _PEEKED))

    def fingerprint(self, data: Path) -> str:
        """Return SHA-256 over the files; of Parquet over the rows and the sizes of all columns.

        Raises:
            DataError: as `find`, or a file cannot be read.
        """
        digest, root = hashlib.sha256(), data if data.is_dir() else data.parent
        for path in self.find(data):
            digest.update(self._digest_rows(path) if is_parquet(path) else _digest(path, root))
        return digest.hexdigest()

    def rows(self, paths: Iterable[Path], note: Callable[[Finding], None]) -> Iterator[Line]:
        """Yield every row of files; anything that is no JSON object becomes a finding.

        Args:
            paths: the files of `find`.
            note: receives the findings.

        Raises:
            DataError: a Parquet file cannot be read.
            OSError: a file cannot be read.
        """
        for path in paths:
            for line in read_rows(path, unread=self.unread):
                if isinstance(line.row, dict):
                    yield line
                else:
                    note(not_an_object(line, self.columns))

    def _look(self, path: Path, data: Path) -> Look:
        if not holds_rows(path) and path != data:
            return "other"
        try:
            return self.look(path)
        except StoreError:
            raise
        except DataError:
            return "broken"

    def _digest_rows(self, path: Path) -> bytes:
        name = path.name.encode("utf-8", "surrogateescape") + b"\0"
        with parquet.open_checked(path) as file:
            return name + parquet.digest(path, file, readable(file, self.unread))


def holds_rows(path: Path) -> bool:
    """Return whether a file's name is that of a file of rows."""
    return path.suffix.lower() in _SUFFIXES


def look_for(*alternatives: Sequence[str | re.Pattern[bytes]]) -> Callable[[Path], Look]:
    """Return a `look` at whether the beginning of a file has all signs of an alternative.

    Args:
        alternatives: names, which files have in quotation marks, and patterns.
    """
    return partial(_look_for, alternatives)


def _look_for(alternatives: Sequence[Sequence[str | re.Pattern[bytes]]], path: Path) -> Look:
    head = head_of(path)
    known = any(all(_is_in(head, sign) for sign in signs) for signs in alternatives)
    return "known" if known else "other"


def _is_in(head: bytes, sign: str | re.Pattern[bytes]) -> bool:
    return f'"{sign}"'.encode() in head if isinstance(sign, str) else bool(sign.search(head))


def not_an_object(line: Line, expected: str) -> Finding:
    """Return the finding for a row that is no JSON object.

    Args:
        line: a line of `read_rows`.
        expected: a correct row, in words.
    """
    what = line.fault or f"it is a {type(line.row).__name__}, not a JSON object"
    return Finding("json-invalid", "error", line.where, what, expected, SKIPPED)


def images(path: Path, names: Sequence[str]) -> Path:
    """Return the folder with a file's pictures, beside the file or beside its folder.

    Args:
        path: the file.
        names: of folders, in order of choice; the first where none exists.
    """
    places = (folder / name for folder in (path.parent, path.parent.parent) for name in names)
    return next((place for place in places if place.is_dir()), path.parent / names[0])


def picture_of(line: Line, columns: Sequence[str], folders: Sequence[str]) -> MediaRef | None:
    """Return the picture that a row holds itself, or names in a folder; None without one.

    Args:
        line: the row.
        columns: that hold or name a picture, in order of choice.
        folders: as the names in `images`.
    """
    if held := line.picture(columns):
        return held
    name = next((line.row[column] for column in columns if line.row.get(column)), None)
    return MediaRef("image", images(line.path, folders), name) if isinstance(name, str) else None
