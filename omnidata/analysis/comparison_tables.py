"""A comparison as people read it: tables of texts, Markdown, CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from omnidata.analysis.comparison import Comparison, Direction, Flip, Pair, Slice
from omnidata.analysis.inference import Estimate
from omnidata.analysis.tables import csv_text, markdown_text, number, text_markdown
from omnidata.errors import counted
from omnidata.metrics.paired import Unit
from omnidata.run.run_files import brief
from omnidata.tasks.overview import Table as TextTable
from omnidata.types import CAUSES

_FLIPS = 50
"""So many of each direction are listed in tables; JSON has all."""


def span(found: Estimate, unit: Unit) -> str:
    """The interval of a difference, or why there is none."""
    if found.ci95 is None:
        return found.why
    low, high = (number(end, unit, sign=True) for end in found.ci95)
    return f"{low} to {high}"


def probability(p: float | None) -> str:
    """A p as tables print it; a dash where there is none.

    Examples:
        >>> probability(0.0371), probability(0.0001), probability(None)
        ('0.037', '<0.001', '-')
    """
    return number(p, "p")


def facts(found: Comparison) -> list[str]:
    """What was compared with what, and how."""
    a, b = found.pair.a, found.pair.b
    unit = "step" if found.pair.steps else "task"
    lines = [
        f"A: {a.name} ({a.path})",
        f"B: {b.name} ({b.path})",
        f"{a.task} by {a.profile}: {counted(len(found.pair.ids), unit)} that both have",
        *_groups(found.pair),
        *found.warnings,
    ]
    if unjudged := len(found.pair.ids) - found.overall.steps:
        are = "is" if unjudged == 1 else "are"
        lines.append(f"{counted(unjudged, unit)} without a usable target {are} left out")
    for each in found.settings:
        lines.append(f"other settings: {each.name} is {brief(each.a)} in A, {brief(each.b)} in B")
    return lines


def _groups(compared: Pair) -> Iterator[str]:
    """What is counted as one episode, where it is more than one."""
    episodes = len({step.episode for step in compared.steps})
    groups = len({step.group for step in compared.steps})
    if groups < episodes:
        yield (
            f"{counted(episodes, 'episode')} in {counted(groups, 'group')} of what belongs "
            "together: a group is drawn and swapped as one, and counts as one episode"
        )


def method(found: Comparison) -> str:
    """How the intervals and p were found, in a few sentences."""
    text = (
        "Differences are B - A. Intervals: 95 % percentiles of a bootstrap over episodes, paired, "
        f"{found.resamples} resamples. p: two-sided, runs swapped episode by episode."
    )
    if found.flipping:
        text += (
            f" McNemar's exact test of {found.flipping} takes steps for independent and is too "
            "sure of itself where those of one episode stand or fall together."
        )
    if found.tests:
        text += (
            f" q: p corrected for all slices and metrics together ({counted(found.tests, 'test')}; "
            "Benjamini-Hochberg); for McNemar's p, for all slices."
        )
    if found.causes:
        text += " q of causes: p corrected for all causes together."
    return text


def tables(found: Comparison) -> list[TextTable]:
    """One table per metric, with a row per slice; and one of the causes of wrong answers."""
    told = [_table(found, metric, unit) for metric, unit in found.columns.items()]
    return [*told, _causes(found)] if found.causes else told


def _causes(found: Comparison) -> TextTable:
    """A row per cause: of how many steps it is the cause."""
    rows = [
        (CAUSES[name].partition(":")[0], *_compared(each.share, "share", each.q))
        for name, each in found.causes.items()
    ]
    return TextTable("Wrong, by cause (% of all steps)", ("", *_COMPARED), rows)


_COMPARED = ("A", "B", "B - A", "95 % interval", "p", "q")


def _compared(value: Estimate, unit: Unit, q: float | None) -> tuple[str, ...]:
    """Cells under `_COMPARED`."""
    return (
        number(value.a, unit),
        number(value.b, unit),
        number(value.difference, unit, sign=True),
        span(value, unit),
        probability(value.p),
        probability(q),
    )


def _table(found: Comparison, metric: str, unit: Unit) -> TextTable:
    header = ["", *_COMPARED]
    flips = metric == found.flipping
    if flips:
        header += ["only A right", "only B right", "McNemar p", "q"]
    sized = ("episodes", "steps") if found.pair.steps else ("tasks",)
    rows = []
    for each in found.slices:
        value = each.metrics[metric]
        row = [each.name, *_compared(value, unit, each.q[metric])]
        if flips and each.flips:
            row += [
                str(each.flips.a_only),
                str(each.flips.b_only),
                probability(each.flips.p),
                probability(each.flips_q),
            ]
        rows.append((*row, *map(str, (value.episodes, each.steps)[: len(sized)])))
    title = f"{metric} (%)" if unit == "share" else metric
    return TextTable(title, (*header, *sized), rows)


@dataclass(frozen=True, slots=True)
class Reports:
    """Where the HTML reports of the runs are; None for one that is not there.

    Attributes:
        a, b: a file, or a folder of pages.
    """

    a: Path | None = None
    b: Path | None = None

    def links(self, flip: Flip) -> list[str]:
        """The step's pages."""
        places = ((self.a, flip.a_page), (self.b, flip.b_page))
        return [_link(report, page) for report, page in places if report]


NO_REPORTS = Reports()


def _link(report: Path, page: int) -> str:
    """The address of a step's page in a report."""
    if report.name == "index.html" and (report.parent / "steps").is_dir():
        report = report.parent  # the first page of a folder of pages
    if report.suffix.lower() in (".html", ".htm"):
        return f"{quote(str(report))}#step={page}"
    return quote(str(report / "steps" / f"{page}.html"))


def flips(
    found: Comparison, direction: Direction, reports: Reports = NO_REPORTS
) -> list[tuple[str, list[str]]]:
    """The first steps that flipped that way: sample id, and the addresses of its pages."""
    chosen = [flip for flip in found.flips if flip.direction == direction]
    lines = [(flip.sample_id, reports.links(flip)) for flip in chosen[:_FLIPS]]
    if len(chosen) > _FLIPS:
        lines.append((f"... and {len(chosen) - _FLIPS} more (all with --format json)", []))
    return lines


def markdown(found: Comparison, reports: Reports = NO_REPORTS) -> str:
    """The comparison as Markdown."""
    parts = ["\n".join(f"- {markdown_text(line)}" for line in facts(found))]
    parts += map(text_markdown, tables(found))
    for direction in DIRECTIONS if found.flipping else ():
        lines = [f"### {direction}: {count(found, direction)}", ""]
        for name, links in flips(found, direction, reports):
            lines.append(" ".join([f"- {markdown_text(name)}", *(f"<{link}>" for link in links)]))
        parts.append("\n".join(lines).rstrip())
    return "\n\n".join([*parts, method(found)]) + "\n"


DIRECTIONS: tuple[Direction, ...] = ("right->wrong", "wrong->right")


def count(found: Comparison, direction: Direction) -> int:
    """How many steps flipped that way."""
    return sum(flip.direction == direction for flip in found.flips)


_FIELDS = (
    *("axis", "group", "metric", "a", "b", "difference", "low", "high", "p", "q"),
    *("why", "episodes", "differing", "steps", "only_a_right", "only_b_right"),
    *("mcnemar_p", "mcnemar_q"),
)


def as_csv(found: Comparison) -> str:
    """A line per slice and metric, and per cause; fractions, nothing rounded."""
    lines = [line for each in found.slices for line in _records(found, each)]
    lines += [
        {
            "axis": "cause",
            "group": name,
            "metric": "wrong",
            **_record(each.share, each.q),
            "steps": found.overall.steps,
        }
        for name, each in found.causes.items()
    ]
    return csv_text(_FIELDS, lines)


def _records(found: Comparison, each: Slice) -> Iterator[dict[str, Any]]:
    for metric, value in each.metrics.items():
        record = {
            "axis": each.axis,
            "group": each.group,
            "metric": metric,
            **_record(value, each.q[metric]),
            "steps": each.steps,
        }
        if metric == found.flipping and each.flips:
            record |= {
                "only_a_right": each.flips.a_only,
                "only_b_right": each.flips.b_only,
                "mcnemar_p": each.flips.p,
                "mcnemar_q": each.flips_q,
            }
        yield record


def _record(value: Estimate, q: float | None) -> dict[str, Any]:
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
    }
