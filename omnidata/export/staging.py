"""An export in the making."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omnidata.run.splits import SPLITS
from omnidata.run.staging import Staging, refused
from omnidata.storage import is_unfinished, write_json

MEDIA, REPORT, INFO = "media", "export.json", "dataset_info.json"
SEEN, LEAKS, MODELS = "seen.txt", "leaks.txt", "models.jsonl"
_PLAN, _JOURNAL = ".plan.json", ".media.jsonl"
_OURS = {MEDIA, REPORT, INFO, SEEN, LEAKS, MODELS, _PLAN}
_OURS |= {f"{split}.jsonl" for split in SPLITS}
_PARTS = {_JOURNAL, *(f".{name}.rest" for name in _OURS)}
"""What else lies in the folder while it is being made."""

_HASHED = re.compile(r"[0-9a-f]{32}\.[0-9a-z]{2,4}")


class ExportStaging(Staging):
    """See `Staging`.

    Args:
        out, overwrite, inputs: as `Staging`.
        settings: all that the export depends on; what an interrupted call with others has left is
            removed.

    Attributes:
        journal: a file in the folder that is not published.
    """

    noun = "an export"
    work = "exporting"
    hidden = (_PLAN,)

    def __init__(
        self, out: Path, *, overwrite: bool, inputs: Iterable[Path], settings: Mapping[str, Any]
    ) -> None:
        """Look at nothing but names."""
        super().__init__(out, overwrite=overwrite, inputs=inputs)
        self._settings = json.loads(json.dumps(settings))
        self.journal = self.path / _JOURNAL

    def is_ours(self, folder: Path) -> bool:
        """Whether an export wrote the folder, and nobody else anything into it."""
        return is_export(folder)

    def begin(self) -> None:
        """Keep what an interrupted call with the same settings has left, else make the folder."""
        if self.path.exists() or self.path.is_symlink():
            if not _holds(self.path, half=True):
                raise refused(
                    self.path, "there is something here already", "a name that nobody uses"
                )
            if self._is_same():
                for part in (self.path / MEDIA).glob(".*"):
                    part.unlink()
                return
            shutil.rmtree(self.path)
        self.path.mkdir()
        write_json(self.path / _PLAN, self._settings)

    def _is_same(self) -> bool:
        """Whether the folder was begun with the same settings."""
        try:
            plan = json.loads((self.path / _PLAN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(plan == self._settings)

    def publish(self, wanted: Iterable[str]) -> None:
        """Move the folder to its place.

        Args:
            wanted: the files of the export, relative to it; what an earlier call left goes.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        kept = {self.path / name for name in wanted}
        for path in [*self.path.iterdir(), *(self.path / MEDIA).iterdir()]:
            if path.name not in (MEDIA, _PLAN) and path not in kept:
                path.unlink()
        self.move()


def is_export(folder: Path) -> bool:
    """Whether an export wrote the folder, and nobody else anything into it."""
    return (folder / REPORT).is_file() and _holds(folder, half=False)


def _holds(folder: Path, *, half: bool) -> bool:
    """Whether a folder has nothing but an export's files; `half`, what a kill left among them."""
    inside = folder / MEDIA
    if folder.is_symlink() or not folder.is_dir() or inside.is_symlink():
        return False
    names = _OURS | _PARTS if half else _OURS
    if not all(
        path.name in names or (half and is_unfinished(path.name)) for path in folder.iterdir()
    ):
        return False
    return not inside.exists() or (
        inside.is_dir()
        and all(
            _HASHED.fullmatch(path.name) or (half and is_unfinished(path.name))
            for path in inside.iterdir()
        )
    )
