"""Data on object stores: listings below a URL and ranges of bytes, through `fsspec`.

Anyone may have filled a listing: a name that is not a plain relative path is refused before use.
Every error names the URL. URLs hold no credentials: these are in the environment, or in the
configuration files of the store's own tools.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from omnidata.errors import (
    DataError,
    OmnidataError,
    PlatformError,
    StoreError,
    UsageError,
    suggestion,
)

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
"""By scheme the package that speaks to the store, and what to install for it."""
_LOCAL: Final = "file"
_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/+(.*)$", re.DOTALL)
"""One slash is enough: a URL that became a path on its way has lost the other."""
_QUERY: Final = re.compile(r"\?\S*")
_WAITS: Final = (0.2, 0.5, 1.2, 2.5)
"""Seconds before a request is sent again."""
_MOST_OBJECTS: Final = 5_000_000
_LONGEST_PART: Final = 255  # bytes of a name between slashes
_LONGEST: Final = 3072  # bytes of a whole name
_VERSIONS: Final = ("ETag", "etag", "generation", "blob_id", "md5Hash")
_TIMES: Final = ("LastModified", "last_modified", "updated", "mtime", "created")
_NO_ACCESS: Final = (
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
)
"""Classes of errors of the stores' own packages that no second request mends."""

SENDS_TOKEN: Final = "OMNIDATA_HUB_TOKEN"
"""The variable of the environment that is set where the Hub is told who asks."""

Result = TypeVar("Result")


def sends_token() -> bool:
    """Return whether requests to the Hub carry the user's token; off by default."""
    return bool(os.environ.get(SENDS_TOKEN))


@dataclass(frozen=True, slots=True)
class Address:
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

    @property
    def above(self) -> Address:
        """The path that the last part of the address lies in."""
        return replace(self, path=self.path.rpartition("/")[0])


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object of a listing.

    Attributes:
        size: in bytes.
        version: the store's id of the content.
        mtime_ns: when it was written, in nanoseconds since 1970. The fraction of a second is made
            from the version, so that size and time change with the content.
    """

    size: int
    version: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects below an address.

    Attributes:
        base: the path under which the objects are read; for the Hub it names a commit.
        objects: by their names below the address, with slashes.
    """

    base: str
    objects: Mapping[str, StoredObject]

    @property
    def digest(self) -> str:
        """Return a hash of names, sizes and versions."""
        digest = sha256()
        for name, about in sorted(self.objects.items()):
            digest.update(
                f"{name}\0{about.size}\0{about.version}\0".encode("utf-8", "surrogatepass")
            )
        return digest.hexdigest()


def local_path(text: str | Path) -> Path | None:
    """Return the path of a `file://` URL; None for anything else.

    Examples:
        >>> local_path("file:///data/omnigui")
        PosixPath('/data/omnigui')
    """
    found = _URL.match(str(text))
    if found is None or found[1].lower() != _LOCAL:
        return None
    return Path("/" + unquote(found[2]).removeprefix("localhost/"))


def is_url(text: str | Path) -> bool:
    """Return whether a text is a URL of any kind, including those of the Hub.

    Examples:
        >>> is_url("s3://bucket/omnigui"), is_url("hf://ORG/NAME"), is_url("data/omnigui")
        (True, True, False)
    """
    return _URL.match(str(text)) is not None


def address(text: str | Path) -> Address | None:
    """Return the address of a URL; None for a path.

    Raises:
        UsageError: its scheme is not supported, or it has credentials, or no bucket.

    Examples:
        >>> address("s3://bucket/omnigui/").url
        's3://bucket/omnigui'
        >>> address("data/omnigui") is None
        True
    """
    found = _URL.match(str(text))
    if found is None or len(found[1]) < 2 or Path(text).exists():
        return None
    scheme, path = found[1].lower(), found[2].strip("/")
    shown = f"{scheme}://..."
    if scheme not in _STORES:
        raise UsageError(
            "no store of objects is known by this scheme",
            where=shown,
            expected=f"one of {', '.join(f'{name}://' for name in (*_STORES, _LOCAL))}, or a path",
            remedy=suggestion(scheme, _STORES) or "download the data, and name their folder",
        )
    bucket = path.partition("/")[0]
    # A secret may hold a slash, behind which nobody would look for it.
    secret = ":" in bucket and not bucket.startswith("arn:")
    login = "@" in bucket and not scheme.startswith("abfs")
    if "?" in path or "::" in path or secret or login:
        raise UsageError(
            "a URL with credentials, a query or several stores is not opened",
            where=shown,
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
    if local := local_path(path):
        raise UsageError(
            "a path is named as it is here", where=f"{where} {path}", expected=str(local)
        )
    if (place := address(path)) is None:
        return
    raise UsageError(
        "this has to lie on a disk",
        where=f"{where} {place.url}",
        expected="a path of this machine; a run folder and other files that are written line by "
        "line, locked, moved and gone on with need a POSIX file system",
        remedy="copy it here, or write here and copy what was made (docs/object_stores.md)",
    )


def listing(place: Address) -> Listing:
    """List all objects below an address; an object itself is listed under the empty name.

    Raises:
        DataError: nothing is there, a name is unsafe, or there are too many objects.
        StoreError: the store does not answer.
        PlatformError: the package for the store is not installed.
    """
    store = _store(place)

    def find() -> tuple[str, Mapping[str, Any]]:
        store.invalidate_cache()
        base = _commit(store, place) if place.scheme == "hf" else place.path
        return base, store.find(base, detail=True)

    try:
        base, entries = _patiently(place.url, find)
    except FileNotFoundError:
        base, entries = place.path, {}
    if len(entries) > _MOST_OBJECTS:
        raise DataError(
            f"there are {len(entries):,} objects",
            where=place.url,
            expected=f"at most {_MOST_OBJECTS:,} below the data's own prefix",
            remedy="name a prefix further down",
        )
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
        objects[name] = _object(about, place, name)
    if not objects:
        raise DataError(
            "nothing is there, or it may not be listed",
            where=place.url,
            expected="a bucket and a prefix with objects below it",
            remedy="correct the URL, or check that your credentials may list it",
        )
    if "" not in objects:
        check_names(objects, place.url)
    return Listing(base, objects)


def _object(about: Mapping[str, Any], place: Address, name: str) -> StoredObject:
    size = about.get("size")
    if not isinstance(size, int) or size < 0:
        raise DataError(
            f"the store does not say how large {name!r:.200} is",
            where=place.url,
            expected="objects of a known size",
            remedy="copy the data to a store that says it",
        )
    stated = next((about[key] for key in _VERSIONS if about.get(key)), "")
    moment = _seconds(next((about[key] for key in _TIMES if about.get(key)), None))
    version = str(stated or f"{moment:.6f}").replace("\n", " ")  # no line break: no member of a zip
    return object_at(size, version, int(moment))


def object_at(size: int, version: str, second: int) -> StoredObject:
    """Return an object with the modification time that its file gets.

    Args:
        size: in bytes.
        version: changes with the content.
        second: when it was written, since 1970.
    """
    fine = int.from_bytes(sha256(f"{version} {size}".encode()).digest()[:8], "big")
    return StoredObject(size, version, second * 10**9 + fine % 10**9)


def _seconds(moment: object) -> float:
    """Return a time in seconds since 1970; one in 2001 if the store has no clock."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            moment = None
    if isinstance(moment, datetime):  # UTC where nobody says
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return float(moment) if isinstance(moment, int | float) and 0 < moment < 1 << 33 else 1e9


def check_names(names: Iterable[str], where: str) -> None:
    """Refuse names that cannot all be files of one folder on every file system.

    Args:
        names: of objects.
        where: their URL, for the message.

    Raises:
        DataError: a name leads outside or has an unsafe part, two names would be one file, or
            one is a folder of another.
    """
    folded: dict[str, str] = {}
    for name in names:
        reason = _unusable(name)
        other = folded.setdefault(name.casefold(), name)
        if not reason and other != name:
            reason = f"it differs from {other!r:.200} in the case of its letters alone"
        if reason:
            raise _bad_name(name, reason, where)
    known: dict[str, str] = {}
    for name in folded.values():
        at = name.rfind("/")
        while at > 0 and known.get(folder := name[:at].casefold()) is None:
            if folder in folded:
                raise _bad_name(folded[folder], f"{name!r:.200} would lie in it", where)
            known[folder] = name[:at]
            at = name.rfind("/", 0, at)
        if at > 0 and known[name[:at].casefold()] != name[:at]:
            other = known[name[:at].casefold()]
            raise _bad_name(name, f"a folder of it is also written {other!r:.200}", where)


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
        return "it is no Unicode"
    if max(encoded) > _LONGEST_PART or sum(encoded) + len(parts) > _LONGEST:
        return "it is longer than a file's may be"
    return ""


def _bad_name(name: str, reason: str, where: str) -> DataError:
    return DataError(
        f"the object {name!r:.200} cannot be a file of the data: {reason}",
        where=where,
        expected="names that are relative paths of files, each different from the others",
        remedy="rename or remove the object, or name a prefix without it",
    )


def read(place: Address, base: str, name: str, about: StoredObject, start: int, end: int) -> bytes:
    """Return bytes of an object, if it has not changed since it was listed.

    Args:
        place: the address of the listing.
        base: as the listing has it.
        name: of the object, below the address.
        about: its size, version and time in the listing.
        start: the first byte.
        end: the byte after the last.

    Raises:
        StoreError: the store does not answer, or the object has changed or is gone.
        PlatformError: as `listing`.
    """
    store = _store(place)
    path = f"{base}/{name}"
    url = f"{place.url}/{name}"

    def fetch() -> bytes:
        if place.scheme in ("s3", "s3a"):
            return _read_s3(store, path, about, start, end)
        # The Hub's reads megabytes ahead unless told not to.
        options = {"cache_type": "none"} if place.scheme == "hf" else {}
        content: bytes = store.cat_file(path, start=start, end=end, **options)
        # What names a commit of the Hub cannot change.
        if place.scheme != "hf":
            store.invalidate_cache()
            now = _object(store.info(path), place, name)
            if (now.size, now.version) != (about.size, about.version):
                raise _ChangedError
        return content

    try:
        content = _patiently(url, fetch)
    except (FileNotFoundError, _ChangedError) as error:
        gone = isinstance(error, FileNotFoundError)
        raise StoreError(
            "the object is gone" if gone else "the object has changed since it was listed",
            where=url,
            expected="data that stay as they are while they are read",
            remedy="give the same command again: it lists what is there now",
        ) from None
    if len(content) != end - start:
        raise StoreError(
            f"the store gave {len(content)} of {end - start} bytes",
            where=url,
            expected="as many bytes as its listing says",
            remedy="give the same command again",
        )
    return content


class _ChangedError(Exception):
    pass


def _read_s3(store: Any, path: str, about: StoredObject, start: int, end: int) -> bytes:
    """Send one request, which the store refuses if the object has changed."""
    from fsspec.asyn import sync

    bucket, _, key = path.partition("/")

    async def get() -> bytes:
        answer = await store._call_s3(
            "get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}",
            IfMatch=about.version if about.version.startswith('"') else f'"{about.version}"',
            **store.req_kw,
        )  # fmt: skip
        async with answer["Body"] as body:
            content: bytes = await body.read()
            return content

    try:
        found: bytes = sync(store.loop, get)
    except Exception as error:
        cause = error.__cause__ or error
        told = getattr(cause, "response", None) or {}
        if told.get("ResponseMetadata", {}).get("HTTPStatusCode") in (412, 416):
            raise _ChangedError from None
        raise
    return found


def _store(place: Address) -> Any:
    import fsspec
    from fsspec.config import conf

    package, extra = _STORES[place.scheme]
    options: dict[str, Any] = {}
    if place.scheme == "hf" and "token" not in conf.get("hf", {}):
        options["token"] = None if sends_token() else False
    if place.scheme == "hf" and (endpoint := os.environ.get("HF_ENDPOINT")):
        options["endpoint"] = endpoint.rstrip("/")
    if place.scheme in ("s3", "s3a"):  # `_patiently` asks again, and says so at the end
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


def _commit(store: Any, place: Address) -> str:
    found = store.resolve_path(place.path)
    about = store._api.repo_info(
        found.repo_id, revision=found.revision, repo_type=found.repo_type, token=store.token
    )
    pinned = replace(found, revision=about.sha, _raw_revision=None)
    path: str = pinned.unresolve()
    return path


def _patiently(url: str, ask: Callable[[], Result]) -> Result:
    for wait in (*_WAITS, None):
        try:
            return ask()
        except (FileNotFoundError, _ChangedError, OmnidataError):
            raise
        except Exception as error:  # each store's package has errors of its own
            names = {kind.__name__ for kind in type(error).__mro__}
            refused = isinstance(error, PermissionError) or not names.isdisjoint(_NO_ACCESS)
            if refused:
                raise StoreError(
                    f"the store gives no access ({error_line(error)})",
                    where=url,
                    expected="credentials that may list and read the data",
                    remedy="set them up as the store's own tools want them (docs/object_stores.md)",
                ) from None
            if wait is None:
                raise StoreError(
                    f"the store gives no answer, "
                    f"asked {len(_WAITS) + 1} times ({error_line(error)})",
                    where=url,
                    expected="a store that can be reached",
                    remedy="see that it can be, and give the same command again",
                ) from None
        time.sleep(wait * random.uniform(0.7, 1.3))  # not all workers at once
    raise AssertionError("unreachable")


def error_line(error: Exception) -> str:
    """Return an error of a store's package in one line, without query strings of URLs.

    Examples:
        >>> error_line(OSError("GET http://host/key?X-Amz-Signature=1 failed"))
        'OSError: GET http://host/key failed'
    """
    line = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {_QUERY.sub('', line)[:200]}".removesuffix(": ")
