"""Verbs that look at data: info, view."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.arguments import data_of, only_task, reading_data
from omnidata.errors import DataError, UsageError, counted

if TYPE_CHECKING:
    from omnidata.tasks.overview import View
    from omnidata.types import LoadedDataset, Task
    from omnidata.viewer.report_data import Book


_USAGE = "omnidata info DATA, omnidata info TASK DATA, or omnidata info TASK"


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
    """Show what is supported, what a task is, or what a dataset holds.

    Without TASK the benchmark is the one that the data are rows of; without DATA the task's
    options, baselines, profiles, media and tags are shown. Exit code 1 means that something is
    missing or unusable, or that the counts differ from TABLE.

    Example: omnidata info omnigui omnidata-demo/data
    """
    if task is None:
        if expect or strict or plot:
            raise UsageError("there is no data to look at", expected=_USAGE)
        _supported(as_json)
        return
    if plot:
        from omnidata.figures import check

        check(plot)
    from omnidata import registry

    name, place = task, data
    if place is None:
        place = data_of(None, Path(task))
        if not place.exists() and task in registry.names():
            if expect or strict or plot:
                raise UsageError("there is no data to look at", expected=_USAGE)
            _print_task(task, as_json)
            return
        name = only_task(place, _USAGE, lambda task, data: f"omnidata info {task} {data}")
    from omnidata.tasks import get_task

    benchmark = get_task(name)
    kind = benchmark.overview
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


def _print_json(source: LoadedDataset, view: View, differences: list[str]) -> None:
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


def _print(source: LoadedDataset, view: View, expect: str | None, differences: list[str]) -> None:
    from collections import Counter

    for table in view.tables():
        terminal.print_table(table.title, table.header, table.rows, table.legend)
    for finding in source.findings:
        terminal.note(str(finding))
    errors = sum(finding.severity == "error" for finding in source.findings)
    parts = [
        counted(view.episodes, "episode"),
        counted(len(source.steps), "step"),
        f"{counted(source.skipped, 'row')} skipped",
        *view.remarks(),
        counted(errors, "error"),
        counted(len(source.findings) - errors, "warning"),
    ]
    terminal.say(", ".join(parts))
    for code, number in Counter(finding.code for finding in source.findings).most_common():
        terminal.say(f"  {number} {code}")
    for difference in differences:
        terminal.say(f"differs from {view.published[expect or '']}: {difference}")
    if expect and not differences:
        terminal.say(f"all counts are those of {view.published[expect]}")


def _print_task(name: str, as_json: bool) -> None:
    """What a task is, without any data."""
    from omnidata.tasks import get_task

    task = get_task(name)
    told = _described(task)
    if as_json:
        terminal.print_json({"task": name, **told})
        return
    terminal.say(f"{name}: {told['holds']}")
    if task.asks_about:
        terminal.say(f"asks about the data of {task.asks_about}")
    terminal.say(f"DATA: {told['data'] or 'see the documentation of the distribution'}")
    for option, values in told["options"].items():
        shown = "|".join(values) if values != [""] else "TEXT"
        terminal.say(f"  -T {option}={shown}  (default: {values[0] or 'none'})")
    terminal.say(f"baselines: {', '.join(f'baseline:{one}' for one in told['baselines'])}")
    first, *others = told["profiles"]
    terminal.say(f"profiles: {', '.join([f'{first} (default)', *others])}")
    for profile, rules in task.profiles.items():
        terms = getattr(rules, "legend", {})
        columns = (f"{one} ({terms[one]})" if one in terms else one for one in rules.columns)
        terminal.say(f"  {profile}: {', '.join(columns)}")
    unknown = "as the data have them: omnidata info TASK DATA"
    media = (f"{role} ({kind})" for role, kind in (told["media"] or {}).items())
    for what, found in (
        ("media", ", ".join(media)),
        ("tags, for --where", ", ".join(told["tags"] or ())),
        ("subsets", ", ".join(told["subsets"] or ())),
    ):
        terminal.say(f"{what}: {found or unknown}")
    if told["docs"]:
        terminal.say(f"more: {told['docs']}")


def _held(task: Task) -> str:
    """What its data hold and what is asked, or what the documentation of its class says first."""
    from omnidata import registry

    own = task.task if isinstance(task, registry.PluginTask) else task
    doc = (type(own).__doc__ or "").strip().partition("\n")[0]
    return task.holds or doc or "a task of another distribution"


def _described(task: Task) -> dict[str, Any]:
    """What can be said of a task without any data; None where only data tell."""
    from omnidata import registry
    from omnidata.run.scoring import profiles_of

    return {
        "holds": _held(task),
        "data": _expected(task),
        "profiles": profiles_of(task),
        "default_profile": task.default_profile,
        "columns": {profile: list(rules.columns) for profile, rules in task.profiles.items()},
        "options": {option: list(values) for option, values in task.allowed.items()},
        "baselines": list(task.baselines),
        "media": task.roles and dict(task.roles),
        "tags": task.tags and list(task.tags),
        "subsets": ["all", *task.subsets] if task.subsets else None,
        "docs": f"docs/tasks/{task.name}.md" if registry.is_ours(task.name) else None,
    }


def _expected(task: Task) -> str:
    """What the task takes for data, as its loader tells somebody who names none."""
    try:
        task.load(Path("no data"), check_media=False)
    except DataError as error:
        return error.expected
    except Exception:  # a plug-in's loader may fail in any way, and says nothing then
        return ""
    return ""


def _supported(as_json: bool) -> None:
    from omnidata import registry
    from omnidata.adapters import FORMS, PLUGINS, presets
    from omnidata.run.logs import HARNESSES
    from omnidata.run.scoring import profiles_of
    from omnidata.tasks.common_options import OPTIONS as COMMON

    tasks = [registry.get_task(name) for name in registry.names() if registry.is_ours(name)]
    if as_json:
        described = {
            task.name: {
                "holds": _held(task),
                "profiles": profiles_of(task),
                "default_profile": task.default_profile,
                "options": {name: list(values) for name, values in task.allowed.items()},
                "baselines": list(task.baselines),
            }
            for task in tasks
        }
        about = {task.name: task.asks_about for task in tasks if task.asks_about}
        terminal.print_json(
            {
                "tasks": {name: one for name, one in described.items() if name not in about},
                "tasks_about_others": {
                    name: {"asks_about": other, **described[name]} for name, other in about.items()
                },
                "models": FORMS,
                "presets": list(presets.table()),
                "plugins": PLUGINS.names(),
                "task_plugins": registry.plugin_names(),
                "logs": list(HARNESSES),
            }
        )
        return
    for task in sorted(tasks, key=lambda task: bool(task.asks_about)):
        terminal.say(f"task {task.name}: {_held(task)}")
        if task.asks_about:
            terminal.say(f"  asks about the data of {task.asks_about}")
        terminal.say(f"  profiles: {', '.join(profiles_of(task))}")
        for name, values in task.allowed.items():
            terminal.say(f"  -T {name}={'|'.join(values) or 'TEXT'}")
        terminal.say(f"  baselines: {', '.join(task.baselines)}")
    terminal.say(f"every task: {', '.join(f'-T {name}={value}' for name, value in COMMON.items())}")
    terminal.say("tasks of plugins:  " + ("  ".join(registry.plugin_names()) or "none"))
    terminal.say("models:   " + "  ".join(FORMS))
    terminal.say("presets:  " + "  ".join(presets.table()))
    terminal.say("plugins:  " + ("  ".join(PLUGINS.names()) or "none"))
    terminal.say("logs:     " + ", ".join(HARNESSES))


_VIEW_USAGE = "omnidata view DATA, omnidata view TASK DATA, or omnidata view RUN"
_RUN = ("run.json", "results.json")


@reading_data
def view(
    task_options: args.TaskOptions,
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK", help="The benchmark, e.g. omnigui; needed where the data do not tell."
        ),
    ] = None,
    data: Annotated[
        Path | None, args.data_argument("The dataset's folder or file, or a run folder.")
    ] = None,
    named: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="The same as TASK.")
    ] = None,
    of: Annotated[
        Path | None,
        args.data_option("The dataset of a run, where it has moved.", "--data"),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of 127.0.0.1; 0 takes any that is free.")
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address and the sizes as JSON.")
    ] = False,
) -> None:
    """Look at a dataset, or at a run's answers, in the browser.

    Pages are made when they are asked for; nothing is written. The server listens on 127.0.0.1
    alone and gives out nothing but the media of the steps. Ctrl-C ends it.

    Example: omnidata view omnigui omnidata-demo/data
    """
    from omnidata.run.evaluate import run_loop
    from omnidata.viewer.server import serve

    place = data
    if place is None:
        if task is None:
            raise UsageError("there is nothing to look at", expected=_VIEW_USAGE)
        place = data_of(named, Path(task))
        task = None
    if task and named:
        raise UsageError("the task is named twice", where=f"--task {named}", expected=_VIEW_USAGE)
    book = _book(place, task or named, of, task_options)

    def started(address: str) -> None:
        if as_json:
            sizes = {"steps": len(book.steps), "episodes": len(book.episodes)}
            terminal.print_json({"address": address, "task": book.task.name, **sizes})
        else:
            terminal.say(address)
            terminal.note("Ctrl-C ends it")

    try:
        run_loop(serve(book, port, started))
    except KeyboardInterrupt:
        return  # it is how the work ends
    except OSError as error:
        raise UsageError(
            f"the port cannot be used ({error.strerror})",
            where=f"--port {port}",
            expected="a free port",
            remedy="leave --port out",
        ) from None


def _book(data: Path, task: str | None, of: Path | None, task_options: list[str]) -> Book:
    """What is to be shown: a run folder's answers, or a dataset."""
    from omnidata.run.run_files import read_run
    from omnidata.tasks import get_task
    from omnidata.tasks.base import parse
    from omnidata.viewer.report_data import open_data, open_run

    if data.is_dir() and any((data / name).is_file() for name in _RUN):
        for given, where in ((task, f"the task {task}"), (task_options, "-T")):
            if given:
                raise UsageError("a run says itself what it is", where=where, remedy="leave it out")
        return open_run(read_run(data), data=of)
    if of is not None:
        raise UsageError("DATA is no run folder", where=f"--data {of}", remedy="leave it out")
    name = task or only_task(
        data, _VIEW_USAGE, lambda named, place: f"omnidata view {named} {place}"
    )
    book = open_data(get_task(name, parse(task_options, "-T")), data)
    terminal.print_findings(book.source)
    return book
