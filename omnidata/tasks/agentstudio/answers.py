"""Read answers behind `Answer:` and its variants.

The prompts of IDMBench and CriticBench (AgentStudio, appendices D and E) ask for a last line
`Answer: ...`. Models also write `**Answer:**`, `ANSWER :` or `{"answer": ...}`.
"""

from __future__ import annotations

import re
from typing import Literal

from omnidata.tasks.points import answers, last_pair

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


# GroundUI: the point in a response (AgentStudio, section 5.1, appendix C.3).
#
# The *release* takes the last `(number, number)`; for the *paper* it is read by
# `omnidata.tasks.points.read_point`.

Pair = tuple[float, float]
Reading = Literal["paper", "release"]
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
