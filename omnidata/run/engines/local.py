"""Calls in processes that may be lost: one hostile file costs its own answer and nothing else.

`concurrent.futures` gives up every call when one process dies and cannot end a call that hangs.
`pebble` can, but its processes share one pipe: it waits for ever for a call whose process ends with
exit code 0, and gives up every call when a process dies between two.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from omnidata.errors import PlatformError, StoreError

_SPAWN = get_context("spawn")  # a fork of a process with threads (progress bars, Arrow) may hang
_READY = "ready"
_LONGEST_WAIT_S = 3600.0  # the system limits timeouts


@dataclass(frozen=True, slots=True)
class Answers:
    """The outcome of a call on some items.

    Attributes:
        values: answers to the first of them, pickled.
        is_late: whether the next item exceeded its time limit.
    """

    values: Sequence[bytes]
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Died:
    """The outcome of a call whose process died."""

    why: str


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes:
    """Processes of this machine that call a function on one item at a time.

    Args:
        function: as of `omnidata.run.engines.each`.
        limit_s: time limit of one call in seconds; may be infinite.

    """

    deaths = 0  # not counted here: they never end the work

    def __init__(self, function: Callable[[Any], Any], limit_s: float) -> None:
        self._function, self._limit_s = function, limit_s
        self._workers: list[_Process] = []

    @property
    def free(self) -> list[_Process]:
        """Processes that have nothing to do, the newest first: it has done the least."""
        return [worker for worker in reversed(self._workers) if worker.task is None]

    @property
    def busy(self) -> list[_Process]:
        """Processes that have something to do."""
        return [worker for worker in self._workers if worker.task is not None]

    def fill(self, wanted: int) -> None:
        """Start the missing processes."""
        while len(self._workers) < wanted:
            self._workers.append(_Process(self._function, self._limit_s))

    def give(self, worker: _Process, task: Any, contents: Sequence[bytes]) -> None:
        """Begin a call; `outcomes` returns the task with its outcome."""
        [content] = contents
        worker.give(task, content)

    def outcomes(self) -> list[tuple[_Process, Any, Answers | Died]]:
        """Wait for a call to end, and return those that have ended.

        Raises:
            PlatformError: a process ended before it could take a call.
        """
        left = min(worker.deadline for worker in self.busy) - time.monotonic()
        wait([worker.pipe for worker in self.busy], timeout=min(max(0.0, left), _LONGEST_WAIT_S))
        found: list[tuple[_Process, Any, Answers | Died]] = []
        for worker in self.busy:
            if outcome := worker.outcome():
                found.append((worker, worker.task, outcome))
                worker.task, worker.deadline = None, math.inf
                if isinstance(outcome, Died):
                    self.dismiss(worker)
        return found

    def dismiss(self, worker: _Process) -> None:
        """End a process, whatever it does."""
        self._workers.remove(worker)
        worker.end()

    def close(self) -> None:
        """End all."""
        for worker in tuple(self._workers):
            self.dismiss(worker)


class _Process:
    def __init__(self, function: Callable[[Any], Any], limit_s: float) -> None:
        self.task: Any = None
        self.deadline = math.inf
        self.pipe, theirs = _SPAWN.Pipe()
        self._limit_s, self._is_ready = limit_s, False
        self._process = _SPAWN.Process(target=_work, args=(function, theirs), daemon=True)
        with _no_interrupt():
            self._process.start()
        theirs.close()  # or the end of the process would not be seen

    def give(self, task: Any, content: bytes) -> None:
        self.task = task
        with suppress(OSError):  # dead already: `outcome` will see it
            self.pipe.send_bytes(content)
        self._start_clock()

    def _start_clock(self) -> None:
        """Measure from when the process can work: starting takes long."""
        if self._is_ready:
            self.deadline = time.monotonic() + self._limit_s

    def outcome(self) -> Answers | Died | None:
        if self.pipe.poll():
            try:
                content = self.pipe.recv_bytes()
            except (EOFError, OSError):
                return self._death()
            if self._is_ready:
                return Answers([content])
            self._is_ready = True
            self._start_clock()
        elif time.monotonic() >= self.deadline:
            return Answers([], is_late=True)
        return None

    def _death(self) -> Died:
        self._process.join()
        code = self._process.exitcode or 0
        why = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if not self._is_ready:
            raise PlatformError(
                f"a worker process ended before it began ({why})",
                expected="a main module that can be imported by other processes",
                remedy='in a script, call from below `if __name__ == "__main__":`',
            )
        return Died(why)

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self.pipe.close()


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
