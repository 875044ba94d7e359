"""Rows that are needed later or in another order: in memory while they are few, then in a file."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
import weakref
from array import array
from collections.abc import Iterator, Mapping
from typing import IO, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from omnidata.errors import DataError
from omnidata.loaders.memory_limit import VARIABLE, MemoryLimit, weight

T = TypeVar("T")

_NONE = -1


class StoredRows(Generic[T]):
    """Rows by number, in the order in which they were appended.

    Beyond the limits of `MemoryLimit` they lie in a file, each packed by itself, and 8 bytes a row
    stay in memory. The file has no name, is this user's alone and vanishes with the process.
    Threads and forked processes may share it.

    Raises:
        UsageError: as `MemoryLimit`.
    """

    def __init__(self) -> None:
        self._limit = MemoryLimit(weight)
        self._list: list[T] = []
        self._file: IO[bytes] | None = None
        self._ends = array("q", [0])
        self._using = threading.Lock()

    def __len__(self) -> int:
        return len(self._list) if self._file is None else len(self._ends) - 1

    def append(self, row: T) -> int:
        """Add a row and return its number.

        Raises:
            DataError: the disk is full.
        """
        if self._file is not None:
            self._write(row)
            return len(self) - 1
        self._list.append(row)
        if not self._limit.add(row):
            self._file = tempfile.TemporaryFile(  # noqa: SIM115  it is open as long as we are
                prefix="omnidata-", buffering=0
            )
            weakref.finalize(self, self._file.close)
            for each in self._list:
                self._write(each)
            self._list = []
        return len(self) - 1

    def _write(self, row: T) -> None:
        assert self._file is not None
        data = memoryview(pickle.dumps(row, pickle.HIGHEST_PROTOCOL))
        self._ends.append(self._ends[-1] + len(data))
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise DataError(
                f"the steps cannot be written to disk ({error.strerror})",
                where=tempfile.gettempdir(),
                expected="disk space, about as much as the annotations take",
                remedy="free disk space, or set TMPDIR to another folder; "
                f"{VARIABLE} sets how many steps stay in memory",
            ) from None

    def __getitem__(self, number: int) -> T:
        if self._file is None:
            return self._list[number]
        start, size = self._ends[number], self._ends[number + 1] - self._ends[number]
        if hasattr(os, "pread"):  # forked processes share the place in the file
            return _load(os.pread(self._file.fileno(), size, start))  # type: ignore[no-any-return]  # as it was put
        with self._using:
            self._file.seek(start)
            data = self._file.read(size)
            self._file.seek(0, os.SEEK_END)
        return _load(data)  # type: ignore[no-any-return]  # as it was put


def _load(data: bytes) -> Any:
    """Unpickle a row, or a tuple with a row; rows share their keys, a third of their memory."""
    value = pickle.loads(data)
    for part in value if isinstance(value, tuple) else (value,):
        if type(part) is dict:
            for key in [*part]:
                part[sys.intern(key) if type(key) is str else key] = part.pop(key)
    return value


class ScatteredRows(Generic[T]):
    """Rows of groups, such as episodes, that lie anywhere in the data.

    16 bytes a row and 4 a group stay in memory.

    Attributes:
        became: the numbers of the rows that became steps, in the order of the steps; filled by
            the reader.

    Examples:
        >>> rows = ScatteredRows()
        >>> for group, row in ((0, "b1"), (1, "a0"), (0, "b0")):
        ...     rows.add(group, row)
        >>> rows.skip()
        >>> for group in range(2):
        ...     rows.became.extend(sorted(rows.numbers(group), key=rows.__getitem__))
        >>> [rows[number] for number in rows.became], rows.step_numbers().tolist()
        (['b0', 'b1', 'a0'], [1, 2, 0, -1])
    """

    def __init__(self) -> None:
        self.became = array("i")
        self._rows: StoredRows[Any] = StoredRows()
        self._before = array("i")  # the row of the same group that came before
        self._last = array("i")  # the last row of each group

    def add(self, group: int, row: T) -> None:
        """Add a row.

        Args:
            group: its number; groups are numbered from 0 in the order of their first rows.
            row: any.

        Raises:
            DataError: the disk is full.
        """
        if group == len(self._last):
            self._last.append(_NONE)
        self._before.append(self._last[group])
        self._last[group] = self._rows.append(row)

    def skip(self) -> None:
        """Count a row of no group."""
        self._before.append(_NONE)
        self._rows.append(None)

    def __getitem__(self, number: int) -> T:
        return self._rows[number]  # type: ignore[no-any-return]  # as it was put

    def numbers(self, group: int) -> list[int]:
        """Return the numbers of a group's rows, in the order in which they were added."""
        found, row = [], self._last[group]
        while row >= 0:
            found.append(row)
            row = self._before[row]
        return found[::-1]

    def step_numbers(self) -> npt.NDArray[np.int64]:
        """Return the number of each row's step, int64 (N,); -1 for rows that became none."""
        found = np.full(len(self._before), _NONE, np.int64)
        found[np.frombuffer(self.became, np.int32)] = np.arange(len(self.became), dtype=np.int32)
        return found


class RowsByName(Mapping[str, T]):
    """A dictionary whose values lie in `StoredRows`; pickled, it is a `dict`.

    Examples:
        >>> rows = RowsByName()
        >>> rows["a"] = {"x": 1}
        >>> rows["a"], rows.get("b"), rows == {"a": {"x": 1}}
        ({'x': 1}, None, True)
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._rows: StoredRows[T] = StoredRows()

    def __setitem__(self, name: str, row: T) -> None:
        self._numbers[name] = self._rows.append(row)

    def __getitem__(self, name: str) -> T:
        return self._rows[self._numbers[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)
