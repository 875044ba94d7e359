"""Lines of files that other programs wrote, and those among them that cannot be scored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from omnidata.errors import DataError, PredictionError, plural
from omnidata.files import STREAMED, lines, open_text
from omnidata.jsontext import BROKEN, is_number
from omnidata.loaders.row_files import Line, read_rows
from omnidata.predictions import open_error

CORRECT: Final = "correct or remove the line; for another program's file use --from"
_SHOWN: Final = 5
"""Places that are named for each reason."""
_REMEDIES: Final = 3
_REASONS: Final = 10
"""Reasons that are listed."""
_KEPT: Final = 100
_NUMBER: Final = re.compile(r"0x[0-9A-F]+|\d+")
_OTHER: Final = "another reason"
"""In place of a reason, where there are as many as lines."""


@dataclass(slots=True)
class _Reason:
    what: str
    error: PredictionError
    count: int = 0
    places: list[str] = field(default_factory=list)


class BadLines:
    """Lines of a file of answers that cannot be scored, grouped by their fault.

    Args:
        path: of the file.
        skip: leave them out, so that their steps have no answer; else `check` raises.
        flag: the command's flag for that; empty if it has none.
    """

    def __init__(self, path: Path, *, skip: bool = False, flag: str = "") -> None:
        self.skip = skip
        self._path, self._flag = path, flag
        self._reasons: dict[str, _Reason] = {}

    @property
    def count(self) -> int:
        """The number of lines."""
        return sum(reason.count for reason in self._reasons.values())

    def add(self, error: PredictionError, count: int = 1, places: Sequence[str] = ()) -> None:
        """Note `count` lines with the same fault; `places` are some of theirs."""
        what, key = error.what, _NUMBER.sub("#", error.what)
        if key not in self._reasons and len(self._reasons) >= _KEPT:
            what = key = _OTHER
        reason = self._reasons.setdefault(key, _Reason(what, error))
        reason.count += count
        reason.places += [*(places or [error.where])][: _SHOWN - len(reason.places)]

    def check(self) -> None:
        """Raise one error about all of them, unless they are left out.

        Raises:
            PredictionError: there are any.
        """
        if self.skip or not self._reasons:
            return
        reasons = [*self._reasons.values()]
        remedies = dict.fromkeys(one.error.remedy for one in reasons if one.error.remedy)
        if len(remedies) > 1:  # what helps some lines follows what helps all
            remedies = dict.fromkeys([CORRECT, *remedies])
        remedy = "; ".join([*remedies][:_REMEDIES])
        if self._flag:
            remedy += (
                f"; or add {self._flag}: it skips such lines and counts their steps as missing"
            )
        first = reasons[0]
        if len(reasons) == 1:
            head = "" if first.count == 1 else f"{plural(first.count, 'line')}: "
            what, where = head + first.what, self._places(first)
        else:
            what, where = "\n    ".join(self.summary()), str(self._path)
        expected = first.error.expected
        raise PredictionError(what, where=where, expected=expected, remedy=remedy.lstrip("; "))

    def summary(self) -> list[str]:
        """Return a head and a line for each reason; empty if no line is bad."""
        reasons = [*self._reasons.values()]
        if not reasons:
            return []
        lines = [f"{plural(self.count, 'line')} cannot be scored:"]
        lines += [f"{self._places(one, short=True)}: {one.what}" for one in reasons]
        if len(reasons) > _REASONS:
            lines[_REASONS + 1 :] = [f"and {len(reasons) - _REASONS} other reasons"]
        return lines

    def _places(self, reason: _Reason, *, short: bool = False) -> str:
        head = f"{self._path}:"
        inside = all(place.startswith(head) for place in reason.places)
        names = [place.removeprefix(head) if inside else place for place in reason.places]
        more = ", ..." if reason.count > len(names) else ""
        listed = (", " if short or not inside else ",").join(names) + more
        if short:
            return f"{plural(reason.count, 'line')} ({listed})"
        return f"{head}{listed}" if inside else listed


def answer_rows(path: Path, expected: str) -> Iterator[Line]:
    """Yield the rows of a file that another program wrote.

    Raises:
        PredictionError: the file cannot be opened.
    """
    try:
        for line in read_rows(path):
            if line.alone and line.row is BROKEN:
                with open_text(path, STREAMED) as file:
                    if not any(text.strip() for text in lines(file)):
                        return  # an empty file
            yield line
    except DataError as error:
        raise PredictionError(
            error.what, where=error.where, expected=expected, remedy=error.remedy
        ) from None
    except OSError as error:
        raise open_error(path, error, expected) from None


_FAULTS: Final = (
    ("Unterminated string", "it ends inside a text, as where a program was stopped"),
    ("in double quotes", "it looks like Python's own form: write it with json.dumps"),
    ("Extra data", "it holds more than one object"),
    ("column 1: Expecting value", "it is plain text"),
)
"""Messages of JSON parsers, and their usual causes."""


def row_of(line: Line, expected: str) -> Mapping[str, Any]:
    """Return the object of a row.

    Raises:
        PredictionError: it is none.
    """
    if line.row is BROKEN:
        what = line.fault or "it is no JSON"
        words = next((words for fault, words in _FAULTS if fault in what), "")
        what = f"{what}: {words}" if words else what
        raise PredictionError(what, where=line.where, expected=expected, remedy=CORRECT)
    if not isinstance(line.row, dict):
        raise PredictionError(
            f"the line is {kind_of(line.row)}, not an object",
            where=line.where,
            expected=expected,
            remedy=CORRECT,
        )
    return line.row


def sift(lines: Iterable[Line], read: Callable[[Line], Any], bad: BadLines) -> Iterator[Any]:
    """Yield what `read` makes of each line; note those for which it raises PredictionError."""
    for line in lines:
        try:
            found = read(line)
        except PredictionError as error:
            bad.add(error)
        else:
            yield found


def kind_of(value: Any) -> str:
    """Return the words for the type of a JSON value.

    Examples:
        >>> kind_of([1]), kind_of({}), kind_of(2.5), kind_of(True)
        ('a list', 'an object', 'a number', 'true or false')
    """
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "null"
    if is_number(value):
        return "a number"
    names: Mapping[type, str] = {str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")


def repeated_answer(where: str) -> PredictionError:
    """Return the error for a second answer to a step."""
    return PredictionError(
        "the step is answered twice",
        where=where,
        expected="at most one prediction per step",
        remedy="remove one of the two lines",
    )
