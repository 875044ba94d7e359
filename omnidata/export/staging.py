"""An export in the making: a hidden folder beside its place, which takes it in one move."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from omnidata.errors import DataError, UsageError
from omnidata.run.folder import write_json
from omnidata.run.splits import SPLITS

MEDIA, REPORT, INFO = "media", "export.json", "dataset_info.json"
SEEN, LEAKS = "seen.txt", "leaks.txt"
_PLAN, _JOURNAL = ".plan.json", ".media.jsonl"
_OURS = {MEDIA, REPORT, INFO, SEEN, LEAKS, _PLAN, *(f"{split}.jsonl" for split in SPLITS)}
_HASHED = re.compile(r"[0-9a-f]{32}\.[0-9a-z]{2,4}")


class Staging:
    """The folder that is written to, and the only way from there to `out`.

    Used as a context manager. Nothing is ever removed but what an export has written.

    Args:
        out: where the export belongs.
        overwrite: whether an export that is there may be replaced.
        inputs: folders that must not lie in there.
        settings: all that the export depends on; what an interrupted call with others has left is
            removed.

    Attributes:
        path: the folder.
        journal: a file in it that is not published.

    Raises:
        UsageError: `out` cannot be the place, or something is there already.
        DataError: another process is exporting to the same place.
    """

    def __init__(
        self, out: Path, *, overwrite: bool, inputs: Iterable[Path], settings: Mapping[str, Any]
    ) -> None:
        """Look at nothing but names."""
        self.out = out.resolve()
        self._overwrite = overwrite
        self._settings = json.loads(json.dumps(settings))
        self.path = self.out.with_name(f".{self.out.name}.unfinished")
        self.journal = self.path / _JOURNAL
        self._before = self.out.with_name(f".{self.out.name}.before")
        self._lock = FileLock(self.out.with_name(f".{self.out.name}.lock"))
        for folder in inputs:
            if folder.resolve().is_relative_to(self.out):
                raise _refused(self.out, f"{folder} lies in there", "a folder beside the source")

    def __enter__(self) -> Self:
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise DataError(
                "another process is exporting to the same place",
                where=str(self.out),
                expected="one at a time",
                remedy="wait until it has ended, or choose another folder",
            ) from None
        except OSError as error:
            raise _refused(
                self.out, f"nothing can be written there ({error.strerror})", "a writable folder"
            ) from None
        try:
            self._tidy()
            self._check_target()
            self._begin()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def _begin(self) -> None:
        """Keep what an interrupted call with the same settings has left, else make the folder."""
        if self.path.exists() or self.path.is_symlink():
            if not _is_unfinished(self.path):
                raise _refused(
                    self.path, "there is something here already", "a name that nobody uses"
                )
            if json.loads((self.path / _PLAN).read_text(encoding="utf-8")) == self._settings:
                return
            shutil.rmtree(self.path)
        self.path.mkdir()
        write_json(self.path / _PLAN, self._settings)

    def publish(self, wanted: Iterable[str]) -> None:
        """Move the folder to its place; the one that is there goes last.

        Args:
            wanted: the files of the export, relative to it; what an earlier call left goes.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        kept = {self.path / name for name in wanted}
        for path in [*self.path.iterdir(), *(self.path / MEDIA).iterdir()]:
            if path.name not in (MEDIA, _PLAN) and path not in kept:
                path.unlink()
        self._check_target()
        if self.out.exists():
            self.out.rename(self._before)
        self.path.rename(self.out)
        self._tidy()

    def _tidy(self) -> None:
        """Finish a move that was interrupted."""
        if is_export(self._before) and not self.out.exists():
            self._before.rename(self.out)
        if is_export(self.out):
            (self.out / _PLAN).unlink(missing_ok=True)
            if is_export(self._before):
                shutil.rmtree(self._before)

    def _check_target(self) -> None:
        if not self.out.exists() or (self.out.is_dir() and not any(self.out.iterdir())):
            return
        if not is_export(self.out):
            raise _refused(self.out, "there is something here already", "a new or empty folder")
        if not self._overwrite:
            raise UsageError(
                "there is an export here already",
                where=str(self.out),
                expected="a new or empty folder",
                remedy="add --overwrite to replace it",
            )


def is_export(folder: Path) -> bool:
    """Whether an export wrote the folder, and nobody else anything into it."""
    if folder.is_symlink() or not (folder / REPORT).is_file():
        return False
    if not {path.name for path in folder.iterdir()} <= _OURS:
        return False
    media = folder / MEDIA
    return not media.exists() or all(_HASHED.fullmatch(path.name) for path in media.iterdir())


def _is_unfinished(folder: Path) -> bool:
    """Whether an export was begun in the folder."""
    try:
        json.loads((folder / _PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return not folder.is_symlink()


def _refused(place: Path, what: str, expected: str) -> UsageError:
    return UsageError(what, where=str(place), expected=expected, remedy="choose another folder")
