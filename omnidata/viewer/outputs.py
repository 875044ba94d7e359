"""Write pages into one file or a folder."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from omnidata.errors import MediaError
from omnidata.media import in_threads
from omnidata.storage import StagedFolder, atomic_write, wrap_os_error
from omnidata.types import Progress
from omnidata.viewer.book import Book
from omnidata.viewer.html import Pages, asset, encode
from omnidata.viewer.media_index import (
    content,
    file_of,
    in_folder,
    in_one_file,
    is_turned,
    name_of,
    thumbnail,
)

MOST_HELD: Final = 24 * 1024**2
"""Bytes of clips and sounds in one file, at most: if they have more, all are linked."""

_WORKERS: Final = 2
_AHEAD: Final = 32


def write_file(book: Book, out: Path, progress: Progress | None = None) -> None:
    """Write all pages into one file, which appears when it is complete.

    Args:
        book: the content of the pages.
        out: the file.
        progress: called with (done, total) as steps and pictures are written.

    Raises:
        RunError: the file cannot be written.
    """
    held = _read_media(book)
    pages = Pages(book, in_one_file(book.shelf, out, held))
    pictures = [n for n, ref in enumerate(book.shelf.refs) if ref.kind == "image"]
    total = len(book.steps) + len(pictures)
    with wrap_os_error(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
    with wrap_os_error(out.parent), atomic_write(out) as file:
        file.write(encode(pages.first()))
        for number in range(len(book.steps)):
            file.write(encode(pages.fragment(number)))
            if progress:
                progress(number + 1, total)
        for text in pages.common_texts():
            file.write(encode(text))
        for done, (number, data) in enumerate(_thumbs(book, pictures), len(book.steps) + 1):
            if data:
                file.write(_element(f"p{number}", "image/webp", data))
            if progress:
                progress(done, total)
        for number, (data, mime) in held.items():
            file.write(_element(f"m{number}", mime, data))
        file.write(b"</body>\n</html>\n")


def _read_media(book: Book) -> dict[int, tuple[bytes, str]]:
    """Read the clips and sounds for the file: all, or none if they are too large.

    They must be read for their size: cells of Parquet files and parts of recordings have none.
    Unreadable media stay out, and their pages say why.
    """
    held: dict[int, tuple[bytes, str]] = {}
    total = 0
    for number, ref in enumerate(book.shelf.refs):
        if ref.kind == "image":
            continue
        path = file_of(ref)
        if path and path.stat().st_size > MOST_HELD:
            return {}
        try:
            held[number] = content(ref)
        except MediaError:
            continue
        total += len(held[number][0])
        if total > MOST_HELD:
            return {}
    return held


def _thumbs(book: Book, numbers: list[int]) -> Iterator[tuple[int, bytes]]:
    def make(number: int) -> bytes:
        try:
            return thumbnail(book.shelf.refs[number])
        except MediaError:
            return b""

    made = in_threads(make, numbers, workers=_WORKERS, ahead=_AHEAD)
    return zip(numbers, made, strict=True)


def _element(name: str, mime: str, data: bytes) -> bytes:
    uri = b"data:%b;base64,%b" % (mime.encode(), base64.b64encode(data))
    return b'<template id="%b" data-uri="%b"></template>\n' % (name.encode(), uri)


# A folder with a file per page, for runs that one file cannot hold.

_MARK: Final = ".omnidata-pages.json"
_FILES: Final = frozenset({_MARK, "index.html", "pages.css", "pages.js"})
_FOLDERS: Final = frozenset({"steps", "thumbs", "media"})
_NUMBERED: Final = re.compile(r"[0-9]+\.[0-9a-z]{2,4}")


class PagesStaging(StagedFolder):
    """The folder of pages in the making; see `StagedFolder`."""

    noun = "a report"
    work = "writing a report"
    hidden = ()

    def is_ours(self, folder: Path) -> bool:
        """Return whether the folder holds pages and nothing else."""
        if folder.is_symlink() or not (folder / _MARK).is_file():
            return False
        return all(_is_known(path) for path in folder.iterdir())

    def begin(self) -> None:
        """Make the folder anew: writing pages is faster than checking existing ones."""
        if self.is_ours(self.path):
            shutil.rmtree(self.path)
        elif self.path.exists():
            raise self.foreign()
        self.path.mkdir()
        (self.path / _MARK).write_text(json.dumps({"made by": "omnidata report --html"}), "utf-8")
        for name in _FOLDERS:
            (self.path / name).mkdir()


def _is_known(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return path.name in _FILES
    return path.name in _FOLDERS and all(_NUMBERED.fullmatch(each.name) for each in path.iterdir())


def write_folder(
    book: Book, out: Path, inputs: Iterable[Path], progress: Progress | None = None
) -> None:
    """Write pages and small pictures into a folder, which appears when it is complete.

    An existing folder of pages is replaced.

    Args:
        book: the content of the pages.
        out: the folder.
        inputs: folders that `out` must not hold: the data, the run.
        progress: called with (done, total) as pictures and pages are written.

    Raises:
        UsageError: `out` holds something else, or one of `inputs`.
        RunError: a file cannot be written.
    """
    with PagesStaging(out, overwrite=True, inputs=inputs) as staging, wrap_os_error(out):
        _write(book, staging.out, staging.path, progress or (lambda done, total: None))
        staging.move()


def _write(book: Book, out: Path, folder: Path, progress: Progress) -> None:
    pictures = [n for n, ref in enumerate(book.shelf.refs) if ref.kind == "image"]
    total = len(book.steps) + len(pictures)
    done = 0
    for done, (number, data) in enumerate(_thumbs(book, pictures), 1):
        if data:
            (folder / "thumbs" / f"{number}.webp").write_bytes(data)
        progress(done, total)
    copied = _copy_media(book, folder / "media")
    for name in ("pages.css", "pages.js"):
        (folder / name).write_text(asset(name), encoding="utf-8")
    first = Pages(book, in_folder(book.shelf, out, copied, first=True))
    (folder / "index.html").write_bytes(encode(first.first()))
    pages = Pages(book, in_folder(book.shelf, out, copied, first=False))
    for number in range(len(book.steps)):
        (folder / "steps" / f"{number}.html").write_bytes(encode(pages.step(number)))
        progress(done + number + 1, total)


def _copy_media(book: Book, folder: Path) -> dict[int, str]:
    """Write media without a file of their own: sound of rows, and cells of Parquet files.

    Pictures stored turned are written too, upright.
    """
    found = {}
    for number, ref in enumerate(book.shelf.refs):
        if not (ref.inline is not None or ref.cell is not None or is_turned(ref)):
            continue
        try:
            data, mime = content(ref)
        except MediaError:
            continue  # the step's page says why
        found[number] = name_of(number, mime)
        (folder / found[number]).write_bytes(data)
    return found
