"""`omnidata voice`: instructions as speech."""

from __future__ import annotations

from pathlib import Path

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import argument, option, verb
from omnidata.errors import UsageError, plural


@verb(args.reading_data, args.listing_findings)
def voice(
    *,
    task: args.TaskName,
    data: args.Data,
    out: Path = argument("The folder for WAV files, used as -T voice=OUT.", "OUT"),
    where: args.Where,
    command: str | None = option(
        "Run this program instead of espeak-ng: its arguments, with {text}, {out} and "
        "optionally {language} (en, zh). No shell is used.",
        "COMMAND",
    ),
    time_limit: float | None = option(
        "Time limit of the program per text. Default: 120.", "SECONDS", min=0.1
    ),
    workers: int | None = option(
        "Number of processes. Default: one per core, with --command 1, with ray all that fit.",
        min=1,
    ),
    cluster: args.Processes,
    as_json: args.Json = False,
) -> bool:
    """Render the instructions as speech, in WAV files.

    Use them with `evaluate -T voice=OUT`. A second call renders only missing and changed texts.
    Exit code 1: some instructions have no spoken form.

    Example: omnidata voice omnigui omnidata-demo/data omnidata-demo/voice
    """
    from omnidata.data.voice import render
    from omnidata.data.voice_engines import SECONDS, Command, Espeak
    from omnidata.run.selection import select
    from omnidata.tasks import get_task

    args.check_together(
        time_limit,
        command is not None,
        "--time-limit is for --command",
        f"--time-limit {time_limit}",
        "--command",
    )
    asking = get_task(task)
    if "voice" not in asking.allowed:
        raise UsageError(
            f"the prompts of {task} have no spoken form",
            where=task,
            expected="a task with the option voice (`omnidata info TASK` lists options)",
        )
    engine = Command(command, seconds=time_limit or SECONDS) if command is not None else Espeak()
    source = asking.load(data, check_media=False)
    terminal.print_findings(source)
    steps = select(source.steps, where=where, task=asking)
    with terminal.resumable(), terminal.progress(engine.name) as progress:
        done = render(
            steps,
            out,
            engine,
            texts=asking.benchmark.wordings.spoken_texts,
            # The program may use many cores itself.
            workers=1 if workers is None and command is not None else workers,
            cluster=cluster,
            progress=progress,
        )
    if as_json:
        terminal.print_json(
            {
                "out": str(out),
                "engine": engine.name,
                "voices": {language: engine.voice(language) for language in ("en", "zh")},
                "texts": done.texts,
                "rendered": done.rendered,
                "kept": done.kept,
                "findings": [finding.as_dict() for finding in done.findings],
            }
        )
    else:
        terminal.print_kinds(done.findings)
        terminal.say(
            f"{plural(done.texts, 'text')}: {done.rendered} rendered by {engine.name}, "
            f"{done.kept} kept, {len(done.findings)} without a spoken form"
        )
    terminal.note(f"for the paper's Table 5: omnidata evaluate {task} {data} -T voice={out} ...")
    return bool(done.findings)
