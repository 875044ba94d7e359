"""Where the code lies that reads the data of a benchmark of another distribution."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_OURS: Final = frozenset({"omnidata", "__main__", *sys.stdlib_module_names})


def code_places(kind: type) -> list[Path]:
    """Return the packages' folders and modules' files that hold a class, its bases and helpers.

    A helper is a module that a found module names, unless another distribution installed it. What
    is imported inside a function is not found.

    Args:
        kind: the class of a benchmark.

    Raises:
        KeyError: a module of the class has no file, or is a script.
    """
    waiting = [base.__module__ for base in kind.__mro__]
    owners = {owner for name in waiting for owner in _distributions(name)}
    found: dict[str, Path | None] = {}
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] in _OURS or name not in sys.modules:
            continue
        owned = _distributions(name)
        if owned and not owners.intersection(owned):
            continue
        found[name] = _place(name)
        waiting += _named_modules(sys.modules[name])
    for base in kind.__mro__:
        if base.__module__ == "__main__" or found.get(base.__module__, ...) is None:
            raise KeyError(base.__module__)
    return sorted({place for place in found.values() if place})


def _distributions(module: str) -> list[str]:
    top = module.partition(".")[0]
    return [] if top in _OURS else _installed().get(top, [])


@cache
def _installed() -> dict[str, list[str]]:
    return {top: [*names] for top, names in packages_distributions().items()}


def _place(name: str) -> Path | None:
    """Return where a module's outermost package with a file lies; a package in several has none."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        module: Any = sys.modules.get(".".join(parts[:end]))
        if file := getattr(module, "__file__", None):
            return Path(file).parent if hasattr(module, "__path__") else Path(file)
    return None


def _named_modules(module: ModuleType) -> Iterator[str]:
    for value in [*vars(module).values()]:
        name = value.__name__ if isinstance(value, ModuleType) else _home(value)
        if isinstance(name, str):
            yield name


def _home(value: object) -> object:
    try:
        return getattr(value, "__module__", None)
    except Exception:  # a lazy object of somebody's own
        return None
