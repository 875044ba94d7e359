"""What a step belongs to, by its benchmark's rule, for rows that come without their loader.

A Parquet repository has no column for it: the rule reads the tags and the untouched row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import cast

from omnidata.errors import Finding
from omnidata.types import Step

Named = Callable[[Step], Step]
"""Raises `UnusableRowError` where the step lacks what every step of the benchmark has."""

_HOME = "omnidata.tasks"
_RULES: Mapping[str, str] = {
    "omnigui": f"{_HOME}.omnigui.load",
    **dict.fromkeys(
        ("groundui", "idm-single", "idm-multiple", "criticbench"), f"{_HOME}.agentstudio.load"
    ),
    "omnibench": f"{_HOME}.omnibench.load",
    "osworld": f"{_HOME}.osworld.load",
    "screenspot": f"{_HOME}.screenspot.load",
}
"""Benchmark -> the module whose `named(step)` gives the step with its episode and its group.

Steps of other benchmarks belong to their episodes, as `Step` names them.
"""
_BY_EPISODE: Mapping[str, str] = {"omnigui": f"{_HOME}.omnigui.load"}
"""Benchmark -> the module whose `together(steps, note)` settles the group of a whole episode, where
the rows of one may name different groups."""


class UnusableRowError(ValueError):
    """A row of a repository that is no step of its benchmark."""


def tag_of(step: Step, name: str) -> str:
    """A tag that every step of the benchmark has.

    Raises:
        UnusableRowError: this one has not.
    """
    value = step.tags.get(name)
    if value is None:
        raise UnusableRowError(f"{step.sample_id} has no {name}")
    return value


def check_screen(step: Step) -> None:
    """Look at the screen, by which the benchmark's coordinates are divided.

    Raises:
        UnusableRowError: it has no size.
    """
    if min(step.screen) < 1:
        raise UnusableRowError(
            f"{step.sample_id} has a screen of {step.screen[0]} x {step.screen[1]}"
        )


def rule(task: str) -> Named | None:
    """The rule of a benchmark; None where steps belong to their episodes."""
    return cast("Named", import_module(_RULES[task]).named) if task in _RULES else None


def together(task: str, steps: Sequence[Step], note: Callable[[Finding], None]) -> Sequence[Step]:
    """The steps of a benchmark, those of one episode in one group.

    Args:
        task: the benchmark.
        steps: named by its `rule`, each episode's in order.
        note: is told of the episodes whose rows disagree.
    """
    if task not in _BY_EPISODE:
        return steps
    return cast("Sequence[Step]", import_module(_BY_EPISODE[task]).together(steps, note))
