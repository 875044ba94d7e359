"""What a step belongs to, by its benchmark's rule, for rows that come without their loader.

A Parquet repository has no column for it: the rule reads the tags and the untouched row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

from omnidata.types import Step

Named = Callable[[Step], Step]

_HOME = "omnidata.loaders"
_RULES: Mapping[str, str] = {
    "omnigui": f"{_HOME}.omnigui",
    **dict.fromkeys(
        ("groundui", "idm-single", "idm-multiple", "criticbench"), f"{_HOME}.agentstudio"
    ),
    "omnibench": f"{_HOME}.omnibench_steps",
    "osworld": f"{_HOME}.osworld_steps",
    "screenspot": f"{_HOME}.screenspot",
}
"""Benchmark -> the module whose `named(step)` gives the step with its episode and its group.

Steps of other benchmarks belong to their episodes, as `Step` names them.
"""


def rule(task: str) -> Named | None:
    """The rule of a benchmark; None where steps belong to their episodes."""
    return cast("Named", import_module(_RULES[task]).named) if task in _RULES else None
