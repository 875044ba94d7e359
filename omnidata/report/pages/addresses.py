"""Where things are, seen from a page: in one file, in a folder, or on a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from omnidata.report.pages.shelf import Shelf, extension, file_of, link, mime_of
from omnidata.types import MediaRef


class Addresses(Protocol):
    """What a page is told of the places around it.

    A medium's address begins with `#` where the page itself holds it.
    """

    mode: str
    """"file" for one file that holds all pages, "folder" for a file per page, "server"."""

    def home(self) -> str:
        """Of the first page."""

    def step(self, number: int) -> str:
        """Of a step's page."""

    def thumb(self, number: int) -> str:
        """Of the small picture of a medium on the shelf."""

    def medium(self, number: int) -> str:
        """Of the medium itself; empty where a browser cannot be sent to it."""


class InOneFile:
    """All pages in one file.

    Args:
        shelf: the media.
        out: where the file will be.
        held: numbers of the clips and sounds that the file holds itself.
    """

    mode = "file"

    def __init__(self, shelf: Shelf, out: Path, held: frozenset[int]) -> None:
        """Take what the file holds; the rest is linked."""
        self._shelf, self._out, self._held = shelf, out, held

    def home(self) -> str:
        """Of the first page."""
        return "#"

    def step(self, number: int) -> str:
        """Of a step's page."""
        return f"#step={number}"

    def thumb(self, number: int) -> str:
        """Of a small picture, which the file holds."""
        return f"#p{number}"

    def medium(self, number: int) -> str:
        """Of a clip or a sound, in the file or beside it."""
        if number in self._held:
            return f"#m{number}"
        path = file_of(self._shelf.refs[number])
        return link(path, self._out.parent) if path else ""


class InFolder:
    """A file per page, and media where they are.

    Args:
        shelf: the media.
        out: where the folder will be.
        depth: of the page below it: 0 for the first page, 1 for a step's.
        copied: names below `media/` of what has no file of its own.
    """

    mode = "folder"

    def __init__(self, shelf: Shelf, out: Path, depth: int, copied: Mapping[int, str]) -> None:
        """Take what was copied; the rest is linked."""
        self._shelf, self._copied = shelf, copied
        self._up = "../" * depth
        self._here = out / "steps" if depth else out

    def home(self) -> str:
        """Of the first page."""
        return f"{self._up}index.html"

    def step(self, number: int) -> str:
        """Of a step's page."""
        return f"{number}.html" if self._up else f"steps/{number}.html"

    def thumb(self, number: int) -> str:
        """Of a small picture."""
        return f"{self._up}thumbs/{number}.webp"

    def medium(self, number: int) -> str:
        """Of a medium: where it lies, or its copy."""
        if number in self._copied:
            return f"{self._up}media/{self._copied[number]}"
        path = file_of(self._shelf.refs[number])
        return link(path, self._here) if path else ""


class OnServer:
    """Pages that are made when they are asked for; addresses are absolute."""

    mode = "server"

    def home(self) -> str:
        """Of the first page."""
        return "/index.html"

    def step(self, number: int) -> str:
        """Of a step's page."""
        return f"/steps/{number}.html"

    def thumb(self, number: int) -> str:
        """Of a small picture."""
        return f"/thumbs/{number}.webp"

    def medium(self, number: int) -> str:
        """Of a medium; whether it can be opened is seen when it is asked for."""
        return f"/media/{number}"


def content(ref: MediaRef) -> tuple[bytes, str]:
    """A medium's bytes and media type, for those who hand it on.

    Raises:
        MediaError: it cannot be read, or is not what its kind says.
    """
    from omnidata import media
    from omnidata.errors import MediaError

    if ref.inline is not None:
        return media.wav(media.samples(ref), 16_000), "audio/wav"
    data = media.read_bytes(ref)
    mime = mime_of(ref.kind, data[:16])
    if mime is None:
        raise MediaError(
            f"the file is no {ref.kind} that a browser knows",
            where=media.place(ref),
            expected=f"a common format of {ref.kind}",
        )
    return data, mime


def name_of(number: int, mime: str) -> str:
    """What a copied medium is called."""
    return f"{number}{extension(mime)}"
