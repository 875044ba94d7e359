"""The files of an export: a JSON-lines file per split, and lists of sample ids."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnidata.jsontext import encode
from omnidata.run.selection import Split
from omnidata.storage import atomic_write
from omnidata.training.rows import Line
from omnidata.types import Step

_MODELS = ("idm", "critics")
"""The columns in which `synth label` and `synth filter` keep a model's name and its answer."""


@dataclass(slots=True)
class SplitFile:
    """The rows of a split.

    `datasets`, with which most trainers read, takes the types of all columns from the first few
    megabytes: a list that is empty until then would be a list of nothing. So the first rows that
    have something in a column go before all others.

    Attributes:
        folder: of the export.
        split: which one.
        steps: rows so far.
        episodes: of these steps.
        groups: of these steps: what splits are cut between.
        media: the files that the rows name, relative to the export.
        columns: the lists that are not empty in some row.
    """

    folder: Path
    split: Split
    steps: int = 0
    episodes: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    media: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    _first: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Forget what an interrupted call has left."""
        self._rest.unlink(missing_ok=True)

    @property
    def name(self) -> str:
        """Of the file, relative to the export."""
        return f"{self.split}.jsonl"

    @property
    def _rest(self) -> Path:
        return self.folder / f".{self.name}.rest"

    def add(self, step: Step, line: Line) -> None:
        """Take a row."""
        self.steps += 1
        self.episodes.add(step.episode)
        self.groups.add(step.group)
        self.media |= line.media
        if line.columns <= self.columns:
            with self._rest.open("ab") as file:
                file.write(line.data)
            return
        self.columns |= line.columns
        self._first.append(line.data)

    def finish(self) -> None:
        """Put the file there."""
        with atomic_write(self.folder / self.name) as file:
            file.writelines(self._first)
            if self._rest.exists():
                with self._rest.open("rb") as rest:
                    shutil.copyfileobj(rest, file)
        self._rest.unlink(missing_ok=True)


def dataset_info(task: str, files: Iterable[SplitFile]) -> dict[str, Any]:
    """LLaMA-Factory's list of datasets, one per split: `omnigui_train`, ...

    Args:
        task: the benchmark.
        files: of the splits.
    """
    roles = ("role", "content", "user", "assistant", "system")
    return {
        f"{task}_{file.split}": {
            "file_name": file.name,
            "formatting": "sharegpt",
            "columns": {name: name for name in sorted(file.columns)},
            "tags": {f"{name}_tag": name for name in roles},
        }
        for file in files
    }


def write_models(path: Path, steps: Iterable[Step]) -> bool:
    """Write what models had to do with the steps: who labelled them, who accepted their episodes.

    Args:
        path: of the file, a line per step with something to tell.
        steps: that are exported.

    Returns:
        Whether there was anything to write.
    """
    with atomic_write(path) as file:
        for step in steps:
            told = {name: step.source[name] for name in _MODELS if step.source.get(name)}
            if told:
                file.write(encode({"sample_id": step.sample_id, **told}) + b"\n")
        return file.tell() > 0


def write_ids(path: Path, ids: Iterable[str], head: str) -> list[str]:
    """Write sample ids for `--exclude`.

    Args:
        path: of the file.
        ids: in order.
        head: what the list is, for its first line.

    Returns:
        The ids that such a file cannot hold; it lacks them.
    """
    lacking = []
    with atomic_write(path) as file:
        file.write(f"# {head}, by omnidata export\n".encode())
        for sample in ids:
            if _writable(sample):
                file.write(f"{sample}\n".encode())
            else:
                lacking.append(sample)
    return lacking


def _writable(sample: str) -> bool:
    """Whether `--exclude` would read the line as this id."""
    try:
        sample.encode()
    except UnicodeEncodeError:
        return False
    return sample == sample.strip() and len(sample.splitlines()) == 1
