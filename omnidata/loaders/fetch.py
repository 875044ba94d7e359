"""Download a task's data from its publishers, into a folder that is complete or absent.

    FOLDER/source.json   dataset, commit, time, licence and the downloaded files
    FOLDER/data/         the files; archives are unpacked in place, into a folder of their name

An interrupted download leaves a hidden folder beside it, and the next call resumes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from omnidata.errors import DataError, OmnidataError
from omnidata.loaders import archives, buckets, hub, transfers
from omnidata.loaders.fetch_plan import (
    FORMAT,
    SOURCE,
    FetchPlan,
    bucket_and_folder,
    fetched_folder,
)
from omnidata.loaders.transfers import RemoteFile
from omnidata.remote import sends_token
from omnidata.storage import (
    PLAN,
    StagedFolder,
    holds_only,
    read_json,
    write_json,
)
from omnidata.types import Progress

DATA: Final = "data"

_DONE: Final = ".done.json"
_PARTS: Final = ".parts"
_MOVING: Final = "moving"
_UNPACKED: Final = "unpacked"
"""States of an archive: its files are being moved to their place; it is removed."""


def fetch(
    plan: FetchPlan,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Download the files of a plan, verify their hashes, and unpack archives.

    Args:
        plan: of `plan_fetch`.
        out: the folder, new; one in omnidata's cache if None.
        overwrite: replace what another call has fetched there.
        progress: called with the bytes received and their total.

    Returns:
        The folder with the files: `data` in `out`.

    Raises:
        UsageError: `out` cannot be the place, or holds something else.
        DataError: a file came otherwise than announced, an archive is broken or hostile, the disk
            is full, or the server cannot be reached. What was whole is kept.
    """
    folder = out or fetched_folder(plan.task, plan.publication.name)
    if _is_fetched(plan, folder):
        return folder / DATA
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    missing = _missing(plan, unfinished)
    unpacked_too = filter(plan.is_archive, missing)
    transfers.check_room(sum(each.size for each in (*missing, *unpacked_too)), folder)
    with FetchStaging(folder, overwrite=overwrite, inputs=[]) as staging, staging.writing():
        about = plan.describe()
        staging.keep(about, ours=staging.is_ours(staging.path))
        data = staging.path / DATA
        data.mkdir(exist_ok=True)
        hashes = _download(plan, staging.path, progress)
        unpacked = _unpack_all(plan, staging.path, hashes, progress)
        about["date"] = datetime.now(UTC).isoformat(timespec="seconds")
        about["files"] = [
            {**each, "sha256": hashes[each["path"]], **unpacked.get(each["path"], {})}
            for each in about["files"]
        ]
        write_json(staging.path / SOURCE, about)
        shutil.rmtree(staging.path / _PARTS, ignore_errors=True)
        staging.move()
    return folder / DATA


def _missing(plan: FetchPlan, staged: Path) -> list[RemoteFile]:
    """Return the files to download: a file that has its name already was checked."""
    unpacked = read_json(staged / _DONE)

    def is_here(file: RemoteFile) -> bool:
        path = staged / DATA / file.path
        return file.path in unpacked or (path.is_file() and path.stat().st_size == file.size)

    return [each for each in plan.files if not is_here(each)]


def _download(plan: FetchPlan, staged: Path, progress: Progress) -> dict[str, str]:
    """Download the files that are missing; return the SHA-256 of all by their paths."""
    data, missing = staged / DATA, _missing(plan, staged)
    received = plan.bytes - sum(each.size for each in missing)
    published = plan.remote.sha256
    hashes = {path: about["sha256"] for path, about in read_json(staged / _DONE).items()}
    hashes |= {each.path: each.digest for each in plan.files if each.kind == "sha256"}

    def get(file: RemoteFile, count: Callable[[int], None]) -> None:
        target = data / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        _receive(plan, file, part, staged / _PARTS / "large", count)
        transfers.check_digest(part, file, plan.where)
        if sha256 := published.get(file.path):
            transfers.check_digest(part, replace(file, kind="sha256", digest=sha256), plan.where)
        if file.path not in hashes:
            hashes[file.path] = transfers.digest_of(part, "sha256")
        part.replace(target)

    def advance(size: int) -> None:
        nonlocal received
        received += size
        progress(min(received, plan.bytes), plan.bytes)

    advance(0)
    transfers.download_files(missing, get, plan.where, advance)
    earlier = [each.path for each in plan.files if each.path not in hashes]
    return hashes | {path: transfers.digest_of(data / path, "sha256") for path in earlier}


def _receive(
    plan: FetchPlan, file: RemoteFile, part: Path, large: Path, count: Callable[[int], None]
) -> None:
    """Download a file, or the rest of one.

    Args:
        plan: of the file.
        file: to download.
        part: its place until it has been checked.
        large: a folder for files that the Hub serves by a protocol of its own.
        count: called with the bytes received since the last call.
    """
    if plan.place.startswith("gs://"):
        buckets.download(*bucket_and_folder(plan.place), file, part, count)
        return
    from huggingface_hub import constants, hf_hub_download, hf_hub_url

    address = hub.HubAddress(plan.place.removeprefix("hf://"), plan.commit)
    about: Any = {"repo_type": "dataset", "revision": plan.commit, "endpoint": hub.endpoint()}
    with hub.hub_errors(address):
        if file.size > constants.MAX_HTTP_DOWNLOAD_SIZE:
            about |= {"token": sends_token(), "tqdm_class": transfers.silent_bar(count)}
            Path(hf_hub_download(address.name, file.path, local_dir=large, **about)).replace(part)
            return
        url = hf_hub_url(address.name, file.path, **about)
        transfers.download_file(url, part, file.size, count, **hub.auth_headers())


# Archives.


def _unpack_all(
    plan: FetchPlan, staged: Path, hashes: Mapping[str, str], progress: Progress
) -> dict[str, dict[str, Any]]:
    """Unpack each archive into a folder of its name where it lies, and remove it.

    It is unpacked beside the data and moved when it is whole: an interrupted call begins it anew,
    or goes on moving.

    Returns:
        Of each archive and part its hash, its state and the number of files that were in it.

    Raises:
        DataError: it is broken or hostile, or holds a file that is there already.
        OSError: the disk is full, or cannot be written.
    """
    done, size = read_json(staged / _DONE), 0

    def advance(written: int) -> None:
        nonlocal size
        size += written
        progress(min(size, plan.bytes), plan.bytes)

    def note(path: str, state: str, **about: Any) -> None:
        known = done.get(path, {"sha256": hashes[path]})
        done[path] = {**known, "state": state, **about}
        write_json(staged / _DONE, done)

    for number, file in enumerate(plan.archives_to_unpack):
        archive, parts = staged / DATA / file.path, staged / _PARTS / str(number)
        if file.path not in done:
            note(file.path, _MOVING, members=_unpack(archive, parts, plan.where, file, advance))
        if done[file.path]["state"] == _MOVING:
            _move(parts, archive.parent, plan.where)
            for part in archives.parts_of(archive):
                note(part.relative_to(staged / DATA).as_posix(), _UNPACKED)
        for path, about in done.items():
            if about["state"] == _UNPACKED:
                (staged / DATA / path).unlink(missing_ok=True)
    return done


def _unpack(
    archive: Path,
    parts: Path,
    where: str,
    file: RemoteFile,
    advance: Callable[[int], None],
) -> int:
    loose = parts.with_name(f"{parts.name}.loose")
    for left in (parts, loose):
        shutil.rmtree(left, ignore_errors=True)
    try:
        members = archives.unpack(archive, parts, advance)
    except OmnidataError as error:
        shutil.rmtree(parts, ignore_errors=True)
        raise DataError(
            error.what,
            where=f"{where}/{file.path}",
            expected=error.expected,
            remedy="nothing of it was kept; report it to its publisher",
        ) from None
    name = archives.stem_of(archive.name)
    if [path.name for path in parts.iterdir()] != [name]:  # else its own folder is in it
        parts.rename(loose)
        parts.mkdir()
        loose.rename(parts / name)
    return members


def _move(source: Path, target: Path, where: str) -> None:
    taken = {name.name.casefold(): name.name for name in target.iterdir()}
    for path in sorted(source.iterdir()):
        there = target / path.name
        other = taken.get(path.name.casefold())
        if other is None:
            path.rename(there)
        elif other == path.name and path.is_dir() and there.is_dir():
            _move(path, there, where)
        else:
            raise DataError(
                f"an archive holds {path.name!r:.100}, and {other!r:.100} already exists",
                where=where,
                expected="archives and files that do not overwrite each other",
                remedy="fetch a part of it with --only, or report it to its publisher",
            )


# Folders of fetched data: are they ours, and complete?


class FetchStaging(StagedFolder):
    """The folder of a download until it is complete."""

    noun = "a fetched dataset"
    work = "fetching"
    hidden = (_DONE, PLAN)

    def is_ours(self, folder: Path) -> bool:
        """Return whether the folder has the files of a download and no others."""
        if not holds_only(folder, {SOURCE, DATA, _DONE, _PARTS, PLAN}):
            return False
        if (folder / PLAN).exists() or not any(folder.iterdir()):
            return True
        source = read_json(folder / SOURCE)
        files = source.get("files", [])
        return source.get("format") == FORMAT and _holds_no_other(folder / DATA, files)


def _is_fetched(plan: FetchPlan, folder: Path) -> bool:
    """Return whether an earlier call has fetched the same files."""
    source, wanted = read_json(folder / SOURCE), json.loads(json.dumps(plan.describe()))
    if not source or not (folder / DATA).is_dir():
        return False
    fields = wanted["files"][0].keys()
    files = [{field: each.get(field) for field in fields} for each in source.get("files", [])]
    same = all(source.get(key) == wanted[key] for key in ("format", "task", "id", "commit", "only"))
    if not same or files != wanted["files"]:
        return False
    if not all(map(partial(_is_kept, folder), source["files"])):
        return False
    return len(_unpacked_files(folder / DATA, source["files"])) >= _count_members(source["files"])


def _is_kept(folder: Path, file: Mapping[str, Any]) -> bool:
    """Return whether a file is still there; one that was unpacked need not be."""
    path = folder / DATA / file["path"]
    return "state" in file or (path.is_file() and path.stat().st_size == file["size"])


def _count_members(files: Sequence[Mapping[str, Any]]) -> int:
    return sum(each.get("members", 0) for each in files)


def _unpacked_files(data: Path, files: Sequence[Mapping[str, Any]]) -> set[Path]:
    """Return the files in the folders of archives; an archive of one file may have no folder."""
    folders = {
        (data / each["path"]).with_name(archives.stem_of(PurePosixPath(each["path"]).name))
        for each in files
        if "members" in each
    }
    there = (path for folder in folders for path in (folder, *folder.rglob("*")))
    found = {path for path in there if path.exists() and not path.is_dir()}
    return found - {data / each["path"] for each in files}


def _holds_no_other(data: Path, files: Sequence[Mapping[str, Any]]) -> bool:
    unpacked = _unpacked_files(data, files)
    known = unpacked | {data / each["path"] for each in files}
    there = {path for path in data.rglob("*") if not path.is_dir()}
    return there <= known and len(unpacked) <= _count_members(files)
