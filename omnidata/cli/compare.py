"""`omnidata compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.arguments import reading_data

if TYPE_CHECKING:
    from omnidata.analysis.comparison import Comparison
    from omnidata.analysis.comparison_tables import Reports

Format = Literal["terminal", "md", "csv", "json"]


@reading_data
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A run folder: what was before.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another: what is new.")],
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
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = "terminal",
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    as_json: args.Json = False,
) -> None:
    """Compare two runs: which differences are more than chance?

    Every metric is compared overall and by slice, with an interval from a bootstrap over episodes
    and a p, raw and corrected for many slices; McNemar's test counts the steps that only one run
    has right, which are listed. Answers of elsewhere are compared once `omnidata score --out`
    has scored them. Runs of other data or by other rules are refused.

    Example: omnidata compare runs/center runs/random
    """
    from omnidata.analysis import comparison_tables as shown
    from omnidata.analysis.comparison import compare as run

    reports = shown.Reports(pages_a, pages_b)
    with terminal.counter("resampling"):
        found = run(run_a, run_b, data=data, seed=seed)
    if as_json or form == "json":
        terminal.print_json(found.as_dict())
    elif form == "terminal":
        _print(found, reports)
    else:
        text = shown.as_csv(found) if form == "csv" else shown.markdown(found, reports)
        terminal.say(text.removesuffix("\n"))


def _print(found: Comparison, reports: Reports) -> None:
    from omnidata.analysis import comparison_tables as shown

    for line in shown.facts(found):
        terminal.note(line)
    for table in shown.tables(found):
        terminal.print_table(*table)
    for direction in shown.DIRECTIONS if found.flipping else ():
        terminal.say(f"{direction}: {shown.count(found, direction)}")
        for name, links in shown.flips(found, direction, reports):
            terminal.say("  ".join(["", name, *links]))
    terminal.note(shown.method(found))
