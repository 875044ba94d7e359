"""The index of each of many names, in little memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_HALF = 0xFFFF_FFFF
_NEAR = 64
"""Names before and after the last one that are read at once, for those asked for in order."""


class NameIndex:
    """The index of each name, by half of its hash: 8 bytes a name.

    Args:
        names: they may be read again.

    Attributes:
        repeated: indices of the names that an earlier one equals.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        hashes = np.fromiter((hash(name) & _HALF for name in names), np.uint32, len(names))
        self._order = np.argsort(hashes, kind="stable").astype(np.uint32)
        hashes = hashes[self._order]
        self._hashes = hashes.data  # `bisect_left` is faster here than in an array of NumPy
        self._last = 0
        self._near: dict[str, int] = {}
        self.repeated = self._find_repeated(np.flatnonzero(hashes[1:] == hashes[:-1]))

    def _find_repeated(self, alike: npt.NDArray[np.int64]) -> list[int]:
        suspects = np.union1d(self._order[alike], self._order[alike + 1])
        met, found = set[str](), list[int]()
        for number in suspects.tolist():
            name = self._names[number]
            if name in met:
                found.append(number)
            met.add(name)
        return found

    def get(self, name: str) -> int | None:
        """Return the first index of a name; one near the last one asked for is found at once."""
        number = self._near.get(name)
        if number is not None:
            return number
        wanted = hash(name) & _HALF
        place = bisect_left(self._hashes, wanted)
        while place < len(self._hashes) and self._hashes[place] == wanted:
            number = int(self._order[place])
            if self._names[number] == name:
                # Of several equal names the first is wanted, which need not be the nearest.
                if not self.repeated and abs(number - self._last) <= _NEAR:
                    first = max(0, number - _NEAR)
                    near = self._names[first : number + _NEAR]
                    self._near = {each: at for at, each in enumerate(near, first)}
                self._last = number
                return number
            place += 1
        return None
