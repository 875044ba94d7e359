"""Names of files from untrusted listings and archives, which all have to fit into one folder."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import Final

from omnidata.media import unsafe

_LONGEST_NAME: Final = 1024
_LONGEST_PART: Final = 255
"""Bytes of a file's own name that file systems take."""
_DEEPEST: Final = 64
"""Folders above a file; each is made."""
_MOST_LETTERS: Final = 1 << 30
"""Letters of all names and their folders, which stay in memory."""


class NameCheck:
    """The names of one folder so far, compared as a file system that ignores case does.

    Examples:
        >>> check = NameCheck()
        >>> check.add("a/b.png")
        ''
        >>> check.add("A/B.png")
        "it and 'a/b.png' would be one file"
        >>> check.add("a/b.png/c")
        "'a/b.png' is a file, and a folder of it"
    """

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._letters = 0

    def add(self, name: str) -> str:
        """Add the name of a file.

        Returns:
            Why it cannot be a file beside the others; empty if it can.
        """
        if why := _reason_against(name):
            return why
        key = name.casefold()
        if key in self._files:
            return f"it and {self._files[key]!r:.100} would be one file"
        if key in self._folders:
            return f"it is a file, and a folder of {self._folders[key]!r:.100}"
        for at, letter in enumerate(key):
            if letter == "/":
                if key[:at] in self._files:
                    return f"{self._files[key[:at]]!r:.100} is a file, and a folder of it"
                if self._folders.setdefault(key[:at], name) is name:
                    self._letters += at
        self._files[key] = name
        self._letters += len(name)
        if self._letters > _MOST_LETTERS:
            return f"with it, names and folders have more than {_MOST_LETTERS:,} letters"
        return ""


def _reason_against(name: str) -> str:
    if why := unsafe(name):
        return why
    path = PurePosixPath(name)
    if not path.parts or "\\" in name or not name.isprintable() or str(path) != name:
        return "the path is no plain name"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        return "the path is too long"
    if max(len(os.fsencode(part)) for part in path.parts) > _LONGEST_PART:
        return "the path is too long"
    if len(path.parts) - 1 > _DEEPEST:
        return f"the file lies in more than {_DEEPEST} folders"
    if ".git" in name.casefold().split("/"):
        return "the path lies in a folder of git"
    return ""
