"""Rows of published tables, to stand beside a user's runs.

Nobody has confirmed that the published numbers were scored as these profiles score, nor on which
steps: the groups of OmniGUI's tables fit 699 of its 709 episodes, and Overall fits all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from omnidata.report.tables import LOWER_IS_BETTER, Cell, Column, Row
from omnidata.run.scored import Run

Key = tuple[str, str]
"""Group, empty for all steps together, and metric."""


class Figures(msgspec.Struct, frozen=True):
    """A published row.

    Attributes:
        model: as printed.
        options: of the task, where they change what is asked.
        source: the table.
        steps: that the numbers are over; None where that is not said.
        values: by group and metric: fractions, or edits.
    """

    model: str
    options: Mapping[str, str]
    source: str
    steps: int | None
    values: Mapping[Key, float]


class _Printed(msgspec.Struct, frozen=True):
    """A table of `published.json`; its rows are model, options and a list of metrics per group."""

    task: str
    table: str
    source: str
    steps: int | None
    axis: str
    metrics: list[str]
    groups: list[str]
    rows: list[list[str | dict[str, str] | list[float | None]]]


class _File(msgspec.Struct, frozen=True):
    about: str
    tables: list[_Printed]


def figures(task: str, table: str, runs: Sequence[Run] = ()) -> list[Figures]:
    """The published rows of a table.

    Args:
        task: the benchmark.
        table: "main", or the option that the rows differ in.
        runs: of the task; of CriticBench those settings are shown that the runs have.

    Examples:
        >>> row = figures("omnigui", "main")[0]
        >>> row.model, row.values["", "EM"], row.source
        ('Gemini 3 Pro', 0.636, 'OmniGUI, Table 3')
    """
    if task == "criticbench":
        asked = {run.settings.get("options", {}).get("observations_only", "false") for run in runs}
        return [row for row in _all(task, table) if row.options["observations_only"] in asked]
    return list(_all(task, table))


def row(of: Figures, labels: tuple[str, ...], columns: Sequence[Column]) -> Row:
    """The figures as a line of a table; a dash where nothing is published."""
    cells = tuple(Cell(of.values.get((column.group, column.metric))) for column in columns)
    return Row(labels, cells, source=of.source)


@cache
def _all(task: str, table: str) -> tuple[Figures, ...]:
    if task in _AGENTSTUDIO:
        return tuple(_agentstudio(task)) if table == "main" else ()
    text = resources.files("omnidata.report").joinpath("published.json").read_bytes()
    printed = msgspec.json.decode(text, type=_File).tables
    found = [each for each in printed if (each.task, each.table) == (task, table)]
    return tuple(figure for each in found for figure in _read(each))


def _read(printed: _Printed) -> list[Figures]:
    found = []
    for model, options, *groups in printed.rows:
        values = {
            (group, metric): round(value / 100, 6)
            for group, numbers in zip(printed.groups, groups, strict=True)
            for metric, value in zip(printed.metrics, numbers, strict=True)
            if isinstance(value, float | int)
        }
        found.append(
            Figures(
                str(model),
                msgspec.convert(options, dict[str, str]),
                printed.source,
                printed.steps,
                values,
            )
        )
    return found


_AGENTSTUDIO: Mapping[str, tuple[tuple[str, str, str, Mapping[str, str]], ...]] = {
    "groundui": (("table4_groundui_accuracy", "accuracy", "Table 4", {}),),
    "idm-single": (("table5_idm_single_accuracy", "accuracy", "Table 5", {}),),
    "idm-multiple": (
        ("table5_idm_multiple_accuracy", "accuracy", "Table 5", {}),
        ("table9_idm_multiple_edit_distance", "edit_distance", "Table 9", {}),
    ),
    "criticbench": (
        (
            "table10_criticbench_observation_action", "", "Table 10",
            {"observations_only": "false"},
        ),
        (
            "table10_criticbench_observations_only", "", "Table 10",
            {"observations_only": "true"},
        ),
    ),
}  # fmt: skip
"""Task -> table of the file, its metric (empty: each model has several), its number, options."""


def _agentstudio(task: str) -> list[Figures]:
    """AgentStudio's rows; a model of two tables has one row, with the values of both."""
    text = resources.files("omnidata.metrics").joinpath("agentstudio_tables.json").read_bytes()
    tables = msgspec.json.decode(text)
    found: dict[tuple[str, str], Figures] = {}
    for name, metric, number, options in _AGENTSTUDIO[task]:
        table = tables[name]
        sizes = table.get("rows") or table["success"]
        steps = sum(sizes.values()) + sum(table.get("failure", {}).values())
        for model, numbers in table["models"].items():
            values = {
                ("" if group == "total" else group, each): _fraction(each, value)
                for each, by in ({metric: numbers} if metric else numbers).items()
                if each not in ("tp", "fp")
                for group, value in by.items()
            }
            key = _same(model), str(options)
            before = found.get(key)
            sources = [before.source] if before else []
            source = " and ".join([*sources, number if before else f"AgentStudio, {number}"])
            found[key] = Figures(
                before.model if before else model,
                options,
                source,
                steps,
                {**(before.values if before else {}), **values},
            )
    return list(found.values())


def _fraction(metric: str, value: float) -> float:
    return value if metric in LOWER_IS_BETTER else round(value / 100, 6)


def _same(model: str) -> str:
    """The model without the date that only some tables print."""
    return model.partition(" (")[0]
