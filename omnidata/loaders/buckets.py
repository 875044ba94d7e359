"""Public buckets of Google's object store, read over HTTPS without an account."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from omnidata.errors import DataError
from omnidata.loaders import transfers
from omnidata.loaders.transfers import RemoteFile

STORE: Final = "https://storage.googleapis.com"


def store() -> str:
    """Return the store's URL: STORAGE_EMULATOR_HOST, as Google's clients have it, or Google's."""
    return os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/") or STORE


def list_objects(bucket: str, folder: str) -> list[RemoteFile]:
    """Return the objects in a folder of a bucket, with the CRC32C of each.

    Returns:
        Files with paths relative to the folder.

    Raises:
        DataError: there is no such bucket or folder, the store cannot be reached, or a path is one
            that nothing is ever written to.
    """
    prefix = f"{folder}/" if folder else ""
    where = f"gs://{bucket}/{folder}"
    address = f"{store()}/storage/v1/b/{quote(bucket, safe='')}/o?"
    query = {"prefix": prefix, "fields": "items(name,size,crc32c),nextPageToken"}

    def following(_: Any, page: Any) -> str:
        token = page.get("nextPageToken")
        return address + urlencode({**query, "pageToken": token}) if token else ""

    def read(page: Any) -> list[RemoteFile]:
        found = []
        for item in page.get("items", []):
            path, digest = item["name"].removeprefix(prefix), base64.b64decode(item["crc32c"])
            if path and not path.endswith("/"):  # which is how a store has empty folders
                found.append(RemoteFile(path, int(item["size"]), "crc32c", digest.hex()))
        return found

    with _store_errors(where):
        pages = transfers.get_pages(address + urlencode(query), following)
        found = transfers.collect_files(pages, read)
    if not found:
        raise DataError(
            "the bucket has nothing of this name",
            where=where,
            expected="the files of the dataset",
            remedy="check the dataset's page: it may have moved",
        )
    transfers.check_names([each.path for each in found], where)
    return found


def download(
    bucket: str, folder: str, file: RemoteFile, target: Path, count: Callable[[int], None]
) -> None:
    """Download an object, or the rest of one.

    Args:
        bucket: its name.
        folder: in it.
        file: as `list_objects` gives it.
        target: an interrupted call may have left its start there; its folder exists.
        count: called with the bytes received since the last call.

    Raises:
        DataError: the object is not there, or the store cannot be reached.
        OSError: the disk is full, or cannot be written.
    """
    name = f"{folder}/{file.path}" if folder else file.path
    url = f"{store()}/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}?alt=media"
    with _store_errors(f"gs://{bucket}/{name}"):
        transfers.download_file(url, target, file.size, count)


@contextmanager
def _store_errors(where: str) -> Iterator[None]:
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except DataError:
        raise
    except HfHubHTTPError as error:
        raise DataError(
            f"the store answers with status {error.response.status_code}",
            where=where,
            expected="a public object or folder",
            remedy="check the dataset's page: it may have moved, or be private now",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"the store's answer cannot be used: {transfers.first_line(error)}",
            where=where,
            expected=f"objects as {store()} lists and serves them",
            remedy="repeat the command later; check STORAGE_EMULATOR_HOST if it is set",
        ) from None
    except Exception as error:
        if reason := transfers.network_error(error):
            raise DataError(
                f"the store cannot be reached ({reason})",
                where=where,
                expected=f"an answer from {store()}",
                remedy="repeat the command when the network is back: it resumes the download",
            ) from None
        raise
