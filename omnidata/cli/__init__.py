"""The command line: one file per group of verbs.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the job failed or there are
findings, 2 bad usage or bad input, 130 interrupted.
"""

from __future__ import annotations

import sys

import typer

from omnidata.cli import (
    ablate,
    audit,
    compare,
    convert,
    data,
    demo,
    doctor,
    evaluate,
    export,
    merge,
    report,
    score,
    segment,
    suite,
    synth,
    terminal,
    validate,
    view,
    voice,
)
from omnidata.errors import OmnidataError

app = typer.Typer(
    name="omnidata",
    help="Datasets and evaluation for GUI agents that see, hear and remember.",
    epilog="Start with `omnidata demo`: it makes a sample dataset and evaluates two models on it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("ablate")(ablate.ablate)
app.command("audit")(audit.audit)
app.command("compare")(compare.compare)
app.command("convert")(convert.convert)
app.command("doctor")(doctor.doctor)
app.command("info")(data.info)
app.command("evaluate")(evaluate.evaluate)
app.command("export")(export.export)
app.command("merge")(merge.merge)
app.command("report")(report.report)
app.command("score")(score.score)
app.command("segment")(segment.segment)
app.command("suite")(suite.suite)
app.add_typer(synth.app, name="synth")
app.command("validate")(validate.validate)
app.command("view")(view.view)
app.command("voice")(voice.voice)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    """Datasets and evaluation for GUI agents that see, hear and remember."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"omnidata {installed('omnidata')}")
        raise typer.Exit


def main() -> None:
    """Run the command line; an error for the user is a message, never a traceback."""
    try:
        app()
    except OmnidataError as error:
        terminal.note(f"{type(error).__name__}: {error}")
        sys.exit(error.exit_code)
    except OSError as error:
        terminal.note(f"{type(error).__name__}: {error}")
        sys.exit(1)
