"""One folder per benchmark: loader, prompt and profiles wired together; `registry` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from omnidata import registry
from omnidata.loaders.load import reading
from omnidata.registry import PluginTask
from omnidata.tasks.common_options import OPTIONS, WithCommonOptions, split

if TYPE_CHECKING:
    from omnidata.types import Task


def get_task(name: str, options: Mapping[str, str] | None = None) -> Task:
    """The task of that name, set up with its options.

    An error about data that are another task's rows names that one.

    Args:
        name: ours, or one that another distribution brings.
        options: as given with `-T key=value`.

    Raises:
        UsageError: there is no such task, an option has an unknown name or value, or the
            distribution that brings the task is broken.
    """
    given, common = options or {}, dict[str, str]()
    if not OPTIONS.keys().isdisjoint(given):
        given, common = split(given, registry.get_task(name).allowed)
    found = registry.get_task(name, given)
    if window := common.get("history_window"):
        benchmark: Any = found.task if isinstance(found, PluginTask) else found
        benchmark.history_window = int(window)
    if isinstance(found, PluginTask):  # loaders of ours look for other tasks by themselves
        from omnidata.tasks.plugin_tasks import PluginBenchmark

        found = cast("Task", PluginBenchmark(found.task, found.blame, reading))
    return cast("Task", WithCommonOptions(found, common)) if common else found
