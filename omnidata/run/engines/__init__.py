"""Where work is done in parallel: processes of this machine that may die, or a cluster of Ray's."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from omnidata.errors import OmnidataError, StoreError, UsageError
from omnidata.run.engines.local import Died, Processes, cores

if TYPE_CHECKING:
    from omnidata.run.engines.ray import Crew

__all__ = ["Cluster", "Lost", "cores", "each"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_WAITING_BYTES = 64 * 1024**2
"""Bytes of answers, with the items that were sent, that may wait for an earlier one."""
_OBJECT_BYTES = 500
"""Bytes that an item and its answer take beside what is sent."""
_CALLS = 16
"""Calls of each worker of a cluster, where there are as many items."""
_ITEMS = 256
"""Items of a call at most."""
_CALL_BYTES = 4 * 1024**2
"""Bytes of the items of a call at most, but for the last one."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster and the workers to start on it.

    Attributes:
        address: "local" starts a cluster on this machine; "auto" uses the cluster that this machine
            is part of; or HOST:PORT.
        workers: number of processes; None = as many as fit now.
        cpus_per_worker: cores per worker.
        gpus_per_worker: GPUs per worker; with 0.5 two workers share one.
        wait_s: seconds to wait for free cores and GPUs before raising an error.
    """

    address: str = "local"
    workers: int | None = None
    cpus_per_worker: float = 1.0
    gpus_per_worker: float = 0.0
    wait_s: float = 120.0

    def __post_init__(self) -> None:
        for flag, value, least in (
            ("--workers", self.workers, 1),
            ("--cpus-per-worker", self.cpus_per_worker, 0),
            ("--gpus-per-worker", self.gpus_per_worker, 0),
        ):
            if value is not None and not least <= value < math.inf:
                raise UsageError(
                    f"{flag} is {value}", expected=f"{least} or more", remedy="leave it out"
                )


@dataclass(frozen=True, slots=True)
class Lost:
    """A call without an answer.

    Attributes:
        timed_out: True if the call exceeded its time limit, False if its process died.
        why: the reason, as a sentence.
    """

    timed_out: bool
    why: str


def each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int | None,
    limit_s: float = math.inf,
    cluster: Cluster | None = None,
    sees: Sequence[Path] = (),
) -> Generator[Result | Lost, None, None]:
    """Call a function on every item in parallel and yield the answers in the order of the items.

    If a process dies, its calls are repeated in another one. A call during which a process dies
    twice is `Lost`.

    Args:
        function: defined in a module, so that other processes can import it; it must not raise
            anything but `StoreError`, which ends all calls.
        items: picklable arguments.
        workers: processes on this machine, None = one per core. With 0, or with 1 and no time
            limit, calls run in this process, where none can be lost. Ignored with `cluster`.
        limit_s: time limit of one call in seconds; may be infinite.
        cluster: the cluster to run on; None for this machine.
        sees: files and folders that every machine of the cluster must be able to read.

    Raises:
        PlatformError: a process ends before it can take a call, or Ray is not installed.
        UsageError: no cluster answers.
        RunError: the cluster is at fault, or one of its machines does not see a path.
    """
    processes = cores() if workers is None else workers
    if not cluster and (not processes or (math.isinf(limit_s) and min(processes, len(items)) == 1)):
        yield from map(function, items)
        return
    with ExitStack() as stack:
        crew: Processes | Crew
        size = 1
        if cluster:
            from omnidata.run.engines.ray import Caller, Crew, Place, connect

            library, places = stack.enter_context(connect(cluster)), [*map(Place.of, sees)]
            from_store = any(place.url for place in places)
            crew = Crew(library, cluster, Caller, function, limit_s, from_store=from_store)
            stack.callback(crew.close)
            crew.open_first(places)
            processes = crew.worker_count(len(items))
            size = min(max(1, len(items) // (_CALLS * max(1, processes))), _ITEMS)
        else:
            crew = stack.enter_context(closing(Processes(function, limit_s)))
        yield from _answers(crew, items, processes, size, limit_s)


def _answers(
    crew: Any, items: Sequence[Any], workers: int, size: int, limit_s: float
) -> Iterator[Any]:
    # A heap of calls, (first, end) of their items: those that are repeated come first.
    calls = [(n, min(n + size, len(items))) for n in range(0, len(items), size)]
    died: set[int] = set()  # items during which a process died while they were alone
    is_answered = False
    backlog = _Backlog()
    while backlog.wanted < len(items):
        if calls:
            crew.fill(min(workers, len(calls) + len(crew.busy)))
        for worker in crew.free:
            if not calls or (backlog.is_full and calls[0][0] >= backlog.wanted + workers * size):
                break
            running = {busy.task[0] for busy in crew.busy}
            if isinstance(crew, Processes) and running and died & {calls[0][0], *running}:
                break  # memory may have been short: the call is repeated while nothing else runs
            first, end = heappop(calls)
            contents: list[bytes] = []
            while first + len(contents) < end and sum(map(len, contents)) <= _CALL_BYTES:
                contents.append(pickle.dumps(items[first + len(contents)]))
            if first + len(contents) < end:
                heappush(calls, (first + len(contents), end))
            backlog.sent.update(enumerate(map(len, contents), first))
            crew.give(worker, range(first, first + len(contents)), contents)
        for worker, numbers, outcome in crew.outcomes():
            if isinstance(outcome, OmnidataError):
                raise outcome
            if isinstance(outcome, Died) and {*numbers} <= died:
                backlog.put(numbers[0], Lost(False, f"the worker process ended ({outcome.why})"))
                if is_answered:  # the item is at fault, not the cluster
                    crew.deaths = 0
            elif isinstance(outcome, Died):  # any item of the call may have killed it
                died.update(numbers if len(numbers) == 1 else ())
                for number in numbers:
                    heappush(calls, (number, number + 1))
            else:
                is_answered = True
                for number, content in zip(numbers, outcome.values, strict=False):
                    backlog.put(number, pickle.loads(content), len(content))
                rest = numbers[len(outcome.values) :]
                if outcome.is_late:
                    crew.dismiss(worker)
                    backlog.put(rest[0], Lost(True, f"not finished after {limit_s:g} s"))
                    rest = rest[1:]
                if rest:
                    heappush(calls, (rest.start, rest.stop))
        yield from backlog


class _Backlog:
    """Answers that wait for an earlier one; while they are large, no new item is begun.

    Bytes are counted, because items differ: after one long film a thousand pictures may well wait,
    and a thousand chunks of answers may not.

    Attributes:
        wanted: the number of the item whose answer is next.
        sent: bytes of the items whose answer has not come.
    """

    def __init__(self) -> None:
        self.wanted = 0
        self.sent: dict[int, int] = {}
        self._answers: dict[int, tuple[Any, int]] = {}
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self._bytes >= _WAITING_BYTES

    def put(self, number: int, answer: Any, size: int = 0) -> None:
        """Add the answer to an item; raise it if it is a `StoreError`."""
        if isinstance(answer, StoreError):
            raise answer
        size += self.sent.pop(number) + _OBJECT_BYTES
        self._answers[number] = answer, size
        self._bytes += size

    def __iter__(self) -> Iterator[Any]:
        while self.wanted in self._answers:
            answer, size = self._answers.pop(self.wanted)
            self._bytes -= size
            self.wanted += 1
            yield answer
