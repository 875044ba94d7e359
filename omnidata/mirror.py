"""A local folder that mirrors data on an object store and is filled on demand.

Every object of the listing is an empty file with its name, size and time, so listing the data or
asking for a size needs no request. Content is fetched when a file is opened through
`omnidata.files` or `omnidata.media`: the whole file, or the blocks that are read of a large one. It
stays in the cache; above a number of bytes the least recently used goes first.

A zip is such a store too: its members are files where `omnidata fetch` would unpack it, and the zip
itself is hidden. A zip in a local folder makes a mirror of that folder, in which everything else is
a link to the original.

Several processes of a machine share the cache. A database in it records the cached blocks of each
version of an object; a lock is held while an object is fetched or removed. A requested file stays
for at least `IN_USE_S` seconds, as its reader opens it by its path; afterwards an open file
outlives its name.
"""

from __future__ import annotations

import io
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from filelock import Timeout

from omnidata.errors import DataError, FileError, StoreError, UsageError
from omnidata.mirror_cache import (
    AT_ONCE,
    BESIDE,
    BLOCK,
    CACHE_VARIABLE,
    DISK,
    IN_USE_S,
    LOCKS,
    WHOLE,
    Cache,
    Known,
    as_named,
    as_said,
    boot,
    cache_folder,
    display_path,
    hold,
    holder,
    listing_key,
    most_bytes,
    open_cache,
    stores_folder,
    tail,
    url_at,
)
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
    member_files,
    of_disk,
    place_of,
    zips_below,
)
from omnidata.zips import Member, content, directory

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MARK: Final = f"{os.sep}stores{os.sep}"
_KEPT_PART: Final = 0.9  # of the limit, when room is made
_PACKED: Final = ".zips/"
"""Below it lie the zips whose members are files: nobody who walks through data looks there."""
_READERS: Final = 8


# A URL becomes a folder.


def local(data: str | Path, *, beside: Path | None = None) -> Path:
    """Return a local path to the data; of a URL its mirror, listed anew.

    Args:
        data: a path or a URL.
        beside: the folder that a relative path starts from. Defaults to the current one.

    Raises:
        UsageError: the URL is not of a supported store, or the cache lies in the data.
        DataError: nothing is there, or objects have unsafe names (`check_names`).
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
        return _update(place, found)
    # A file stands for its neighbours as well: media lie beside annotations.
    folder = place.above
    if not folder.path:
        raise DataError("this is no object of a bucket", where=place.url, expected="bucket/name")
    return _visible_path(_update(folder, listing(folder)), place.path.rpartition("/")[2])


def _update(place: Address, found: Listing, others: Mapping[str, Path] | None = None) -> Path:
    with _cache_errors(place.url):
        try:
            return _fill_mirror(open_cache(stores_folder()), place, found, others or {})
        except OSError as error:
            raise _no_room(as_said(place.url), error) from None


@contextmanager
def _cache_errors(where: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            f"the database of the cache fails ({error})",
            where=where,
            expected=f"room below {stores_folder()}, on a disk of this machine",
            remedy="make room there, or name another folder with --cache-dir",
        ) from None


def _fill_mirror(cache: Cache, place: Address, found: Listing, others: Mapping[str, Path]) -> Path:
    most_bytes()  # what is wrong with it is said before anything is fetched
    folder = sha256(place.url.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    root = cache.stores / folder / tail(place.url)
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
        hold(listing_key(cache.stores, folder), number)
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
        zips = {name: plain.pop(name) for name in packed if place.scheme not in DISK}
        hidden = {_PACKED + name: about for name, about in zips.items()}
        if place.scheme in DISK:
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
    cache: Cache,
    root: Path,
    before: Mapping[str, tuple[int, StoredObject]],
    objects: Iterable[str],
) -> None:
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
    cache: Cache, path: Path, key: int, about: StoredObject, number: int | None = None
) -> None:
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


def _place_holder(cache: Cache, path: Path, about: StoredObject) -> None:
    """Make a new empty file of that size and time; open files keep the old content."""
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
        where=display_path(path),
        expected=f"room below {stores_folder()}",
        remedy="make room there, or name another folder with --cache-dir",
    )


# Files are filled when they are read.


def is_mirrored(path: str | Path) -> bool:
    """Return whether a path is a file of a mirror, of a store or a zip."""
    text = os.fspath(path)
    # Asked of each medium, often: a look at the text tells nearly all paths.
    if _MARK not in text or not (stores := holder(text)):
        return False
    url = url_at(text, stores)
    if url.partition("://")[0] not in DISK:
        return True
    folder = text.removeprefix(stores).partition("/")[0]
    at = len(stores) + len(folder) + 1 + len(tail(url))
    ends = [*(end for end, letter in enumerate(text) if letter == "/" and end > at), len(text)]
    return not any(os.path.islink(text[:end]) for end in ends)  # noqa: PTH114  asked often


def zip_of(path: Path) -> str:
    """Return the name of the zip that a file of a mirror lies in; empty for any other path."""
    if not is_mirrored(path):
        return ""
    found = place_of(open_cache(holder(os.fspath(path))).object_of(os.fspath(path)).about)
    return found[0] if found else ""


def fill(path: Path, start: int = 0, end: int | None = None, *, ahead: int = 0) -> None:
    """Fetch the content of a file of a mirror; other files are left alone.

    Args:
        path: the file.
        start: the first byte.
        end: the byte after the last; None for the end of the file.
        ahead: the number of further bytes to fetch if any of these is missing.

    Raises:
        FileError: the member of the zip is broken.
        StoreError: the store does not return them, or the cache cannot store them.
    """
    if is_mirrored(path):
        with _cache_errors(os.fspath(path)):
            _fill(open_cache(holder(os.fspath(path))), path, start, end, ahead)


def _fill(cache: Cache, path: Path, start: int, end: int | None, ahead: int) -> None:
    known = cache.object_of(os.fspath(path))
    stop = known.about.size if end is None else end
    if packed := place_of(known.about):
        start, stop = 0, known.about.size
    if not known.missing(start, stop):
        return
    most = most_bytes()
    if most < min(stop, known.about.size) - start:
        raise StoreError(
            f"{known.about.size} bytes are more than the cache may hold",
            where=display_path(path),
            expected=f"at most {most} bytes at once",
            remedy="allow more with --cache-bytes",
        )
    if stop + ahead - start <= most:
        stop = min(stop + ahead, known.about.size)
    with cache.lock(known.id):
        known = cache.object_of(os.fspath(path))
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


def _write(known: Known, begin: int, content: bytes) -> None:
    """Write bytes into the file before the database lists them."""
    try:
        descriptor = os.open(known.path, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            view = memoryview(content)
            while view:
                done = os.pwrite(descriptor, view, begin)
                view, begin = view[done:], begin + done
            if not boot():
                os.fsync(descriptor)
            os.utime(descriptor, ns=(known.about.mtime_ns, known.about.mtime_ns))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _no_room(known.path, error) from None


def _note(cache: Cache, known: Known, begin: int, finish: int) -> Known:
    count = -(-known.about.size // BLOCK)
    blocks = bytearray(known.blocks or bytes(-(-count // 8)))
    for number in range(begin // BLOCK, -(-finish // BLOCK)):
        blocks[number // 8] |= 1 << number % 8
    with cache.change():
        cache.base.execute(
            "UPDATE objects SET blocks = ?, bytes = bytes + ?, used = ? WHERE id = ?",
            (bytes(blocks), finish - begin, time.time(), known.id),
        )
    return cache.object_of(os.fspath(known.path))


def _make_room(cache: Cache, needed: int, most: int, own: int) -> None:
    """Remove the least recently used content, except what may be about to be opened."""
    (held,) = cache.base.execute("SELECT bytes FROM total").fetchone()
    if held + needed <= most:
        return
    left = min(most - needed, int(_KEPT_PART * most))
    before = time.time() - IN_USE_S
    rows = cache.base.execute(
        "SELECT o.id, folder, url, name, size, version, mtime_ns, bytes FROM objects o JOIN "
        "mirrors m ON m.id = mirror WHERE bytes > 0 AND used < ? ORDER BY used",
        (before,),
    ).fetchall()
    for key, folder, url, name, size, version, mtime_ns, freed in rows:
        if held <= left:
            break
        if key % LOCKS == own % LOCKS:
            continue
        with suppress(Timeout), cache.lock(key, wait=False):
            with cache.change():
                given_up = cache.base.execute(
                    "UPDATE objects SET blocks = NULL, bytes = 0 WHERE id = ? AND used < ?",
                    (key, before),
                ).rowcount
            if given_up:
                root = cache.stores / folder / tail(url)
                _place_holder(cache, root / name, StoredObject(size, version, mtime_ns))
                held -= freed


class Ranged(io.RawIOBase):
    """A file of a mirror that fetches only the bytes that are read.

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
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position and return it."""
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
        self._ahead = min(2 * self._ahead + BLOCK, AT_ONCE) if self._at == self._end else 0
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
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_READERS) as pool:
        directories = pool.map(lambda name: read_directory(root / (_PACKED + name)), zips)
        found = member_files(zips, directories, looking(plain))
    unread = {name: about for name, about in zips.items() if name not in found}
    return {name: about for each in (*found.values(), unread) for name, about in each.items()}


def read_directory(path: Path) -> Directory:
    """Return the members of a zip by their names, or why it is not read.

    Raises:
        StoreError: a store does not return it.
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


def _unpack(cache: Cache, known: Known, archive: str, about: StoredObject, it: Member) -> None:
    at = 0
    try:
        for piece in content(it, _reader(known, archive, about)):
            _write(known, at, piece)
            at += len(piece)
    except ValueError as error:
        raise FileError(
            f"the file in {archive} is broken ({error})",
            where=display_path(known.path),
            expected="the bytes whose size and check sum the zip's directory has",
            remedy="download the zip again; if it stays like that, tell its publisher",
        ) from None


def _reader(known: Known, archive: str, about: StoredObject) -> Callable[[int, int], bytes]:
    if known.place.scheme not in DISK:
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
    """Return the local folder whose mirror a path lies in; None for any other path."""
    text = os.fspath(path)
    if _MARK not in text or not (stores := holder(text)):
        return None
    scheme, _, folder = url_at(text, stores).partition("://")
    return Path(folder) if scheme in DISK else None


def trees(data: Path) -> tuple[str, ...]:
    """Return the real paths of a data folder: its own, and the folder that it mirrors."""
    own = os.path.realpath(data)
    return (own,) if origin(data) is None else (own, _on_disk(data))


def _on_disk(path: Path) -> str:
    return "/" + os.fspath(path).removeprefix(holder(os.fspath(path))).partition("/")[2]


def is_link(path: Path) -> bool:
    """Return whether a path is a link of the data, not one that a mirror made."""
    if not path.is_symlink():
        return False
    own = origin(path) is not None and os.fspath(path.readlink()) == _on_disk(path)
    return not own or os.path.islink(_on_disk(path))  # noqa: PTH114


def _with_members(data: Path) -> Path:
    """Return the data, or the same path in a mirror of their folder if files lie in zips.

    The folder of a file is that of the data, as media lie beside annotations; that of a path within
    a zip is the folder of the zip.
    """
    try:
        above = next(one for one in (data, *data.parents) if one.is_dir())
        if not data.exists():
            first = data.relative_to(above).parts[0]
            if not (above / f"{first}.zip").is_file():
                return data
        place = Address(WHOLE if above == data else BESIDE, os.path.realpath(above))
    except (OSError, ValueError, StopIteration):  # whoever reads them says what is wrong
        return data
    if (root := _of_folder(place)) is None:
        return data
    as_named[place.url] = os.fspath(above)
    path = _visible_path(root, data.relative_to(above))
    return path if path.exists() else data


def _of_folder(place: Address) -> Path | None:
    folder = place.path
    if holder(f"{folder}{os.sep}") or not folder.isprintable():
        return None
    try:
        zips = zips_below(folder, nested=place.scheme == WHOLE)
        directories = (read_directory(Path(folder, name)) for name in zips)
        found = member_files(zips, directories, looking_on_disk(folder))
        members = {name: about for each in found.values() for name, about in each.items()}
        others = links(folder, found, members) if found else {}
    except OSError:  # a folder that cannot be read: whoever reads the data says so
        return None
    if members and stores_folder().startswith(folder.rstrip(os.sep) + os.sep):
        raise UsageError(
            "the cache lies in data with zips, where all that it holds would be data too",
            where=str(cache_folder()),
            expected=f"a folder outside {folder}",
            remedy=f"name another one with --cache-dir, or in {CACHE_VARIABLE}",
        )
    return _update(place, Listing(folder, members), others) if members else None


def again(url: str) -> Path:
    """Make or update the mirror that `source` named, and return its path.

    Raises:
        DataError, StoreError, PlatformError: as `local`.
    """
    scheme, _, folder = url.partition("://")
    if scheme not in DISK:
        return local(url)
    return _of_folder(Address(scheme, folder)) or Path(folder)


def _visible_path(root: Path, name: str | Path) -> Path:
    path = root / name
    return path.with_suffix("") if is_zip(path.name) and not path.exists() else path


def _unlink(root: Path, others: Mapping[str, Path]) -> None:
    for above, folders, files in os.walk(root, topdown=False):
        for path in (Path(above, name) for name in (*folders, *files) if _is_link(above, name)):
            if path.readlink() != others.get(path.relative_to(root).as_posix()):
                path.unlink()
        if above != os.fspath(root):
            with suppress(OSError):  # something is left in it
                Path(above).rmdir()


def _link(root: Path, others: Mapping[str, Path]) -> None:
    for name, target in others.items():
        path = root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.is_symlink():
            with suppress(FileExistsError):  # a member of that name is what is read
                path.symlink_to(target)


def _is_link(folder: str, name: str) -> bool:
    return os.path.islink(os.path.join(folder, name))  # noqa: PTH114, PTH118  asked of each member


# Which data a path lies in.


def listing_of(path: str | Path) -> str:
    """Return a hash of the last listing of a path's mirror; empty outside mirrors."""
    if not (stores := holder(os.fspath(path))):
        return ""
    folder = os.fspath(path).removeprefix(stores).partition("/")[0]
    rows = open_cache(stores).base.execute(
        "SELECT listing FROM mirrors WHERE folder = ?", (folder,)
    )
    return next((listing for (listing,) in rows), "")


def source(path: str | Path) -> str:
    """Return the URL of the mirror that a path lies in, for `again`; empty outside mirrors."""
    text = os.fspath(path)
    return url_at(text, stores) if (stores := holder(text)) else ""
