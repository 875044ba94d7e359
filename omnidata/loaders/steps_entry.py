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
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnidata.errors import Finding
from omnidata.files import bounds
from omnidata.loaders.step_file import CannotStoreError, StepFile, to_cell
from omnidata.loaders.step_folders import HEAD, Folder
from omnidata.loaders.steps import Places, RowIds, Steps
from omnidata.types import LoadedDataset

_STEPS, _ROWS, _CHOSEN, _EPISODES, _REST = (
    "steps.arrow", "rows.npy", "chosen.npy", "episodes.arrow", "rest.bin",
)  # fmt: skip
_CHUNK: Final = 1 << 20


def keep(source: LoadedDataset, folder: Folder, place: Path) -> int:
    """Make an entry of a dataset whose steps were written to a folder.

    Args:
        source: the dataset; its steps name the entry's file afterwards.
        folder: where its steps lie.
        place: of the entry.

    Returns:
        Its bytes; 0 if it cannot be kept: values that no file holds, or a full disk.
    """
    steps = source.steps
    own = isinstance(steps, Steps) and steps.file and folder.path_of(steps.file)
    if not own or type(source) is not LoadedDataset:
        return 0
    assert isinstance(steps, Steps) and steps.file and folder.path
    try:
        rest = _rest(source, steps)
        rows = _row_numbers(source, steps)
        new = folder.path / "entry"
        new.mkdir(mode=0o700)
        own.rename(new / _STEPS)
        (new / _REST).write_bytes(rest)
        _write_episodes(new / _EPISODES, source.episode_rows)
        np.save(new / _ROWS, rows, allow_pickle=False)
        if steps.numbers is not None:
            np.save(new / _CHOSEN, steps.numbers, allow_pickle=False)
        sums = {path.name: _sum(path) for path in sorted(new.iterdir())}
        head = {"task": source.task, "data": str(source.root), "steps": len(steps)}
        head |= {"fingerprint": source.fingerprint, "files": sums}
        (new / HEAD).write_text(json.dumps(head), encoding="utf-8")
        with suppress(OSError):  # another process was faster
            new.rename(place)
    except (CannotStoreError, KeyError, OSError, UnicodeEncodeError):
        return 0
    steps.file.path = place / _STEPS
    return sum(size for size, _ in sums.values())


def _rest(source: LoadedDataset, steps: Steps) -> bytes:
    findings = [
        tuple(getattr(found, name) for name in Finding.__slots__) for found in source.findings
    ]
    return to_cell(
        (
            findings,
            source.skipped,
            source.fingerprint,
            list(source.tags),
            dict(source.roles),
            dict(source.media_overrides),
        )
    )


def _row_numbers(source: LoadedDataset, steps: Steps) -> Any:
    rows = source.row_ids
    if isinstance(rows, RowIds) and rows.steps is steps:
        return rows.numbers
    found = [-1 if name is None else steps.position(name) for name in rows]
    if None in found:
        raise KeyError("a row of no step")
    return np.array(found, np.int64)


def _sum(path: Path) -> tuple[int, int]:
    crc = size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            crc, size = zlib.crc32(chunk, crc), size + len(chunk)
    return size, crc


def open_entry(place: Path, data: Path) -> LoadedDataset | None:
    """Return the dataset of an entry; None if there is none, or it is damaged and removed.

    Args:
        place: of the entry.
        data: as the user named them.
    """
    if not place.exists():
        return None
    try:
        about = place.stat()
        if hasattr(os, "getuid") and about.st_uid != os.getuid():
            return None
        head = json.loads((place / HEAD).read_bytes())
        for name, expected in head["files"].items():
            if Path(name).name != name or list(_sum(place / name)) != expected:
                raise ValueError(f"{name} was changed")
        source = _read(place, head, data)
        os.utime(place / HEAD)
    except Exception:  # whatever is wrong with the entry: it is written anew
        shutil.rmtree(place, ignore_errors=True)
        return None
    return source


def _read(place: Path, head: Mapping[str, Any], data: Path) -> LoadedDataset:
    findings, skipped, fingerprint, tags, roles, overrides = marshal.loads(
        (place / _REST).read_bytes()
    )
    if fingerprint != head["fingerprint"]:
        raise ValueError("the fingerprint is another")
    chosen = place / _CHOSEN
    numbers = np.load(chosen, allow_pickle=False) if _CHOSEN in head["files"] else None
    with (place / _STEPS).open("rb") as file:
        steps = Steps(StepFile.map(file, bounds(), path=place / _STEPS), numbers, checked=True)
    rows = np.load(place / _ROWS, mmap_mode="r", allow_pickle=False)
    return LoadedDataset(
        head["task"],
        data,
        steps,
        [Finding(*found) for found in findings],
        skipped,
        fingerprint,
        RowIds(steps, rows),
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
        table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
        self._names = _Names(table.column("name"))
        self._rows = table.column("row")
        self._places: Places | None = None

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        self._places = self._places or Places(self._names)
        number = self._places.get(name)
        if number is None:
            raise KeyError(name)
        return marshal.loads(self._rows[number].as_buffer())  # type: ignore[no-any-return]  # no types

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class _Names(Sequence[str]):
    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, number: Any) -> Any:
        return self._column[number].as_py().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for chunk in self._column.chunks:
            yield from (name.decode("utf-8", "surrogatepass") for name in chunk.to_pylist())
