"""Public buckets of Google's object store, read over HTTPS without an account."""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote, urlencode

from omnidata.errors import DataError
from omnidata.loaders.hub import RemoteFile, check_names

STORE: Final = "https://storage.googleapis.com"
_TIMEOUT_S: Final = 60.0
_CHUNK: Final = 1024**2
_MOST_PAGES: Final = 10_000
_PAGE_BYTES: Final = 64 * 1024**2
_ATTEMPTS: Final = 5


def store() -> str:
    """Where the store is: STORAGE_EMULATOR_HOST, as Google's own clients have it, or Google's."""
    return os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/") or STORE


def list_objects(bucket: str, folder: str) -> list[RemoteFile]:
    """What lies in a folder of a bucket, with the CRC32C of each; paths are relative to it.

    Raises:
        DataError: there is no such bucket or folder, the store cannot be reached, or a path is one
            that nothing is ever written to.
    """
    prefix = f"{folder}/" if folder else ""
    where = f"gs://{bucket}/{folder}"
    found: list[RemoteFile] = []
    page = ""
    for _ in range(_MOST_PAGES):
        query = {"prefix": prefix, "fields": "items(name,size,crc32c),nextPageToken"}
        address = f"{store()}/storage/v1/b/{quote(bucket, safe='')}/o?"
        if page:
            query["pageToken"] = page
        with _open(address + urlencode(query), where) as answer:
            told = _json(answer, where)
        for item in told.get("items", []):
            try:
                path, size = item["name"].removeprefix(prefix), int(item["size"])
                crc = base64.b64decode(item["crc32c"]).hex()
            except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
                raise _strange(where) from None
            if path and not path.endswith("/"):  # which is how a store has empty folders
                found.append(RemoteFile(path, size, "crc32c", crc))
        page = told.get("nextPageToken", "")
        if not page:
            break
    if not found:
        raise DataError(
            "the bucket has nothing of this name",
            where=where,
            expected="the files of the dataset",
            remedy="check the dataset's page: it may have moved",
        )
    check_names([each.path for each in found], where)
    return sorted(found, key=lambda each: each.path)


def download(
    bucket: str,
    folder: str,
    file: RemoteFile,
    target: Path,
    progress: Callable[[int], None],
) -> None:
    """Download an object; what an interrupted call has left is gone on with.

    Args:
        bucket: its name.
        folder: in it.
        file: as `list_objects` gives it.
        target: where it goes; its folder exists.
        progress: called with the bytes received since the last call.

    Raises:
        DataError: the object is not there, or the store cannot be reached.
        OSError: the disk is full, or cannot be written.
    """
    name = f"{folder}/{file.path}" if folder else file.path
    where = f"gs://{bucket}/{name}"
    address = f"{store()}/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}?alt=media"
    for attempt in range(_ATTEMPTS):
        with target.open("ab") as out:
            there = out.tell()
            if there >= file.size:
                break
            with _open(address, where, there) as answer:
                _copy(answer, out, file.size - there, progress)
            if out.tell() >= file.size:
                break
        if attempt and target.stat().st_size == there:
            break
    if target.stat().st_size != file.size:
        raise DataError(
            f"{file.path} ended after {target.stat().st_size:,} of {file.size:,} bytes",
            where=where,
            expected="the whole file",
            remedy="repeat the command: it resumes the download",
        )


def _copy(answer: IO[bytes], out: IO[bytes], most: int, progress: Callable[[int], None]) -> None:
    while most:
        try:
            block = answer.read(min(_CHUNK, most))
        except (http.client.HTTPException, ConnectionError, TimeoutError):
            return  # cut; the caller checks how much arrived
        if not block:
            return
        out.write(block)
        progress(len(block))
        most -= len(block)


@contextmanager
def _open(address: str, where: str, start: int = 0) -> Iterator[IO[bytes]]:
    request = urllib.request.Request(address, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(
            f"the store answers with status {error.code}",
            where=where,
            expected="a public object or folder",
            remedy="check the dataset's page: it may have moved, or be private now",
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise DataError(
            f"the store cannot be reached ({type(error).__name__}: {error})",
            where=where,
            expected=f"an answer from {store()}",
            remedy="repeat the command when the network is back: it resumes the download",
        ) from None
    with answer:
        if start and answer.status != 206:  # it sends the whole again
            raise _strange(where)
        yield answer


def _json(answer: IO[bytes], where: str) -> dict[str, Any]:
    try:
        told = json.loads(answer.read(_PAGE_BYTES))
    except (ValueError, RecursionError, http.client.HTTPException, OSError):
        raise _strange(where) from None
    if not isinstance(told, dict):
        raise _strange(where)
    return told


def _strange(where: str) -> DataError:
    return DataError(
        "the store's answer cannot be used",
        where=where,
        expected=f"objects as {store()} lists and serves them",
        remedy="repeat the command later; check STORAGE_EMULATOR_HOST if it is set",
    )
