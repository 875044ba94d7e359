"""Texts of data and models inside Markdown, CSV and file names: what reads them is not to obey."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MARKDOWN = frozenset("\\`*_{}[]<>|#!~&$")
_FORMULA = ("=", "+", "-", "@")


def file_name(text: str) -> str:
    """The text as a part of a file's name on any system; different texts may have the same.

    Examples:
        >>> file_name("org/model:1"), file_name("a b")
        ('org-model-1', 'a-b')
    """
    return re.sub(r"[^A-Za-z0-9._=+-]+", "-", text)


def markdown_text(text: str) -> str:
    r"""The text on one line, with everything escaped that Markdown or HTML would take for a sign.

    Examples:
        >>> print(markdown_text("a|b *<c>"))
        a\|b \*\<c\>
    """
    line = " ".join(text.splitlines())
    return "".join(f"\\{letter}" if letter in _MARKDOWN else letter for letter in line)


def csv_text(fields: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """Records as CSV, a line each below the header.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, as
    spreadsheets themselves write it; numbers stay as they are.

    Args:
        fields: the columns, in order.
        records: with these keys, or some of them.

    Examples:
        >>> print(csv_text(["app", "change"], [{"app": "=1+1", "change": -0.5}]), end="")
        app,change
        '=1+1,-0.5
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, fields, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: _harmless(value) for name, value in record.items()})
    return out.getvalue()


def _harmless(value: Any) -> Any:
    """The value, if a text then as one."""
    if not isinstance(value, str):
        return value
    text = value.replace("\r", "\\r")  # which csv does not quote, and readers take for a line's end
    # Spreadsheets pass over blanks before a formula.
    return f"'{text}" if value.lstrip().startswith(_FORMULA) else text
