"""A folder in the making: hidden beside its place, which takes it in one move."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from filelock import FileLock, Timeout

from omnidata.errors import DataError, UsageError

_PATTERN = "[]*?"


class Staging(ABC):
    """The folder that is written to, and the only way from there to `out`.

    Used as a context manager. Nothing is ever removed but what a writer of the same kind has
    written.

    Args:
        out: where the result belongs.
        overwrite: whether a result that is there may be replaced.
        inputs: folders that must not lie in there.

    Attributes:
        noun: what the result is called.
        work: what another process is doing to the same place.
        hidden: files of the folder that are not published.
        path: the folder.

    Raises:
        UsageError: `out` cannot be the place, or something is there already.
        DataError: another process is writing to the same place.
    """

    noun: ClassVar[str]
    work: ClassVar[str]
    hidden: ClassVar[tuple[str, ...]]

    def __init__(self, out: Path, *, overwrite: bool, inputs: Iterable[Path]) -> None:
        self.out = out.resolve()
        self._overwrite = overwrite
        if any(letter in _PATTERN for letter in str(self.out)) or not self.out.name:
            raise refused(
                self.out, "the path cannot be opened by `datasets`", "a folder without [ ] * ?"
            )
        for folder in inputs:
            if folder.resolve().is_relative_to(self.out):
                raise refused(self.out, f"{folder} lies in there", "a folder beside the source")
        self.path = self.out.with_name(f".{self.out.name}.unfinished")
        self._before = self.out.with_name(f".{self.out.name}.before")
        self._lock = FileLock(self.out.with_name(f".{self.out.name}.lock"))

    @abstractmethod
    def is_ours(self, folder: Path) -> bool:
        """Whether a writer of this kind wrote the folder, and nobody else anything into it."""

    def begin(self) -> None:
        """What is done first under the lock; nothing, unless a kind has something."""
        return

    def __enter__(self) -> Self:
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise DataError(
                f"another process is {self.work} to the same place",
                where=str(self.out),
                expected="one at a time",
                remedy="wait until it has ended, or choose another folder",
            ) from None
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            self._tidy()
            self._check_target()
            self.begin()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise self._unwritable(error) from None
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def move(self) -> None:
        """Move the folder to its place; the one that is there goes last.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        self._check_target()
        if self._is_empty():
            self.out.rmdir()
        elif self.out.exists():
            self.out.rename(self._before)
        self.path.rename(self.out)
        self._tidy()

    def _tidy(self) -> None:
        """Finish a move that was interrupted."""
        if self.is_ours(self._before) and not self.out.exists():
            self._before.rename(self.out)
        if self.is_ours(self.out):
            for name in self.hidden:
                (self.out / name).unlink(missing_ok=True)
            if self.is_ours(self._before):
                # Folders first: what tells whose it is must be there until they are gone.
                for path in self._before.iterdir():
                    if path.is_dir():
                        shutil.rmtree(path)
                shutil.rmtree(self._before)

    def _is_empty(self) -> bool:
        return self.out.is_dir() and not any(self.out.iterdir())

    def _unwritable(self, error: OSError) -> UsageError:
        what = f"nothing can be written there ({error.strerror})"
        return refused(self.out, what, "a writable folder")

    def _check_target(self) -> None:
        if not self.out.exists() or self._is_empty():
            return
        if not self.is_ours(self.out):
            raise refused(self.out, "there is something here already", "a new or empty folder")
        if not self._overwrite:
            raise UsageError(
                f"there is {self.noun} here already",
                where=str(self.out),
                expected="a new or empty folder",
                remedy="add --overwrite to replace it",
            )


def refused(place: Path, what: str, expected: str) -> UsageError:
    """A place that nothing is written to."""
    return UsageError(what, where=str(place), expected=expected, remedy="choose another folder")
