r"""ScreenSpot's rule: the point that an answer names lies in the box, edges included.

"released" reads answers as SeeClick's evaluation does: with the word "box" in a text, it is the
first `<box>(x1,y1),(x2,y2)</box>`, in thousandths, and its centre counts; without, a text of
exactly two numbers is a point, one of exactly four a box, whose centre counts. All else has the
wrong format and is wrong: "the box is at (0.5, 0.5)", "element 2 is at (0.5, 0.5)", and the tokens
of later models, `<|box_start|>`. "fixed" knows these, takes a point between the tags of a point or
of an object with x and y, and else the last bracket of two or four numbers, whatever stands around
it. Only boxes between tokens have a unit of their own; other places are in the one asked for.

ScreenSpot-Pro's evaluation has the same rule for a point, however a model's own reader got it, and
knows elements that are not on the screen, for which "negative" is right.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final, Literal

from omnidata.actions import Box, Screen, Space
from omnidata.tasks.agentstudio.answers import Pair, ToScreen, read_point

Reading = Literal["released", "fixed"]
NEGATIVE: Final = "negative"

_FLOATS: Final = re.compile(r"-?\d+\.?\d*")
_BOXED: Final = re.compile(r"<box>\((\d+),(\d+)\),\((\d+),(\d+)\)</box>")
_TOKENS: Final = re.compile(r"<\|?box(?:_start)?\|?>\((\d+),(\d+)\),\((\d+),(\d+)\)<")
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
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """What an answer says.

    Attributes:
        point: where, or the centre of the box; None where the answer is "negative".
        space: the unit, where the answer itself tells; None where the prompt does.
    """

    point: Pair | None
    space: Space | None = None


def read(text: str, reading: Reading) -> ParsedResponse | None:
    """What an answer says; None where its format is wrong.

    Args:
        text: as it came.
        reading: whose.

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
    return _released(text) if reading == "released" else _meant(text)


def _released(text: str) -> ParsedResponse | None:
    if "box" in text:
        first = _BOXED.search(text)
        sides = [float(side) for side in first.groups()] if first else []
        return ParsedResponse(_centre(sides), "norm1000") if sides else None
    numbers = [float(found) for found in _FLOATS.findall(text)]
    if len(numbers) == 2:
        return ParsedResponse((numbers[0], numbers[1]))
    return ParsedResponse(_centre(numbers)) if len(numbers) == 4 else None


def _meant(text: str) -> ParsedResponse | None:
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
    return None


def _centre(sides: list[float]) -> Pair:
    return (sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2


def hits(
    box: Box,
    answer: ParsedResponse,
    *,
    space: Space,
    screen: Screen,
    to_screen: ToScreen | None = None,
) -> bool | None:
    """Whether the point lies in the box, both in shares of the screen, as the releases compare.

    Args:
        box: the target.
        answer: what it says.
        space: the unit that the prompt asks for.
        screen: width and height of the screenshot in pixels; (0, 0) where nobody knows.
        to_screen: for pixels of a picture that had another size; None = it had the screen's.

    Returns:
        None where one of them is in pixels of a screen of unknown size.

    Examples:
        >>> box = Box(640, 0, 1280, 360, "px")
        >>> hits(box, ParsedResponse((0.5, 0.5)), space="rel", screen=(1280, 720))
        True
    """
    if min(screen) < 1 and "px" in (space, box.space):
        return None
    if answer.point is None:
        return False
    unit = answer.space or space
    x, y = answer.point
    if unit == "px":
        x, y = to_screen((x, y)) if to_screen else (x, y)
    if not (math.isfinite(x) and math.isfinite(y)):
        return False
    width, height = screen if unit == "px" else (1000, 1000) if unit == "norm1000" else (1, 1)
    across, down = screen if box.space == "px" else (1, 1)
    inside = box.left / across <= x / width <= box.right / across
    return inside and box.top / down <= y / height <= box.bottom / down
