"""A comparison as text tables, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from omnidata.analysis.comparison import Comparison, Direction, Flip, Pair, Slice
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
_FLIPS = 50
"""So many of each direction are listed in tables; JSON has all."""


def span(found: Estimate, unit: Unit) -> str:
    """Return the interval of a difference, or in short why there is none (see `few`)."""
    if found.ci95 is None:
        if found.why.startswith("too few"):
            return f"too few: {found.why.rpartition('(')[2].removesuffix(')')}"
        return "no difference" if found.why == "no episode differs" else found.why
    low, high = (number(end, unit, sign=True) for end in found.ci95)
    return f"{low} to {high}"


def few(tables: Iterable[Part]) -> str:
    """Explain `too few` below tables that have it; empty for others."""
    own = (each for each in tables if isinstance(each, TextTable))
    cells = (cell.text for each in own for row in each.rows for cell in row.cells)
    if not any(text.startswith("too few: ") or "(too few: " in text for text in cells):
        return ""
    return (
        f"too few: no interval, as fewer than {MIN_EPISODES} groups are compared, or fewer "
        f"than {MIN_DIFFERING} differ."
    )


def facts(found: Comparison) -> list[str]:
    """Return lines that say which runs are compared, and on which steps."""
    a, b = found.pair.a, found.pair.b
    unit = "step" if found.pair.steps else "task"
    episodes, groups = _sizes(found.pair)
    lines = [
        f"A: {a.name} ({a.path})",
        f"B: {b.name} ({b.path})",
        f"{a.task} by {a.profile}: {plural(len(found.pair.ids), unit)} in both runs",
    ]
    if groups < episodes:
        lines.append(
            f"{plural(episodes, 'episode')} form {plural(groups, 'group')} of related episodes; "
            "the bootstrap resamples groups"
        )
    lines += found.warnings
    if unjudged := len(found.pair.ids) - found.overall.steps:
        are = "is" if unjudged == 1 else "are"
        lines.append(f"{plural(unjudged, unit)} without a usable target {are} left out")
    for each in found.settings:
        lines.append(f"settings differ: {each.name} is {brief(each.a)} in A, {brief(each.b)} in B")
    return lines


def _sizes(compared: Pair) -> tuple[int, int]:
    episodes = len({step.episode for step in compared.steps})
    return episodes, len({step.group for step in compared.steps})


def method(found: Comparison, by: Sequence[str] = ()) -> str:
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


def _axes_of(found: Comparison) -> list[str]:
    return list(dict.fromkeys(each.axis for each in found.slices if each.axis))


def blocks(found: Comparison, by: Sequence[str] = (), *, wide: bool = True) -> list[Part]:
    """Return the table of all steps, a table per metric and tag, and the causes.

    A table whose rows would all be zero is a sentence that says so.

    Args:
        found: the comparison.
        by: the tags; see `_axes_of`.
        wide: with all columns; without, tables of short names fit 80 columns.

    Raises:
        UsageError: the comparison has no such tag.
    """
    known = _axes_of(found)
    for axis in by:
        if axis not in known:
            raise UsageError(
                "there is no such tag in the comparison",
                where=f"--by {axis}",
                expected=f"one of {', '.join(known)}" if known else "no --by: there are no tags",
                remedy="" if known else "drop --by",
            )
    rows = []
    for metric, unit in found.columns.items():
        value = found.overall.metrics[metric]
        name = f"{metric} (%)" if unit == "share" else metric
        sizes = _counts(found, value, found.overall) if wide else ()
        rows.append((value, (name, *_cells(value, unit), number(value.p, "p"), *sizes)))
    header = ("overall", *_COMPARED, "p", *(_size_headers(found) if wide else ()))
    steps = plural(found.overall.steps, "step" if found.pair.steps else "task")
    made = [_without_zeros(f"{found.pair.a.task}, all {steps}", header, rows)]
    for axis in by:
        made += [
            _by_axis(found, axis, metric, unit, wide=wide) for metric, unit in found.columns.items()
        ]
    return [*made, _causes(found, wide=wide)] if found.causes else made


def next_steps(found: Comparison, by: Sequence[str]) -> str:
    """Name the tags that are not shown; empty if all are."""
    more = [axis for axis in _axes_of(found) if axis not in by]
    return f"breakdowns: --by {', --by '.join(more)}" if more else ""


_COMPARED = ("A", "B", "B - A", "95 % interval")


def flips_line(found: Comparison) -> str:
    """Return McNemar's test on all steps in words; empty if there is none."""
    flips = found.overall.flips
    if not found.flipping or flips is None:
        return ""
    unit = "step" if found.pair.steps else "task"
    p = number(flips.p, "p")
    return (
        f"{found.flipping}: {plural(flips.a_only, unit)} right only in A, {flips.b_only} only "
        f"in B; McNemar p {p if p.startswith('<') else f'= {p}'}"
    )


def _by_axis(found: Comparison, axis: str, metric: str, unit: Unit, *, wide: bool) -> Part:
    flips = wide and metric == found.flipping
    header = [axis, *_COMPARED, *(("p", "q") if wide else ("q",))]
    if flips:
        header += ["only A right", "only B right", "McNemar p", "McNemar q"]
    rows = []
    for name, each in found.by(axis).items():
        value = each.metrics[metric]
        row = [name, *_cells(value, unit), *([number(value.p, "p")] if wide else [])]
        row.append(number(each.q[metric], "p"))
        if flips:
            own = each.flips
            tested = own and (
                *(str(own.a_only), str(own.b_only)),
                *(number(own.p, "p"), number(each.flips_q, "p")),
            )
            row += tested or ("-",) * 4
        rows.append((value, (*row, *(_counts(found, value, each) if wide else ()))))
    title = f"{metric} by {axis}" + (" (%)" if unit == "share" else "")
    return _without_zeros(title, (*header, *(_size_headers(found) if wide else ())), rows)


def _causes(found: Comparison, *, wide: bool) -> Part:
    rows = [
        (
            each.share,
            (
                CAUSES[name].partition(":")[0],
                *_cells(each.share, "share"),
                *([number(each.share.p, "p")] if wide else []),
                number(each.q, "p"),
            ),
        )
        for name, each in found.causes.items()
    ]
    header = ("", *_COMPARED, *(("p", "q") if wide else ("q",)))
    return _without_zeros("wrong, by cause (% of all steps)", header, rows)


def _without_zeros(
    title: str, header: Sequence[str], rows: Sequence[tuple[Estimate, Sequence[str]]]
) -> Part:
    """Leave rows out whose value is 0 in both runs, and name up to four of them."""
    kept = [cells for value, cells in rows if not value.a == value.b == 0]
    zero = [cells[0] for value, cells in rows if value.a == value.b == 0]
    note = f"{plural(len(zero), 'row')} left out, 0 in both runs" if zero else ""
    if 0 < len(zero) <= 4:
        note += f": {', '.join(zero)}"
    if not kept:
        return f"{title}: {note or 'nothing to compare'}"
    return TextTable(title, header, kept, notes=[note] if note else [])


def _size_headers(found: Comparison) -> tuple[str, ...]:
    if not found.pair.steps:
        return ("tasks",)
    episodes, groups = _sizes(found.pair)
    return ("groups" if groups < episodes else "episodes", "steps")


def _counts(found: Comparison, value: Estimate, each: Slice) -> tuple[str, ...]:
    return (str(value.episodes), str(each.steps))[: len(_size_headers(found))]


def _cells(value: Estimate, unit: Unit) -> tuple[str, ...]:
    return (
        number(value.a, unit),
        number(value.b, unit),
        number(value.difference, unit, sign=True),
        span(value, unit),
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


NO_REPORTS = Reports()


def _link(report: Path, page: int) -> str:
    if report.name == "index.html" and (report.parent / "steps").is_dir():
        report = report.parent  # the first page of a folder of pages
    if report.suffix.lower() in (".html", ".htm"):
        return f"{quote(str(report))}#step={page}"
    return quote(str(report / "steps" / f"{page}.html"))


def flips(
    found: Comparison, direction: Direction, reports: Reports = NO_REPORTS
) -> list[tuple[str, list[str]]]:
    """Return the first steps that flipped that way: sample id, and the addresses of its pages."""
    chosen = [flip for flip in found.flips if flip.direction == direction]
    lines = [(flip.sample_id, reports.links(flip)) for flip in chosen[:_FLIPS]]
    if len(chosen) > _FLIPS:
        lines.append((f"... and {len(chosen) - _FLIPS} more (all with --format json)", []))
    return lines


def markdown(found: Comparison, reports: Reports = NO_REPORTS, by: Sequence[str] = ()) -> str:
    """Return the comparison as Markdown."""
    parts = ["\n".join(f"- {markdown_text(line)}" for line in facts(found))]
    made = blocks(found, by)
    parts += [markdown_text(one) if isinstance(one, str) else table_markdown(one) for one in made]
    parts += [markdown_text(line)] if (line := flips_line(found)) else []
    for direction in DIRECTIONS if found.flipping else ():
        lines = [f"### {direction}: {count(found, direction)}", ""]
        for name, links in flips(found, direction, reports):
            lines.append(" ".join([f"- {markdown_text(name)}", *(f"<{link}>" for link in links)]))
        parts.append("\n".join(lines).rstrip())
    return "\n\n".join([*parts, *filter(None, [few(made), method(found, by)])]) + "\n"


DIRECTIONS: tuple[Direction, ...] = ("right->wrong", "wrong->right")


def count(found: Comparison, direction: Direction) -> int:
    """Return the number of steps that flipped that way."""
    return sum(flip.direction == direction for flip in found.flips)


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
