"""`omnidata merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidata.cli import arguments as args
from omnidata.cli.arguments import reading_data
from omnidata.cli.runs import lacking, print_run


@reading_data
def merge(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The folders of all parts, in any order.")
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The new run folder.")],
    data: Annotated[
        Path | None,
        args.data_option("The dataset, if it is not where the parts had it."),
    ] = None,
    profile: args.Profile = None,
    as_json: args.Json = False,
) -> None:
    """Join the parts of a run that --shard cut, and score them as one.

    The parts must be finished and have the same settings. The same `evaluate` command without
    --shard resumes what comes out. Exit codes are those of `evaluate`.

    Example: omnidata merge runs/part-1 runs/part-2 --out runs/whole
    """
    from omnidata.run.merge import merge as join
    from omnidata.run.run_files import read_info
    from omnidata.run.scoring import recorded_task

    results = join(runs, out, data=data, profile=profile)
    print_run(results, recorded_task(read_info(out)), out, as_json)
    if any(lacking(results)):
        raise typer.Exit(1)
