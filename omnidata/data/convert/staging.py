"""A repository in the making: a hidden folder beside its place, which takes it in one move."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from filelock import FileLock, Timeout

from omnidata.data.convert.shards import Shard
from omnidata.errors import DataError, UsageError
from omnidata.loaders.repository import MANIFEST, read_manifest
from omnidata.run.folder import replacing, write_json

_DONE, _PLAN = ".done.jsonl", ".plan.json"
_OURS = {"README.md", "data", MANIFEST, _DONE, _PLAN}
_PATTERN = "[]*?"


class Staging:
    """The folder that is written to, and the only way from there to `out`.

    Used as a context manager. Nothing is ever removed but what a conversion has written.

    Args:
        out: where the repository belongs.
        overwrite: whether a repository that is there may be replaced.
        inputs: folders that must not lie in there.

    Raises:
        UsageError: `out` cannot be the place, or something is there already.
        DataError: another process is converting to the same place.
    """

    def __init__(self, out: Path, *, overwrite: bool, inputs: Iterable[Path]) -> None:
        """Look at nothing but names."""
        self.out = out.resolve()
        self._overwrite = overwrite
        self.path = self.out.with_name(f".{self.out.name}.unfinished")
        self._before = self.out.with_name(f".{self.out.name}.before")
        self._lock = FileLock(self.out.with_name(f".{self.out.name}.lock"))
        if any(letter in _PATTERN for letter in str(self.out)) or not self.out.name:
            raise _refused(
                self.out, "the path cannot be opened by `datasets`", "a folder without [ ] * ?"
            )
        for folder in inputs:
            if folder.resolve().is_relative_to(self.out):
                raise _refused(self.out, f"{folder} lies in there", "a folder beside the source")

    def __enter__(self) -> Self:
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise DataError(
                "another process is converting to the same place",
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

    def resume(self, settings: Mapping[str, Any]) -> dict[str, Shard]:
        """The whole shards of an interrupted call with the same settings; else an empty folder.

        Returns:
            By stamp.
        """
        done = {}
        try:
            if json.loads((self.path / _PLAN).read_text(encoding="utf-8")) == settings:
                lines = (self.path / _DONE).read_bytes().split(b"\n")[:-1]
                shards = [msgspec.json.decode(line, type=Shard) for line in lines]
                done = {shard.stamp: shard for shard in shards if self._is_whole(shard)}
        except (OSError, ValueError):  # msgspec's errors are ValueErrors
            pass
        if not done:
            if _is_ours(self.path):
                shutil.rmtree(self.path)
            elif self.path.exists() or self.path.is_symlink():
                raise _refused(
                    self.path, "there is something here already", "a name that nobody uses"
                )
            self.path.mkdir()
            write_json(self.path / _PLAN, settings)
        with replacing(self.path / _DONE) as file:  # without the line that an end cut short
            file.writelines(_line(shard) for shard in done.values())
        return done

    def add(self, shard: Shard) -> None:
        """Remember a shard that is whole."""
        with (self.path / _DONE).open("ab") as file:
            file.write(_line(shard))

    def publish(self, shards: Iterable[Shard]) -> None:
        """Move the folder to its place, without what an earlier call left; the old one goes last.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        wanted = {self.path / shard.file for shard in shards}
        for path in (self.path / "data").rglob("*"):
            if path.is_file() and path not in wanted:
                path.unlink()
        self._check_target()
        if self.out.exists():
            self.out.rename(self._before)
        self.path.rename(self.out)
        self._tidy()

    def _tidy(self) -> None:
        """Finish a move that was interrupted."""
        if _is_ours(self._before) and not self.out.exists():
            self._before.rename(self.out)
        for name in (_DONE, _PLAN):
            if _is_ours(self.out):
                (self.out / name).unlink(missing_ok=True)
        if _is_ours(self._before):
            shutil.rmtree(self._before)

    def _check_target(self) -> None:
        if not self.out.exists() or (self.out.is_dir() and not any(self.out.iterdir())):
            return
        if not _is_ours(self.out):
            raise _refused(self.out, "there is something here already", "a new or empty folder")
        if not self._overwrite:
            raise UsageError(
                "there is a repository here already",
                where=str(self.out),
                expected="a new or empty folder",
                remedy="add --overwrite to replace it",
            )

    def _is_whole(self, shard: Shard) -> bool:
        path = self.path / shard.file
        return path.is_file() and path.stat().st_size == shard.size


def _is_ours(folder: Path) -> bool:
    """Whether a conversion wrote the folder, and nobody else anything into it."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    if not names <= _OURS | {f".{name}.new" for name in _OURS}:
        return False
    if _PLAN in names or not names:
        return True
    try:
        read_manifest(folder)
    except DataError:
        return False
    return True


def _refused(place: Path, what: str, expected: str) -> UsageError:
    return UsageError(what, where=str(place), expected=expected, remedy="choose another folder")


def _line(shard: Shard) -> bytes:
    return msgspec.json.encode(shard) + b"\n"
