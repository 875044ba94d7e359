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
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, TypeVar

from omnidata.errors import PlatformError, StoreError

Item = TypeVar("Item")
Result = TypeVar("Result")

_SPAWN = get_context("spawn")  # a fork of a process with threads (progress bars, Arrow) may hang
_READY = "ready"
_LONGEST_WAIT_S = 3600.0  # what the system takes for a timeout has an end
_OF_OBJECTS = 500  # bytes that an item and its answer take beside what is sent


class Backlog(Generic[Result]):
    """Answers that wait for an earlier one; while they are much, nothing new is given out.

    Bytes are counted, for items differ: after one long film a thousand pictures may well wait, and
    a thousand chunks of answers may not.

    Attributes:
        wanted: the number of the item whose answer is next.
    """

    MOST = 64 * 1024**2
    """Bytes of answers, with the items that were sent, that may wait."""

    def __init__(self) -> None:
        self.wanted = 0
        self._held: dict[int, tuple[Result | Lost, int]] = {}
        self._bytes = 0

    def put(self, number: int, answer: Result | Lost, size: int) -> None:
        """Take an answer.

        Args:
            number: of its item.
            answer: to that.
            size: bytes of both.
        """
        size += _OF_OBJECTS
        self._held[number] = answer, size
        self._bytes += size

    def takes(self, number: int, beside: int) -> bool:
        """Whether an item may be given out.

        Args:
            number: of the item.
            beside: items that may be under way at once, however large.
        """
        return self._bytes < self.MOST or number < self.wanted + beside

    def __iter__(self) -> Iterator[Result | Lost]:
        while self.wanted in self._held:
            answer, size = self._held.pop(self.wanted)
            self._bytes -= size
            yield answer
            self.wanted += 1


@dataclass(frozen=True, slots=True)
class Lost:
    """A call without an answer.

    Attributes:
        timed_out: True if the call exceeded its time limit, False if its process died.
        why: the reason, as a sentence.
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
    done: Backlog[Result] = Backlog()
    following = 0
    again: list[int] = []  # calls whose process died; the first of them may be running
    alone = False  # whether it is
    try:
        for _ in range(min(workers, len(items))):
            crew.append(_Worker(function, limit_s))
        while done.wanted < len(items):
            if again and not alone and all(worker.number is None for worker in crew):
                crew[-1].give(again[0], items[again[0]])  # the newest has done nothing yet
                alone = True
            for worker in crew:
                if worker.number is not None or again or following == len(items):
                    continue
                if done.takes(following, workers):
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
                    done.put(number, answer.value, answer.size)
                    again, alone = again[alone:], False
                if lost:
                    crew.remove(worker)
                    worker.end()
                    if again or following < len(items):
                        crew.append(_Worker(function, limit_s))
            yield from done
    finally:
        for worker in crew:
            worker.end()


@dataclass(frozen=True, slots=True)
class _Answer(Generic[Result]):
    value: Result | Lost
    size: int  # bytes of the item and the answer, as they were sent


class _Worker(Generic[Item, Result]):
    def __init__(self, function: Callable[[Item], Result], limit_s: float) -> None:
        self.number: int | None = None
        self.deadline: float | None = None
        self.pipe, theirs = _SPAWN.Pipe()
        self._limit_s = limit_s
        self._ready = False
        self._sent = 0
        self._process = _SPAWN.Process(target=_work, args=(function, theirs), daemon=True)
        with _no_interrupt():
            self._process.start()
        theirs.close()  # or the end of the process would not be seen

    def give(self, number: int, item: Item) -> None:
        self.number = number
        content = ForkingPickler.dumps(item)
        self._sent = len(content)
        with suppress(OSError):  # dead already: `answer` will see it
            self.pipe.send_bytes(content)
        self._start_clock()

    def _start_clock(self) -> None:
        """Measure from when the process can work: starting takes long."""
        if self._ready and self.number is not None:
            self.deadline = time.monotonic() + self._limit_s

    def answer(self) -> _Answer[Result] | None:
        if self.number is None:
            return None
        if self.pipe.poll():
            try:
                content = self.pipe.recv_bytes()
            except (EOFError, OSError):
                return _Answer(self._death(), self._sent)
            if not self._ready:
                self._ready = True
                self._start_clock()
                return None
            self.number = self.deadline = None
            return _Answer(ForkingPickler.loads(content), self._sent + len(content))
        if self.deadline is not None and time.monotonic() >= self.deadline:
            late = Lost(True, f"not finished after {self._limit_s:g} s")
            return _Answer(late, self._sent)
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
        return Lost(False, f"the worker process ended ({why})")

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self.pipe.close()


def _wait(crew: Sequence[_Worker[Any, Any]]) -> None:
    busy = [worker for worker in crew if worker.number is not None]
    deadlines = [worker.deadline for worker in busy if worker.deadline is not None]
    left = max(0.0, min(deadlines) - time.monotonic()) if deadlines else _LONGEST_WAIT_S
    wait([worker.pipe for worker in busy], timeout=min(left, _LONGEST_WAIT_S))


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Leave Ctrl-C to the parent process."""
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
