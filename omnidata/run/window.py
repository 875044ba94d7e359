"""How many requests are under way: fewer when the model asks for fewer, then slowly more again."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

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
        """All places are free."""
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
