"""The folder of an export in the making, and its files: rows per split, lists of sample ids."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from omnidata.errors import Finding
from omnidata.jsontext import write_lines
from omnidata.run.selection import SPLITS, write_exclude
from omnidata.storage import PLAN, StagedFolder, atomic_write, is_unfinished, write_json
from omnidata.training.formats import OURS, Format
from omnidata.training.media_store import MEDIA
from omnidata.training.rows import Line
from omnidata.types import Step

REPORT, REWARD = "export.json", "reward.json"
SEEN, LEAKS, MODELS = "seen.txt", "leaks.txt", "models.jsonl"
_JOURNAL = ".media.jsonl"
_HASHED = re.compile(r"[0-9a-f]{32}\.[0-9a-z]{2,4}")


class ExportStaging(StagedFolder):
    """The folder of an export in the making.

    The files of an interrupted call with other settings are removed.
    """

    noun = "an export"
    work = "exporting"
    hidden = (PLAN,)

    def __init__(
        self,
        out: Path,
        form: Format,
        *,
        overwrite: bool,
        inputs: Iterable[Path],
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__(out, overwrite=overwrite, inputs=inputs)
        self._settings = settings
        self.journal = self.path / _JOURNAL
        self._names = {MEDIA, REPORT, REWARD, SEEN, LEAKS, MODELS, PLAN}
        for one in (*OURS, form):
            self._names |= {*one.files("", {}), *(f"{split}{one.suffix}" for split in SPLITS)}

    def is_ours(self, folder: Path) -> bool:
        """Return whether the folder is an export and has no other files."""
        return (folder / REPORT).is_file() and self._holds_no_other(folder, unfinished=False)

    def begin(self) -> None:
        """Keep the files of an interrupted call with equal settings, without half-written media."""
        if self.keep(self._settings, ours=self._holds_no_other(self.path, unfinished=True)):
            for part in (self.path / MEDIA).glob(".*"):
                part.unlink()

    def _holds_no_other(self, folder: Path, *, unfinished: bool) -> bool:
        """Return whether a folder has the files of an export alone, finished or in the making."""
        inside, names = folder / MEDIA, self._names
        if folder.is_symlink() or not folder.is_dir() or inside.is_symlink():
            return False
        if unfinished:
            names = names | {_JOURNAL}
        others = [path.name for path in folder.iterdir() if path.name not in names]
        if inside.exists():
            if not inside.is_dir():
                return False
            others += [path.name for path in inside.iterdir() if not _HASHED.fullmatch(path.name)]
        return not others or (unfinished and all(map(is_unfinished, others)))

    def publish(self, wanted: Iterable[str]) -> None:
        """Move the folder to its destination, with the wanted files alone."""
        kept = {self.path / name for name in wanted}
        for path in [*self.path.iterdir(), *(self.path / MEDIA).iterdir()]:
            if path.name not in (MEDIA, PLAN) and path not in kept:
                path.unlink()
        self.move()


@dataclass(slots=True)
class SplitFile:
    """The file with the rows of a split.

    `datasets`, with which most trainers read, takes the types of all columns from the first few
    megabytes: a list that is empty until then would be a list of nothing. So the first rows that
    have something in a column go before all others.
    """

    name: str
    rest: IO[bytes]
    rows: int = 0
    steps: set[str] = field(default_factory=set)
    episodes: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    media: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    first: list[bytes] = field(default_factory=list)

    def add(self, step: Step, line: Line) -> None:
        """Add the row of a step."""
        self.rows += 1
        self.steps.add(step.sample_id)
        self.episodes.add(step.episode)
        self.groups.add(step.group)
        self.media |= line.media
        if line.columns <= self.columns:
            self.rest.write(line.data)
        else:
            self.columns |= line.columns
            self.first.append(line.data)

    def write(self, folder: Path) -> None:
        """Write the rows to a folder."""
        with atomic_write(folder / self.name) as file:
            file.writelines(self.first)
            self.rest.seek(0)
            shutil.copyfileobj(self.rest, file)


_MODEL_COLUMNS = ("idm", "critics")
"""The columns in which `synth label` and `synth filter` keep a model's name and its answer."""


def write_models(path: Path, steps: Iterable[Step]) -> bool:
    """Write the models that labelled or accepted each step; return whether there are any."""
    models = (
        (step, {name: step.source[name] for name in _MODEL_COLUMNS if step.source.get(name)})
        for step in steps
    )
    lines = ({"sample_id": step.sample_id, **found} for step, found in models if found)
    with atomic_write(path) as file:
        return write_lines(file, lines) > 0


def write_lists(folder: Path, lists: Mapping[str, tuple[str, Sequence[Step]]]) -> Iterator[Finding]:
    """Write ids of steps by name of the file, with a line of what they are.

    Yields:
        A finding for each id that such a file cannot hold.
    """
    for name, (head, steps) in lists.items():
        ids = [step.sample_id for step in steps]
        for sample in write_exclude(folder / name, ids, head=f"{head}, by omnidata export"):
            yield Finding(
                "id-unlisted",
                "error",
                sample,
                f"{name} lacks the step: a file for --exclude cannot hold its id",
                "an id of one line without spaces at its ends",
                "rename the episode in the data",
            )


def write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Write files by name: texts as they are, other values as JSON."""
    for name, content in files.items():
        if isinstance(content, str):
            with atomic_write(folder / name) as file:
                file.write(content.encode())
        else:
            write_json(folder / name, content)
