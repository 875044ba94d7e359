"""Verbs that show runs: report, compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.arguments import reading_data, repeatable
from omnidata.cli.runs import legend_of
from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.analysis.comparison import Comparison
    from omnidata.analysis.comparison_tables import Reports


Format = Literal["terminal", "md", "latex", "csv", "json"]


@reading_data
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, scored.")],
    by: Annotated[
        list[str],
        repeatable(
            "Also a table by this, e.g. app, language or element-size (repeatable).", metavar="AXIS"
        ),
    ],
    task_options: Annotated[
        list[str],
        repeatable(
            "With --html: a file or folder that an option of the run named, e.g. voice=FOLDER "
            "(repeatable); no other is opened.",
            "-T",
            metavar="KEY=VALUE",
        ),
    ],
    hub_datasets: Annotated[
        list[str],
        repeatable(
            "The data's id on the Hub, for .eval_results beside the card (repeatable).",
            "--hub-dataset",
            metavar="TASK=ID",
        ),
    ],
    form: Annotated[Format, typer.Option("--format", help="Of the tables.")] = "terminal",
    published: Annotated[
        bool, typer.Option("--published", help="The papers' rows beside the runs'.")
    ] = False,
    errors: Annotated[
        bool,
        typer.Option("--errors", help="Tables of why answers are wrong, in place of the others."),
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
        args.data_option("The dataset for --html and --by element-size, where it has moved."),
    ] = None,
    as_json: args.Json = False,
) -> None:
    """Show runs as the papers' tables: results, ablations, repeats.

    Which tables there are follows from the runs: those that differ in their modalities, in the
    form of the instruction, in their history or in their seed alone stand in a table of their own.
    Numbers of different tasks or profiles never share a table; different data are warned of. Exit
    code 1 means that most of a score is lost or wrong for one reason, which a warning says.

    Example: omnidata report runs/full runs/no-audio --published --format md

    Example: omnidata report runs/full --errors --by app
    """
    from omnidata.analysis.elements import AXIS, clicks
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
    if data and not html and AXIS not in by:
        raise UsageError(
            "nothing looks at the data",
            where=f"--data {data}",
            expected=f"--html PATH or --by {AXIS} as well",
        )
    if errors and AXIS in by:
        raise UsageError(
            "causes are not told by the size of elements",
            where=f"--errors --by {AXIS}",
            expected="one of the two",
            remedy=f"leave --errors out, or --by {AXIS}",
        )
    if errors and published:
        raise UsageError(
            "nothing is published of causes",
            where="--errors --published",
            expected="one of the two",
            remedy="leave --published out",
        )
    if task_options and not html:
        raise UsageError(
            "nothing looks at files of prompts",
            where=f"-T {task_options[0]}",
            expected="--html PATH as well",
        )
    found = read_runs(runs)
    sized = [clicks(run, data) for run in found] if AXIS in by else []
    axes = [axis for axis in by if axis != AXIS]
    made = make(found, with_published=published, by=axes, errors=errors, clicks=sized)
    if html:  # before the tables: what stands in its way is the first thing that is said
        from omnidata import viewer as pages

        with terminal.progress("pages") as progress:
            files = parse(task_options, "-T")
            pages.write(found[0], html, data=data, files=files, progress=progress)
        terminal.note(f"pages: {html / 'index.html' if html.is_dir() else html}")
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

        for path in draw(found, figures, sized):
            terminal.note(f"figure: {path}")
    if card:
        from omnidata.analysis.report import write_card

        for path in write_card(found, card, parse(hub_datasets, "--hub-dataset")):
            terminal.note(f"card: {path}")
    if any(run.results.get("headline") for run in found):
        raise typer.Exit(1)


CompareFormat = Literal["terminal", "md", "csv", "json"]


@reading_data
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_A RUN_B...", help="Run folders: what was before, and what is new; or more."
        ),
    ],
    data: Annotated[
        Path | None,
        args.data_option("The data, if not where the runs say that they lie."),
    ] = None,
    pages_a: Annotated[
        Path | None,
        typer.Option(
            metavar="HTML", exists=True, help="RUN_A's HTML report, which flips are linked to."
        ),
    ] = None,
    pages_b: Annotated[
        Path | None, typer.Option(metavar="HTML", exists=True, help="RUN_B's.")
    ] = None,
    form: Annotated[CompareFormat, typer.Option("--format", help="How to print it.")] = "terminal",
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    as_json: args.Json = False,
) -> None:
    """Compare two runs: which differences are more than chance?

    Every metric is compared overall and by slice, with an interval from a bootstrap over episodes
    and a p, raw and corrected for many slices; McNemar's test counts the steps that only one run
    has right, which are listed. A table says which causes of wrong answers one run has more of.
    Three runs or more are ranked, with intervals of their ranks that hold for all together. Answers
    of elsewhere are compared once `omnidata score --out` has scored them. Runs of other data or by
    other rules are refused.

    Example: omnidata compare runs/center runs/random
    """
    from omnidata.analysis import comparison_tables as shown
    from omnidata.analysis.comparison import compare as run

    if len(runs) != 2:
        _rank(runs, data, pages_a or pages_b, form, seed, as_json=as_json)
        return
    reports = shown.Reports(pages_a, pages_b)
    with terminal.counter("resampling"):
        found = run(*runs, data=data, seed=seed)
    if as_json or form == "json":
        terminal.print_json(found.as_dict())
    elif form == "terminal":
        _print(found, reports)
    else:
        text = shown.as_csv(found) if form == "csv" else shown.markdown(found, reports)
        terminal.say(text.removesuffix("\n"))


def _rank(
    runs: Sequence[Path],
    data: Path | None,
    pages: Path | None,
    form: CompareFormat,
    seed: int,
    *,
    as_json: bool,
) -> None:
    """Rank three runs or more."""
    from omnidata.analysis import ranking
    from omnidata.analysis.tables import text_markdown

    if len(runs) < 2 or pages:
        raise UsageError(
            "one run has nothing to be compared with" if len(runs) < 2 else "pages are of a pair",
            where=f"--pages-a, --pages-b {pages}" if pages else str(runs[0]),
            expected="two runs" + ("" if pages else ", or more"),
        )
    with terminal.counter("resampling"):
        found = ranking.rank(runs, data=data, seed=seed)
    if as_json or form == "json":
        terminal.print_json(found.as_dict())
        return
    if form == "csv":
        terminal.say(ranking.as_csv(found).removesuffix("\n"))
        return
    for text in found.warnings:
        terminal.note(f"warning: {text}")
    table = ranking.table(found)
    if form == "terminal":
        terminal.print_table(table.title, table.header, table.rows)
    else:
        terminal.say(text_markdown(table))
    terminal.note(ranking.method(found))


def _print(found: Comparison, reports: Reports) -> None:
    from omnidata.analysis import comparison_tables as shown

    for line in shown.facts(found):
        terminal.note(line)
    for table in shown.tables(found):
        terminal.print_table(table.title, table.header, table.rows)
    for direction in shown.DIRECTIONS if found.flipping else ():
        terminal.say(f"{direction}: {shown.count(found, direction)}")
        for name, links in shown.flips(found, direction, reports):
            terminal.say("  ".join(["", name, *links]))
    terminal.note(shown.method(found))
