"""An ablation as text tables, in the shape of OmniGUI's Table 4, as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from omnidata.analysis.ablation import Ablation, Row
from omnidata.analysis.comparison_tables import explain_too_few, format_interval
from omnidata.analysis.inference import RESAMPLES
from omnidata.errors import plural
from omnidata.metrics.paired import Unit
from omnidata.table import TextTable, number
from omnidata.table_formats import csv_text, markdown_text
from omnidata.table_formats import markdown as table_markdown

_SURE = 0.05
CHANGE = "change"
"""Header of a column that belongs to the one before it."""


def tables(found: Ablation, *, by_level: bool = True) -> list[TextTable]:
    """Return a table per metric that is not 0 in all runs: a row per setting.

    Args:
        found: the ablation.
        by_level: with columns for each level of the tag, not for all steps alone.
    """
    levels = found.levels() if by_level else ["overall"]
    header, names = ["setting"], {"overall": "Overall", **found.headers}
    for level in levels:
        header += [names.get(level, level), CHANGE]
    return [
        TextTable(
            f"{metric} (%)" if unit == "share" else metric,
            tuple(header),
            [_cells(row, levels, metric, unit) for row in found.rows],
            beside=CHANGE,
        )
        for metric, unit in found.columns.items()
        if metric not in _zero(found)
    ]


def _zero(found: Ablation) -> list[str]:
    values = [of for row in found.rows for of in row.values().values()]
    return [name for name in found.columns if values and all(of[name] == 0 for of in values)]


def _cells(row: Row, levels: list[str], metric: str, unit: Unit) -> tuple[str, ...]:
    cells = [row.setting.name]
    values = row.values()
    for level in levels:
        cells.append(number(values.get(level, {}).get(metric), unit))
        sliced = row.slices.get(level)
        if sliced is None or metric not in sliced.metrics:
            cells.append("-" if row.reference else "")
            continue
        change, q = sliced.metrics[metric], sliced.q[metric]
        sure = "*" if q is not None and q < _SURE else ""
        difference = number(change.difference, unit, sign=True)
        cells.append(f"{difference}{sure} ({format_interval(change, unit)})")
    return tuple(cells)


def notes(found: Ablation, *, by_level: bool = True) -> list[str]:
    """Return the lines below the tables: failures, warnings, and the meaning of `change`."""
    lines = [
        f"{row.setting.name}: failed: {row.error.splitlines()[0]}"
        for row in found.rows
        if row.error
    ]
    lines += [f"{row.setting.name}: {warning}" for row in found.rows for warning in row.warnings]
    lines += [f"{metric}: left out, 0 in all runs" for metric in _zero(found)]
    shown = tables(found, by_level=by_level)
    lines += filter(None, [explain_too_few(shown)])
    compared = {row.reference.name for row in found.rows if row.reference}
    lines.append(
        f"change: difference to {' or '.join(sorted(compared)) or 'nothing'} on the steps of both "
        f"runs, with its 95 % interval: percentiles of {RESAMPLES} paired bootstrap resamples of "
        f"groups. *: p below {_SURE}, corrected for all {plural(found.tests, 'test')} "
        "(Benjamini-Hochberg)."
    )
    axis = next((row.axis for row in found.rows if row.axis), "")
    if axis and not by_level:
        lines.append(f"breakdown: --by {axis}")
    return lines


def markdown(found: Ablation, *, by_level: bool = True) -> str:
    """Return the ablation as Markdown."""
    made = map(table_markdown, tables(found, by_level=by_level))
    return "\n\n".join([*made, *map(markdown_text, notes(found, by_level=by_level))]) + "\n"


_FIELDS = (
    *("setting", "instruction", "modalities", "control", "compared_with", "level", "metric"),
    *("value", "difference", "low", "high", "p", "q", "why", "episodes", "differing", "steps"),
)


def as_csv(found: Ablation) -> str:
    """Return CSV with a line per setting, level and metric; fractions, not rounded."""
    return csv_text(_FIELDS, (line for row in found.rows for line in _records(found, row)))


def _records(found: Ablation, row: Row) -> Iterator[dict[str, Any]]:
    setting = row.setting
    about = {
        "setting": setting.name,
        "instruction": setting.instruction,
        "modalities": setting.modalities,
        "control": setting.control,
        "compared_with": row.reference and row.reference.name,
    }
    for level, values in row.values().items():
        for metric in found.columns:
            record = {**about, "level": level, "metric": metric, "value": values[metric]}
            sliced = row.slices.get(level)
            if sliced and metric in sliced.metrics:
                change = asdict(sliced.metrics[metric])
                low, high = change["ci95"] or (None, None)
                own = {"low": low, "high": high, "q": sliced.q[metric], "steps": sliced.steps}
                record |= {name: change[name] for name in _FIELDS if name in change} | own
            yield record
