"""Models that other distributions bring: entry points of the group `omnidata.adapters`.

Such a name stands for a callable `(model: str, options: Mapping[str, str]) -> Adapter`. SPEC
`NAME:MODEL` calls the one of that name; `model` is empty where the SPEC is `NAME` alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnidata.plugins import Kind
from omnidata.types import Adapter

MODELS = Kind(
    "omnidata.adapters",
    "model",
    (
        "name",
        "settings",
        "params",
        "accepts",
        "max_batch",
        "concurrency",
        "timeout_s",
        "unsupported_reason",
        "prepare",
        "generate",
        "close",
        "run_metadata",
    ),
    "omnidata.adapters.Model",
)


def names() -> list[str]:
    """The names that installed distributions bring, in order."""
    return MODELS.names()


def find(spec: str, options: Mapping[str, str]) -> Adapter | None:
    """The model of another distribution; None if none has that name.

    Args:
        spec: `NAME` or `NAME:MODEL`.
        options: as given with `-M key=value`.

    Raises:
        UsageError: the distribution's code fails or gives no model, or two have that name; the
            message names them.
        OmnidataError: whatever the distribution's code says.
    """
    name, _, model = spec.partition(":")
    found: Adapter | None = MODELS.make(name, model, options, where=f"--model {spec}")
    return found
