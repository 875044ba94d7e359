"""The one way from what a user names as DATA to a path or a URL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from omnidata import remote
from omnidata.errors import DataError, UsageError
from omnidata.loaders import hub
from omnidata.loaders.fetch import DATA, fetch
from omnidata.loaders.fetch_plan import SOURCE, announce, in_cache, plan_fetch
from omnidata.loaders.transfers import in_bytes
from omnidata.storage import read_json
from omnidata.types import Progress

AUTO: Final = "auto"


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
