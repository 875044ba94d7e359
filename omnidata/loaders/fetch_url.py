"""Download all files of a URL: into the cache, or into a folder that is complete or absent.

FOLDER/source.json   URL, time and the SHA-256 of each file
FOLDER/data/         the files, as they are on the store
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from omnidata import remote
from omnidata.loaders import hub, transfers
from omnidata.loaders.data_place import local_place
from omnidata.loaders.fetch import DATA, FetchStaging
from omnidata.loaders.fetch_plan import FORMAT, SOURCE
from omnidata.storage import copy_file, read_json, write_json
from omnidata.types import Progress

_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class UrlPlan:
    """The files of a URL.

    Attributes:
        url: of the data; of the Hub with the commit.
        count: of the files.
        bytes: of all of them.
    """

    url: str
    count: int
    bytes: int


def plan_url(url: str) -> UrlPlan:
    """List the files of a URL; none is downloaded.

    Raises:
        OmnidataError: as `omnidata.remote.list_sizes`, or `hub.resolve_commit`.
    """
    listed = url
    if address := hub.parse_address(url):
        address = replace(address, revision=hub.resolve_commit(address))
        url, below = str(address), f"/{address.below}" if address.below else ""
        listed = f"hf://datasets/{address.name}@{address.revision}{below}"
    sizes = remote.list_sizes(listed)
    return UrlPlan(url, len(sizes), sum(sizes.values()))


def fetch_url(
    plan: UrlPlan,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Download the files of a URL.

    Args:
        plan: of `plan_url`.
        out: a new folder; None for the cache, from which the URL is then read.
        overwrite: replace an earlier download in `out`.
        progress: called with the bytes that are there, and of all.

    Returns:
        The folder or file of the cache, or `data` in `out`.

    Raises:
        UsageError: `out` cannot be the place, or holds something else.
        DataError, StoreError: a file cannot be downloaded or written. Finished files are kept.
    """
    place = local_place(plan.url)
    if out is None:
        remote.fetch_all(place, progress)
        return place
    about: dict[str, Any] = {"format": FORMAT, "id": plan.url, "bytes": plan.bytes}
    about["listing"] = remote.listing_of(place)
    if _is_there(out, about):
        return out / DATA
    transfers.check_room(plan.bytes, out)
    with FetchStaging(out, overwrite=overwrite, inputs=[]) as staging, staging.writing():
        staging.keep(about, ours=staging.is_ours(staging.path))
        files = _copy_all(place, staging.path / DATA, plan.bytes, progress)
        date = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(staging.path / SOURCE, {**about, "date": date, "files": files})
        staging.move()
    return out / DATA


def _is_there(out: Path, about: dict[str, Any]) -> bool:
    source = read_json(out / SOURCE)
    return {key: source.get(key) for key in about} == about and all(
        _has_size(out / DATA / each["path"], each["size"]) for each in source.get("files", [])
    )


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _copy_all(place: Path, data: Path, total: int, progress: Progress) -> list[dict[str, Any]]:
    """Copy files of the cache, which are downloaded first; return a description of each."""
    above = place if place.is_dir() else place.parent
    files = sorted(each for each in place.rglob("*") if each.is_file()) or [place]

    def copy(path: Path) -> dict[str, Any]:
        name = path.relative_to(above)
        target, size = data / name, path.stat().st_size
        if not _has_size(target, size):  # an interrupted call has not copied it
            target.parent.mkdir(parents=True, exist_ok=True)
            remote.fetch(path)
            copy_file(path, target)
        digest = transfers.digest_of(target, "sha256")
        return {"path": name.as_posix(), "size": size, "sha256": digest}

    copied: list[dict[str, Any]] = []
    done = 0
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for each in pool.map(copy, files):
                copied.append(each)
                done += each["size"]
                progress(done, total)
        finally:
            pool.shutdown(cancel_futures=True)
    return copied
