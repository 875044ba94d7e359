"""Where the time of a run goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Meter:
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
        """Book the time since the last change of what is under way."""
        now = time.perf_counter()
        passed, self._since = now - self._since, now
        if self._under_way:
            self.model_s += passed
            self.in_flight_s += passed * self._under_way
        elif self._waiting:
            self.media_wait_s += passed

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A request is under way."""
        self._turn()
        self._under_way += 1
        try:
            yield
        finally:
            self._turn()
            self._under_way -= 1

    @contextmanager
    def waiting_for_media(self) -> Iterator[None]:
        """A sender has nothing to send."""
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
        """A request waits before it is sent again."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.pause_s += time.perf_counter() - began

    def timings(self) -> dict[str, float]:
        """The stages, for `run.json`."""
        return {
            name: getattr(self, name)
            for name in ("media_s", "media_wait_s", "model_s", "in_flight_s", "disk_s", "pause_s")
        }
