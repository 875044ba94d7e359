"""AgentStudio's paper: its datasets, tables, and printed results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from omnidata.tasks.agentstudio.files import TaskName
from omnidata.tasks.published import (
    Published,
    PublishedRow,
    TableSpec,
    Variation,
    decimals,
    read_published,
)
from omnidata.types import Publication, Remote

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
    "groundui": (
        ("table4_groundui_accuracy", "accuracy", "Table 4", {}),
        ("table8_groundui_accuracy", "accuracy", "Table 8", {}),
    ),
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


WORDINGS = Variation(
    "instructions",
    "recaptioned",
    {"recaptioned": "Recaptioned", "raw": "Raw"},
    "Recaptioned and raw instructions",
    "Instructions",
    wordings=True,
)


@cache
def published_results(task: TaskName) -> Published:
    """Return the published results of a benchmark.

    Examples:
        >>> published_results("idm-single").settings[0].metrics["accuracy"].model
        'Claude 3.5 Sonnet'
    """
    found = read_published("omnidata.tasks.agentstudio", task)
    return replace(found, rows=[*_rows(task), *found.rows])


def _rows(task: TaskName) -> list[PublishedRow]:
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
            printed = {
                ("" if group == "total" else group, each): value
                for each, by in ({metric: numbers} if metric else numbers).items()
                if each not in ("tp", "fp")
                for group, value in by.items()
            }
            values = {
                key: value if key[1] == "edit_distance" else round(value / 100, 6)
                for key, value in printed.items()
            }
            digits = {key: decimals(value) for key, value in printed.items()}
            # Only some tables print the model's date.
            key = model.partition(" (")[0], str(options)
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
                {**(before.digits if before else {}), **digits},
                ("agentstudio-paper",),
            )
    return list(found.values())


_PUBLISHED: Final[Mapping[TaskName, Mapping[str, int]]] = {
    "groundui": {"GroundUI-1K": 1000, "GroundUI-18K": 0},
    "idm-single": {"IDM-Single": 350},
    "idm-multiple": {"IDM-Multiple": 345},
    "criticbench": {"CriticBench": 350},
}
"""The names of the datasets on the Hub, the benchmark's own first, and their rows; 0 if the card
states them roughly."""


def publications(task: TaskName) -> tuple[Publication, ...]:
    """Return where the data of a benchmark are published."""
    return tuple(
        Publication(
            name,
            f"https://huggingface.co/datasets/agent-studio/{name}",
            paper="2403.17918",
            remote=Remote(
                f"hf://datasets/agent-studio/{name}",
                files=("*.parquet",),
                steps=steps,
                note="the Hub's form, Parquet; the authors' tars are on Google Drive. The card "
                "shows no licence, the code is AGPL-3.0",
            ),
        )
        for name, steps in _PUBLISHED[task].items()
    )
