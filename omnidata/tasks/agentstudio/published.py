"""The tables of AgentStudio's paper, and the rows that it prints of each of its benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources

import msgspec

from omnidata.tasks.agentstudio.files import TaskName
from omnidata.tasks.published import Published, PublishedRow, TableSpec, read_published

_PLATFORMS = {"web": "Web", "desktop": "Desktop", "mobile": "Mobile"}
_SOURCES = {"mind2web": "M2W", "aitw": "AITW", "vwa": "VWA", "agent_studio": "AS"}


def _main(axis: str, groups: Mapping[str, str], like: str) -> TableSpec:
    return TableSpec("main", f"Results by {axis}", axis, groups, "Total", True, "metric", like=like)


TABLES: Mapping[TaskName, TableSpec] = {
    "groundui": _main("platform", _PLATFORMS, "AgentStudio, Table 4"),
    "idm-single": _main("source", _SOURCES, "AgentStudio, Tables 5 and 9"),
    "idm-multiple": _main("source", _SOURCES, "AgentStudio, Tables 5 and 9"),
    "criticbench": _main("platform", _PLATFORMS, "AgentStudio, Tables 6 and 10"),
}

_PRINTED: Mapping[TaskName, tuple[tuple[str, str, str, Mapping[str, str]], ...]] = {
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


@cache
def published(task: TaskName) -> Published:
    """What is published of a benchmark.

    Examples:
        >>> published("idm-single").settings[0].metrics["accuracy"].model
        'Claude 3.5 Sonnet'
    """
    return replace(read_published("omnidata.tasks.agentstudio", task), rows=_rows(task))


def _rows(task: TaskName) -> list[PublishedRow]:
    """The rows; a model of two tables has one row, with the values of both."""
    text = (
        resources.files("omnidata.tasks.agentstudio").joinpath("published_tables.json").read_bytes()
    )
    tables = msgspec.json.decode(text)
    found: dict[tuple[str, str], PublishedRow] = {}
    for name, metric, number, options in _PRINTED[task]:
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
            found[key] = PublishedRow(
                "main",
                before.model if before else model,
                options,
                source,
                steps,
                {**(before.values if before else {}), **values},
            )
    return list(found.values())


def _fraction(metric: str, value: float) -> float:
    return value if metric == "edit_distance" else round(value / 100, 6)


def _same(model: str) -> str:
    """The model without the date that only some tables print."""
    return model.partition(" (")[0]
