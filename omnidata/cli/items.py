"""`omnidata items`: difficulty of steps, doubtful labels, subsets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.data import check_exclude, check_new_file, write_exclude
from omnidata.cli.declare import argument, option, verb
from omnidata.errors import UsageError, plural

_HEAD = "Steps to leave out, by omnidata items"


@verb(args.reading_data)
def items(
    *,
    runs: list[Path] = argument("Three or more scored run folders.", "RUN..."),
    subset: float | None = option(
        "Choose this share of the steps, e.g. 0.1, so that the runs keep their ranks.",
        "SHARE",
        min=0,
        max=1,
    ),
    to: Path | None = option(
        "Write the ids of labels to recheck, or with --subset of all other steps, for "
        "`evaluate --exclude FILE`.",
        "FILE",
    ),
    errata: Path | None = option(
        "Write the labels to recheck as corrections for a person to decide on (docs/errata.md).",
        "FILE",
    ),
    data: Path | None = args.data_option("The dataset, if it has moved."),
    form: args.Format = "terminal",
    seed: int = option("Seed for the subsets that are tried.", min=0, default=0),
    as_json: args.Json = False,
) -> None:
    """Find hard steps, doubtful labels, and subsets that keep the ranking.

    Prints the difficulty and discrimination of each step over the runs, and the labels that all
    strong runs contradict with the same answer. With --subset it chooses steps on which the runs
    keep their ranks, and estimates the error for another run.

    Example: omnidata items runs/* --to recheck.txt

    Example: omnidata items runs/* --errata candidates.jsonl

    Example: omnidata items runs/* --subset 0.1 --to exclude.txt
    """
    form = "json" if as_json else form
    if to is not None:
        check_exclude(to, head=_HEAD, flag="--to")
    if errata is not None:
        _check_new(errata, subset)
    if subset is not None:
        if not 0 < subset < 1 or form == "csv":
            raise UsageError(
                "a subset cannot have this size" if form != "csv" else "a subset has no CSV",
                where=f"--subset {subset:g}",
                expected="a share above 0 and below 1" if form != "csv" else "--format md or json",
            )
        ids = _choose_subset(runs, subset, data, seed, form)
    else:
        ids = _analyse(runs, data, form, errata)
    if to is not None:
        write_exclude(to, ids, head=_HEAD)


def _check_new(errata: Path, subset: float | None) -> None:
    where = f"--subset {subset} --errata {errata}"
    args.check_apart(subset is not None, errata, "a subset corrects no labels", where)
    check_new_file(errata, f"--errata {errata}")


def _analyse(
    runs: Sequence[Path], data: Path | None, form: str, errata: Path | None
) -> Sequence[str]:
    from omnidata.analysis import items as analysis
    from omnidata.jsontext import write_lines
    from omnidata.storage import atomic_write, wrap_os_error

    with terminal.counter("steps"):
        found = analysis.analyse(runs, data=data)
    if not terminal.print_data(found, form, analysis.as_csv):
        terminal.warn(found.warnings)
        for table in analysis.tables(found):
            terminal.show_table(table, form)
        terminal.note(f"strong runs: {', '.join(found.strong)}")
    if errata is not None:
        lines = analysis.errata_lines(found, data=data)
        with wrap_os_error(errata.parent), atomic_write(errata) as file:
            write_lines(file, lines)
        count, left = len(lines) - 1, len(found.contradicted) - len(lines) + 1
        more = f", {left} left out without an answer that is an action" if left else ""
        terminal.note(f"{plural(count, 'candidate')} to decide on: {errata}{more}")
    return [item.sample_id for item in found.contradicted]


def _choose_subset(
    runs: Sequence[Path], share: float, data: Path | None, seed: int, form: str
) -> Sequence[str]:
    from omnidata.analysis import subsets

    with terminal.counter("parts"):
        found = subsets.choose(runs, share, data=data, seed=seed)
    if form == "json":
        terminal.print_json(found.as_dict())
        return found.left_out
    terminal.warn(found.warnings)
    terminal.show_table(subsets.table(found), form)
    for text in subsets.facts(found):
        terminal.say(f"\n{text}" if form == "md" else text)
    return found.left_out
