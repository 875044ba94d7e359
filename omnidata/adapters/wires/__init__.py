"""Wire formats: each module here declares one, by a class.

The module of the wire format "some-name" is `some_name`, and its class has `wire = "some-name"`.
Nothing else names it, so a new one is a new file.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from omnidata.adapters.api import ApiModel


def names() -> list[str]:
    """Return the names of all wire formats, sorted."""
    return sorted(module.name.replace("_", "-") for module in iter_modules(__path__))


@cache
def wire(name: str) -> type[ApiModel]:
    """Return the class of a wire format.

    Args:
        name: one of `names()`.
    """
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    classes = [one for one in vars(module).values() if isinstance(one, type)]
    [found] = [
        one for one in classes if issubclass(one, ApiModel) and vars(one).get("wire") == name
    ]
    return found
