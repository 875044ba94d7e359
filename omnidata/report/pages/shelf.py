"""The media of a dataset, each once, by number: what pages call them by, and where they may lie.

No page and no address holds a path from the data that was not looked at here: a number stands for
a reference, and a reference is opened by `omnidata.media` alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from omnidata.errors import MediaError
from omnidata.media import resolve
from omnidata.types import MediaRef, Modality, Step

_MAGIC: Final[tuple[tuple[Modality, int, bytes, str, frozenset[str]], ...]] = (
    ("image", 0, b"\x89PNG", "image/png", frozenset({".png"})),
    ("image", 0, b"\xff\xd8\xff", "image/jpeg", frozenset({".jpg", ".jpeg"})),
    ("image", 8, b"WEBP", "image/webp", frozenset({".webp"})),
    ("video", 4, b"ftyp", "video/mp4", frozenset({".mp4", ".m4v", ".mov"})),
    ("video", 0, b"\x1a\x45\xdf\xa3", "video/webm", frozenset({".webm", ".mkv"})),
    ("video", 8, b"AVI ", "video/x-msvideo", frozenset({".avi"})),
    ("audio", 8, b"WAVE", "audio/wav", frozenset({".wav"})),
    ("audio", 0, b"ID3", "audio/mpeg", frozenset({".mp3"})),
    ("audio", 0, b"\xff\xfb", "audio/mpeg", frozenset({".mp3"})),
    ("audio", 0, b"fLaC", "audio/flac", frozenset({".flac"})),
    ("audio", 0, b"OggS", "audio/ogg", frozenset({".ogg", ".oga", ".opus"})),
    ("audio", 4, b"ftyp", "audio/mp4", frozenset({".m4a", ".mp4"})),
    ("audio", 0, b"\xff\xf1", "audio/aac", frozenset({".aac"})),
)
HEAD: Final = 16
"""Bytes from which `mime_of` tells what a medium is."""


def mime_of(kind: Modality, head: bytes) -> str | None:
    """The media type of a file that begins so; None for what is no medium of that kind.

    Examples:
        >>> mime_of("audio", b"RIFF....WAVEfmt ")
        'audio/wav'
        >>> mime_of("image", b"<html>") is None
        True
    """
    found = (m for k, at, magic, m, _ in _MAGIC if k == kind and head[at:].startswith(magic))
    return next(found, None)


def is_named_so(path: Path, mime: str) -> bool:
    """Whether a browser that goes by the name takes the file for what it is.

    A page that links to a picture called `a.html` would open a page of the dataset's.
    """
    return any(path.suffix.lower() in names for _, _, _, known, names in _MAGIC if known == mime)


def extension(mime: str) -> str:
    """The ending of a file of that type."""
    return min(min(names) for _, _, _, known, names in _MAGIC if known == mime)


class Shelf:
    """All media of some steps.

    Args:
        steps: of a dataset.

    Attributes:
        refs: by number, in the order in which the steps have them.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        """Number what the steps have; nothing is opened."""
        self.refs: list[MediaRef] = []
        self._numbers: dict[object, int] = {}
        for step in steps:
            for ref in step.media.values():
                if ref is not None:
                    self.number(ref)

    def number(self, ref: MediaRef) -> int:
        """The number of a medium; the same for every step that has it."""
        inline = id(ref.inline) if ref.inline is not None else None
        key = (ref.kind, ref.root, ref.path, ref.cell, inline)
        found = self._numbers.setdefault(key, len(self.refs))
        if found == len(self.refs):
            self.refs.append(ref)
        return found


def file_of(ref: MediaRef) -> Path | None:
    """The file of a medium that a browser may be sent to; None where there is none.

    It lies inside the data after links are followed, and is by content and by name what its kind
    says.
    """
    if ref.inline is not None or ref.cell is not None:
        return None
    try:
        path = resolve(ref).resolve()
        with path.open("rb") as file:
            mime = mime_of(ref.kind, file.read(HEAD))
    except (MediaError, OSError):
        return None
    return path if mime and is_named_so(path, mime) else None


def link(path: Path, folder: Path) -> str:
    """The address of a file relative to a folder, as a link has it.

    Examples:
        >>> link(Path("/data/a b/1#.mp4"), Path("/reports/x"))
        '../../data/a%20b/1%23.mp4'
    """
    return quote(os.fsencode(os.path.relpath(path, folder.resolve())))
