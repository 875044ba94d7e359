"""Printing: progress and notes to stderr, tables and JSON to stdout."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import typer

from omnidata.errors import plural
from omnidata.remote import with_urls
from omnidata.table import TextTable, number
from omnidata.table_formats import latex, lines, markdown
from omnidata.table_formats import plain as plain

if TYPE_CHECKING:
    from omnidata.errors import Finding
    from omnidata.metrics.intervals import Method
    from omnidata.types import LoadedDataset, Progress

Columns = Mapping[str, Literal["share", "number"]]
_Move = Callable[[int, int | None], None]
_EACH: ContextVar[bool] = ContextVar("each finding is printed", default=False)
_PLACES = 3
"""Places that a line for a kind of findings names."""
_WORDINGS = 3
"""Lines for findings with one code."""
_VARYING = re.compile(r"""['"`“‘][^'"`”’]*['"`”’]|[-+]?\d[\d.,]*""")
"""Parts of messages that differ within a kind: quoted names, and numbers."""
_METHODS: Mapping[Method, str] = {
    "wilson": "Wilson's, because all resamples have one value",
    "none: one group": "none, because all episodes form one group",
}
_WITHOUT_TERMINAL = 120
"""Columns of an output without a terminal."""
_HEIGHT = 25
"""Lines: without it `rich` passes over the width that it is given in a dumb terminal."""


def say(text: str) -> None:
    """Print a line of the result on stdout."""
    typer.echo(plain(with_urls(text)))


def note(text: str) -> None:
    """Print a note on stderr."""
    typer.echo(plain(with_urls(text)), err=True)


def note_prose(text: str) -> None:
    """Print sentences on stderr, broken between words at the width of the terminal."""
    width = columns_of_stdout()
    note("\n".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)))


def print_json(value: Any) -> None:
    """Print the result as JSON on stdout."""
    typer.echo(with_urls(json.dumps(value, indent=1)))


def _has_bars() -> bool:
    """Return whether stderr may show a progress bar: else `rich` need not be imported."""
    return sys.stderr.isatty() or not {"FORCE_COLOR", "TTY_COMPATIBLE"}.isdisjoint(os.environ)


def print_data(found: Any, form: str, as_csv: Callable[[Any], str]) -> bool:
    """Print a result as JSON or CSV on stdout; return whether that is the form.

    Args:
        found: has a method `as_dict`.
        form: as in `arguments.Format`.
        as_csv: returns the CSV.
    """
    if form == "json":
        print_json(found.as_dict())
    elif form == "csv":
        say(as_csv(found).removesuffix("\n"))
    return form in ("json", "csv")


@contextmanager
def _bar(label: str, columns: Sequence[str], *, starts: bool = True) -> Iterator[_Move]:
    """Show a progress bar of these columns of `rich` on stderr; yield the function that sets it."""
    if not _has_bars():
        yield lambda done, total: None
        return
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    shown = [
        rich.TextColumn(name) if "{" in name else getattr(rich, f"{name}Column")()
        for name in columns
    ]
    # Without a terminal it would print empty lines.
    bar = rich.Progress(*shown, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(label, total=None)

    def move(done: int, total: int | None) -> None:
        if not starts:
            bar.start()
        bar.update(task, completed=done, total=total)

    if starts:
        bar.start()
    try:
        yield move
    finally:
        bar.stop()


def progress(label: str) -> AbstractContextManager[Progress]:
    """Show a progress bar on stderr; yield the function that sets (done, total)."""
    return _bar(label, ("{task.description}", "Bar", "MofNComplete", "TimeRemaining"))


def bytes_progress(label: str) -> AbstractContextManager[Progress]:
    """Show a progress bar for bytes, from the first update on."""
    columns = ("{task.description}", "Bar", "Download", "TransferSpeed")
    return _bar(label, columns, starts=False)


@contextmanager
def counter(label: str) -> Iterator[Callable[[int], None]]:
    """Show a count on stderr, for work of unknown size; yield the function that sets it."""
    columns = ("Spinner", "{task.completed} {task.description}", "TimeElapsed")
    with _bar(label, columns) as move:
        yield lambda done: move(done, None)


def warn(texts: Iterable[str]) -> None:
    """Print warnings on stderr."""
    for text in texts:
        note(f"warning: {text}")


@contextmanager
def resumable() -> Iterator[None]:
    """Print the command that resumes, if interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted; the same command resumes: {command()}")
        raise


def command() -> str:
    """Return the running command, to be typed again."""
    return shlex.join(["omnidata", *sys.argv[1:]])


def print_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    legend: Mapping[str, str] | None = None,
    *,
    together: int = 1,
) -> None:
    """Print a table of texts; see `TextTable` and `show_table`."""
    show_table(TextTable(title, header, rows, legend), together=together)


def show_table(table: TextTable, form: str = "terminal", *, together: int = 1) -> None:
    """Print a table of texts on stdout, and its legend and notes on stderr.

    Args:
        table: the table.
        form: terminal, md or latex; these have the notes below the table.
        together: so many columns stay beside each other in a terminal, if they fit.
    """
    if form != "terminal":
        say((markdown if form == "md" else latex)(table))
        return
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    has_styles = sys.stdout.isatty() and not is_dumb
    for text, role in lines(table, columns_of_stdout(), together=together):
        if role != "row" and has_styles:
            text = typer.style(text, **{"bold" if role == "header" else "italic": True})
        typer.echo(text)
    if table.legend:
        note_legend(table.legend)
    for text in table.notes:
        note_prose(text)


def print_folded(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on stdout whose long cells are folded into several lines."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell).replace("\n", " ")) for cell in row))
    Console(width=columns_of_stdout(), height=_HEIGHT).print(table)


def columns_of_stdout() -> int:
    """Return the width of the terminal; without one `COLUMNS`, or 120."""
    # `rich` takes every dumb terminal for one of 80 columns.
    return shutil.get_terminal_size((_WITHOUT_TERMINAL, _HEIGHT)).columns


def note_legend(legend: Mapping[str, str]) -> None:
    """Print the meaning of column names on stderr."""
    note_prose(", ".join(f"{name}: {words}" for name, words in legend.items()))


def percent(value: float | None) -> str:
    """Return a fraction in percent, as the papers print it; a dash for None.

    Examples:
        >>> percent(0.6361), percent(None)
        ('63.6', '-')
    """
    return "-" if value is None else f"{100 * value:.1f}"


def cells(values: Mapping[str, Any], columns: Columns) -> list[str]:
    """Return the values of the columns, as tables print them."""
    return [number(values[name], unit) for name, unit in columns.items()]


def money(amount: float) -> str:
    """Return an amount of some currency with two decimals, or two significant digits.

    Examples:
        >>> money(12.3456), money(0.0), money(0.00017512)
        ('12.35', '0.00', '0.00018')
    """
    return f"{amount:.2f}" if amount >= 0.1 or not amount else f"{amount:.2g}"


def interval(ends: Sequence[float | None] | None, unit: Literal["share", "number"]) -> str:
    """Return both ends of an interval; a dash for None.

    Examples:
        >>> interval((0.4, 0.625), "share"), interval(None, "share")
        ('40.0 - 62.5', '-')
    """
    return " - ".join(number(end, unit) for end in ends or (None,))


def results_rows(results: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the rows of a results table: overall, then every group of every axis."""
    rows: list[tuple[str, Mapping[str, Any]]] = [("overall", results["overall"])]
    for axis, groups in results["by"].items():
        rows += [(f"{axis}: {name}", values) for name, values in groups.items()]
    return rows


def print_results(
    results: Mapping[str, Any],
    columns: Columns,
    legend: Mapping[str, str] | None = None,
    of_episodes: Sequence[str] = (),
    lacks: str = "",
) -> None:
    """Print one run's table with 95 % intervals, and its counts.

    Args:
        results: of the run.
        columns: its totals and their units.
        legend: header -> its meaning.
        of_episodes: the metrics over whole episodes.
        lacks: counts the missing answers, for the headline; empty if none is missing.
    """
    sizes = [name for name in ("episodes", "steps", "tasks") if name in results["counts"]]
    rows = []
    for name, values in results_rows(results):
        size = results["counts"] if values is results["overall"] else values
        rows.append([name, *cells(values, columns), *(str(size[each]) for each in sizes)])
        if name == "overall":
            spans = [interval(results["ci95"][column], unit) for column, unit in columns.items()]
            rows.append(["  95 % interval", *spans, *("" for _ in sizes)])
    title = f"{results['task']} by {results['profile']} (%)"
    if results.get("agent"):
        title += f": {results['agent']}"
    print_headline(results)
    if lacks:
        title += f": {lacks}"
    print_table(title, ("", *columns, *sizes), rows, legend)
    methods = results.get("ci95_method", {})
    for method, words in _METHODS.items():
        if named := [name for name in columns if methods.get(name) == method]:
            note(f"95 % intervals of {', '.join(named)}: {words}")
    note(outcome_line(results, of_episodes))
    if ended := results.get("rollouts", {}).get("endings"):
        from omnidata.metrics.rollouts import ENDINGS

        told = ", ".join(f"{count} {ENDINGS[name]}" for name, count in ended.items())
        note(f"endings: {told}")
    if several := results.get("attempts"):
        number = several["n"]
        last = several["k"][str(number)]
        shares = [f"pass{sign}{number} {percent(last[f'pass{sign}k'])}" for sign in "@^"]
        finished = plural(several["finished"], "task")
        note(f"{number} attempts per task: {', '.join(shares)} over {finished} that all finished")


def print_headline(*several: Mapping[str, Any], to: Callable[[str], None] = say) -> None:
    """Print why results are not to be published, each reason once, with its profiles.

    Args:
        several: the content of `results.json` of one run, by different profiles.
        to: prints a line: `say`, or `note` where stdout is for programs.
    """
    if any("headline" in results for results in several):
        from omnidata.run.headlines import lines_of

        profiles: dict[str, list[str]] = {}
        for results in several:
            for line in lines_of(results):
                profiles.setdefault(line, []).append(results["profile"])
        for line, names in profiles.items():
            by = f" by {', '.join(names)}" if len(several) > 1 else ""
            to(f"NOT A RESULT{by}: {line}")


def _in_dialect(said: Mapping[str, Any]) -> str:
    answers = said["answers"]
    parts = [
        f"dialect {said['name']}: {said['read']} of {plural(answers, 'answer')} read, "
        f"{said['read_strict']} by its released parser"
    ]
    own = said["read"] if said["rules"] == "lenient" else said["read_strict"]
    if unsaid := own - said["expressed"]:
        parts.append(f"{unsaid} with actions that the benchmark cannot express")
    if said["several"]:
        parts.append(f"{said['several']} with several actions, only the first judged")
    if lacking := said["steps"] - said["expressible"]:
        parts.append(f"{plural(lacking, 'target')} that the dialect cannot express")
    return ", ".join(parts)


def outcome_line(results: Mapping[str, Any], of_episodes: Sequence[str]) -> str:
    """Return outcomes and counts in one line.

    Args:
        results: of a run.
        of_episodes: the metrics over whole episodes; empty if their names are unknown.
    """
    counts = results["counts"]
    parts = [f"{count} {name}" for name, count in results["outcomes"].items()]
    if lost := counts.get("without_usable_target"):
        judged = counts["steps"]
        parts.append(f"{judged} in the table, {lost} left out (no usable target)")
    for key, words in (
        ("judged_by_extension", "judged by an extension of the paper's rules"),
        ("degraded", "asked without some of their media"),
        ("undefined_LC", "without LC, because no order stays in one application"),
        ("capped_LC", "with bounds for LC only"),
        ("unknown_tasks", "skipped, because the data do not have them"),
    ):
        if counts.get(key):
            parts.append(f"{counts[key]} {words}")
    if said := results.get("dialect"):
        parts.append(_in_dialect(said))
    if counts.get("incomplete_episodes"):
        lacking = counts["incomplete_episodes"]
        of_what = "steps or usable targets" if counts.get("without_usable_target") else "steps"
        parts.append(f"{plural(lacking, 'episode')} lack{'s' if lacking == 1 else ''} {of_what}")
    cut = counts.get("episodes", 0) - counts.get("whole_episodes", 0)
    if cut:
        names = " and ".join(of_episodes) or "the metrics of episodes"
        parts.append(
            f"{plural(cut, 'episode')} incomplete by the choice of steps, left out of {names}"
        )
    unit = "tasks" if "tasks" in counts else "steps"
    return f"{unit}: {', '.join(parts)}"


def print_findings(source: LoadedDataset) -> None:
    """Print the sizes of a dataset, and its findings by kind, on stderr."""
    findings = source.findings
    print_kinds(findings)
    episodes = len({step.episode for step in source.steps})
    line = f"{plural(episodes, 'episode')}, {plural(len(source.steps), 'step')}, "
    line += f"{plural(source.skipped, 'row')} skipped"
    if findings:
        line += f"; {_kinds(findings)}"
        line += f" (`omnidata info {source.task} {source.root} --all` lists each)"
    note(line)


def print_doubts(findings: Sequence[Finding]) -> None:
    """Print the findings by kind, and their counts, on stderr."""
    print_kinds(findings)
    if findings:
        note(_kinds(findings))


@contextmanager
def listing(each: bool) -> Iterator[None]:
    """Print findings one by one meanwhile, not by kind, if `each`."""
    token = _EACH.set(each)
    try:
        yield
    finally:
        _EACH.reset(token)


def print_kinds(
    findings: Sequence[Finding],
    *,
    to: Callable[[str], None] = note,
    alone: Callable[[Finding], str] = str,
) -> None:
    """Print findings of one kind as one line, with their number and the first three places.

    Findings of one kind have the same code, severity and wording, apart from numbers and quoted
    names. Under `listing(True)` each finding is printed.

    Args:
        findings: in any order.
        to: prints a line: `note` or `say`.
        alone: formats a finding that is the only one of its kind.
    """
    kinds = [[finding] for finding in findings] if _EACH.get() else _by_kind(findings)
    for kind in kinds:
        to(alone(kind[0]) if len(kind) == 1 else _line_of(kind))


def _by_kind(findings: Sequence[Finding]) -> list[list[Finding]]:
    codes: dict[tuple[str, str], dict[str, list[Finding]]] = {}
    for finding in findings:
        wordings = codes.setdefault((finding.severity, finding.code), {})
        wording = _VARYING.sub("#", f"{finding.what}\n{finding.remedy}")
        if wording not in wordings and len(wordings) >= _WORDINGS:
            wording = ""
        wordings.setdefault(wording, []).append(finding)
    return [kind for wordings in codes.values() for kind in wordings.values()]


def _line_of(kind: Sequence[Finding]) -> str:
    first = kind[0]
    places = "; ".join(finding.where for finding in kind[:_PLACES])
    more = "; ..." if len(kind) > _PLACES else ""
    several = "e.g. " if any(finding.what != first.what for finding in kind) else ""
    line = f"{first.severity} [{first.code}] {len(kind):,} times: {several}{first.what} "
    line += f"({places}{more}). Expected: {first.expected}. Fix: {first.remedy}"
    return line.replace("\n", "\\n")


def _kinds(findings: Sequence[Finding]) -> str:
    kinds = Counter(finding.code for finding in findings)
    return f"findings: {', '.join(f'{n} {code}' for code, n in kinds.most_common())}"
