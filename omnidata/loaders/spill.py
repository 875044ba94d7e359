"""What is too much for memory lies on disk, packed, with an index in memory.

The file has no name, is this user's alone and vanishes with the process. What a process reads there
it has written itself.
"""

from __future__ import annotations

import operator
import os
import pickle
import sys
import tempfile
import threading
import weakref
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from omnidata.errors import DataError, UsageError
from omnidata.name_index import NameIndex
from omnidata.types import ByteRange, MediaRef, ParquetLocation, VideoSegment

T = TypeVar("T")

MANY: Final = 20_000
"""So many steps, or rows of steps, are held in memory, and no more."""
VARIABLE: Final = "OMNIDATA_STEPS_IN_MEMORY"
"""The variable of the environment that says another number."""
HEAVY: Final = 160 * 1024**2
"""Bytes that those which are held may take, where the environment says no number: steps with the
elements of their screens take ten times what others do."""
BLOCK: Final = 32
"""Steps or rows that are packed together: they share most of what they hold. All are unpacked for
one."""
_NONE: Final = -1
_KEPT: Final = 64
"""Blocks that stay unpacked, for readers that come back to them, as several workers do."""


def many() -> int:
    """Return the number of steps that stay in memory.

    Raises:
        UsageError: the environment says what is no number.
    """
    said = os.environ.get(VARIABLE) or str(MANY)
    if not (said.isascii() and said.isdecimal() and len(said) < 19):
        raise UsageError(
            f"{said!r} is not a number of steps",
            where=VARIABLE,
            expected="a whole number, 0 or more",
            remedy="correct the environment variable, or unset it",
        )
    return int(said)


class Room:
    """Says how long what comes is held in memory.

    Args:
        weigh: the bytes that one takes, about; every 32nd is weighed.

    Raises:
        UsageError: as `many`.
    """

    def __init__(self, weigh: Callable[[Any], int]) -> None:
        self._weigh = weigh
        self._most = many()
        self._most_bytes = None if os.environ.get(VARIABLE) else HEAVY
        self._count = self._bytes = 0

    def takes(self, one: Any) -> bool:
        """Return whether another one fits."""
        if self._most_bytes is not None and self._count % BLOCK == 0:
            self._bytes += BLOCK * self._weigh(one)
        self._count += 1
        return self._count <= self._most and self._bytes <= (self._most_bytes or self._bytes)


def weight(value: Any) -> int:
    """Estimate the bytes of a value as Python objects, without keys, which are shared.

    Args:
        value: of JSON, or a value of ours with such in it.
    """
    own = sys.getsizeof(value)
    if isinstance(value, dict):
        return own + sum(map(weight, value.values()))
    if isinstance(value, list | tuple):
        return own + sum(map(weight, value))
    kind = type(value)
    names = getattr(kind, "__dataclass_fields__", getattr(kind, "__struct_fields__", ()))
    return own + sum(weight(getattr(value, name)) for name in names)


class Blocks(Generic[T]):
    """Blocks of values on disk; only ever added to. Threads and forked processes may share them.

    Args:
        pack: makes bytes of a block.
        unpack: makes a block of those.

    Attributes:
        read: the block of a number; one that was asked for twice may be two lists.
        unpackable: by its number each block that no bytes can be made of, which stays in memory.
    """

    def __init__(
        self, pack: Callable[[Sequence[T]], bytes], unpack: Callable[[bytes], list[T]]
    ) -> None:
        # It has no name from its first moment on and is this user's alone: nobody else can write
        # what is unpacked later.
        self._file: IO[bytes] = tempfile.TemporaryFile(  # noqa: SIM115  it is open as long as we are
            prefix="omnidata-", buffering=0
        )
        weakref.finalize(self, self._file.close)
        self._pack, self._unpack = pack, unpack
        self._reading = threading.Lock()
        self._ends = array("q", [0])
        self.unpackable: dict[int, list[T]] = {}
        self.read = lru_cache(maxsize=_KEPT)(self._read)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, block: Sequence[T]) -> None:
        """Write a block.

        Raises:
            DataError: the disk takes no more.
        """
        try:
            packed = memoryview(self._pack(block))
        except Exception:  # a row of a plug-in may be any mapping; its block stays as it is
            self.unpackable[len(self)] = list(block)
            packed = memoryview(b"")
        self._ends.append(self._ends[-1] + len(packed))
        try:
            while packed:
                packed = packed[self._file.write(packed) :]
        except OSError as error:
            raise DataError(
                f"the steps cannot be written to disk ({error.strerror})",
                where=tempfile.gettempdir(),
                expected="disk space, about 200 bytes a step",
                remedy=f"free disk space, or set TMPDIR to another folder; {VARIABLE} "
                "sets how many "
                "steps stay in memory",
            ) from None

    def _read(self, number: int) -> list[T]:
        return self.unpackable.get(number) or self._unpack(self.block_bytes(number))

    def block_bytes(self, number: int) -> bytes:
        """Return a block as it is stored.

        Raises:
            Exception: it does not, for the reason that an object of it says.
        """
        if number in self.unpackable:
            return self._pack(self.unpackable[number])
        start, end = self._ends[number], self._ends[number + 1]
        if hasattr(os, "pread"):  # a forked process has the same place in the file
            return os.pread(self._file.fileno(), end - start, start)
        with self._reading:
            self._file.seek(start)
            return self._file.read(end - start)


class Grouped(Generic[T]):
    """Rows that come in any order, to be had group by group, as those of an episode are.

    They are in memory while there is `Room`; then they lie on disk, and 24 bytes for each and 50
    for each group stay. Groups whose rows lie together are read as fast as
    they were written. Where a group's rows lie far apart, a block is unpacked for each of them,
    which takes ten times as long.

    Attributes:
        groups: the names of the groups, in the order in which they first come.
        became: the numbers of the rows in the order in which they became steps, for code that makes
            steps of them to say.

    Raises:
        UsageError: as `many`.

    Examples:
        >>> rows = Grouped()
        >>> [rows.add(group, row) for group, row in (("b", "b1"), ("a", "a0"), ("b", "b0"))]
        [0, 1, 0]
        >>> rows.pass_over()
        >>> for group in rows:
        ...     rows.became.extend(sorted(group, key=rows.__getitem__))
        >>> [rows[number] for number in rows.became], rows.steps().tolist()
        (['b0', 'b1', 'a0'], [1, 2, 0, -1])
    """

    def __init__(self) -> None:
        self.groups = NameIndex()
        self.became = array("q")
        self._all = array("q")  # the number of each row; -1 for one of no group
        self._room = Room(weight)
        self._held: list[T] = []  # the last ones, and all while there is room
        self._blocks: Blocks[T] | None = None
        self._before = array("q")  # the row of the same group that came before; -1 for none
        self._last = array("q")  # the last row of each group

    def __len__(self) -> int:
        return len(self._before)

    def __getitem__(self, row: int) -> T:
        stored = len(self) - len(self._held)
        if row >= stored or self._blocks is None:
            return self._held[row - stored]
        return self._blocks.read(row // BLOCK)[row % BLOCK]

    def add(self, group: str, row: T) -> int:
        """Take a row; the number of its group.

        Raises:
            DataError: the disk takes no more.
        """
        number = self.groups.add(group)
        if number == len(self._last):
            self._last.append(_NONE)
        self._before.append(self._last[number])
        self._last[number] = len(self) - 1
        self._all.append(len(self) - 1)
        self._held.append(row)
        if self._blocks is None and self._room.takes(row):
            return number
        if len(self._held) >= BLOCK:
            self._put_aside()
        return number

    def pass_over(self) -> None:
        """Take notice of a row that is in no group."""
        self._all.append(_NONE)

    def steps(self) -> npt.NDArray[np.int64]:
        """The number of each row's step, int64 (N,): of all that came, -1 for those of none."""
        found = np.full(len(self) + 1, _NONE, np.int64)
        found[np.frombuffer(self.became, np.int64)] = np.arange(len(self.became))
        return found[np.frombuffer(self._all, np.int64)]

    def _put_aside(self) -> None:
        if self._blocks is None:
            self._blocks = Blocks(pack, unpack)
        whole = len(self._held) // BLOCK * BLOCK
        for start in range(0, whole, BLOCK):
            self._blocks.append(self._held[start : start + BLOCK])
        del self._held[:whole]

    def of(self, group: int) -> list[int]:
        """Return the indices of a group's rows, in the order of arrival."""
        found, row = [], self._last[group]
        while row >= 0:
            found.append(row)
            row = self._before[row]
        return found[::-1]

    def __iter__(self) -> Iterator[list[int]]:
        return map(self.of, range(len(self.groups)))


class NamedRows(Mapping[str, T]):
    """Rows by their names, which lie as those of `Grouped` do.

    Examples:
        >>> rows = NamedRows()
        >>> rows.put("a", {"x": 1})
        >>> rows["a"], rows.get("b"), rows == {"a": {"x": 1}}
        ({'x': 1}, None, True)
    """

    def __init__(self) -> None:
        self._rows: Grouped[T] = Grouped()

    @property
    def names(self) -> NameIndex:
        """The names, in the order in which they first came."""
        return self._rows.groups

    def put(self, name: str, row: T) -> None:
        """Take a row, in place of one that had the name.

        Raises:
            DataError: the disk takes no more.
        """
        self._rows.add(name, row)

    def __getitem__(self, name: str) -> T:
        number = self.names.get(name)
        if number is None:
            raise KeyError(name)
        return self._rows[self._rows.of(number)[-1]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


# How values are packed: exactly as they are, and what several share but once.


def pack(value: Any) -> bytes:
    """Encode a value of ours, or of JSON, as bytes.

    Raises:
        Exception: whatever an object says that cannot be pickled.
    """
    content = BytesIO()
    pickler = pickle.Pickler(content, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _TABLE
    pickler.dump(value)
    return zlib.compress(content.getvalue(), 1)


def unpack(content: bytes) -> Any:
    """Decode the bytes of `pack`, in the same process."""
    return pickle.loads(zlib.decompress(content))


_FIELDS: Mapping[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind))
    for kind in (MediaRef, ParquetLocation, ByteRange, VideoSegment)
}


@lru_cache(maxsize=4096)
def _path(path: str) -> Path:
    return Path(path)


def _reduce(value: Any) -> tuple[Any, ...]:
    kind = type(value)
    return kind, _GETTERS[kind](value)


_GETTERS = {kind: operator.attrgetter(*names) for kind, names in _FIELDS.items()}
_TABLE: dict[type, Any] = {
    **dict.fromkeys(_FIELDS, _reduce),
    type(Path()): lambda path: (_path, (str(path),)),
}
