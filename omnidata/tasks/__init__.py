"""One file per benchmark: loader, prompt and profiles wired together."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.types import Task

_HOME = "omnidata.tasks"
_MODULES: Mapping[str, str] = {
    "omnigui": f"{_HOME}.omnigui",
    **dict.fromkeys(
        ("groundui", "idm-single", "idm-multiple", "criticbench"), f"{_HOME}.agentstudio"
    ),
    "omnibench": f"{_HOME}.omnibench",
    "omnigui-idm": f"{_HOME}.omnigui_idm",
    "omnigui-critic": f"{_HOME}.omnigui_critic",
}
"""Task -> the module whose `make(name, options)` sets it up."""

ON_EPISODES = ("omnigui-idm", "omnigui-critic")
"""What `omnidata synth label` and `filter` ask about OmniGUI's data; no benchmarks."""

NAMES = tuple(name for name in _MODULES if name not in ON_EPISODES)
"""The benchmarks that can be loaded, run and scored."""


def get_task(name: str, options: Mapping[str, str] | None = None) -> Task:
    """The task of that name, set up with its options.

    Args:
        name: one of `NAMES` or `ON_EPISODES`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: there is no such task, or an option has an unknown name or value.
    """
    if name not in _MODULES:
        raise UsageError(f'there is no task "{name}"', expected=f"one of {', '.join(NAMES)}")
    made: Task = import_module(_MODULES[name]).make(name, options or {})
    return made
