"""Instruction templates: texts with places such as `{xlsx_path}` (OmniBench, appendix C.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PLACE = re.compile(r"\{(\w+)\}")


def places(template: str) -> list[str]:
    """The parameters of a template, each once, in order.

    Examples:
        >>> places("Copy '{a}' to '{b}' and '{a}'")
        ['a', 'b']
    """
    return list(dict.fromkeys(_PLACE.findall(template)))


def filled(template: str, binding: Mapping[str, Any]) -> str:
    """The template with its places filled; nothing else in braces means anything.

    Examples:
        >>> filled("Open '{path}' {other} {a.b}", {"path": "x{y}"})
        "Open 'x{y}' {other} {a.b}"
    """
    return _PLACE.sub(lambda place: str(binding.get(place[1], place[0])), template)
