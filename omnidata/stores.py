"""Requests to object stores through `fsspec`: listings and downloads, with limits.

Anyone may have filled a store: names, sizes and bodies are checked. Listings and downloads end
after some time, whatever the server sends. Every error names the URL.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import file_digest, md5, sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

from omnidata.errors import DataError, OmnidataError, PlatformError, StoreError

STORES: Final[Mapping[str, tuple[str, str]]] = {
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
_QUERY: Final = re.compile(r"\?\S*")

_VERSIONS: Final = (
    *("ETag", "etag", "generation", "blob_id", "md5Hash"),
    *("LastModified", "last_modified", "updated", "mtime", "created"),
)
"""What stores call the version of an object, or else its time."""
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
_MOST_PAGES: Final = 10_000
_MOST_PAGE_BYTES: Final = 64 << 20
_MOST_SIZE: Final = 1 << 50  # bytes of an object
_LONGEST_PART: Final = 255  # bytes of a name between slashes
_LONGEST: Final = 3072  # bytes of a whole name
_DEEPEST: Final = 64  # folders above a file
_MOST_LETTERS: Final = 1 << 29  # of all folders, which are held twice

_Result = TypeVar("_Result")


class Address(NamedTuple):
    """The address of data on a store.

    Attributes:
        scheme: e.g. "s3".
        path: bucket and prefix, without a slash at either end.
    """

    scheme: str
    path: str

    @property
    def url(self) -> str:
        """The address as a URL."""
        return f"{self.scheme}://{self.path}"


class StoredObject(NamedTuple):
    """The size and the version of an object.

    Attributes:
        size: in bytes.
        mtime_ns: the modification time of its file, in nanoseconds since 1970. It is a hash of the
            version and the size.
    """

    size: int
    mtime_ns: int


# Listings.


def list_objects(store: Any, place: Address) -> tuple[str, Mapping[str, StoredObject]]:
    """List all objects below an address.

    Returns:
        The path for `download`, which names a commit for the Hub, and the objects by their names
        below the address, with slashes. An object at the address itself has the empty name.

    Raises:
        DataError: nothing is there, there are too many objects, or a name or size is invalid.
        StoreError: the store does not answer, or denies access.
    """
    try:
        base, entries = _ask(place.url, partial(_entries, store, place))
    except FileNotFoundError:
        base, entries = place.path, {}
    root = base.strip("/")
    objects: dict[str, StoredObject] = {}
    for full, about in entries.items():
        name = full.lstrip("/").removeprefix(root)
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


def _entries(store: Any, place: Address) -> tuple[str, Mapping[str, Any]]:
    if place.scheme == "hf":
        return _call_within(partial(_hub_entries, store, place), place.url, _LISTING_S)
    store.invalidate_cache()
    found = _call(store, place.url, _LISTING_S, "find", place.path, detail=True)
    _check_count(len(found), place.url)
    return place.path, found


def _hub_entries(store: Any, place: Address) -> tuple[str, Mapping[str, Any]]:
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
    found: dict[str, Any] = {}
    page = f"{tree}{page}"
    for _ in range(_MOST_PAGES):
        content, page = _hub_page(store, url, page)
        try:
            for each in json.loads(content):
                if each["type"] == "file":
                    found[str(each["path"])] = {"size": each["size"], "blob_id": each["oid"]}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise _bad_listing(url, "a page of the listing is no list of files") from None
        _check_count(len(found), url)
        if not page:
            return found
        if not page.startswith(tree):
            raise _bad_listing(url, "the next page of the listing is on another server")
    raise _bad_listing(url, f"the listing has more than {_MOST_PAGES:,} pages")


def _hub_page(store: Any, url: str, page: str) -> tuple[bytes, str]:
    """Return the content of a page, and the URL of the next one; empty if it is the last."""
    from huggingface_hub.utils._http import get_session, hf_raise_for_status

    content = bytearray()
    with get_session().stream("GET", page, headers=store._api._build_hf_headers()) as answer:
        for block in answer.iter_bytes():
            content += block
            if len(content) > _MOST_PAGE_BYTES:
                raise _bad_listing(
                    url, f"a page of the listing has more than {_MOST_PAGE_BYTES:,} bytes"
                )
    hf_raise_for_status(answer)
    return bytes(content), str(answer.links.get("next", {}).get("url") or "")


def _bad_listing(url: str, what: str) -> DataError:
    return DataError(
        what,
        where=url,
        expected="files as the Hub lists them",
        remedy="check HF_ENDPOINT, or name another revision",
    )


def _check_count(count: int, url: str) -> None:
    if count > _MOST_OBJECTS:
        raise DataError(
            f"there are {count:,} objects",
            where=url,
            expected=f"at most {_MOST_OBJECTS:,} below the data's own prefix",
            remedy="name a prefix further down",
        )


def _object(about: Mapping[str, Any], url: str, name: str) -> StoredObject:
    size = about.get("size")
    if not isinstance(size, int) or not 0 <= size < _MOST_SIZE:
        raise DataError(
            f"the store reports no valid size of {name!r:.200}",
            where=url,
            expected=f"a number of bytes from 0 to {_MOST_SIZE:,}",
            remedy="remove the object, or copy the data to another store",
        )
    version = next((about[key] for key in _VERSIONS if about.get(key)), None)
    if isinstance(version, datetime):  # of `info`, where `find` has a number
        version = version.timestamp()
    stamp = int.from_bytes(sha256(f"{version} {size}".encode()).digest()[:8], "big")
    return StoredObject(size, 10**18 + stamp % 10**17)  # in the years 2001 to 2004


def _check_names(names: Iterable[str], url: str) -> None:
    """Refuse names that cannot all be files of one folder on every file system."""
    folded: dict[str, str] = {}
    for name in names:
        reason = name_fault(name)
        other = folded.setdefault(name.casefold(), name)
        if not reason and other != name:
            reason = f"it differs from {other!r:.200} only in upper and lower case"
        if reason:
            raise _bad_name(name, reason, url)
    folders: dict[str, str] = {}
    letters = 0
    for name in folded.values():
        at = name.rfind("/")
        while at > 0 and folders.get(folder := name[:at].casefold()) is None:
            if folder in folded:
                raise _bad_name(folded[folder], f"it is also the folder of {name!r:.200}", url)
            folders[folder] = name[:at]
            letters += at
            if letters > _MOST_LETTERS:
                reason = f"with it, all folders have more than {_MOST_LETTERS:,} letters"
                raise _bad_name(name, reason, url)
            at = name.rfind("/", 0, at)
        if at > 0 and folders[name[:at].casefold()] != name[:at]:
            other = folders[name[:at].casefold()]
            raise _bad_name(name, f"a folder of it is also written {other!r:.200}", url)


def name_fault(name: str) -> str:
    """Return why a name cannot be the path of a file in a folder; empty if it can."""
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
    if len(parts) - 1 > _DEEPEST:
        return f"it lies in more than {_DEEPEST} folders"
    return ""


def _bad_name(name: str, reason: str, url: str) -> DataError:
    return DataError(
        f"the object {name!r:.200} cannot be a file of the data: {reason}",
        where=url,
        expected="names that are relative paths of files, each different from the others",
        remedy="rename or remove the object, or name a prefix without it",
    )


# Downloads.


def download(
    store: Any, place: Address, base: str, name: str, path: Path, about: StoredObject
) -> None:
    """Download an object into a file, if it is still the object that was listed.

    Args:
        store: of `open_store`.
        place: the address of the listing.
        base: as `list_objects` returned it.
        name: of the object below the address.
        path: of the file.
        about: the size and version in the listing.

    Raises:
        StoreError: the store does not answer, or returns it too slowly, in another size or version.
        OSError: the file cannot be written.
    """
    url = f"{place.url}/{name}"
    try:
        _ask(url, partial(_copy, store, place.scheme, f"{base}/{name}", url, path, about))
    except FileNotFoundError:
        raise _change_error(url, "the object is gone") from None


def _copy(store: Any, scheme: str, name: str, url: str, path: Path, about: StoredObject) -> None:
    from fsspec.callbacks import Callback

    def check(announced: int | None, came: int) -> None:
        if max(announced or 0, came) > about.size:
            raise _change_error(
                url, f"the store sends more than the {about.size} bytes that it listed"
            )

    seconds = _PATIENCE_S + about.size / _LEAST_RATE
    get_file = partial(
        _call, store, url, seconds, "get_file", name, callback=Callback(hooks={"bound": check})
    )
    if scheme == "hf":  # a commit cannot change; a block size of 0 streams
        with path.open("wb") as file:
            get_file(outfile=file, block_size=0)
    else:
        get_file(lpath=str(path))
    if (came := path.stat().st_size) != about.size:
        raise _change_error(url, f"the store returned {came} of {about.size} bytes")
    if scheme != "hf" and not _is_md5(path, about):
        store.invalidate_cache()
        if _object(_call(store, url, seconds, "info", name), url, name) != about:
            raise _change_error(url, "the object has changed since it was listed")


def _is_md5(path: Path, about: StoredObject) -> bool:
    """Return whether the version is the MD5 of the content, as S3 has it for most objects."""
    with path.open("rb") as file:
        digest = file_digest(file, partial(md5, usedforsecurity=False)).hexdigest()
    return _object({"size": about.size, "ETag": f'"{digest}"'}, "", "") == about


def _change_error(url: str, what: str) -> StoreError:
    return StoreError(
        what,
        where=url,
        expected="data that do not change while they are read",
        remedy="repeat the command: it lists the data again",
    )


# Requests.


def open_store(place: Address, *, token: bool) -> Any:
    """Return the file system of a store.

    Args:
        place: an address on it.
        token: whether requests to the Hub carry the user's token.

    Raises:
        PlatformError: the package for the store is not installed.
        StoreError: its configuration is incomplete.
    """
    import fsspec
    from fsspec.config import conf

    package, extra = STORES[place.scheme]
    options: dict[str, Any] = {}
    if place.scheme == "hf":
        if "token" not in conf.get("hf", {}):
            options["token"] = None if token else False
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
    except Exception as error:  # each package checks its own configuration
        raise StoreError(
            f"{package} cannot be set up ({_error_line(error)})",
            where=place.url,
            expected="the configuration that the store's own tools use",
            remedy="correct its environment variables or files (docs/object_stores.md)",
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
            denied = getattr(error, "status_code", None) in (401, 403)  # Azure's
            if denied or isinstance(error, PermissionError) or names & _NO_ACCESS:
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
