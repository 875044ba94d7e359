"""`Steps`, the sequence of a dataset's steps: few in a list, many in a file that is mapped.

A step takes 3 KB as Python objects. Beyond the limits of `omnidata.loaders.memory_limit`, they lie
in an Arrow file (`omnidata.loaders.step_file`), and a `Step` is made when it is asked for. Ids,
episodes and other fields of all steps are read as columns, without making any.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from omnidata.errors import DataError, UsageError
from omnidata.loaders.memory_limit import MemoryLimit, weight
from omnidata.loaders.name_index import NameIndex
from omnidata.types import IndexedSteps, MediaRef, Step

if TYPE_CHECKING:
    import pyarrow as pa

    from omnidata.loaders.step_file import StepFile

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

_BESIDE_SOURCE = 1500
"""Bytes that a step takes beside its source and its history, about: a picture, an action, texts."""


class Steps(IndexedSteps):
    """The steps of a dataset, in order.

    A step that is asked for twice may be two objects, which are equal. Threads and forked processes
    may share the steps. Pickled, steps of the cache are the path of their file; others are bytes.

    Args:
        held: a list, or the file that they lie in.
        numbers: rows of the file, int64 (N,), in order; None for all.
        checked: whether it is known that no two have the same id.

    Examples:
        >>> steps = Steps.of(
        ...     Step(f"a/{n}", "a", n, 2, "Open it.", (9, 16), {}, (), (), None, {}, {})
        ...     for n in range(2)
        ... )
        >>> len(steps), steps[1].sample_id, [*steps.column("step_index")]
        (2, 'a/1', [0, 1])
        >>> steps.position("a/1"), len(steps.select([1])), steps.episodes.tolist()
        (1, 1, [0, 0])
    """

    def __init__(
        self,
        held: Sequence[Step] | StepFile = (),
        numbers: Numbers | None = None,
        *,
        checked: bool = False,
    ) -> None:
        self._list: list[Step] | None = None
        self._numbers = numbers
        self._index: NameIndex | dict[str, int] | None = None
        self._are_different = checked
        if isinstance(held, Sequence):
            self._list = held if isinstance(held, list) else list(held)
        else:
            self._file = held

    @classmethod
    def of(cls, steps: Iterable[Step]) -> Steps:
        """Collect steps: in a list, or in a file once memory is too small for so many.

        Raises:
            UsageError: as `MemoryLimit`.
            DataError: the disk takes no more.
        """
        if isinstance(steps, Steps):
            return steps
        coming, limit = iter(steps), MemoryLimit(_weight)
        first: list[Step] = []
        for step in coming:
            first.append(step)
            if not limit.add(step):
                break
        else:
            return cls(first)
        from omnidata.loaders.step_file import write

        return cls(write(chain(_drain(first), coming)))

    @property
    def file(self) -> StepFile | None:
        """The file of the steps; None for a list."""
        return None if self._list is not None else self._file

    @property
    def numbers(self) -> Numbers | None:
        """Their rows in the file, int64 (N,); None for all."""
        return self._numbers

    def __len__(self) -> int:
        if self._list is not None:
            return len(self._list)
        return len(self._file) if self._numbers is None else len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Steps: ...

    def __getitem__(self, index: int | slice) -> Step | Steps:
        if self._list is not None:
            found = self._list[index]
            return Steps(found) if isinstance(found, list) else found
        if isinstance(index, slice):
            return self.select(np.arange(*index.indices(len(self)), dtype=np.int64))
        if self._numbers is None and index >= 0:
            return self._file.step(index)
        return self._file.step(self._row(index))

    def _row(self, index: int) -> int:
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"there is no step {index} of {length}")
        index %= length
        return index if self._numbers is None else int(self._numbers[index])

    def __iter__(self) -> Iterator[Step]:
        if self._list is not None:
            return iter(self._list)
        rows = self._rows()
        if isinstance(rows, range):
            return self._file.steps(rows)
        return map(self._file.step, _in_parts(rows))

    def _rows(self) -> range | Numbers:
        """Their rows in the file; a range if they are neighbours in order."""
        numbers = self._numbers
        if numbers is None:
            return range(len(self._file))
        if not len(numbers) or (np.diff(numbers) != 1).any():
            return numbers
        return range(int(numbers[0]), int(numbers[-1]) + 1)

    def select(self, numbers: Iterable[int]) -> Steps:
        """Return the steps at the given indices, in that order."""
        if self._list is not None:
            return Steps([self._list[number] for number in numbers])
        found = numbers if isinstance(numbers, np.ndarray) else np.fromiter(numbers, np.int64)
        own = np.where(found < 0, found + len(self), found) if (found < 0).any() else found
        return Steps(self._file, own if self._numbers is None else self._numbers[own])

    def column(self, name: str) -> Column:
        """Return a field of all steps, in order, without making the steps."""
        return Column(self, name)

    def sources(self, *keys: str) -> Iterator[Mapping[str, Any]]:
        """Yield the untouched row of each step: with these of its keys, and perhaps others.

        A few keys of rows in a file are read ten times as fast as whole rows.
        """
        if self._list is not None:
            return (step.source for step in self._list)
        rows = self._rows()
        return self._file.sources(rows if isinstance(rows, range) else _in_parts(rows), keys)

    @property
    def sample_ids(self) -> Sequence[str]:
        """The sample ids, in order."""
        return self.column("sample_id")

    @property
    def episodes(self) -> Codes:
        """The number of each step's episode, int32 (N,), in order of first occurrence."""
        return self.codes("episode")

    def codes(self, name: str) -> Codes:
        """Return a number for each value of a field, int32 (N,), in order of first occurrence.

        Args:
            name: of a field of texts, or `tags`.
        """
        if self._list is None:
            column = self._file.column(name)
            if not column.null_count and not self._file.in_memory:
                import pyarrow as pa
                import pyarrow.compute as pc

                # The usual pool of memory keeps what it has freed.
                pool = pa.system_memory_pool()
                found = pc.call_function("dictionary_encode", [column], memory_pool=pool)
                codes = _join((part.indices for part in found.chunks), np.int32)
                return codes if self._numbers is None else _renumber(codes[self._numbers])
        numbers: dict[Any, int] = {}
        values = self.column(name)
        keys = (tuple(tags.items()) for tags in values) if name == "tags" else values
        return np.fromiter(
            (numbers.setdefault(key, len(numbers)) for key in keys), np.int32, len(self)
        )

    def integers(self, name: str) -> Numbers:
        """Return a field of whole numbers, int64 (N,)."""
        if self._list is None:
            column = self._file.column(name)
            if not column.null_count:
                values = _join(column.chunks, np.int64)
                return values if self._numbers is None else values[self._numbers]
        return np.fromiter(self.column(name), np.int64, len(self))

    def position(self, sample_id: str) -> int | None:
        """Return the index of the step with an id, the first of several; None if there is none."""
        if self._index is None:
            if self._list is None:
                self._index = NameIndex(self.sample_ids)
            else:  # backwards, so that the first of several comes last and stays
                ids = [step.sample_id for step in reversed(self._list)]
                self._index = dict(zip(ids, reversed(range(len(ids))), strict=True))
        return self._index.get(sample_id)

    def positions(self, sample_ids: Sequence[str]) -> Iterable[int | None]:
        """Return the index of each id as `position`; those of neighbours are found at once."""
        first = self.position(sample_ids[0]) if sample_ids and not self.repeated else None
        if first is not None:
            there = range(first, first + len(sample_ids))
            if [*self.sample_ids[first : there.stop]] == sample_ids:
                return there
        return map(self.position, sample_ids)

    def by_id(self, sample_id: str) -> Step:
        """Return the step with an id.

        Raises:
            KeyError: there is none.
        """
        number = self.position(sample_id)
        if number is None:
            raise KeyError(sample_id)
        return self[number]

    @property
    def repeated(self) -> list[int]:
        """Indices of the steps whose id an earlier step has."""
        if self._are_different:
            return []
        if self._list is None:
            self._index = self._index or NameIndex(self.sample_ids)
            assert isinstance(self._index, NameIndex)
            found = self._index.repeated
        else:
            met = set[str]()
            found = []
            for number, step in enumerate(self._list):
                if step.sample_id in met:
                    found.append(number)
                met.add(step.sample_id)
        self._are_different = not found
        return found

    def without(self, numbers: Sequence[int]) -> Steps:
        """Return all steps but those at the given indices."""
        if not numbers:
            return self
        return self.select(np.delete(np.arange(len(self)), numbers).tolist())

    def pack(self, *, sources: bool = True) -> Steps:
        """Return the steps as bytes in memory, which are cheap to send to another process.

        Args:
            sources: whether to keep `Step.source`; else it is empty.
        """
        from omnidata.loaders.step_file import pack

        if self._list is not None:
            return Steps(pack(self._list, sources=sources))
        numbers = np.arange(len(self)) if self._numbers is None else self._numbers
        return Steps(self._file.take(numbers, sources=sources))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | Steps):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # equal to a list

    def __repr__(self) -> str:
        return f"<{len(self)} steps>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._list is not None:
            return Steps, (self._list,)
        file = self._file
        if file.path is not None and not file.in_memory:
            return _open, (file.path, file.within, self._numbers)
        if self._numbers is not None:
            return self.pack().__reduce__()
        content = zlib.compress(file.content, 1)
        return _unpack, (content, file.within, dict(file.in_memory))


class Column(Sequence[Any]):
    """A field of all steps.

    Args:
        steps: any.
        name: of the field.
    """

    def __init__(self, steps: Steps, name: str) -> None:
        self._steps, self._name = steps, name

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Column: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Column(self._steps[index], self._name)
        file = self._steps.file
        if file is None:
            return getattr(self._steps[index], self._name)
        return file.value(self._steps._row(index), self._name)

    def __iter__(self) -> Iterator[Any]:
        file, name = self._steps.file, self._name
        if file is None:
            return (getattr(step, name) for step in self._steps)
        rows = self._steps._rows()
        if isinstance(rows, range):
            return file.values(name, rows)
        return (file.value(row, name) for row in _in_parts(rows))


@lru_cache(maxsize=8)
def _file_at(path: Path, within: tuple[str, ...]) -> StepFile:
    from omnidata.loaders.step_file import StepFile

    try:
        with path.open("rb") as file:
            return StepFile.map(file, within, path=path)
    except OSError as error:
        raise DataError(
            f"the steps are no longer in the cache ({error.strerror})",
            where=str(path),
            expected="the file that was there when the command began",
            remedy="repeat the command; a larger --cache-bytes keeps more",
        ) from None


def _open(path: Path, within: tuple[str, ...], numbers: Numbers | None) -> Steps:
    return Steps(_file_at(path, within), numbers)


def _unpack(content: bytes, within: tuple[str, ...], in_memory: dict[int, Step]) -> Steps:
    from omnidata.loaders.step_file import StepFile

    return Steps(StepFile(zlib.decompress(content), within, in_memory))


def _weight(step: Step) -> int:
    return _BESIDE_SOURCE + 2 * sys.getsizeof(step.history) + weight(step.source)


def _drain(steps: list[Step]) -> Iterator[Step]:
    """Yield the steps and forget each."""
    steps.reverse()
    while steps:
        yield steps.pop()


def _in_parts(numbers: Numbers) -> Iterator[int]:
    """Yield Python's numbers, without a list of all."""
    for start in range(0, len(numbers), 1024):
        yield from numbers[start : start + 1024].tolist()


def _join(parts: Iterable[pa.Array], kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Return the integers of arrays; `to_numpy` imports pandas, `combine_chunks` keeps memory."""
    # A file of no steps has no array.
    return np.concatenate([np.empty(0, kind), *map(np.from_dlpack, parts)])


def _renumber(codes: Codes) -> Codes:
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number].astype(np.int32)


# Any sequence of steps.


def ids_of(steps: Sequence[Step]) -> Iterable[str]:
    """Return the sample ids, in the order of the steps."""
    if isinstance(steps, IndexedSteps):
        return steps.sample_ids
    return (step.sample_id for step in steps)


def column_of(steps: Sequence[Step], name: str) -> Column:
    """Return a field of all steps, in order; of steps in a file without making them."""
    return as_steps(steps).column(name)


def media_of(steps: Sequence[Step]) -> Iterator[MediaRef]:
    """Yield the media of all steps; of steps in a file without making them."""
    return (ref for media in column_of(steps, "media") for ref in media.values() if ref)


def episodes_of(steps: Sequence[Step]) -> Codes:
    """Return each step's episode as a number, int32 (N,), in order of first occurrence."""
    return as_steps(steps).episodes


def select_steps(steps: Sequence[Step], numbers: Iterable[int]) -> Sequence[Step]:
    """Return the steps at the given indices, in that order."""
    if isinstance(steps, Steps):
        return steps.select(numbers)
    return [steps[number] for number in numbers]


def as_steps(steps: Sequence[Step]) -> Steps:
    """Return the steps as `Steps`; a list stays the list that it is."""
    return steps if isinstance(steps, Steps) else Steps(steps)


class Positions:
    """The index of each step by its id; of steps with the same id, the first.

    Args:
        steps: any.

    Attributes:
        get: `Steps.position`.
        get_all: `Steps.positions`.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        own = as_steps(steps)
        self.get, self.get_all = own.position, own.positions
        self._length = len(own) - len(own.repeated)

    def __getitem__(self, sample_id: str) -> int:
        number = self.get(sample_id)
        if number is None:
            raise KeyError(sample_id)
        return number

    def __contains__(self, sample_id: object) -> bool:
        return isinstance(sample_id, str) and self.get(sample_id) is not None

    def __len__(self) -> int:
        return self._length


class RowIds(Sequence[str | None]):
    """The sample id of each row of a source; None for a row that became no step.

    Args:
        steps: those of the source.
        numbers: the number of each row's step; -1 for none.
    """

    def __init__(self, steps: Steps, numbers: Sequence[int] | Numbers) -> None:
        self.steps, self.numbers = steps, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, row: int) -> str | None: ...
    @overload
    def __getitem__(self, row: slice) -> list[str | None]: ...

    def __getitem__(self, row: int | slice) -> str | list[str | None] | None:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        number = int(self.numbers[row])
        return None if number < 0 else self.steps.sample_ids[number]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | RowIds):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # equal to a list


def row_ids(steps: Sequence[Step], numbers: Iterable[int]) -> Sequence[str | None]:
    """Return the sample id of each row of a source.

    Args:
        steps: those of the source.
        numbers: the number of each row's step; -1 for a row that became none.
    """
    if isinstance(steps, Steps) and steps.file is not None:
        if not isinstance(numbers, np.ndarray):
            numbers = np.fromiter(numbers, np.int64)
        is_each = np.array_equal(numbers, np.arange(len(steps)))
        return RowIds(steps, range(len(steps)) if is_each else numbers)
    return [None if number < 0 else steps[number].sample_id for number in numbers]


def number_steps(rows: Iterable[Step | None], numbers: array[int]) -> Iterator[Step]:
    """Yield the steps among the rows of a source.

    Args:
        rows: None for a row that became no step.
        numbers: receives the number of each row's step, -1 for none, as `row_ids` takes them.
    """
    count = 0
    for step in rows:
        if step is None:
            numbers.append(-1)
        else:
            numbers.append(count)
            count += 1
            yield step


# Steps for another process.


def steps_to_send(steps: Sequence[Step], numbers: Sequence[int], *, far: bool) -> Steps:
    """Return the steps at the given indices, to be pickled for another process.

    Args:
        steps: any.
        numbers: the indices.
        far: whether it may be on another machine, which has no cache of this one's.

    Raises:
        UsageError: a plug-in's cannot be sent.
    """
    found = as_steps(steps).select(numbers)
    if far or found.file is None or found.file.path is None:
        found = found.pack()
    if not can_be_sent(found):
        raise UsageError(
            "the steps cannot be sent to other processes",
            where="--workers",
            expected="rows that can be pickled",
            remedy="leave out --workers and --engine",
        )
    return found


def can_be_sent(steps: Sequence[Step]) -> bool:
    """Return whether steps can be sent to other processes; of a list only the first is checked."""
    import pickle

    own = as_steps(steps)
    file = own.file or own[:1].pack().file
    assert file is not None  # what is packed has one
    try:
        pickle.dumps(file.in_memory)
    except Exception:  # a row of a plug-in may be any mapping
        return False
    return True
