"""Which shards a conversion writes: the steps are gone through once, before anything is written."""

from __future__ import annotations

import hashlib
import os
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from omnidata import media
from omnidata.errors import UsageError
from omnidata.loaders.columns import BELONGING, DETAILS, EPISODE, OPTIONAL
from omnidata.loaders.media_findings import refuse_closed
from omnidata.loaders.rows import has_rule, needs_details, needs_names
from omnidata.media import unsafe
from omnidata.types import LoadedDataset, MediaRef, Step, VideoSegment

_SHARD_BYTES = 300 * 1024**2
_SHARD_ROWS = 20_000
_UNKNOWN_BYTES = 1024**2  # of a medium of unknown size


@dataclass(frozen=True, slots=True)
class Plan:
    """A shard that is to be written.

    Attributes:
        folder: where it belongs, relative to the repository: one level per tag.
        numbers: positions of its steps in the source.
        stamp: hash of what it is made from, sizes and times of the media included.
    """

    folder: str
    numbers: Sequence[int]
    stamp: str


def survey(source: LoadedDataset, *, embed: bool) -> tuple[list[Plan], list[Path], list[str]]:
    """Return the shards, the folders of the media and the optional columns.

    Returns:
        The shards: steps with the same tags together, so that subsets share files; the folders of
        the media, sorted; which of the columns `omnidata.loaders.columns.OPTIONAL` there are.

    Raises:
        UsageError: media are to be linked and have no files.
        DataError: the media lie outside the source, in folders that are not allowed.
    """
    columns, drafts = _OptionalColumns(source), dict[str, list[_Draft]]()
    places: dict[tuple[Path, tuple[str, ...], bool], MediaRef] = {}
    can_be_linked = True
    for number, step in enumerate(source.steps):
        columns.add(step)
        folder = "/".join(slug(step.tags.get(tag)) for tag in source.tags)
        refs = [ref for ref in step.media.values() if ref]
        _add_step(drafts.setdefault(folder, []), number, step, refs, embed=embed)
        for ref in refs:
            places.setdefault((ref.root, ref.within, ref.inline is None), ref)
            if ref.cell or ref.inline is not None or media.is_remote(ref):
                can_be_linked = False
    refuse_closed(places.values())
    if not embed and not can_be_linked:
        raise UsageError(
            "some media are inside other files or rows and cannot be linked",
            where=str(source.root),
            expected="a source whose media are files",
            remedy="use --embed",
        )
    plans = [
        Plan(folder, draft.numbers, draft.digest.hexdigest())
        for folder, of_tags in sorted(drafts.items())
        for draft in of_tags
    ]
    return plans, sorted({root for root, _, _ in places}), columns.names


class _OptionalColumns:
    """Which columns some step needs."""

    def __init__(self, source: LoadedDataset) -> None:
        self._found = {EPISODE} if source.episode_rows else set[str]()
        self._names_may_differ = not has_rule(source)
        self._before: Step | None = None

    def add(self, step: Step) -> None:
        if self._names_may_differ and needs_names(step):
            self._found.update(BELONGING)
            self._names_may_differ = False
        if DETAILS not in self._found and needs_details(self._before, step):
            self._found.add(DETAILS)
        self._before = step

    @property
    def names(self) -> list[str]:
        return [name for name in OPTIONAL if name in self._found]


@dataclass(slots=True)
class _Draft:
    """A plan that grows."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    size: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)


def _add_step(
    drafts: list[_Draft], number: int, step: Step, refs: Sequence[MediaRef], *, embed: bool
) -> None:
    """Add a step to the last of the drafts, or to a new one if that is full."""
    stats = list(map(_stat, refs))
    size = sum(own for own, _ in stats) if embed else 0
    last = drafts[-1] if drafts else None
    if last is None or last.size + size > _SHARD_BYTES or len(last.numbers) >= _SHARD_ROWS:
        drafts.append(last := _Draft())
    last.numbers.append(number)
    last.size += size
    lines = [f"{number} {step.sample_id}\n"]
    for ref, known in zip(refs, stats, strict=True):
        lines.append(f"{ref.root}/{ref.path} {ref.cell} {ref.sha256} {known}\n")
    last.digest.update("".join(lines).encode("utf-8", "backslashreplace"))


def _stat(ref: MediaRef) -> tuple[int, int]:
    """Return size and time of the file, unopened; an estimate where there is none."""
    cut = ref.cell if isinstance(ref.cell, VideoSegment) else None
    if ref.inline is not None or (ref.cell is not None and cut is None):
        return _UNKNOWN_BYTES, 0
    path = cut.shard if cut else ref.path
    if unsafe(path):
        return 0, 0
    try:
        found = os.stat(f"{ref.root}/{path}")  # noqa: PTH116  by the million
    except (OSError, ValueError):  # a name that no file system can hold is a ValueError
        return 0, 0
    return (_UNKNOWN_BYTES if cut else found.st_size), found.st_mtime_ns


@lru_cache(maxsize=4096)
def slug(value: str | None) -> str:
    """Return a tag's value as a folder's name that patterns and file systems read alike.

    Examples:
        >>> slug("TED"), slug(None), slug("a/b*")
        ('TED', '-', 'a-b-~6921b784')
    """
    if value is None:
        return "-"
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}", value):
        return value
    readable = re.sub(r"[^A-Za-z0-9_-]", "-", value)[:60]
    # `datasets` passes over folders that begin with two underscores.
    start = "" if readable[:1].isalnum() else "x"
    return f"{start}{readable}~{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:8]}"
