"""A medium whose bytes are in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnidata.types import MediaRef


@dataclass(frozen=True, slots=True)
class Held(MediaRef):
    """A medium that was read once and is not read again, however often it is opened.

    Attributes:
        content: the bytes.
    """

    content: bytes = field(default=b"", repr=False, compare=False)
