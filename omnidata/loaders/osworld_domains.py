"""OSWorld's domains: how many examples each has, and the groups of Table 5."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any


@cache
def sets() -> Mapping[str, Mapping[str, int]]:
    """The sets of examples: by domain, how many there are (Tables 8 and 9).

    Examples:
        >>> {name: sum(found.values()) for name, found in sets().items()}
        {'osworld': 369, 'osworld-windows': 43}
    """
    return MappingProxyType(_file()["sets"])


@cache
def groups() -> Mapping[str, tuple[str, ...]]:
    """The groups of Table 5 and their domains, in the paper's order.

    Examples:
        >>> groups()["Professional"]
        ('vs_code', 'gimp')
    """
    return MappingProxyType({name: tuple(found) for name, found in _file()["groups"].items()})


@cache
def group_of() -> Mapping[str, str]:
    """The group of every domain.

    Examples:
        >>> group_of()["libreoffice_calc"]
        'Office'
    """
    return MappingProxyType({one: name for name, found in groups().items() for one in found})


def _file() -> Any:
    path = resources.files("omnidata.loaders").joinpath("osworld_domains.json")
    return json.loads(path.read_text(encoding="utf-8"))
