"""The pace of a run: which request may go out now, how long to wait, when to give up."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from omnidata.errors import AdapterError, CallError
from omnidata.run.cost import Budget, Limits, Tokens

# Where the time of a run goes.


class StageTimer:
    """Adds up the seconds that a run spends in each stage.

    `media_s` is the time of all threads that prepare requests, and `media_wait_s` the time in which
    no request was under way because none was ready. `model_s` is the time in which at least one
    request was under way; `in_flight_s`, of all requests together, divided by it is the mean number
    under way. `disk_s` goes into writing lines and waiting for the disk, `pause_s` into the pauses
    between attempts, of all requests together.
    """

    def __init__(self) -> None:
        stages = ("media_s", "media_wait_s", "model_s", "in_flight_s", "disk_s", "pause_s")
        self._seconds = dict.fromkeys(stages, 0.0)
        self._now = {"asking": 0, "waiting for media": 0}
        self._since = time.perf_counter()

    def timings(self) -> dict[str, float]:
        """Return the seconds of each stage, for `run.json`."""
        return dict(self._seconds)

    def add(self, stage: Literal["media_s", "disk_s", "pause_s"], seconds: float) -> None:
        """Add seconds to a stage."""
        self._seconds[stage] += seconds

    @contextmanager
    def measure(self, stage: Literal["disk_s", "pause_s"]) -> Iterator[None]:
        """Add the time of the block to a stage."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(stage, time.perf_counter() - began)

    @contextmanager
    def count(self, what: Literal["asking", "waiting for media"]) -> Iterator[None]:
        """Count a request as under way, or the run as waiting for one that is being prepared."""
        self._turn()
        self._now[what] += 1
        try:
            yield
        finally:
            self._turn()
            self._now[what] -= 1

    def _turn(self) -> None:
        now = time.perf_counter()
        passed, self._since = now - self._since, now
        if under_way := self._now["asking"]:
            self._seconds["model_s"] += passed
            self._seconds["in_flight_s"] += passed * under_way
        elif self._now["waiting for media"]:
            self._seconds["media_wait_s"] += passed


# Which request may go out now: one gate for all requests of a run, wherever they are made.


class Gate:
    """Lets requests through as the rates and the budget allow."""

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._requests = None
        if limits.requests_per_minute:
            from aiolimiter import AsyncLimiter

            # A bucket of one: a large one would let a whole minute's requests go out at once.
            self._requests = AsyncLimiter(1, 60 / limits.requests_per_minute)
        tokens = limits.tokens_per_minute
        self._tokens = _TokenRate(tokens / 60) if tokens else None
        self._budget = budget
        self._through = 0
        self._left = asyncio.Event()

    async def enter(self) -> float | str:
        """Return the tokens reserved for a request when its turn comes, or why none may go out."""
        if self._requests:
            await self._requests.acquire()
        reserved = await self._tokens.reserve() if self._tokens else 0.0
        while reason := self._budget.refuses(self._through):
            if not self._through:
                return reason
            self._left.clear()
            await self._left.wait()  # those on their way may take less than is feared
        self._through += 1
        return reserved

    async def leave(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        """Settle the reservation of a request that has ended; `usages` are those of its answers."""
        if self._tokens:
            self._tokens.settle(reserved, usages)
        self._through -= 1
        for usage in usages:
            self._budget.spend(usage)
        self._left.set()


class _TokenRate:
    """Tokens are known when the answer comes: each request reserves the mean of those before it.

    The difference is settled afterwards. Before the first answer requests go out one at a time.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._free_at = time.monotonic()
        self._answers = 0
        self._sum = 0.0
        self._first = asyncio.Lock()

    async def reserve(self) -> float:
        if not self._answers:
            await self._first.acquire()
            if self._answers:
                self._first.release()
        reserved = self._sum / self._answers if self._answers else 0.0
        begin = max(self._free_at, time.monotonic())
        self._free_at = begin + reserved / self._per_second
        if (wait := begin - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        return reserved

    def settle(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        used: float = sum(Tokens.of(usage).total for usage in usages)
        if usages:
            self._answers += 1
            used = used or reserved  # where the model does not say
            self._sum += used
        if self._first.locked():
            self._first.release()
        self._free_at += (used - reserved) / self._per_second


# How many requests are under way: fewer when the model asks for fewer, then slowly more again.

_SHRINK = 0.5


class AdaptiveConcurrency:
    """A number of open requests that adapts (additive increase, multiplicative decrease).

    Args:
        size: how many may be open at the start, and at most.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._limit = float(size)
        self._open = 0
        self._changed = asyncio.Event()
        self._held_until = 0.0
        self._shrunk_at = 0.0

    async def __aenter__(self) -> None:
        while self._open >= int(self._limit):
            self._changed.clear()
            await self._changed.wait()
        self._open += 1

    async def __aexit__(self, *_: object) -> None:
        self._open -= 1
        self._changed.set()

    @property
    def hold(self) -> float:
        """Return the seconds during which nothing is to be sent; 0 or less for none."""
        return self._held_until - time.monotonic()

    def note_answer(self) -> None:
        """Widen the window: by one for every full window of answers."""
        self._limit = min(self.size, self._limit + 1 / self._limit)

    def slow_down(self, sent: float, wait: float) -> None:
        """Halve the window, and hold all requests back.

        Args:
            sent: when the request went out (`time.monotonic()`); requests from before the last
                decrease do not decrease it again.
            wait: seconds during which nothing is to be sent.
        """
        now = time.monotonic()
        self._held_until = max(self._held_until, now + wait)
        if sent >= self._shrunk_at:
            self._limit = max(1.0, self._limit * _SHRINK)
            self._shrunk_at = now


# How long to wait before the same request is sent again.

_FIRST_S = 1.0
_LONGEST_S = 60.0
_LONGEST_ASKED_S = 600.0  # after a request for a longer wait there is no other attempt in this run

_jitter = random.Random()  # nothing that is measured depends on it


def retry_delay(error: CallError, attempt: int) -> float | None:
    """Return the seconds to wait before the next attempt; None if there is to be none.

    Full jitter over an exponentially growing time, so that requests which failed together do not
    return together; the model's own `retry_after` is waited in full.

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
    if not error.retry_after <= _LONGEST_ASKED_S:  # NaN as well
        return None
    return max(0.0, error.retry_after) + min(drawn, _FIRST_S)


# When to stop a run in which everything fails.

_FAILURES = 10  # steps in a row without an answer, after which nothing more is asked
_HOPELESS = 3  # the same for a wrong key or address, or code that never worked


class CircuitBreaker:
    """Counts failures since the last answer.

    Args:
        answered: whether the run has an answer from before it was resumed.
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
        if self._hopeless < _HOPELESS and self._failures < _FAILURES:
            return ""
        return f"the last {self._failures} steps all got no answer; the last reason: {error.what}"
