"""Arguments and options that several verbs have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def _held(context: typer.Context, place: Path | None) -> Path | None:
    """What the user meant: the place, or the folder `data` in it."""
    from omnidata.cli.which import data_of

    return place and data_of(context.params.get("task"), place)


def data_argument(help: str) -> Any:
    """An argument that names a dataset's folder or file, or a folder whose `data` is one."""
    return typer.Argument(metavar="DATA", help=help, callback=_held)


def data_option(help: str, *names: str) -> Any:
    """The same as an option, which is called like its parameter unless it has other names."""
    return typer.Option(*names, metavar="DATA", help=help, callback=_held)


TaskName = Annotated[str, typer.Argument(metavar="TASK", help="The benchmark, e.g. omnigui.")]
Data = Annotated[Path, data_argument("The dataset's folder or file.")]
TaskOptions = Annotated[
    list[str],
    typer.Option(
        "-T",
        metavar="KEY=VALUE",
        help="A task option, e.g. modalities=I (repeatable).",
        default_factory=list,
        show_default=False,
    ),
]
ModelOptions = Annotated[
    list[str],
    typer.Option(
        "-M",
        metavar="KEY=VALUE",
        help="A model option, e.g. layout=release (repeatable).",
        default_factory=list,
        show_default=False,
    ),
]
Profile = Annotated[
    str | None, typer.Option(help="The scoring rules; the task's default follows its paper.")
]
Where = Annotated[
    list[str],
    typer.Option(
        metavar="TAG=VALUE",
        help="Only episodes with this tag, e.g. dimension=localization (repeatable).",
        default_factory=list,
        show_default=False,
    ),
]
Exclude = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Sample ids to leave out, one per line.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N steps.")]
Strict = Annotated[bool, typer.Option("--strict", help="Make findings in the data an error.")]
ChangedMedia = Annotated[
    bool,
    typer.Option(
        "--changed-media", help="Go on although media have changed since the model was shown them."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]

BaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The server, e.g. http://127.0.0.1:8000/v1."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Holds the server's key, in place of the environment."),
]
Models = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A TOML file of models of your own.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the first conversation and an estimate; send none.")
]
ShardOf = Annotated[
    str | None, typer.Option(metavar="I/N", help="Only the I-th of N parts (omnidata merge).")
]
Gpus = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Run in N processes, each with a GPU of its own."),
]
