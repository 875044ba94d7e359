"""Lines of JSON, read one by one and within limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnidata.files import STREAMED, open_file
from omnidata.jsontext import BROKEN, decode

MAX_LINE = 64 * 1024**2
"""Bytes of the longest line that is decoded."""

BOM = b"\xef\xbb\xbf"

_DEEPEST = 200
"""Levels of a value. Python's own limit depends on the place of the call: what could be read might
not be written again."""


def values(path: Path) -> Iterator[tuple[str, Any]]:
    """Every line of a file and its place; `BROKEN` for one that is no JSON or too long.

    Blank lines and the mark that some editors put at the beginning are passed over.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path, STREAMED) as file:
        number = 0
        while text := file.readline(MAX_LINE + 1):
            number += 1
            if number == 1:
                text = text.removeprefix(BOM)
            whole = len(text) <= MAX_LINE
            rest = text
            while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
                rest = file.readline(MAX_LINE + 1)
            if text.strip():
                yield f"{path}:{number}", decoded(text) if whole else BROKEN


def decoded(text: bytes) -> Any:
    """The JSON value of bytes in UTF-8, or `BROKEN`, also for one of more than 200 levels.

    Examples:
        >>> decoded(b"[1, 2]"), decoded(b"[" * 201 + b"]" * 201) is BROKEN
        ([1, 2], True)
    """
    try:
        value = decode(text.decode("utf-8"))
    except (UnicodeDecodeError, RecursionError):
        return BROKEN
    may_be_deep = text.count(b"[") + text.count(b"{") > _DEEPEST
    return BROKEN if may_be_deep and _is_deep(value) else value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
    return any(isinstance(one, dict | list) for one in level)
