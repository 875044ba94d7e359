"""`omnidata cache`: list or clear the cached steps of large datasets."""

from __future__ import annotations

from dataclasses import asdict

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import flag, verb


@verb()
def cache(
    clear: bool = flag("Remove all cached datasets.", "--clear"),
    as_json: args.Json = False,
) -> None:
    """List or clear the cache of large datasets.

    A dataset of more than 20,000 steps is read once. Later commands open the cached steps, until
    the files, the options or the code that reads them change. OMNIDATA_CACHE sets the folder,
    OMNIDATA_CACHE_BYTES its maximum size; the least recently used dataset is removed first.

    Example: omnidata cache

    Example: omnidata cache --clear
    """  # fmt: skip
    from omnidata.loaders import steps_cache

    folder = steps_cache.steps_folder()
    if clear:
        freed = steps_cache.clear()
        if as_json:
            terminal.print_json({"freed": freed})
        else:
            typer.echo(f"{folder}: {_megabytes(freed)} removed")
        return
    found = steps_cache.entries()
    total = sum(entry.bytes for entry in found)
    if as_json:
        entries = [{**asdict(entry), "path": str(entry.path)} for entry in found]
        terminal.print_json({"folder": str(folder), "bytes": total, "entries": entries})
        return
    for entry in found:
        size = _megabytes(entry.bytes)
        typer.echo(f"{size:>9}  {entry.steps:>12,} steps  {entry.task}  {entry.data}")
    typer.echo(f"{folder}: {_megabytes(total)} of {len(found)} datasets")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
