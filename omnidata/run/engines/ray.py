"""Ray: the cluster that work is done on, and its workers, which may die.

Ray places workers and reports their deaths. It retries nothing, because its retries would repeat
paid calls unseen.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import pickle
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Generic, TypeVar

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from omnidata import remote
from omnidata.errors import OmnidataError, PlatformError, RunError, UsageError, plural
from omnidata.remote import CACHE_VARIABLE, cache_folder
from omnidata.run.engines.local import Backlog, Lost, cores

_log = logging.getLogger(__name__)
Item = TypeVar("Item")
Result = TypeVar("Result")

_LOOK_S = 0.1
_REACHED_S = 5.0
_AGAIN_S = 1.0
SEEN_S = 60.0
"""Seconds within which a network disk shows the files that another machine wrote."""
FUTILE = 3
"""So many workers in a row that die without an answer, and the cluster is at fault."""
_LEAST_BYTES = 4 * 2**30
"""Of the address space of a process: a driver maps its libraries, and Ray's store."""
_SLOW_S = 30.0
_SLOW = "Ray has not started after %g s; it gives up after some minutes (Ctrl-C ends it)"
_DEAF_S = 60.0
"""A worker that does not answer "are you there?" for so long is given up."""


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


@contextmanager
def connect(cluster: Cluster) -> Iterator[Any]:
    """Connect to a cluster, and yield the library `ray`; a cluster started here ends after it.

    Raises:
        PlatformError: Ray is not installed.
        UsageError: nothing answers at the address, or a limit on memory is too low for Ray.
        KeyboardInterrupt: on SIGTERM, where nothing else handles it.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell others of runs
    with _terminable() as handle_again:
        try:
            import ray
        except ImportError as error:
            raise PlatformError(
                f"Ray cannot be loaded: {error}",
                where="--engine ray",
                expected="the extra `ray`",
                remedy="pip install 'omnidata[ray]'",
            ) from None
        if ray.is_initialized():
            yield ray
            return
        _start(ray, cluster)
        handle_again()  # Ray puts up a handler of its own, which ends the process with a dump
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def _terminable() -> Iterator[Callable[[], None]]:
    """Treat SIGTERM, which batch systems send, as Ctrl-C."""
    before = signal.getsignal(signal.SIGTERM) or signal.SIG_DFL  # None: one that C put up
    in_main = threading.current_thread() is threading.main_thread()

    def handle() -> None:
        if in_main:
            signal.signal(signal.SIGTERM, _interrupt if before is signal.SIG_DFL else before)

    handle()
    try:
        yield handle
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _start(ray: Any, cluster: Cluster) -> None:
    settings: dict[str, Any] = {"address": cluster.address}
    if cluster.address == "local":
        # Ray's own tasks need no core, but a worker without one would wait for ever.
        wanted = (cluster.workers or 1) * cluster.cpus_per_worker
        settings |= {"num_cpus": max(cores(), math.ceil(wanted)), "include_dashboard": False}
        settings |= _within_memory()
    else:
        _check_address(cluster.address)
    slow = threading.Timer(_SLOW_S, _log.warning, [_SLOW, _SLOW_S])
    slow.daemon = True
    slow.start()
    try:
        ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
    except SystemExit:  # Ray's own handler of SIGTERM
        ray.shutdown()
        raise KeyboardInterrupt from None
    except Exception as error:
        raise UsageError(
            f"the cluster cannot be reached: {str(error).strip().splitlines()[0]}",
            where=f"--address {cluster.address}",
            expected="a running cluster of the same versions of Ray and Python",
            remedy="run `ray status` on this machine; docs/cluster.md has an example",
        ) from None
    finally:
        slow.cancel()


def _within_memory() -> dict[str, int]:
    """Return Ray's memory settings below a limit; Ray itself would start and hang."""
    if resource is None:
        return {}
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return {}
    if limit < _LEAST_BYTES:
        raise UsageError(
            f"each process may have {limit / 2**30:.1f} GiB of memory, and Ray needs more to start",
            where="--engine ray",
            expected=f"{_LEAST_BYTES / 2**30:g} GiB at least, as `ulimit -v` shows it",
            remedy="raise the limit (ulimit -v unlimited), or leave --engine out",
        )
    return {"object_store_memory": limit // 32}


def _check_address(address: str) -> None:
    """Refuse an address where nothing listens; Ray itself would wait for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(
            "this is not an address of a cluster",
            where=f"--address {address}",
            expected="auto, local, or HOST:PORT as `ray start --head` prints it",
        )
    try:
        socket.create_connection((host, int(port)), _REACHED_S).close()
    except OSError as error:
        raise UsageError(
            f"nothing answers there ({error.strerror or error})",
            where=f"--address {address}",
            expected="the address that `ray start --head` printed",
            remedy="start the cluster, or open its port to this machine",
        ) from None


@dataclass(eq=False, slots=True)
class Worker:
    """A process of the cluster.

    Attributes:
        name: with the machine once it is placed, for messages.
        actor: Ray's handle.
        since: when it was started (`time.monotonic()`).
        call: the call that it is busy with; None if it is free.
        beat: an unanswered call of `here`; None if there is none.
        heard: when it last answered one (`time.monotonic()`); None before it is placed.
    """

    name: str
    actor: Any
    since: float
    call: Any = None
    beat: Any = None
    heard: float | None = None


@dataclass(frozen=True, slots=True)
class Died:
    """The outcome of a call whose worker died or was given up."""

    why: str


class Crew:
    """Workers of one kind, each with one call at a time; `fill` replaces those that died.

    Args:
        ray: the library, connected.
        cluster: the machines, and the cores and GPUs of each worker.
        kind: the class of the workers; it has the async methods `here`, which returns the machine,
            and `open`, the first call.
        arguments: of its constructor.
        from_store: whether workers read data on a store, each machine into its own cache.

    Attributes:
        workers: all that have not died, also those that are still opening.
    """

    def __init__(
        self, ray: Any, cluster: Cluster, kind: type, *arguments: Any, from_store: bool = False
    ) -> None:
        self._ray, self._cluster = ray, cluster
        self._kind = ray.remote(kind).options(
            num_cpus=cluster.cpus_per_worker,
            num_gpus=cluster.gpus_per_worker,
            max_restarts=0,  # a row that kills its worker would do so for ever
            max_task_retries=0,
            max_concurrency=16,
            runtime_env={"env_vars": _environment(from_store=from_store)},
        )
        self._arguments = [ray.put(argument) for argument in arguments]
        self._hired = self._futile = 0
        self._opening: set[Worker] = set()
        self._shy_until = 0.0
        self.workers: list[Worker] = []

    @property
    def room(self) -> int:
        """The number of workers that fit now, at least one."""
        free = self._ray.available_resources()
        shares = [
            free.get(kind, 0.0) / each
            for kind, each in (
                ("CPU", self._cluster.cpus_per_worker),
                ("GPU", self._cluster.gpus_per_worker),
            )
            if each
        ]
        return max(1, int(min(shares, default=1)))

    @property
    def free(self) -> list[Worker]:
        """Workers that have opened and have nothing to do."""
        return [worker for worker in self.workers if worker.call is None]

    @property
    def busy(self) -> bool:
        """Whether a worker that has opened has something to do."""
        return any(w.call is not None for w in self.workers if w not in self._opening)

    def first(self, *arguments: Any) -> Any:
        """Start a worker, and return the result of its `open`.

        Args:
            arguments: of `open`.

        Raises:
            OmnidataError: it cannot open or is not placed, or workers die again and again.
        """
        while True:
            self.fill(1, *arguments)
            for worker, outcome in self._wait_for_calls(_LOOK_S):
                if self._finish_opening(worker, outcome):
                    return outcome

    def fill(self, wanted: int, *arguments: Any) -> None:
        """Start the missing workers, each with a call of `open`, without waiting for them.

        After others died or were not placed, none is started for a while.

        Raises:
            RunError: a cluster of this machine alone has too few cores or GPUs.
        """
        lacking = wanted - len(self.workers)
        if lacking <= 0 or time.monotonic() < self._shy_until:
            return
        if self._lacks_here():
            raise self._no_room()
        for _ in range(lacking):
            actor = self._kind.remote(*self._arguments)
            self._hired += 1
            worker = Worker(f"worker {self._hired}", actor, time.monotonic())
            worker.beat = actor.here.remote()
            self.give(worker, "open", *arguments)
            self._opening.add(worker)
            self.workers.append(worker)

    def _lacks_here(self) -> bool:
        has, cluster = self._ray.cluster_resources(), self._cluster
        return cluster.address == "local" and (
            has.get("CPU", 0) < cluster.cpus_per_worker
            or has.get("GPU", 0) < cluster.gpus_per_worker
        )

    def _no_room(self) -> RunError:
        wanted = _amount(self._cluster.cpus_per_worker, "core")
        if self._cluster.gpus_per_worker:
            wanted += f" and {_amount(self._cluster.gpus_per_worker, 'GPU')}"
        has = self._ray.cluster_resources()
        waited = "" if self._lacks_here() else f" within {self._cluster.wait_s:g} s"
        return RunError(
            f"no machine gave a worker its {wanted}{waited}",
            where=f"--address {self._cluster.address}",
            expected=f"free resources; the cluster has {has.get('CPU', 0):g} cores and "
            f"{has.get('GPU', 0):g} GPUs",
            remedy="ask for less with --cpus-per-worker and --gpus-per-worker, or free resources",
        )

    def give(self, worker: Worker, method: str, *arguments: Any) -> None:
        """Begin a call."""
        worker.call = getattr(worker.actor, method).remote(*arguments)
        if worker.heard is not None:
            worker.heard = time.monotonic()

    def finished_calls(self) -> list[tuple[Worker, Any]]:
        """Return the calls that have ended, each with its outcome: a value, an error or `Died`.

        Waits a moment for the first. A worker that died is removed from `workers`.

        Raises:
            OmnidataError: no worker can open.
        """
        found = []
        for worker, outcome in self._wait_for_calls(_LOOK_S):
            if worker in self._opening:
                self._finish_opening(worker, outcome)
            else:
                found.append((worker, outcome))
        return found

    def _finish_opening(self, worker: Worker, outcome: Any) -> bool:
        self._opening.discard(worker)
        if isinstance(outcome, Died):
            self._shy_until = time.monotonic() + _AGAIN_S
            self.count_death(worker, outcome)
        elif isinstance(outcome, OmnidataError):
            if worker in self.workers:
                self.dismiss(worker)
            if not self.workers:
                raise outcome
            # The others go on; later there may be room for more.
            self._shy_until = time.monotonic() + self._cluster.wait_s
        else:
            return True
        return False

    def count_death(self, worker: Worker, died: Died, most: int = FUTILE) -> None:
        """Count a worker that died without an answer.

        Raises:
            RunError: so many died in a row, and no other worker is busy.
        """
        self._futile += 1
        if self._futile >= most and not self.busy:
            raise RunError(
                f"{plural(self._futile, 'worker')} died in a row without an answer; the last, "
                f"{worker.name}: {died.why}",
                where=f"--address {self._cluster.address}",
                expected="workers that answer",
                remedy="see Ray's logs on that machine; existing answers are kept",
            )

    def reset_deaths(self) -> None:
        """Note that an answer came: the next death is the first in a row."""
        self._futile = 0

    def _wait_for_calls(self, timeout_s: float) -> list[tuple[Worker, Any]]:
        busy = {worker.call: worker for worker in self.workers if worker.call is not None}
        found: list[tuple[Worker, Any]] = []
        if busy:
            ready, _ = self._ray.wait([*busy], num_returns=1, timeout=timeout_s)
            if ready:
                ready, _ = self._ray.wait([*busy], num_returns=len(busy), timeout=0)
            for call in ready:
                worker, worker.call = (worker := busy[call]), None
                outcome = self._outcome(call)
                if isinstance(outcome, Died):
                    self.workers.remove(worker)
                found.append((worker, outcome))
        else:
            time.sleep(timeout_s)
        return found + self._unresponsive()

    def _outcome(self, call: Any) -> Any:
        from ray.exceptions import RayTaskError

        try:
            return self._ray.get(call)
        except RayTaskError as error:
            cause = error.cause
            return cause if isinstance(cause, OmnidataError) else RunError(_reason(error))
        except Exception as error:  # the worker's process, its machine, or the way there
            return Died(_reason(error))

    def _unresponsive(self) -> list[tuple[Worker, Any]]:
        now = time.monotonic()
        found: list[tuple[Worker, Any]] = []
        for worker in tuple(self.workers):
            heard = worker.heard
            if worker.beat is None:
                if worker.call is None or (heard is not None and now - heard < _DEAF_S / 4):
                    continue
                worker.beat = worker.actor.here.remote()
            ready, _ = self._ray.wait([worker.beat], timeout=0)
            if ready:
                with suppress(Exception):  # it died, which the outcome of its call says
                    place = self._ray.get(worker.beat)
                    if heard is None:
                        worker.name += f" on {place}"
                worker.beat, worker.heard = None, now
            elif heard is None and now - worker.since > self._cluster.wait_s:
                self.dismiss(worker)
                found.append((worker, self._no_room()))
            elif heard is not None and now - heard > _DEAF_S:
                self.dismiss(worker)
                found.append((worker, Died(f"it has not answered for {_DEAF_S:g} s")))
        return found

    def dismiss(self, worker: Worker) -> None:
        """End a worker, whatever it does."""
        self.workers.remove(worker)
        with suppress(Exception):
            self._ray.kill(worker.actor)

    def close(self) -> None:
        """End all."""
        for worker in tuple(self.workers):
            self.dismiss(worker)


# Calls of a function on every item, as `omnidata.run.engines.local` makes them here.

_PARTS = 16
"""So many times each worker is given something, where there are as many items."""
_MOST_AT_ONCE = 256
_MOST_BYTES = 4 * 1024**2
"""Of the items of a call, but for the last one."""
_DEADLY = 3
"""How often an item may be alone with a worker that dies."""


@dataclass(frozen=True, slots=True)
class _Answers:
    values: Sequence[bytes]
    late: bool


class Caller:
    """Calls a function on items, in a process of the cluster.

    Args:
        function: as of `each`.
        limit_s: seconds that one call may take.
    """

    def __init__(self, function: Callable[[Any], Any], limit_s: float) -> None:
        self._function, self._limit_s = function, limit_s
        self._values: list[bytes] = []
        self._began = 0.0

    async def here(self) -> str:
        """Return the name of the machine."""
        return machine()

    async def open(self, sees: Sequence[Place]) -> None:
        """Check that this machine sees the files.

        Raises:
            OmnidataError: as `check_seen`.
        """
        check_seen(sees)

    async def call(self, items: Sequence[bytes]) -> _Answers:
        """Call the function on each item, in order, until one is late.

        Args:
            items: pickled.
        """
        self._values, self._began = [], time.monotonic()
        work = asyncio.ensure_future(asyncio.to_thread(self._call, items))
        while not work.done():
            left = max(0.0, self._began + self._limit_s - time.monotonic())
            await asyncio.wait([work], timeout=min(left, _DEAF_S))
            if not work.done() and time.monotonic() >= self._began + self._limit_s:
                return _Answers([*self._values], late=True)
        work.result()
        return _Answers(self._values, late=False)

    def _call(self, items: Sequence[bytes]) -> None:
        for item in items:
            self._began = time.monotonic()
            self._values.append(pickle.dumps(self._function(pickle.loads(item))))


def each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    cluster: Cluster,
    limit_s: float,
    sees: Sequence[Path],
) -> Iterator[Result | Lost]:
    """Call a function on every item, on a cluster; answers in the order of the items.

    A worker that dies costs the calls that it was given, which others make; an item that was alone
    with three workers that died is `Lost`.

    Args:
        function: of a module, so that another process can import it; it must not raise.
        items: arguments, picklable.
        cluster: whose workers call.
        limit_s: seconds that one call may take; may be infinite.
        sees: files and folders that every machine must see.

    Raises:
        PlatformError, UsageError: as `connect`.
        RunError: the cluster is at fault, or a machine does not see a path.
    """
    with connect(cluster) as ray:
        places = [*map(Place.of, sees)]
        from_store = any(place.url for place in places)
        crew = Crew(ray, cluster, Caller, function, limit_s, from_store=from_store)
        try:
            crew.first(places)
            yield from _Calls(crew, cluster, items, limit_s).answers(places)
        finally:
            crew.close()


class _Calls(Generic[Item, Result]):
    def __init__(self, crew: Crew, cluster: Cluster, items: Sequence[Item], limit_s: float) -> None:
        self._crew, self._items, self._limit_s = crew, items, limit_s
        self._wanted = min(cluster.workers or crew.room + 1, len(items))
        size = min(max(1, len(items) // (_PARTS * max(1, self._wanted))), _MOST_AT_ONCE)
        self._size = size
        self._waiting = [  # a heap: what was given out before comes first
            (start, min(start + size, len(items))) for start in range(0, len(items), size)
        ]
        self._busy: dict[Worker, range] = {}
        self._sent: dict[int, int] = {}  # bytes
        self._alone: Counter[int] = Counter()
        self._done: Backlog[Result] = Backlog()
        self._served = False

    def answers(self, sees: Sequence[Place]) -> Iterator[Result | Lost]:
        while self._done.wanted < len(self._items):
            if self._waiting:
                self._crew.fill(min(self._wanted, len(self._waiting) + len(self._busy)), sees)
            for worker in self._crew.free:
                if self._waiting and self._done.takes(
                    self._waiting[0][0], self._wanted * self._size
                ):
                    self._give(worker)
            for worker, outcome in self._crew.finished_calls():
                self._end(worker, outcome)
            yield from self._done

    def _give(self, worker: Worker) -> None:
        start, end = heappop(self._waiting)
        contents: list[bytes] = []
        total = 0
        for number in range(start, end):
            contents.append(content := pickle.dumps(self._items[number]))
            self._sent[number] = len(content)
            total += len(content)
            if total > _MOST_BYTES:
                break
        self._busy[worker] = range(start, start + len(contents))
        self._wait(range(start + len(contents), end))
        self._crew.give(worker, "call", contents)

    def _wait(self, numbers: range) -> None:
        if numbers:
            heappush(self._waiting, (numbers.start, numbers.stop))

    def _put(self, number: int, answer: Result | Lost, size: int = 0) -> None:
        self._done.put(number, answer, self._sent.pop(number) + size)

    def _end(self, worker: Worker, outcome: Any) -> None:
        numbers = self._busy.pop(worker)
        if isinstance(outcome, _Answers):
            self._served = True
            self._crew.reset_deaths()
            for number, value in zip(numbers, outcome.values, strict=False):
                self._put(number, pickle.loads(value), len(value))
            rest = numbers[len(outcome.values) :]
            if outcome.late:
                self._crew.dismiss(worker)
                self._put(rest[0], Lost(True, f"not finished after {self._limit_s:g} s"))
                rest = rest[1:]
            self._wait(rest)
        elif isinstance(outcome, Died):
            self._isolate(worker, outcome, numbers)
        else:
            raise outcome

    def _isolate(self, worker: Worker, died: Died, numbers: range) -> None:
        """Find the item that killed a worker by halving what is left."""
        self._crew.count_death(worker, died, FUTILE + _MOST_AT_ONCE.bit_length())
        if len(numbers) > 1:
            half = len(numbers) // 2
            self._wait(numbers[:half])
            self._wait(numbers[half:])
            return
        self._alone[numbers[0]] += 1
        if self._alone[numbers[0]] < _DEADLY:
            self._wait(numbers)
            return
        self._put(numbers[0], Lost(False, f"the worker process ended ({died.why})"))
        if self._served:  # the item is at fault, not the cluster
            self._crew.reset_deaths()


def beside_us(ray: Any, kind: type, *arguments: Any) -> Any:
    """Start an actor on this machine; it needs no core of its own and ends with this process."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = ray.get_runtime_context().get_node_id()
    options = ray.remote(kind).options(
        num_cpus=0,
        max_concurrency=10_000,
        scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False),
    )
    return options.remote(*arguments)


def _amount(number: float, what: str) -> str:
    return f"{number:g} {what}{'' if number == 1 else 's'}"


def machine() -> str:
    """Return the name of this machine for messages."""
    return socket.gethostname()


def wait_until_seen(path: Path, is_seen: Callable[[], bool]) -> None:
    """Wait until this machine sees a file that another one wrote.

    Args:
        path: of the file, for the message.
        is_seen: returns whether it is there.

    Raises:
        RunError: it is not seen in time.
    """
    until = time.monotonic() + SEEN_S
    while not is_seen():
        if time.monotonic() > until:
            raise RunError(
                f"a worker has written it, and this machine does not see it after {SEEN_S:g} s",
                where=str(path),
                expected="a folder on a disk that all machines share",
                remedy="choose a folder that is the same on every machine",
            )
        time.sleep(_LOOK_S)


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder that all machines need.

    Attributes:
        path: the same on every machine.
        url: of data on a store, which each machine downloads into its own cache; empty where all
            machines share a disk.
        listing: a hash of what the store listed.
    """

    path: Path
    url: str = ""
    listing: str = ""

    @classmethod
    def of(cls, path: Path) -> Place:
        """Return the place of a path on this machine."""
        return cls(path.absolute(), remote.url_of(path), remote.listing_of(path))


def check_seen(places: Iterable[Place]) -> None:
    """Raise an error if this machine lacks a place.

    Raises:
        RunError: a place is missing; the message names this machine.
        OmnidataError: as `omnidata.remote.get`.
    """
    places = tuple(places)
    for url, listing in dict.fromkeys((place.url, place.listing) for place in places if place.url):
        if remote.listing_of(remote.get(url)) != listing:
            raise RunError(
                f"{machine()} finds other objects than the driver has listed",
                where=url,
                expected="data that do not change while they are read",
                remedy="repeat the command: it lists the data again",
            )
    for place in places:
        if not place.path.exists():
            raise RunError(
                f"{machine()} does not see it",
                where=str(place.path),
                expected="data and results on a disk that all machines share",
                remedy="use a path that is the same on every machine",
            )


def _environment(*, from_store: bool) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name.startswith("OMNIDATA_")}
    if from_store:  # paths of media are the driver's
        ours[CACHE_VARIABLE] = os.path.realpath(cache_folder())
    return ours


def _reason(error: BaseException) -> str:
    """Return the last line of Ray's message, without traces of other processes."""
    cause = getattr(error, "cause", None)
    text = str(cause or error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
