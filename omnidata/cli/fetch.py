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
        args.repeatable('Only files like this, e.g. "*.json" (repeatable).', metavar="PATTERN"),
    ],
    out: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="A new folder; omnidata's cache if left (auto)."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which of them, where data are in several places."),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(metavar="SHA", help="This commit, tag or branch of the dataset.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would come, and end there.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before more than 10 GB.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what was fetched there before.")
    ] = False,
    token: args.Token = False,
    as_json: args.Json = False,
) -> None:
    """Download a task's data, check them, unpack them.

    First it says what would come, from where, how many bytes and under which licence. The folder
    appears when it is whole: OUT/data with the files and OUT/source.json with the commit, the
    licence and the hashes. The same command goes on with an interrupted download. Nothing is sent
    but what reading needs: no token, unless --token is given. Exit code 1 means that all came, but
    not as many steps as its publisher says.

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
        terminal.say(f"look at it with: omnidata info {task} {place}")
    stated = plan.publication.remote.steps if plan.publication.remote else 0
    if stated and not only and not _has(task, data, stated):
        raise typer.Exit(1)


def _ask(size: int) -> None:
    """Let a person decide about a large download.

    Raises:
        UsageError: nobody is there to be asked, or the answer is no.
    """
    from omnidata.loaders.hub import LARGE, in_bytes

    if sys.stdin.isatty() and typer.confirm(f"Download {in_bytes(size)}?", err=True):
        return
    raise UsageError(
        f"{in_bytes(size)} would be downloaded",
        expected=f"--yes for more than {in_bytes(LARGE)}",
        remedy="add --yes, or choose a part with --only PATTERN",
    )


def _has(task: str, data: Path, stated: int) -> bool:
    """Whether there are as many steps as the publisher says; both are told."""
    from omnidata.tasks import get_task

    try:
        found = len(get_task(task).load(data, check_media=False).steps)
    except OmnidataError as error:
        terminal.note(f"the files are there, and no data: {error}")
        return False
    if found == stated:
        terminal.note(f"{found:,} steps, as many as its publisher says")
    else:
        terminal.note(f"there are {found:,} steps, and its publisher says {stated:,}")
    return found == stated
