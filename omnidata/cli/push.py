"""`omnidata push`: a repository, or a run, to the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import argument, flag, verb


@verb()
def push(
    *,
    folder: Path = argument(
        "A repository from `convert --embed`, a run folder, or a file of errata.", "FOLDER"
    ),
    name: str = argument("Name of the dataset on the Hub.", "ORG/NAME"),
    private: bool = flag("Make a new dataset private.", "--private"),
    pull_request: bool = flag("Open a pull request instead of pushing to the main branch.", "--pr"),
    i_may: bool = flag(
        "Confirm that you may redistribute data whose licence does not say so.", "--i-may"
    ),
    dry_run: bool = flag("List the files; send nothing.", "--dry-run"),
    as_json: args.Json = False,
) -> None:
    """Publish a Parquet repository, a run without media, or errata.

    A repository is sent in one commit: Parquet files, README with datasheet, manifest and LICENSE.
    Links and data whose licence forbids it are refused. A run is sent as answers, scores, settings
    and a card with the results; others check it with `omnidata score hf://ORG/NAME`. Errata are
    sent with a card, for `--errata hf://ORG/NAME/errata.jsonl`. Your Hugging Face token is sent
    (HF_TOKEN or `hf auth login`). The same command resumes an interrupted push.

    Example: omnidata push omnidata-demo/parquet me/demo --private --dry-run

    Example: omnidata push runs/center me/center-on-demo
    """
    from omnidata.analysis.publish import push_run
    from omnidata.data.push import push as push_repository
    from omnidata.data.push import push_errata
    from omnidata.loaders.hub import endpoint
    from omnidata.run.run_info import RESULTS

    terminal.note(f"to {endpoint()}/datasets/{name}, with your token")
    how = {"private": private, "pull_request": pull_request, "dry_run": dry_run}
    with terminal.resumable():
        if folder.is_file():
            done = push_errata(folder, name, **how)
        elif (folder / RESULTS).is_file():
            done = push_run(folder, name, **how)
        else:
            done = push_repository(folder, name, i_may=i_may, **how)
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
        terminal.say(done.url or "nothing to do: the Hub has all files")
