"""All tasks by name: ours and those of other distributions.

A task is an entry point of the group `omnidata.tasks`: a callable `(name: str, options:
Mapping[str, str])` that returns a `omnidata.tasks.benchmark.Benchmark`, such as a class derived
from it, or a `Task`. Ours are declared in our own `pyproject.toml` and found in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from typing import Any, cast

from omnidata.errors import OmnidataError, UsageError, suggestion
from omnidata.plugins import Kind, origin_of, versions_of
from omnidata.types import Task

TASKS = Kind(
    "omnidata.tasks",
    "task",
    # One without these gets the defaults.
    tuple(
        name
        for name in vars(Task)
        if not name.startswith("_") and name not in ("history_action", "explanation")
    ),
    "omnidata.tasks.benchmark.Benchmark",
    lambda made: as_task(made),
)


def _as_it_is(made: Any) -> Task:
    return cast("Task", made)


as_task: Callable[[Any], Task] = _as_it_is
"""Returns a benchmark as callers ask it; set by `omnidata.tasks` until all of them ask the
contract of `omnidata.tasks.benchmark`."""


@cache  # our own distribution stays what it is while the process runs
def _ours() -> Mapping[str, EntryPoint]:
    try:
        points = distribution("omnidata").entry_points
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in points.select(group=TASKS.group)}


def is_ours(name: str) -> bool:
    """Return whether the task is part of omnidata."""
    return name in _ours()


def plugin_names() -> list[str]:
    """Return the tasks of other distributions in order, without running their code."""
    return [name for name in TASKS.names() if not is_ours(name)]


def plugin_versions(name: str) -> dict[str, str]:
    """Return the distributions of a task with their versions; empty for tasks of omnidata."""
    return {} if is_ours(name) else versions_of(TASKS.group, name)


def plugin_origin(name: str) -> str:
    """Return the distribution of a task with its version; empty for tasks of omnidata."""
    return "" if is_ours(name) else origin_of(TASKS.group, name)


def names() -> list[str]:
    """Return all tasks in order, without running their code."""
    return sorted(_ours().keys() | set(TASKS.names()))


def benchmarks() -> list[str]:
    """Return the tasks with their own data, in order; tasks of others count as such."""
    return [name for name in names() if not (is_ours(name) and get_task(name).asks_about)]


def working() -> Iterator[tuple[str, Task]]:
    """Yield all tasks by name, without options; broken plug-ins are skipped."""
    for name in names():
        with suppress(OmnidataError):
            yield name, get_task(name)


def episode_tree_reader() -> str:
    """Return the task that reads the trees of the demo, `segment` and `synth`; ours first.

    Raises:
        UsageError: no installed task reads them.
    """
    readers = [name for name, task in working() if task.reads_episode_tree]
    if not readers:
        raise UsageError("no task reads trees of episodes", remedy=_REINSTALL)
    return min(readers, key=lambda name: not is_ours(name))


def find(name: str, options: Mapping[str, str] | None = None) -> Task | None:
    """Return the task of a name with its options; None if there is none.

    A name of ours is ours, even if a distribution has it too.

    Args:
        name: as in `omnidata evaluate NAME`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value, or the distribution of the task is
            broken.
    """
    if is_ours(name):
        made = _ours()[name].load()(name, options or {})  # which may set `as_task`
        return as_task(made)
    return cast("Task | None", TASKS.make(name, name, options or {}, where=name))


def get_task(name: str, options: Mapping[str, str] | None = None) -> Task:
    """Return the task of a name with its options.

    Args:
        name: one of `names()`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: as `find`, or the task is unknown.
    """
    found = find(name, options)
    if found is None:
        known = names()
        raise UsageError(
            f'unknown task "{name}"',
            expected=f"one of {', '.join(known)}",
            remedy=(suggestion(name, known) or _LIST) if _ours() else _REINSTALL,
        )
    return found


_LIST = "name one of these; `omnidata info` describes them"
_REINSTALL = "reinstall omnidata: the installed package declares no task"
