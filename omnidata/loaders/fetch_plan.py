"""What a download would fetch: which publication of a task's data, and which of its files."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from omnidata import registry
from omnidata.errors import DataError, PluginError, UsageError, suggestion
from omnidata.loaders import archives, buckets, hub, transfers
from omnidata.loaders.transfers import RemoteFile, in_bytes
from omnidata.remote import cache_folder
from omnidata.types import Publication, Remote

SOURCE: Final = "source.json"
FORMAT: Final = 1

# Publications of a task's data.


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
        Of sources that publish the same steps, by their tags, the first that a program can fetch.
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
        name: of the publication; needed only if several can be fetched.

    Raises:
        UsageError: there is none of the name, or several and none is named.
        DataError: a program cannot fetch it; the remedy says how to download it by hand.
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


def fetched_folder(task: str, name: str) -> Path:
    """Return the cache folder of a task's publication."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.").lower()
    return cache_folder() / "data" / task / safe


def in_cache(task: str) -> Mapping[str, Path]:
    """Return the cached folders of a task's sources, by the name of the source."""
    owner, sources = sources_of(task)
    places = {one.name: fetched_folder(owner, one.name) for one in sources}
    return {name: at for name, at in places.items() if (at / SOURCE).is_file()}


# The files of a publication.


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
    def remote(self) -> Remote:
        """The place of the publication's files."""
        assert self.publication.remote is not None  # `choose_source` returns no other
        return self.publication.remote

    @property
    def bytes(self) -> int:
        """Size of all files to download, in bytes."""
        return sum(each.size for each in self.files)

    def is_archive(self, file: RemoteFile) -> bool:
        """Return whether a file is an archive to unpack, or a part of one."""
        return _fits(file.path, self.remote.archives)

    @property
    def archives_to_unpack(self) -> Sequence[RemoteFile]:
        """Archives that are unpacked; of an archive in parts, the last part."""
        chosen = filter(self.is_archive, self.files)
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
        remote = self.remote
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
        only: patterns of the files to download; all that the task needs if empty.

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
    remote = publication.remote
    assert remote is not None  # `choose_source` returns no other
    place, commit, listed = _list_files(remote, owner, revision)
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


def _list_files(
    remote: Remote, owner: str, revision: str | None
) -> tuple[str, str, Sequence[RemoteFile]]:
    """Return the place, the commit (empty in a bucket) and the files that are there."""
    if remote.place.startswith("gs://"):
        if revision is not None:
            raise UsageError(
                "a bucket has no revisions to choose from",
                where=f"--revision {revision}",
                expected="a source on the Hub",
                remedy="leave it out",
            )
        return remote.place, "", buckets.list_objects(*bucket_and_folder(remote.place))
    named = _hub_address(remote, owner)
    commit = hub.resolve_commit(replace(named, revision=revision or remote.revision))
    return f"hf://{named.name}", commit, hub.list_files(replace(named, revision=commit))


def _hub_address(remote: Remote, owner: str) -> hub.HubAddress:
    named = hub.parse_address(remote.place)
    if named is None:
        raise PluginError(
            f"the source of {owner} cannot be fetched",
            where=f"sources of {owner}: {remote.place!r:.200}",
            expected="hf://datasets/ORG/NAME or gs://BUCKET/FOLDER",
        )
    return hub.HubAddress(named.name)


def bucket_and_folder(place: str) -> tuple[str, str]:
    """Return the bucket of a place in one, and the folder in it."""
    bucket, _, folder = place.removeprefix("gs://").partition("/")
    return bucket, folder.strip("/")


def _fits(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


_GATES: Final = {
    True: "accept it in a browser first",
    False: "open to everyone",
    None: "unknown whether it must be accepted first",
}


def announce(plan: FetchPlan) -> list[str]:
    """Return lines that describe a plan: files, source, size and licence."""
    publication, remote = plan.publication, plan.remote
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
