"""An ablation as people read it, in the shape of the paper's Table 4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omnidata.ablate.ablation import Ablation, Row
from omnidata.compare.inference import RESAMPLES
from omnidata.compare.shown import Shown, number, span, table_markdown
from omnidata.errors import counted
from omnidata.run.escaping import csv_text, markdown_text
from omnidata.run.scored import Unit

_LEVELS = {
    "critical": "AV-Critical",
    "supportive": "AV-Supportive",
    "present": "AV-Present",
    "overall": "Overall",
}
_SURE = 0.05


def tables(found: Ablation) -> list[Shown]:
    """One table per metric: a row per setting, a value and its difference per level."""
    levels = found.levels()
    header = ["setting"]
    for level in levels:
        header += [_LEVELS.get(level, level), "change"]
    return [
        Shown(
            f"{metric} (%)" if unit == "share" else metric,
            tuple(header),
            [_cells(row, levels, metric, unit) for row in found.rows],
        )
        for metric, unit in found.columns.items()
    ]


def _cells(row: Row, levels: list[str], metric: str, unit: Unit) -> tuple[str, ...]:
    cells = [row.setting.name]
    values = row.values()
    for level in levels:
        cells.append(number(values.get(level, {}).get(metric), unit))
        sliced = row.slices.get(level)
        if sliced is None:
            cells.append("-" if row.reference else "")
            continue
        change, q = sliced.metrics[metric], sliced.q[metric]
        sure = "*" if q is not None and q < _SURE else ""
        cells.append(f"{number(change.difference, unit, sign=True)}{sure} ({span(change, unit)})")
    return tuple(cells)


def notes(found: Ablation) -> list[str]:
    """What a reader must know before the numbers."""
    lines = [
        f"{row.setting.name}: failed: {row.error.splitlines()[0]}"
        for row in found.rows
        if row.error
    ]
    lines += [f"{row.setting.name}: {warning}" for row in found.rows for warning in row.warnings]
    compared = {row.reference.name for row in found.rows if row.reference}
    lines.append(
        f"change: setting minus {' or '.join(sorted(compared)) or 'nothing'}, on the steps that "
        "both have, and its interval: 95 % percentiles of a bootstrap over episodes, twins as one, "
        f"paired, {RESAMPLES} resamples. *: p below {_SURE}, corrected for the whole table "
        f"({counted(found.tests, 'test')}; Benjamini-Hochberg)."
    )
    return lines


def markdown(found: Ablation) -> str:
    """The ablation as Markdown."""
    return (
        "\n\n".join([*map(table_markdown, tables(found)), *map(markdown_text, notes(found))]) + "\n"
    )


_FIELDS = (
    *("setting", "instruction", "modalities", "control", "compared_with", "level", "metric"),
    *("value", "difference", "low", "high", "p", "q", "why", "episodes", "differing", "steps"),
)


def as_csv(found: Ablation) -> str:
    """A line per setting, level and metric; fractions, nothing rounded."""
    return csv_text(_FIELDS, (line for row in found.rows for line in _records(found, row)))


def _records(found: Ablation, row: Row) -> Iterator[dict[str, Any]]:
    for level, values in row.values().items():
        for metric in found.columns:
            record = {
                "setting": row.setting.name,
                "instruction": row.setting.instruction,
                "modalities": row.setting.modalities,
                "control": row.setting.control,
                "compared_with": row.reference and row.reference.name,
                "level": level,
                "metric": metric,
                "value": values[metric],
            }
            if sliced := row.slices.get(level):
                change = sliced.metrics[metric]
                low, high = change.ci95 or (None, None)
                record |= {
                    "difference": change.difference,
                    "low": low,
                    "high": high,
                    "p": change.p,
                    "q": sliced.q[metric],
                    "why": change.why,
                    "episodes": change.episodes,
                    "differing": change.differing,
                    "steps": sliced.steps,
                }
            yield record
