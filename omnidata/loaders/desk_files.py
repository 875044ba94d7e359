"""What finding the files of AgentNet and of ScreenSpot has in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from omnidata.files import read_file
from omnidata.loaders import file_search
from omnidata.loaders.json_lines import BOM, decoded

HEAD: Final = 1024**2
"""Bytes from the beginning of a file in which its columns are looked for."""
_PEEKED: Final = 50
_MAX_FILE: Final = 256 * 1024**2


def recognises(
    data: Path, suffixes: Collection[str], look: Callable[[Path], file_search.Look]
) -> bool:
    """Whether one of the first files with such endings is known.

    Raises:
        OSError: a file cannot be read.
    """
    paths = (path for path in file_search.walk(data) if path.suffix in suffixes)
    return any(look(path) == "known" for path in islice(paths, _PEEKED))


def whole(path: Path) -> Any:
    """The one JSON value of a file; BROKEN for none.

    Raises:
        OSError: the file cannot be read, or has more than 256 MiB.
    """
    return decoded(read_file(path, _MAX_FILE).removeprefix(BOM))


def images(path: Path, names: Sequence[str]) -> Path:
    """The folder with the pictures of a file's rows, beside it or beside its folder.

    Args:
        path: the file.
        names: of folders, in order of choice; the first where none exists.
    """
    places = (folder / name for folder in (path.parent, path.parent.parent) for name in names)
    return next((place for place in places if place.is_dir()), path.parent / names[0])
