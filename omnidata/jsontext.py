"""JSON in Python's dialect, at msgspec's speed.

msgspec is several times faster than `json` and agrees wherever it succeeds, but refuses NaN,
Infinity, numbers out of range and lone surrogates, which datasets and models write.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, TypeGuard

import msgspec

from omnidata.files import BOM, STREAMED, open_text, read_text


class _Broken:
    def __repr__(self) -> str:
        return "no JSON"


BROKEN: Final = _Broken()
"""What `decode` gives for a text that is not JSON; no JSON value is this object."""

# What Python's dialect takes and msgspec calls malformed; without it a second look is wasted.
_DIALECT = re.compile(r"NaN|Infinity|\\u[dD][89a-fA-F]")
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_decoder = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\n\r]*+")
_PIECE = 1024**2  # bytes that are read at once
_NUMBERS_END = 4  # letters: after so many a number has ended, `1.` and `1e+` have not

MAX_LINE: Final = 64 * 1024**2
"""Bytes of the longest line of data that is decoded."""

AT_ONCE: Final = 8 * 1024**2
"""Bytes of an array of rows that is decoded at once: it takes five times as many."""

_DEEPEST = 64
"""Levels of what is read from a run folder; what omnidata writes has fewer than ten."""

_DEEPEST_OF_DATA = 200
"""Levels of a value of data. Python's own limit depends on the place of the call: what could be
read might not be written again."""

_TRIED = 64
"""Places where an object may begin; a text of opening braces is not read in quadratic time."""


def decode(text: str) -> Any:
    """Decode a text as one JSON value, or return `BROKEN`.

    Raises:
        RecursionError: the value is nested too deeply.

    Examples:
        >>> decode("[1, NaN]"), decode("[1,") is BROKEN
        ([1, nan], True)
    """
    try:
        return _decode(text)
    except (msgspec.ValidationError, UnicodeEncodeError):
        pass  # a number out of range, a lone surrogate
    except msgspec.DecodeError:
        if not _DIALECT.search(text):
            return BROKEN
    try:
        return json.loads(text)
    except ValueError:
        return BROKEN


def is_shallow(text: bytes, *values: Any, deepest: int = _DEEPEST) -> bool:
    """Return whether values are nested so little that every walk over them succeeds.

    Args:
        text: the JSON text that they stand in; one with few brackets is not looked at twice.
        values: the values.
        deepest: levels that they may have.

    Examples:
        >>> deep = "[" * 99 + "]" * 99
        >>> is_shallow(b"[[1]]", [[1]]), is_shallow(deep.encode(), decode(deep))
        (True, False)
    """
    return text.count(b"[") + text.count(b"{") <= deepest or _are_shallow(values, deepest)


def _are_shallow(values: Iterable[Any], deepest: int) -> bool:
    level = [value for value in values if isinstance(value, list | dict)]
    for _ in range(deepest):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for items in inner for each in items if isinstance(each, list | dict)]
        if not level:
            return True
    return False


def decode_utf8(text: bytes) -> Any:
    """Decode UTF-8 bytes as JSON; return `BROKEN` if they are none or have more than 200 levels.

    Examples:
        >>> decode_utf8(b"[1, 2]"), decode_utf8(b"[" * 201 + b"]" * 201) is BROKEN
        ([1, 2], True)
    """
    try:
        value = decode(text.decode("utf-8"))
    except (UnicodeDecodeError, RecursionError):
        return BROKEN
    return value if is_shallow(text, value, deepest=_DEEPEST_OF_DATA) else BROKEN


def json_file(path: Path, limit: int) -> Any:
    """Read a file as one JSON value, or return `BROKEN` (see `decode_utf8`).

    Args:
        path: of the file.
        limit: bytes that it may have.

    Raises:
        OSError: the file cannot be read.
    """
    return decode_utf8(read_text(path, limit))


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield every line of a file and its place; `BROKEN` for one that is no JSON or too long.

    Blank lines are passed over.

    Raises:
        OSError: the file cannot be read.
    """
    with open_text(path, STREAMED) as file:
        for number, text in text_lines(file):
            yield f"{path}:{number}", BROKEN if len(text) > MAX_LINE else decode_utf8(text)


def text_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield every non-blank line and its number from 1; of one beyond `MAX_LINE` its beginning.

    Args:
        file: open to read bytes.
    """
    number = 0
    while text := file.readline(MAX_LINE + 1):
        number += 1
        rest = text
        while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE + 1)
        if text.strip():
            yield number, text


def fault_of(text: bytes) -> str:
    r"""Return why `decode_utf8` finds no JSON in a text, and how to fix it.

    Examples:
        >>> fault_of(b'{"a": 1,')
        'it is no JSON (column 9: Expecting property name enclosed in double quotes)'
        >>> fault_of('{"a": "é"}'.encode("cp1252"))
        'it is not UTF-8 (byte 0xE9 at 7): save the file as UTF-8'
    """
    if len(text) > MAX_LINE:
        return f"the line has more than {MAX_LINE} bytes"
    if b"\0" in text:
        return "it has zero bytes, as where UTF-16 was appended to UTF-8: save the file as UTF-8"
    try:
        json.loads(text.decode())
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        return f"it is not UTF-8 (byte 0x{byte:02X} at {error.start}): save the file as UTF-8"
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, " if b"\n" in text.strip() else ""
        return f"it is no JSON ({at}column {error.colno}: {error.msg})"
    except ValueError as error:  # a number of thousands of digits
        return f"it is no JSON ({error})"
    except RecursionError:
        pass
    return f"it has more than {_DEEPEST_OF_DATA} levels"


def json_items(file: IO[bytes]) -> Iterator[Any]:
    """Yield the items of a JSON array in a file, without reading it whole.

    They are what `json.loads` makes of them. Texts that are keys of several are one object.

    Raises:
        json.JSONDecodeError: it is no JSON; the items before have been given.
        TypeError: it is no array.
        ValueError: it is not UTF-8, or has a number of thousands of digits.
        RecursionError: an item is nested too deeply.

    Examples:
        >>> from io import BytesIO
        >>> list(json_items(BytesIO(b'[{"a": 1}, 2]')))
        [{'a': 1}, 2]
    """
    text = _Window(file)
    if text.next() != "[":
        text.value()
        text.end()
        raise TypeError("the value is no array")
    text.at += 1
    if text.next() == "]":
        text.at += 1
        text.end()
        return
    while True:
        item = text.value()
        if isinstance(item, dict):
            item = {sys.intern(key): value for key, value in item.items()}
        yield item
        if (mark := text.next()) == "]":
            text.at += 1
            text.end()
            return
        if mark != ",":
            raise text.error("Expecting ',' delimiter")
        text.at += 1
        text.next()


def json_values(file: IO[bytes]) -> Iterator[tuple[int, Any]]:
    r"""Yield consecutive JSON values, each with the line where it begins, from 1.

    `BROKEN` stands for one of more than 200 levels. A part of the file is held at a time.

    Raises:
        json.JSONDecodeError, ValueError, RecursionError: as `json_items`.

    Examples:
        >>> from io import BytesIO
        >>> list(json_values(BytesIO(b'{"a": 1}\n{"a":\n 2}')))
        [(1, {'a': 1}), (2, {'a': 2})]
    """
    text = _Window(file)
    while text.next():
        line, value = text.line, text.value()
        yield line, value if _are_shallow((value,), _DEEPEST_OF_DATA) else BROKEN


def is_json_array(path: Path) -> bool:
    """Return whether a file is an array that `decode_utf8` could read; it is not read whole.

    Raises:
        OSError: the file cannot be read.
    """
    with open_text(path, STREAMED) as file:
        try:
            return all(_are_shallow((item,), _DEEPEST_OF_DATA - 1) for item in json_items(file))
        except (ValueError, TypeError, RecursionError):
            return False


class _Window:
    """A window over the text of a file; text before it is dropped.

    Attributes:
        at: the place from which on nothing was looked at, in what is held.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = self._decode(file.read(len(BOM)).removeprefix(BOM))
        self._lines = 0  # those that are no longer held
        self._ended = False
        self.at = 0

    def _read_on(self) -> None:
        held = len(self._text) - self.at
        piece = self._file.read(max(_PIECE, held))
        self._ended = not piece
        self._lines += self._text.count("\n", 0, self.at)
        self._text = self._text[self.at :] + self._decode(piece, self._ended)
        self.at = 0

    @property
    def line(self) -> int:
        return self._lines + self._text.count("\n", 0, self.at) + 1

    def next(self) -> str:
        while True:
            blanks = _BLANKS.match(self._text, self.at)
            self.at = blanks.end() if blanks else self.at
            if self.at < len(self._text) or self._ended:
                return self._text[self.at : self.at + 1]
            self._read_on()

    def value(self) -> Any:
        while True:
            whole = self._ended or len(self._text) - self.at > MAX_LINE
            try:
                value, end = _decoder.raw_decode(self._text, self.at)
            except json.JSONDecodeError as error:
                if whole:
                    raise self.error(error.msg, error.pos) from None
            except ValueError:
                if whole:
                    raise
            else:
                if whole or end + _NUMBERS_END < len(self._text):
                    self.at = end
                    return value
            self._read_on()

    def end(self) -> None:
        if self.next():
            raise self.error("Extra data")

    def error(self, what: str, at: int | None = None) -> json.JSONDecodeError:
        error = json.JSONDecodeError(what, self._text, self.at if at is None else at)
        error.lineno += self._lines
        return error


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, whatever text surrounds them.

    Raises:
        RecursionError: an object is nested too deeply.

    Examples:
        >>> list(objects('I say: ```json{"a": {"b": 1}}``` {'))
        [{'a': {'b': 1}}, {'b': 1}]
    """
    begin = -1
    for _ in range(_TRIED):
        begin = text.find("{", begin + 1)
        if begin < 0:
            return
        try:
            value, _end = _decoder.raw_decode(text, begin)
        except ValueError:
            continue
        yield value


def encode(value: Any) -> bytes:
    r"""Encode a value as JSON without a newline; lone surrogates are escaped.

    Examples:
        >>> print(encode({"text": chr(0xD800)}).decode())
        {"text": "\ud800"}
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()


def write_lines(
    file: IO[bytes], values: Iterable[Any], *, dumps: Callable[[Any], bytes] = encode
) -> int:
    r"""Write values as JSON Lines.

    Args:
        file: open to write bytes.
        values: one per line.
        dumps: encodes a value, without a line break.

    Returns:
        The number of bytes.

    Examples:
        >>> import io
        >>> file = io.BytesIO()
        >>> write_lines(file, [{"a": 1}, {"a": 2}])
        16
        >>> file.getvalue()
        b'{"a":1}\n{"a":2}\n'
    """
    import jsonlines  # 30 ms, and few commands write lines

    return jsonlines.Writer(file, dumps=dumps).write_all(values)


def compact(value: Any) -> str:
    """Encode a value as JSON without spaces; letters are not escaped.

    Examples:
        >>> compact({"text": "é", "at": [1, 2]})
        '{"text":"é","at":[1,2]}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a JSON value is a number; Python's true and false are not.

    Examples:
        >>> is_number(1.5), is_number(True), is_number("1")
        (True, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_coordinate(value: object) -> TypeGuard[int | float]:
    """Return whether a JSON value is a number that may be a side of a place: at most 1e9 from 0.

    Examples:
        >>> is_coordinate(-0.5), is_coordinate(float("nan")), is_coordinate(True)
        (True, False, False)
    """
    return is_number(value) and abs(value) <= 1e9


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a JSON value is a number without a fraction; true and false are not.

    Examples:
        >>> is_integer(1), is_integer(1.0), is_integer(False)
        (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def as_name(value: object) -> str | None:
    """Return an id or a name as text; whole numbers count, empty texts do not.

    Examples:
        >>> as_name(7.0), as_name("T1"), as_name(""), as_name(None)
        ('7', 'T1', None, None)
    """
    if is_number(value):
        return str(int(value)) if value == value // 1 else None
    return value if isinstance(value, str) and value else None


def whole_number(value: object) -> int | None:
    """Return an int, or a float without fraction (Arrow makes one of an int column with a gap).

    Examples:
        >>> whole_number(3.0), whole_number(3.5), whole_number(True)
        (3, None, None)
    """
    if is_integer(value):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def in_snake_case(value: Any) -> Any:
    """Return a JSON value with all keys in snake case, from camel case as in Google's API.

    Examples:
        >>> in_snake_case({"promptTokenCount": 9})
        {'prompt_token_count': 9}
    """
    if isinstance(value, Mapping):
        return {_in_snake_case(str(name)): in_snake_case(item) for name, item in value.items()}
    return [in_snake_case(item) for item in value] if isinstance(value, list) else value


def _in_snake_case(name: str) -> str:
    return name if name.islower() else re.sub(r"(?=[A-Z])", "_", name).lower()


def hash_of(value: object) -> str:
    """Return SHA-256 of a value's JSON text; prompts are identified by it."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
