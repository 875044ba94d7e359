"""In what two runs differ besides their answers."""

from __future__ import annotations

from collections.abc import Sequence

from omnidata.errors import counted
from omnidata.run.scored import Run
from omnidata.run.settings import Change, changes

_ASKED = (
    "options",
    "model_options",
    "model_settings",
    "generation",
    "seed",
    "prompt_hash",
    "control",
    "where",
    "exclude",
    "limit",
    "shard",
)
"""Keys of `run.json` that change what a run was asked, or how."""


def differences(a: Run, b: Run) -> list[Change]:
    """The settings in which two runs differ, but for their models; none where one is imported."""
    if a.imported or b.imported:
        return []
    asked = ({key: run.settings.get(key) for key in _ASKED} for run in (a, b))
    return [
        Change(each.name, _excluded(each.a), _excluded(each.b)) if each.name == "exclude" else each
        for each in changes(*asked)
    ]


def _excluded(steps: Sequence[str] | None) -> str | None:
    return counted(len(steps), "step") if steps else None
