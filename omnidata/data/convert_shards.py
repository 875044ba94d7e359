"""Steps -> Parquet files, one after the other, each written once."""

from __future__ import annotations

import hashlib
import io
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from omnidata import media
from omnidata.actions import Screen
from omnidata.data.convert_plan import Plan
from omnidata.errors import (
    DataError,
    Finding,
    MediaError,
    MissingMediaError,
    OmnidataError,
    UsageError,
)
from omnidata.loaders import parquet
from omnidata.loaders.columns import EPISODE, features
from omnidata.loaders.media_findings import medium_broken, size_differs
from omnidata.loaders.repository import MANIFEST, read_manifest
from omnidata.loaders.rows import storable, to_row
from omnidata.loaders.steps import Positions, media_of
from omnidata.storage import (
    PLAN,
    StagedFolder,
    atomic_write,
    holds_only,
    open_own,
)
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

if TYPE_CHECKING:
    import datasets

_GROUP_BYTES = 32 * 1024**2
_GROUP_ROWS = 50
_GROUP_ROWS_LINKED = 5000
_GROUP_ACTIONS = 50_000
"""Of all histories in a row group: each costs a kilobyte or so when rows become Arrow."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard that has been written.

    Attributes:
        file: relative to the repository.
        stamp: that of its plan.
        digest: hash of what it says; the same wherever and whenever it is made.
        rows: its steps.
        num_bytes: of its rows in memory.
        size: of the file, in bytes.
        found: media that are there, in whatever state.
        findings: about its media.
    """

    file: str
    stamp: str
    digest: str
    rows: int
    num_bytes: int
    size: int
    found: int
    findings: Sequence[Finding]


@dataclass(frozen=True)
class Layout:
    """The settings that all shards of a repository share; picklable.

    Attributes:
        out: the folder they go to.
        root: the data as the user named it.
        tags, roles: of the source.
        embed: put media bytes into the rows; otherwise their absolute paths.
        roots: the folders of the media, as the repository numbers them.
        optional: which of the columns `omnidata.loaders.columns.OPTIONAL` there are.
    """

    out: Path
    root: Path
    tags: Sequence[str]
    roles: Mapping[str, Modality]
    embed: bool
    roots: Sequence[Path]
    optional: Sequence[str]

    @cached_property
    def features(self) -> datasets.Features:
        """The columns."""
        return features(
            self.tags,
            self.roles,
            linked=not self.embed,
            repository=True,
            optional=self.optional,
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, described in the way that `datasets` 3.6 understands too."""
        described = {"info": {"features": _older(self.features.to_dict())}}
        schema: pa.Schema = self.features.arrow_schema
        return schema.with_metadata({"huggingface": json.dumps(described)})

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """Options of the Parquet writer: media are compressed already, text is not."""
        buffer = pa.BufferOutputStream()
        pq.write_table(self.schema.empty_table(), buffer)
        leaves = parquet.leaves(pq.ParquetFile(pa.BufferReader(buffer.getvalue())))
        media = {f"{role}.bytes" for role in self.roles}
        text = [leaf for leaf in leaves if leaf not in media]
        return {
            "compression": {leaf: "none" if leaf in media else "zstd" for leaf in leaves},
            "use_dictionary": text,
            "write_statistics": text,
            "write_page_index": True,
            "write_page_checksum": True,
        }


@dataclass(frozen=True, slots=True)
class ShardJob:
    """A shard that is to be written, with all that it is made of; picklable.

    Attributes:
        plan: what is to be in it.
        steps: those of the plan.
        rows: the number of each step's row in the source; None where it has none.
        episodes: the rows of their episodes, where the source has any.
    """

    plan: Plan
    steps: Sequence[Step]
    rows: Sequence[int | None]
    episodes: Mapping[str, Mapping[str, Any]]


class ShardJobs(Sequence[ShardJob]):
    """Shards to be written, each made when it is asked for.

    Args:
        source: the steps.
        todo: the plans.
    """

    def __init__(self, source: LoadedDataset, todo: Sequence[Plan]) -> None:
        self._source, self._todo = source, todo
        self._rows = array("q", [-1]) * len(source.steps)
        positions = Positions(source.steps)
        for row, name in enumerate(source.row_ids):
            if name is not None and (number := positions.get(name)) is not None:
                self._rows[number] = row

    def __len__(self) -> int:
        return len(self._todo)

    def __getitem__(self, number: int) -> ShardJob:  # type: ignore[override]  # it is never sliced
        plan = self._todo[number]
        steps = [self._source.steps[each] for each in plan.numbers]
        rows = [None if (row := self._rows[each]) < 0 else row for each in plan.numbers]
        held = self._source.episode_rows
        episodes = {step.episode: held[step.episode] for step in steps if step.episode in held}
        return ShardJob(plan, steps, rows, episodes)


def try_to_write(layout: Layout, threads: int | None, job: ShardJob) -> Shard | Exception:
    """Like `write_shard`, in any process; returns errors."""
    try:
        return write_shard(layout, job, threads=threads)
    except (OmnidataError, OSError) as error:
        return error


def write_shard(
    layout: Layout,
    job: ShardJob,
    *,
    threads: int | None = None,
    advance: Callable[[int], None] = lambda rows: None,
) -> Shard:
    """Write one shard.

    Args:
        layout: of the repository.
        job: what is to be written.
        threads: that look at media; one per core if None.
        advance: called after every group of rows.

    Raises:
        OSError: the disk takes no more.
    """
    plan, steps = job.plan, job.steps
    refs = list(dict.fromkeys(media_of(steps)))
    facts = dict(zip(refs, media.in_threads(_examine, refs, workers=threads), strict=True))
    folder = layout.out / "data" / plan.folder
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{plan.stamp[:12]}.partial"
    digest, done, num_bytes = hashlib.sha256(), 0, 0
    with (
        atomic_write(partial) as file,
        pq.ParquetWriter(file, layout.schema, **layout.options) as writer,
    ):
        for rows in _groups(layout, job, facts):
            for row in rows:
                digest.update(_canonical(row, layout.roles))
            table = pa.Table.from_pylist(rows, schema=layout.schema)
            writer.write_table(table, row_group_size=len(rows))
            num_bytes += table.nbytes
            done += len(rows)
            advance(len(rows))
    name = f"data/{plan.folder}/{plan.numbers[0]:07d}-{digest.hexdigest()[:16]}.parquet"
    partial.replace(layout.out / name)
    return Shard(
        file=name,
        stamp=plan.stamp,
        digest=digest.hexdigest(),
        rows=done,
        num_bytes=num_bytes,
        size=(layout.out / name).stat().st_size,
        found=sum(known.state != "missing" for known in facts.values()),
        findings=list(portable(_media_findings(steps, facts), layout.root)),
    )


def _groups(
    layout: Layout, job: ShardJob, facts: Mapping[MediaRef, _Facts]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each row group, within limits of rows, bytes and actions of histories."""
    most = _GROUP_ROWS if layout.embed else _GROUP_ROWS_LINKED
    rows: list[dict[str, Any]] = []
    size = actions = 0
    for row, step in zip(_rows(layout, job, facts), job.steps, strict=True):
        weight = sum(entry["bytes"] or 0 for entry in row["media"]) if layout.embed else 0
        past = len(step.history)
        full = size + weight > _GROUP_BYTES or actions + past > _GROUP_ACTIONS
        if rows and (full or len(rows) >= most):
            yield rows
            rows, size, actions = [], 0, 0
        rows.append(row)
        size, actions = size + weight, actions + past
    yield rows


def _rows(
    layout: Layout, job: ShardJob, facts: Mapping[MediaRef, _Facts]
) -> Iterator[dict[str, Any]]:
    optional = (*layout.optional, "history_screens")
    for position, step, number in zip(job.plan.numbers, job.steps, job.rows, strict=True):
        episode = job.episodes.get(step.episode)
        yield {
            **to_row(step, layout.tags, optional),
            **({} if episode is None else {EPISODE: json.dumps(episode, ensure_ascii=True)}),
            **_media_columns(step, facts, embed=layout.embed, roots=layout.roots),
            "position": position,
            "row": number,
        }


def _canonical(row: Mapping[str, Any], roles: Iterable[str]) -> bytes:
    """Return the row as bytes to hash; `media` has the hashes of embedded media."""
    held = dict(row)
    for role in roles:
        cell = row.get(role)
        held[role] = cell and (None if cell.get("bytes") else cell["path"])
    return json.dumps(held, sort_keys=True).encode()


def _older(features: Any) -> Any:
    """Return the features with lists as `datasets` wrote them before version 4, for all readers."""
    if isinstance(features, dict):
        if features.get("_type") == "List":
            return [_older(features["feature"])]
        return {name: _older(value) for name, value in features.items()}
    return [_older(value) for value in features] if isinstance(features, list) else features


# What goes into a repository for one medium: its bytes or its path, and what is known of it.

_State = Literal["present", "silent", "corrupt", "missing", "unsafe"]


@dataclass(frozen=True, slots=True)
class _Facts:
    state: _State  # see `COLUMNS["media[].state"]`
    path: Path | None = None  # absolute; None where there is no file that may be opened
    frames: int | None = None
    seconds: float | None = None
    size: Screen | None = None  # of a picture, in pixels
    problem: str = ""  # why it is not whole


def _examine(ref: MediaRef) -> _Facts:
    path = media.linkable(ref)
    if path is None and ref.inline is None and ref.cell is None and not media.is_remote(ref):
        return _Facts("unsafe", problem=f"the path {ref.path!r} leads outside its folder")
    try:
        found = media.examine(ref)
    except MissingMediaError as error:
        return _Facts("missing", path, problem=f"{error.what}: {ref.path}")
    except MediaError as error:
        return _Facts("corrupt", path, problem=f"{error.what}: {ref.path}")
    if ref.kind == "image":
        assert found.width
        assert found.height
        return _Facts("present", path, frames=1, size=(found.width, found.height))
    state: _State = "silent" if ref.kind == "audio" and found.audio == "silent" else "present"
    return _Facts(state, path, found.frames, found.seconds)


def _media_columns(
    step: Step, facts: Mapping[MediaRef, _Facts], *, embed: bool, roots: Sequence[Path]
) -> dict[str, Any]:
    """Return the columns of a step's media by role, and the column that lists them.

    An embedded medium that is missing, and any that leads outside, has an empty column: `datasets`
    would look for its path anywhere, and embed what it finds.
    """
    row: dict[str, Any] = dict.fromkeys(step.media)
    listed = []
    for role, ref in step.media.items():
        if ref is None:
            continue
        known = facts[ref]
        entry = {
            "role": role,
            "path": storable(ref.path),
            "root": None if embed else roots.index(ref.root),
            "state": known.state,
            "sha256": None,
            "bytes": None,
            "frames": known.frames,
            "seconds": known.seconds,
        }
        listed.append(entry)
        if not embed and known.path:
            path = str(known.path)
            if storable(path) != path:  # file systems take any bytes
                continue  # Arrow has no such strings: the step comes back with the medium missing
            row[role] = {"path": path}
        content = None if known.state in ("missing", "unsafe") else _content(ref, embed=embed)
        if content is not None:
            entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            if embed:
                row[role] = {"bytes": content, "path": entry["path"] or f"{role}.wav"}
    return {**row, "media": listed}


def _content(ref: MediaRef, *, embed: bool) -> bytes | None:
    """Return the bytes that are embedded, or those of the linked file; None if unreadable."""
    try:
        if ref.inline is not None:
            return _waveform(ref)
        return media.read_bytes(ref) if embed else media.read_stored(ref)
    except MediaError:
        return None


def _waveform(ref: MediaRef) -> bytes:
    """Return samples that a row holds as a WAV file of 32-bit floats."""
    import av

    held: Any = ref.inline
    try:
        rate = int(held["sampling_rate"])
        samples = media.samples(ref, rate=rate)
    except (UsageError, LookupError, TypeError, ValueError, OverflowError):
        raise MediaError("the samples have no rate", where=ref.path) from None
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="wav", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("pcm_f32le", rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def _media_findings(steps: Iterable[Step], facts: Mapping[MediaRef, _Facts]) -> Iterator[Finding]:
    """Yield one finding per medium, for its first step; loaders report unsafe paths."""
    left = dict(facts)
    for step in steps:
        for role, ref in step.media.items():
            found = None
            if ref is None:
                if role == "screenshot":
                    yield medium_broken(step, role, "the row names no file", "a screenshot")
            elif (known := left.pop(ref, None)) and known.problem:
                found = medium_broken(step, role, known.problem, f"a whole {ref.kind} file")
            elif known and known.size:
                found = size_differs(step, role, known.size)
            if ref and found and (ref.inline is not None or not media.unsafe(ref.path)):
                yield found


def portable(findings: Iterable[Finding], root: Path) -> Iterator[Finding]:
    """Yield findings without the folder of the source, as text that can be written."""
    own = f"{root}{os.sep}"
    for found in findings:
        texts = (found.where, found.what, found.expected, found.remedy)
        where, what, expected, remedy = (storable(text.replace(own, "")) or "" for text in texts)
        names = tuple(storable(name) or "" for name in found.sample_ids)
        yield Finding(found.code, found.severity, where, what, expected, remedy, names)


# A repository in the making.

_DONE = ".done.jsonl"
_OURS = {"README.md", "data", MANIFEST, _DONE, PLAN}


class RepositoryStaging(StagedFolder):
    """See `StagedFolder`."""

    noun = "a repository"
    work = "converting"
    hidden = (_DONE, PLAN)

    def is_ours(self, folder: Path) -> bool:
        """Return whether the folder has the files of a conversion and no others."""
        if not holds_only(folder, _OURS):
            return False
        if (folder / PLAN).exists() or not any(folder.iterdir()):
            return True
        try:
            read_manifest(folder)
        except DataError:
            return False
        return True

    def resume(self, settings: Mapping[str, Any]) -> dict[str, Shard]:
        """Return the whole shards of an interrupted call with equal settings, or empty the folder.

        Returns:
            By stamp.
        """
        done = {}
        if self.keep(settings, ours=self.is_ours(self.path)):
            with suppress(OSError, ValueError):  # msgspec's errors are ValueErrors
                lines = (self.path / _DONE).read_bytes().split(b"\n")[:-1]
                shards = [msgspec.json.decode(line, type=Shard) for line in lines]
                done = {shard.stamp: shard for shard in shards if self._is_whole(shard)}
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


def _line(shard: Shard) -> bytes:
    return msgspec.json.encode(shard) + b"\n"
