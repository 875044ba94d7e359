"""Whether two texts in pywinauto's notation press the same keys."""

from __future__ import annotations

import re
import unicodedata

_MOST = 1000
"""Repetitions that are written out; nobody presses a key more often."""

_TOKEN = re.compile(r"\{(?P<name>[^{}]+?|[{}])(?: (?P<times>\d{1,9}))?\}|(?P<plain>.)", re.DOTALL)
_SAME = {
    **dict.fromkeys(("BACKSPACE", "BKSP", "BS", "VK_BACK"), "BACK"),
    **dict.fromkeys(("DEL", "VK_DELETE"), "DELETE"),
    **dict.fromkeys(("INS", "VK_INSERT"), "INSERT"),
    **dict.fromkeys(("RETURN", "VK_RETURN"), "ENTER"),
    **dict.fromkeys(("ESCAPE", "VK_ESCAPE"), "ESC"),
    **dict.fromkeys(("VK_TAB",), "TAB"),
}
_CHARACTERS = {"SPACE": " ", "VK_SPACE": " ", "(": "(", ")": ")"}
_SIGNS = {"~": "{ENTER}", "\n": "{ENTER}", "\t": "{TAB}"}


def presses(text: str) -> list[str]:
    """The keys that a text presses, one after the other.

    `~` and a line's end are `{ENTER}`, names have one spelling, repetitions are written out, and
    characters are in Unicode NFC. A modifier is a press of its own.

    Examples:
        >>> presses("^s{enter 2}"), presses("a{SPACE}b")
        (['^', 's', '{ENTER}', '{ENTER}'], ['a', ' ', 'b'])
        >>> presses("{^}") == presses("^")
        False
    """
    found: list[str] = []
    for token in _TOKEN.finditer(unicodedata.normalize("NFC", text)):
        plain, name = token["plain"], token["name"]
        if plain is not None:
            found.append(_SIGNS.get(plain, plain))
            continue
        times = int(token["times"] or 1)
        key = _key(name)
        found += [key] * times if times <= _MOST else [f"{key} {times}"]
    return found


def _key(name: str) -> str:
    """A key that is written in braces: a character that stands for itself, or a name."""
    if len(name) == 1:
        return name if name.isalnum() else f"{{{name}}}"
    upper = name.upper()
    return _CHARACTERS.get(upper, f"{{{_SAME.get(upper, upper)}}}")


def same_keys(one: str, other: str) -> bool:
    """Whether two texts press the same keys in the same order.

    Examples:
        >>> same_keys("report~", "report{ENTER}"), same_keys("report", "Report")
        (True, False)
    """
    return one == other or presses(one) == presses(other)
