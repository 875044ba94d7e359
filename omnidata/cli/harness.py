"""`omnidata harness`: tasks for other harnesses."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from omnidata.cli import terminal
from omnidata.cli.arguments import Data, Json, Profile, TaskName, TaskOptions, reading_data

app = typer.Typer(
    help="A task, inside another harness.",
    epilog="inspect_ai needs no files: inspect eval omnidata/TASK -T data=DATA --model MODEL",
    no_args_is_help=True,
)


@app.command("lmms")
@reading_data
def lmms(
    task: TaskName,
    data: Data,
    out: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder for --include_path of lmms-eval.")
    ],
    task_options: TaskOptions,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Write a task of lmms-eval: its YAML, its rows, and the functions that they name.

    The data stay where they are. lmms-eval needs omnidata in its own environment, and gets prompts,
    media and verdicts from there; the totals are those of `omnidata evaluate` on the same answers.
    Each row of its log holds the id of its step, by which `omnidata score --from lmms-eval` finds
    it. Several tasks may share a folder.

    Example: omnidata harness lmms omnigui omnidata-demo/data lmms-tasks
    """
    from omnidata.harness.lmms import write
    from omnidata.tasks.base import parse

    done = write(task, data, out, profile=profile, options=parse(task_options, "-T"))
    if as_json:
        terminal.print_json(
            {
                "task": done.name,
                "folder": str(done.folder),
                "steps": done.steps,
                "metrics": list(done.metrics),
            }
        )
    else:
        place = shlex.quote(str(done.folder))
        terminal.say(f"lmms_eval --include_path {place} --tasks {done.name} --log_samples")
