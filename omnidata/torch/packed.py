"""Many steps in little memory, cheap to hand to worker processes.

A million steps as Python objects are pickled for every spawned worker, and copied page by page into
every forked one, because counting references writes to them. As bytes they are neither.
"""

from __future__ import annotations

import pickle
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from omnidata.types import Step

_RUN = 32
"""Steps that are pickled together: they share most of what they hold. All are unpickled for one."""


class PackedSteps:
    """Steps as bytes.

    Steps of an episode that follow each other are stored together, and what each holds of the
    history, whose length grows with the square of the episode's, is stored once.

    Args:
        steps: any steps, in any order.
        whole: keep `source`, which prompts are made from; else it is left out.
    """

    def __init__(self, steps: Sequence[Step], *, whole: bool = False) -> None:
        """Pack them."""
        self._starts: list[int] = []
        self._blobs: list[bytes] = []
        self._length = 0
        for run in _runs(steps):
            self._starts.append(self._length)
            self._blobs.append(_pack(run, whole))
            self._length += len(run)
        self._last: tuple[int, list[Step]] = (-1, [])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Step]:
        return (self[index] for index in range(self._length))

    def __getitem__(self, index: int) -> Step:
        if not -self._length <= index < self._length:
            raise IndexError(index)
        index %= self._length
        number = bisect_right(self._starts, index) - 1
        last = self._last
        if last[0] != number:
            last = self._last = (number, _unpack(self._blobs[number]))
        return last[1][index - self._starts[number]]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": (-1, [])}


def _runs(steps: Sequence[Step]) -> Iterator[list[Step]]:
    for _, found in groupby(steps, key=lambda step: step.episode):
        episode = list(found)
        for begin in range(0, len(episode), _RUN):
            yield episode[begin : begin + _RUN]


def _pack(run: list[Step], whole: bool) -> bytes:
    first = run[0]
    longest = max(run, key=lambda step: len(step.history))
    past, screens = longest.history, longest.history_screens
    stripped, lengths = [], []
    for step in run:
        count = len(step.history)
        shared = past[:count] == step.history and screens[:count] == step.history_screens
        lengths.append(count if shared else None)
        stripped.append(
            replace(
                step,
                # One object for what is equal, which pickle then writes once.
                instruction=first.instruction
                if step.instruction == first.instruction
                else step.instruction,
                tags=first.tags if step.tags == first.tags else step.tags,
                history=() if shared else step.history,
                history_screens=() if shared else step.history_screens,
                source=step.source if whole else {},
            )
        )
    held = (stripped, lengths, past, screens)
    return zlib.compress(pickle.dumps(held, pickle.HIGHEST_PROTOCOL), 1)


def _unpack(blob: bytes) -> list[Step]:
    stripped, lengths, past, screens = pickle.loads(zlib.decompress(blob))
    return [
        step
        if count is None
        else replace(step, history=past[:count], history_screens=screens[:count])
        for step, count in zip(stripped, lengths, strict=True)
    ]
