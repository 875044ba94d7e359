"""Where files of steps are written while a dataset is read."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, FileLock, Timeout

HEAD: Final = "head.json"
"""The file of an entry of the cache that is written last: size and CRC of the others."""


def file_facts(about: os.stat_result) -> tuple[int, ...]:
    """Return size, times and number of a file: some of them change with its content."""
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino


class Folder:
    """A folder for the files of steps of one dataset, until one is kept, or none.

    Args:
        make: makes the folder, when the first file is written.

    Attributes:
        path: of the folder; None if there is none yet.
        is_full: whether its disk takes no more.
    """

    def __init__(self, make: Callable[[], Path]) -> None:
        self._make = make
        self._lock: BaseFileLock | None = None
        self._files: list[tuple[object, Path]] = []
        self.path: Path | None = None
        self.is_full = False

    def new_file(self) -> Path | None:
        """Return the path of the next file; None where the disk cannot be written to."""
        if self.path is None:
            try:
                path = self._make()
                self._lock = FileLock(path / LOCK)
                self._lock.acquire(timeout=0)
                path.stat()  # another process may have taken it for that of a killed one
            except (OSError, Timeout, NotImplementedError):  # some file systems have no locks
                return None
            self.path = path
        return self.path / f"{secrets.token_hex(8)}.arrow"

    def add(self, file: object, path: Path) -> None:
        """Note a file that another process may open."""
        self._files.append((file, path))

    def path_of(self, file: object) -> Path | None:
        """Return the path of a file; None if another process may not open it."""
        return next((path for own, path in self._files if own is file), None)

    def remove(self) -> None:
        """Remove the folder; what is mapped stays readable."""
        if self._lock:
            self._lock.release()
        if self.path:
            shutil.rmtree(self.path, ignore_errors=True)


LOCK: Final = "lock"
_WRITING: ContextVar[Folder | None] = ContextVar("_writing", default=None)


def current_folder() -> Folder | None:
    """Return the folder of `writing_into`, if any."""
    return _WRITING.get()


@contextmanager
def writing_into(make: Callable[[], Path]) -> Iterator[Folder]:
    """Write the files of steps into a folder, which is gone after the block.

    Args:
        make: makes the folder, when the first file is written.
    """
    folder = Folder(make)
    token = _WRITING.set(folder)
    try:
        yield folder
    finally:
        _WRITING.reset(token)
        folder.remove()
