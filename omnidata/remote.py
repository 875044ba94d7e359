"""Data on object stores as local folders of whole files, through `fsspec`.

`get` lists the objects below a URL and returns a folder of the cache in which each object is a
placeholder: a sparse file of its name and size. `fetch` downloads one file; `omnidata.files` and
`omnidata.media` call it before they open a path. Annotations are downloaded at once.

    CACHE/remote/URL/LISTING/NAME/...   URL and LISTING are hashes, NAME is the last part of the URL

Each listing has a folder of its own, so versions of data never mix. A placeholder is writable and a
downloaded file is not: the mode is the only record, and changes together with the content when the
download is renamed. The modification time stands for the version that the store reports.

Anyone may have filled a store: names and sizes are checked before anything is written, and listings
and downloads have limits. Credentials are read from the environment or the configuration files of
the store's own tools, never from URLs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from filelock import FileLock

from omnidata.errors import DataError, StoreError, UsageError, suggestion
from omnidata.stores import (
    STORES,
    Address,
    StoredObject,
    download,
    list_objects,
    name_fault,
    open_store,
)

CACHE_VARIABLE: Final = "OMNIDATA_CACHE"
"""Environment variable with the folder of the cache."""
SENDS_TOKEN: Final = "OMNIDATA_HUB_TOKEN"
"""Environment variable that is set while requests to the Hub carry the user's token."""
_BYTES_VARIABLE: Final = "OMNIDATA_CACHE_BYTES"
_DEFAULT_BYTES: Final = 50 * 1000**3

Progress = Callable[[int, int], None]
"""Called with the number of bytes done, and of all."""

_LOCAL: Final = "file"
# One slash is enough: a URL that became a `Path` has lost the other.
_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/+(.*)$", re.DOTALL)
_HUB_KINDS: Final = ("datasets/", "spaces/", "buckets/")  # else it is the name of a dataset
_ANNOTATIONS: Final = frozenset((".csv", ".json", ".jsonl", ".toml", ".tsv", ".txt"))
_THREADS: Final = 8

_IN_USE_S: Final = 60.0
"""A file that was requested stays this long, as its reader opens it by its path."""
_OLD_S: Final = 7 * 86_400.0
"""Earlier listings and temporary files are removed after this time."""
_KEPT_PART: Final = 0.9  # of the limit, after files have been removed
_UNCOUNTED_PART: Final = 0.05  # of the limit, downloaded before the cache is measured again
_LOCKS: Final = 1024
_DOWNLOADED: Final = 0o400
_PLACEHOLDER: Final = 0o200
_ABOUT: Final = "about.json"

# URLs.


def is_url(text: str | Path) -> bool:
    """Return whether a text is a URL of any kind, including those of the Hub.

    Examples:
        >>> is_url("s3://bucket/omnigui"), is_url("hf://ORG/NAME"), is_url("data/omnigui")
        (True, True, False)
    """
    return _URL.match(str(text)) is not None


def _local_path(text: str | Path) -> Path | None:
    found = _URL.match(str(text))
    if found is None or found[1].lower() != _LOCAL:
        return None
    return Path("/" + unquote(found[2]).removeprefix("localhost/"))


def _address(text: str | Path) -> Address | None:
    found = _URL.match(str(text))
    if found is None or Path(text).exists():
        return None
    scheme, path = found[1].lower(), found[2].strip("/")
    hidden = f"{scheme}://..."  # the URL may hold a secret
    if scheme not in STORES:
        raise UsageError(
            "this scheme belongs to no supported object store",
            where=hidden,
            expected=f"one of {', '.join(f'{name}://' for name in (*STORES, _LOCAL))}, or a path",
            remedy=suggestion(scheme, STORES) or "download the data, and name their folder",
        )
    if scheme == "hf" and "/" in path and not path.startswith(_HUB_KINDS):
        path = f"datasets/{path}"
    bucket = path.partition("/")[0]
    secret = ":" in bucket and not bucket.startswith("arn:")  # which may have a slash in it
    login = "@" in bucket and not scheme.startswith("abfs")
    if "?" in path or "::" in path or secret or login:
        raise UsageError(
            "a URL with credentials, a query or several stores is not opened",
            where=hidden,
            expected="scheme://bucket/prefix",
            remedy="put credentials where the store's own tools look for them "
            "(docs/object_stores.md)",
        )
    if not bucket:
        raise UsageError(
            "the URL names no bucket", where=f"{scheme}://", expected=f"{scheme}://bucket/prefix"
        )
    return Address(scheme, path)


def refuse_url(path: Path, where: str) -> None:
    """Raise an error for a URL where a local path is expected.

    Args:
        path: as the user wrote it.
        where: the option or argument, for the message.

    Raises:
        UsageError: it is a URL.
    """
    if local := _local_path(path):
        raise UsageError(
            "a local path is written without a scheme",
            where=f"{where} {path}",
            expected=str(local),
        )
    if place := _address(path):
        raise UsageError(
            "this must be on a disk",
            where=f"{where} {place.url}",
            expected="a local path: run folders and other outputs are locked, appended to and "
            "moved, which needs a POSIX file system",
            remedy="copy it to this machine, or write here and copy the result "
            "(docs/object_stores.md)",
        )


@contextmanager
def sending_token(send: bool = True) -> Iterator[None]:
    """Send a token with requests in the block, for gated and private datasets.

    It is the one that `huggingface_hub` has: HF_TOKEN in the environment, or what `hf auth login`
    has kept. Threads and processes that are started in the block send it as well.

    Args:
        send: False leaves things as they are.
    """
    before = os.environ.get(SENDS_TOKEN)
    if send:
        os.environ[SENDS_TOKEN] = "1"
    try:
        yield
    finally:
        if send and before is None:
            del os.environ[SENDS_TOKEN]


def sends_token() -> bool:
    """Return whether requests to the Hub carry the user's token; off by default."""
    return bool(os.environ.get(SENDS_TOKEN))


# The folder of the cache, and its files by URL.


def cache_folder() -> Path:
    """Return the folder of the cache: `OMNIDATA_CACHE`, else the user's cache folder."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    above = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  Path raises
    return Path(above) / "omnidata"  # without a home, below a folder called ~


def most_bytes() -> int:
    """Return the bytes that the cache may hold, `OMNIDATA_CACHE_BYTES`."""
    given = os.environ.get(_BYTES_VARIABLE)
    if not given:
        return _DEFAULT_BYTES
    if not (given.isascii() and given.isdigit() and int(given[:19]) > 0 and len(given) < 20):
        raise UsageError(
            f"{given[:40]!r} is not a number of bytes",
            where=_BYTES_VARIABLE,
            expected=f"a whole number, e.g. {_DEFAULT_BYTES}",
        )
    return int(given)


_MARK: Final = f"{os.sep}remote{os.sep}"
_used_caches: list[str] = []
"""Folders with data of stores that this process has used: the environment may name another now."""


def _cache() -> str:
    """Return the real path of the folder with the data of all stores, and a slash."""
    names = (CACHE_VARIABLE, "XDG_CACHE_HOME", "HOME")
    cache = _real_cache(tuple(os.environ.get(name, "") for name in names))
    if cache not in _used_caches:
        _used_caches.append(cache)
    return cache


@lru_cache(maxsize=8)
def _real_cache(environment: tuple[str, ...]) -> str:
    return os.path.realpath(cache_folder()) + _MARK


class _Root(NamedTuple):
    """The folder of the data of a URL.

    Attributes:
        cache: the folder with the data of all stores, with a slash.
        path: of the folder.
        url: of the data.
        base: the path in the store; for the Hub it names a commit.
    """

    cache: str
    path: str
    url: str
    base: str


_roots: dict[str, _Root] = {}


def _root(path: str | Path) -> _Root | None:
    """Return the data that a path of the cache lies in; None for any other path."""
    text = os.fspath(path)
    if _MARK not in text:  # nearly all paths
        return None
    _cache()
    for cache in _used_caches:
        if text.startswith(cache):
            folder = cache + "/".join(text.removeprefix(cache).split("/", 2)[:2])
            root = _root_below(cache, folder)
            return root if root and f"{text}/".startswith(f"{root.path}/") else None
    return None


def _root_below(cache: str, folder: str) -> _Root | None:
    if folder not in _roots:
        try:
            url, base = json.loads(Path(folder, _ABOUT).read_text("utf-8"))
        except (OSError, ValueError, TypeError):
            return None
        _roots[folder] = _Root(cache, f"{folder}/{_folder_name(url)}", url, base)
    return _roots[folder]


def _folder_name(url: str) -> str:
    name = url.rpartition("/")[2]
    return "data" if name_fault(name) or name == _ABOUT else name


def is_in_cache(path: str | Path) -> bool:
    """Return whether a path is a file or folder of the cache, and stands for data on a store."""
    return _root(path) is not None


def url_of(path: str | Path) -> str:
    """Return the URL of the data that a path of the cache lies in; empty for any other path."""
    root = _root(path)
    return root.url if root else ""


def listing_of(path: str | Path) -> str:
    """Return a hash of the listing that a path of the cache belongs to; empty for any other."""
    root = _root(path)
    return Path(root.path).parent.name if root else ""


def display_path(path: str | Path) -> str:
    """Return a path for messages and records: the URL of a path of the cache."""
    return with_urls(os.fspath(path))


def with_urls(text: str) -> str:
    """Return a text with the paths of the cache replaced by their URLs."""
    if _MARK not in text:
        return text
    _cache()
    for cache in _used_caches:
        for found in dict.fromkeys(re.findall(rf"{re.escape(cache)}\w+/\w+", text)):
            if root := _root_below(cache, found):
                text = text.replace(root.path, root.url)
    return text


# A URL becomes a folder.


def get(data: str | Path, *, beside: Path | None = None) -> Path:
    """Return a local path to data; a URL is listed anew, and its annotations are downloaded.

    Args:
        data: a path or a URL. A URL of a file includes its neighbours: media lie beside
            annotations.
        beside: the folder that a relative path starts from. Defaults to the current one.

    Returns:
        A path that may not exist, or the folder or file of the cache.

    Raises:
        UsageError: the URL is not of a supported store, or holds credentials.
        DataError: nothing is there, or objects have names or sizes that no folder can hold.
        StoreError: the store does not answer, or the cache cannot store the files.
        PlatformError: the package for the store is not installed.
    """
    if path := _local_path(data):
        return path
    if (place := _address(data)) is None:
        return Path(data) if beside is None else beside / data
    store = open_store(place, token=sends_token())
    base, objects = list_objects(store, place)
    if "" not in objects:
        return _make_folder(place, base, objects)
    above, _, name = place.path.rpartition("/")
    if not above:
        raise DataError(
            "this is not an object of a bucket", where=place.url, expected="bucket/name"
        )
    folder = Address(place.scheme, above)
    return _make_folder(folder, *list_objects(store, folder)) / name


def list_sizes(url: str) -> dict[str, int]:
    """List the files of a URL without downloading any.

    Returns:
        Sizes in bytes by the names below the URL; the empty name if it is a file.

    Raises:
        UsageError: it is not a URL of a supported store.
        DataError, StoreError, PlatformError: as `get`.
    """
    if _local_path(url) or (place := _address(url)) is None:
        raise UsageError("this is a local path", where=url, expected="a URL of an object store")
    _, objects = list_objects(open_store(place, token=sends_token()), place)
    return {name: about.size for name, about in objects.items()}


def _make_folder(place: Address, base: str, objects: Mapping[str, StoredObject]) -> Path:
    most = most_bytes()
    cache = Path(_cache())
    digest = sha256()
    for name, about in sorted(objects.items()):
        digest.update(f"{name}\0{about.size}\0{about.mtime_ns}\0".encode())
    key = sha256(place.url.encode("utf-8", "surrogatepass"))
    folder = cache / key.hexdigest()[:20] / digest.hexdigest()[:20]
    root = folder / _folder_name(place.url)
    with _storing(place.url):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.is_dir():
            for name, about in objects.items():
                if not _is_as_listed(root / name, about):
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    _replace(root / name, partial(_write_placeholder, about=about))
        else:
            _build(folder, root.name, objects)
        origin = json.dumps([place.url, base])
        _replace(folder / _ABOUT, lambda new: new.write_text(origin, "utf-8"))
    small = [name for name in objects if Path(name).suffix.lower() in _ANNOTATIONS]
    if sum(objects[name].size for name in small) <= most:
        _fetch_many([root / name for name in small])
    return root


def _build(folder: Path, name: str, objects: Mapping[str, StoredObject]) -> None:
    """Make the folder of a listing under another name, and rename it when it is complete."""
    _sweep(folder)
    earlier = [each / name for each in folder.parent.iterdir()]
    new = Path(tempfile.mkdtemp(dir=_temporary()))
    try:
        folders: set[Path] = set()
        for path, about in objects.items():
            target = new / name / path
            if target.parent not in folders:
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                folders.add(target.parent)
            if not any(_link(each / path, target, about) for each in earlier):
                _write_placeholder(target, about)
        try:
            new.rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove earlier listings of the same URL, and what killed processes left."""
    before = time.time() - _OLD_S
    for each in (*folder.parent.iterdir(), *_temporary().iterdir()):
        about = each / _ABOUT
        with suppress(FileNotFoundError):  # another process removes it too
            if (about if about.exists() else each).stat().st_mtime < before:
                shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink()


def _temporary() -> Path:
    folder = Path(_cache()).parent / "new"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _link(earlier: Path, path: Path, about: StoredObject) -> bool:
    """Use the file of an earlier listing, if it has been downloaded and has not changed."""
    if not _is_as_listed(earlier, about) or not _is_downloaded(earlier.stat()):
        return False
    try:
        os.link(earlier, path)
    except OSError:
        return False
    return True


def _write_placeholder(path: Path, about: StoredObject) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PLACEHOLDER)
    try:
        os.ftruncate(descriptor, about.size)
    finally:
        os.close(descriptor)
    os.utime(path, ns=(0, about.mtime_ns))
    if not about.size:
        path.chmod(_DOWNLOADED)


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name and rename it; open files keep the old content."""
    new = _temporary() / f"{os.getpid()}-{threading.get_ident()}"
    new.unlink(missing_ok=True)
    try:
        write(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _is_as_listed(path: Path, about: StoredObject) -> bool:
    try:
        return _object_of(path.lstat()) == about
    except OSError:
        return False


def _is_downloaded(found: os.stat_result) -> bool:
    return not found.st_mode & _PLACEHOLDER


@contextmanager
def _storing(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the cache cannot store it ({error.strerror})",
            where=where,
            expected=f"a writable folder with free space at {cache_folder()}, on a local disk",
            remedy="free space there, or name another folder with --cache-dir",
        ) from None


# Downloads.


def fetch(path: Path) -> None:
    """Download a file of the cache unless it has been; other paths are left alone.

    Raises:
        StoreError: the store does not return it, it has changed, or the cache cannot store it.
    """
    if root := _root(path):
        _fetch(path, root, None)


def fetch_all(path: Path, progress: Progress = lambda done, total: None) -> None:
    """Download a file of the cache, or all files of a folder; other paths are left alone.

    Args:
        path: as `get` returns it.
        progress: called with the bytes of the files that are there, and of all.

    Raises:
        StoreError: the cache may not hold all of them; or as `fetch`.
    """
    if not is_in_cache(path):
        return
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    total = sum(each.stat().st_size for each in files)
    if total > (most := most_bytes()):
        raise StoreError(
            f"its {total} bytes are more than the cache may hold",
            where=display_path(path),
            expected=f"at most {most} bytes",
            remedy="allow more with --cache-bytes, or name a folder to download to",
        )
    _fetch_many(files, progress)


def _fetch_many(paths: Sequence[Path], progress: Progress = lambda done, total: None) -> None:
    """Download files of one folder with several threads."""
    sizes = {path: path.stat().st_size for path in paths}
    missing = [path for path in paths if not _is_downloaded(path.stat())]
    if not missing or (root := _root(missing[0])) is None:
        return
    store = open_store(Address(*root.url.split("://", 1)), token=sends_token())
    with ThreadPoolExecutor(_THREADS) as pool:
        tasks = [pool.submit(_fetch, path, root, store) for path in missing]
        total = sum(sizes.values())
        done = total - sum(sizes[path] for path in missing)
        try:
            for path, task in zip(missing, tasks, strict=True):
                task.result()
                done += sizes[path]
                progress(done, total)
        finally:
            pool.shutdown(cancel_futures=True)


def _fetch(path: Path, root: _Root, store: Any) -> None:
    try:
        found = path.lstat()
    except OSError:  # its reader reports it
        return
    if _is_downloaded(found):
        now = time.time()
        if now - _IN_USE_S / 2 < found.st_atime <= now:
            return
        os.utime(path, ns=(time.time_ns(), found.st_mtime_ns))
        found = path.lstat()
        if _is_downloaded(found):  # and not removed meanwhile, for space
            return
    if not stat.S_ISREG(found.st_mode):
        return
    with _lock(root.cache, str(zlib.crc32(os.fsencode(path)) % _LOCKS)):
        if not _is_downloaded(path.lstat()):  # no other process has, meanwhile
            _download(path, root, found, store)


def _lock(cache: str, name: str) -> FileLock:
    folder = Path(cache).parent / "locks"
    with _storing(str(folder)):
        folder.mkdir(mode=0o700, exist_ok=True)
    return FileLock(folder / name, poll_interval=0.02, thread_local=False)


def _download(path: Path, root: _Root, listed: os.stat_result, store: Any) -> None:
    place = Address(*root.url.split("://", 1))
    name, about = os.fspath(path)[len(root.path) + 1 :], _object_of(listed)
    most = most_bytes()
    if about.size > most:
        raise StoreError(
            f"its {about.size} bytes are more than the cache may hold",
            where=f"{root.url}/{name}",
            expected=f"at most {most} bytes",
            remedy="allow more with --cache-bytes",
        )
    _make_room(root.cache, about.size, most)
    store = store or open_store(place, token=sends_token())

    def write(new: Path) -> None:
        download(store, place, root.base, name, new, about)
        with new.open("rb+") as file:  # a machine may stop after the file is renamed
            os.fsync(file.fileno())
        os.utime(new, ns=(time.time_ns(), about.mtime_ns))
        new.chmod(_DOWNLOADED)

    with _storing(f"{root.url}/{name}"):
        _replace(path, write)


def _object_of(found: os.stat_result) -> StoredObject:
    return StoredObject(found.st_size, found.st_mtime_ns)


# The cache has a limit.

_uncounted: dict[tuple[str, int], int] = {}
"""Bytes that this process may download into a cache of a limit before it measures the cache."""


def _make_room(cache: str, needed: int, most: int) -> None:
    """Remove the least recently used files, but none that may be about to be opened."""
    key = cache, most
    _uncounted[key] = _uncounted.get(key, 0) - needed
    if _uncounted[key] >= 0:
        return
    with _lock(cache, "room"):
        files = sorted(_content_files(cache), key=lambda each: each[1].st_atime)
        held = sum(found.st_size for _, found in files)
        if held + needed > most:
            left = min(most - needed, int(_KEPT_PART * most))
            before = time.time() - _IN_USE_S
            for path, found in files:
                if held <= left or found.st_atime > before:
                    break
                placeholder = partial(_write_placeholder, about=_object_of(found))
                with suppress(FileNotFoundError):  # an old listing, which was removed meanwhile
                    if path.lstat().st_atime <= before:
                        _replace(path, placeholder)
                        held -= found.st_size
        _uncounted[key] = min(most - held - needed, int(_UNCOUNTED_PART * most))


def _content_files(folder: str) -> Iterator[tuple[Path, os.stat_result]]:
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above, name)
            with suppress(FileNotFoundError):
                found = path.lstat()
                if found.st_size and _is_downloaded(found):
                    yield path, found
