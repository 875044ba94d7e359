"""How many steps and rows stay in memory as Python objects; larger data go to files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

from omnidata.errors import UsageError

VARIABLE: Final = "OMNIDATA_STEPS_IN_MEMORY"
"""Environment variable with the number of steps that stay in memory."""
_DEFAULT: Final = 20_000
_DEFAULT_BYTES: Final = 160 * 1024**2
"""Bytes that may stay in memory if the variable is unset; steps with the elements of their screens
take ten times the memory of others."""
_WEIGHED: Final = 32


class MemoryLimit:
    """Counts values until there are too many for memory.

    Args:
        weigh: estimates the bytes of a value; every 32nd is weighed.

    Raises:
        UsageError: `OMNIDATA_STEPS_IN_MEMORY` is not a number.
    """

    def __init__(self, weigh: Callable[[Any], int]) -> None:
        text = os.environ.get(VARIABLE)
        if text and not (text.isascii() and text.isdecimal() and len(text) < 19):
            raise UsageError(
                f"{text!r} is not a number of steps",
                where=VARIABLE,
                expected="a whole number, 0 or more",
                remedy="correct the environment variable, or unset it",
            )
        self._weigh = weigh
        self._most = int(text or _DEFAULT)
        self._bytes_left: float = float("inf") if text else _DEFAULT_BYTES
        self._count = 0

    def add(self, value: Any) -> bool:
        """Count a value, and return whether all so far fit in memory."""
        if self._count % _WEIGHED == 0:
            self._bytes_left -= _WEIGHED * self._weigh(value)
        self._count += 1
        return self._count <= self._most and self._bytes_left >= 0


def weight(value: Any) -> int:
    """Estimate the bytes of a value as Python objects, without keys, which are shared.

    Args:
        value: of JSON types, or a dataclass or struct of such.
    """
    own = sys.getsizeof(value)
    if isinstance(value, dict):
        return own + sum(map(weight, value.values()))
    if isinstance(value, list | tuple):
        return own + sum(map(weight, value))
    kind = type(value)
    names = getattr(kind, "__dataclass_fields__", getattr(kind, "__struct_fields__", ()))
    return own + sum(weight(getattr(value, name)) for name in names)
