"""Dialects: the forms in which families of GUI agents write actions, each found by its name.

Another distribution adds its own with an entry point of the group `omnidata.dialects` that names a
`Dialect`, or a sequence of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from omnidata.dialects.base import (
    Answer,
    Asked,
    CannotSayError,
    Dialect,
    Frame,
    Layout,
    Past,
    Platform,
    Question,
    Rules,
    UnreadError,
)
from omnidata.errors import PluginError, UsageError, suggestion

__all__ = [
    "Answer",
    "Asked",
    "CannotSayError",
    "Dialect",
    "Frame",
    "Layout",
    "Past",
    "Platform",
    "Question",
    "Rules",
    "UnreadError",
    "dialects",
    "get_dialect",
]

GROUP: Final = "omnidata.dialects"
_OURS: Final[tuple[str, ...]] = (
    "qwen",
    "gui_owl",
    "pyautogui_agents",
    "os_atlas",
    "ui_tars",
    "agentcpm",
    "r1_lists",
    "claude",
    "openai_computer",
    "gemini_computer",
)
"""Modules of this package with a `DIALECTS`, in the order in which they are listed."""


@cache
def dialects() -> Mapping[str, Dialect]:
    """Return all dialects by name, the built-in ones first.

    Raises:
        PluginError: an entry point names an object that is not a dialect, or a name that is taken.
    """
    found: dict[str, Dialect] = {}
    for module in _OURS:
        _add(found, import_module(f"{__name__}.{module}").DIALECTS, f"{__name__}.{module}")
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            brought = point.load()
        except Exception as error:
            raise _entry_point_error(point.value, f"cannot be imported: {error}") from error
        _add(found, [brought] if isinstance(brought, Dialect) else brought, point.value)
    return found


def _add(found: dict[str, Dialect], brought: object, where: str) -> None:
    for one in brought if isinstance(brought, Iterable) else [brought]:
        if not isinstance(one, Dialect):
            raise _entry_point_error(where, f"names {one!r:.80}, which is not a dialect")
        if one.name in found:
            raise _entry_point_error(where, f"has a second dialect {one.name}")
        found[one.name] = one


def _entry_point_error(where: str, what: str) -> PluginError:
    return PluginError(
        f"the entry point of a dialect {what}",
        where=where,
        expected="an instance of omnidata.dialects.Dialect, or several, with names of their own",
        remedy="fix the distribution that has it, or uninstall it",
    )


def get_dialect(name: str) -> Dialect:
    """Return a dialect by its name.

    Raises:
        UsageError: no dialect has the name.
        PluginError: as `dialects`.
    """
    known = dialects()
    if name not in known:
        raise UsageError(
            f'unknown dialect "{name}"',
            where=f"-T dialect={name}",
            expected=f"one of unified, {', '.join(known)}",
            remedy=suggestion(name, known),
        )
    return known[name]
