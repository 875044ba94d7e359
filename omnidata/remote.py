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

import errno
import json
import os
import random
import re
import shutil
import stat
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from filelock import FileLock

from omnidata.errors import (
    DataError,
    OmnidataError,
    PlatformError,
    StoreError,
    UsageError,
    suggestion,
)

CACHE_VARIABLE: Final = "OMNIDATA_CACHE"
"""Environment variable with the folder of the cache."""
SENDS_TOKEN: Final = "OMNIDATA_HUB_TOKEN"
"""Environment variable that is set while requests to the Hub carry the user's token."""
_BYTES_VARIABLE: Final = "OMNIDATA_CACHE_BYTES"
_DEFAULT_BYTES: Final = 50 * 1000**3

_STORES: Final[Mapping[str, tuple[str, str]]] = {
    "s3": ("s3fs", "omnidata[s3]"),
    "s3a": ("s3fs", "omnidata[s3]"),
    "gs": ("gcsfs", "omnidata[gcs]"),
    "gcs": ("gcsfs", "omnidata[gcs]"),
    "az": ("adlfs", "omnidata[azure]"),
    "abfs": ("adlfs", "omnidata[azure]"),
    "abfss": ("adlfs", "omnidata[azure]"),
    "hf": ("huggingface_hub", "huggingface_hub"),
    "memory": ("fsspec", "fsspec"),
}
"""Scheme -> the package for the store, and what to install for it."""
_LOCAL: Final = "file"
# One slash is enough: a URL that became a `Path` has lost the other.
_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/+(.*)$", re.DOTALL)
_QUERY: Final = re.compile(r"\?\S*")

_VERSIONS: Final = (
    *("ETag", "etag", "generation", "blob_id", "md5Hash"),
    *("LastModified", "last_modified", "updated", "mtime", "created"),
)
"""What stores call the version of an object, or else its time."""
_ANNOTATIONS: Final = frozenset((".csv", ".json", ".jsonl", ".toml", ".tsv", ".txt"))
_NO_ACCESS: Final = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "TokenRetrievalError",
        "CredentialRetrievalError",
        "DefaultCredentialsError",
        "RefreshError",
        "GatedRepoError",
        "RepositoryNotFoundError",
        "RevisionNotFoundError",
        "ParamValidationError",
        "InvalidRegionError",
    }
)
"""Errors of the stores' packages that are not worth a second request."""
_DISK_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)

_WAITS: Final = (0.2, 0.5, 1.2, 2.5)  # seconds before a request is repeated
_LISTING_S: Final = 900.0
_PATIENCE_S: Final = 60.0  # for a download, besides its bytes over _LEAST_RATE
_LEAST_RATE: Final = 20_000  # bytes a second
_MOST_OBJECTS: Final = 5_000_000
_MOST_SIZE: Final = 1 << 50  # bytes of an object
_LONGEST_PART: Final = 255  # bytes of a name between slashes
_LONGEST: Final = 3072  # bytes of a whole name
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

_Result = TypeVar("_Result")


# URLs.


class _Address(NamedTuple):
    scheme: str
    path: str  # bucket and prefix, without a slash at either end

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.path}"


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


def _address(text: str | Path) -> _Address | None:
    found = _URL.match(str(text))
    if found is None or Path(text).exists():
        return None
    scheme, path = found[1].lower(), found[2].strip("/")
    hidden = f"{scheme}://..."  # the URL may hold a secret
    if scheme not in _STORES:
        raise UsageError(
            "this scheme belongs to no supported object store",
            where=hidden,
            expected=f"one of {', '.join(f'{name}://' for name in (*_STORES, _LOCAL))}, or a path",
            remedy=suggestion(scheme, _STORES) or "download the data, and name their folder",
        )
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
    return _Address(scheme, path)


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


def sends_token() -> bool:
    """Return whether requests to the Hub carry the user's token; off by default."""
    return bool(os.environ.get(SENDS_TOKEN))


# The folder of the cache, and its files by URL.


def cache_folder() -> Path:
    """Return the folder of the cache: `OMNIDATA_CACHE`, else the user's cache folder."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    above = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(above) / "omnidata"  # without a home, below a folder called ~


def _most_bytes() -> int:
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
    return "data" if _unusable(name) else name


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


class _Object(NamedTuple):
    size: int  # bytes
    mtime_ns: int  # nanoseconds since 1970; made from the version and the size


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
    base, objects = _list(place)
    if "" not in objects:
        return _make_folder(place, base, objects)
    above, _, name = place.path.rpartition("/")
    if not above:
        raise DataError(
            "this is not an object of a bucket", where=place.url, expected="bucket/name"
        )
    folder = _Address(place.scheme, above)
    return _make_folder(folder, *_list(folder)) / name


def fetch_all(root: Path) -> None:
    """Download all files below a folder that `get` returned.

    Raises:
        StoreError: as `fetch`.
    """
    _fetch_many([Path(above, name) for above, _, names in os.walk(root) for name in names])


def _make_folder(place: _Address, base: str, objects: Mapping[str, _Object]) -> Path:
    most = _most_bytes()
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
            _build(folder, root.name, (place.url, base), objects)
        os.utime(folder / _ABOUT)
    small = [name for name in objects if Path(name).suffix.lower() in _ANNOTATIONS]
    if sum(objects[name].size for name in small) <= most:
        _fetch_many([root / name for name in small])
    return root


def _build(
    folder: Path, name: str, origin: tuple[str, str], objects: Mapping[str, _Object]
) -> None:
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
        (new / _ABOUT).write_text(json.dumps(origin), "utf-8")
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


def _link(earlier: Path, path: Path, about: _Object) -> bool:
    """Use the file of an earlier listing, if it has been downloaded and has not changed."""
    if not _is_as_listed(earlier, about) or not _is_downloaded(earlier.stat()):
        return False
    try:
        os.link(earlier, path)
    except OSError:
        return False
    return True


def _write_placeholder(path: Path, about: _Object) -> None:
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


def _is_as_listed(path: Path, about: _Object) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return (found.st_size, found.st_mtime_ns) == about


def _is_downloaded(found: os.stat_result) -> bool:
    return not found.st_mode & _PLACEHOLDER


@contextmanager
def _storing(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unstorable(where, error) from None


def _unstorable(where: str, error: OSError) -> StoreError:
    return StoreError(
        f"the cache cannot store it ({error.strerror})",
        where=where,
        expected=f"a writable folder with free space at {cache_folder()}, on a local disk",
        remedy="free space there, or name another folder with --cache-dir",
    )


# Listings.


def _list(place: _Address) -> tuple[str, Mapping[str, _Object]]:
    """List all objects below an address; an object itself is listed under the empty name."""
    store = _store(place)
    try:
        base, entries = _ask(place.url, partial(_entries, store, place))
    except FileNotFoundError:
        base, entries = place.path, {}
    root = base.strip("/")
    objects: dict[str, _Object] = {}
    for full, about in entries.items():
        name = str(full).lstrip("/").removeprefix(root)
        if about.get("type") == "directory" or (full.endswith("/") and not about.get("size")):
            continue  # consoles write empty objects for folders
        if name.startswith("/"):
            name = name[1:]
        elif name:
            continue  # another prefix that begins with the same letters
        objects[name] = _object(about, place.url, name)
    if not objects:
        raise DataError(
            "nothing is there, or it may not be listed",
            where=place.url,
            expected="a bucket and a prefix with objects below it",
            remedy="correct the URL, or check that your credentials may list it",
        )
    if "" not in objects:
        _check_names(objects, place.url)
    return base, objects


def _entries(store: Any, place: _Address) -> tuple[str, Mapping[str, Any]]:
    if place.scheme == "hf":
        return _call_within(partial(_hub_entries, store, place), place.url, _LISTING_S)
    store.invalidate_cache()
    found = _call(store, place.url, _LISTING_S, "find", place.path, detail=True)
    _check_count(len(found), place.url)
    return place.path, found


def _hub_entries(store: Any, place: _Address) -> tuple[str, Mapping[str, Any]]:
    """List a repository at the commit that its revision names now."""
    from huggingface_hub.errors import EntryNotFoundError

    at = store.resolve_path(place.path)
    about = store._api.repo_info(at.repo_id, revision=at.revision, repo_type=at.repo_type)
    at = replace(at, revision=about.sha, _raw_revision=None)
    tree = f"{store.endpoint}/api/{at.repo_type}s/{at.repo_id}/tree/{about.sha}/"
    path = at.path_in_repo
    try:
        entries = _hub_tree(store, place.url, tree, f"{quote(path, safe='')}?recursive=true")
    except EntryNotFoundError:  # a file is listed in its folder
        above = quote(path.rpartition("/")[0], safe="")
        entries = _hub_tree(store, place.url, tree, f"{above}?recursive=false")
    root = replace(at, path_in_repo="").unresolve()
    found = {f"{root}/{name}": about for name, about in entries.items()}
    base = at.unresolve()
    return base, {name: found[name] for name in found if f"{name}/".startswith(f"{base}/")}


def _hub_tree(store: Any, url: str, tree: str, page: str) -> Mapping[str, Any]:
    """Read the pages of a listing; the library would send the token to any server they name."""
    from huggingface_hub.utils import get_session, hf_raise_for_status

    found: dict[str, Any] = {}
    page = f"{tree}{page}"
    while page:
        answer = get_session().get(page, headers=store._api._build_hf_headers())
        hf_raise_for_status(answer)
        for each in answer.json():
            if each["type"] == "file":
                found[str(each["path"])] = {"size": each["size"], "blob_id": each["oid"]}
        _check_count(len(found), url)
        page = answer.links.get("next", {}).get("url", "")
        if page and not page.startswith(tree):
            raise DataError(
                "the next page of the listing is on another server",
                where=url,
                expected=f"a page of {store.endpoint}",
                remedy="check HF_ENDPOINT",
            )
    return found


def _check_count(count: int, url: str) -> None:
    if count > _MOST_OBJECTS:
        raise DataError(
            f"there are {count:,} objects",
            where=url,
            expected=f"at most {_MOST_OBJECTS:,} below the data's own prefix",
            remedy="name a prefix further down",
        )


def _object(about: Mapping[str, Any], url: str, name: str) -> _Object:
    size = about.get("size")
    if not isinstance(size, int) or not 0 <= size < _MOST_SIZE:
        raise DataError(
            f"the store reports no valid size of {name!r:.200}",
            where=url,
            expected=f"a number of bytes from 0 to {_MOST_SIZE:,}",
            remedy="remove the object, or copy the data to another store",
        )
    version = next((about[key] for key in _VERSIONS if about.get(key)), None)
    stamp = int.from_bytes(sha256(f"{version} {size}".encode()).digest()[:8], "big")
    return _Object(size, 10**18 + stamp % 10**17)  # in the years 2001 to 2004


def _check_names(names: Iterable[str], url: str) -> None:
    """Refuse names that cannot all be files of one folder on every file system."""
    folded: dict[str, str] = {}
    for name in names:
        reason = _unusable(name)
        other = folded.setdefault(name.casefold(), name)
        if not reason and other != name:
            reason = f"it differs from {other!r:.200} only in upper and lower case"
        if reason:
            raise _bad_name(name, reason, url)
    folders: dict[str, str] = {}
    for name in folded.values():
        at = name.rfind("/")
        while at > 0 and folders.get(folder := name[:at].casefold()) is None:
            if folder in folded:
                raise _bad_name(folded[folder], f"it is also the folder of {name!r:.200}", url)
            folders[folder] = name[:at]
            at = name.rfind("/", 0, at)
        if at > 0 and folders[name[:at].casefold()] != name[:at]:
            other = folders[name[:at].casefold()]
            raise _bad_name(name, f"a folder of it is also written {other!r:.200}", url)


def _unusable(name: str) -> str:
    if name.startswith("/"):
        return "it is absolute"
    parts = name.split("/")
    if "\0" in name or "\\" in name:
        return "it holds a NUL character or a backslash"
    if ".." in parts or "." in parts or "" in parts:
        return 'one of its parts is empty, "." or ".."'
    try:
        encoded = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if max(encoded) > _LONGEST_PART or sum(encoded) + len(parts) > _LONGEST:
        return "it is longer than the name of a file may be"
    return ""


def _bad_name(name: str, reason: str, url: str) -> DataError:
    return DataError(
        f"the object {name!r:.200} cannot be a file of the data: {reason}",
        where=url,
        expected="names that are relative paths of files, each different from the others",
        remedy="rename or remove the object, or name a prefix without it",
    )


# Downloads.


def fetch(path: Path) -> None:
    """Download a file of the cache unless it has been; other paths are left alone.

    Raises:
        StoreError: the store does not return it, it has changed, or the cache cannot store it.
    """
    if root := _root(path):
        _fetch(path, root, None)


def _fetch_many(paths: Sequence[Path]) -> None:
    """Download files of one folder with several threads."""
    missing = [path for path in paths if not _is_downloaded(path.stat())]
    if not missing or (root := _root(missing[0])) is None:
        return
    store = _store(_Address(*root.url.split("://", 1)))
    with ThreadPoolExecutor(_THREADS) as pool:
        tasks = [pool.submit(_fetch, path, root, store) for path in missing]
        try:
            for task in tasks:
                task.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _fetch(path: Path, root: _Root, store: Any) -> None:
    try:
        found = path.lstat()
    except OSError:  # its reader reports it
        return
    if _is_downloaded(found):
        now = time.time()
        if not now - _IN_USE_S / 2 < found.st_atime <= now:
            os.utime(path, ns=(time.time_ns(), found.st_mtime_ns))
        return
    if not stat.S_ISREG(found.st_mode):
        return
    with _lock(root.cache, str(zlib.crc32(os.fsencode(path)) % _LOCKS)):
        if not _is_downloaded(path.lstat()):  # nobody else has, meanwhile
            _download(path, root, found, store)


def _lock(cache: str, name: str) -> FileLock:
    folder = Path(cache).parent / "locks"
    with _storing(str(folder)):
        folder.mkdir(mode=0o700, exist_ok=True)
    return FileLock(folder / name, poll_interval=0.02, thread_local=False)


def _download(path: Path, root: _Root, listed: os.stat_result, store: Any) -> None:
    address = _Address(*root.url.split("://", 1))
    name, size = os.fspath(path)[len(root.path) + 1 :], listed.st_size
    url, most = f"{root.url}/{name}", _most_bytes()
    if size > most:
        raise StoreError(
            f"its {size} bytes are more than the cache may hold",
            where=url,
            expected=f"at most {most} bytes",
            remedy="allow more with --cache-bytes",
        )
    _make_room(root.cache, size, most)
    store = store or _store(address)

    def write(new: Path) -> None:
        _ask(url, partial(_copy, store, address.scheme, f"{root.base}/{name}", new, listed))
        os.utime(new, ns=(time.time_ns(), listed.st_mtime_ns))
        new.chmod(_DOWNLOADED)

    try:
        _replace(path, write)
    except FileNotFoundError:
        raise _changed(url, "the object is gone") from None
    except OSError as error:
        raise _unstorable(url, error) from None


def _copy(store: Any, scheme: str, name: str, new: Path, listed: os.stat_result) -> None:
    """Download an object, no more than was listed, and check that it is still that object."""
    from fsspec.callbacks import Callback

    size = listed.st_size
    url = f"{scheme}://{name}"

    def check(announced: int | None, came: int) -> None:
        if max(announced or 0, came) > size:
            raise _changed(url, f"the store sends more than the {size} bytes that it listed")

    seconds = _PATIENCE_S + size / _LEAST_RATE
    bounded = Callback(hooks={"bound": check})
    if scheme == "hf":
        with new.open("wb") as file:  # a block size of 0 streams
            _call(
                store, url, seconds, "get_file", name,
                outfile=file, callback=bounded, block_size=0,
            )  # fmt: skip
    else:
        _call(store, url, seconds, "get_file", name, str(new), callback=bounded)
        store.invalidate_cache()
        now = _object(_call(store, url, seconds, "info", name), url, name)
        if now != (size, listed.st_mtime_ns):
            raise _changed(url, "the object has changed since it was listed")
    if (came := new.stat().st_size) != size:
        raise _changed(url, f"the store returned {came} of {size} bytes")
    with new.open("rb+") as written:  # a machine may stop after the file is renamed
        os.fsync(written.fileno())


def _changed(url: str, what: str) -> StoreError:
    return StoreError(
        what,
        where=url,
        expected="data that do not change while they are read",
        remedy="repeat the command: it lists the data again",
    )


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
        files = sorted(_downloaded_files(cache), key=lambda each: each[1].st_atime)
        held = sum(found.st_size for _, found in files)
        if held + needed > most:
            left = min(most - needed, int(_KEPT_PART * most))
            before = time.time() - _IN_USE_S
            for path, found in files:
                if held <= left or found.st_atime > before:
                    break
                about = _Object(found.st_size, found.st_mtime_ns)
                _replace(Path(path), partial(_write_placeholder, about=about))
                held -= found.st_size
        _uncounted[key] = min(most - held - needed, int(_UNCOUNTED_PART * most))


def _downloaded_files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _downloaded_files(entry.path)
            elif entry.name != _ABOUT:
                found = entry.stat(follow_symlinks=False)
                if found.st_size and _is_downloaded(found):
                    yield entry.path, found


# Requests.


def _store(place: _Address) -> Any:
    import fsspec
    from fsspec.config import conf

    package, extra = _STORES[place.scheme]
    options: dict[str, Any] = {}
    if place.scheme == "hf":
        if "token" not in conf.get("hf", {}):
            options["token"] = None if sends_token() else False
        if endpoint := os.environ.get("HF_ENDPOINT"):
            options["endpoint"] = endpoint.rstrip("/")
    if place.scheme in ("s3", "s3a"):  # `_ask` repeats requests
        given = conf.get(place.scheme, {}).get("config_kwargs", {})
        options["config_kwargs"] = {"retries": {"max_attempts": 0}} | given
    try:
        store = fsspec.filesystem(place.scheme, **options)
    except ImportError:
        raise PlatformError(
            f"{package} is not installed, which reads {place.scheme}://",
            where=place.url,
            expected="the package of the store",
            remedy=f'pip install "{extra}"',
        ) from None
    if place.scheme in ("s3", "s3a"):
        store.retries = 1
    return store


def _call(store: Any, url: str, seconds: float, name: str, *args: Any, **options: Any) -> Any:
    """Call a method of a file system, and stop it after some seconds."""
    from fsspec.asyn import sync

    if not store.async_impl:
        return _call_within(partial(getattr(store, name), *args, **options), url, seconds)
    method = partial(sync, store.loop, getattr(store, f"_{name}"), *args, timeout=seconds)
    began = time.monotonic()
    try:
        return method(**options)
    except TimeoutError:
        if time.monotonic() - began < seconds:
            raise
        raise _too_slow(url, seconds) from None


def _call_within(function: Callable[[], _Result], url: str, seconds: float) -> _Result:
    result: Future[_Result] = Future()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():
            raise
        raise _too_slow(url, seconds) from None


def _too_slow(url: str, seconds: float) -> StoreError:
    return StoreError(
        f"the store has not finished its answer after {seconds:.0f} s",
        where=url,
        expected=f"a listing within {_LISTING_S:.0f} s, objects at {_LEAST_RATE} bytes a second",
        remedy="check the connection, or name a prefix further down",
    )


def _ask(url: str, request: Callable[[], _Result]) -> _Result:
    """Send a request, and repeat it unless the error is final."""
    for wait in (*_WAITS, None):
        try:
            return request()
        except (FileNotFoundError, OmnidataError):
            raise
        except Exception as error:  # each store's package has errors of its own
            if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
                raise
            names = {kind.__name__ for kind in type(error).__mro__}
            if isinstance(error, PermissionError) or names & _NO_ACCESS:
                raise StoreError(
                    f"the store denies access ({_error_line(error)})",
                    where=url,
                    expected="credentials that may list and read the data",
                    remedy="set up credentials for the store's own tools (docs/object_stores.md)",
                ) from None
            if wait is None:
                raise StoreError(
                    f"the store does not answer, {len(_WAITS) + 1} attempts ({_error_line(error)})",
                    where=url,
                    expected="a store that can be reached",
                    remedy="check the connection, and repeat the command",
                ) from None
        time.sleep(wait * random.uniform(0.7, 1.3))  # not all workers at once
    raise AssertionError("unreachable")


def _error_line(error: Exception) -> str:
    """Return an error in one line, without the queries of URLs, which may be signed."""
    line = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {_QUERY.sub('', line)[:200]}".removesuffix(": ")
