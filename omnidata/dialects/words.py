"""Actions in words, as OS-Atlas writes them: a name, then a place or a text in brackets.

`CLICK <point>[[101, 872]]</point>`, `TYPE [a text]`, `SCROLL [UP]`, `PRESS_BACK`. Nothing is
escaped. Reading takes time linear in the length of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

from omnidata.actions import Region, Space
from omnidata.dialects.call_syntax import region_of

_NAME: Final = re.compile(
    r"\s*+(?:(?:[-*]|\d{1,2}[.)])\s++)?([A-Za-z][A-Za-z_0-9]*+)[ \t]*+:?[ \t]*+"
)
_NUMBERS: Final = re.compile(
    r"(?<![\w.])[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d{1,3})?(?![\w.])"
)
_OPENING: Final = re.compile(r"(?:<point>|<\|box_start\|>)?[ \t]*[\[(]{1,2}|<point>")
_LONGEST_NUMBER: Final = 30
_LARGEST: Final = 10.0**12
_LONGEST_PLACE: Final = 200


@dataclass(frozen=True, slots=True)
class Word:
    """One action of a text.

    Attributes:
        name: in capitals.
        line: what stands after it on its line, without blanks at the ends.
        start: where it begins in the text.
        after: where that is.
        end: where the line ends.
    """

    name: str
    line: str
    start: int
    after: int
    end: int


def words(text: str, names: Set[str], start: int = 0) -> Iterator[Word]:
    r"""Yield the actions of a text, a line each; the first line that has none ends them.

    Args:
        text: any text.
        names: those that there are, in capitals; letters of a text may be small.
        start: where to begin.

    Examples:
        >>> found = words("CLICK [[1, 2]]\nPRESS_BACK\nI am done", {"CLICK", "PRESS_BACK"})
        >>> [(word.name, word.line) for word in found]
        [('CLICK', '[[1, 2]]'), ('PRESS_BACK', '')]
    """
    while found := _NAME.match(text, start):
        name = found[1].upper()
        if name not in names:
            return
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
        yield Word(name, text[found.end() : end].strip(), found.start(1), found.end(), end)
        start = end


def text_in_brackets(text: str, word: Word) -> tuple[str, int] | None:
    """Return the text in brackets after a name, and where it ends; None where they do not close.

    A bracket in a text that ends with its line is a part of it. A text may go over several lines,
    and then ends at its first closing bracket; one without brackets is the rest of the line.

    Examples:
        >>> from omnidata.dialects.words import words
        >>> said = "TYPE [a[0] = 1]"
        >>> text_in_brackets(said, next(words(said, {"TYPE"})))
        ('a[0] = 1', 15)
    """
    if not word.line.startswith("["):
        return (word.line, word.end) if word.line else None
    begin = text.index("[", word.after) + 1
    close = text.rfind("]", begin, word.end)
    if close < 0:
        close = text.find("]", begin)
    return (text[begin:close], close + 1) if close >= 0 else None


def numbers(text: str) -> list[int | float]:
    """Return the numbers of a text as written, without those that are too long or too large.

    Examples:
        >>> numbers("(576, 12.5),(592,42)")
        [576, 12.5, 592, 42]
    """
    found = (number for number in _NUMBERS.findall(text) if len(number) <= _LONGEST_NUMBER)
    values = [int(number) if number.lstrip("+-").isdigit() else float(number) for number in found]
    return [value for value in values if abs(value) <= _LARGEST]


def place(text: str, space: Space) -> Region | None:
    """Return the place that a text begins with: two numbers are a point, four a box.

    Args:
        text: what stands after a name.
        space: the unit of the numbers.

    Examples:
        >>> place("<point>[[101, 872]]</point>", "norm1000")
        Point(x=101, y=872, space='norm1000')
        >>> place("<|box_start|>(1,2),(5,4)<|box_end|>", "norm1000").centre.x
        3.0
    """
    if not _OPENING.match(text):
        return None
    found = numbers(text[:_LONGEST_PLACE].split("</point>", 1)[0].split("<|box_end|>", 1)[0])
    return region_of(found, space) if len(found) in (2, 4) else None
