"""All tasks by name: ours and those of other distributions.

A task is an entry point of the group `omnidata.tasks`: a callable `(name: str, options:
Mapping[str, str])` that returns a `omnidata.tasks.benchmark.Benchmark`, such as a class derived
from it. Ours are declared in our own `pyproject.toml` and found in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any

from omnidata.errors import OmnidataError, UsageError, suggestion
from omnidata.plugins import Kind, origin_of, versions_of

if TYPE_CHECKING:
    from omnidata.tasks.benchmark import Benchmark


def _check(made: Any) -> Any:
    if hasattr(made, "check"):
        made.check()
    return made


TASKS = Kind(
    "omnidata.tasks",
    "task",
    ("card", "rules", "steps", "load", "prompt", "parse", "target", "check"),
    "omnidata.tasks.benchmark.Benchmark",
    _check,
)


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
    return [name for name in names() if not (is_ours(name) and get_benchmark(name).about)]


def working() -> Iterator[tuple[str, Benchmark]]:
    """Yield all tasks by name, without options; broken plug-ins are skipped."""
    for name in names():
        with suppress(OmnidataError):
            yield name, get_benchmark(name)


def episode_tree_reader() -> str:
    """Return the task that reads the trees of the demo, `segment` and `synth`; ours first.

    Raises:
        UsageError: no installed task reads them.
    """
    readers = [name for name, benchmark in working() if benchmark.episodes.has_tree]
    if not readers:
        raise UsageError("no task reads trees of episodes", remedy=_REINSTALL)
    return min(readers, key=lambda name: not is_ours(name))


def find_benchmark(name: str, options: Mapping[str, str] | None = None) -> Benchmark | None:
    """Return the task of a name with its options; None if there is none.

    A name of ours is ours, even if a distribution has it too.

    Args:
        name: as in `omnidata evaluate NAME`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value, or the distribution of the task is
            broken.
    """
    made: Benchmark | None
    if is_ours(name):
        made = _ours()[name].load()(name, options or {})
    else:
        made = TASKS.make(name, name, options or {}, where=name)
    return made


def get_benchmark(name: str, options: Mapping[str, str] | None = None) -> Benchmark:
    """Return the task of a name with its options.

    Args:
        name: one of `names()`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: as `find_benchmark`, or the task is unknown.
    """
    found = find_benchmark(name, options)
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
