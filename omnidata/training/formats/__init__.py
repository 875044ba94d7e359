"""Training formats by name; each trainer has one file.

Another distribution adds its own with an entry point of the group `omnidata.formats` that names an
instance of `AnswerFormat`, `PromptFormat` or `PreferenceFormat`, or a sequence of them (see
`docs/export.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path
from typing import Final

from omnidata.errors import UsageError, suggestion
from omnidata.plugins import declaration_error, load_objects
from omnidata.training.formats.base import (
    ALL,
    AnswerFormat,
    Content,
    Format,
    Log,
    Messages,
    Objects,
    PreferenceFormat,
    PromptFormat,
    Row,
    Written,
)
from omnidata.training.formats.easyr1 import EasyR1
from omnidata.training.formats.llamafactory import LlamaFactory, LlamaFactoryDpo, LlamaFactoryKto
from omnidata.training.formats.qwen_vl import QwenVl
from omnidata.training.formats.swift import Swift, SwiftDpo, SwiftGrpo
from omnidata.training.formats.trl import Trl, TrlDpo, TrlGrpo, TrlKto
from omnidata.training.formats.verl import Verl

__all__ = [
    "OURS",
    "AnswerFormat",
    "Content",
    "Format",
    "Log",
    "Messages",
    "Objects",
    "PreferenceFormat",
    "PromptFormat",
    "Row",
    "Written",
    "find_format",
    "format_names",
    "formats",
    "get_format",
]

OURS: Final[tuple[Format, ...]] = (
    Trl(),
    LlamaFactory(),
    Swift(),
    QwenVl(),
    TrlGrpo(),
    SwiftGrpo(),
    Verl(),
    EasyR1(),
    TrlDpo(),
    TrlKto(),
    SwiftDpo(),
    LlamaFactoryDpo(),
    LlamaFactoryKto(),
)


@cache
def formats() -> Mapping[str, Format]:
    """Return all formats by name, the built-in ones first.

    Raises:
        PluginError: an entry point names an object that is not a format, or a name that is taken;
            or a format has no known modalities, or a file outside the folder of an export.
    """
    found = load_objects("omnidata.formats", Format, "format", OURS)
    for one in found.values():
        if one not in OURS:
            _check(one)
    return found


def _check(one: Format) -> None:
    """Check what the format of another distribution declares."""
    if not (isinstance(one.holds, Set) and one.holds <= ALL):
        what, expected = f"{one.holds!r:.80} as `holds`", f"a set of {', '.join(sorted(ALL))}"
    elif outside := [name for name in one.files("", {}) if Path(name).name != name]:
        what, expected = f"the file {outside[0]!r:.80}", "a name in the folder of the export"
    else:
        return
    raise declaration_error("format", one.name, type(one), what, expected)


def format_names(kind: type[Format]) -> list[str]:
    """Return the names of the formats of a base class."""
    return [name for name, one in formats().items() if isinstance(one, kind)]


def find_format(name: str) -> Format | None:
    """Return a format by its name, or None; for one of ours no other distribution is imported.

    Raises:
        PluginError: as `formats`.
    """
    own = next((one for one in OURS if one.name == name), None)
    return own or formats().get(name)


def get_format(name: str) -> Format:
    """Return a format by its name.

    Raises:
        UsageError: no format has the name.
        PluginError: as `formats`.
    """
    found = find_format(name)
    if found is None:
        raise UsageError(
            "there is no such choice",
            where=f"--format {name}",
            expected=f"one of {', '.join(formats())}",
            remedy=suggestion(name, formats()) or "choose one of these",
        )
    return found
