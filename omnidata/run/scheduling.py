"""How a run asks: what is made ready ahead, how fast it goes out, when to stop, where time goes."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import chain
from types import TracebackType
from typing import Any, Self

from omnidata.errors import AdapterError, CallError
from omnidata.run.cost import Budget, Limits, Tokens
from omnidata.types import Completion, Prepared, Step

# Where the time of a run goes.


class StageTimer:
    """Adds up the seconds of each stage; all but `preparing` in the event loop's thread.

    Attributes:
        media_s: spent in threads on reading, decoding and rendering, all threads together.
        media_wait_s: during which nothing was under way because no request was ready.
        model_s: during which at least one request was under way.
        in_flight_s: of all requests together; divided by `model_s` the mean number under way.
        disk_s: spent on writing lines and waiting for the disk.
        pause_s: waited between attempts, all requests together.
    """

    def __init__(self) -> None:
        self.media_s = self.media_wait_s = 0.0
        self.model_s = self.in_flight_s = self.disk_s = self.pause_s = 0.0
        self._under_way = 0
        self._waiting = 0
        self._since = time.perf_counter()

    def _turn(self) -> None:
        now = time.perf_counter()
        passed, self._since = now - self._since, now
        if self._under_way:
            self.model_s += passed
            self.in_flight_s += passed * self._under_way
        elif self._waiting:
            self.media_wait_s += passed

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Count a request as under way."""
        self._turn()
        self._under_way += 1
        try:
            yield
        finally:
            self._turn()
            self._under_way -= 1

    @contextmanager
    def waiting_for_media(self) -> Iterator[None]:
        """Count a sender as waiting."""
        self._turn()
        self._waiting += 1
        try:
            yield
        finally:
            self._turn()
            self._waiting -= 1

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lines are written."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.disk_s += time.perf_counter() - began

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Add the time of a pause between attempts."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.pause_s += time.perf_counter() - began

    def timings(self) -> dict[str, float]:
        """Return the stages, for `run.json`."""
        return {
            name: getattr(self, name)
            for name in ("media_s", "media_wait_s", "model_s", "in_flight_s", "disk_s", "pause_s")
        }


# Requests made ready ahead of the model, in threads, behind a queue that is bounded in bytes.

Make = Callable[[Step], "Prepared | Completion"]
"""A step as a ready request, or as the completion that stands for a medium nobody can read."""

_INLINE = 64  # requests that are made in the event loop before it may do something else


class Prefetch:
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
        meter: StageTimer,
        pool: int = 0,
    ) -> None:
        self._make = make
        self._workers = (os.cpu_count() or 1) + 1 if threads else 0
        self._pool = ThreadPoolExecutor(max(1, self._workers), "omnidata-media")
        self._max_bytes = max_bytes
        self._max_waiting = max(max_waiting, pool)
        self._like = pool
        self._meter = meter
        self._next_of: deque[Step] = deque()  # of episodes that have begun
        self._todo: Iterator[Step] = iter(())
        self._left = 0
        self._ready: deque[tuple[Step, Prepared | Completion]] = deque()
        self._bytes = 0
        self._making = 0
        self._changed = asyncio.Condition()
        # One sender collects at a time, so that batches fill one after the other, and a request
        # that is ready wakes one sender rather than the hundreds that a run may have.
        self._collecting = asyncio.Lock()

    def add(self, steps: Sequence[Step]) -> None:
        """Append steps; each is asked for when its turn comes."""
        self._todo = chain(self._todo, steps)
        self._left += len(steps)

    async def add_next(self, step: Step) -> None:
        """Put a step before the others: its episode has begun."""
        async with self._changed:
            self._next_of.appendleft(step)
            self._left += 1
            self._changed.notify_all()

    async def take(self, most: int) -> list[tuple[Step, Prepared | Completion]]:
        """Return the next ready requests, up to `most`; fewer only if no other is being made."""
        taken: list[tuple[Step, Prepared | Completion]] = []
        async with self._collecting, self._changed:
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
        """Put the longest first; a choice exists once the model is slower than the preparation."""
        while len(self._ready) < most and self._coming() and self._room():
            with self._meter.waiting_for_media():
                await self._changed.wait()
        self._ready = deque(sorted(self._ready, key=_length, reverse=True))

    def _coming(self) -> bool:
        return bool(self._making or self._left)

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
            await self._changed.wait_for(lambda: bool(self._left) and self._room())
            self._making += 1
            return self._first()

    def _first(self) -> Step:
        self._left -= 1
        return self._next_of.popleft() if self._next_of else next(self._todo)

    async def _in_threads(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            step = await self._next()
            made, took = await loop.run_in_executor(self._pool, self._prepare_timed, step)
            self._meter.media_s += took
            await self._put(step, made)

    def _prepare_timed(self, step: Step) -> tuple[Prepared | Completion, float]:
        began = time.perf_counter()
        return self._make(step), time.perf_counter() - began

    async def _inline(self) -> None:
        while True:
            step = await self._next()
            await self._put(step, self._make(step))
            async with self._changed:
                for _ in range(_INLINE):
                    if not (self._left and self._room()):
                        break
                    step = self._first()
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


# How many requests and tokens go out per minute.


class RateLimiter:
    """Waits so that neither rate is exceeded.

    Tokens are known when the answer comes: each request reserves the mean of those before it, and
    the difference is settled afterwards. Before the first answer requests go out one at a time.

    Args:
        requests_per_minute: None = any number.
        tokens_per_minute: of prompt and answer together; None = any number.
    """

    def __init__(self, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        from aiolimiter import AsyncLimiter

        # A bucket of one: a large one would let a whole minute's requests go out at once.
        self._requests = AsyncLimiter(1, 60 / requests_per_minute) if requests_per_minute else None
        self._per_second = tokens_per_minute / 60 if tokens_per_minute else None
        self._free_at = time.monotonic()
        self._answers = 0
        self._tokens = 0.0
        self._first = asyncio.Lock()

    async def take(self) -> float:
        """Wait for one request's turn.

        Returns:
            The tokens that were reserved, for `settle`.
        """
        if self._requests:
            await self._requests.acquire()
        if self._per_second is None:
            return 0.0
        if not self._answers:
            await self._first.acquire()
            if self._answers:
                self._first.release()
        reserved = self._tokens / self._answers if self._answers else 0.0
        begin = max(self._free_at, time.monotonic())
        self._free_at = begin + reserved / self._per_second
        if (wait := begin - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        return reserved

    def settle(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        """Book what a request really took.

        Args:
            reserved: as `take` returned it.
            usages: as the model reported them; none for a failed attempt.
        """
        if self._per_second is None:
            return
        tokens: float = sum(Tokens.of(usage).total for usage in usages)
        if usages:
            self._answers += 1
            tokens = tokens or reserved  # where the model does not say
            self._tokens += tokens
        if self._first.locked():
            self._first.release()
        self._free_at += (tokens - reserved) / self._per_second


# Which request may go out now: one gate for all that a run asks, wherever that happens.


class Gate:
    """Lets requests through as rates and the budget allow.

    Args:
        limits: the rates.
        budget: what may be spent.
    """

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._rates = RateLimiter(limits.requests_per_minute, limits.tokens_per_minute)
        self._budget = budget
        self._through = 0
        self._spending = asyncio.Condition()

    async def enter(self) -> float | str:
        """Wait for one request's turn.

        Returns:
            The tokens that were reserved, for `leave`; or why no request may go out any more.
        """
        reserved = await self._rates.take()
        async with self._spending:
            while reason := self._budget.refuses(self._through):
                if not self._through:
                    return reason
                await self._spending.wait()  # those on their way may take less than is feared
            self._through += 1
        return reserved

    async def leave(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        """Settle the reservation of a request that has ended.

        Args:
            reserved: as `enter` returned it.
            usages: as the model reported them; none for a failed attempt.
        """
        self._rates.settle(reserved, usages)
        self._through -= 1
        for usage in usages:
            self._budget.spend(usage)
        async with self._spending:
            self._spending.notify_all()


# How long to wait before the same request is sent again.

_FIRST_S = 1.0
_LONGEST_S = 60.0
LONGEST_ASKED_S = 600.0
"""A model that asks for a longer wait than this gets no other attempt in this run."""

_jitter = random.Random()  # nothing that is measured depends on it


def retry_delay(error: CallError, attempt: int) -> float | None:
    """Seconds to wait before the next attempt; None if there is to be none.

    Full jitter over an exponentially growing time, so that requests which failed together do not
    come back together; what the model asked for is waited in full.

    Args:
        error: why there was no answer.
        attempt: how many attempts were made, 1 or more.

    Examples:
        >>> retry_delay(CallError("no such model", transient=False), 1) is None
        True
        >>> 7.0 <= retry_delay(CallError("busy", retry_after=7.0), 1) <= 8.0
        True
        >>> retry_delay(CallError("busy"), 100) <= 60.0
        True
    """
    if not error.transient:
        return None
    drawn = _jitter.uniform(0, min(_LONGEST_S, _FIRST_S * 2 ** (attempt - 1)))
    if error.retry_after is None:
        return drawn
    if not error.retry_after <= LONGEST_ASKED_S:  # NaN as well
        return None
    return max(0.0, error.retry_after) + min(drawn, _FIRST_S)


# How many requests are under way: fewer when the model asks for fewer, then slowly more again.

_SHRINK = 0.5


class AdaptiveConcurrency:
    """A number of open requests that adapts (additive increase, multiplicative decrease).

    Args:
        size: how many may be open at the start; never more than that.

    Attributes:
        limit: how many may be open now.
        open: how many are.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.limit = float(size)
        self.open = 0
        self._place = asyncio.Condition()
        self._held_until = 0.0
        self._shrunk_at = 0.0

    async def __aenter__(self) -> Self:
        async with self._place:
            await self._place.wait_for(lambda: self.open < int(self.limit))
            self.open += 1
        try:
            while (wait := self._held_until - time.monotonic()) > 0:
                await asyncio.sleep(wait)
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        async with self._place:
            self.open -= 1
            self._place.notify_all()

    def note_answer(self) -> None:
        """Widen the window: one place for every full window of answers."""
        self.limit = min(self.size, self.limit + 1 / self.limit)

    def slow_down(self, sent: float, wait: float) -> None:
        """Halve the window, and hold all requests back.

        Args:
            sent: when the request went out (`time.monotonic()`); requests from before the last
                decrease say nothing new.
            wait: seconds during which nothing is to be sent.
        """
        now = time.monotonic()
        self._held_until = max(self._held_until, now + wait)
        if sent >= self._shrunk_at:
            self.limit = max(1.0, self.limit * _SHRINK)
            self._shrunk_at = now


# Stops a run in which everything fails.

FAILURES = 10
"""Steps in a row without an answer after which nothing more is asked."""

HOPELESS = 3
"""The same where the reason will not go away: a wrong key or address, code that never worked."""


class CircuitBreaker:
    """Counts failures since the last answer.

    Args:
        answered: whether the run has an answer already, from before it was resumed.
    """

    def __init__(self, *, answered: bool = False) -> None:
        self._failures = 0
        self._hopeless = 0
        self._any_answer = answered

    def note_answer(self) -> None:
        """Forget the failures before an answer."""
        self._failures = self._hopeless = 0
        self._any_answer = True

    def note_failure(self, error: CallError) -> str:
        """Count a step that got no answer in all its attempts.

        Returns:
            Why the run is to stop; empty to go on.
        """
        slipped = isinstance(error, AdapterError)
        if self._any_answer and not (error.transient or error.hopeless or slipped):
            return ""  # others were answered: it is this request that the model does not take
        self._failures += 1
        self._hopeless += error.hopeless or (slipped and not self._any_answer)
        if self._hopeless < HOPELESS and self._failures < FAILURES:
            return ""
        return f"the last {self._failures} steps all got no answer; the last reason: {error.what}"
