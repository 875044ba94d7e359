"""An OmniGUI tree with a report, in the making."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import UsageError
from omnidata.run.staging import Staging, refused
from omnidata.storage import is_unfinished, write_json
from omnidata.synth.folder import PLAN, read_json

_ANNOTATIONS = frozenset({".json", ".jsonl"})


class TreeStaging(Staging):
    """See `Staging`. A tree is replaced only if it is as it was written, to the last label.

    Args:
        out, inputs: as `Staging`.
        report: the name of the file in the tree that says what was done.
        made_by: what the tree was made from must be there, or it is not replaced.
    """

    noun = "a tree"
    work = "writing"
    hidden = (PLAN,)

    def __init__(self, out: Path, *, inputs: Iterable[Path], report: str, made_by: Path) -> None:
        """Look at nothing but names."""
        super().__init__(out, overwrite=True, inputs=inputs)
        self._report = report
        if self.out.exists() and self.is_ours(self.out) and not made_by.exists():
            raise UsageError(
                f"the tree is there, but {made_by.name}, which it was made from, is gone",
                where=str(self.out),
                expected="both, to go on with them, or none",
                remedy="choose another folder, or remove this one",
            )

    def is_ours(self, folder: Path) -> bool:
        """Whether it is a tree as it was written: no label edited, no file added.

        One that was moved out of the way was that, and may be half removed.
        """
        written = read_json(folder / self._report).get("digest")
        if written is None or folder.is_symlink():
            return False
        return folder == self._before or bool(written == self._digest(folder))

    def there(self) -> Mapping[str, Any] | None:
        """The report of the tree that is there, without its digest; None if there is none."""
        report = read_json(self.out / self._report)
        return {name: value for name, value in report.items() if name != "digest"} or None

    def begin(self) -> None:
        """Remove what an interrupted call has left: copying again costs less than checking."""
        if self.path.exists() or self.path.is_symlink():
            if self.path.is_symlink() or not _is_unfinished(self.path):
                raise refused(
                    self.path, "there is something here already", "a name that nobody uses"
                )
            # Folders first: what tells whose it is must be there until they are gone.
            for folder in filter(Path.is_dir, list(self.path.iterdir())):
                shutil.rmtree(folder)
            shutil.rmtree(self.path)

    def mark(self) -> None:
        """Say of the folder, which has just been made, whose it is."""
        write_json(self.path / PLAN, {"report": self._report})

    def publish(self, report: Mapping[str, Any]) -> None:
        """Add the report and move the folder to its place.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        digest = self._digest(self.path)
        write_json(self.path / self._report, {**report, "digest": digest})
        self.move()

    def _digest(self, folder: Path) -> str:
        """SHA-256 over names, sizes, and all annotations; the report itself is left out."""
        digest = hashlib.sha256()
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if name in (self._report, *self.hidden) or (path.is_dir() and not path.is_symlink()):
                continue
            digest.update(f"{name}\0{path.lstat().st_size}\0".encode("utf-8", "surrogateescape"))
            if path.suffix in _ANNOTATIONS and path.is_file():
                digest.update(path.read_bytes())
        return digest.hexdigest()


def _is_unfinished(folder: Path) -> bool:
    """Whether a tree was begun in the folder, or was about to be."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {""}
    return PLAN in names or all(map(is_unfinished, names))
