"""A comparison as text tables, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from omnidata.analysis.comparison import Comparison, Direction, Flip, Slice
from omnidata.analysis.inference import MIN_DIFFERING, MIN_EPISODES, Estimate
from omnidata.errors import UsageError, plural
from omnidata.metrics.paired import Unit
from omnidata.run.differences import brief
from omnidata.table import TextTable, number
from omnidata.table_formats import csv_text, markdown_text
from omnidata.table_formats import markdown as table_markdown
from omnidata.types import CAUSES

Part = TextTable | str
"""A table, or a sentence in its place."""

_DIRECTIONS: Final[tuple[Direction, ...]] = ("right->wrong", "wrong->right")
_MOST_FLIPS: Final = 50
"""So many of each direction are listed in tables; JSON has all."""


def describe_runs(found: Comparison) -> list[str]:
    """Return lines that say which runs are compared, and on which steps."""
    unit = found.aligned.unit
    episodes, groups = _sizes(found)
    lines = [
        f"A: {found.a.name} ({found.a.path})",
        f"B: {found.b.name} ({found.b.path})",
        f"{found.a.task} by {found.a.profile}: {plural(len(found.aligned.ids), unit)} in both runs",
    ]
    if groups < episodes:
        lines.append(
            f"{plural(episodes, 'episode')} form {plural(groups, 'group')} of related episodes; "
            "the bootstrap resamples groups"
        )
    lines += found.warnings
    if unjudged := found.unjudged():
        are = "is" if unjudged == 1 else "are"
        lines.append(f"{plural(unjudged, unit)} without a usable target {are} left out")
    for each in found.settings:
        lines.append(f"settings differ: {each.name} is {brief(each.a)} in A, {brief(each.b)} in B")
    return lines


def _sizes(found: Comparison) -> tuple[int, int]:
    """Return the numbers of episodes and of groups of related episodes."""
    steps = found.aligned.steps
    return len({step.episode for step in steps}), len({step.group for step in steps})


# Tables of metrics and causes. Rows are pairs of an estimate and its cells.

_Row = tuple[Estimate, Sequence[str]]
_COMPARED: Final = ("A", "B", "B - A", "95 % interval")


def tables(found: Comparison, by: Sequence[str] = (), *, wide: bool = True) -> list[Part]:
    """Return the table of all steps, a table per metric and tag, and the causes.

    A table whose rows would all be zero is a sentence that says so.

    Args:
        found: the comparison.
        by: the tags, which the comparison has.
        wide: with all columns; without, tables of short names fit 80 columns.

    Raises:
        UsageError: the comparison has no such tag.
    """
    known = _tags(found)
    for tag in by:
        if tag not in known:
            raise UsageError(
                "there is no such tag in the comparison",
                where=f"--by {tag}",
                expected=f"one of {', '.join(known)}" if known else "no --by: there are no tags",
                remedy="" if known else "drop --by",
            )
    made = [_overall(found, wide=wide)]
    for tag in by:
        for metric, unit in found.columns.items():
            made.append(_by_tag(found, tag, metric, unit, wide=wide))
    if found.causes:
        made.append(_causes(found, wide=wide))
    return made


def _tags(found: Comparison) -> list[str]:
    return list(dict.fromkeys(each.axis for each in found.slices if each.axis))


def _overall(found: Comparison, *, wide: bool) -> Part:
    rows: list[_Row] = []
    for metric, unit in found.columns.items():
        value = found.overall.metrics[metric]
        name = f"{metric} (%)" if unit == "share" else metric
        sizes = _size_cells(found, value, found.overall) if wide else ()
        rows.append((value, (name, *_cells(value, unit), number(value.p, "p"), *sizes)))
    header = ("overall", *_COMPARED, "p", *(_size_headers(found) if wide else ()))
    steps = plural(found.overall.steps, found.aligned.unit)
    return _without_zeros(f"{found.a.task}, all {steps}", header, rows)


def _by_tag(found: Comparison, tag: str, metric: str, unit: Unit, *, wide: bool) -> Part:
    has_flips = wide and metric == found.flipping
    header = [tag, *_COMPARED, *(("p", "q") if wide else ("q",))]
    if has_flips:
        header += ["only A right", "only B right", "McNemar p", "McNemar q"]
    if wide:
        header += _size_headers(found)
    rows: list[_Row] = []
    for name, each in found.by(tag).items():
        value = each.metrics[metric]
        cells = [name, *_cells(value, unit), *_p_cells(value, each.q[metric], wide=wide)]
        if has_flips:
            cells += _flip_cells(each)
        if wide:
            cells += _size_cells(found, value, each)
        rows.append((value, cells))
    title = f"{metric} by {tag}" + (" (%)" if unit == "share" else "")
    return _without_zeros(title, header, rows)


def _causes(found: Comparison, *, wide: bool) -> Part:
    rows: list[_Row] = []
    for name, each in found.causes.items():
        label = CAUSES[name].partition(":")[0]
        ps = _p_cells(each.share, each.q, wide=wide)
        rows.append((each.share, (label, *_cells(each.share, "share"), *ps)))
    header = ("", *_COMPARED, *(("p", "q") if wide else ("q",)))
    return _without_zeros("wrong, by cause (% of all steps)", header, rows)


def _cells(value: Estimate, unit: Unit) -> tuple[str, ...]:
    return (
        number(value.a, unit),
        number(value.b, unit),
        number(value.difference, unit, sign=True),
        format_interval(value, unit),
    )


def format_interval(found: Estimate, unit: Unit) -> str:
    """Return the interval of a difference, or why there is none (see `explain_too_few`)."""
    if found.ci95:
        low, high = (number(end, unit, sign=True) for end in found.ci95)
        return f"{low} to {high}"
    if found.why.startswith("too few"):
        few = found.episodes if found.episodes < MIN_EPISODES else found.differing
        return f"too few: {few}"
    return "no difference" if found.why == "no episode differs" else found.why


def _p_cells(value: Estimate, q: float | None, *, wide: bool) -> list[str]:
    ps = [value.p, q] if wide else [q]
    return [number(p, "p") for p in ps]


def _flip_cells(each: Slice) -> Sequence[str]:
    if each.flips is None:
        return ("-",) * 4
    counts = str(each.flips.a_only), str(each.flips.b_only)
    return (*counts, number(each.flips.p, "p"), number(each.flips_q, "p"))


def _size_headers(found: Comparison) -> tuple[str, ...]:
    if not found.aligned.steps:
        return ("tasks",)
    episodes, groups = _sizes(found)
    return ("groups" if groups < episodes else "episodes", "steps")


def _size_cells(found: Comparison, value: Estimate, each: Slice) -> tuple[str, ...]:
    return (str(value.episodes), str(each.steps))[: len(_size_headers(found))]


def _without_zeros(title: str, header: Sequence[str], rows: Sequence[_Row]) -> Part:
    """Leave rows out whose value is 0 in both runs, and name up to four of them."""
    kept = [cells for value, cells in rows if not value.a == value.b == 0]
    zero = [cells[0] for value, cells in rows if value.a == value.b == 0]
    note = f"{plural(len(zero), 'row')} left out, 0 in both runs" if zero else ""
    if 0 < len(zero) <= 4:
        note += f": {', '.join(zero)}"
    if not kept:
        return f"{title}: {note or 'nothing to compare'}"
    return TextTable(title, header, kept, notes=[note] if note else [])


# Lines below the tables.


def explain_too_few(parts: Iterable[Part]) -> str:
    """Explain `too few` below tables that have it; empty for others."""
    tables = (part for part in parts if isinstance(part, TextTable))
    cells = (cell.text for table in tables for row in table.rows for cell in row.cells)
    if not any("too few: " in text for text in cells):
        return ""
    return (
        f"too few: no interval, as fewer than {MIN_EPISODES} groups are compared, or fewer "
        f"than {MIN_DIFFERING} differ."
    )


def explain_columns(found: Comparison, by: Sequence[str] = ()) -> str:
    """Explain the columns in a few sentences."""
    text = (
        f"95 % interval: of B - A, percentiles of {found.resamples} paired bootstrap resamples of "
        "groups. p: two-sided permutation test that swaps the runs group by group."
    )
    if found.flipping:
        text += (
            f" McNemar's exact test of {found.flipping} assumes independent steps; its p-values "
            "are too small when steps of an episode are correlated."
        )
    if by and found.tests:
        text += (
            f" q: p corrected for all {plural(found.tests, 'test')} of metrics and tags "
            "(Benjamini-Hochberg); McNemar's for all tags."
        )
    if found.causes:
        text += " q of causes: p corrected for all causes (Benjamini-Hochberg)."
    return text


def name_other_tags(found: Comparison, by: Sequence[str]) -> str:
    """Name the tags that are not shown; empty if all are."""
    more = [tag for tag in _tags(found) if tag not in by]
    return f"breakdowns: --by {', --by '.join(more)}" if more else ""


def describe_flips(found: Comparison) -> str:
    """Return McNemar's test on all steps in words; empty if there is none."""
    flips = found.overall.flips
    if flips is None:
        return ""
    p = number(flips.p, "p")
    return (
        f"{found.flipping}: {plural(flips.a_only, found.aligned.unit)} right only in A, "
        f"{flips.b_only} only in B; McNemar p {p if p.startswith('<') else f'= {p}'}"
    )


@dataclass(frozen=True, slots=True)
class Reports:
    """The HTML reports of the runs; None for a run without one.

    Attributes:
        a, b: a file, or a folder of pages.
    """

    a: Path | None = None
    b: Path | None = None

    def links(self, flip: Flip) -> list[str]:
        """Return the addresses of the step's pages."""
        places = ((self.a, flip.a_page), (self.b, flip.b_page))
        return [_link(report, page) for report, page in places if report]


NO_REPORTS: Final = Reports()


def _link(report: Path, page: int) -> str:
    if report.name == "index.html" and (report.parent / "steps").is_dir():
        report = report.parent  # the first page of a folder of pages
    if report.suffix.lower() in (".html", ".htm"):
        return f"{quote(str(report))}#step={page}"
    return quote(str(report / "steps" / f"{page}.html"))


def list_flips(
    found: Comparison, reports: Reports = NO_REPORTS
) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Yield each direction with its number of steps that flipped, and the first of these steps.

    A step is its sample id and the addresses of its pages.
    """
    if not found.flipping:
        return
    for direction in _DIRECTIONS:
        flips = [flip for flip in found.flips if flip.direction == direction]
        lines = [(flip.sample_id, reports.links(flip)) for flip in flips[:_MOST_FLIPS]]
        if more := len(flips) - len(lines):
            lines.append((f"... and {more} more (all with --format json)", []))
        yield f"{direction}: {len(flips)}", lines


# Other formats.


def markdown(found: Comparison, reports: Reports = NO_REPORTS, by: Sequence[str] = ()) -> str:
    """Return the comparison as Markdown."""
    made = tables(found, by)
    parts = ["\n".join(f"- {markdown_text(line)}" for line in describe_runs(found))]
    parts += [markdown_text(one) if isinstance(one, str) else table_markdown(one) for one in made]
    if line := describe_flips(found):
        parts.append(markdown_text(line))
    for title, flips in list_flips(found, reports):
        lines = [f"### {title}", ""]
        for name, links in flips:
            lines.append(" ".join([f"- {markdown_text(name)}", *(f"<{link}>" for link in links)]))
        parts.append("\n".join(lines).rstrip())
    parts += [explain_too_few(made), explain_columns(found, by)]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_csv(found: Comparison) -> str:
    """Return a line per slice and metric, and per cause; fractions, nothing rounded."""
    lines = []
    for each in found.slices:
        for metric, value in each.metrics.items():
            flips = each.flips if metric == found.flipping else None
            lines.append(
                {
                    "axis": each.axis,
                    "group": each.group,
                    "metric": metric,
                    **_record(value, each.q[metric], each.steps),
                    "only_a_right": flips and flips.a_only,
                    "only_b_right": flips and flips.b_only,
                    "mcnemar_p": flips and flips.p,
                    "mcnemar_q": flips and each.flips_q,
                }
            )
    for name, cause in found.causes.items():
        record = _record(cause.share, cause.q, found.overall.steps)
        lines.append({"axis": "cause", "group": name, "metric": "wrong", **record})
    return csv_text(list(lines[0]), lines)


def _record(value: Estimate, q: float | None, steps: int) -> dict[str, Any]:
    low, high = value.ci95 or (None, None)
    return {
        "a": value.a,
        "b": value.b,
        "difference": value.difference,
        "low": low,
        "high": high,
        "p": value.p,
        "q": q,
        "why": value.why,
        "episodes": value.episodes,
        "differing": value.differing,
        "steps": steps,
    }
