"""Requests made ready ahead of the model, in threads, behind a queue that is bounded in bytes."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

from omnidata.run.timing import Meter
from omnidata.types import Completion, Prepared, Step

Make = Callable[[Step], "Prepared | Completion"]
"""A step as a ready request, or as the completion that stands for a medium nobody can read."""

_INLINE = 64  # requests that are made in the event loop before it may do something else


class Ahead:
    """Prepares steps in their order; the steps that depend on an answer are added as it comes.

    Args:
        make: prepares one step.
        threads: whether that takes media, and so time; without, it happens in the event loop.
        max_bytes: of requests that are ready and wait; the one that exceeds it is the last.
        max_waiting: the same in requests.
        pool: of so many ready requests those of like length are taken together, the longest first;
            0 takes them as they come.
        meter: books the time.
    """

    def __init__(
        self,
        make: Make,
        *,
        threads: bool,
        max_bytes: int,
        max_waiting: int,
        meter: Meter,
        pool: int = 0,
    ) -> None:
        self._make = make
        self._workers = (os.cpu_count() or 1) + 1 if threads else 0
        self._pool = ThreadPoolExecutor(max(1, self._workers), "omnidata-media")
        self._max_bytes = max_bytes
        self._max_waiting = max(max_waiting, pool)
        self._like = pool
        self._meter = meter
        self._todo: deque[Step] = deque()
        self._ready: deque[tuple[Step, Prepared | Completion]] = deque()
        self._bytes = 0
        self._making = 0
        self._changed = asyncio.Condition()

    def add(self, steps: Iterable[Step]) -> None:
        """Put steps at the end; before the work begins."""
        self._todo.extend(steps)

    async def add_next(self, step: Step) -> None:
        """Put a step before the others: its episode has begun."""
        async with self._changed:
            self._todo.appendleft(step)
            self._changed.notify_all()

    async def take(self, most: int) -> list[tuple[Step, Prepared | Completion]]:
        """The next ready requests, up to `most`; fewer only if no other is being made."""
        taken: list[tuple[Step, Prepared | Completion]] = []
        async with self._changed:
            if self._like:
                await self._sort(most)
            while len(taken) < most:
                if not self._ready:
                    if taken and not self._coming():
                        break
                    # With nothing in the making it is answers or pauses that are waited for.
                    booked = self._meter.waiting_for_media() if self._coming() else nullcontext()
                    with booked:
                        await self._changed.wait()
                    continue
                item = self._ready.popleft()
                self._bytes -= _size(item[1])
                taken.append(item)
                self._changed.notify_all()
        return taken

    async def _sort(self, most: int) -> None:
        """Put the longest first; there is a choice as soon as the model is slower than we are."""
        while len(self._ready) < most and self._coming() and self._room():
            with self._meter.waiting_for_media():
                await self._changed.wait()
        self._ready = deque(sorted(self._ready, key=_length, reverse=True))

    def _coming(self) -> bool:
        return bool(self._making or self._todo)

    def _room(self) -> bool:
        return self._bytes < self._max_bytes and len(self._ready) < self._max_waiting

    async def work(self) -> None:
        """Prepare until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(max(1, self._workers)):
                    group.create_task(self._in_threads() if self._workers else self._inline())
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _next(self) -> Step:
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._todo) and self._room())
            self._making += 1
            return self._todo.popleft()

    async def _in_threads(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            step = await self._next()
            made, took = await loop.run_in_executor(self._pool, self._timed, step)
            self._meter.media_s += took
            await self._put(step, made)

    def _timed(self, step: Step) -> tuple[Prepared | Completion, float]:
        began = time.perf_counter()
        return self._make(step), time.perf_counter() - began

    async def _inline(self) -> None:
        while True:
            step = await self._next()
            await self._put(step, self._make(step))
            async with self._changed:
                for _ in range(_INLINE):
                    if not (self._todo and self._room()):
                        break
                    step = self._todo.popleft()
                    self._ready.append((step, self._make(step)))
                self._changed.notify_all()

    async def _put(self, step: Step, made: Prepared | Completion) -> None:
        async with self._changed:
            self._making -= 1
            self._ready.append((step, made))
            self._bytes += _size(made)
            self._changed.notify_all()


def _size(made: Prepared | Completion) -> int:
    return made.size if isinstance(made, Prepared) else 0


def _length(ready: tuple[Step, Prepared | Completion]) -> int:
    return ready[1].length if isinstance(ready[1], Prepared) else 0
