"""One file that holds all pages."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from omnidata.errors import MediaError
from omnidata.report.pages.addresses import InOneFile, content
from omnidata.report.pages.book import Book
from omnidata.report.pages.render import Pages, encoded
from omnidata.report.pages.shelf import file_of
from omnidata.report.pages.thumbs import thumbnail
from omnidata.storage import atomic_write

Progress = Callable[[int, int], None]
MOST_HELD: Final = 24 * 1024**2
"""Bytes of clips and sounds that one file takes in; of more, all are linked."""

_WORKERS: Final = 2
_AHEAD: Final = 32


def write_file(book: Book, out: Path, progress: Progress | None = None) -> None:
    """Write all pages into one file, which appears when it is whole.

    Args:
        book: what the pages show.
        out: the file.
        progress: called with (done, total) as steps and pictures are written.
    """
    held = _held(book)
    pages = Pages(book, InOneFile(book.shelf, out, frozenset(held)))
    pictures = [n for n, ref in enumerate(book.shelf.refs) if ref.kind == "image"]
    total = len(book.steps) + len(pictures)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(out) as file:
        file.write(encoded(pages.first()))
        for number in range(len(book.steps)):
            file.write(encoded(pages.fragment(number)))
            if progress:
                progress(number + 1, total)
        for text in pages.shared():
            file.write(encoded(text))
        for done, part in enumerate(_thumbs(book, pictures), len(book.steps) + 1):
            file.write(part)
            if progress:
                progress(done, total)
        for number, (data, mime) in held.items():
            file.write(_element(f"m{number}", mime, data))
        file.write(b"</body>\n</html>\n")


def _held(book: Book) -> dict[int, tuple[bytes, str]]:
    """The clips and sounds that go into the file: all, or none where they are too many.

    They are read for that: a cell of a Parquet file and a part of a recording have no size before.
    What cannot be read stays out; its page says why.
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


def _thumbs(book: Book, numbers: list[int]) -> Iterator[bytes]:
    """Small pictures, in order; one that cannot be read is left out: its page says why."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        for start in range(0, len(numbers), _AHEAD):
            chunk = numbers[start : start + _AHEAD]
            made = pool.map(lambda n: _thumb(book, n), chunk)
            for number, data in zip(chunk, made, strict=True):
                yield _element(f"p{number}", "image/webp", data) if data else b""


def _thumb(book: Book, number: int) -> bytes:
    try:
        return thumbnail(book.shelf.refs[number])
    except MediaError:
        return b""


def _element(name: str, mime: str, data: bytes) -> bytes:
    uri = b"data:%b;base64,%b" % (mime.encode(), base64.b64encode(data))
    return b'<template id="%b" data-uri="%b"></template>\n' % (name.encode(), uri)
