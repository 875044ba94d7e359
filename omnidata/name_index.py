"""Names by the million: which number each has, in some 40 bytes a name."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

_FIRST_SLOTS = 1024
_EMPTY = -1


class NameIndex(Sequence[str]):
    """Different texts, numbered from 0 in the order in which they first come.

    A `dict` of a million sample ids takes 200 MB. Here the texts lie one after the other as bytes,
    and a table of numbers, in which `hash` says where to begin to look, finds them.

    Args:
        names: the first ones.

    Examples:
        >>> index = NameIndex(["a/0", "a/1", "a/0"])
        >>> index[1], index.get("a/0"), index.get("b"), len(index)
        ('a/1', 0, None, 2)
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._text = bytearray()
        self._ends = array("q")
        self._slots = array("i", [_EMPTY]) * _FIRST_SLOTS
        for name in names:
            self.add(name)

    def add(self, name: str) -> int:
        """Return the name's number: the next one if it is new."""
        slot, number = self._look(name)
        if number != _EMPTY:
            return number
        number = len(self._ends)
        self._slots[slot] = number
        self._text += name.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._text))
        if 2 * number > len(self._slots):
            self._grow()
        return number

    def get(self, name: str) -> int | None:
        """Return the name's number; None if it was never added."""
        number = self._look(name)[1]
        return None if number == _EMPTY else number

    def _look(self, name: str) -> tuple[int, int]:
        data, slots, text, ends = name.encode("utf-8", "surrogatepass"), *self._parts()
        mask = len(slots) - 1
        slot = hash(name) & mask
        while (number := slots[slot]) != _EMPTY:
            if text[ends[number - 1] if number else 0 : ends[number]] == data:
                break
            slot = (slot + 1) & mask
        return slot, number

    def _parts(self) -> tuple[array[int], bytearray, array[int]]:
        return self._slots, self._text, self._ends

    def _grow(self) -> None:
        slots = array("i", [_EMPTY]) * (4 * len(self._slots))
        mask = len(slots) - 1
        for number, name in enumerate(self):
            slot = hash(name) & mask
            while slots[slot] != _EMPTY:
                slot = (slot + 1) & mask
            slots[slot] = number
        self._slots = slots

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...

    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if number < 0:
            number += len(self)
        if number < 0:
            raise IndexError(number)
        end = self._ends[number]
        start = self._ends[number - 1] if number else 0
        return self._text[start:end].decode("utf-8", "surrogatepass")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._look(name)[1] != _EMPTY
