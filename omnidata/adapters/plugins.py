"""Models that other distributions bring: entry points of the group `omnidata.adapters`.

Such a name stands for a callable `(model: str, options: Mapping[str, str]) -> Adapter`. SPEC
`NAME:MODEL` calls the one of that name; `model` is empty where the SPEC is `NAME` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from omnidata.errors import OmnidataError, UsageError
from omnidata.types import Adapter

GROUP = "omnidata.adapters"
_PARTS = (
    "name",
    "settings",
    "params",
    "accepts",
    "max_batch",
    "concurrency",
    "timeout_s",
    "refuses",
    "prepare",
    "generate",
    "close",
    "facts",
)


def names() -> list[str]:
    """The names that installed distributions bring, in order."""
    return sorted(entry_points(group=GROUP).names)


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
    points = tuple(entry_points(group=GROUP, name=name))
    if not points:
        return None
    if len(points) > 1:
        raise UsageError(
            f"{len(points)} distributions bring a model of that name: "
            + ", ".join(sorted(map(_origin, points))),
            where=f"--model {spec}",
            remedy="uninstall all but one",
        )
    try:
        adapter = points[0].load()(model, options)
    except OmnidataError:
        raise
    except Exception as error:
        raise UsageError(
            f"{_origin(points[0])} fails: {type(error).__name__}: {error}",
            where=f"--model {spec}",
            remedy="tell its authors, or uninstall it",
        ) from error
    lacks = [part for part in _PARTS if not hasattr(adapter, part)]
    if lacks:
        raise UsageError(
            f"what {_origin(points[0])} gives is no model: it lacks {', '.join(lacks)}",
            where=f"--model {spec}",
            remedy="derive its class from omnidata.adapters.Model",
        )
    return adapter  # type: ignore[no-any-return] # an entry point's type is not known


def _origin(point: EntryPoint) -> str:
    home = point.dist
    return f"{home.name} {home.version} ({point.value})" if home else point.value
