"""Pickles of plain data, read without running anything in them.

A pickle is a program: it imports and calls what its author named. This reader takes it for data. It
goes through the operations itself, imports nothing and calls nothing: it knows the names that dates
and NumPy's arrays and numbers need, and refuses every other one by its name. Arrays and long bytes
are passed over as they come, so that a checkpoint full of screenshots takes no memory.
"""

from __future__ import annotations

import gzip
import pickletools
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from math import prod
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from omnidata.files import ANY, open_file

MOST_BYTES: Final = 2 * 1024**3
"""Of an unpacked pickle: hundreds of screenshots."""
_MOST_AT_ONCE: Final = 64 * 1024**2
"""Of one array or text."""
MOST_TEXT: Final = 64 * 1024**2
"""Of all texts and kept bytes together, in letters and bytes."""
MOST_OPERATIONS: Final = 4_000_000
_KEPT: Final = 4096
"""Longer bytes are passed over: they are pixels."""
_MOST_BITS: Final = 4096  # of a whole number: Python writes none of many more in digits
_STEP: Final = 1024**2
_DEEPEST: Final = 64  # dimensions, as NumPy's
_GZIP: Final = b"\x1f\x8b"

_DATE: Final = "datetime.datetime"
_ENCODE: Final = "_codecs.encode"
"""How protocols 0 to 2 write bytes, those of dates and arrays too."""
_ARRAY: Final = "numpy.ndarray"
_DTYPE: Final = "numpy.dtype"
_NUMPY: Final[Mapping[str, str]] = {
    f"numpy.{core}.{name}": name.partition(".")[2]
    for core in ("core", "_core")  # before and since 2.0
    for name in ("multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer")
}
_NAMES: Final = frozenset({_DATE, _ENCODE, _ARRAY, _DTYPE, *_NUMPY})
_CODE: Final = re.compile(r"[?biufcSUmM][0-9]{0,9}", re.ASCII)
"""What arrays are of: numbers, texts, times. Objects are none of these."""


@dataclass(slots=True)
class Passed:
    """Bytes or an array that was passed over; `size` is in bytes."""

    size: int


@dataclass(slots=True)
class Record:
    """An object of a class that is read as its attributes; the class is not imported."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)


def read_pickle(path: Path, *, records: Collection[str] = ()) -> Any:
    """Read a pickle, gzipped or not, as data; nothing in it is imported or called.

    Args:
        path: of the file.
        records: names of classes whose objects are read as `Record`s.

    Returns:
        Numbers, texts, bytes, dates, lists, tuples, and dicts of their entries with texts for keys.
        A set is a list, a number of NumPy's one of Python's. Arrays, and bytes longer than 4 KiB,
        are `Passed`.

    Raises:
        ValueError: it is broken, larger than `MOST_BYTES`, or names anything else; says the name.
        OSError: the file cannot be read.
    """
    with _open_unpacked(path) as file, warnings.catch_warnings():
        # A text of protocol 0 with an unknown escape is read as it is, with a warning of Python's.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return _Machine(records).run(pickletools.genops(_Bounded(file)))  # type: ignore[arg-type]  # reads alone
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"it is broken: {error}") from None
        except (IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"it is no pickle of data: {type(error).__name__}") from None


def pickle_head(path: Path, size: int) -> bytes:
    """Return the first bytes of an unpacked pickle; empty if it cannot be unpacked.

    Raises:
        OSError: the file cannot be read.
    """
    with _open_unpacked(path) as file:
        try:
            return file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return b""


@contextmanager
def _open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    with open_file(path, ANY) as file:
        if file.peek(2)[:2] != _GZIP:
            yield file
            return
        with gzip.open(file) as inner:
            yield inner  # type: ignore[misc]  # it reads as a file does


class _Bounded:
    """A file that is read up to the size limit of a pickle, whatever lengths the pickle states."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = MOST_BYTES

    def read(self, size: int) -> bytes:
        if size > _MOST_AT_ONCE:
            raise ValueError(f"it is too large: one value of {size:,} bytes")
        parts = []
        while size and (part := self._file.read(min(size, _STEP))):
            parts.append(part)
            size -= len(part)
            self._take(len(part))
        return b"".join(parts)

    def readline(self) -> bytes:
        line = self._file.readline(_MOST_AT_ONCE)
        self._take(len(line))
        return line

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ValueError(f"it is too large: more than {MOST_BYTES:,} bytes unpacked")


@dataclass(frozen=True, slots=True)
class _Name:
    path: str


@dataclass(slots=True)
class _DType:
    code: str
    order: str = "|"

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.code if self.order == "|" else self.order + self.code)


class _Machine:
    """The stack, the marks and the memo that the operations of a pickle work on."""

    def __init__(self, records: Collection[str]) -> None:
        self._records = records
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._text = 0

    def run(self, operations: Iterator[tuple[Any, Any, int | None]]) -> Any:
        for count, (operation, argument, _) in enumerate(operations):
            if count > MOST_OPERATIONS:
                raise ValueError(f"it is too large: more than {MOST_OPERATIONS:,} operations")
            name = operation.name
            if name == "STOP":
                return self._stack.pop()
            if name in _IGNORED:
                continue
            if name in _LITERALS:
                self._stack.append(self._literal(argument))
            elif name in _CONSTANTS:
                self._stack.append(_CONSTANTS[name]())
            elif (act := _ACTS.get(name)) is not None:
                act(self, argument)
            else:
                named = (
                    f" of {str(argument).replace(' ', '.'):.200}" if argument is not None else ""
                )
                raise ValueError(f"it has {name}{named}, which is no data")
        raise ValueError("it is broken: it has no end")

    def _literal(self, value: Any) -> Any:
        if isinstance(value, bytes | bytearray):
            if len(value) > _KEPT:
                return Passed(len(value))
            value = bytes(value)
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise ValueError(f"it has a number of {value.bit_length():,} bits, which is no data")
        if isinstance(value, str | bytes | int):
            self._text += value.bit_length() // 8 if isinstance(value, int) else len(value)
            if self._text > MOST_TEXT:
                raise ValueError(f"it is too large: more than {MOST_TEXT:,} letters")
        return value

    def _pop_mark(self) -> list[Any]:
        """Return what was pushed since the last mark; the stack is again that of before."""
        items, self._stack = self._stack, self._marks.pop()
        return items

    def mark(self, _: Any) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def pop(self, _: Any) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

    def pop_mark(self, _: Any) -> None:
        self._pop_mark()

    def dup(self, _: Any) -> None:
        self._stack.append(self._stack[-1])

    def make_list(self, _: Any) -> None:
        items = self._pop_mark()
        self._stack.append(items)

    def make_tuple(self, _: Any) -> None:
        items = self._pop_mark()
        self._stack.append(tuple(items))

    def make_dict(self, _: Any) -> None:
        items = self._pop_mark()
        self._stack.append(_entries(items))

    def append(self, _: Any) -> None:
        value = self._stack.pop()
        self._extend([value])

    def appends(self, _: Any) -> None:
        items = self._pop_mark()
        self._extend(items)

    def _extend(self, items: list[Any]) -> None:
        held = self._stack[-1]
        if not isinstance(held, list):
            raise TypeError
        held += items

    def set_item(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._update([key, value])

    def set_items(self, _: Any) -> None:
        items = self._pop_mark()
        self._update(items)

    def _update(self, items: list[Any]) -> None:
        held = self._stack[-1]
        if not isinstance(held, dict):
            raise TypeError
        held |= _entries(items)

    def put(self, place: Any) -> None:
        self._memo[len(self._memo) if place is None else place] = self._stack[-1]

    def get(self, place: Any) -> None:
        self._stack.append(self._memo[place])

    def push_name(self, path: Any) -> None:
        if path is None:
            name, module = self._stack.pop(), self._stack.pop()
            path = f"{module} {name}"
        path = path.replace(" ", ".")
        if path not in _NAMES and path not in self._records:
            raise ValueError(f"it names {path:.200}, which is not read")
        self._stack.append(_Name(path))

    def call(self, _: Any) -> None:
        given, name = self._stack.pop(), self._stack.pop()
        path = name.path if isinstance(name, _Name) else type(name).__name__
        if not isinstance(given, tuple):
            raise TypeError
        self._stack.append(_make_value(path, given))

    def create(self, _: Any) -> None:
        given, name = self._stack.pop(), self._stack.pop()
        if not isinstance(name, _Name) or name.path not in self._records or given != ():
            raise ValueError(f"it makes an object of {getattr(name, 'path', 'no class')}")
        self._stack.append(Record(name.path))

    def build(self, _: Any) -> None:
        state = self._stack.pop()
        held = self._stack[-1]
        if isinstance(held, Record):
            held.values = state if isinstance(state, dict) else {}
        elif isinstance(held, _DType):
            held.order = state[1] if state[1] in ("<", ">", "|", "=") else "|"
        elif isinstance(held, Passed):
            _, shape, dtype, _, content = state
            held.size = _check_array(content, dtype, shape).size
        else:
            raise ValueError(f"it sets the state of a {type(held).__name__}")


_IGNORED: Final = frozenset({"PROTO", "FRAME"})
_LITERALS: Final = frozenset(
    {"INT", "LONG", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
     "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
     "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"}
)  # fmt: skip
_CONSTANTS: Final[Mapping[str, Callable[[], Any]]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_SET": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
}


def _tuple_of(size: int) -> Callable[[_Machine, Any], None]:
    def act(machine: _Machine, _: Any) -> None:
        stack = machine._stack
        if len(stack) < size:
            raise IndexError
        stack[-size:] = [tuple(stack[-size:])]

    return act


_ACTS: Final[Mapping[str, Callable[[_Machine, Any], None]]] = {
    "MARK": _Machine.mark,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    "DUP": _Machine.dup,
    "LIST": _Machine.make_list,
    "FROZENSET": _Machine.make_list,
    "TUPLE": _Machine.make_tuple,
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "DICT": _Machine.make_dict,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "ADDITEMS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
    **dict.fromkeys(("GLOBAL", "STACK_GLOBAL"), _Machine.push_name),
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.create,
    "BUILD": _Machine.build,
}


def _entries(items: list[Any]) -> dict[str, Any]:
    pairs = zip(items[::2], items[1::2], strict=True)
    return {key: value for key, value in pairs if isinstance(key, str)}


def _make_value(path: str, given: tuple[Any, ...]) -> Any:
    """Return what a known name makes of its arguments, without calling it."""
    if path == _DATE and len(given) == 1:
        return datetime(*given)  # type: ignore[call-arg]  # noqa: DTZ001  # ten bytes
    if path == _ENCODE and given[1:] == ("latin1",) and isinstance(given[0], str):
        text = given[0]
        return Passed(len(text)) if len(text) > _KEPT else text.encode("latin-1", "replace")
    if path == _DTYPE:
        return _dtype(given[0])
    known = _NUMPY.get(path)
    if known == "scalar" and len(given) == 2:
        return _number(*given)
    if known == "_reconstruct" and given and given[0] == _Name(_ARRAY):
        return Passed(0)  # its content comes with its state
    if known == "_frombuffer" and len(given) == 4:
        return _check_array(*given[:3])
    raise ValueError(f"it calls {path:.200} with {len(given)} arguments, which is no data")


def _dtype(code: Any) -> _DType:
    if not isinstance(code, str):
        raise TypeError
    if not _CODE.fullmatch(code):
        kind = "objects" if code.startswith("O") else "no numbers"
        raise ValueError(f"it has an array of {kind} (numpy.dtype {code!r:.40}), which is not read")
    return _DType(code)


def _number(dtype: Any, content: Any) -> Any:
    if not isinstance(dtype, _DType) or not isinstance(content, bytes):
        raise TypeError
    kind = dtype.numpy
    if len(content) != kind.itemsize:
        raise ValueError(f"it has a number of {len(content)} bytes for {kind.itemsize}")
    if kind.kind in "mM":
        return Passed(len(content))
    return np.frombuffer(content, kind)[0].item() if content else ""


def _check_array(content: Any, dtype: Any, shape: Any) -> Passed:
    size = content.size if isinstance(content, Passed) else len(content)
    if not isinstance(dtype, _DType) or not isinstance(shape, tuple) or len(shape) > _DEEPEST:
        raise TypeError
    if not all(isinstance(n, int) and 0 <= n < 1 << 62 for n in shape):
        raise TypeError
    if isinstance(content, list) or size != prod(shape) * dtype.numpy.itemsize:
        raise ValueError(f"it has {size:,} bytes for an array of {'x'.join(map(str, shape))}")
    return Passed(size)
