"""Verbs that show runs: report, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import argument, flag, option, repeatable, verb
from omnidata.cli.runs import legend_of
from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.analysis.comparison import Comparison
    from omnidata.analysis.comparison_tables import Reports
    from omnidata.analysis.report import Report
    from omnidata.run.errata import Errata
    from omnidata.run.run_files import Run


Format = Literal["terminal", "md", "latex", "csv", "json"]


@verb(args.reading_data)
def report(
    *,
    runs: list[Path] = argument("Scored run folders.", "RUN..."),
    by: list[str] = repeatable(
        "Add a table by this tag, e.g. app, language or element-size (repeatable).", "AXIS"
    ),
    task_options: Mapping[str, str] = repeatable(
        "With --html: allow a file or folder that the run's options name, e.g. voice=FOLDER "
        "(repeatable).",
        "KEY=VALUE",
        name="-T",
    ),
    hub_datasets: Mapping[str, str] = repeatable(
        "With --card: the dataset's id on the Hub, for .eval_results (repeatable).",
        "TASK=ID",
        name="--hub-dataset",
    ),
    form: Format = option("Format of the tables.", name="--format", default="terminal"),
    published: bool = flag("Add the rows that the papers publish.", "--published"),
    errors: bool = flag("Print tables of causes of wrong answers instead.", "--errors"),
    figures: Path | None = option(
        "Draw radar and bar charts into this folder, as PNG and SVG.", "DIR"
    ),
    card: Path | None = option("Write a model card with the results.", "FILE"),
    html: Path | None = option("Write pages for one run: one FILE.html, or a folder.", "PATH"),
    errata: args.Errata,
    data: Path | None = args.data_option(
        "The dataset for --html, --errata and --by element-size, if it has moved."
    ),
    as_json: args.Json = False,
) -> bool:
    """Show runs as tables in the style of the papers, or as pages.

    The runs decide the tables: runs that differ only in modalities, form of instruction, history or
    seed get their own table. Tasks and profiles never share a table. Runs on different data give a
    warning. Exit code 1: one fault spoils most of a score; a warning names it.

    Example: omnidata report runs/full runs/no-audio --published --format md

    Example: omnidata report runs/full --errors --by app
    """
    from omnidata.analysis.elements import AXIS, read_clicks
    from omnidata.analysis.report import report as make
    from omnidata.analysis.runs import read_runs
    from omnidata.run.errata import read_all

    for flag_name, pairs, needed, what, other in (
        ("--hub-dataset", hub_datasets, card, "--hub-dataset is for a card", "--card FILE"),
        ("-T", task_options, html, "no output uses files of prompts", "--html PATH"),
    ):
        given = " ".join(f"{flag_name} {name}={value}" for name, value in pairs.items())
        args.check_together(given, needed, what, given, other)
    args.check_together(
        data,
        html or errata or AXIS in by,
        "no output uses the data",
        f"--data {data}",
        f"--html PATH, --errata FILE or --by {AXIS}",
    )
    if html and len(runs) > 1:
        raise UsageError(
            "pages show one run", where=f"--html {html}", expected=f"one RUN, not {len(runs)}"
        )
    if errors:
        _check_causes(by, published)
    found, corrected = read_runs(runs), read_all(errata)
    if corrected:
        from omnidata.analysis.errata_tables import correct_runs

        found = correct_runs(found, corrected, data)
    sized = [read_clicks(run, data) for run in found] if AXIS in by else []
    axes = [axis for axis in by if axis != AXIS]
    made = make(found, with_published=published, by=axes, errors=errors, clicks=sized)
    # The files come first, so that an error comes before any table.
    if html:
        from omnidata import viewer as pages

        with terminal.progress("pages") as progress:
            pages.write(
                found[0],
                html,
                data=data,
                files=task_options,
                errata=corrected,
                progress=progress,
            )
        terminal.note(f"pages: {html / 'index.html' if html.is_dir() else html}")
    if figures:
        from omnidata.analysis.figures import draw

        for path in draw(found, figures, sized):
            terminal.note(f"figure: {path}")
    if card:
        from omnidata.analysis.model_card import write_card

        for path in write_card(found, card, hub_datasets):
            terminal.note(f"card: {path}")
    _print_report(made, found, "json" if as_json else form)
    return any(run.results.get("headline") for run in found)


def _print_report(made: Report, runs: Sequence[Run], form: Format) -> None:
    terminal.warn(made.warnings)
    if form == "json":
        terminal.print_json(made.as_dict())
        return
    terminal.say(made.text(form, width=terminal.columns_of_stdout()).rstrip())
    if form == "terminal":
        shown = {column.header for table in made.tables for column in table.columns}
        rules = [run.asking.profiles.get(run.profile) for run in runs]
        legends = [legend_of(profile) for profile in rules if profile]
        legend = {name: of[name] for of in legends for name in of if name in shown}
        if legend:
            terminal.note_legend(legend)


def _check_causes(by: Sequence[str], published: bool) -> None:
    """Refuse options that tables of causes do not have."""
    from omnidata.analysis.elements import AXIS

    if AXIS in by:
        raise UsageError(
            "there is no table of causes by size of elements",
            where=f"--errors --by {AXIS}",
            expected="one of the two",
            remedy=f"drop --errors, or --by {AXIS}",
        )
    if published:
        raise UsageError(
            "no paper publishes causes",
            where="--errors --published",
            expected="one of the two",
            remedy="drop --published",
        )


@verb(args.reading_data)
def compare(
    *,
    runs: list[Path] = argument(
        "Two run folders, the base first; or more, to rank them.", "RUN_A RUN_B..."
    ),
    by: list[str] = repeatable(
        "Add tables by this tag, e.g. app or dimension (repeatable).", "TAG"
    ),
    errata: args.Errata,
    data: Path | None = args.data_option("The dataset, if it has moved."),
    pages_a: Path | None = option(
        "RUN_A's HTML report; changed steps link to it.", "HTML", exists=True
    ),
    pages_b: Path | None = option("RUN_B's HTML report.", "HTML", exists=True),
    form: args.Format = "terminal",
    seed: int = option("Seed of the bootstrap.", min=0, default=0),
    as_json: args.Json = False,
) -> None:
    """Compare two runs, or rank several, with intervals and tests.

    Two runs: prints each metric on all steps with a paired bootstrap interval and a p-value, the
    causes of wrong answers, and the steps that only one run has right. --by adds tables by a tag.
    Three or more runs: prints their ranks with simultaneous intervals. The runs need the same data
    and the same rule profile. Score answers from elsewhere first with `omnidata score --out`.

    Example: omnidata compare runs/center runs/random

    Example: omnidata compare runs/center runs/random --by dimension
    """
    from omnidata.analysis import comparison_tables as shown
    from omnidata.analysis.comparison import compare as run
    from omnidata.run.errata import read_all

    form = "json" if as_json else form
    files = read_all(errata)
    if files and form == "csv":
        raise UsageError(
            "CSV has no place for a second comparison",
            where="--errata, --format csv",
            expected="--format md or json",
        )
    if len(runs) != 2:
        _rank(runs, data, pages_a or pages_b, by, files, form, seed)
        return
    reports = shown.Reports(pages_a, pages_b)
    with terminal.counter("resampling"):
        found = run(*runs, data=data, seed=seed)
        corrected = run(*runs, data=data, seed=seed, errata=files) if files else None
    if corrected and form == "json":
        _print_both(found.as_dict(), corrected.as_dict(), files)
        return
    if terminal.print_data(found, form, shown.as_csv):
        return
    for each in filter(None, (found, corrected)):
        if each is corrected:
            _say_errata(files)
        if form == "md":
            terminal.say(shown.markdown(each, reports, by).removesuffix("\n"))
        else:
            _print(each, reports, by)


def _print_both(
    usual: Mapping[str, Any], corrected: Mapping[str, Any], errata: Sequence[Errata]
) -> None:
    about = [{"name": one.name, "version": one.version, "hash": one.hash} for one in errata]
    terminal.print_json({**usual, "errata": about, "with_errata": corrected})


def _say_errata(errata: Sequence[Errata]) -> None:
    names = ", then ".join(f"{one.name} {one.version}" for one in errata)
    terminal.say(f"\nWith errata: {names}\n")


def _rank(
    runs: Sequence[Path],
    data: Path | None,
    pages: Path | None,
    by: Sequence[str],
    errata: Sequence[Errata],
    form: str,
    seed: int,
) -> None:
    from omnidata.analysis import ranking

    if len(runs) < 2 or pages:
        raise UsageError(
            "one run cannot be compared" if len(runs) < 2 else "pages are for two runs",
            where=f"--pages-a, --pages-b {pages}" if pages else str(runs[0]),
            expected="two runs" + ("" if pages else ", or more"),
            remedy="drop the pages" if pages else "name a second run folder",
        )
    if by:
        raise UsageError(
            "--by is for two runs",
            where=f"--by {by[0]}",
            expected="two runs",
            remedy="drop the option",
        )
    with terminal.counter("resampling"):
        found = ranking.rank(runs, data=data, seed=seed)
        corrected = ranking.rank(runs, data=data, seed=seed, errata=errata) if errata else None
    if corrected and form == "json":
        _print_both(found.as_dict(), corrected.as_dict(), errata)
        return
    if terminal.print_data(found, form, ranking.as_csv):
        return
    terminal.warn(found.warnings)
    for each in filter(None, (found, corrected)):
        if each is corrected:
            _say_errata(errata)
        terminal.show_table(ranking.table(each), form)
        terminal.note_prose(ranking.method(each))


def _print(found: Comparison, reports: Reports, by: Sequence[str]) -> None:
    from omnidata.analysis import comparison_tables as shown

    is_wide = terminal.columns_of_stdout() >= 120  # tables have all their columns
    made = shown.tables(found, by, wide=is_wide)
    for line in shown.describe_runs(found):
        terminal.note(line)
    for each in made:
        if isinstance(each, str):
            terminal.note_prose(each)
        else:
            terminal.show_table(each)
    if line := shown.describe_flips(found):
        terminal.say(line)
    for title, flips in shown.list_flips(found, reports):
        terminal.say(title)
        for name, links in flips:
            terminal.say("  ".join(["", name, *links]))
    notes = (
        shown.explain_too_few(made),
        shown.explain_columns(found, by),
        shown.name_other_tags(found, by),
    )
    for line in filter(None, notes):
        terminal.note_prose(line)
