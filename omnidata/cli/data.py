"""`omnidata info`: what is supported, what a dataset holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.roots import reading_data
from omnidata.cli.which import data_of, only_task
from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.data.overview import View
    from omnidata.types import Source

_USAGE = "omnidata info DATA, or omnidata info TASK DATA"


@reading_data
def info(
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK", help="The benchmark, e.g. omnigui; needed where the data do not tell."
        ),
    ] = None,
    data: Annotated[Path | None, args.data_argument("The dataset's folder or file.")] = None,
    expect: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Compare the counts with a published table (omnigui: table7)."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw them, as png, svg or pdf (omnigui: the paper's Figure 2)."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Make the first finding an error.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what is supported, or what a dataset holds and what is wrong with it.

    Without TASK the benchmark is the one that the data are rows of. Exit code 1 means that
    something is missing or unusable, or that the counts differ from TABLE.

    Example: omnidata info omnigui omnidata-demo/data
    """
    if task is None:
        if expect or strict or plot:
            raise UsageError("there is no data to look at", expected=_USAGE)
        _supported(as_json)
        return
    if plot:
        from omnidata.run.figures import check

        check(plot)
    name, place = task, data
    if place is None:
        place = data_of(None, Path(task))
        name = only_task(place, _USAGE, lambda task, data: f"omnidata info {task} {data}")
    from omnidata.data.overview import view_of
    from omnidata.tasks import get_task

    benchmark = get_task(name)
    kind = view_of(name)
    _check_options(kind, name, expect, plot)
    source = kind.read(benchmark, place, strict=strict)
    view = kind(source)
    differences = view.differences(expect) if expect else []
    if as_json:
        _print_json(source, view, differences)
    else:
        _print(source, view, expect, differences)
    if plot:
        for text, drawn in view.draw(plot).items():
            terminal.note(f"no installed font can draw {text!r}: it is written {drawn}")
        terminal.note(f"figure: {plot}")
    if differences or any(finding.severity == "error" for finding in source.findings):
        raise typer.Exit(1)


def _check_options(kind: type[View], task: str, expect: str | None, plot: Path | None) -> None:
    """Refuse what the benchmark has not, before the data are read."""
    if expect is not None and expect not in kind.published:
        names = ", ".join(kind.published)
        raise UsageError(
            f"no such table of {task}",
            where=f"--expect {expect}",
            expected=names or "no --expect: there is no table to compare with",
            remedy=f"--expect {names}" if names else "leave the option out",
        )
    if plot and not kind.draws:
        raise UsageError(
            f"there is no figure of {task}", where=f"--plot {plot}", remedy="leave the option out"
        )


def _print_json(source: Source, view: View, differences: list[str]) -> None:
    terminal.print_json(
        {
            "task": source.task,
            "fingerprint": source.fingerprint,
            "steps": len(source.steps),
            "episodes": view.episodes,
            "skipped": source.skipped,
            **view.as_dict(),
            "findings": [finding.as_dict() for finding in source.findings],
            "differences": differences,
        }
    )


def _print(source: Source, view: View, expect: str | None, differences: list[str]) -> None:
    from collections import Counter

    for table in view.tables():
        terminal.print_table(table.title, table.header, table.rows)
    for finding in source.findings:
        terminal.note(str(finding))
    errors = sum(finding.severity == "error" for finding in source.findings)
    parts = [
        f"{view.episodes} episodes",
        f"{len(source.steps)} steps",
        f"{source.skipped} rows skipped",
        *view.remarks(),
        f"{errors} errors",
        f"{len(source.findings) - errors} warnings",
    ]
    terminal.say(", ".join(parts))
    for code, number in Counter(finding.code for finding in source.findings).most_common():
        terminal.say(f"  {number} {code}")
    for difference in differences:
        terminal.say(f"differs from {view.published[expect or '']}: {difference}")
    if expect and not differences:
        terminal.say(f"all counts are those of {view.published[expect]}")


def _supported(as_json: bool) -> None:
    from omnidata.adapters import FORMS, plugins, presets
    from omnidata.run.logs import READERS
    from omnidata.run.textless import profiles_of
    from omnidata.tasks import HOLDS, NAMES, PLUGINS, get_task

    tasks = [get_task(name) for name in NAMES]
    if as_json:
        described = {
            task.name: {
                "holds": HOLDS[task.name],
                "profiles": profiles_of(task),
                "default_profile": task.default_profile,
                "options": {name: list(values) for name, values in task.allowed.items()},
                "baselines": list(task.baselines),
            }
            for task in tasks
        }
        terminal.print_json(
            {
                "tasks": described,
                "models": FORMS,
                "presets": list(presets.table()),
                "plugins": plugins.names(),
                "task_plugins": PLUGINS.names(),
                "logs": list(READERS),
            }
        )
        return
    for task in tasks:
        terminal.say(f"task {task.name}: {HOLDS[task.name]}")
        terminal.say(f"  profiles: {', '.join(profiles_of(task))}")
        for name, values in task.allowed.items():
            terminal.say(f"  -T {name}={'|'.join(values) or 'FOLDER'}")
        terminal.say(f"  baselines: {', '.join(task.baselines)}")
    terminal.say("tasks of plugins:  " + ("  ".join(PLUGINS.names()) or "none"))
    terminal.say("models:   " + "  ".join(FORMS))
    terminal.say("presets:  " + "  ".join(presets.table()))
    terminal.say("plugins:  " + ("  ".join(plugins.names()) or "none"))
    terminal.say("logs:     " + ", ".join(READERS))
