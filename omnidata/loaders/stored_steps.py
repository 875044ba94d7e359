"""Millions of steps: stored on disk, with an index in memory.

A step takes 3 KB as Python objects. Where there are more than `omnidata.loaders.spill.many`, they
lie packed in a file and are unpacked as they are asked for. What is asked of all
of them, who has which id and which steps are of one episode, is known without unpacking any.
"""

from __future__ import annotations

import operator
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import chain, islice
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from omnidata.errors import OmnidataError, UsageError
from omnidata.loaders.spill import BLOCK, Blocks, Room, pack, unpack, weight
from omnidata.name_index import NameIndex
from omnidata.types import IndexedSteps, Step

Numbers = npt.NDArray[np.int64]

_BESIDE_SOURCE = 1500
"""Bytes that a step takes beside its source and its history, about: a picture, an action, texts."""


def collect(steps: Iterable[Step]) -> Sequence[Step]:
    """Return the steps as a list, or as `StoredSteps` if memory is too small for so many.

    Raises:
        UsageError: as `many`.
        OSError: the disk takes no more.
    """
    coming, room = iter(steps), Room(_weight)
    first: list[Step] = []
    for step in coming:
        first.append(step)
        if not room.takes(step):
            break
    else:
        return first
    store, every = _Store(), chain(_drain(first), coming)
    while block := list(islice(every, BLOCK)):
        store.extend(block)
    return StoredSteps(store)


def _weight(step: Step) -> int:
    return _BESIDE_SOURCE + 2 * sys.getsizeof(step.history) + weight(step.source)


def _drain(steps: list[Step]) -> Iterator[Step]:
    steps.reverse()
    while steps:
        yield steps.pop()


# What is asked of all steps, of lists as of `StoredSteps`.


def ids_of(steps: Sequence[Step]) -> Iterable[str]:
    """Return the sample ids, in the order of the steps."""
    if isinstance(steps, IndexedSteps):
        return steps.sample_ids
    return (step.sample_id for step in steps)


def episodes_of(steps: Sequence[Step]) -> Numbers:
    """Return each step's episode as a number, int64 (N,), in order of first occurrence."""
    if isinstance(steps, StoredSteps):
        _, first, number = np.unique(steps.episodes, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[number]
    numbers: dict[str, int] = {}
    found = (numbers.setdefault(step.episode, len(numbers)) for step in steps)
    return np.fromiter(found, np.int64, len(steps))


def select_steps(steps: Sequence[Step], numbers: Iterable[int]) -> Sequence[Step]:
    """Return the steps at the given indices, in that order."""
    found = numbers if isinstance(numbers, np.ndarray) else np.fromiter(numbers, np.int64)
    if isinstance(steps, StoredSteps):
        return steps.take(found)
    return [steps[number] for number in found.tolist()]


class Positions:
    """The index of each step by its id; of steps with the same id, the first.

    Attributes:
        get: the number of the step that has an id; None where none has.

    Args:
        steps: any.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.get: Callable[[str], int | None]
        if isinstance(steps, StoredSteps):
            self.get, self._length = steps.position, len(steps) - len(steps.repeated)
            return
        own: dict[str, int] = {}
        for number, step in enumerate(steps):
            own.setdefault(step.sample_id, number)
        self.get, self._length = own.get, len(own)

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

    def __init__(self, steps: StoredSteps, numbers: Numbers) -> None:
        self._steps, self._numbers = steps, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, row: int) -> str | None: ...
    @overload
    def __getitem__(self, row: slice) -> list[str | None]: ...

    def __getitem__(self, row: int | slice) -> str | list[str | None] | None:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        number = int(self._numbers[row])
        return None if number < 0 else self._steps.sample_ids[number]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | RowIds):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


def row_ids(steps: Sequence[Step], numbers: Iterable[int]) -> Sequence[str | None]:
    """Return the sample id of each row of a source.

    Args:
        steps: those of the source.
        numbers: the number of each row's step; -1 for a row that became none.
    """
    if isinstance(steps, StoredSteps):
        return RowIds(steps, np.fromiter(numbers, np.int64))
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


class PackedSteps:
    """Packed steps for another process.

    Args:
        blocks: steps that were packed together.
        places: of each step the block, and its number in there.
    """

    def __init__(self, blocks: Sequence[bytes], places: Sequence[tuple[int, int]]) -> None:
        self._blocks, self._places = blocks, places

    def __iter__(self) -> Iterator[Step]:
        last, steps = -1, list[Step]()
        for block, number in self._places:
            if block != last:
                last, steps = block, _unpack(self._blocks[block])
            yield steps[number]


def pack_steps(steps: Sequence[Step], numbers: Sequence[int]) -> PackedSteps:
    """Pack the steps at the given indices for another process.

    Raises:
        UsageError: a plug-in's cannot be.
    """
    try:
        if not isinstance(steps, StoredSteps):
            own = [steps[number] for number in numbers]
            return PackedSteps([_pack(own)], [(0, place) for place in range(len(own))])
        found: dict[int, int] = {}
        places = []
        for number in map(steps.number, numbers):
            block = found.setdefault(number // BLOCK, len(found))
            places.append((block, number % BLOCK))
        return PackedSteps([steps.store.blocks.block_bytes(block) for block in found], places)
    except Exception as error:  # a row of a plug-in may be any mapping
        if isinstance(error, OmnidataError):
            raise
        raise UsageError(
            f"the steps cannot be sent to other processes ({type(error).__name__}: {error})",
            where="--workers",
            expected="rows that can be pickled",
            remedy="leave out --workers and --engine",
        ) from None


def can_be_sent(steps: Sequence[Step]) -> bool:
    """Return whether steps can be sent to other processes; of a list only the first is checked."""
    if isinstance(steps, StoredSteps):
        return not steps.store.blocks.unpackable
    try:
        pack_steps(steps, range(min(1, len(steps))))
    except UsageError:
        return False
    return True


class _Ids(Sequence[str]):
    def __init__(self, steps: StoredSteps) -> None:
        self._steps = steps

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[str]: ...

    def __getitem__(self, number: int | slice) -> str | Sequence[str]:
        if isinstance(number, slice):
            return _Ids(self._steps[number])
        return self._steps.store.id_of(self._steps.number(number))


class StoredSteps(IndexedSteps):
    """Some or all steps of a `_Store`; each is unpacked on access.

    A step that is asked for twice may be two objects, which are equal. Threads and forked processes
    may share the steps; pickled they become a list.

    Args:
        store: where they lie.
        numbers: which of them, in order; None for all.
    """

    def __init__(self, store: _Store, numbers: Numbers | None = None) -> None:
        self.store = store
        self._numbers = numbers
        self._positions: npt.NDArray[np.int32] | None = None

    @property
    def sample_ids(self) -> Sequence[str]:
        """The sample ids, in order."""
        return _Ids(self)

    @property
    def episodes(self) -> Numbers:
        """The number of each step's episode in the store, int64 (N,)."""
        found = np.frombuffer(self.store.episodes, np.int32).astype(np.int64)
        return found if self._numbers is None else found[self._numbers]

    @property
    def repeated(self) -> list[int]:
        """Indices of the steps whose id an earlier step has."""
        numbers = self._numbers
        once = numbers is None or len(np.unique(numbers)) == len(numbers)
        if once and self.store.are_different:
            return []
        met, found = NameIndex(), list[int]()
        for number, name in enumerate(self.sample_ids):
            if met.add(name) != number - len(found):
                found.append(number)
        return found

    def without(self, numbers: Sequence[int]) -> StoredSteps:
        """Return all steps but those at the given indices."""
        if not numbers:
            return self
        return self.take(np.delete(np.arange(len(self)), numbers))

    def number(self, index: int) -> int:
        """Return the store's number of the step at an index, which may be negative.

        Raises:
            IndexError: there is none.
        """
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"there is no step {index} of {length}")
        index %= length
        return index if self._numbers is None else int(self._numbers[index])

    def position(self, sample_id: str) -> int | None:
        """Return the index of the step with an id; None if there is none."""
        number = self.store.find(sample_id)
        if number is None or self._numbers is None:
            return number
        if self._positions is None:
            positions = np.full(len(self.store), -1, np.int32)
            positions[self._numbers[::-1]] = np.arange(len(self) - 1, -1, -1, dtype=np.int32)
            self._positions = positions
        found = int(self._positions[number])
        return None if found < 0 else found

    def take(self, numbers: Numbers) -> StoredSteps:
        """Return the steps at the given indices, in that order."""
        own = np.where(numbers < 0, numbers + len(self), numbers)
        kept = own if self._numbers is None else self._numbers[own]
        return StoredSteps(self.store, kept)

    def __len__(self) -> int:
        return len(self.store) if self._numbers is None else len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> StoredSteps: ...

    def __getitem__(self, index: int | slice) -> Step | StoredSteps:
        if isinstance(index, slice):
            return self.take(np.arange(*index.indices(len(self)), dtype=np.int64))
        number = self.number(index)
        return self.store.blocks.read(number // BLOCK)[number % BLOCK]

    def __iter__(self) -> Iterator[Step]:
        if self._numbers is None:
            for number in range(len(self.store.blocks)):
                yield from self.store.blocks.read(number)
            return
        for start in range(0, len(self._numbers), 1024):
            for number in self._numbers[start : start + 1024].tolist():
                yield self.store.blocks.read(number // BLOCK)[number % BLOCK]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | StoredSteps):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} steps on disk>"

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class _Store:
    def __init__(self) -> None:
        self.blocks = Blocks(_pack, _unpack)
        self._ids, self._episodes = NameIndex(), NameIndex()
        self._named = array("i")  # the number of each step's id
        self._first = array("i")  # the first step that has an id
        self.episodes = array("i")

    def extend(self, steps: Sequence[Step]) -> None:
        self.blocks.append(steps)
        for step in steps:
            name = self._ids.add(step.sample_id)
            if name == len(self._first):
                self._first.append(len(self._named))
            self._named.append(name)
            self.episodes.append(self._episodes.add(step.episode))

    def __len__(self) -> int:
        return len(self._named)

    @property
    def are_different(self) -> bool:
        return len(self._ids) == len(self._named)

    def id_of(self, number: int) -> str:
        return self._ids[self._named[number]]

    def find(self, sample_id: str) -> int | None:
        name = self._ids.get(sample_id)
        return None if name is None else self._first[name]


# How a block of steps is packed.

_NAMES = tuple(field.name for field in fields(Step))
_values = operator.attrgetter(*_NAMES)
_HISTORY, _SCREENS, _TAGS = map(_NAMES.index, ("history", "history_screens", "tags"))


def _pack(steps: Sequence[Step]) -> bytes:
    """Steps as bytes; their histories, which may be long, are parts of the longest of an episode.

    Raises:
        Exception: whatever an object says that cannot be pickled.
    """
    screens: dict[Any, Any] = {}
    longest: dict[str, tuple[Any, Any]] = {}
    held: list[Any] = []
    for step in reversed(steps):
        past = step.history
        seen = tuple(
            screens.setdefault(size, size) if _is_plain(size) else size
            for size in step.history_screens
        )
        whole = longest.setdefault(step.episode, (past, seen))
        if not (_begins(past, whole[0]) and _begins(seen, whole[1])):
            whole = past, seen
        values = list(_values(step))
        values[_HISTORY], values[_SCREENS] = len(past), len(seen)
        tags = step.tags
        if type(tags) is dict and all(type(value) is str for value in tags.values()):
            values[_TAGS] = tuple(tags.items())
        held.append((values, *whole))
    return pack(held)


def _is_plain(size: object) -> bool:
    return type(size) is tuple and all(type(side) is int for side in size)


def _begins(part: Any, whole: Any) -> bool:
    """Whether a sequence is the beginning of another: the same objects, for equals may differ."""
    return (
        type(part) is type(whole) is tuple
        and len(part) <= len(whole)
        and all(map(operator.is_, part, whole))
    )


def _unpack(content: bytes) -> list[Step]:
    found = []
    for values, past, screens in reversed(unpack(content)):
        values[_HISTORY] = past[: values[_HISTORY]]
        values[_SCREENS] = screens[: values[_SCREENS]]
        if type(values[_TAGS]) is tuple:
            values[_TAGS] = _tags(values[_TAGS])
        found.append(Step(*values))
    return found


@lru_cache(maxsize=4096)
def _tags(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """One object for the tags of all steps of an episode, as loaders make it."""
    return dict(items)
