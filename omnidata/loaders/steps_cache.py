"""The cache of many steps, which later commands map.

An entry of the cache is a folder that is written elsewhere and renamed, so that it is whole or not
there. Its name is a hash of what the steps follow from: names, sizes and times of the files, the
options, and the code that reads them. Its head holds size and CRC of each file. What does not match
is removed and written anew.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from omnidata.files import bounds
from omnidata.loaders.step_folders import HEAD, LOCK, writing_into
from omnidata.registry import plugin_origin
from omnidata.remote import CACHE_VARIABLE, cache_folder, is_in_cache, most_bytes
from omnidata.types import LoadedDataset

NO_CACHE: Final = "OMNIDATA_NO_CACHE"
"""The variable of the environment that says, if it is not empty, that no steps are kept."""
_FORMAT: Final = 1
_NEW: Final = ".new-"
_RECENT_NS: Final = 2 * 10**9
"""Some file systems tell times of files by two seconds: a file that was changed in these may change
again and look the same."""


# The entries of the cache.


@dataclass(frozen=True, slots=True)
class Entry:
    """A dataset in the cache.

    Attributes:
        path: of its folder.
        data: as the user named them.
        task: the benchmark.
        steps: their number.
        bytes: on disk.
        used: seconds since 1970.
    """

    path: Path
    data: str
    task: str
    steps: int
    bytes: int
    used: float


_KEPT: ContextVar[Callable[[Entry], None] | None] = ContextVar("_kept", default=None)


@contextmanager
def reporting(report: Callable[[Entry], None]) -> Iterator[None]:
    """Report each entry that is written in the block."""
    token = _KEPT.set(report)
    try:
        yield
    finally:
        _KEPT.reset(token)


def steps_folder() -> Path:
    """Return the folder of the entries, which need not exist."""
    return cache_folder() / "steps"


def entries() -> list[Entry]:
    """Return the entries of the cache, the last used first."""
    found = []
    with suppress(OSError):
        for folder in steps_folder().iterdir():
            with suppress(OSError, ValueError, KeyError, TypeError):
                head = json.loads((folder / HEAD).read_bytes())
                size = sum(path.stat().st_size for path in folder.iterdir())
                used = (folder / HEAD).stat().st_mtime
                found.append(
                    Entry(folder, str(head["data"]), str(head["task"]), head["steps"], size, used)
                )
    return sorted(found, key=lambda entry: (-entry.used, entry.path))


def clear() -> int:
    """Remove all entries, and files that killed processes left.

    Returns:
        The bytes that were freed.
    """
    found = entries()
    for entry in found:
        shutil.rmtree(entry.path, ignore_errors=True)
    _sweep()
    return sum(entry.bytes for entry in found)


def _sweep() -> None:
    """Remove folders of processes that were killed: nobody holds their lock."""
    with suppress(OSError):
        for folder in steps_folder().iterdir():
            if not folder.name.startswith(_NEW):
                continue
            with suppress(OSError, Timeout), FileLock(folder / LOCK).acquire(timeout=0):
                shutil.rmtree(folder, ignore_errors=True)


def _prune(newest: Path) -> None:
    """Remove what was not used for longest beyond the bytes that the cache may hold."""
    left = most_bytes()
    for entry in sorted(entries(), key=lambda entry: entry.path != newest):
        left -= entry.bytes
        if left < 0:
            shutil.rmtree(entry.path, ignore_errors=True)


# The key.


@dataclass(frozen=True, slots=True)
class Origin:
    """What the steps of a dataset follow from.

    Attributes:
        task: the benchmark.
        data: as the user named them.
        beside: further files that are read.
        depends: options, and whatever else the steps follow from.
        check_media: whether the findings tell of media.
    """

    task: str
    data: Path
    beside: Sequence[Path]
    depends: Sequence[object]
    check_media: bool

    @property
    def prefix(self) -> str:
        """Return the beginning of the names of all entries for the data, which is quickly made."""
        facts = self.task, str(self.data), os.path.realpath(self.data)
        return _hash(repr(facts))[:16]

    def key(self) -> tuple[str, int]:
        """Return the name of the entry, and when the files last changed in ns since 1970.

        Raises:
            OSError: a folder cannot be read.
        """
        digest, last = sha256(), 0
        facts = (
            _FORMAT, sys.version, _hash_code(str(Path(__file__).parents[1])), bounds(),
            self.depends, self.check_media, _environment(),
        )  # fmt: skip
        digest.update(repr(facts).encode("utf-8", "surrogateescape"))
        for place in (self.data, *self.beside):
            for name, about in _listing(place):
                digest.update(f"{name}\0{about}\n".encode("utf-8", "surrogateescape"))
                last = max(last, about[1])
        return f"{self.prefix}-{digest.hexdigest()[:32]}", last


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _environment() -> list[tuple[str, str]]:
    own = {CACHE_VARIABLE, NO_CACHE}
    return sorted(
        item
        for item in os.environ.items()
        if item[0].startswith("OMNIDATA_") and item[0] not in own
    )


def _listing(place: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name, size, times and number of each file in and below a folder; links are followed."""
    waiting, met = [str(place)], set[tuple[int, int]]()
    while waiting:
        path = waiting.pop()
        about = os.stat(path)  # noqa: PTH116  a Path for each of a million files takes as long
        if not os.path.isdir(path):  # noqa: PTH112  False for a name with a NUL
            yield path, _facts(about)
            continue
        if (about.st_dev, about.st_ino) in met:
            continue
        met.add((about.st_dev, about.st_ino))
        with os.scandir(path) as found:
            for entry in sorted(found, key=lambda entry: entry.name):
                if entry.is_dir():
                    waiting.append(entry.path)
                    continue
                try:
                    facts = _facts(entry.stat())
                except OSError:  # a link that leads nowhere
                    facts = _facts(entry.stat(follow_symlinks=False))
                yield entry.path, facts


def _facts(about: os.stat_result) -> tuple[int, ...]:
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino


@lru_cache(maxsize=64)
def _hash_code(place: str) -> str:
    digest = sha256()
    for path, facts in _listing(Path(place)):
        if path.endswith(".py"):
            digest.update(f"{path}\0{facts[:2]}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def reader_facts(benchmark: Any) -> tuple[object, ...] | None:
    """Return what the steps of a benchmark follow from beside its data: its code and options.

    Args:
        benchmark: ours, or of an installed plug-in.

    Returns:
        None for an object of any other class, whose state nobody else knows.
    """
    options = sorted(benchmark.options.items())
    try:
        named = [[*_listing(Path(value))] for _, value in options if _is_path(value)]
    except OSError:
        return None
    if type(benchmark).__module__.startswith("omnidata."):
        return options, named
    code = _code_of(type(benchmark)) if plugin_origin(benchmark.name) else None
    return None if code is None else (options, named, code)


def _is_path(text: str) -> bool:
    try:
        return os.path.exists(text)  # noqa: PTH110  False for a name with a NUL
    except ValueError:
        return False


def _code_of(kind: type) -> str | None:
    """Return a hash of the code of a class and its bases; None where one has no file."""
    found = []
    for base in kind.__mro__:
        top = base.__module__.partition(".")[0]
        if top in ("builtins", "omnidata", "abc", "typing", "collections"):
            continue
        module = sys.modules.get(top)
        places = [*getattr(module, "__path__", ())] or [getattr(module, "__file__", None)]
        if top == "__main__" or not all(places):
            return None
        with suppress(OSError):
            found.append([_hash_code(str(place)) for place in places])
            continue
        return None
    return repr(found)


# Reading and keeping.


def load(read: Callable[[], LoadedDataset], origin: Origin) -> LoadedDataset:
    """Return a dataset from the cache, or read it; one of many steps is kept.

    Args:
        read: reads it.
        origin: what it follows from.
    """
    if os.environ.get(NO_CACHE) or is_in_cache(origin.data):
        return read()
    if _has_entries(origin.prefix):
        from omnidata.loaders import steps_entry

        with suppress(OSError, ValueError):
            name, _ = origin.key()
            if (found := steps_entry.open_entry(steps_folder() / name, origin.data)) is not None:
                return found
    before: list[tuple[str, int]] = []

    def begin() -> Path:
        began = time.time_ns()
        key = origin.key()
        if began - key[1] < _RECENT_NS:
            raise OSError("the files may change and look the same")
        before.append(key)
        path = steps_folder() / f"{_NEW}{secrets.token_hex(8)}"
        path.mkdir(mode=0o700, parents=True)
        return path

    began = time.time_ns()
    with writing_into(begin) as folder:
        source = read()
        if folder.path is None:
            return source
        with suppress(OSError):
            name, changed = origin.key()
            if before != [(name, changed)] or began - changed < _RECENT_NS:
                return source  # they changed meanwhile
            from omnidata.loaders import steps_entry

            place = steps_folder() / name
            if size := steps_entry.keep(source, folder, place):
                _sweep()
                _prune(place)
                if (report := _KEPT.get()) and place.exists():
                    count, now = len(source.steps), time.time()
                    report(Entry(place, str(origin.data), origin.task, count, size, now))
        return source


def _has_entries(prefix: str) -> bool:
    with suppress(OSError), os.scandir(steps_folder()) as found:
        return any(entry.name.startswith(prefix) for entry in found)
    return False
