"""IDMBench: the letters in a response (AgentStudio, section 5.2, appendix D).

Two readings of each setting. The *release* matches one pattern and keeps letters as written; its
traps are kept. The *paper* shows responses that end in `Answer:` and letters; that is read here as
a careful person reads: the last `Answer:` that letters follow decides, whatever the case, the list
marks or the bold type, and a word is not a letter. A response without such an answer is unread.
"""

from __future__ import annotations

import re

from omnidata.metrics.agentstudio_answer import DRESS, answers

Letters = tuple[str, ...]

# Possessive: an attempt reads each character once. IGNORECASE is the release's, and lets a few
# letters beyond ASCII through, which equal no reference.
_RELEASED_LETTER = re.compile(r"answer\s*+:\s*+([A-Z])", re.IGNORECASE)
_RELEASED_LETTERS = re.compile(r"answer:\s*+([A-Z](?:\n[A-Z])*+)", re.IGNORECASE)


def released_letter(text: str | None) -> str | None:
    r"""IDM-Single as released: the last `Answer:` and one character, as written; None = none.

    Blanks may stand around the colon. The letter may be the first of a word.

    Examples:
        >>> released_letter("Answer: A\nNo. ANSWER :\n\nH. scroll down")
        'H'
        >>> released_letter("Answer: Click"), released_letter("**Answer:** H")
        ('C', None)
    """
    found = _all(_RELEASED_LETTER, text)
    return found[-1] if found else None


def released_letters(text: str | None) -> Letters:
    r"""IDM-Multiple as released: the last `Answer:` with a letter, then a letter a line.

    No blank may stand before the colon, nor between the lines; () = nothing matched.

    Examples:
        >>> released_letters("Answer: A\nB\nThe end."), released_letters("Answer: A, B")
        (('A', 'B', 'T'), ('A',))
        >>> released_letters("**Answer:**\nA")
        ()
    """
    found = _all(_RELEASED_LETTERS, text)
    return tuple(found[-1].split("\n")) if found else ()


def _all(pattern: re.Pattern[str], text: str | None) -> list[str]:
    """All matches from the left: one may swallow the `A` of the next `Answer`."""
    return pattern.findall(text) if text else []


def read_letter(text: str | None) -> str | None:
    r"""IDM-Single read with care: the last answer's first letter, in upper case; None = unread.

    An upper-case letter may have words behind it, except `A` and `I`, which are words themselves.

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
    r"""IDM-Multiple read with care: the last answer's letters, in upper case; None = unread.

    One or several letters a line, with or without bullets, numbers and the options' texts; blank
    lines between them do not count, and the first line of prose ends the answer.

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
    """The letters at the beginning of what follows `Answer:`; () = it begins with prose."""
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
    """The letters of one line; [] = it is prose."""
    if len(line) == 1:
        return [line.upper()] if _is_letter(line) else []
    found: list[str] = []
    for part in _SEPARATOR.split(line):
        letters = _of_part(part)
        if letters is None:  # unless a comma stands in an option's text
            label = _LABEL.match(_without_number(line))
            return [label[1].upper()] if label else []
        found += letters
    return found


def _of_part(part: str) -> list[str] | None:
    """The letters of what stands between two separators; None = it is prose."""
    part = _without_number(part.strip(DRESS))
    words = [word for word in part.split() if not _CONNECTIVE.fullmatch(word)]
    letters = [word.strip(DRESS) for word in words]
    if all(map(_is_letter, letters)):
        return [letter.upper() for letter in letters]
    label = _LABEL.match(part)
    return [label[1].upper()] if label else None


def _without_number(text: str) -> str:
    number = _NUMBERING.match(text)
    return text[number.end() :].strip(DRESS) if number else text


def _is_letter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text.isalpha()
