"""The cache behind mirrors: its database of objects, its locks, and how its paths are printed.

Several processes of a machine share it. The database records the cached blocks of each version of
an object, the listing of each mirror, and the time of each use. A lock is held while an object is
fetched or removed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from omnidata.errors import DataError, StoreError, UsageError
from omnidata.object_stores import Address, StoredObject

CACHE_VARIABLE: Final = "OMNIDATA_CACHE"
"""The variable of the environment that names the folder of the cache."""
BYTES_VARIABLE: Final = "OMNIDATA_CACHE_BYTES"
"""The variable of the environment with the bytes that the cache may hold."""
LISTED_VARIABLE: Final = "OMNIDATA_LISTED"
"""The variable of the environment that tells processes that are started which listing holds: of
each mirror the number of the listing that this process read."""
MOST_BYTES: Final = 50 * 1000**3
"""Bytes that the cache holds unless told otherwise."""

BLOCK: Final = 256 * 1024
AT_ONCE: Final = 16 * 1024**2  # bytes of one request, which are in memory as a whole
IN_USE_S: Final = 60.0
_WRITTEN_S: Final = 300.0  # systems write to the disk within less
LOCKS: Final = 1024  # files; objects that share one wait for each other, no more
WHOLE, BESIDE = "file", "beside"
"""The schemes of mirrors of a folder of this disk: with the zips in all its folders, and with those
that lie in it itself, beside a file that was named."""
DISK: Final = (WHOLE, BESIDE)
_SCHEMA: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS mirrors (
    id INTEGER PRIMARY KEY, url TEXT UNIQUE, folder TEXT UNIQUE, base TEXT,
    listing TEXT DEFAULT '', number INTEGER DEFAULT 0
);
CREATE TABLE IF NOT EXISTS objects (
    id INTEGER PRIMARY KEY, mirror INTEGER, name TEXT, size INTEGER, version TEXT, mtime_ns INTEGER,
    blocks BLOB, bytes INTEGER DEFAULT 0, used REAL DEFAULT 0, since INTEGER DEFAULT 0,
    UNIQUE (mirror, name)
);
CREATE INDEX IF NOT EXISTS by_use ON objects (used) WHERE bytes > 0;
CREATE TABLE IF NOT EXISTS total (id INTEGER PRIMARY KEY CHECK (id = 1), bytes INTEGER);
INSERT OR IGNORE INTO total VALUES (1, 0);
CREATE TABLE IF NOT EXISTS boot (id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT);
INSERT OR IGNORE INTO boot VALUES (1, '');
CREATE TRIGGER IF NOT EXISTS changed AFTER UPDATE OF bytes ON objects BEGIN
    UPDATE total SET bytes = bytes + new.bytes - old.bytes;
END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON objects BEGIN
    UPDATE total SET bytes = bytes - old.bytes;
END;
COMMIT;
"""


# Where the cache is, and how much it may hold.


def cache_folder() -> Path:
    """Return the folder of the cache: `OMNIDATA_CACHE`, else the user's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    above = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(above) / "omnidata"  # without a home, below a folder called ~


def most_bytes() -> int:
    """Return the largest size of the cache in bytes.

    Raises:
        UsageError: the environment variable is not a number.
    """
    given = os.environ.get(BYTES_VARIABLE)
    if not given:
        return MOST_BYTES
    if not (given.isascii() and given.isdigit() and int(given[:19]) > 0 and len(given) < 20):
        raise UsageError(
            f"{given[:40]!r} is no number of bytes",
            where=BYTES_VARIABLE,
            expected=f"a whole number, e.g. {MOST_BYTES}",
        )
    return int(given)


def stores_folder() -> str:
    """Return the real path of the folder of all mirrors, with a slash at its end."""
    names = (CACHE_VARIABLE, "XDG_CACHE_HOME", "HOME")
    return _real_stores(tuple(os.environ.get(name, "") for name in names))


@lru_cache(maxsize=8)
def _real_stores(environment: tuple[str, ...]) -> str:
    return os.path.join(os.path.realpath(cache_folder()), "stores", "")  # noqa: PTH118


@lru_cache(maxsize=1)
def boot() -> str:
    """Return an id of the machine's current boot; empty if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    except OSError:
        return ""


# What is known of the objects.


@dataclass(frozen=True, slots=True)
class Known:
    """A file of a mirror, as recorded in the database.

    Attributes:
        id: of the object.
        place: the address of the listing.
        base: as `Listing` has it.
        name: below the address.
        path: of the file.
        about: its size, version and time in the listing.
        blocks: a bit for each cached block, the lowest bit of a byte first; None if none is.
        used: the time of its last use, in seconds since 1970.
    """

    id: int
    place: Address
    base: str
    name: str
    path: Path
    about: StoredObject
    blocks: bytes | None
    used: float

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the missing ranges between two bytes, in whole blocks."""
        found: list[tuple[int, int]] = []
        size = self.about.size
        for number in range(start // BLOCK, -(-min(end, size) // BLOCK)):
            if self.blocks and self.blocks[number // 8] >> number % 8 & 1:
                continue
            begin, stop = number * BLOCK, min((number + 1) * BLOCK, size)
            if found and found[-1][1] == begin and stop - found[-1][0] <= AT_ONCE:
                found[-1] = found[-1][0], stop
            else:
                found.append((begin, stop))
        return found


class Cache:
    """The database and the locks of a cache, for one thread.

    Args:
        stores: the real path of the folder of all mirrors.

    Raises:
        DataError: the folder cannot hold a cache.
    """

    def __init__(self, stores: str) -> None:
        self.stores = Path(stores)
        self._locks = self.stores.parent / "locks"
        self._process = os.getpid()
        try:
            for folder in (self._locks, self.stores, self.stores.parent / "new"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.base = sqlite3.connect(
                self.stores.parent / "stores.db",
                timeout=60,
                isolation_level=None,
                check_same_thread=False,  # it may be another that forgets a thread's
            )
            self.base.execute("PRAGMA journal_mode=WAL")
            self.base.execute("PRAGMA synchronous=NORMAL")
            self.base.executescript(_SCHEMA)
            self._look_at_boot()
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"nothing can be kept in the folder of the cache ({error})",
                where=str(self.stores.parent),
                expected="a folder on a disk of this machine that may be written",
                remedy=f"name another one with --cache-dir, or in {CACHE_VARIABLE}",
            ) from None

    def _look_at_boot(self) -> None:
        """Forget what may have been on its way to the disk when the machine went down.

        To wait for the disk after each object takes as long as to fetch it from one nearby.
        """
        if self.base.execute("SELECT name FROM boot").fetchone() == (boot(),):
            return
        with self.change():
            self.base.execute(
                "UPDATE objects SET blocks = NULL, bytes = 0 "
                "WHERE bytes > 0 AND used > (SELECT MAX(used) FROM objects) - ?",
                (_WRITTEN_S,),
            )
            self.base.execute("UPDATE boot SET name = ?", (boot(),))

    def __del__(self) -> None:
        if hasattr(self, "base") and self._process == os.getpid():
            self.base.close()

    @contextmanager
    def change(self) -> Iterator[None]:
        """Run a transaction: other processes see all of it or nothing."""
        self.base.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.base.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has ended it
                self.base.execute("ROLLBACK")
            raise

    def lock(self, key: int, *, wait: bool = True) -> FileLock:
        """Return the lock of an object, by its id, for one process and thread."""
        path = self._locks / f"{key % LOCKS:04d}"
        return FileLock(path, timeout=-1 if wait else 0, poll_interval=0.02, thread_local=False)

    def mirror_lock(self, folder: str) -> FileLock:
        """Return the lock that is held while a mirror is made or updated."""
        return FileLock(self._locks / folder)

    def object_of(self, path: str) -> Known:
        """Return the object behind a file of a mirror, and mark it as in use.

        Raises:
            StoreError: it is gone, or another command that shares the cache has listed another
                version since.
        """
        digest, _, rest = path[len(str(self.stores)) + 1 :].partition("/")
        name = rest.removeprefix(tail(_url(f"{self.stores}{os.sep}", digest)) + "/")
        query = (
            "SELECT o.id, url, base, name, size, version, mtime_ns, blocks, since, used "
            "FROM objects o JOIN mirrors m ON m.id = mirror WHERE folder = ? AND name = ?"
        )
        row = self.base.execute(query, (digest, name)).fetchone()
        now = time.time()
        if row and not now - IN_USE_S / 2 < row[-1] <= now:  # nobody takes it away in between
            with self.change():
                self.base.execute("UPDATE objects SET used = ? WHERE id = ?", (now, row[0]))
                row = self.base.execute(query, (digest, name)).fetchone()
        holds = _listings(os.environ.get(LISTED_VARIABLE, ""))
        if not row or row[-2] > holds.get(listing_key(self.stores, digest), row[-2]):
            what = "has changed since it was listed" if row else "is gone"
            raise StoreError(
                f"the object {what}",
                where=display_path(path),
                expected="data that stay as they are while they are read",
                remedy="give the same command again: it lists what is there now",
            )
        identity, url, base, name, size, version, mtime_ns, blocks, _, used = row
        place = Address(*url.split("://", 1))
        about = StoredObject(size, version, mtime_ns)
        return Known(identity, place, base, name, Path(path), about, blocks, used)


@lru_cache(maxsize=8)
def _listings(said: str) -> Mapping[str, int]:
    pairs = (pair.partition("=") for pair in said.split(",") if pair)
    return {key: int(number) for key, _, number in pairs if number.isdecimal()}


def listing_key(stores: Path, folder: str) -> str:
    """Return the key of a mirror, unique across caches."""
    return f"{sha256(os.fsencode(stores)).hexdigest()[:8]}-{folder}"


def hold(key: str, number: int) -> None:
    """Use a listing from now on, here and in processes that are started."""
    known = {**_listings(os.environ.get(LISTED_VARIABLE, "")), key: number}
    os.environ[LISTED_VARIABLE] = ",".join(f"{name}={count}" for name, count in known.items())


_held = threading.local()
_used: list[str] = []
"""The folders of mirrors that this process has opened: their files are no others' when it turns to
another cache."""
_left: list[Any] = []
"""Databases that a parent process opened: a child neither uses nor closes them."""


def open_cache(stores: str) -> Cache:
    """Return the cache of a folder of mirrors, one for each thread and each forked process."""
    if stores not in _used:
        _used.append(stores)
    caches: dict[tuple[int, str], Cache] = vars(_held).setdefault("caches", {})
    key = os.getpid(), stores
    if key not in caches:
        _left.extend(cache for (process, _), cache in caches.items() if process != key[0])
        caches[key] = Cache(stores)
    return caches[key]


# How files of mirrors are told apart, and named.


def holder(path: str) -> str:
    """Return the folder of mirrors that a path lies in; empty if none."""
    return next((stores for stores in (stores_folder(), *_used) if path.startswith(stores)), "")


def tail(url: str) -> str:
    """Return the name of a mirror's folder: of local data the whole path, else the last part."""
    scheme, _, path = url.partition("://")
    return path.strip("/") if scheme in DISK else path.rpartition("/")[2] or "data"


def display_path(path: str | Path) -> str:
    """Return a path for messages and records: of a file of a mirror its URL."""
    return with_urls(os.fspath(path))


as_named: dict[str, str] = {}
"""Folders of this disk as this process was told of them last, by the URLs of their mirrors."""


def as_said(url: str) -> str:
    """Return the URL of a mirror, or the path of its folder, as the user wrote it."""
    scheme, _, path = url.partition("://")
    return as_named.get(url, path) if scheme in DISK else url


def url_at(path: str, stores: str) -> str:
    """Return the URL of the mirror that a path lies in."""
    return _url(stores, path.removeprefix(stores).partition("/")[0])


def with_urls(text: str) -> str:
    """Return a text with the paths of mirrors replaced by their URLs."""
    for stores in {stores_folder(), *_used}:
        if stores in text:
            first, *parts = text.split(stores)
            text = first + "".join(_url_of(part, stores) for part in parts)
    return text


def _url_of(part: str, stores: str) -> str:
    url = _url(stores, part.partition("/")[0])
    head = f"{part.partition('/')[0]}/{tail(url)}"
    return as_said(url) + part[len(head) :] if url and part.startswith(head) else stores + part


_urls: dict[tuple[str, str], str] = {}


def _url(stores: str, folder: str) -> str:
    if (stores, folder) not in _urls:
        rows = open_cache(stores).base.execute(
            "SELECT url FROM mirrors WHERE folder = ?", (folder,)
        )
        _urls.update(((stores, folder), url) for (url,) in rows)
    return _urls.get((stores, folder), "")
