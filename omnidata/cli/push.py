"""`omnidata push`: a repository, or a run, to the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from omnidata.cli import terminal
from omnidata.cli.arguments import Json


def push(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="A repository of `convert --embed`, or a run folder."
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="ORG/NAME", help="The dataset on the Hub.")],
    private: Annotated[
        bool, typer.Option("--private", help="If it is new: only you see it.")
    ] = False,
    pull_request: Annotated[
        bool, typer.Option("--pr", help="Propose it as a pull request, which you merge there.")
    ] = False,
    i_may: Annotated[
        bool,
        typer.Option(
            "--i-may",
            help="You may hand the data on although their published licence does not say so.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be sent, and send none of it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Publish a Parquet repository, or a run without media.

    Of a repository: its Parquet files, README with datasheet, manifest and LICENSE, all in one
    commit; nothing else, no link, and no data whose licence forbids it. Of a run: its answers,
    scores and settings, with a card that has the results in the Hub's form; anybody checks them
    with `omnidata score hf://ORG/NAME`. Your token is sent (HF_TOKEN, or of `hf auth login`). What
    is there already is not sent again: the same command goes on after an interruption, and does
    nothing when all is there.

    Example: omnidata push omnidata-demo/parquet me/demo --private --dry-run

    Example: omnidata push runs/center me/center-on-demo
    """
    from omnidata.analysis.publish import push_run
    from omnidata.data.push import push as push_repository
    from omnidata.loaders.hub import endpoint
    from omnidata.run.run_files import RESULTS

    terminal.note(f"to {endpoint()}/datasets/{name}, with your token")
    with terminal.resumable():
        if (folder / RESULTS).is_file():
            done = push_run(
                folder, name, private=private, pull_request=pull_request, dry_run=dry_run
            )
        else:
            done = push_repository(
                folder,
                name,
                private=private,
                pull_request=pull_request,
                i_may=i_may,
                dry_run=dry_run,
            )
    if as_json:
        terminal.print_json({**asdict(done), "dry_run": dry_run})
        return
    for line in done.lines():
        terminal.say(line)
    if dry_run:
        for path, size in done.sent.items():
            terminal.say(f"  {path}: {size:,} bytes")
        terminal.say("nothing was sent")
    else:
        terminal.say(done.url or "nothing to do: all of it is there")
