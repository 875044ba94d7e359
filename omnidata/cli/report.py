"""`omnidata report`: tables, figures and a model card of run folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.arguments import reading_data
from omnidata.cli.runs import legend_of
from omnidata.errors import UsageError

Format = Literal["terminal", "md", "latex", "csv", "json"]


@reading_data
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, scored.")],
    by: Annotated[
        list[str],
        typer.Option(
            "--by",
            metavar="AXIS",
            help="Also a table by this, e.g. app or language (repeatable).",
            default_factory=list,
            show_default=False,
        ),
    ],
    hub_datasets: Annotated[
        list[str],
        typer.Option(
            "--hub-dataset",
            metavar="TASK=ID",
            help="The data's id on the Hub, for .eval_results beside the card (repeatable).",
            default_factory=list,
            show_default=False,
        ),
    ],
    form: Annotated[Format, typer.Option("--format", help="Of the tables.")] = "terminal",
    published: Annotated[
        bool, typer.Option("--published", help="The papers' rows beside the runs'.")
    ] = False,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Draw radars and bars there, as PNG and SVG."),
    ] = None,
    card: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a model card with the results.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write pages of one run: a FILE.html, or a folder."),
    ] = None,
    data: Annotated[
        Path | None,
        args.data_option("The dataset for --html, where it has moved."),
    ] = None,
    as_json: args.Json = False,
) -> None:
    """Show runs as the papers' tables: results, ablations, repeats.

    Which tables there are follows from the runs: those that differ in their modalities, in the
    form of the instruction, in their history or in their seed alone stand in a table of their own.
    Numbers of different tasks or profiles never share a table; different data are warned of.

    Example: omnidata report runs/full runs/no-audio --published --format md
    """
    from omnidata.analysis.report import report as make
    from omnidata.analysis.runs import read_runs
    from omnidata.tasks.base import parse

    if hub_datasets and not card:
        raise UsageError(
            "there is no card to put results beside",
            where=f"--hub-dataset {hub_datasets[0]}",
            expected="--card FILE as well",
        )
    if html and len(runs) > 1:
        raise UsageError(
            "pages are of one run", where=f"--html {html}", expected=f"one RUN, not {len(runs)}"
        )
    if data and not html:
        raise UsageError(
            "nothing looks at the data", where=f"--data {data}", expected="--html PATH as well"
        )
    found = read_runs(runs)
    made = make(found, with_published=published, by=by)
    for text in made.warnings:
        terminal.note(f"warning: {text}")
    if as_json or form == "json":
        terminal.print_json(made.as_dict())
    else:
        room = terminal.columns_of_stdout()
        terminal.say(made.text(form, width=room).rstrip())
        if form == "terminal" and room is not None:
            shown = {column.header for table in made.tables for column in table.columns}
            rules = [run.benchmark.profiles.get(run.profile) for run in found]
            legends = [legend_of(profile) for profile in rules if profile]
            legend = {name: of[name] for of in legends for name in of if name in shown}
            if legend:
                terminal.note_legend(legend)
    if figures:
        from omnidata.analysis.figures import draw

        for path in draw(found, figures):
            terminal.note(f"figure: {path}")
    if card:
        from omnidata.analysis.report import write_card

        for path in write_card(found, card, parse(hub_datasets, "--hub-dataset")):
            terminal.note(f"card: {path}")
    if html:
        from omnidata import viewer as pages

        with terminal.progress("pages") as progress:
            pages.write(found[0], html, data=data, progress=progress)
        terminal.note(f"pages: {html if html.suffix else html / 'index.html'}")
