"""`omnidata fetch`: a task's data from where their authors publish them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.errors import OmnidataError, UsageError


def fetch(
    task: args.TaskName,
    only: Annotated[
        list[str],
        args.repeatable(
            'Download only files that match, e.g. "*.json" (repeatable).', metavar="PATTERN"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="A new folder. Default: omnidata's cache, later named auto."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which source, if the task has several."),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(metavar="SHA", help="Commit, tag or branch of the dataset.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show files, sizes and licence; download nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before downloading more than 10 GB.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier download in OUT.")
    ] = False,
    token: args.Token = False,
    as_json: args.Json = False,
) -> None:
    """Download, check and unpack the data of a task.

    Prints the source, the size and the licence first. OUT appears when the download is complete:
    OUT/data has the files, OUT/source.json the commit, the licence and the hashes. The same command
    resumes an interrupted download. No token is sent without --token. Exit code 1: the number of
    steps differs from the publisher's.

    Example: omnidata fetch omnigui --dry-run

    Example: omnidata fetch screenspot data/v2 --source ScreenSpot-v2
    """
    from omnidata.loaders import hub
    from omnidata.loaders.fetch import DATA, SOURCE, announce, fetched_folder, plan_fetch
    from omnidata.loaders.fetch import fetch as run
    from omnidata.storage import read_json

    with hub.sending_token(token):
        plan = plan_fetch(task, source=source, revision=revision, only=only)
        for line in announce(plan):
            (terminal.note if as_json or not dry_run else terminal.say)(line)
        if dry_run:
            if as_json:
                terminal.print_json(plan.describe())
            return
        if plan.bytes > hub.LARGE and not yes:
            _ask(plan.bytes)
        folder = out or fetched_folder(plan.task, plan.publication.name)
        with terminal.resumable(), terminal.bytes_progress("fetching") as progress:
            data = run(plan, folder, overwrite=overwrite, progress=progress)
    if as_json:
        terminal.print_json({"out": str(folder), DATA: str(data), **read_json(folder / SOURCE)})
    else:
        place = "auto" if out is None else str(folder)
        terminal.say(f"{data}: {plan.where}")
        terminal.say(f"next: omnidata info {task} {place}")
    stated = plan.publication.remote.steps if plan.publication.remote else 0
    if stated and not only and not _has(task, data, stated):
        raise typer.Exit(1)


def _ask(size: int) -> None:
    from omnidata.loaders.hub import LARGE
    from omnidata.loaders.transfers import in_bytes

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
    if found == stated:
        terminal.note(f"{found:,} steps, as the publisher says")
    else:
        terminal.note(f"{found:,} steps, but the publisher says {stated:,}")
    return found == stated
