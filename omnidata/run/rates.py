"""How many requests and tokens go out per minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.run.usage import Tokens


class Rates:
    """Waits so that neither rate is exceeded.

    Tokens are known when the answer comes: each request reserves the mean of those before it, and
    the difference is settled afterwards. Before the first answer requests go out one at a time.

    Args:
        requests_per_minute: None = any number.
        tokens_per_minute: of prompt and answer together; None = any number.
    """

    def __init__(self, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        """No request has been sent."""
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
