"""`omnidata view`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.arguments import data_of, only_task, reading_data
from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.viewer.report_data import Book

_USAGE = "omnidata view DATA, omnidata view TASK DATA, or omnidata view RUN"
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
            raise UsageError("there is nothing to look at", expected=_USAGE)
        place = data_of(named, Path(task))
        task = None
    if task and named:
        raise UsageError("the task is named twice", where=f"--task {named}", expected=_USAGE)
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
    name = task or only_task(data, _USAGE, lambda named, place: f"omnidata view {named} {place}")
    book = open_data(get_task(name, parse(task_options, "-T")), data)
    terminal.print_findings(book.source)
    return book
