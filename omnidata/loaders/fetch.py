"""Download a task's data from its publishers, into a folder that is complete or absent.

    FOLDER/source.json   dataset, commit, time, licence and the downloaded files
    FOLDER/data/         the files; archives are unpacked in place, into a folder of their name

An interrupted download leaves a hidden folder beside it, and the next call resumes.
"""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from omnidata import registry, remote
from omnidata.errors import DataError, OmnidataError, PluginError, UsageError, suggestion
from omnidata.loaders import archives, buckets, hub, transfers
from omnidata.loaders.transfers import RemoteFile, in_bytes
from omnidata.remote import cache_folder, sends_token
from omnidata.storage import (
    PLAN,
    StagedFolder,
    is_unfinished,
    read_json,
    write_json,
)
from omnidata.types import Progress, Publication, Remote

SOURCE: Final = "source.json"
DATA: Final = "data"
AUTO: Final = "auto"
FORMAT: Final = 1

_DONE: Final = ".done.json"
_PARTS: Final = ".parts"
_GONE: Final = "unpacked"


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The files that a download would fetch.

    Attributes:
        task: the benchmark of the data.
        publication: of the task's `sources`.
        place: of its files, "hf://ORG/NAME" or "gs://BUCKET/FOLDER".
        commit: of the Hub; empty in a bucket, which has none.
        files: to download.
        left_out: the number of other files.
        only: the user's patterns; empty for all that the task needs.
    """

    task: str
    publication: Publication
    place: str
    commit: str
    files: Sequence[RemoteFile]
    left_out: int
    only: Sequence[str] = ()

    @property
    def bytes(self) -> int:
        """Size of all files to download, in bytes."""
        return sum(each.size for each in self.files)

    @property
    def archives_to_unpack(self) -> Sequence[RemoteFile]:
        """Archives that are unpacked; of an archive in parts, the last part."""
        patterns = _remote(self.publication).archives
        chosen = [each for each in self.files if _fits(each.path, patterns)]
        return [each for each in chosen if not archives.is_part(each.path)]

    @property
    def server(self) -> str:
        """The server of the files."""
        return buckets.store() if self.place.startswith("gs://") else hub.endpoint()

    @property
    def where(self) -> str:
        """The place, with the commit."""
        return f"{self.place}@{self.commit}" if self.commit else self.place

    def describe(self) -> dict[str, Any]:
        """Return the plan as a JSON object, as in `source.json`."""
        remote = _remote(self.publication)
        return {
            "format": FORMAT,
            "task": self.task,
            "name": self.publication.name,
            "url": self.publication.url,
            "id": self.place,
            "server": self.server,
            "revision": remote.revision if self.commit else "",
            "commit": self.commit,
            "licence": self.publication.licence,
            "gated": remote.gated,
            "note": remote.note,
            "only": list(self.only),
            "bytes": self.bytes,
            "files": [asdict(each) for each in self.files],
        }


def _remote(publication: Publication) -> Remote:
    assert publication.remote is not None  # a plan is only made of one that has
    return publication.remote


def sources_of(task: str) -> tuple[str, Sequence[Publication]]:
    """Return the task whose data a task reads, and its publications.

    Raises:
        UsageError: there is no such task.
    """
    owner = registry.get_benchmark(task).data_of
    return owner, registry.get_benchmark(owner).card.sources


def default_sources(task: str) -> Sequence[Publication]:
    """Return the sources that `fetch` takes if none is named.

    Returns:
        Of the sources that a program can fetch the first for each choice of tags of steps: one
        where they all publish the same data.
    """
    _, sources = sources_of(task)
    found: dict[frozenset[tuple[str, str]], Publication] = {}
    for one in sources:
        if one.remote:
            found.setdefault(frozenset(one.where.items()), one)
    return list(found.values())


def choose_source(task: str, name: str | None = None) -> Publication:
    """Return the publication to fetch.

    Args:
        task: the benchmark.
        name: of the publication; it may be left out where there is only one that can be fetched.

    Raises:
        UsageError: there is none of the name, or several and none is named.
        DataError: a program cannot fetch it; the remedy says how a person does.
    """
    owner, sources = sources_of(task)
    if not sources:
        raise DataError(
            registry.get_benchmark(owner).card.unpublished
            or "the task has no source to fetch data from",
            where=task,
            expected=f"a source of the data of {owner}",
            remedy="name a folder with the data",
        )
    known = {one.name.casefold(): one for one in sources}
    if name is not None and name.casefold() not in known:
        raise UsageError(
            f'{owner} has no source "{name}"',
            where=f"--source {name}",
            expected=f"one of {', '.join(one.name for one in sources)}",
            remedy=suggestion(name, [one.name for one in sources]),
        )
    found = default_sources(task) if name is None else [known[name.casefold()]]
    if len(found) > 1:
        raise UsageError(
            f"the data of {owner} have several sources",
            where=task,
            expected=f"--source and one of {', '.join(one.name for one in found)}",
        )
    if not found or found[0].remote is None:
        by_hand = [f"{one.url} ({one.by_hand})" for one in found or sources]
        raise DataError(
            "these data cannot be fetched by a program",
            where=task,
            expected="files on the Hub or in a public bucket",
            remedy=f"download them by hand: {'; '.join(by_hand)}",
        )
    return found[0]


def plan_fetch(
    task: str,
    *,
    source: str | None = None,
    revision: str | None = None,
    only: Sequence[str] = (),
) -> FetchPlan:
    """Plan a download; no content is requested.

    Args:
        task: the benchmark.
        source: a publication's name, where the task has several.
        revision: a commit, a tag or a branch, in place of the task's own.
        only: patterns; a file comes if it fits one of them.

    Raises:
        UsageError: there is no such task or source, or a bucket is asked for a revision.
        PluginError: the task names a place of another kind.
        DataError: nothing is there, or fits; the server cannot be reached, or wants a licence to be
            accepted; see also `choose_source`.
    """
    owner, _ = sources_of(task)
    publication = choose_source(task, source)
    if hub.is_offline():
        there = ", ".join(str(place) for place in in_cache(task).values())
        raise DataError(
            "HF_HUB_OFFLINE=1 forbids listing the revisions",
            where=task,
            expected="a network",
            remedy=f"unset HF_HUB_OFFLINE; in the cache is {there or 'nothing of it'}",
        )
    remote = _remote(publication)
    if remote.place.startswith("gs://"):
        if revision is not None:
            raise UsageError(
                "a bucket has no revisions to choose from",
                where=f"--revision {revision}",
                expected="a source on the Hub",
                remedy="leave it out",
            )
        place, commit = remote.place, ""
        listed = buckets.list_objects(*_bucket(place))
    else:
        named = _hub_address(remote, owner)
        commit = hub.resolve_commit(replace(named, revision=revision or remote.revision))
        place, listed = f"hf://{named.name}", hub.list_files(replace(named, revision=commit))
    usable = [each for each in listed if not transfers.is_hidden(each.path)]
    wanted = [each for each in usable if not remote.files or _fits(each.path, remote.files)]
    files = [each for each in wanted if not only or _fits(each.path, only)]
    if not files:
        some = [each.path for each in (wanted or usable)[:5]]
        raise DataError(
            "no file matches" if usable else "it is empty",
            where=f"{place}{f'@{commit}' if commit else ''}",
            expected=f"files like {', '.join(only or remote.files or ['any'])}",
            remedy=f"the revision has: {', '.join(some)}, ..." if some else "name another revision",
        )
    return FetchPlan(owner, publication, place, commit, files, len(listed) - len(files), only)


def _hub_address(remote: Remote, owner: str) -> hub.HubAddress:
    named = hub.parse_address(remote.place)
    if named is None:
        raise PluginError(
            f"the source of {owner} cannot be fetched",
            where=f"sources of {owner}: {remote.place!r:.200}",
            expected="hf://datasets/ORG/NAME or gs://BUCKET/FOLDER",
        )
    return hub.HubAddress(named.name)


def _fits(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _bucket(place: str) -> tuple[str, str]:
    bucket, _, folder = place.removeprefix("gs://").partition("/")
    return bucket, folder.strip("/")


class FetchStaging(StagedFolder):
    """The folder of a download until it is complete."""

    noun = "a fetched dataset"
    work = "fetching"
    hidden = (_DONE, PLAN)

    def is_ours(self, folder: Path) -> bool:
        """Return whether the folder has the files of a download and no others."""
        if folder.is_symlink() or not folder.is_dir():
            return False
        names = {path.name for path in folder.iterdir()}
        own = {SOURCE, DATA, _DONE, _PARTS, PLAN}
        if not all(name in own or is_unfinished(name) for name in names):
            return False
        source = read_json(folder / SOURCE)
        if not names or PLAN in names:
            return True
        return source.get("format") == FORMAT and _holds_no_other(
            folder / DATA, source.get("files", [])
        )


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
    if is_fetched(plan, folder):
        return folder / DATA
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    packed = _remote(plan.publication).archives
    missing = _missing(plan, unfinished)
    transfers.check_room(sum(e.size * (1 + _fits(e.path, packed)) for e in missing), folder)
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


def is_fetched(plan: FetchPlan, folder: Path) -> bool:
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
    return len(_unpacked_files(folder / DATA, source["files"])) >= _members(source["files"])


def _is_kept(folder: Path, file: Mapping[str, Any]) -> bool:
    """Whether a file is there still; one that was unpacked is not meant to be."""
    path = folder / DATA / file["path"]
    return "state" in file or (path.is_file() and path.stat().st_size == file["size"])


def _members(files: Sequence[Mapping[str, Any]]) -> int:
    return sum(each.get("members", 0) for each in files)


def _unpacked_files(data: Path, files: Sequence[Mapping[str, Any]]) -> set[Path]:
    folders = {
        (data / each["path"]).with_name(archives.stem_of(PurePosixPath(each["path"]).name))
        for each in files
        if "members" in each
    }
    # An archive of one file of its own name has no folder.
    there = (path for folder in folders for path in (folder, *folder.rglob("*")))
    found = {path for path in there if path.exists() and not path.is_dir()}
    return found - {data / each["path"] for each in files}


def _holds_no_other(data: Path, files: Sequence[Mapping[str, Any]]) -> bool:
    unpacked = _unpacked_files(data, files)
    known = unpacked | {data / each["path"] for each in files}
    there = {path for path in data.rglob("*") if not path.is_dir()}
    return there <= known and len(unpacked) <= _members(files)


def _missing(plan: FetchPlan, staged: Path) -> list[RemoteFile]:
    """Return the files to download. A file has its name once it has been checked."""
    unpacked = read_json(staged / _DONE)

    def is_here(file: RemoteFile) -> bool:
        path = staged / DATA / file.path
        return file.path in unpacked or (path.is_file() and path.stat().st_size == file.size)

    return [each for each in plan.files if not is_here(each)]


def _download(plan: FetchPlan, staged: Path, progress: Progress) -> dict[str, str]:
    """Download the files that are missing; return the SHA-256 of all by their paths."""
    data, missing = staged / DATA, _missing(plan, staged)
    received = plan.bytes - sum(each.size for each in missing)
    published = _remote(plan.publication).sha256
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
        buckets.download(*_bucket(plan.place), file, part, count)
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
            note(file.path, "moving", members=_unpack(archive, parts, plan.where, file, advance))
        if done[file.path]["state"] == "moving":
            _move(parts, archive.parent, plan.where)
            for part in archives.parts_of(archive):
                note(part.relative_to(staged / DATA).as_posix(), _GONE)
        for path, about in done.items():
            if about["state"] == _GONE:
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


# The cache, `auto`, and the one way from what a user names to a path.


def fetched_folder(task: str, name: str) -> Path:
    """Return the cache folder of a task's publication."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.").lower()
    return cache_folder() / "data" / task / safe


def in_cache(task: str) -> Mapping[str, Path]:
    """Return the cached folders of a task's sources, by the name of the source."""
    owner, sources = sources_of(task)
    places = {one.name: fetched_folder(owner, one.name) for one in sources}
    return {name: at for name, at in places.items() if (at / SOURCE).is_file()}


def local_place(
    data: str | Path,
    task: str | None = None,
    notice: Callable[[str], None] = lambda line: None,
    progress: Progress = lambda done, total: None,
    *,
    folder: Path = Path(),
) -> Path:
    """Resolve DATA to a path or URL: a path, a URL, `hf://ORG/NAME...`, or `auto`.

    A dataset of the Hub is downloaded into the Hub's own cache, which other programs share; of one
    with more than `hub.LARGE` bytes, as of data on any other store, only what is read is fetched
    (`omnidata.remote`).

    `auto` is what the cache has of the task; where it has nothing, and the task has one source of
    no more than `hub.LARGE` bytes, that is fetched first.

    Args:
        data: as the user wrote it. A file or folder that is called `auto` is that file or folder.
        task: the benchmark, which `auto` needs.
        notice: called with a line about source and size of a download.
        progress: called with the bytes received and their total.
        folder: that relative paths start from.

    Raises:
        UsageError: `auto` without a task, or the task has several sources.
        DataError: as `hub.snapshot`, `plan_fetch` and `fetch`; or the cache has several sources.
    """
    place = remote.get(_resolve(data, task, notice, progress, folder), beside=folder)
    if hub.is_name(str(data)) and not place.exists():
        raise DataError(
            "there is no such file or folder",
            where=str(data),
            expected="an existing path",
            remedy=f"correct the path; for a dataset of the Hub, write hf://{data}",
        )
    return place


def _resolve(
    data: str | Path,
    task: str | None,
    notice: Callable[[str], None],
    progress: Progress,
    folder: Path,
) -> str | Path:
    if address := hub.parse_address(data):
        try:
            return hub.snapshot(address, notice)
        except hub.TooLargeError as error:
            notice(f"{error.what}: what is read is fetched when it is read")
            return error.url
    if str(data) != AUTO or (folder / data).exists():
        return data
    if not task:
        raise UsageError(
            "auto means the data of a task, and no task is named",
            where=AUTO,
            expected="a task before it: omnidata info TASK auto",
        )
    found = in_cache(task)
    if len(found) > 1:
        raise DataError(
            "several sources of the task are in the cache",
            where=f"{task} {AUTO}",
            expected="one of them",
            remedy=f"name it: {', '.join(str(place / DATA) for place in found.values())}",
        )
    if found:
        (place,) = found.values()
        source = read_json(place / SOURCE)
        only = ", ".join(map(str, source.get("only") or ()))
        notice(
            f"{task} {AUTO} is {source.get('id')}@{source.get('commit') or 'none'} in {place}"
            + (f"; a part of it: fetched with --only {only}" if only else "")
        )
        return place / DATA
    plan = plan_fetch(task)
    notice("\n".join(announce(plan)))
    if plan.bytes > hub.LARGE:
        raise UsageError(
            f"the download has {in_bytes(plan.bytes)}",
            where=f"{task} {AUTO}",
            expected=f"at most {in_bytes(hub.LARGE)} without a request",
            remedy=f"request the download: omnidata fetch {task} --yes",
        )
    return fetch(plan, progress=progress)


_GATES: Final = {
    True: "accept it in a browser first",
    False: "open to everyone",
    None: "unknown whether it must be accepted first",
}


def announce(plan: FetchPlan) -> list[str]:
    """Return lines that describe a plan: files, source, size and licence."""
    publication, remote = plan.publication, _remote(plan.publication)
    licence = (
        f"{publication.licence}, as its publisher says"
        if publication.licence
        else f"not stated: check {publication.url} before you use or share the data"
    )
    lines = [
        f"{publication.name}: {plan.where} at {plan.server}",
        f"  files: {len(plan.files)}, {in_bytes(plan.bytes)}; {plan.left_out} others are left",
        f"  licence: {licence}; {_GATES[remote.gated]}",
    ]
    if plan.archives_to_unpack:
        lines.append(f"  unpacked: {', '.join(each.path for each in plan.archives_to_unpack[:5])}")
    if remote.steps:
        lines.append(f"  steps, as its publisher says: {remote.steps:,}")
    if remote.note:
        lines.append(f"  note: {remote.note}")
    return lines
