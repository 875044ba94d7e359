"""`omnidata fetch`: a task's data from where their authors publish them, or all files of a URL."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import argument, flag, option, repeatable, verb
from omnidata.errors import OmnidataError, UsageError, plural
from omnidata.remote import is_url


@verb(args.caching)
def fetch(
    *,
    task: str = argument("A benchmark, e.g. omnigui, or a URL, e.g. s3://bucket/data.", "TASK|URL"),
    only: list[str] = repeatable(
        'Download only files that match, e.g. "*.json" (repeatable).', "PATTERN"
    ),
    out: Path | None = argument(
        "A new folder. Default: the cache, where later commands find it by auto or the URL.",
        "OUT",
        default=None,
    ),
    source: str | None = option("Which source, if the task has several.", "NAME"),
    revision: str | None = option("Commit, tag or branch of the dataset.", "SHA"),
    dry_run: bool = flag("Show files, sizes and licence; download nothing.", "--dry-run"),
    yes: bool = flag("Do not ask before downloading more than 10 GB.", "--yes"),
    overwrite: bool = flag("Replace an earlier download in OUT.", "--overwrite"),
    token: args.Token = False,
    as_json: args.Json = False,
) -> bool:
    """Download the data of a task, or all files of a URL.

    Prints the source, the size and the licence first. Files are checked, archives of a task
    unpacked. OUT appears when the download is complete:
    OUT/data has the files, OUT/source.json the commit, the licence and the hashes. The same command
    resumes an interrupted download. No token is sent without --token. Exit code 1: the number of
    steps differs from the publisher's.

    Without OUT, the files of a URL go into the cache of URLs, for the next commands that read it.

    Example: omnidata fetch omnigui --dry-run

    Example: omnidata fetch screenspot data/v2 --source ScreenSpot-v2

    Example: omnidata fetch s3://bucket/omnigui data/omnigui
    """
    from omnidata.loaders import hub
    from omnidata.loaders.fetch import DATA
    from omnidata.loaders.fetch import fetch as run
    from omnidata.loaders.fetch_plan import SOURCE, announce, fetched_folder, plan_fetch
    from omnidata.storage import read_json

    with hub.sending_token(token):
        if is_url(task):
            for name, given in (("source", source), ("revision", revision), ("only", only)):
                if given:
                    raise UsageError(
                        f"--{name} is for the data of a task",
                        where=f"--{name}",
                        expected="a URL alone; it may name a folder, and of the Hub a revision",
                    )
            _fetch_url(task, out, dry_run, yes, overwrite, as_json)
            return False
        plan = plan_fetch(task, source=source, revision=revision, only=only)
        for line in announce(plan):
            (terminal.note if as_json or not dry_run else terminal.say)(line)
        if dry_run:
            if as_json:
                terminal.print_json(plan.describe())
            return False
        _confirm(plan.bytes, yes)
        folder = out or fetched_folder(plan.task, plan.publication.name)
        with terminal.resumable(), terminal.bytes_progress("fetching") as progress:
            data = run(plan, folder, overwrite=overwrite, progress=progress)
    if as_json:
        terminal.print_json({"out": str(folder), DATA: str(data), **read_json(folder / SOURCE)})
    else:
        terminal.say(f"{data}: {plan.where}")
        terminal.say(f"next: omnidata info {task} {out or 'auto'}")
    stated = plan.publication.remote.steps if plan.publication.remote else 0
    return bool(stated and not only) and not _has(task, data, stated)


def _fetch_url(
    url: str, out: Path | None, dry_run: bool, yes: bool, overwrite: bool, as_json: bool
) -> None:
    from omnidata.loaders.fetch_url import fetch_url, plan_url
    from omnidata.loaders.transfers import in_bytes

    plan = plan_url(url)
    line = f"{plan.url}: {plural(plan.count, 'file')}, {in_bytes(plan.bytes)}"
    (terminal.note if as_json or not dry_run else terminal.say)(line)
    about = {"url": plan.url, "files": plan.count, "bytes": plan.bytes}
    if not dry_run:
        _confirm(plan.bytes, yes)
        with terminal.resumable(), terminal.bytes_progress("fetching") as progress:
            data = fetch_url(plan, out, overwrite=overwrite, progress=progress)
        about["data"] = str(data if out else plan.url)
        if not as_json:
            terminal.say(f"next: omnidata info TASK {out or plan.url}")
    if as_json:
        terminal.print_json(about)


def _confirm(size: int, yes: bool) -> None:
    """Ask before a large download, unless the user has said yes.

    Raises:
        UsageError: the user refuses, or cannot be asked.
    """
    from omnidata.loaders.hub import LARGE
    from omnidata.loaders.transfers import in_bytes

    if yes or size <= LARGE:
        return
    if sys.stdin.isatty() and typer.confirm(f"Download {in_bytes(size)}?", err=True):
        return
    raise UsageError(
        f"the download has {in_bytes(size)}",
        expected=f"--yes for more than {in_bytes(LARGE)}",
        remedy="add --yes, or choose files with --only PATTERN",
    )


def _has(task: str, data: Path, stated: int) -> bool:
    from omnidata.tasks import get_task

    try:
        found = len(get_task(task).load(data, check_media=False).steps)
    except OmnidataError as error:
        terminal.note(f"the files were downloaded but cannot be read as data: {error}")
        return False
    verdict = "as the publisher says" if found == stated else f"but the publisher says {stated:,}"
    terminal.note(f"{found:,} steps, {verdict}")
    return found == stated
