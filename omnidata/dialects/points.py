"""Points and boxes in answers that say where something is.

One reader serves all families: pairs and fours in brackets, in tags, under a JSON key, as the
arguments of a click. Numbers stay as written, in the unit that the caller asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from omnidata.actions import Region, Space
from omnidata.dialects.call_syntax import region_of
from omnidata.jsontext import is_number

_LONGEST: Final = 64
"""Characters of a number; what is longer is no place on a screen."""
_FARTHEST: Final = 1e9
"""The largest number of a place; an integer beyond all floats is never compared with a screen."""

# Possessive throughout, and no match can begin inside a failed one more than once: linear.
_NUMBER = r"([-+]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+)"
_BETWEEN = r"[\s,;\"'()\[\]]++"
_TWO_OR_FOUR = re.compile(
    rf"[\s\"'(\[]*+(?:<[|a-z_]{{1,16}}>)?+[\s\"'(\[]*+{_NUMBER}{_BETWEEN}{_NUMBER}"
    rf"(?:{_BETWEEN}{_NUMBER}{_BETWEEN}{_NUMBER})?+(?!\s*+%)(?!{_BETWEEN}[-+.]?+[0-9])"
)
_BETWEEN_CORNERS = r"\s*+,?+\s*+"
_CORNER = rf"[(\[]\s*+{_NUMBER}\s*+[,;\s]\s*+{_NUMBER}\s*+[)\]]"
_BARE = re.compile(
    rf"[(\[]\s*+{_NUMBER}\s*+[,;]\s*+{_NUMBER}(?:\s*+[,;]\s*+{_NUMBER}\s*+[,;]\s*+{_NUMBER})?+"
    rf"\s*+[)\]](?:{_BETWEEN_CORNERS}{_CORNER})?+"
)
_AXES = re.compile(
    rf"(?<!\w)[\"']?+[xX][\"']?+\s*+[=:]\s*+[\"']?+{_NUMBER}[\"']?+\s*+,?+\s*+"
    rf"[\"']?+[yY][\"']?+\s*+[=:]\s*+[\"']?+{_NUMBER}(?!\s*+%)"
)
_POINTS = re.compile(
    rf"x1?+\s*+=\s*+[\"']?+{_NUMBER}[\"']?+\s*+,?+\s*+y1?+\s*+=\s*+[\"']?+{_NUMBER}"
)
_MARK = re.compile(
    r"(?P<points><points?\s++(?=x))"
    r"|(?P<axes>(?<!\w)[\"']?+[xX][\"']?+\s*+[=:])"
    r"|<(?:point|points|box|bbox|\|box_start\|)>"
    r"|(?<!\w)[\"']?+(?:point_2d|point2d|bbox_2d|box_2d|bbox|box|points?|coordinates?|position"
    r"|click_point|start_box|start_point|POINT)[\"']?+\s*+[:=]"
    r"|(?<![^\W_])(?:[cC]lick|CLICK|[tT]ap|TAP|[mM]ove(?:_?[tT]o)?)\s*+\("
)
_DRESS: Final = " \t\r\n*_`\"'“”.$"
_FENCE = re.compile(r"```[a-z]*+|<\|(?:im_end|endoftext|box_end)\|>")
_PLAIN = re.compile(rf"{_NUMBER}\s*+,\s*+{_NUMBER}")
_NOTHING: Final = frozenset(("[]", "[[]]", "()", "none", "null"))


def read_place(text: str, space: Space, *, prose: bool = True) -> Region | None:
    """Return the place that an answer names, or None where it says that there is none.

    What is marked comes first: a tag, a JSON key, the argument of a click; the first of them
    counts. Without one, the whole answer is a place, or it is the last one in brackets: reasons
    come first. Four numbers, or two corners, are a box.

    Args:
        text: the answer, which is not trusted.
        space: the unit of its numbers.
        prose: whether a place that is not marked may stand among words.

    Raises:
        ValueError: there is no place in it.

    Examples:
        >>> read_place("<|box_start|>(10,20),(30,40)<|box_end|>", "norm1000")
        Box(left=10, top=20, right=30, bottom=40, space='norm1000')
        >>> read_place('[{"point_2d": [447, 81], "label": "3 of 4"}]', "px")
        Point(x=447, y=81, space='px')
        >>> read_place("pyautogui.click(x=0.25, y=0.5)", "rel")
        Point(x=0.25, y=0.5, space='rel')
        >>> read_place("[-1, -1]", "norm1000")
    """
    for mark in _MARK.finditer(text):
        if marked := _numbers_at(text, mark):
            return _region(marked, space)
    bare = _FENCE.sub(" ", text).strip(_DRESS)
    if bare.lower() in _NOTHING:
        return None
    found = _PLAIN.fullmatch(bare) or _BARE.fullmatch(bare.removeprefix("[").removesuffix("]"))
    found = found or _BARE.fullmatch(bare)
    if found is None and prose:
        for each in _BARE.finditer(text):
            found = each if len(_numbers(each)) in (2, 4) else found
    if found is None or len(numbers := _numbers(found)) not in (2, 4):
        raise ValueError("it names no place")
    return _region(numbers, space)


def place_of(value: Any, space: Space) -> Region | None:
    """Return the place that a value of JSON states, or None.

    Lists of two or four numbers, also in a list, objects with x and y, and texts of these are
    places.

    Examples:
        >>> place_of([447, 81.5], "px"), place_of("(1, 2, 3, 4)", "px").centre
        (Point(x=447, y=81.5, space='px'), Point(x=2.0, y=3.0, space='px'))
        >>> place_of([447], "px")
    """
    if isinstance(value, Mapping):
        value = [value.get("x"), value.get("y")]
    if isinstance(value, str):
        found = _PLAIN.fullmatch(value.strip()) or _BARE.fullmatch(value.strip())
        value = _numbers(found) if found else ()
    if not isinstance(value, Sequence):
        return None
    if len(value) == 1 or (len(value) == 2 and isinstance(value[0], list)):
        value = [each for pair in value if isinstance(pair, list) for each in pair]
    if len(value) not in (2, 4):
        return None
    given = [_number(each) if isinstance(each, str) else each for each in value]
    numbers = [each for each in given if is_number(each) and abs(each) <= _FARTHEST]
    return region_of(numbers, space) if len(numbers) == len(given) else None


def _numbers_at(text: str, mark: re.Match[str]) -> list[int | float]:
    if mark["points"]:
        found = _POINTS.match(text, mark.end())
    elif mark["axes"]:
        found = _AXES.match(text, mark.start())
    else:
        found = _TWO_OR_FOUR.match(text, mark.end())
    numbers = _numbers(found) if found else []
    return numbers if len(numbers) in (2, 4) else []


def _numbers(found: re.Match[str]) -> list[int | float]:
    texts = [each for each in found.groups() if each is not None]
    numbers = [number for each in texts if (number := _number(each)) is not None]
    return numbers if len(numbers) == len(texts) else []


def _number(text: str) -> int | float | None:
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    try:
        number = int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _region(numbers: Sequence[int | float], space: Space) -> Region | None:
    return None if all(each == -1 for each in numbers) else region_of(numbers, space)
