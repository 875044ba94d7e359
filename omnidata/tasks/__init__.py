"""One file per benchmark: loader, prompt and profiles wired together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.types import Task

NAMES = ("omnigui", "groundui", "idm-single", "idm-multiple", "criticbench")
"""The benchmarks that can be loaded, run and scored."""


def get_task(name: str, options: Mapping[str, str] | None = None) -> Task:
    """The task of that name, set up with its options.

    Args:
        name: one of `NAMES`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: there is no such task, or an option has an unknown name or value.
    """
    if name == "omnigui":
        from omnidata.tasks.omnigui import OmniGui

        return OmniGui(options or {})
    from omnidata.loaders.agentstudio_files import TASKS
    from omnidata.tasks.agentstudio import AgentStudio

    for known in TASKS:
        if name == known:
            return AgentStudio(known, options or {})
    raise UsageError(f'there is no task "{name}"', expected=f"one of {', '.join(NAMES)}")
