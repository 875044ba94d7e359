"""Dialects: the forms in which families of GUI agents write actions, each found by its name.

Another distribution adds its own with an entry point of the group `omnidata.dialects` that names a
`Dialect`, or a sequence of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Final, get_args

from omnidata.actions import KINDS
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
from omnidata.errors import UsageError, suggestion
from omnidata.plugins import declaration_error, load_objects

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

_OURS: Final[Mapping[str, Sequence[str]]] = {
    "qwen": ("qwen2", "qwen2.5", "qwen3"),
    "gui_owl": ("gui-owl-1.0", "gui-owl-1.5"),
    "pyautogui_agents": ("opencua", "aguvis", "kimi"),
    "os_atlas": ("os-atlas-pro", "os-atlas-base", "os-atlas-base-4b"),
    "ui_tars": ("ui-tars-1.0", "ui-tars-1.5", "ui-tars-doubao", "ui-tars-2"),
    "agentcpm": ("agentcpm-gui",),
    "r1_lists": ("gui-r1", "ui-r1"),
    "claude": (
        "claude-computer-20241022",
        "claude-computer-20250124",
        "claude-computer-20251124",
    ),
    "openai_computer": ("openai-computer-preview", "openai-computer"),
    "gemini_computer": ("gemini-computer",),
}
"""Modules of this package with `DIALECTS`, and the names of these, in the order of the list."""


@cache
def dialects() -> Mapping[str, Dialect]:
    """Return all dialects by name, the built-in ones first.

    Raises:
        PluginError: an entry point names an object that is not a dialect, or a name that is taken;
            or a dialect lacks a declaration.
    """
    ours = (one for module in _OURS for one in _dialects_of(module))
    found = load_objects("omnidata.dialects", Dialect, "dialect", ours)
    for dialect in found.values():
        _check(dialect)
    return found


def _check(dialect: Dialect) -> None:
    platforms = get_args(Platform)
    if not isinstance(getattr(dialect, "title", None), str):
        what, expected = "no `title`", "a text"
    elif not isinstance(getattr(dialect, "frame", None), Frame):
        what, expected = "no Frame as its `frame`", 'a Frame, e.g. Frame("norm1000")'
    elif not (says := getattr(dialect, "says", None)) or not says.keys() <= {*platforms}:
        what, expected = "`says` without known platforms", f"some of {', '.join(platforms)}"
    elif unknown := frozenset[str]().union(*says.values()) - KINDS:
        what = f"unknown kinds of actions in `says`: {', '.join(sorted(unknown))}"
        expected = f"some of {', '.join(sorted(KINDS))}"
    else:
        return
    raise declaration_error("dialect", dialect.name, type(dialect), what, expected)


def _dialects_of(module: str) -> Sequence[Dialect]:
    found: Sequence[Dialect] = import_module(f"{__name__}.{module}").DIALECTS
    return found


def get_dialect(name: str) -> Dialect:
    """Return a dialect by its name; of ours only its own module is imported.

    Raises:
        UsageError: no dialect has the name.
        PluginError: as `dialects`.
    """
    for module, names in _OURS.items():
        if name in names:
            return next(one for one in _dialects_of(module) if one.name == name)
    known = dialects()
    if name not in known:
        raise UsageError(
            f'unknown dialect "{name}"',
            where=f"-T dialect={name}",
            expected=f"one of unified, {', '.join(known)}",
            remedy=suggestion(name, known),
        )
    return known[name]
