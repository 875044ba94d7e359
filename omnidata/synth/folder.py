"""The folder that a synth verb makes: its plan while it is made, its report when it is whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from omnidata.errors import DataError
from omnidata.run.settings import changes, described
from omnidata.run.staging import Staging, refused
from omnidata.storage import is_unfinished, write_json

PLAN = ".plan.json"


class SynthStaging(Staging):
    """See `Staging`; nothing that is there is ever replaced.

    Args:
        out, inputs: as `Staging`.
        plan: all that the result depends on, as JSON values; the report has it as well.

    Attributes:
        report: name of the report's file.
        contents: names of all that a whole folder may hold.
    """

    hidden = (PLAN,)
    report: ClassVar[str]
    contents: ClassVar[frozenset[str]]

    def __init__(self, out: Path, *, plan: Mapping[str, Any], inputs: Iterable[Path] = ()) -> None:
        """Look at nothing but names."""
        super().__init__(out, overwrite=False, inputs=inputs)
        self.plan: Mapping[str, Any] = json.loads(json.dumps(plan))

    def is_ours(self, folder: Path) -> bool:
        """Whether the verb wrote the folder, and nobody else anything into it."""
        if folder.is_symlink() or not (folder / self.report).is_file():
            return False
        return {path.name for path in folder.iterdir()} <= self.contents | {PLAN}

    def finished(self) -> Mapping[str, Any] | None:
        """The report of the same call that has ended; None where there is none.

        Raises:
            DataError: the folder holds the result of other settings.
        """
        if not self.is_ours(self.out):
            return None
        report = read_json(self.out / self.report)
        differing = changes({name: report.get(name) for name in self.plan}, self.plan)
        if differing:
            raise DataError(
                f"the folder holds {self.noun} of other settings ({described(differing)})",
                where=str(self.out),
                expected="a new or empty folder, or the same settings",
                remedy="choose another folder, or remove this one",
            )
        return report

    def begin(self) -> None:
        """Keep what an interrupted call with the same settings has left, else make the folder.

        Raises:
            UsageError: somebody else's folder has the name.
            DataError: the interrupted call had other settings.
        """
        if not self.path.exists() and not self.path.is_symlink():
            self.path.mkdir()
        if _is_new(self.path):
            write_json(self.path / PLAN, self.plan)
            return
        there = read_json(self.path / PLAN)
        if self.path.is_symlink() or not there:
            raise refused(self.path, "there is something here already", "a name that nobody uses")
        differing = changes({name: there.get(name) for name in self.plan}, self.plan)
        if differing:
            raise DataError(
                f"an interrupted call had other settings ({described(differing)})",
                where=str(self.path),
                expected="the same settings, so that what it made can be used",
                remedy=f"give them, or remove {self.path}, or choose another folder",
            )

    def publish(self, report: Mapping[str, Any], *, scratch: Iterable[str] = ()) -> None:
        """Write the report, remove what only the making needed, and move the folder to its place.

        Args:
            report: what was made; the plan is put before it.
            scratch: files and folders that are not part of the result.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        write_json(self.path / self.report, {**self.plan, **report})
        for name in scratch:
            path = self.path / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self.move()


def _is_new(folder: Path) -> bool:
    """Whether nothing is there, or what a call left that was killed as it wrote the plan."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return all(is_unfinished(path.name) for path in folder.iterdir())


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; an empty one where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = None
    return content if isinstance(content, dict) else {}
