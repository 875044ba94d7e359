"""The folder that a synth verb makes: with a plan until it is complete, then with a report.

Processes make large results in parts, so an interrupted call resumes with the finished ones.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from omnidata.adapters.keys import without_credentials
from omnidata.errors import DataError, RunError, UsageError
from omnidata.run.differences import Change, changes, describe_changes
from omnidata.run.engines import Cluster, each
from omnidata.run.engines.ray import wait_until_seen
from omnidata.storage import (
    PLAN,
    StagedFolder,
    holds_only,
    is_unfinished,
    read_json,
    remove_folders_first,
    write_json,
)
from omnidata.types import Progress


def run_folder(out: Path) -> Path:
    """Return the folder of a model's answers, beside the result."""
    out = out.resolve()
    return out.with_name(f"{out.name}.run")


class Part(Protocol):
    """A part of a result, to be made by a process of its own; picklable."""

    @property
    def path(self) -> Path:
        """The file or folder of the part."""

    @property
    def size(self) -> int:
        """Its size in the unit of the progress."""

    @property
    def whole(self) -> bool:
        """Whether it has been made."""


PartType = TypeVar("PartType", bound=Part)


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a part was not made."""

    why: str


def add_tallies(axes: Iterable[str], files: Iterable[Path]) -> dict[str, Counter[str]]:
    """Return the sums of counts that parts have written as JSON: by axis, then by name."""
    total = {axis: Counter[str]() for axis in axes}
    for file in files:
        for axis, counts in read_json(file).items():
            total[axis].update(counts)
    return total


def make_parts(
    make: Callable[[PartType], Failure | None],
    parts: Sequence[PartType],
    *,
    workers: int,
    cluster: Cluster | None,
    folder: Path,
    progress: Progress,
) -> None:
    """Make the missing parts.

    Args:
        make: makes one; defined in a module, so that another process can import it.
        parts: all of them.
        workers: processes; 1 = this one.
        cluster: whose workers make them; None for this machine.
        folder: of the parts; every machine has to see it.
        progress: called with the finished and the total size.

    Raises:
        RunError: a part could not be made.
    """
    missing = [part for part in parts if not part.whole]
    total = sum(part.size for part in parts)
    done = total - sum(part.size for part in missing)
    progress(done, total)
    # Closed here, since the garbage collector would ignore Ctrl-C while it ends processes.
    calls = each(make, missing, workers=workers, cluster=cluster, sees=[folder])
    with closing(calls) as answers:
        for part, failed in zip(missing, answers, strict=True):
            if failed is not None:
                raise RunError(
                    f"a part could not be made: {failed.why}",
                    where=str(part.path),
                    expected="free space on the disk and in memory",
                    remedy="fix the cause above; the same command resumes where this one stopped",
                )
            if cluster:
                wait_until_seen(part.path, partial(_is_whole, part))
            done += part.size
            progress(done, total)


def _is_whole(part: Part) -> bool:
    return part.whole


class SynthStaging(StagedFolder):
    """See `StagedFolder`; nothing is ever replaced.

    Args:
        out, inputs, data: as `StagedFolder`.
        plan: all that the result depends on, as JSON values; the report repeats it.

    Attributes:
        report: name of the report's file.
        contents: names of all that a whole folder may hold.
        listed: where the report lists further names; empty if it does not.
    """

    hidden = (PLAN,)
    report: ClassVar[str]
    contents: ClassVar[frozenset[str]]
    listed: ClassVar[str] = ""

    def __init__(
        self,
        out: Path,
        *,
        plan: Mapping[str, Any],
        inputs: Iterable[Path] = (),
        data: Path | None = None,
    ) -> None:
        super().__init__(out, overwrite=False, inputs=inputs, data=data)
        self.plan: Mapping[str, Any] = without_credentials(json.loads(json.dumps(plan)))

    def is_ours(self, folder: Path) -> bool:
        """Return whether the folder has the verb's files and no others."""
        if folder.is_symlink() or not (folder / self.report).is_file():
            return False
        listed = read_json(folder / self.report).get(self.listed)
        more = map(str, listed if isinstance(listed, list | dict) else ())
        return {path.name for path in folder.iterdir()} <= {*self.contents, *self.hidden, *more}

    def earlier_report(self) -> Mapping[str, Any] | None:
        """Return the report of the same call if it has finished, else None.

        Raises:
            DataError: the folder holds the result of other settings.
        """
        if not self.is_ours(self.out):
            return None
        report = read_json(self.out / self.report)
        differing = self._differing(report)
        if differing:
            raise DataError(
                f"the folder holds {self.noun} of other settings ({describe_changes(differing)})",
                where=str(self.out),
                expected="a new or empty folder, or the same settings",
                remedy="choose another folder, or remove this one",
            )
        return report

    def _differing(self, there: Mapping[str, Any]) -> list[Change]:
        return changes(
            without_credentials({name: there.get(name) for name in self.plan}), self.plan
        )

    def begin(self) -> None:
        """Keep what an interrupted call with the same settings has left, else make the folder.

        Raises:
            UsageError: another folder has the name.
            DataError: the interrupted call had other settings.
        """
        if not self.path.exists() and not self.path.is_symlink():
            self.path.mkdir()
        if holds_only(self.path, ()):
            write_json(self.path / PLAN, self.plan)
            return
        there = read_json(self.path / PLAN)
        if self.path.is_symlink() or not there:
            raise self.foreign()
        differing = self._differing(there)
        if differing:
            raise DataError(
                f"an interrupted call had other settings ({describe_changes(differing)})",
                where=str(self.path),
                expected="the same settings",
                remedy=f"use these settings, remove {self.path}, or choose another folder",
            )

    def publish(
        self, report: Mapping[str, Any], *, scratch: Iterable[str] = ()
    ) -> Mapping[str, Any]:
        """Write the report after the plan, and move the folder without `scratch` to its place.

        Returns:
            The report with the plan.

        Raises:
            UsageError: something has appeared there in the meantime.
        """
        report = {**self.plan, **report}
        write_json(self.path / self.report, report)
        for name in scratch:
            path = self.path / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self.move()
        return report


# A tree of episodes with a report, in the making.

_ANNOTATIONS = frozenset({".json", ".jsonl"})


class TreeStaging(StagedFolder):
    """See `StagedFolder`. A tree of episodes is replaced only if it is exactly as it was written.

    Args:
        out, inputs, data: as `StagedFolder`.
        report: the name of the report's file in the tree.
        made_by: the source of the tree; a tree whose source is gone is not replaced.
    """

    noun = "a tree"
    work = "writing"
    hidden = (PLAN,)

    def __init__(
        self, out: Path, *, inputs: Iterable[Path], data: Path, report: str, made_by: Path
    ) -> None:
        super().__init__(out, overwrite=True, inputs=inputs, data=data)
        self._report = report
        if self.out.exists() and self.is_ours(self.out) and not made_by.exists():
            raise UsageError(
                f"the tree exists, but {made_by.name}, which it was made from, is missing",
                where=str(self.out),
                expected="both files, or none",
                remedy="choose another folder, or remove this one",
            )

    def is_ours(self, folder: Path) -> bool:
        """Return whether the tree is as it was written: no label edited, no file added.

        One that was moved out of the way was, and may be half removed.
        """
        written = read_json(folder / self._report).get("digest")
        if written is None or folder.is_symlink():
            return False
        return folder == self._before or bool(written == self._digest(folder))

    def there(self) -> Mapping[str, Any] | None:
        """Return the report of an existing tree, without its digest; None if there is none."""
        report = read_json(self.out / self._report)
        return {name: value for name, value in report.items() if name != "digest"} or None

    def begin(self) -> None:
        """Remove what an interrupted call has left: copying again costs less than checking."""
        if self.path.exists() or self.path.is_symlink():
            if self.path.is_symlink() or not _is_unfinished(self.path):
                raise self.foreign()
            remove_folders_first(self.path)

    def mark(self) -> None:
        """Mark the new folder as unfinished."""
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
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {""}
    return PLAN in names or all(map(is_unfinished, names))
