"""A local folder that stands for data on an object store, and is filled as it is read.

Every object of the listing is a file of its name, size and time, without content: whoever walks
through the data, or asks how large a file is, asks no store. Content comes when a file is opened
through `omnidata.files` or `omnidata.media`: the whole file, or the blocks that are read of a large
one. What was read stays, up to a number of bytes; what was used longest ago goes first.

A zip is such a store too: its members are files where `omnidata fetch` would unpack it, and the zip
itself is not to be seen. One of a folder of this disk makes a mirror of the folder, in which all
else is a link to where it is.

Several processes of a machine share the cache. A database in it knows which blocks of which version
of an object are there; a lock is held while an object is fetched or given up. A file that was asked
for stays for `_IN_USE_S` seconds at least, as its reader opens it by its path; afterwards an open
file outlives its name.
"""

from __future__ import annotations

import io
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

from filelock import FileLock, Timeout

from omnidata.errors import DataError, FileError, StoreError, UsageError
from omnidata.object_stores import (
    Address,
    Listing,
    StoredObject,
    address,
    listing,
    local_path,
    read,
)
from omnidata.packed import (
    Directory,
    is_zip,
    links,
    looking,
    looking_on_disk,
    of_disk,
    place_of,
    placed,
    zips_below,
)
from omnidata.zips import Member, content, directory

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CACHE_VARIABLE: Final = "OMNIDATA_CACHE"
"""The variable of the environment that names the folder of the cache."""
BYTES_VARIABLE: Final = "OMNIDATA_CACHE_BYTES"
"""The variable of the environment with the bytes that the cache may hold."""
LISTED_VARIABLE: Final = "OMNIDATA_LISTED"
"""The variable of the environment that tells processes that are started which listing holds: of
each mirror the number of the listing that this process read."""
MOST_BYTES: Final = 50 * 1000**3
"""Bytes that the cache holds unless told otherwise."""

_MARK: Final = f"{os.sep}stores{os.sep}"
_BLOCK: Final = 256 * 1024
_AT_ONCE: Final = 16 * 1024**2  # bytes of one request, which are in memory as a whole
_IN_USE_S: Final = 60.0
_WRITTEN_S: Final = 300.0  # systems write to the disk within less
_LOCKS: Final = 1024  # files; objects that share one wait for each other, no more
_KEPT_PART: Final = 0.9  # of the limit, when room is made
_WHOLE, _BESIDE = "file", "beside"
"""The schemes of mirrors of a folder of this disk: with the zips in all its folders, and with those
that lie in it itself, beside a file that was named."""
_DISK: Final = (_WHOLE, _BESIDE)
_PACKED: Final = ".zips/"
"""Below it lie the zips whose members are files: nobody who walks through data looks there."""
_READERS: Final = 8
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
    """The folder of the cache: `OMNIDATA_CACHE`, else the user's own for such things."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    above = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(above) / "omnidata"  # without a home, below a folder called ~


def most_bytes() -> int:
    """Bytes that the cache may hold.

    Raises:
        UsageError: the environment says something else than a number.
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


def _stores() -> str:
    """The real path of the folder that all mirrors lie in, with a slash at its end."""
    names = (CACHE_VARIABLE, "XDG_CACHE_HOME", "HOME")
    return _real_stores(tuple(os.environ.get(name, "") for name in names))


@lru_cache(maxsize=8)
def _real_stores(environment: tuple[str, ...]) -> str:
    return os.path.join(os.path.realpath(cache_folder()), "stores", "")  # noqa: PTH118


@lru_cache(maxsize=1)
def _boot() -> str:
    """What is different each time that the machine starts; empty where nobody says it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    except OSError:
        return ""


# What is known of the objects.


@dataclass(frozen=True, slots=True)
class _Known:
    """A file of a mirror, as the database has it.

    Attributes:
        id: of the object.
        place: where it was listed.
        base: as `Listing` has it.
        name: below the address.
        path: of the file.
        about: as the listing has it.
        blocks: a byte for eight blocks, the lowest bit first; None where none is there.
        used: when it was asked for last, in seconds since 1970.
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
        """The stretches between two bytes that are not there, in whole blocks."""
        found: list[tuple[int, int]] = []
        size = self.about.size
        for number in range(start // _BLOCK, -(-min(end, size) // _BLOCK)):
            if self.blocks and self.blocks[number // 8] >> number % 8 & 1:
                continue
            begin, stop = number * _BLOCK, min((number + 1) * _BLOCK, size)
            if found and found[-1][1] == begin and stop - found[-1][0] <= _AT_ONCE:
                found[-1] = found[-1][0], stop
            else:
                found.append((begin, stop))
        return found


class _Cache:
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
        if self.base.execute("SELECT name FROM boot").fetchone() == (_boot(),):
            return
        with self.change():
            self.base.execute(
                "UPDATE objects SET blocks = NULL, bytes = 0 "
                "WHERE bytes > 0 AND used > (SELECT MAX(used) FROM objects) - ?",
                (_WRITTEN_S,),
            )
            self.base.execute("UPDATE boot SET name = ?", (_boot(),))

    def __del__(self) -> None:
        if hasattr(self, "base") and self._process == os.getpid():
            self.base.close()

    @contextmanager
    def change(self) -> Iterator[None]:
        """A transaction: others see all of it, or nothing."""
        self.base.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.base.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has ended it
                self.base.execute("ROLLBACK")
            raise

    def lock(self, key: int, *, wait: bool = True) -> FileLock:
        """What one process and thread may hold: of an object, by its id."""
        path = self._locks / f"{key % _LOCKS:04d}"
        return FileLock(path, timeout=-1 if wait else 0, poll_interval=0.02, thread_local=False)

    def mirror_lock(self, folder: str) -> FileLock:
        """What is held while a mirror is made or brought up to date."""
        return FileLock(self._locks / folder)

    def known(self, path: str) -> _Known:
        """The object that a file of a mirror stands for, marked as in use.

        Raises:
            StoreError: it is gone, or another than this process has listed: another command that
                shares the cache has listed since.
        """
        digest, _, rest = path[len(str(self.stores)) + 1 :].partition("/")
        name = rest.removeprefix(_tail(_url(f"{self.stores}{os.sep}", digest)) + "/")
        query = (
            "SELECT o.id, url, base, name, size, version, mtime_ns, blocks, since, used "
            "FROM objects o JOIN mirrors m ON m.id = mirror WHERE folder = ? AND name = ?"
        )
        row = self.base.execute(query, (digest, name)).fetchone()
        now = time.time()
        if row and not now - _IN_USE_S / 2 < row[-1] <= now:  # nobody takes it away in between
            with self.change():
                self.base.execute("UPDATE objects SET used = ? WHERE id = ?", (now, row[0]))
                row = self.base.execute(query, (digest, name)).fetchone()
        holds = _listings(os.environ.get(LISTED_VARIABLE, ""))
        if not row or row[-2] > holds.get(_listing_key(self.stores, digest), row[-2]):
            what = "has changed since it was listed" if row else "is gone"
            raise StoreError(
                f"the object {what}",
                where=shown(path),
                expected="data that stay as they are while they are read",
                remedy="give the same command again: it lists what is there now",
            )
        identity, url, base, name, size, version, mtime_ns, blocks, _, used = row
        place = Address(*url.split("://", 1))
        about = StoredObject(size, version, mtime_ns)
        return _Known(identity, place, base, name, Path(path), about, blocks, used)


@lru_cache(maxsize=8)
def _listings(said: str) -> Mapping[str, int]:
    """The numbers of the listings that hold, by `_listing_key`."""
    pairs = (pair.partition("=") for pair in said.split(",") if pair)
    return {key: int(number) for key, _, number in pairs if number.isdecimal()}


def _listing_key(stores: Path, folder: str) -> str:
    """What names a mirror of any cache."""
    return f"{sha256(os.fsencode(stores)).hexdigest()[:8]}-{folder}"


def _holds(key: str, number: int) -> None:
    """From now on a listing holds, here and in processes that are started."""
    known = {**_listings(os.environ.get(LISTED_VARIABLE, "")), key: number}
    os.environ[LISTED_VARIABLE] = ",".join(f"{name}={count}" for name, count in known.items())


_held = threading.local()
_used: list[str] = []
"""The folders of mirrors that this process has opened: their files are no others' when it turns to
another cache."""
_left: list[Any] = []
"""Databases that a parent process opened: a child neither uses nor closes them."""


def _cache(stores: str) -> _Cache:
    if stores not in _used:
        _used.append(stores)
    caches: dict[tuple[int, str], _Cache] = vars(_held).setdefault("caches", {})
    key = os.getpid(), stores
    if key not in caches:
        _left.extend(cache for (process, _), cache in caches.items() if process != key[0])
        caches[key] = _Cache(stores)
    return caches[key]


# A URL becomes a folder.


def local(data: str | Path, *, beside: Path | None = None) -> Path:
    """The data as a path: of a URL the folder or file that stands for it, listed anew.

    Args:
        data: a path or a URL, as the user named it.
        beside: the folder that a relative path is meant from, if not the current one.

    Raises:
        UsageError: the URL is none of a store; or the cache lies in the data.
        DataError: nothing is there, or names of objects cannot be files' (`check_names`).
        StoreError, PlatformError: as `omnidata.object_stores.listing`.
    """
    path, place = local_path(data), None
    if path is None:
        place = address(data)
        path = Path(data) if beside is None else beside / data
    if place is None:
        return _with_members(path)
    found = listing(place)
    if "" not in found.objects:
        return _brought_up_to_date(place, found)
    # A file stands for its neighbours as well: media lie beside annotations.
    folder = place.above
    if not folder.path:
        raise DataError("this is no object of a bucket", where=place.url, expected="bucket/name")
    return _named(_brought_up_to_date(folder, listing(folder)), place.path.rpartition("/")[2])


def _brought_up_to_date(
    place: Address, found: Listing, others: Mapping[str, Path] | None = None
) -> Path:
    """The folder of a mirror, whose files are those of the listing.

    Args:
        place: of the data.
        found: what lies there.
        others: by names below the folder what is linked there.
    """
    with _remembered(place.url):
        try:
            return _mirrored(_cache(_stores()), place, found, others or {})
        except OSError as error:
            raise _no_room(_said(place.url), error) from None


@contextmanager
def _remembered(where: str) -> Iterator[None]:
    """Say what the database of the cache cannot do as what it is.

    Args:
        where: the URL that it is about.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            f"the database of the cache fails ({error})",
            where=where,
            expected=f"room below {_stores()}, on a disk of this machine",
            remedy="make room there, or name another folder with --cache-dir",
        ) from None


def _tail(url: str) -> str:
    """What a mirror's folder is called: as the data, and all above them where that says a thing."""
    scheme, _, path = url.partition("://")
    return path.strip("/") if scheme in _DISK else path.rpartition("/")[2] or "data"


def _mirrored(cache: _Cache, place: Address, found: Listing, others: Mapping[str, Path]) -> Path:
    most_bytes()  # what is wrong with it is said before anything is fetched
    folder = sha256(place.url.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    root = cache.stores / folder / _tail(place.url)
    with cache.mirror_lock(folder):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with cache.change():
            cache.base.execute(
                "INSERT INTO mirrors (url, folder, base) VALUES (?, ?, ?) "
                "ON CONFLICT (url) DO UPDATE SET base = excluded.base",
                (place.url, folder, found.base),
            )
            mirror, listed, number = cache.base.execute(
                "SELECT id, listing, number FROM mirrors WHERE url = ?", (place.url,)
            ).fetchone()
            if listed != found.digest:
                number += 1
                cache.base.execute(
                    "UPDATE mirrors SET listing = ?, number = ? WHERE id = ?",
                    (found.digest, number, mirror),
                )
        _holds(_listing_key(cache.stores, folder), number)
        rows = cache.base.execute(
            "SELECT name, id, size, version, mtime_ns FROM objects WHERE mirror = ?", (mirror,)
        )
        before = {name: (key, StoredObject(*about)) for name, key, *about in rows}

        def bring(objects: Mapping[str, StoredObject]) -> None:
            new = {}
            for name, about in objects.items():
                key, then = before.get(name, (0, None))
                if then is None:
                    new[name] = about
                elif (then.size, then.version) != (about.size, about.version):
                    _renew(cache, root / name, key, about, number)
                elif not _is_as_left(root / name, then):
                    _renew(cache, root / name, key, then)
            with cache.change():
                cache.base.executemany(
                    "INSERT INTO objects (mirror, name, size, version, mtime_ns, since) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        (mirror, one, o.size, o.version, o.mtime_ns, number)
                        for one, o in new.items()
                    ),
                )
            for name, about in new.items():  # known by now, so that one who is killed leaves none
                _place_holder(cache, root / name, about)

        plain = dict(found.objects)
        packed = [name for name, about in plain.items() if is_zip(name) and about.size]
        zips = {name: plain.pop(name) for name in packed if place.scheme not in _DISK}
        hidden = {_PACKED + name: about for name, about in zips.items()}
        if place.scheme in _DISK:
            _unlink(root, others)  # before a file is made, which a link would lead to the user's
        if not zips:
            _forget(cache, root, before, plain)
        bring(plain | hidden)
        if zips:
            members = _members(root, plain, zips)
            _forget(cache, root, before, plain.keys() | hidden.keys() | members.keys())
            bring(members)
        _link(root, others)
    return root


def _forget(
    cache: _Cache,
    root: Path,
    before: Mapping[str, tuple[int, StoredObject]],
    objects: Iterable[str],
) -> None:
    """Remove the files of objects that are there no more."""
    for name in before.keys() - objects:
        with cache.lock(before[name][0]):
            with cache.change():
                cache.base.execute("DELETE FROM objects WHERE id = ?", (before[name][0],))
            (root / name).unlink(missing_ok=True)
        for folder in (root / name).parents:  # those of a mirror that have nothing in them any more
            if folder == root:
                break
            try:
                folder.rmdir()
            except OSError:
                break


def _renew(
    cache: _Cache, path: Path, key: int, about: StoredObject, number: int | None = None
) -> None:
    """Forget what was read of an object, and put an empty file in its place.

    Args:
        cache: of the mirror.
        path: of the file.
        key: of the object.
        about: as it is listed.
        number: of the listing in which it is another; None where it is the same.
    """
    with cache.lock(key):
        if _is_as_left(path, about):  # by whoever held the lock
            return
        with cache.change():
            cache.base.execute(
                "UPDATE objects SET size = ?, version = ?, mtime_ns = ?, blocks = NULL, bytes = 0, "
                "since = COALESCE(?, since) WHERE id = ?",
                (about.size, about.version, about.mtime_ns, number, key),
            )
        _place_holder(cache, path, about)


def _is_as_left(path: Path, about: StoredObject) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_size, found.st_mtime_ns) == (about.size, about.mtime_ns)


def _place_holder(cache: _Cache, path: Path, about: StoredObject) -> None:
    """A new file of that size and time, without content; who has the old one open keeps it."""
    new = cache.stores.parent / "new" / f"{os.getpid()}-{threading.get_ident()}"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with new.open("wb") as file:
            file.truncate(about.size)
        os.utime(new, ns=(about.mtime_ns, about.mtime_ns))
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise _no_room(path, error) from None


def _no_room(path: str | Path, error: OSError) -> StoreError:
    return StoreError(
        f"the cache cannot keep it ({error.strerror})",
        where=shown(path),
        expected=f"room below {_stores()}",
        remedy="make room there, or name another folder with --cache-dir",
    )


# Files are filled when they are read.


def is_mirrored(path: str | Path) -> bool:
    """Whether a path is that of a file that stands for an object on a store, or in a zip."""
    text = os.fspath(path)
    # Asked of each medium, often: a look at the text tells nearly all paths.
    if _MARK not in text or not (stores := _holder(text)):
        return False
    url = _url_at(text, stores)
    if url.partition("://")[0] not in _DISK:
        return True
    folder = text.removeprefix(stores).partition("/")[0]
    at = len(stores) + len(folder) + 1 + len(_tail(url))
    ends = [*(end for end, letter in enumerate(text) if letter == "/" and end > at), len(text)]
    return not any(os.path.islink(text[:end]) for end in ends)  # noqa: PTH114  asked often


def zip_of(path: Path) -> str:
    """The name of the zip that a file of a mirror lies in; empty for any other path."""
    if not is_mirrored(path):
        return ""
    found = place_of(_cache(_holder(os.fspath(path))).known(os.fspath(path)).about)
    return found[0] if found else ""


def _holder(path: str) -> str:
    """The folder of mirrors that a path lies in; empty where it lies in none."""
    return next((stores for stores in (_stores(), *_used) if path.startswith(stores)), "")


def fill(path: Path, start: int = 0, end: int | None = None, *, ahead: int = 0) -> None:
    """See that a file of a mirror has its content; nothing happens to any other file.

    Args:
        path: the file.
        start: the first byte that is needed.
        end: the one after the last; None for the file's end.
        ahead: how many are fetched after those, if any of those has to be.

    Raises:
        FileError: the file is a broken one of a zip.
        StoreError: the store does not give them, or the cache cannot keep them.
    """
    if is_mirrored(path):
        with _remembered(os.fspath(path)):
            _fill(_cache(_holder(os.fspath(path))), path, start, end, ahead)


def _fill(cache: _Cache, path: Path, start: int, end: int | None, ahead: int) -> None:
    known = cache.known(os.fspath(path))
    stop = known.about.size if end is None else end
    if packed := place_of(known.about):
        start, stop = 0, known.about.size
    if not known.missing(start, stop):
        return
    most = most_bytes()
    if most < min(stop, known.about.size) - start:
        raise StoreError(
            f"{known.about.size} bytes are more than the cache may hold",
            where=shown(path),
            expected=f"at most {most} bytes at once",
            remedy="allow more with --cache-bytes",
        )
    if stop + ahead - start <= most:
        stop = min(stop + ahead, known.about.size)
    with cache.lock(known.id):
        known = cache.known(os.fspath(path))
        if known.blocks is None and not _is_as_left(path, known.about):
            _place_holder(cache, path, known.about)  # whoever began to was killed
        if packed:
            if known.missing(start, stop):
                _make_room(cache, stop, most, known.id)
                _unpack(cache, known, *packed)
                _note(cache, known, start, stop)
            return
        for begin, finish in known.missing(start, stop):
            name = known.name.removeprefix(_PACKED)
            found = read(known.place, known.base, name, known.about, begin, finish)
            _make_room(cache, len(found), most, known.id)
            _write(known, begin, found)
            known = _note(cache, known, begin, finish)


def _write(known: _Known, begin: int, content: bytes) -> None:
    """Put bytes into the file, before anybody hears of them."""
    try:
        descriptor = os.open(known.path, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            view = memoryview(content)
            while view:
                done = os.pwrite(descriptor, view, begin)
                view, begin = view[done:], begin + done
            if not _boot():
                os.fsync(descriptor)
            os.utime(descriptor, ns=(known.about.mtime_ns, known.about.mtime_ns))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _no_room(known.path, error) from None


def _note(cache: _Cache, known: _Known, begin: int, finish: int) -> _Known:
    """Say that blocks are there."""
    count = -(-known.about.size // _BLOCK)
    blocks = bytearray(known.blocks or bytes(-(-count // 8)))
    for number in range(begin // _BLOCK, -(-finish // _BLOCK)):
        blocks[number // 8] |= 1 << number % 8
    with cache.change():
        cache.base.execute(
            "UPDATE objects SET blocks = ?, bytes = bytes + ?, used = ? WHERE id = ?",
            (bytes(blocks), finish - begin, time.time(), known.id),
        )
    return cache.known(os.fspath(known.path))


def _make_room(cache: _Cache, needed: int, most: int, own: int) -> None:
    """Give up what was used longest ago, but nothing that may be about to be opened."""
    (held,) = cache.base.execute("SELECT bytes FROM total").fetchone()
    if held + needed <= most:
        return
    left = min(most - needed, int(_KEPT_PART * most))
    before = time.time() - _IN_USE_S
    rows = cache.base.execute(
        "SELECT o.id, folder, url, name, size, version, mtime_ns, bytes FROM objects o JOIN "
        "mirrors m ON m.id = mirror WHERE bytes > 0 AND used < ? ORDER BY used",
        (before,),
    ).fetchall()
    for key, folder, url, name, size, version, mtime_ns, freed in rows:
        if held <= left:
            break
        if key % _LOCKS == own % _LOCKS:
            continue
        with suppress(Timeout), cache.lock(key, wait=False):
            with cache.change():
                given_up = cache.base.execute(
                    "UPDATE objects SET blocks = NULL, bytes = 0 WHERE id = ? AND used < ?",
                    (key, before),
                ).rowcount
            if given_up:
                root = cache.stores / folder / _tail(url)
                _place_holder(cache, root / name, StoredObject(size, version, mtime_ns))
                held -= freed


class Ranged(io.RawIOBase):
    """A file of a mirror of which only what is read is fetched.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._size = path.stat().st_size
        self._at, self._end = 0, -1
        self._ahead = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go elsewhere."""
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if begin + offset < 0:
            raise ValueError(f"byte {begin + offset} of a file")
        self._at = begin + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the next bytes.

        Raises:
            FileError, StoreError: as `fill`.
        """
        view = memoryview(buffer).cast("B")
        end = min(self._at + len(view), self._size)
        if self._at >= end:
            return 0
        # What is read from end to end comes in ever fewer requests.
        self._ahead = min(2 * self._ahead + _BLOCK, _AT_ONCE) if self._at == self._end else 0
        fill(self.path, self._at, end, ahead=self._ahead)
        with self.path.open("rb") as file:
            file.seek(self._at)
            count = file.readinto(view[: end - self._at])
        fill(self.path, self._at, end)  # and nobody has put another in its place meanwhile
        self._at = self._end = self._at + count
        return count


# Zips: their members are files.


def _members(
    root: Path, plain: Mapping[str, StoredObject], zips: Mapping[str, StoredObject]
) -> dict[str, StoredObject]:
    """The files of the zips of a store; a zip that is not read is a file itself, as on a disk.

    Args:
        root: of the mirror.
        plain: the other objects.
        zips: their directories are fetched.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_READERS) as pool:
        directories = pool.map(lambda name: read_directory(root / (_PACKED + name)), zips)
        found = placed(zips, directories, looking(plain))
    unread = {name: about for name, about in zips.items() if name not in found}
    return {name: about for each in (*found.values(), unread) for name, about in each.items()}


def read_directory(path: Path) -> Directory:
    """The members of a zip by their names, or why it is not read.

    Raises:
        StoreError: a store does not give it.
    """
    try:
        with cast("IO[bytes]", Ranged(path)) if is_mirrored(path) else path.open("rb") as file:
            return directory(path, file, path.stat().st_size)
    except StoreError:
        raise
    except DataError as error:
        return error.what
    except OSError as error:
        return str(error.strerror)


def _unpack(cache: _Cache, known: _Known, archive: str, about: StoredObject, it: Member) -> None:
    """Write a member of a zip into its file.

    Raises:
        FileError: it is broken.
        StoreError: the zip is another by now, or is not given.
    """
    at = 0
    try:
        for piece in content(it, _reader(known, archive, about)):
            _write(known, at, piece)
            at += len(piece)
    except ValueError as error:
        raise FileError(
            f"the file in {archive} is broken ({error})",
            where=shown(known.path),
            expected="the bytes whose size and check sum the zip's directory has",
            remedy="download the zip again; if it stays like that, tell its publisher",
        ) from None


def _reader(known: _Known, archive: str, about: StoredObject) -> Callable[[int, int], bytes]:
    """Gives the bytes of a zip between two places."""
    if known.place.scheme not in _DISK:
        return lambda start, end: read(known.place, known.base, archive, about, start, end)

    def read_here(start: int, end: int) -> bytes:
        where = os.path.join(known.base, archive)  # noqa: PTH118  asked of each medium
        try:
            with open(os.open(where, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123
                file.seek(start)
                found = file.read(end - start)
                if of_disk(os.fstat(file.fileno())) != about or len(found) < end - start:
                    raise FileNotFoundError
                return found
        except OSError as error:
            raise StoreError(
                error.strerror or "the zip has changed since it was looked into",
                where=where,
                expected="data that stay as they are while they are read",
                remedy="give the same command again",
            ) from None

    return read_here


# Zips in a folder of this disk: a mirror of it, with links to all that lies in no zip.


def origin(path: Path) -> Path | None:
    """The folder of this disk whose mirror a path lies in; None for any other path."""
    text = os.fspath(path)
    if _MARK not in text or not (stores := _holder(text)):
        return None
    scheme, _, folder = _url_at(text, stores).partition("://")
    return Path(folder) if scheme in _DISK else None


def trees(data: Path) -> tuple[str, ...]:
    """The real paths of a folder of data: its own, and that of the folder whose mirror it is."""
    own = os.path.realpath(data)
    return (own,) if origin(data) is None else (own, _on_disk(data))


def _on_disk(path: Path) -> str:
    """Where the file of a mirror of this disk's lies, if it lies in no zip."""
    return "/" + os.fspath(path).removeprefix(_holder(os.fspath(path))).partition("/")[2]


def is_link(path: Path) -> bool:
    """Whether a path is a link that belongs to the data: none by which a mirror shows a file."""
    if not path.is_symlink():
        return False
    own = origin(path) is not None and os.fspath(path.readlink()) == _on_disk(path)
    return not own or os.path.islink(_on_disk(path))  # noqa: PTH114


def _with_members(data: Path) -> Path:
    """The data, or the same in a mirror of their folder if files of theirs lie in zips.

    Of a file its folder is the data's, as media lie beside annotations; of what is there only in a
    zip of that name the folder which holds the zip.
    """
    try:
        above = next(one for one in (data, *data.parents) if one.is_dir())
        if not data.exists():
            first = data.relative_to(above).parts[0]
            if not (above / f"{first}.zip").is_file():
                return data
        place = Address(_WHOLE if above == data else _BESIDE, os.path.realpath(above))
    except (OSError, ValueError, StopIteration):  # whoever reads them says what is wrong
        return data
    if (root := _of_folder(place)) is None:
        return data
    _as_named[place.url] = os.fspath(above)
    path = _named(root, data.relative_to(above))
    return path if path.exists() else data


def _of_folder(place: Address) -> Path | None:
    """The mirror of a folder of this disk; None where no file lies in a zip that is read.

    Raises:
        UsageError: the cache would lie in the data.
    """
    folder = place.path
    if _holder(f"{folder}{os.sep}") or not folder.isprintable():
        return None
    try:
        zips = zips_below(folder, nested=place.scheme == _WHOLE)
        directories = (read_directory(Path(folder, name)) for name in zips)
        found = placed(zips, directories, looking_on_disk(folder))
        members = {name: about for each in found.values() for name, about in each.items()}
        others = links(folder, found, members) if found else {}
    except OSError:  # a folder that cannot be read: whoever reads the data says so
        return None
    if members and _stores().startswith(folder.rstrip(os.sep) + os.sep):
        raise UsageError(
            "the cache lies in data with zips, where all that it holds would be data too",
            where=str(cache_folder()),
            expected=f"a folder outside {folder}",
            remedy=f"name another one with --cache-dir, or in {CACHE_VARIABLE}",
        )
    return _brought_up_to_date(place, Listing(folder, members), others) if members else None


def again(url: str) -> Path:
    """The mirror that `source` has named, made here and now.

    Raises:
        DataError, StoreError, PlatformError: as `local`.
    """
    scheme, _, folder = url.partition("://")
    if scheme not in _DISK:
        return local(url)
    return _of_folder(Address(scheme, folder)) or Path(folder)


def _named(root: Path, name: str | Path) -> Path:
    """A file or folder of a mirror; of a zip that is read the folder that it stands for."""
    path = root / name
    return path.with_suffix("") if is_zip(path.name) and not path.exists() else path


def _unlink(root: Path, others: Mapping[str, Path]) -> None:
    """Remove the links of a mirror that are none any more, and the folders that held only those."""
    for above, folders, files in os.walk(root, topdown=False):
        for path in (Path(above, name) for name in (*folders, *files) if _is_link(above, name)):
            if path.readlink() != others.get(path.relative_to(root).as_posix()):
                path.unlink()
        if above != os.fspath(root):
            with suppress(OSError):  # something is left in it
                Path(above).rmdir()


def _link(root: Path, others: Mapping[str, Path]) -> None:
    """Make the links of a mirror."""
    for name, target in others.items():
        path = root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.is_symlink():
            with suppress(FileExistsError):  # a member of that name is what is read
                path.symlink_to(target)


def _is_link(folder: str, name: str) -> bool:
    return os.path.islink(os.path.join(folder, name))  # noqa: PTH114, PTH118  asked of each member


# What people are told.


def shown(path: str | Path) -> str:
    """A path for messages and records: of a file of a mirror the URL that it stands for."""
    return told(os.fspath(path))


def listing_of(path: str | Path) -> str:
    """A hash of what was listed for a path's mirror last; empty for a path that lies in none."""
    if not (stores := _holder(os.fspath(path))):
        return ""
    folder = os.fspath(path).removeprefix(stores).partition("/")[0]
    rows = _cache(stores).base.execute("SELECT listing FROM mirrors WHERE folder = ?", (folder,))
    return next((listing for (listing,) in rows), "")


def source(path: str | Path) -> str:
    """The URL of the mirror that a path lies in, for `again`; empty for one that lies in none."""
    text = os.fspath(path)
    return _url_at(text, stores) if (stores := _holder(text)) else ""


_as_named: dict[str, str] = {}
"""Folders of this disk as this process was told of them last, by the URLs of their mirrors."""


def _said(url: str) -> str:
    """A URL of a mirror, or the path of its folder, as the user named it."""
    scheme, _, path = url.partition("://")
    return _as_named.get(url, path) if scheme in _DISK else url


def _url_at(path: str, stores: str) -> str:
    """The URL of the mirror that a path lies in."""
    return _url(stores, path.removeprefix(stores).partition("/")[0])


def told(text: str) -> str:
    """A text in which URLs stand in place of the files of mirrors that stand for them."""
    for stores in {_stores(), *_used}:
        if stores in text:
            first, *parts = text.split(stores)
            text = first + "".join(_url_of(part, stores) for part in parts)
    return text


def _url_of(part: str, stores: str) -> str:
    url = _url(stores, part.partition("/")[0])
    head = f"{part.partition('/')[0]}/{_tail(url)}"
    return _said(url) + part[len(head) :] if url and part.startswith(head) else stores + part


_urls: dict[tuple[str, str], str] = {}


def _url(stores: str, folder: str) -> str:
    """The URL of a mirror, of which the folder's name is a hash; empty where there is none yet."""
    if (stores, folder) not in _urls:
        rows = _cache(stores).base.execute("SELECT url FROM mirrors WHERE folder = ?", (folder,))
        _urls.update(((stores, folder), url) for (url,) in rows)
    return _urls.get((stores, folder), "")
