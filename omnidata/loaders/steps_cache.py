"""The cache of many steps, which later commands map.

An entry of the cache is a folder that is written elsewhere and renamed, so that it is whole or not
there. Its name is a hash of what the steps follow from: names, sizes and times of the files, the
options, and the code that reads them. Its head holds size and CRC of each file. What does not match
is removed and written anew.
"""

from __future__ import annotations

import json
import logging
import os
import re
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
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from filelock import FileLock, Timeout

from omnidata.errors import DataError
from omnidata.files import LIMIT_VARIABLE, bounds, inside, real
from omnidata.loaders import repository
from omnidata.loaders.reader_code import code_places
from omnidata.loaders.step_folders import HEAD, LOCK, Folder, file_facts, writing_into
from omnidata.registry import is_ours, plugin_origin
from omnidata.remote import cache_folder, is_in_cache, most_bytes
from omnidata.types import LoadedDataset

NO_CACHE: Final = "OMNIDATA_NO_CACHE"
"""The variable of the environment that says, if it is not empty, that no steps are kept."""
_FORMAT: Final = 1
_NEW: Final = ".new-"
_NAME: Final = re.compile("[0-9a-f]{16}-[0-9a-f]{32}")
_RECENT_NS: Final = 2 * 10**9
"""Some file systems keep times of files in steps of two seconds: a file that was changed in these
may change again and look the same."""
_TICK_NS: Final = 5 * 10**7
"""The clock by which a system notes changes may be late by so much."""
_NEIGHBOURS: Final = 200_000
"""So many files beside data that are a file are looked at; the data are not kept if there are more:
the folder may be the user's home."""
_BEGAN: Final = time.time_ns()
_KNOWN: Final = frozenset({"omnidata", *sys.stdlib_module_names})
_log: Final = logging.getLogger("omnidata")


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


_REPORT: ContextVar[Callable[[Entry], None] | None] = ContextVar("_report", default=None)


@contextmanager
def reporting(report: Callable[[Entry], None]) -> Iterator[None]:
    """Report each entry that is written in the block."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


def steps_folder() -> Path:
    """Return the folder of the entries, which need not exist."""
    return cache_folder().absolute() / "steps"


def entries() -> list[Entry]:
    """Return the entries of the cache, the last used first."""
    found = []
    with suppress(OSError):
        for folder in steps_folder().iterdir():
            with suppress(OSError, ValueError, KeyError, TypeError):
                head = json.loads((folder / HEAD).read_bytes())
                size = sum(path.stat().st_size for path in folder.iterdir())
                used = (folder / HEAD).stat().st_mtime
                data, task, steps = str(head["data"]), str(head["task"]), int(head["steps"])
                found.append(Entry(folder, data, task, steps, size, used))
    return sorted(found, key=lambda entry: (-entry.used, entry.path))


def clear() -> int:
    """Remove all entries, and files that killed processes left.

    Returns:
        The bytes that were freed.
    """
    found = entries()
    with suppress(OSError):
        for folder in steps_folder().iterdir():
            if _NAME.fullmatch(folder.name):  # damaged ones too
                shutil.rmtree(folder, ignore_errors=True)
    _sweep()
    return sum(entry.bytes for entry in found if not entry.path.exists())


def _sweep() -> None:
    """Remove folders of processes that were killed: nobody holds their lock."""
    with suppress(OSError):
        for folder in steps_folder().iterdir():
            if not folder.name.startswith(_NEW):
                continue
            with (
                suppress(OSError, Timeout, NotImplementedError),
                FileLock(folder / LOCK).acquire(timeout=0),
            ):
                shutil.rmtree(folder, ignore_errors=True)


def _prune(newest: Path) -> None:
    """Remove the entries that were not used for longest, until the cache has room for the rest."""
    left = most_bytes()
    for entry in sorted(entries(), key=lambda entry: entry.path != newest):
        left -= entry.bytes
        if left < 0:
            shutil.rmtree(entry.path, ignore_errors=True)


# The key.

_File = tuple[str, tuple[int, ...], int]
"""A file's name; what changes with its content; from when on it is known to be the same."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the steps of a dataset follow from.

    Attributes:
        task: the benchmark.
        data: as the user named them.
        beside: further files that are read.
        depends: options, and whatever else the steps follow from.
        check_media: whether media were checked for the findings.
    """

    task: str
    data: Path
    beside: Sequence[Path]
    depends: Sequence[object]
    check_media: bool

    @property
    def prefix(self) -> str:
        """Return the beginning of the names of all entries for the data, which is quickly made."""
        facts = repr((self.task, str(self.data), os.path.realpath(self.data)))
        return sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def key(self) -> tuple[str, int]:
        """Return the name of the entry, and since when the files are known to be the same.

        Returns:
            The name, and the time of the last change of a file, in ns since 1970.

        Raises:
            OSError: a folder cannot be read, or the code has changed since it was imported.
        """
        digest, since = sha256(), 0
        facts = (
            _FORMAT, sys.version, _hash_code(str(Path(__file__).parents[1])), bounds(),
            self.depends, self.check_media, os.environ.get(LIMIT_VARIABLE),
        )  # fmt: skip
        digest.update(repr(facts).encode("utf-8", "surrogateescape"))
        for name, about, changed in self._files():
            digest.update(f"{name}\0{about}\n".encode("utf-8", "surrogateescape"))
            since = max(since, changed)
        return f"{self.prefix}-{digest.hexdigest()[:32]}", since

    def _files(self) -> Iterator[_File]:
        """Yield all files that may be opened: beside a file its neighbours, which are few."""
        places = [self.data, *self.beside]
        if repository.is_repository(self.data):
            roots = map(Path, repository.read_manifest(self.data).roots)
            places += (root for root in roots if root.exists() and inside(real(root), bounds()))
        for place in places:
            if is_in_cache(place):  # its path names a listing of the store, which never changes
                continue
            if place.is_dir():
                yield from _listing(place)
                continue
            neighbours = _listing(place.parent, but_runs=True)
            yield from islice(neighbours, _NEIGHBOURS)
            if next(neighbours, None):
                raise OSError("too many files beside the data")


def _listing(place: Path, *, but_runs: bool = False) -> Iterator[_File]:
    """Yield a file, or all files and folders in and below a folder; links are followed."""
    waiting, met = [str(place)], set[tuple[int, int]]()
    while waiting:
        path = waiting.pop()
        about = os.stat(path)  # noqa: PTH116  a Path for each of a million files takes as long
        if not os.path.isdir(path):  # noqa: PTH112  False for a name with a NUL
            yield path, *_facts(about)
            continue
        yield path, (), about.st_ctime_ns + _TICK_NS
        if (about.st_dev, about.st_ino) in met:
            continue
        met.add((about.st_dev, about.st_ino))
        with os.scandir(path) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        if but_runs and path != str(place) and any(each.name == "run.json" for each in entries):
            continue
        for entry in entries:
            if entry.is_dir():
                waiting.append(entry.path)
                continue
            try:
                about = entry.stat()
            except OSError:  # a link that leads nowhere
                about = entry.stat(follow_symlinks=False)
            yield entry.path, *_facts(about)


def _facts(about: os.stat_result) -> tuple[tuple[int, ...], int]:
    since = max(about.st_mtime_ns + _RECENT_NS, about.st_ctime_ns + _TICK_NS)
    return file_facts(about), since


# The code that reads.


@lru_cache(maxsize=64)
def _hash_code(place: str) -> str:
    digest = sha256()
    for path, facts, _ in _listing(Path(place)):
        if facts and not path.endswith(".pyc"):
            digest.update(f"{path}\0{facts}\n".encode("utf-8", "surrogateescape"))
            _check_unchanged(facts)
    return digest.hexdigest()


def _check_unchanged(facts: Sequence[int]) -> None:
    if max(facts[1:3]) > _BEGAN:
        raise OSError("the code has changed since it was imported")


def reader_facts(benchmark: Any) -> tuple[object, ...] | None:
    """Return what the steps of a benchmark follow from beside its data: its code and options.

    Args:
        benchmark: ours, or of an installed plug-in.

    Returns:
        None for an object of any other class, whose state nobody else knows.
    """
    options = sorted(benchmark.options.items())
    kind = type(benchmark)
    is_plugin = not kind.__module__.startswith("omnidata.")
    if is_plugin and not plugin_origin(benchmark.name):
        return None
    try:
        files = [[*_listing(Path(value))] for _, value in options if os.path.exists(value)]  # noqa: PTH110  False for a name with a NUL
        code = [_hash_code(str(place)) for place in code_places(kind)]
    except (OSError, KeyError, TypeError):
        return None
    return options, files, code


def _module_facts() -> dict[str, Sequence[int]]:
    """Return the facts of the files of all modules, but Python's and ours.

    Raises:
        OSError: one has changed since it was imported, or lies in no folder.
    """
    found: dict[str, Sequence[int]] = {}
    for name, module in [*sys.modules.items()]:
        path = isinstance(module, ModuleType) and vars(module).get("__file__")
        if path and name.partition(".")[0] not in {*_KNOWN, "__main__"}:
            found[path] = file_facts(os.stat(path))  # noqa: PTH116  some are no text
            _check_unchanged(found[path])
    return found


# Reading and keeping.


def load(read: Callable[[], LoadedDataset], origin: Origin) -> LoadedDataset:
    """Return a dataset from the cache, or read it; one of many steps is kept.

    Args:
        read: reads it; twice, if the disk of the cache is full.
        origin: what it follows from.
    """
    if os.environ.get(NO_CACHE):
        return read()
    began = time.time_ns()
    if (kept := _open_kept(origin)) is not None:
        return kept
    with writing_into(_new_folder) as folder:
        try:
            source = read()
        except DataError:
            if not folder.is_full:
                raise
        else:
            if folder.path:
                with suppress(OSError):
                    _keep(source, origin, folder, began)
            return source
    _log.warning("%s: the disk is full, so the steps are not kept", steps_folder())
    return read()


def _open_kept(origin: Origin) -> LoadedDataset | None:
    if not _has_entries(origin.prefix):
        return None
    from omnidata.loaders import steps_entry

    with suppress(OSError, ValueError):
        _check_owner(steps_folder())
        name, _ = origin.key()
        return steps_entry.open_entry(steps_folder() / name, origin.task, origin.data)
    return None


def _has_entries(prefix: str) -> bool:
    with suppress(OSError), os.scandir(steps_folder()) as found:
        return any(entry.name.startswith(prefix) for entry in found)
    return False


def _new_folder() -> Path:
    folder = steps_folder()
    if str(cache_folder()).startswith("~"):
        raise OSError("the user has no home")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_owner(folder)
    path = folder / f"{_NEW}{secrets.token_hex(8)}"
    path.mkdir(mode=0o700)
    return path


def _check_owner(folder: Path) -> None:
    """Check that nobody else may put files in place of ours."""
    about = folder.stat()
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
        raise PermissionError("others may write to the cache")


def _keep(source: LoadedDataset, origin: Origin, folder: Folder, began: int) -> None:
    from omnidata.loaders import steps_entry

    name, since = origin.key()
    if since > began:
        return  # what was read may be another version
    place = steps_folder() / name
    code = {} if is_ours(origin.task) else _module_facts()
    if steps_entry.keep(source, folder, place, code):
        _sweep()
        _prune(place)
        if report := _REPORT.get():
            for entry in entries():
                if entry.path == place:
                    report(entry)
