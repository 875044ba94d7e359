"""Read a Parquet repository that `omnidata convert` wrote.

`datasets.load_dataset(FOLDER)` opens it without omnidata. Its manifest has what `datasets` has no
place for: the origin of the media, their faults, and the order of the source. It is untrusted: its
README is never read, and every path in it is checked.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from omnidata import registry, remote
from omnidata.errors import (
    DataError,
    FileError,
    Finding,
    MediaError,
    StoreError,
    UnusableRowError,
)
from omnidata.files import bounds, inside, naming, read_file, real, remember_bounds, staying_in
from omnidata.loaders.columns import EPISODE, OPTIONAL, arrow_types
from omnidata.loaders.media_findings import check_media_files
from omnidata.loaders.parquet import check, leaves, rows
from omnidata.loaders.rows import RowReader, read_object
from omnidata.loaders.steps import Numbers, Steps, row_ids, select_steps
from omnidata.loaders.stored_rows import RowsByName
from omnidata.loaders.subsets import SubsetNames
from omnidata.media import Budget, resolve
from omnidata.media.parquet_pages import open_parquet
from omnidata.types import LoadedDataset, MediaRef, Modality, ParquetLocation, Step

MANIFEST = "omnidata.json"
FORMAT = 1
"""Of the manifest and the columns; a repository of another format is refused."""

_SHA256 = re.compile("[0-9a-f]{64}")
_path = lru_cache(maxsize=4096)(Path)
_ANY_SIZE = Budget(max_bytes=1 << 60)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `omnidata.json`.

    Attributes:
        task: the benchmark.
        embed: whether the media are in the rows.
        digest: hash of what the repository says; the same wherever and whenever it is made.
        fingerprint: that of the source, so that runs on either can be compared.
        tags, roles: of the steps, as in `LoadedDataset`.
        roots: the folders of linked media.
        shards: file, relative to the repository -> its rows.
        subsets: name -> numbers of its shards, `all` first.
        rows: rows of the source, those included that became no step.
        skipped: rows that became no step.
        findings: about the annotations of the source.
        media_findings: about its media, when they were written.
    """

    task: str
    embed: bool
    digest: str
    fingerprint: str
    tags: Sequence[str]
    roles: Mapping[str, Modality]
    roots: Sequence[str]
    shards: Mapping[str, int]
    subsets: Mapping[str, Sequence[int]]
    rows: int
    skipped: int
    findings: Sequence[Finding]
    media_findings: Sequence[Finding]
    format: int = FORMAT


def is_repository(data: Path) -> bool:
    """Return whether the folder has the manifest of a repository."""
    return (data / MANIFEST).exists()


def read_manifest(data: Path) -> Manifest:
    """Read the manifest.

    Raises:
        DataError: it cannot be read, contradicts itself, or is of another format.
        FileError: it is not opened.
    """
    path = data / MANIFEST
    try:
        content = read_file(path)
        found = json.loads(content).get("format")
        manifest = msgspec.json.decode(content, type=Manifest) if found == FORMAT else None
    except FileError:
        raise
    except (OSError, ValueError, AttributeError, RecursionError, msgspec.MsgspecError) as error:
        raise _bad_repository(
            path, f"the manifest cannot be read ({type(error).__name__})"
        ) from None
    if manifest is None:
        raise _bad_repository(path, f"the repository has format {found!r}, not {FORMAT}")
    sizes, count = manifest.shards.values(), len(manifest.shards)
    numbers = [number for shards in manifest.subsets.values() for number in shards]
    if (
        min(sizes, default=0) < 0
        or not 0 <= manifest.skipped <= len(manifest.findings)  # each skipped row has one
        or not 0 <= manifest.rows <= sum(sizes) + manifest.skipped
        or not all(0 <= number < count for number in numbers)
    ):
        raise _bad_repository(path, "the numbers of rows or shards contradict each other")
    return manifest


def load(
    data: Path, task: str, tags: Sequence[str] | None, *, check_media: bool = True
) -> LoadedDataset:
    """Read a repository; no medium is decoded.

    Embedded media are found in their cells. A linked file is opened only where the user named the
    folder that it lies in, and while it is what it was when it was linked; one that was missing
    then is missing: an untrusted path is no reason to read a file outside the
    repository.

    Args:
        data: the repository's folder.
        task: the benchmark that is asked for.
        tags: those of its steps; None for those of the repository.
        check_media: say what is wrong with the media: what was found when they were embedded, or
            whether linked files are still there and the same.

    Raises:
        DataError: it is another benchmark's, or manifest or shards are broken; or `check_media` and
            the media lie in folders that are not allowed.
    """
    manifest = read_manifest(data)
    _check_task(data, manifest, task)
    if tags is None:
        tags = tuple(manifest.tags)
    if tuple(manifest.tags) != tuple(tags):
        raise _bad_repository(data / MANIFEST, f"the tags are {manifest.tags}, not {list(tags)}")
    with staying_in(data):
        within = bounds()
    read = _Reading(data, manifest, within)
    found = Steps.of(read.steps())
    merged: list[Finding] = []
    steps = _in_order(data, manifest, found, np.array(read.positions, np.int64))
    if known_task := registry.find_benchmark(manifest.task):
        steps = known_task.episodes.merge_groups(steps, merged.append)
    loaded = set(manifest.findings)  # the source's loader has found most of them
    findings = [*manifest.findings, *read.findings]
    findings += [finding for finding in merged if finding not in loaded]
    if check_media and manifest.embed:
        findings += manifest.media_findings
    elif check_media:
        check_media_files(steps, findings.append)
    return LoadedDataset(
        manifest.task,
        data,
        steps,
        findings,
        manifest.skipped + len(read.findings),
        manifest.fingerprint,
        row_ids(found, read.steps_of_rows()),
        tags,
        manifest.roles,
        episode_rows=read.episode_rows,
    )


class _Reading:
    """The steps of a repository in the order of its files, and what its rows say beside them.

    Attributes:
        positions: place of each step in the source's order.
        findings: about rows that are no steps.
        episode_rows: the untouched row of each episode.
    """

    def __init__(self, data: Path, manifest: Manifest, within: tuple[str, ...]) -> None:
        self._data, self._manifest, self._within = data, manifest, within
        self.positions, self._rows = array("q"), array("q")
        self.findings: list[Finding] = []
        self.episode_rows: RowsByName[Mapping[str, Any]] = RowsByName()

    def steps(self) -> Iterator[Step]:
        for step, row in _steps(self._data, self._manifest, self._within, self.episode_rows):
            if isinstance(step, Finding):
                self.findings.append(step)
                continue
            self.positions.append(row["position"])
            self._rows.append(-1 if row["row"] is None else row["row"])
            yield step

    def steps_of_rows(self) -> Numbers:
        """Return the step of each row of the source, -1 for none; the last where there are two."""
        rows = np.array(self._rows, np.int64)
        known = np.flatnonzero(rows >= 0)
        found = np.full(self._manifest.rows, -1, np.int64)
        found[rows[known]] = known
        return found


def _in_order(
    data: Path, manifest: Manifest, found: Sequence[Step], positions: Numbers
) -> Sequence[Step]:
    order = np.argsort(positions, kind="stable")
    if len(again := order[1:][np.diff(positions[order]) == 0]):
        first = int(positions[again.min()])
        same = [each for each in _rows(data, manifest) if each[0]["position"] == first]
        _, shard, number = same[1]
        what = f"row {number} is no step (ValueError: position {first} comes twice)"
        raise _bad_repository(data / shard, what)
    return select_steps(found, order)


def subset_steps(data: Path, manifest: Manifest, name: str) -> Iterator[Step]:
    """Yield the steps of a subset, in the order of the files.

    Args:
        data: the repository's folder.
        manifest: the repository's.
        name: the subset.

    Raises:
        DataError: there is no such subset, or a shard is broken.
    """
    with staying_in(data):
        within = bounds()
    chosen = {shard: manifest.shards[shard] for shard in _subset(data, manifest, name)}
    for step, _ in _steps(data, replace(manifest, shards=chosen), within):
        if isinstance(step, Finding):
            raise _bad_repository(Path(step.where), step.what)
        yield step


def open_dataset(data: Path, task: str, name: str, **options: Any) -> Any:
    """Open the repository with `datasets`; a subset's name may have any case and spelling.

    Args:
        data: the repository's folder.
        task: the benchmark that is asked for.
        name: the subset.
        options: of `datasets.load_dataset`.

    Raises:
        DataError: it is another benchmark's, has no such subset, a shard is broken or its rows
            take more memory than they may, its media lie in folders that are not allowed, or an
            embedded medium is a path, which `datasets` would embed into what it saves.
    """
    import datasets
    import pyarrow.parquet as pq

    with staying_in(data):
        manifest = read_manifest(data)
        _check_task(data, manifest, task)
        within = bounds()
        remember_bounds()
    files = [_shard(data, shard) for shard in _subset(data, manifest, name)]
    for path in files:
        remote.fetch(path)  # for `datasets`, which reads by itself
    for path in files:  # `datasets` reads as much at once as a row group says it is
        with _whole(path), pq.ParquetFile(path) as file:
            texts = [leaf for leaf in leaves(file) if leaf.partition(".")[0] not in manifest.roles]
            check(path, file, texts)
    found = datasets.load_dataset("parquet", data_files={"test": list(map(str, files))}, **options)
    far = [root for root in manifest.roots if not inside(real(Path(root)), within)]
    refusing = _Refusing(data, tuple(manifest.roles), () if manifest.embed else within, far)
    splits = found if isinstance(found, dict) else {"": found}
    if not options.get("streaming"):
        for part in splits.values():
            refusing.check(part.data)
        return found
    for split, part in splits.items():  # `map` forgets the types of columns unless they are given
        splits[split] = part.map(refusing, features=part.features)
    return splits.get("", found)


def _subset(data: Path, manifest: Manifest, name: str) -> list[str]:
    names = SubsetNames(manifest.task, manifest.tags)
    known = {names.key(subset): shards for subset, shards in manifest.subsets.items()}
    if names.key(name) not in known:
        raise DataError(
            f'the data has no subset "{name}"',
            where=str(data),
            expected=f"one of {', '.join(manifest.subsets)}",
        )
    shards = list(manifest.shards)
    return [shards[number] for number in known[names.key(name)]]


@dataclass(frozen=True, slots=True)
class _Refusing:
    """Passes rows on whose media are bytes, or paths that may be followed.

    Attributes:
        data: the repository's folder.
        roles: the columns with media.
        within: real paths of the folders of linked media; empty if all media must be bytes.
        far: the folders of linked media that lie in none of them.
    """

    data: Path
    roles: tuple[str, ...]
    within: tuple[str, ...]
    far: Sequence[str]

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        for role in self.roles:
            medium = row[role]
            if medium and self.within:
                self._check_path(role, medium["path"])
            elif medium and medium["bytes"] is None:
                raise self._without_bytes(role)
        return row

    def check(self, table: Any) -> None:
        """Check all rows; the bytes themselves are not read from the disk."""
        import pyarrow.compute as pc

        for role in self.roles:
            for chunk in table.column(role).chunks:
                if self.within:
                    for path in chunk.field("path").to_pylist():
                        self._check_path(role, path)
                elif pc.any(pc.and_(chunk.is_valid(), chunk.field("bytes").is_null())).as_py():
                    raise self._without_bytes(role)

    def _without_bytes(self, role: str) -> DataError:
        return _bad_repository(
            self.data, f"a {role} of this embedded repository is a path without bytes"
        )

    def _check_path(self, role: str, path: str | None) -> None:
        if path is not None and not inside(_leads(path), self.within):
            raise DataError(
                f"its media are in folders that you have not named, e.g. a {role} at "
                f"{path[:200]!r}",
                where=str(self.data),
                expected="folders that you name, since a repository may list any folder",
                remedy=naming(self.far or [os.path.dirname(path)]),  # noqa: PTH120  a text
            )


def _leads(path: str) -> str:
    folder, name = os.path.split(path)
    if name in ("", ".", "..") or os.path.islink(path):  # noqa: PTH114  by the million
        return real(Path(path))
    return os.path.join(_real_folder(folder), name)  # noqa: PTH118  by the million


@lru_cache(maxsize=4096)
def _real_folder(folder: str) -> str:
    return real(Path(folder))


def _check_task(data: Path, manifest: Manifest, task: str) -> None:
    if manifest.task != task:
        raise DataError(
            f"the repository holds {manifest.task}",
            where=str(data),
            expected=f"{task}, which was asked for",
            remedy="name other data",
        )


def _shard(data: Path, shard: str) -> Path:
    try:
        return resolve(MediaRef("image", data, shard), budget=_ANY_SIZE)
    except MediaError as error:
        broken = _bad_repository(data / shard, f"the shard cannot be opened: {error.what}")
        if error.fault == "refused":  # a pointer of git-lfs, a link: the shard itself may be whole
            broken.remedy = error.remedy
        raise broken from None


def _rows(data: Path, manifest: Manifest) -> Iterator[tuple[dict[str, Any], str, int]]:
    import pyarrow as pa

    for shard, expected in manifest.shards.items():
        path = _shard(data, shard)
        number = 0
        with _whole(path):
            file = open_parquet(path)
            types = arrow_types(manifest.tags)
            held = {field.name: field.type for field in file.schema_arrow}
            wrong = [name for name, type_ in types.items() if held.get(name) != type_]
            optional = [name for name in OPTIONAL if name in held]
            wrong += [name for name in optional if held[name] != pa.string()]
            if wrong:
                raise ValueError(f"columns {', '.join(wrong)} are missing or of another type")
            kept = types.keys() | set(optional)
            chosen = [leaf for leaf in leaves(file) if leaf.partition(".")[0] in kept]
            for row in rows(path, file, chosen):
                yield row, shard, number
                number += 1
            pa.default_memory_pool().release_unused()  # or 20 MB stay, for as long as we do
            if number != expected:
                raise ValueError(f"{number} rows instead of {expected}")


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    try:
        yield
    except (DataError, StoreError):
        raise
    except Exception as error:  # hostile bytes make Arrow raise whatever it likes
        raise _bad_repository(
            path, f"the shard cannot be read ({type(error).__name__}: {error})"
        ) from None


def _steps(
    data: Path,
    manifest: Manifest,
    within: tuple[str, ...],
    episode_rows: RowsByName[Mapping[str, Any]] | None = None,
) -> Iterator[tuple[Step | Finding, dict[str, Any]]]:
    """Yield each row with its step, or with the finding why it has none; collect episodes' rows."""
    reader = RowReader(manifest.tags, task=manifest.task)
    for row, shard, number in _rows(data, manifest):
        try:
            media = _media(data, manifest, row["media"], (shard, number), within)
            if row["position"] is None:
                raise ValueError("the position is missing")
            step = reader.step(row, media)
            if len(step.history) != len(step.history_screens):
                raise ValueError("the history lacks screens")
            if row["row"] is not None and not 0 <= row["row"] < manifest.rows:
                raise ValueError(f"the source has no row {row['row']}")
            text = row.get(EPISODE)
            if episode_rows is not None and text is not None and step.episode not in episode_rows:
                episode_rows[step.episode] = read_object(text, EPISODE)
        except UnusableRowError as error:
            finding = Finding(
                "row-unusable",
                "error",
                f"{data / shard}, row {number}",
                str(error),
                "the columns of a step of the benchmark",
                "correct the row, or convert the source again; it is skipped until then",
                (row["sample_id"],),
            )
            yield finding, row
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            raise _bad_repository(
                data / shard, f"row {number} is no step ({type(error).__name__}: {error})"
            ) from None
        else:
            yield step, row


def _media(
    data: Path,
    manifest: Manifest,
    entries: Sequence[Mapping[str, Any]],
    at: tuple[str, int],
    within: tuple[str, ...],
) -> dict[str, MediaRef | None]:
    media: dict[str, MediaRef | None] = dict.fromkeys(manifest.roles)
    for entry in entries:
        role, path, root, sha256 = (entry[key] for key in ("role", "path", "root", "sha256"))
        kind = manifest.roles[role]
        if path is None:
            raise ValueError(f"the {role} has no name")
        if sha256 and not _SHA256.fullmatch(sha256):
            raise ValueError(f"the SHA-256 of the {role} is {sha256[:80]!r}")
        if root is not None and sha256:
            folder = _path(manifest.roots[root])
            media[role] = MediaRef(kind, folder, path, sha256=sha256, within=within)
        elif sha256:
            cell = ParquetLocation(at[0], role, at[1])
            media[role] = MediaRef(kind, data, path, cell=cell, sha256=sha256, within=within)
        else:
            media[role] = MediaRef(kind, data, path, within=within)
    return media


def _bad_repository(path: Path, what: str) -> DataError:
    return DataError(
        what,
        where=str(path),
        expected="a repository written by `omnidata convert` of this version",
        remedy="convert the source again",
    )
