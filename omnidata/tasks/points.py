"""Points of the screen in models' answers, as benchmarks of grounding read them.

"released" reads answers as SeeClick's evaluation does: with the word "box" in a text, it is the
first `<box>(x1,y1),(x2,y2)</box>`, in thousandths, and its centre counts; without, a text of
exactly two numbers is a point, one of exactly four a box, whose centre counts. All else has the
wrong format and is wrong: "the box is at (0.5, 0.5)", "element 2 is at (0.5, 0.5)", and the
tokens of later models, `<|box_start|>`. "fixed" knows these, takes a point between the tags of a
point or of an object with x and y, and else the last bracket of two or four numbers, whatever
stands around it. Only boxes between tokens have a unit of their own; other places are in the one
asked for. "negative" says that the element is not on the screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from omnidata.actions import Pair, Space
from omnidata.jsontext import objects
from omnidata.tasks.json_answers import read_pair

WIDE = str.maketrans("（），．：；［］＝", "(),.:;[]=")
"""Full-width signs and their ASCII counterparts."""

# Possessive: what cannot backtrack is read once. No match can begin inside a failed one.
# The look behind comes second: looking behind every character costs three times the search.
_MARKER = re.compile(r"answer(?<![^\W_]answer)[\s*_`\"']*+:", re.IGNORECASE)


def answers(text: str) -> Iterator[str]:
    """Yield the text after each `Answer:` up to the next one, the last first.

    Full-width signs become ASCII. The pieces do not overlap, so reading all of them takes time
    linear in the text.

    Examples:
        >>> list(answers("Answer: A, no. **Answer:** B"))
        ['** B', ' A, no. **']
    """
    text = text.translate(WIDE)
    end = len(text)
    for marker in reversed(list(_MARKER.finditer(text))):
        yield text[marker.end() : end]
        end = marker.start()


_NUMERAL = r"([-+]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?+\d++)?+)"
_SIDES = rf"(?:[xX]\s*+[=:]\s*+)?+{_NUMERAL}\s*+,\s*+(?:[yY]\s*+[=:]\s*+)?+{_NUMERAL}"
_ROUND = re.compile(rf"\(\s*+{_SIDES}\s*+\)")
_SQUARE = re.compile(rf"\[\s*+{_SIDES}\s*+\]")
_MARKUP = r"[\s*_`\"']*+"
_STATED = re.compile(
    rf"{_MARKUP}(?:\(\s*+{_SIDES}\s*+\)|\[\s*+{_SIDES}\s*+\]"
    rf"|{_SIDES}(?=[*_`\"']*+\.?+(?!\S))(?!\s*+[,;%]))"
    r"(?!\s*+[,;]?+\s*+[(\[]\s*+[-+.\d])"  # two corners are a box
)
_BARE = re.compile(rf"{_MARKUP}{_SIDES}{_MARKUP}\.?+\s*+")


def read_point(text: str | None) -> Pair | None:
    r"""Return the point in a response, as a careful reader finds it; None = no point.

    The pair after the last `Answer:` that has one; otherwise the last `(X, Y)`; then the last
    `[X, Y]`; then a text of only two numbers. Names (`x=`), scientific notation, `1.` and
    full-width signs are spellings of the same pair. Percentages, four numbers and fractions are not
    pairs, because their meaning would be a guess.

    Examples:
        >>> read_point("The link is at (x=0.85, y=7e-2)."), read_point("`0.85, 0.07`")
        ((0.85, 0.07), (0.85, 0.07))
        >>> read_point("[1] I would click [0.85, 0.07]")
        (0.85, 0.07)
        >>> read_point("Answer: (0.85, 0.07)\nThe icon at (0.1, 0.1) is another one.")
        (0.85, 0.07)
        >>> read_point("(0.8, 0.1, 0.9, 0.2)") or read_point("(85%, 7%)")
    """
    if not text:
        return None
    for answer in answers(text):
        if stated := _STATED.match(answer):
            x, y = filter(None, stated.groups())
            return float(x), float(y)
    text = text.translate(WIDE)
    found = last_pair(_ROUND, text) or last_pair(_SQUARE, text)
    if found is None and (bare := _BARE.fullmatch(text)):
        return float(bare[1]), float(bare[2])
    return found


def last_pair(pattern: re.Pattern[str], text: str) -> Pair | None:
    """Return the last pair of numbers that a pattern matches; None = none."""
    found = None
    for found in pattern.finditer(text):  # noqa: B007 the last one is wanted
        pass
    return None if found is None else (float(found[1]), float(found[2]))


# What an answer says, in the two readings of the head.

Reading = Literal["released", "fixed"]
NEGATIVE: Final = "negative"

_FLOATS: Final = re.compile(r"-?\d+\.?\d*")
_BOXED: Final = re.compile(r"<box>\((\d+),(\d+)\),\((\d+),(\d+)\)</box>")
_WHOLE: Final = r"\(\s*+(\d++)\s*+,\s*+(\d++)\s*+\)"
_TOKENS: Final = re.compile(rf"<\|?box(?:_start)?\|?>\s*+{_WHOLE}\s*+,\s*+{_WHOLE}\s*+<")
_NUMBER: Final = r"\s*+([-+]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?+\d++)?+)\s*+"
_LINK: Final = r"(?:,|[)\]]\s*+,\s*+[(\[])"
_CORNERS: Final = re.compile(rf"[(\[]{_NUMBER},{_NUMBER}{_LINK}{_NUMBER},{_NUMBER}[)\]]")
_PLAIN: Final = r"([-+]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?+\d++)?+)"
_QUOTE: Final = r"[\"']?+"
_TAGGED: Final = re.compile(
    rf"<point>\s*+{_PLAIN}(?:\s*+,\s*+|\s++){_PLAIN}\s*+</point>"
    rf"|<point\s++x\s*+=\s*+{_QUOTE}{_PLAIN}{_QUOTE}\s++y\s*+=\s*+{_QUOTE}{_PLAIN}{_QUOTE}[^<>]*+>"
    rf"|[{{,]\s*+{_QUOTE}x{_QUOTE}\s*+:\s*+{_PLAIN}\s*+,\s*+{_QUOTE}y{_QUOTE}\s*+:\s*+{_PLAIN}\s*+\}}"
)
_REFUSAL: Final = re.compile(r"[\s`*_\"'.]*negative[\s`*_\"'.]*", re.IGNORECASE)
_EXTENTS: Final = frozenset({"width", "height", "w", "h"})
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """A read answer.

    Attributes:
        point: the point, or the centre of the box; None if the answer is "negative".
        space: the unit, if the answer states it; None if the prompt does.
    """

    point: Pair | None
    space: Space | None = None


def read(text: str, reading: Reading) -> ParsedResponse | None:
    """Read an answer to a grounding question; None if its format is wrong.

    Args:
        text: the answer, unchanged.
        reading: "released" as in SeeClick's evaluation, "fixed" with the formats of later models.

    Examples:
        >>> read("(0.2, 0.3, 0.4, 0.5)", "released").point
        (0.30000000000000004, 0.4)
        >>> read("element 2 is at (0.5, 0.25)", "released") is None
        True
        >>> read("element 2 is at (0.5, 0.25)", "fixed").point
        (0.5, 0.25)
    """
    if len(text) > _LONGEST:
        return None
    if _REFUSAL.fullmatch(text):
        return ParsedResponse(None)
    return _read_released(text) if reading == "released" else _read_lenient(text)


def _read_released(text: str) -> ParsedResponse | None:
    if "box" in text:
        first = _BOXED.search(text)
        sides = [float(side) for side in first.groups()] if first else []
        return ParsedResponse(_centre(sides), "norm1000") if sides else None
    numbers = [float(found) for found in _FLOATS.findall(text)]
    if len(numbers) == 2:
        return ParsedResponse((numbers[0], numbers[1]))
    return ParsedResponse(_centre(numbers)) if len(numbers) == 4 else None


def _read_lenient(text: str) -> ParsedResponse | None:
    if tokens := list(_TOKENS.finditer(text)):
        return ParsedResponse(_centre([float(side) for side in tokens[-1].groups()]), "norm1000")
    corners = list(_CORNERS.finditer(text))
    rest = text[corners[-1].end() :] if corners else text
    point = read_point(rest)
    if point is not None:
        return ParsedResponse(point)
    if corners:
        return ParsedResponse(_centre([float(side) for side in corners[-1].groups()]))
    if tagged := list(_TAGGED.finditer(text)):
        x, y = filter(None, tagged[-1].groups())
        return ParsedResponse((float(x), float(y)))
    point = _of_object(text)
    return ParsedResponse(point) if point else None


def _of_object(text: str) -> Pair | None:
    """The last JSON object with both x and y that is no box."""
    found = None
    with suppress(RecursionError):
        for body in objects(text):
            if body.keys() >= {"x", "y"} and _EXTENTS.isdisjoint(body):
                with suppress(OverflowError):
                    pair = read_pair({"x": body["x"], "y": body["y"]})
                    found = (float(pair[0]), float(pair[1])) if pair else found
    return found


def _centre(sides: list[float]) -> Pair:
    return (sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2


UNITS: Final[Mapping[Space, str]] = {
    "rel": "x and y are shares of the screenshot, from 0 to 1.",
    "px": "x and y are pixels of the screenshot.",
    "norm1000": "x and y go from 0 to 1000, thousandths of the screenshot's width and height.",
}
"""What a prompt says of the unit that it asks for."""
