"""`omnidata harness`: tasks for other harnesses."""

from __future__ import annotations

import shlex
from pathlib import Path

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import argument, verb
from omnidata.cli.help import Verb, group

app = group(
    "Run a task inside another evaluation harness.",
    epilog="inspect_ai needs no files: inspect eval omnidata/TASK -T data=DATA --model MODEL",
)


@app.command("lmms", cls=Verb)
@verb(args.reading_data)
def lmms(
    *,
    task: args.TaskName,
    data: args.Data,
    out: Path = argument("The folder for lmms-eval's --include_path.", "DIR"),
    task_options: args.TaskOptions,
    profile: args.Profile = None,
    as_json: args.Json = False,
) -> None:
    """Write a task for lmms-eval: YAML, rows and functions.

    The data stay in place. lmms-eval needs omnidata in its own environment for prompts, media and
    verdicts; its totals equal those of `omnidata evaluate` on the same answers. Score its log again
    with `omnidata score --from lmms-eval`. Several tasks can share a folder.

    Example: omnidata harness lmms omnigui omnidata-demo/data lmms-tasks
    """
    from omnidata.harness.lmms import write

    done = write(task, data, out, profile=profile, options=task_options)
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
