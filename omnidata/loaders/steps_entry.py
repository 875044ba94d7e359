"""An entry of the cache of steps: how it is written, and how it is checked and mapped."""

from __future__ import annotations

import json
import marshal
import mmap
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnidata.errors import Finding
from omnidata.files import bounds
from omnidata.loaders.step_cells import CannotStoreError, to_cell
from omnidata.loaders.step_file import StepFile
from omnidata.loaders.step_folders import HEAD, Folder, file_facts
from omnidata.loaders.steps import RowIds, Steps
from omnidata.types import LoadedDataset

_FILES: Final = ("steps.arrow", "episodes.arrow", "rest.bin")
_STEPS, _EPISODES, _REST = _FILES
_CHUNK: Final = 1 << 20


def keep(
    source: LoadedDataset, folder: Folder, place: Path, code: Mapping[str, Sequence[int]]
) -> bool:
    """Make an entry of a dataset whose steps were written to a folder.

    Args:
        source: the dataset; its steps name the entry's file afterwards.
        folder: where its steps lie.
        place: of the entry.
        code: files whose code has read it, and their `file_facts`.

    Returns:
        Whether there is one: there is none of values that no file holds, or on a full disk.
    """
    steps = source.steps
    own = isinstance(steps, Steps) and steps.file and folder.path_of(steps.file)
    if not own or type(source) is not LoadedDataset:
        return False
    assert isinstance(steps, Steps) and steps.file and folder.path
    try:
        rest = _rest(source, steps)
        new = folder.path / "entry"
        new.mkdir(mode=0o700)
        own.rename(new / _STEPS)
        (new / _REST).write_bytes(rest)
        _write_episodes(new / _EPISODES, source.episode_rows)
        sums = {name: _sum(new / name) for name in _FILES}
        head = {"task": source.task, "data": str(source.root), "steps": len(steps)}
        (new / HEAD).write_text(json.dumps({**head, "code": code, "files": sums}), "utf-8")
        try:
            new.rename(place)
        except OSError:  # another process was faster
            _check(place)
    except (CannotStoreError, KeyError, TypeError, OSError, ValueError):
        return False
    steps.file.path = place / _STEPS
    return True


def _rest(source: LoadedDataset, steps: Steps) -> bytes:
    findings = [
        tuple(getattr(found, name) for name in Finding.__slots__) for found in source.findings
    ]
    ids = source.row_ids
    if isinstance(ids, RowIds) and ids.steps is steps:
        rows = None if isinstance(ids.numbers, range) else np.asarray(ids.numbers).tobytes()
    else:  # a row of no step is a TypeError
        places = [-1 if name is None else steps.position(name) for name in ids]
        rows = np.array(places, np.int64).tobytes()
    return to_cell(
        (
            findings,
            source.skipped,
            source.fingerprint,
            list(source.tags),
            dict(source.roles),
            dict(source.media_overrides),
            rows,
            None if steps.numbers is None else steps.numbers.tobytes(),
        )
    )


def _sum(path: Path) -> tuple[int, int]:
    crc = size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            crc, size = zlib.crc32(chunk, crc), size + len(chunk)
    return size, crc


def _check(place: Path) -> None:
    """Raise some error if there is no entry of ours at the place, or it is damaged."""
    head = json.loads((place / HEAD).read_bytes())
    if head["files"] != {name: [*_sum(place / name)] for name in _FILES}:
        raise ValueError("a file was changed")
    for path, facts in head["code"].items():
        if [*file_facts(Path(path).stat())] != facts:
            raise ValueError(f"{path} was changed")


def open_entry(place: Path, task: str, data: Path) -> LoadedDataset | None:
    """Return the dataset of an entry; None if there is none, or it is damaged and removed.

    Args:
        place: of the entry.
        task: its benchmark.
        data: as the user named them.
    """
    if not place.exists():
        return None
    try:
        _check(place)
        source = _read(place, task, data)
    except Exception:  # whatever is wrong with the entry: it is written anew
        shutil.rmtree(place, ignore_errors=True)
        return None
    with suppress(OSError):  # a cache that others have filled
        os.utime(place / HEAD)
    return source


def _read(place: Path, task: str, data: Path) -> LoadedDataset:
    findings, skipped, fingerprint, tags, roles, overrides, rows, chosen = marshal.loads(
        (place / _REST).read_bytes()
    )
    numbers = None if chosen is None else np.frombuffer(chosen, np.int64)
    with (place / _STEPS).open("rb") as file:
        steps = Steps(StepFile.map(file, bounds(), path=place / _STEPS), numbers, checked=True)
    return LoadedDataset(
        task,
        data,
        steps,
        [Finding(*found) for found in findings],
        skipped,
        fingerprint,
        RowIds(steps, range(len(steps)) if rows is None else np.frombuffer(rows, np.int64)),
        tuple(tags),
        roles,
        overrides,
        _EpisodeRows(place / _EPISODES),
    )


# The rows of episodes.

_ROW_SCHEMA: Final = pa.schema([("name", pa.large_binary()), ("row", pa.large_binary())])


def _write_episodes(path: Path, rows: Mapping[str, Mapping[str, Any]]) -> None:
    with path.open("xb") as file, pa.ipc.new_file(file, _ROW_SCHEMA) as writer:
        coming = iter(rows)
        while names := list(islice(coming, 1024)):
            texts = [name.encode("utf-8", "surrogatepass") for name in names]
            held = [texts, [to_cell(rows[name]) for name in names]]
            columns = [pa.array(column, pa.large_binary()) for column in held]
            writer.write_batch(pa.record_batch(columns, schema=_ROW_SCHEMA))


class _EpisodeRows(Mapping[str, Mapping[str, Any]]):
    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._table = pa.ipc.open_file(pa.py_buffer(content)).read_all()

    @cached_property
    def _places(self) -> Mapping[str, int]:
        names = (name.decode("utf-8", "surrogatepass") for name in self._table["name"].to_pylist())
        return {name: number for number, name in enumerate(names)}

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        row = self._table["row"][self._places[name]]
        return marshal.loads(row.as_buffer())  # type: ignore[no-any-return]  # no types

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._table)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)
