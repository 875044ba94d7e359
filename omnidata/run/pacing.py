"""How many requests and tokens go out per minute."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from omnidata.errors import AdapterError, CallError
from omnidata.run.cost import Tokens


class Rates:
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


# How long to wait before the same request is sent again.

_FIRST_S = 1.0
_LONGEST_S = 60.0
LONGEST_ASKED_S = 600.0
"""A model that asks for a longer wait than this gets no other attempt in this run."""

_jitter = random.Random()  # nothing that is measured depends on it


def pause(error: CallError, attempt: int) -> float | None:
    """Seconds to wait before the next attempt; None if there is to be none.

    Full jitter over an exponentially growing time, so that requests which failed together do not
    come back together; what the model asked for is waited in full.

    Args:
        error: why there was no answer.
        attempt: how many attempts were made, 1 or more.

    Examples:
        >>> pause(CallError("no such model", transient=False), 1) is None
        True
        >>> 7.0 <= pause(CallError("busy", retry_after=7.0), 1) <= 8.0
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


class Window:
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
        """Wait for a place, and until the model takes requests again."""
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

    def answered(self) -> None:
        """An answer came: one place more for every full window of answers."""
        self.limit = min(self.size, self.limit + 1 / self.limit)

    def throttled(self, sent: float, wait: float) -> None:
        """The model asked for fewer requests.

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


class Breaker:
    """Counts failures since the last answer.

    Args:
        answered: whether the run has an answer already, from before it was resumed.
    """

    def __init__(self, *, answered: bool = False) -> None:
        self._failures = 0
        self._hopeless = 0
        self._any_answer = answered

    def answered(self) -> None:
        """An answer came; whatever failed before, not everything does."""
        self._failures = self._hopeless = 0
        self._any_answer = True

    def failed(self, error: CallError) -> str:
        """A step got no answer in all its attempts.

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
