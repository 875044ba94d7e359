"""Calls of tools in a text: JSON objects with a name and arguments, in tags or bare.

What is read is JSON5 (https://spec.json5.org), which the released readers of this form take, in
time linear in the length of the text. The lenient form takes what models write beside it: the
constants of Python, words without quotes, parentheses for brackets, line ends in strings, and an
object whose end is missing, as far as its members are whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, NoReturn

from omnidata.jsontext import BROKEN, decode

OPEN: Final = "<tool_call>"
CLOSE: Final = "</tool_call>"
MOST: Final = 64
"""Calls that are read of one answer."""
_TRIED: Final = 1024
"""Places where an object may begin that are looked at; what has more of them is hostile."""
_DEEPEST: Final = 32
"""Levels of an object; calls have three."""
_LONGEST: Final = 64
"""Characters of a number; what is longer is no place on a screen."""

# Possessive throughout: what cannot backtrack is read once.
_BLANKS = re.compile("[\t\v\f \xa0\ufeff\n\r\u2028\u2029\u1680\u2000-\u200a\u202f\u205f\u3000]++")
_LINE_COMMENT = re.compile("[^\n\r\u2028\u2029]*+")
_STRINGS: Final = {
    '"': re.compile(r'"((?:[^"\\\n\r]++|\\(?:\r\n|[\s\S]))*+)"'),
    "'": re.compile(r"'((?:[^'\\\n\r]++|\\(?:\r\n|[\s\S]))*+)'"),
}
_LOOSE_STRINGS: Final = {
    '"': re.compile(r'"((?:[^"\\]++|\\[\s\S])*+)"'),
    "'": re.compile(r"'((?:[^'\\]++|\\[\s\S])*+)'"),
}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|[\s\S]))")
_WORD = re.compile(r"[^\W\d][\w$]*+|\$[\w$]*+")
_NUMBER = re.compile(
    r"([-+]?+)(?:(0[xX][0-9a-fA-F]++)|(Infinity|NaN)"
    r"|((?:(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+))(?![\w$.])"
)
_SINGLE: Final = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0",
    "\n": "", "\r": "", "\r\n": "", "\u2028": "", "\u2029": "",
}  # fmt: skip
_CONSTANTS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}
_OF_PYTHON: Final[Mapping[str, bool | None]] = {"True": True, "False": False, "None": None}
_OBJECT = re.compile(r"\{(?=\s*+(?:[\"'}$]|[^\W\d]|/[/*]))")
"""The begin of what may be an object; most of a hostile text is passed over here."""
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>")
_LONG_NUMBER = re.compile(f"[-+.0-9eE]{{{_LONGEST + 1}}}")
_decode_json = json.JSONDecoder().raw_decode


class Call(NamedTuple):
    """A call of a tool; the name is None where the arguments stand alone."""

    name: str | None
    arguments: Mapping[str, Any]


class Calls(NamedTuple):
    """The calls in a text, and the texts before and behind them, without tags."""

    calls: tuple[Call, ...]
    before: str
    after: str


class _BrokenError(Exception):
    pass


class _Parser:
    """A recursive JSON5 parser that reads each character a bounded number of times."""

    def __init__(self, text: str, *, lenient: bool) -> None:
        self.text = text
        self.pos = 0
        self.lenient = lenient
        self._open_comments = False

    def fail(self) -> NoReturn:
        raise _BrokenError

    def blanks(self) -> str:
        text = self.text
        while True:
            if found := _BLANKS.match(text, self.pos):
                self.pos = found.end()
            if text.startswith("//", self.pos):
                found = _LINE_COMMENT.match(text, self.pos)
                assert found
                self.pos = found.end()
            elif text.startswith("/*", self.pos) and not self._open_comments:
                end = text.find("*/", self.pos + 2)
                if end < 0:
                    self._open_comments = True  # no other one has an end either
                    self.fail()
                self.pos = end + 2
            else:
                return text[self.pos : self.pos + 1]

    def value(self, depth: int) -> Any:
        sign = self.blanks()
        if sign == "{":
            members: dict[str, Any] = {}
            self.members(members, depth)
            return members
        if sign == "[" or (sign == "(" and self.lenient):
            return self.items("]" if sign == "[" else ")", depth)
        if sign in _STRINGS:
            return self.string(sign)
        if found := _NUMBER.match(self.text, self.pos):
            return self.number(found)
        return self.constant()

    def string(self, sign: str) -> str:
        found = (_LOOSE_STRINGS if self.lenient else _STRINGS)[sign].match(self.text, self.pos)
        if not found:
            self.fail()
        body = found[1]
        if "\\" in body:
            body = _ESCAPE.sub(self.unescape, body)
            if _SURROGATE.search(body):  # two escapes may be one character
                body = body.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        self.pos = found.end()
        return body

    def unescape(self, found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code:
            return chr(int(code, 16))
        sign = found[3]
        after = found.string[found.end() : found.end() + 1]
        wrong = sign in "123456789xu" or (sign == "0" and after.isdigit())
        if wrong and not self.lenient:
            self.fail()
        return _SINGLE.get(sign, sign)

    def number(self, found: re.Match[str]) -> int | float:
        if found.end() - found.start() > _LONGEST:
            self.fail()
        self.pos = found.end()
        sign, hexadecimal, word, decimal = found.groups()
        if hexadecimal:
            size: int | float = int(hexadecimal, 16)
        elif word:
            size = float(word)
        elif decimal.isdigit():
            size = int(decimal)
        else:
            size = float(decimal)
        return -size if sign == "-" else size

    def constant(self) -> Any:
        found = _WORD.match(self.text, self.pos)
        if not found:
            self.fail()
        word = found[0]
        if word in _CONSTANTS:
            self.pos = found.end()
            return _CONSTANTS[word]
        if not self.lenient:
            self.fail()
        self.pos = found.end()
        return _OF_PYTHON.get(word, word)

    def items(self, closing: str, depth: int) -> list[Any]:
        if depth >= _DEEPEST:
            self.fail()
        self.pos += 1
        found: list[Any] = []
        while self.blanks() != closing:
            found.append(self.value(depth + 1))
            if self.blanks() == ",":
                self.pos += 1
            elif self.blanks() != closing:
                self.fail()
        self.pos += 1
        return found

    def members(self, found: dict[str, Any], depth: int) -> None:
        """Read an object into `found`, which keeps the members before a failure."""
        if depth >= _DEEPEST:
            self.fail()
        self.pos += 1
        while (sign := self.blanks()) != "}":
            if sign in _STRINGS:
                key = self.string(sign)
            elif word := _WORD.match(self.text, self.pos):
                key = word[0]
                self.pos = word.end()
            elif self.lenient and self.text.startswith(CLOSE, self.pos):
                return  # the end of the call is the end of what it opened
            else:
                self.fail()
            if self.blanks() != ":":
                self.fail()
            self.pos += 1
            found[key] = self.value(depth + 1)
            sign = self.blanks()
            if sign == ",":
                self.pos += 1
            elif sign != "}" and not (self.lenient and self.text.startswith(CLOSE, self.pos)):
                self.fail()
        self.pos += 1


_SURROGATE = re.compile("[\ud800-\udfff]")


def _is_plain(text: str) -> bool:
    """Return whether Python's decoder, which is faster, reads all JSON in it as `_Parser` does."""
    shallow = text.count("{") + text.count("[") <= _DEEPEST
    return shallow and "\\" not in text and not _LONG_NUMBER.search(text)


def decode_nested(text: str) -> Any:
    """Return the JSON value of the whole text, or `BROKEN`, also if it is nested too deeply."""
    try:
        return decode(text)
    except RecursionError:
        return BROKEN


def decode_json5(text: str) -> Any:
    """Return the JSON5 value of the whole text, or `BROKEN`.

    Examples:
        >>> decode_json5("{action: 'click', coordinate: [+1, .5,],}")
        {'action': 'click', 'coordinate': [1, 0.5]}
        >>> decode_json5("{action: click}") is BROKEN
        True
    """
    if _is_plain(text):
        with suppress(ValueError):
            return json.loads(text)
    parser = _Parser(text, lenient=False)
    try:
        value = parser.value(0)
        return BROKEN if parser.blanks() else value
    except _BrokenError:
        return BROKEN


def _loose_objects(text: str, begin: int = 0) -> Iterator[tuple[dict[str, Any], bool, int, int]]:
    """Yield the objects of a text: whole members, whether the object is whole, begin and end."""
    parser, is_plain = _Parser(text, lenient=True), _is_plain(text)
    for _ in range(_TRIED):
        if not (opening := _OBJECT.search(text, begin)):
            return
        begin = parser.pos = opening.start()
        found: dict[str, Any] = {}
        whole = False
        if is_plain:
            with suppress(ValueError):
                found, parser.pos = _decode_json(text, begin)
                whole = True
        if not whole:
            with suppress(_BrokenError):
                parser.members(found, 0)
                whole = True
        yield found, whole, begin, parser.pos
        # A new object begins where the last one failed: nothing is read a second time.
        begin = max(parser.pos, begin + 1)


def find_calls(text: str) -> Calls:
    r"""Return the calls of tools in a text, in tags or bare.

    What is thought in tags comes after nothing: its calls count only where no other ones are.

    Examples:
        >>> find_calls('So.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>').calls
        (Call(name='f', arguments={'a': 1}),)
        >>> find_calls("{'action': 'wait', 'time': 2}").calls
        (Call(name=None, arguments={'action': 'wait', 'time': 2}),)
    """
    if ends := _THOUGHT_ENDS.search(text):
        found = _find(text, ends.end())
        if found.calls:
            return found
    return _find(text, 0)


def _find(text: str, begin: int) -> Calls:
    tag = text.find(OPEN, begin)
    calls: list[Call] = []
    first = last = len(text)
    for value, whole, start, end in _loose_objects(text, max(tag, begin)):
        if not whole:  # what it calls may be whole, but no argument may be missing
            value = {key: value[key] for key in ("name", "arguments") if key in value}
        if not (ours := list(_calls_of(value))):
            continue
        if len(calls) + len(ours) > MOST:
            break
        first = first if calls else start
        calls += ours
        last = end
    if not calls:
        return Calls((), text, "")
    return Calls(tuple(calls), text[: tag if begin <= tag < first else first], text[last:])


def _calls_of(value: Any) -> Iterator[Call]:
    if isinstance(value, list):
        for each in value:
            yield from _calls_of(each)
    if not isinstance(value, dict):
        return
    name, arguments = value.get("name"), value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = next((found for found, whole, *_ in _loose_objects(arguments) if whole), None)
    if isinstance(arguments, dict):
        yield Call(name if isinstance(name, str) else None, arguments)
    elif isinstance(value.get("action"), str):
        yield Call(None, value)
    else:
        for key in ("function", "tool_calls"):
            yield from _calls_of(value.get(key))
