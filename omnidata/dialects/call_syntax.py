r"""Calls as agents write them, `click(point='<point>1 2</point>')`: found, read and written.

Reading accepts quotes of either kind, apostrophes that are not escaped, places without quotes and a
missing last bracket. It takes linear time, and nothing is executed.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from omnidata.actions import Box, Point, Region, Space
from omnidata.dialects.base import CannotSayError

_NAME: Final = re.compile(r"(?:[A-Za-z_]\w{0,63}\.){0,3}([A-Za-z_]\w{0,63})\s{0,9}\(")
_KEY: Final = re.compile(r"([A-Za-z_]\w{0,63})\s{0,9}=\s{0,99}")
_GAP: Final = re.compile(r"[\s,]*+")
_BETWEEN: Final = re.compile(r"[\s;,]*+(?:Action ?[:：]\s*+)?")
_NOISE: Final = re.compile(
    r"(?:[\s`'\".。;,)\]}*]|</?[A-Za-z_:]{1,24}>|<\|\w{1,24}\|>|\[EOS\])*+\Z"
)
"""Meaningless text behind the last call."""
_CLOSERS: Final = re.compile(
    r"""(?<!\\)(\\*+)(['"])(?=\s*+(?:"""
    r"""(\)(?!\2|\))|\)++[^\S\n]*+(?:\Z|\n)|,\s*+[A-Za-z_]\w*+\s*+=)|\)|,|\Z))"""
)
"""A quote that may end an argument; its third group matches if it certainly does."""
_BARE: Final = 300
"""Characters of the longest value without quotes."""
_ARGUMENTS: Final = 16
_CALLS: Final = 128
_TRIED: Final = 32
"""Places of the first and of the last of those where calls may begin that are tried."""
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        name: of the function, without what is before the last dot.
        arguments: values by their names, in order; "#0" is the first that has no name. Quotes and
            escapes are undone.
        begin, end: where it stands in the text.
        cut: the name of the argument in which the text ends; None if the call has all its ends.
    """

    name: str
    arguments: Mapping[str, str]
    begin: int
    end: int
    cut: str | None = None


class Calls:
    """The calls of a text.

    Examples:
        >>> found = Calls("click(start_box='(1,2)') type(content='it's')")
        >>> [call.arguments for call in found.chain(0)]
        [{'start_box': '(1,2)'}, {'content': "it's"}]
    """

    def __init__(self, text: str) -> None:
        """Find where quoted arguments may end, once for all calls."""
        self.text = text
        self._plain: dict[str, list[int]] = {"'": [], '"': []}
        self._perhaps: dict[str, list[int]] = {"'": [], '"': []}
        for found in _CLOSERS.finditer(text):
            plainly = found[3] is not None and len(found[1]) % 2 == 0
            (self._plain if plainly else self._perhaps)[found[2]].append(found.end() - 1)

    def at(self, begin: int) -> Call | None:
        """Return the call that begins there; None if there is none."""
        head = _NAME.match(self.text, begin)
        if not head:
            return None
        position = head.end()
        arguments: dict[str, str] = {}
        for _ in range(_ARGUMENTS):
            gap = _GAP.match(self.text, position)
            assert gap
            position = gap.end()
            if self.text.startswith(")", position):
                return Call(head[1], arguments, begin, position + 1)
            if position == len(self.text):
                return Call(head[1], arguments, begin, position)
            key = _KEY.match(self.text, position)
            name = key[1] if key else f"#{len(arguments)}"
            value, position, whole = self._value(key.end() if key else position)
            arguments[name] = value
            if not whole:
                return Call(head[1], arguments, begin, position, name)
        return None

    def _value(self, begin: int) -> tuple[str, int, bool]:
        quote = self.text[begin : begin + 1]
        if quote not in self._plain:
            depth = 0
            for position in range(begin, min(len(self.text), begin + _BARE)):
                letter = self.text[position]
                if not depth and letter in ",)\n":
                    return self.text[begin:position].strip(), position, True
                depth += (letter in _OPEN) - (letter in _CLOSE)
            end = min(len(self.text), begin + _BARE)
            return self.text[begin:end].strip(), end, False
        for ends in (self._plain[quote], self._perhaps[quote]):
            index = bisect_left(ends, begin + 1)
            if index < len(ends):
                return unescape(self.text[begin + 1 : ends[index]]), ends[index] + 1, True
        return unescape(self.text[begin + 1 :]), len(self.text), False

    def chain(self, begin: int) -> tuple[Call, ...]:
        """Return the calls that stand one behind the other from there on, up to 128."""
        found: list[Call] = []
        while len(found) < _CALLS and (call := self.at(begin)):
            found.append(call)
            gap = _BETWEEN.match(self.text, call.end)
            assert gap
            begin = gap.end()
        return tuple(found)

    def is_last(self, call: Call) -> bool:
        """Return whether only meaningless text follows a call."""
        return bool(_NOISE.match(self.text, call.end))

    def best(self, begins: Sequence[int]) -> tuple[Call, ...]:
        """Return the first chain from one of some places that ends the text, else the first.

        A call that a thought or a typed text quotes does not end the text.
        """
        if len(begins) > 2 * _TRIED:
            begins = [*begins[:_TRIED], *begins[-_TRIED:]]
        first: tuple[Call, ...] = ()
        for begin in begins:
            calls = self.chain(begin)
            if calls and self.is_last(calls[-1]):
                return calls
            first = first or calls
        return first


_ESCAPE: Final = re.compile(r"\\(?:([\\'\"ntr])|u([0-9a-fA-F]{4}))")
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r"}


def unescape(text: str) -> str:
    """Return the text that a quoted string means; an unknown escape stays as it is."""
    if "\\" not in text:
        return text
    found = _ESCAPE.sub(lambda e: chr(int(e[2], 16)) if e[2] else _LETTERS.get(e[1], e[1]), text)
    # Two halves of a letter beyond the first plane are one; a half on its own is a question mark.
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_WRITTEN: Final = str.maketrans(
    {"\\": r"\\", "'": r"\'", '"': r"\"", "\n": r"\n", "\t": r"\t", "\r": r"\r"}
)


def quote(text: str) -> str:
    """Return a text as a string between single quotes, which `Calls` reads as that text again."""
    return f"'{text.translate(_WRITTEN)}'"


def number_text(value: float) -> str:
    """Return a number with up to 20 decimals and no exponent.

    Examples:
        >>> number_text(500.0), number_text(0.00001), number_text(12.5)
        ('500', '0.00001', '12.5')
    """
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    return format(Decimal(repr(round(value, 20))), "f")


_MARKS: Final = re.compile(r"<\|box_(?:start|end)\|>|</?(?:point|bbox|box|coordinate)>|[()\[\]{}]")
_NUMBER: Final = re.compile(r"[-+]?(?:\d{1,15}(?:\.\d{0,40})?|\.\d{1,40})\Z", re.ASCII)
_SEPARATORS: Final = re.compile(r"[\s,;，]+")
_PLACE: Final = 400
"""Characters of the longest text that is a place."""


def numbers_of(text: str) -> tuple[float, ...] | None:
    """Return the numbers of a place in any brackets and marks; None for other texts.

    Whole numbers stay whole.

    Examples:
        >>> numbers_of("<|box_start|>(495,30)<|box_end|>"), numbers_of("<point>1.5 2</point>")
        ((495, 30), (1.5, 2))
        >>> numbers_of("[[1, 2], [3, 4]]"), numbers_of("the button")
        ((1, 2, 3, 4), None)
    """
    if len(text) > _PLACE:
        return None
    words = _SEPARATORS.split(_MARKS.sub(" ", text).strip(" \n\t,;"))
    if words == [""]:
        return ()
    if not all(_NUMBER.match(word) for word in words):
        return None
    return tuple(float(word) if "." in word else int(word) for word in words)


def region_of(numbers: Sequence[float], space: Space) -> Region:
    """Return the point of two numbers, or the box of four: two corners in any order."""
    if len(numbers) == 2:
        return Point(numbers[0], numbers[1], space)
    (left, right), (top, bottom) = sorted(numbers[::2]), sorted(numbers[1::2])
    return Box(left, top, right, bottom, space)


# Python, which is parsed and never run.

UNPARSED: Final = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
"""Errors of Python's parser."""


def parse_python(text: str) -> ast.Module:
    """Return the syntax tree of a text, without warnings of escapes such as a backslash and d.

    Raises:
        SyntaxError: the text is no Python; see `UNPARSED`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


# Calls in tags: `<function=click><parameter=point>...</parameter></function>`.

FUNCTION: Final = re.compile(r"<function=\s{0,9}['\"]?([A-Za-z_]\w{0,63})['\"]?\s{0,9}>")
_PARAMETER_END: Final = "</parameter>"
_PARAMETER: Final = re.compile(r"\s*+<parameter=\s{0,9}['\"]?([A-Za-z_]\w{0,63})['\"]?\s{0,9}>")
_FUNCTION_END: Final = re.compile(r"\s*+</function>")


def after_blanks(text: str, position: int) -> int:
    """Return where the next character that is no blank stands, from a position on."""
    while text[position : position + 1].isspace():
        position += 1
    return position


def calls_in_tags(text: str, begin: int) -> Iterator[Call]:
    """Yield the calls in tags that follow one another from a position on."""
    while function := FUNCTION.match(text, after_blanks(text, begin)):
        call = _call_in_tags(text, function)
        yield call
        begin = call.end


def _call_in_tags(text: str, function: re.Match[str]) -> Call:
    arguments: dict[str, str] = {}
    position = function.end()
    while (parameter := _PARAMETER.match(text, position)) is not None:
        end = text.find(_PARAMETER_END, parameter.end())
        if end < 0:
            arguments[parameter[1]] = text[parameter.end() :]
            return Call(function[1], arguments, function.start(), len(text), parameter[1])
        value = text[parameter.end() : end]
        if len(value) > 1 and value[0] == value[-1] == "\n":
            value = value[1:-1]  # a value of several lines stands on lines of its own
        arguments[parameter[1]] = value
        position = end + len(_PARAMETER_END)
    closed = _FUNCTION_END.match(text, position)
    return Call(function[1], arguments, function.start(), closed.end() if closed else position)


def tags_of_call(name: str, arguments: Mapping[str, str]) -> str:
    """Return a call in tags, a line each, which `calls_in_tags` reads again.

    Raises:
        CannotSayError: an argument contains the end of one.
    """
    lines = [f"<function={name}>"]
    for key, value in arguments.items():
        if _PARAMETER_END in value:
            raise CannotSayError(f"a text cannot have {_PARAMETER_END} in it")
        if value[:1] == "\n" == value[-1:]:
            value = f"\n{value}\n"
        lines.append(f"<parameter={key}>{value}{_PARAMETER_END}")
    return "\n".join((*lines, "</function>"))
