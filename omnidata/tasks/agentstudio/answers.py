"""Read answers behind `Answer:` and its variants.

The prompts of IDMBench and CriticBench (AgentStudio, appendices D and E) ask for a last line
`Answer: ...`. Models also write `**Answer:**`, `ANSWER :` or `{"answer": ...}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from omnidata.actions import Point, Space, ratio
from omnidata.tasks.agentstudio.rows import screen_of, target_box
from omnidata.tasks.points import answers, last_pair, read_point

DRESS = " \t\xa0*_`\"'“”‘’()[]{}<>+-–—•·#~$|.…,;:=!?"
"""Characters around an answer, such as bullets."""

# IDMBench: the letters in a response (AgentStudio, section 5.2, appendix D).
#
# The *release* matches one pattern and keeps letters as written. The *paper* shows responses that
# end in `Answer:` and letters: the last `Answer:` with letters decides, whatever the case, the list
# marks or the bold type, and a word is not a letter. Other responses are unread.

Letters = tuple[str, ...]

# Possessive: an attempt reads each character once. IGNORECASE is the release's, and lets a few
# letters beyond ASCII through, which equal no reference.
_RELEASED_LETTER = re.compile(r"answer\s*+:\s*+([A-Z])", re.IGNORECASE)
_RELEASED_LETTERS = re.compile(r"answer:\s*+([A-Z](?:\n[A-Z])*+)", re.IGNORECASE)


def released_letter(text: str | None) -> str | None:
    r"""Return the character after the last `Answer:`, as IDM-Single's release does; None = none.

    Blanks around the colon are allowed. The letter may be the first of a word.

    Examples:
        >>> released_letter("Answer: A\nNo. ANSWER :\n\nH. scroll down")
        'H'
        >>> released_letter("Answer: Click"), released_letter("**Answer:** H")
        ('C', None)
    """
    found = _RELEASED_LETTER.findall(text or "")
    return found[-1] if found else None


def released_letters(text: str | None) -> Letters:
    r"""Return the letters after the last `Answer:`, one a line, as IDM-Multiple's release does.

    Blanks before the colon and empty lines are not allowed; () = nothing matched.

    Examples:
        >>> released_letters("Answer: A\nB\nThe end."), released_letters("Answer: A, B")
        (('A', 'B', 'T'), ('A',))
        >>> released_letters("**Answer:**\nA")
        ()
    """
    found = _RELEASED_LETTERS.findall(text or "")
    return tuple(found[-1].split("\n")) if found else ()


def read_letter(text: str | None) -> str | None:
    r"""Return the first letter of the last answer, in upper case; None = unread.

    Words may follow an upper-case letter, except `A` and `I`, which are words themselves.

    Examples:
        >>> read_letter("**Answer:** (h)\nThe answer: this is a list that moved down.")
        'H'
        >>> read_letter("Answer: C because a menu opened"), read_letter("Answer: A menu opened")
        ('C', None)
        >>> read_letter("Answer: Click")
    """
    for answer in answers(text or ""):
        if letters := _letters(answer):
            return letters[0]
        if letter := _LETTER_BEFORE_WORDS.match(answer):
            return letter[1]
    return None


def read_letters(text: str | None) -> Letters | None:
    r"""Return the letters of the last answer, in upper case; None = unread.

    A line has one or several letters, with or without bullets, numbers and the options' texts.
    Blank lines are skipped; the first line of prose ends the answer.

    Examples:
        >>> read_letters("Answer:\r\n1. **C**\r\n\r\n2. g: type\r\nThat is all.")
        ('C', 'G')
        >>> read_letters("Answer: A, B -> C") == read_letters("Answer: A B C")
        True
        >>> read_letters("Answer: click, then type")
    """
    return next((letters for answer in answers(text or "") if (letters := _letters(answer))), None)


# --- the lines of an answer -----------------------------------------------------------------------

_NUMBERING = re.compile(r"(?:(?:step|action)\s*+)?+\d++\s*+[.):-]", re.IGNORECASE)
_LONE = r"[*_`\"'(]*+[A-Za-z][*_`\"')]*+"
_SEPARATOR = re.compile(
    r"[,;|→⇒➔]|[-=]?+>"
    rf"|(?<=\s)[-–—](?=\s++{_LONE}(?:\s++[-–—]\s|\s*+$))"  # A - B, but not A - click
    r"|(?<=\s)(?=\d++[.)]\s)"  # 1. A (click) 2. B (type)
)
_CONNECTIVE = re.compile(r"and|then|finally|&|\d++[.):]", re.IGNORECASE)
_LABEL = re.compile(
    r"([A-Za-z])[*_`\"'”’)\]}]*+"
    r"(?:(?<=[)\]}])|\s*+[:=(]|\s++[-–—]|\.(?=[\s*_`\"']))"
)
_LETTER_BEFORE_WORDS = re.compile(
    rf"[\s{re.escape(DRESS)}]*+([B-HJ-Z]|[AI](?!\s++[^\W\d_]))(?!['’-]?\w|\.\w\.)"
)


def _letters(answer: str) -> Letters:
    found: list[str] = []
    for line in answer.splitlines():
        bare = line.strip(DRESS)
        if not bare or line.lstrip().startswith("```"):
            continue
        letters = _of_line(bare)
        if not letters:
            break
        found += letters
    return tuple(found)


def _of_line(line: str) -> list[str]:
    if len(line) == 1:
        return [line.upper()] if _is_letter(line) else []
    found: list[str] = []
    for part in map(_without_number, (part.strip(DRESS) for part in _SEPARATOR.split(line))):
        words = (word for word in part.split() if not _CONNECTIVE.fullmatch(word))
        letters = [word.strip(DRESS) for word in words]
        if not all(map(_is_letter, letters)):
            label = _LABEL.match(part)
            if not label:  # unless a comma stands in an option's text
                label = _LABEL.match(_without_number(line))
                return [label[1].upper()] if label else []
            letters = [label[1]]
        found += map(str.upper, letters)
    return found


def _without_number(text: str) -> str:
    number = _NUMBERING.match(text)
    return text[number.end() :].strip(DRESS) if number else text


def _is_letter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text.isalpha()


# GroundUI: the point in a response, and whether it hits (AgentStudio, section 5.1, appendix C.3).
#
# The *release* takes the last `(number, number)`, which must be strictly inside the box. For the
# *paper* the point "lies within" the box, so its edges count; `omnidata.tasks.points.read_point`
# reads it. The released evaluator takes the unit of the coordinates from a model's name.

Pair = tuple[float, float]
ToScreen = Callable[[Pair], Pair]
"""From pixels of the picture that a model was shown to those of the row's."""
Reading = Literal["paper", "release"]
Fault = Literal["", "no-pair", "box-unusable", "resolution-unusable"]


class PointVerdict(NamedTuple):
    """The verdict on one response.

    Attributes:
        hit: whether the point hits the box; None if the row cannot be judged, because of `fault`.
        point: the point in pixels of the screenshot; None if unread or not convertible.
        fault: "no-pair" (the response is unread and counts as a miss), "box-unusable" and
            "resolution-unusable" (faults of the row); empty otherwise.
    """

    hit: bool | None
    point: Pair | None
    fault: Fault = ""


# --- reading --------------------------------------------------------------------------------------

# Every quantifier is possessive, so an attempt reads each character once, and a failed attempt has
# passed no opening bracket at which another could begin: the search is linear.
_PLAIN = r"([-+]?+(?:\d++(?:\.\d++)?+|\.\d++))"
_RELEASE = re.compile(rf"\(\s*+{_PLAIN}\s*+,\s*+{_PLAIN}\s*+\)")


def read_released(text: str | None) -> Pair | None:
    r"""Return the last `( number , number )`, as the released evaluator does; None = none.

    A number is an optional sign, then digits with an optional fraction, or a fraction alone. Digits
    are Unicode's, blanks include line ends. Numbers too large for a float become infinite.

    Examples:
        >>> read_released("1. (0.2, 0.3)  2. ( .85,\n-0.07 )")
        (0.85, -0.07)
        >>> read_released("(1., 1.)") or read_released("[0.5, 0.5]") or read_released("(1, 2, 3)")
    """
    return last_pair(_RELEASE, text) if text else None


# --- judging --------------------------------------------------------------------------------------


def judge_released(
    row: Mapping[str, Any],
    text: str | None,
    *,
    space: Space,
    to_screen: ToScreen | None = None,
) -> PointVerdict:
    """Return the released verdict: strictly inside the box, in pixels, products in float64.

    The released evaluator raises an error for a row's fault. It uses "px" for one model's name only
    and has no "norm1000", so no profile has a released score of that.

    Args:
        row: the untouched row; `bbox` is [left, top, right, bottom] and `resolution` [W, H], both
            in pixels.
        text: the response; None = there is none.
        space: unit of the coordinates in the response.
        to_screen: converts pixels of a resized picture; None if it had the row's size.

    Examples:
        >>> row = {"bbox": [1064, 99, 1148, 140], "resolution": [1440, 900]}
        >>> judge_released(row, "(0.85, 0.07)", space="rel").hit  # appendix C.3
        False
        >>> judge_released(row, "(1064, 120)", space="px")
        PointVerdict(hit=False, point=(1064.0, 120.0), fault='')
    """
    pair = read_released(text)
    point = _screen_point(pair, space, to_screen)
    return judge_pair(row, point, reading="release", space=space)


def judge_point(
    row: Mapping[str, Any],
    text: str | None,
    *,
    space: Space,
    to_screen: ToScreen | None = None,
) -> PointVerdict:
    """Return the paper's verdict: within the box, edges included.

    A tolerance of 1e-9 makes up for rounding: a point converted from an edge lies on that edge. A
    box without height can be hit; a box that is infinite or upside down cannot be judged.

    Args:
        row: the untouched row; `bbox` is [left, top, right, bottom] and `resolution` [W, H], both
            in pixels.
        text: the response; None = there is none.
        space: unit of the coordinates in the response.
        to_screen: converts pixels of a resized picture; None if it had the row's size.

    Examples:
        >>> row = {"bbox": [336, 652, 466, 652], "resolution": [1440, 900]}
        >>> judge_point(row, "(400, 652)", space="px").hit
        True
        >>> judge_point({"bbox": None}, "(400, 652)", space="px")
        PointVerdict(hit=None, point=(400.0, 652.0), fault='box-unusable')
    """
    point = _screen_point(read_point(text), space, to_screen)
    return judge_pair(row, point, reading="paper", space=space)


def _screen_point(pair: Pair | None, space: Space, to_screen: ToScreen | None) -> Point | None:
    if pair is None:
        return None
    return Point(*(to_screen(pair) if space == "px" and to_screen else pair), space)


def judge_pair(
    row: Mapping[str, Any], point: Point | None, *, reading: Reading, space: Space
) -> PointVerdict:
    """Judge the point of an answer.

    Args:
        row: as in `judge_point`.
        point: in the unit of the answer, pixels of the row's screenshot; None if unread.
        reading: whose rule: "paper" as `judge_point`, "release" as `judge_released`.
        space: unit that the prompt asks for.
    """
    pixels = pair_in_pixels(point, row.get("resolution")) if point else None
    if reading == "release":
        if point is None:
            return PointVerdict(False, None, "no-pair")
        if pixels is None:
            return PointVerdict(None, None, "resolution-unusable")
        edges = _numbers(row.get("bbox"), 4)
        if edges is None:
            return PointVerdict(None, pixels, "box-unusable")
        left, top, right, bottom = edges
        return PointVerdict(left < pixels[0] < right and top < pixels[1] < bottom, pixels)
    box = target_box(row)
    if box is None:
        return PointVerdict(None, pixels, "box-unusable")
    if space != "px" and screen_of(row) is None:
        return PointVerdict(None, None, "resolution-unusable")
    if pixels is None:
        return PointVerdict(False, None, "no-pair")
    x, y = pixels
    return PointVerdict(_within(box.left, x, box.right) and _within(box.top, y, box.bottom), pixels)


def _within(low: float, value: float, high: float) -> bool:
    return low - 1e-9 * abs(low) <= value <= high + 1e-9 * abs(high)


def pair_in_pixels(point: Point, resolution: Any) -> Pair | None:
    """Return a point in pixels of the row's screenshot; None without a usable size.

    Args:
        point: in any unit.
        resolution: [W, H] of the row, untouched.
    """
    if point.space == "px":
        return point.x, point.y
    size = _numbers(resolution, 2)
    if size is None:
        return None
    (a, b), (c, d) = (ratio(point.space, extent) for extent in size)
    return point.x * a / b, point.y * c / d


def _numbers(value: Any, count: int) -> list[Any] | None:
    if not isinstance(value, list | tuple) or len(value) != count:
        return None
    for number in value:
        if not isinstance(number, int | float):
            return None
        if isinstance(number, int) and abs(number) > 1 << 1000:
            return None
    return list(value)
