"""Number the media of a dataset for pages, and find their files, thumbnails and waveforms.

Pages and addresses hold numbers of media, and only paths that were checked here. Media are opened
by `omnidata.media` alone.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from omnidata import media
from omnidata.actions import Screen
from omnidata.errors import MediaError
from omnidata.loaders.steps import column_of
from omnidata.media import is_remote, picture_info, resolve
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
"""Bytes that `mime_of` needs."""


def mime_of(kind: Modality, head: bytes) -> str | None:
    """Return the media type of a file by its first bytes; None if it is not of that kind.

    Examples:
        >>> mime_of("audio", b"RIFF....WAVEfmt ")
        'audio/wav'
        >>> mime_of("image", b"<html>") is None
        True
    """
    found = (m for k, at, magic, m, _ in _MAGIC if k == kind and head[at:].startswith(magic))
    return next(found, None)


def _has_fitting_suffix(path: Path, mime: str) -> bool:
    """A link to a picture called `a.html` would open it as a page."""
    return any(path.suffix.lower() in names for _, _, _, known, names in _MAGIC if known == mime)


class Shelf:
    """All media of some steps.

    Args:
        steps: of a dataset.

    Attributes:
        refs: by number, in the order in which the steps have them.
        faces: by step the number of its picture in lists, -1 for none: its screenshot, or else its
            first picture.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.refs: list[MediaRef] = []
        self._numbers: dict[object, int] = {}
        self.faces: list[int] = []
        for shown in column_of(steps, "media"):
            numbers = {role: self.number(ref) for role, ref in shown.items() if ref}
            pictures = (number for number in numbers.values() if self.refs[number].kind == "image")
            self.faces.append(numbers.get("screenshot", next(pictures, -1)))

    def number(self, ref: MediaRef) -> int:
        """Return the number of a medium; the same for every step that has it."""
        inline = id(ref.inline) if ref.inline is not None else None
        key = (ref.kind, ref.root, ref.path, ref.cell, inline)
        found = self._numbers.setdefault(key, len(self.refs))
        if found == len(self.refs):
            self.refs.append(ref)
        return found


def file_of(ref: MediaRef) -> Path | None:
    """Return the file of a medium that a page may link; None without one.

    It is inside the data after following links, and content and name match its kind. Pictures
    stored turned have none, because browsers do not obey the tags of all formats.
    """
    if ref.inline is not None or ref.cell is not None or is_remote(ref):
        return None
    try:
        path = resolve(ref).resolve()
        with path.open("rb") as file:
            mime = mime_of(ref.kind, file.read(HEAD))
    except (MediaError, OSError):
        return None
    return path if mime and _has_fitting_suffix(path, mime) and not is_turned(ref) else None


def is_turned(ref: MediaRef) -> bool:
    """Return whether it is a readable picture stored turned."""
    try:
        return ref.kind == "image" and picture_info(ref).turned
    except MediaError:
        return False


def link(path: Path, folder: Path) -> str:
    """Return the address of a file relative to a folder, for a link.

    Examples:
        >>> link(Path("/data/a b/1#.mp4"), Path("/reports/x"))
        '../../data/a%20b/1%23.mp4'
    """
    return quote(os.fsencode(os.path.relpath(path, folder.resolve())))


# The addresses on a page: in one file, in a folder, or on a server.


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of pages and media; the page itself holds those that begin with `#`.

    Attributes:
        mode: "file" for one file that holds all pages, "folder" for a file per page, "server".
        home: of the first page.
        steps, thumbs: of a step's page, and of the small picture of a medium; {} is its number.
        medium: returns the address of a medium on the shelf; empty if pages cannot link it.
    """

    mode: str
    home: str
    steps: str
    thumbs: str
    medium: Callable[[int], str]

    def step(self, number: int) -> str:
        """Return the address of a step's page."""
        return self.steps.format(number)

    def thumb(self, number: int) -> str:
        """Return the address of the small picture of a medium."""
        return self.thumbs.format(number)


ON_SERVER: Final = Addresses(
    "server", "/index.html", "/steps/{}.html", "/thumbs/{}.webp", "/media/{}".format
)
"""Addresses are absolute; media are opened on request."""


def in_one_file(shelf: Shelf, out: Path, held: Container[int]) -> Addresses:
    """Return the addresses if all pages are in one file.

    Args:
        shelf: the media.
        out: where the file will be.
        held: numbers of the clips and sounds inside the file.
    """

    def medium(number: int) -> str:
        if number in held:
            return f"#m{number}"
        path = file_of(shelf.refs[number])
        return link(path, out.parent) if path else ""

    return Addresses("file", "#", "#step={}", "#p{}", medium)


def in_folder(shelf: Shelf, out: Path, copied: Mapping[int, str], *, first: bool) -> Addresses:
    """Return the addresses if each page is a file and media stay where they are.

    Args:
        shelf: the media.
        out: where the folder will be.
        copied: names below `media/` of media without a file of their own.
        first: whether they are for the first page, which lies above those of steps.
    """
    up, here = ("", out) if first else ("../", out / "steps")

    def medium(number: int) -> str:
        if number in copied:
            return f"{up}media/{copied[number]}"
        path = file_of(shelf.refs[number])
        return link(path, here) if path else ""

    steps = "steps/{}.html" if first else "{}.html"
    return Addresses("folder", f"{up}index.html", steps, f"{up}thumbs/{{}}.webp", medium)


def content(ref: MediaRef) -> tuple[bytes, str]:
    """Return a medium's bytes and media type.

    Raises:
        MediaError: it cannot be read, or is not of its kind.
    """
    if ref.inline is not None:
        return media.wav(media.samples(ref), 16_000), "audio/wav"
    data = media.read_bytes(ref)
    mime = mime_of(ref.kind, data[:HEAD])
    if mime is None:
        raise MediaError(
            f"the file is no {ref.kind} that a browser knows",
            where=media.place(ref),
            expected=f"a common format of {ref.kind}",
        )
    return data, mime


def name_of(number: int, mime: str) -> str:
    """Return the file name of a copied medium."""
    suffix = min(min(names) for _, _, _, known, names in _MAGIC if known == mime)
    return f"{number}{suffix}"


# Thumbnails of screenshots, and waveforms of sound.

LONGEST: Final = 711
"""Longest edge of a thumbnail in pixels: a screen of 720 x 1600 becomes 320 x 711."""

_QUALITY: Final = 78
_EFFORT: Final = 2
"""Of WebP's 0 to 6. On screens of the sample 4 took half as long again for 5 % fewer bytes."""

_RATE: Final = 8000
_COLUMNS: Final = 150
_HEIGHT: Final = 40


def thumbnail(ref: MediaRef) -> bytes:
    """Return a screenshot as WebP with at most 711 pixels along an edge.

    Raises:
        MediaError: the screenshot cannot be read.
    """
    from PIL import Image

    pixels = media.image(ref).pixels
    size: Screen = media.within((pixels.shape[1], pixels.shape[0]), LONGEST)
    buffer = io.BytesIO()
    picture = Image.fromarray(pixels).resize(size, Image.Resampling.BOX, reducing_gap=2.0)
    picture.save(buffer, "WEBP", quality=_QUALITY, method=_EFFORT)
    return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class Wave:
    """A waveform.

    Attributes:
        path: the `d` of an SVG path, in a box of `width` x `height`.
        seconds: of sound.
        width, height: of the box.
    """

    path: str
    seconds: float
    width: int = _COLUMNS
    height: int = _HEIGHT


def waveform(ref: MediaRef) -> Wave:
    """Return the outline of the highest and lowest sample of each column.

    Raises:
        MediaError: the sound cannot be read.
    """
    import numpy as np

    samples = media.samples(ref, rate=_RATE)
    columns = min(_COLUMNS, len(samples))
    starts = np.arange(columns) * len(samples) // columns
    middle = _HEIGHT / 2
    scale = middle / max(float(np.abs(samples).max()), 0.05)  # silence stays a line
    high = middle - scale * np.maximum.reduceat(samples, starts)
    low = middle - scale * np.minimum.reduceat(samples, starts)
    there = " ".join(f"{x} {y:.0f}" for x, y in enumerate(high))
    back = " ".join(f"{x} {y:.0f}" for x, y in reversed([*enumerate(np.maximum(low, high + 1))]))
    return Wave(f"M{there} {back}z", len(samples) / _RATE, width=columns)
