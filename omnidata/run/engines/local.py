"""Calls in processes that may be lost: one hostile file costs its own answer and nothing else.

`concurrent.futures` gives up every call when one process dies and cannot end a call that hangs.
`pebble` can, but its processes share one pipe: it waits for ever for a call whose process ends with
exit code 0, and gives up every call when a process dies between two. Here a process is replaced,
and the call that it died of is `Lost`: if it dies again while nothing else runs, for it may have
been ended from outside, as where memory is short.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from omnidata.errors import PlatformError, StoreError

Item = TypeVar("Item")
Result = TypeVar("Result")

_SPAWN = get_context("spawn")  # a fork of a process with threads (progress bars, Arrow) may hang
_READY = "ready"
_LONGEST_WAIT_S = 3600.0  # what the system takes for a timeout has an end


@dataclass(frozen=True, slots=True)
class Lost:
    """A call without an answer.

    Attributes:
        timed_out: True where the process was ended because the time was up, False where it died.
        why: in words.
    """

    timed_out: bool
    why: str


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def each(
    function: Callable[[Item], Result], items: Sequence[Item], *, workers: int, limit_s: float
) -> Iterator[Result | Lost]:
    """Call a function on every item, in parallel; answers in the order of the items.

    Args:
        function: of a module, so that another process can import it; it raises nothing but
            `StoreError`, which ends all calls.
        items: arguments, picklable.
        workers: processes, one at least.
        limit_s: seconds that one call may take; may be infinite.

    Raises:
        PlatformError: a process ends before it can take a call.
        StoreError: a call raised it.
    """
    crew: list[_Worker[Item, Result]] = []
    done: dict[int, Result | Lost] = {}
    following, wanted = 0, 0
    again: list[int] = []  # calls whose process died; the first of them may be running
    alone = False  # whether it is
    try:
        for _ in range(min(workers, len(items))):
            crew.append(_Worker(function, limit_s))
        while wanted < len(items):
            if again and not alone and all(worker.number is None for worker in crew):
                crew[-1].give(again[0], items[again[0]])  # the newest has done nothing yet
                alone = True
            for worker in crew:
                if worker.number is None and following < len(items) and not again:
                    worker.give(following, items[following])
                    following += 1
            _wait(crew)
            for worker in tuple(crew):
                number, answer = worker.number, worker.answer()
                if number is None or answer is None:
                    continue
                if isinstance(answer.value, StoreError):
                    raise answer.value
                lost = answer.value if isinstance(answer.value, Lost) else None
                if lost and not lost.timed_out and not alone:
                    again.append(number)
                else:
                    done[number] = answer.value
                    again, alone = again[alone:], False
                if lost:
                    crew.remove(worker)
                    worker.end()
                    if again or following < len(items):
                        crew.append(_Worker(function, limit_s))
            while wanted in done:
                yield done.pop(wanted)
                wanted += 1
    finally:
        for worker in crew:
            worker.end()


@dataclass(frozen=True, slots=True)
class _Answer(Generic[Result]):
    value: Result | Lost


class _Worker(Generic[Item, Result]):
    """A process and the call that it is busy with."""

    def __init__(self, function: Callable[[Item], Result], limit_s: float) -> None:
        self.number: int | None = None
        self.deadline: float | None = None
        self.pipe, theirs = _SPAWN.Pipe()
        self._limit_s = limit_s
        self._ready = False
        self._process = _SPAWN.Process(target=_work, args=(function, theirs), daemon=True)
        with _no_interrupt():
            self._process.start()
        theirs.close()  # or the end of the process would not be seen

    def give(self, number: int, item: Item) -> None:
        self.number = number
        with suppress(OSError):  # dead already: `answer` will see it
            self.pipe.send(item)
        self._start_clock()

    def _start_clock(self) -> None:
        """From when the process can work: starting one takes as long as it takes."""
        if self._ready and self.number is not None:
            self.deadline = time.monotonic() + self._limit_s

    def answer(self) -> _Answer[Result] | None:
        """What came of the call; None while it goes on."""
        if self.number is None:
            return None
        if self.pipe.poll():
            try:
                value = self.pipe.recv()
            except (EOFError, OSError):
                return _Answer(self._death())
            if not self._ready:
                self._ready = True
                self._start_clock()
                return None
            self.number = self.deadline = None
            return _Answer(value)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return _Answer(Lost(True, f"there is no end after {self._limit_s:g} s"))
        return None

    def _death(self) -> Lost:
        self._process.join()
        code = self._process.exitcode or 0
        why = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if not self._ready:
            raise PlatformError(
                f"a worker process ended before it began ({why})",
                expected="a main module that can be imported by other processes",
                remedy='in a script, call from below `if __name__ == "__main__":`',
            )
        return Lost(False, f"the process at work on it ended ({why})")

    def end(self) -> None:
        """At once: nothing that the process holds is worth keeping."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self.pipe.close()


def _wait(crew: Sequence[_Worker[Any, Any]]) -> None:
    """Sleep until a process has something to say, or the time of one is up."""
    busy = [worker for worker in crew if worker.number is not None]
    deadlines = [worker.deadline for worker in busy if worker.deadline is not None]
    left = max(0.0, min(deadlines) - time.monotonic()) if deadlines else _LONGEST_WAIT_S
    wait([worker.pipe for worker in busy], timeout=min(left, _LONGEST_WAIT_S))


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Ctrl-C is for the parent: a child that is started here never hears of it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # or the first `start` does it, and lets the signal through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(function: Callable[[Any], Any], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where `_no_interrupt` can do nothing
    with suppress(EOFError, OSError):  # the parent is gone
        pipe.send(_READY)
        while True:
            item = pipe.recv()
            try:
                answer = function(item)
            except StoreError as error:
                answer = error
            pipe.send(answer)
