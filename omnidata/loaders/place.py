"""Where a row lies, and where its findings go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omnidata.errors import Finding

Note = Callable[[Finding], None]
SKIPPED = "mend the row; it is skipped until then"
"""The usual remedy for a row that cannot be used."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row lies, and where its findings go."""

    where: str
    note: Note

    def warn(self, code: str, what: str, expected: str, remedy: str = "mend the row") -> None:
        """Tell of something doubtful; the row is kept."""
        self.note(Finding(code, "warning", self.where, what, expected, remedy))

    def refuse(self, code: str, what: str, expected: str, remedy: str = SKIPPED) -> bool:
        """Tell why the row is skipped; False, so that a check can end with it."""
        self.note(Finding(code, "error", self.where, what, expected, remedy))
        return False


def short(value: object) -> str:
    """A value for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more digits than Python writes, or too many levels
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
