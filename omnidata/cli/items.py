"""`omnidata items`: what steps tell of models, and models of steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.arguments import check_exclude, reading_data, write_exclude
from omnidata.errors import UsageError

Format = Literal["terminal", "md", "csv", "json"]
_HEAD = "Steps to leave out, by omnidata items"


@reading_data
def items(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, scored; three or more.")
    ],
    subset: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Choose a part of the steps, e.g. 0.1, that keeps the ranking of the runs.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the ids of the labels to recheck, or with --subset of all steps outside of "
            "it, for evaluate --exclude FILE.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        args.data_option("The data, if not where the runs say that they lie."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = "terminal",
    seed: Annotated[int, typer.Option(min=0, help="Of the parts that are tried.")] = 0,
    as_json: args.Json = False,
) -> None:
    """Find hard steps, labels to recheck, and a part that ranks alike.

    Difficulty and discrimination of each step over the runs, and a list of the labels that all
    strong runs contradict with one and the same answer: to be looked at again. With --subset, a
    part of the data on which the runs come in the same order, and how far it is off for a run
    unseen.

    Example: omnidata items runs/* --to recheck.txt

    Example: omnidata items runs/* --subset 0.1 --to exclude.txt
    """
    if to is not None:
        check_exclude(to, head=_HEAD, flag="--to")
    if subset is not None:
        if not 0 < subset < 1 or form == "csv":
            raise UsageError(
                "the whole has no part of that size" if form != "csv" else "a subset has no CSV",
                where=f"--subset {subset:g}",
                expected="a share above 0 and below 1" if form != "csv" else "--format md or json",
            )
        ids = _subset(runs, subset, data, seed, form, as_json=as_json or form == "json")
    else:
        ids = _items(runs, data, form, as_json=as_json or form == "json")
    if to is not None:
        write_exclude(to, ids, head=_HEAD)


def _items(runs: Sequence[Path], data: Path | None, form: Format, *, as_json: bool) -> list[str]:
    """Print the items; gives the ids of labels to recheck."""
    from omnidata.analysis import items as analysis
    from omnidata.analysis.tables import text_markdown

    with terminal.counter("steps"):
        found = analysis.analyse(runs, data=data)
    if as_json:
        terminal.print_json(found.as_dict())
    elif form == "csv":
        terminal.say(analysis.as_csv(found).removesuffix("\n"))
    else:
        for text in found.warnings:
            terminal.note(f"warning: {text}")
        for table in analysis.tables(found):
            if form == "md":
                terminal.say(text_markdown(table))
            else:
                terminal.print_table(table.title, table.header, table.rows)
        terminal.note(f"strong runs: {', '.join(found.strong)}")
    return [item.sample_id for item in found.contradicted]


def _subset(
    runs: Sequence[Path], share: float, data: Path | None, seed: int, form: Format, *, as_json: bool
) -> list[str]:
    """Print a subset; gives the ids of all other steps."""
    from omnidata.analysis import subsets
    from omnidata.analysis.tables import text_markdown

    with terminal.counter("parts"):
        found = subsets.choose(runs, share, data=data, seed=seed)
    if as_json:
        terminal.print_json(found.as_dict())
        return list(found.left_out)
    for text in found.warnings:
        terminal.note(f"warning: {text}")
    table = subsets.table(found)
    if form == "md":
        terminal.say(text_markdown(table))
    else:
        terminal.print_table(table.title, table.header, table.rows)
    for text in subsets.facts(found):
        terminal.say(f"\n{text}" if form == "md" else text)
    return list(found.left_out)
