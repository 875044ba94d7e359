"""In what two runs differ besides their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnidata.run.scored import Run

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


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that is not the same; None where a run does not have it.

    Attributes:
        name: e.g. "options.modalities".
        a, b: JSON values.
    """

    name: str
    a: Any
    b: Any


def differences(a: Run, b: Run) -> list[Difference]:
    """The settings in which two runs differ, but for their models; none where one is imported."""
    if a.imported or b.imported:
        return []
    left, right = dict(_flat(a.settings)), dict(_flat(b.settings))
    names = dict.fromkeys((*left, *right))
    return [
        Difference(name, left.get(name), right.get(name))
        for name in names
        if left.get(name) != right.get(name)
    ]


def _flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names with a dot for what a mapping holds."""
    for key in _ASKED:
        value = settings.get(key)
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", item) for name, item in value.items())
        elif key == "exclude" and value:
            yield key, f"{len(value)} steps"
        elif value is not None:
            yield key, value
