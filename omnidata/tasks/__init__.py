"""One file per benchmark: loader, prompt and profiles wired together.

Other distributions bring more, by entry points of the group `omnidata.tasks`: such a name stands
for a callable `(name: str, options: Mapping[str, str]) -> Task`, as the class of a task derived
from `omnidata.tasks.base.Benchmark` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from omnidata.errors import UsageError, meant
from omnidata.plugins import Blame, Kind, origin_of
from omnidata.tasks.plugin_tasks import PluginTask

if TYPE_CHECKING:
    from omnidata.types import Task

_HOME = "omnidata.tasks"
_MODULES: Mapping[str, str] = {
    "omnigui": f"{_HOME}.omnigui.task",
    **dict.fromkeys(
        ("groundui", "idm-single", "idm-multiple", "criticbench"), f"{_HOME}.agentstudio.task"
    ),
    "omnibench": f"{_HOME}.omnibench.task",
    "osworld": f"{_HOME}.osworld.task",
    "aitw": f"{_HOME}.aitw.task",
    "androidcontrol": f"{_HOME}.androidcontrol.task",
    "agentnet": f"{_HOME}.agentnet.task",
    "screenspot": f"{_HOME}.screenspot.task",
    "omnigui-idm": f"{_HOME}.omnigui.idm",
    "omnigui-critic": f"{_HOME}.omnigui.critic",
}
"""Task -> the module whose `make(name, options)` sets it up."""

ON_EPISODES = ("omnigui-idm", "omnigui-critic")
"""What `omnidata synth label` and `filter` ask about OmniGUI's data; no benchmarks."""

HOLDS: Mapping[str, str] = {
    "omnigui": "episodes on phones: screenshots, clips, sound; the next action",
    "groundui": "screenshots of web, desktop and mobile; the point that an instruction means",
    "idm-single": "pairs of screenshots; the action between them",
    "idm-multiple": "screenshots in a row; the actions between them",
    "criticbench": "trajectories of screenshots; whether they succeeded",
    "omnibench": "graphs of desktop tasks, and trajectories with screenshots; the next action",
    "osworld": "rollouts of agents on desktops: screenshots, recordings, results; the next action",
    "aitw": "episodes on phones (Android in the Wild, in the Zoo, CAGUI): screenshots; the next "
    "action",
    "androidcontrol": "episodes on phones: screenshots, accessibility trees; the next action",
    "agentnet": "trajectories on desktops (AgentNet, AgentNetBench): screenshots, clips where "
    "there is a recording; the next action",
    "screenspot": "screenshots (ScreenSpot, -v2, -Pro); the point that an instruction means",
}
"""What the data of each of `NAMES` hold, and what is asked."""

NAMES = tuple(name for name in _MODULES if name not in ON_EPISODES)
"""The benchmarks that can be loaded, run and scored."""

PLUGINS = Kind(
    _HOME,
    "task",
    (
        "name",
        "profiles",
        "default_profile",
        "allowed",
        "options",
        "prompt_hash",
        "load",
        "prompt",
        "target",
        "baselines",
        "baseline",
        "needs_predictions",
        "read",
    ),
    "omnidata.tasks.base.Benchmark",
)
"""The benchmarks that other distributions bring."""


def get_task(name: str, options: Mapping[str, str] | None = None) -> Task:
    """The task of that name, set up with its options.

    Args:
        name: one of `NAMES` or `ON_EPISODES`, or one that another distribution brings.
        options: as given with `-T key=value`.

    Raises:
        UsageError: there is no such task, an option has an unknown name or value, or the
            distribution that brings the task is broken.
    """
    if name in _MODULES:
        made: Task = import_module(_MODULES[name]).make(name, options or {})
        return made
    brought: Task | None = PLUGINS.make(name, name, options or {}, where=name)
    if brought is None:
        names = (*NAMES, *PLUGINS.names())
        raise UsageError(
            f'there is no task "{name}"',
            expected=f"one of {', '.join(names)}",
            remedy=meant(name, (*names, *ON_EPISODES)),
        )
    return cast("Task", PluginTask(brought, Blame(origin_of(PLUGINS.group, name))))
