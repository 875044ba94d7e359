"""A repository in the making."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from omnidata.data.convert.shards import Shard
from omnidata.errors import DataError
from omnidata.loaders.repository import MANIFEST, read_manifest
from omnidata.run.staging import Staging, refused
from omnidata.storage import atomic_write, is_unfinished, open_own, write_json

_DONE, _PLAN = ".done.jsonl", ".plan.json"
_OURS = {"README.md", "data", MANIFEST, _DONE, _PLAN}


class RepositoryStaging(Staging):
    """See `Staging`."""

    noun = "a repository"
    work = "converting"
    hidden = (_DONE, _PLAN)

    def is_ours(self, folder: Path) -> bool:
        """Whether a conversion wrote the folder, and nobody else anything into it."""
        return _is_ours(folder)

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
            if self.is_ours(self.path):
                shutil.rmtree(self.path)
            elif self.path.exists() or self.path.is_symlink():
                raise refused(
                    self.path, "there is something here already", "a name that nobody uses"
                )
            self.path.mkdir()
            write_json(self.path / _PLAN, settings)
        with atomic_write(self.path / _DONE) as file:  # without the line that an end cut short
            file.writelines(_line(shard) for shard in done.values())
        return done

    def add(self, shard: Shard) -> None:
        """Remember a shard that is whole."""
        with open_own(self.path / _DONE, "ab") as file:
            file.write(_line(shard))

    def publish(self, shards: Iterable[Shard]) -> None:
        """Move the folder to its place, without what an earlier call left.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        wanted = {self.path / shard.file for shard in shards}
        for path in (self.path / "data").rglob("*"):
            if path.is_file() and path not in wanted:
                path.unlink()
        self.move()

    def _is_whole(self, shard: Shard) -> bool:
        path = self.path / shard.file
        return path.is_file() and path.stat().st_size == shard.size


def _is_ours(folder: Path) -> bool:
    """Whether a conversion wrote the folder, and nobody else anything into it."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    if not all(name in _OURS or is_unfinished(name) for name in names):
        return False
    if _PLAN in names or not names:
        return True
    try:
        read_manifest(folder)
    except DataError:
        return False
    return True


def _line(shard: Shard) -> bytes:
    return msgspec.json.encode(shard) + b"\n"
