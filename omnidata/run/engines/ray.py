"""Ray: the cluster that work is done on, and its workers, which may die.

Ray places workers and reports their deaths. It retries nothing, because its retries would repeat
paid calls unseen.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import math
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from omnidata import remote
from omnidata.errors import OmnidataError, PlatformError, RunError, UsageError, plural
from omnidata.remote import CACHE_VARIABLE, cache_folder
from omnidata.run.engines import Cluster
from omnidata.run.engines.local import Answers, Died, cores

_LOOK_S = 0.1
_REACHED_S = 5.0
_PAUSE_S = 1.0
_CONNECTED_S = 5.0
SEEN_S = 60.0
"""Seconds within which a network disk shows the files that another machine wrote."""
_FUTILE = 10
"""So many workers die in a row without an answer, and the cluster is at fault: more than it takes
to isolate a step that kills."""
_FUTILE_OPENINGS = 3
"""The same where the last one died before it could take a call."""
_LEAST_BYTES = 4 * 2**30
"""Of the address space of a process: a driver maps its libraries, and Ray's store."""


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
        ray = _import_ray()
        _wait_for_abandoned()
        if ray.is_initialized():
            yield ray
            return
        before = _children()
        start = _Start(ray, _settings(cluster))
        try:
            _wait_for(start.begun, cluster.address)
            handle_again()  # Ray puts up a handler of its own, which ends the process with a dump
            yield ray
        finally:
            if _node(ray):  # it is about to be connected, and would crash
                wait([start.begun], _CONNECTED_S)
            if start.begun.done():
                _shut_down(ray)
                start.is_over.set()
            else:
                start.abandon()
                atexit.unregister(ray.shutdown)
                atexit.register(_kill_children, before)


def _import_ray() -> Any:
    """Import Ray in a thread: after Ctrl-C within the import, no later call could import it."""
    imported = Future[Any]()

    def run() -> None:
        try:
            imported.set_result(import_module("ray"))
        except Exception as error:
            imported.set_exception(error)

    threading.Thread(target=run, name="omnidata-ray-import", daemon=True).start()
    try:
        return imported.result()
    except ImportError as error:
        raise PlatformError(
            f"Ray cannot be loaded: {error}",
            where="--engine ray",
            expected="the extra `ray`",
            remedy="pip install 'omnidata[ray]'",
        ) from None


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


def _settings(cluster: Cluster) -> dict[str, Any]:
    settings: dict[str, Any] = {"address": cluster.address}
    if cluster.address == "local":
        # Ray's own tasks need no core, but a worker without one would wait for ever.
        wanted = (cluster.workers or 1) * cluster.cpus_per_worker
        settings |= {"num_cpus": max(cores(), math.ceil(wanted)), "include_dashboard": False}
        settings |= _within_memory()
    else:
        _check_address(cluster.address)
    return settings


class _Start:
    """A start of Ray in a thread, because in this one it would put off Ctrl-C for seconds.

    Attributes:
        begun: is done when Ray runs, or cannot be started.
        is_over: to be set when Ray has ended, since the kernel ends its processes together with the
            thread.
        ended: is set when the thread ends. Python 3.11 takes a thread for ended if Ctrl-C stops
            its `join`.
    """

    def __init__(self, ray: Any, settings: dict[str, Any]) -> None:
        self.begun, self.is_over, self.ended = Future[None](), threading.Event(), threading.Event()
        self._ray, self._settings, self._is_abandoned = ray, settings, False
        threading.Thread(target=self._live, name="omnidata-ray", daemon=True).start()

    def _live(self) -> None:
        try:
            self._ray.init(**self._settings, log_to_driver=False, logging_level=logging.ERROR)
            self.begun.set_result(None)
        except Exception as error:
            self.begun.set_exception(error)
        self.is_over.wait()
        if self._is_abandoned:
            _shut_down(self._ray)
        self.ended.set()

    def abandon(self) -> None:
        """Let the thread end Ray as soon as it runs."""
        self._is_abandoned = True
        self.is_over.set()
        _ABANDONED.append(self)


_ABANDONED: list[_Start] = []
"""Interrupted starts, which cannot be stopped."""


def _wait_for_abandoned() -> None:
    """Wait until interrupted starts have ended: Ray cannot be started twice in a process."""
    while _ABANDONED:
        _ABANDONED[-1].ended.wait()
        _ABANDONED.pop()


def _wait_for(begun: Future[None], address: str) -> None:
    try:
        begun.result()
    except Exception as error:
        raise UsageError(
            f"the cluster cannot be reached: {str(error).strip().splitlines()[0]}",
            where=f"--address {address}",
            expected="a running cluster of the same versions of Ray and Python",
            remedy="run `ray status` on this machine; docs/cluster.md has an example",
        ) from None


def _shut_down(ray: Any) -> None:
    # The autoscaler reports its end to a server that `shutdown` ends before it, and would be waited
    # for.
    with suppress(Exception):
        _node(ray).kill_monitor(check_alive=False)
    ray.shutdown()


def _node(ray: Any) -> Any:
    """Return Ray's processes, once they run; there is no public way to them."""
    return getattr(ray._private.worker, "_global_node", None)


def _children() -> set[Any]:
    import psutil  # type: ignore[import-untyped]  # Ray brings it, without types

    return set(psutil.Process().children(recursive=True))


def _kill_children(before: set[Any]) -> None:
    for process in _children() - before:
        with suppress(Exception):  # it has ended
            process.kill()


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
    """A process of the cluster, with one call at a time.

    Attributes:
        name: with the machine once it has opened, for messages.
        actor: Ray's handle.
        placed: Ray's answer once the process runs.
        call: the call that it is busy with; None if it is free.
        task: the `task` of that call; None while the worker opens.
    """

    name: str
    actor: Any
    placed: Any
    call: Any
    task: Any = None


class Crew:
    """Workers of one kind; `fill` replaces those that died.

    Args:
        ray: the library, connected.
        cluster: the machines, and the cores and GPUs of each worker.
        kind: the class of the workers, with async methods: `open`, the first call, which returns
            the machine and a result; and `work`.
        arguments: of its constructor.
        from_store: whether workers read data on a store, each machine into its own cache.

    Attributes:
        opening: arguments of `open`.
        workers: all that have not died, including those that are opening.
        deaths: workers that died since the last answer. The owner resets it on other progress.
    """

    def __init__(
        self, ray: Any, cluster: Cluster, kind: type, *arguments: Any, from_store: bool = False
    ) -> None:
        self._ray, self._cluster = ray, cluster
        self._kind = ray.remote(kind).options(
            num_cpus=cluster.cpus_per_worker,
            num_gpus=cluster.gpus_per_worker,
            runtime_env={"env_vars": _environment(from_store=from_store)},
        )
        self._arguments = [ray.put(argument) for argument in arguments]
        self._numbers = count(1)
        self._pause_until = 0.0
        self._placed_at = time.monotonic()
        self._opened: Any = None
        self.opening: tuple[Any, ...] = ()
        self.workers: list[Worker] = []
        self.deaths = 0

    def worker_count(self, tasks: int) -> int:
        """Return how many workers to use for so many tasks: one more than fit now, unless given."""
        free, cluster = self._ray.available_resources(), self._cluster
        shares = [
            free.get(kind, 0.0) / each
            for kind, each in (("CPU", cluster.cpus_per_worker), ("GPU", cluster.gpus_per_worker))
            if each
        ]
        return min(cluster.workers or max(1, int(min(shares, default=1))) + 1, tasks)

    @property
    def free(self) -> list[Worker]:
        """Workers that have opened and have nothing to do."""
        return [worker for worker in self.workers if worker.call is None]

    @property
    def busy(self) -> list[Worker]:
        """Workers that have opened and have something to do."""
        return [worker for worker in self.workers if worker.task is not None]

    def open_first(self, *opening: Any) -> Any:
        """Start a worker, and return the result of its `open`.

        Raises:
            OmnidataError: it cannot open or is not placed, or workers die again and again.
        """
        self.opening = opening
        while not self.free:
            self.fill(1)
            self.outcomes()
        return self._opened

    def fill(self, wanted: int) -> None:
        """Start the missing workers, without waiting until they have opened.

        None is started for a while after one could not open.

        Raises:
            RunError: a cluster of this machine alone has too few cores or GPUs.
        """
        if len(self.workers) >= wanted or time.monotonic() < self._pause_until:
            return
        has, cluster = self._ray.cluster_resources(), self._cluster
        is_short = has.get("CPU", 0) < cluster.cpus_per_worker
        is_short |= has.get("GPU", 0) < cluster.gpus_per_worker
        if cluster.address == "local" and is_short:
            raise self._not_placed()
        while len(self.workers) < wanted:
            actor = self._kind.remote(*self._arguments)
            placed, opening = actor.__ray_ready__.remote(), actor.open.remote(*self.opening)
            self.workers.append(Worker(f"worker {next(self._numbers)}", actor, placed, opening))

    def _not_placed(self) -> RunError:
        cluster, has = self._cluster, self._ray.cluster_resources()
        wanted = _amount(cluster.cpus_per_worker, "core")
        if cluster.gpus_per_worker:
            wanted += f" and {_amount(cluster.gpus_per_worker, 'GPU')}"
        is_local = cluster.address == "local"
        return RunError(
            f"no machine gave a worker its {wanted}"
            + ("" if is_local else f" within {cluster.wait_s:g} s"),
            where=f"--address {cluster.address}",
            expected=f"free resources; the cluster has {has.get('CPU', 0):g} cores and "
            f"{has.get('GPU', 0):g} GPUs",
            remedy="ask for less with --cpus-per-worker and --gpus-per-worker, or free resources",
        )

    def give(self, worker: Worker, task: object, *arguments: Any) -> None:
        """Begin a call of `work`; `outcomes` returns the task with its outcome."""
        worker.task, worker.call = task, worker.actor.work.remote(*arguments)

    def outcomes(self) -> list[tuple[Worker, Any, Any]]:
        """Return the calls that have ended: the worker, the task, and a value, an error or `Died`.

        Waits a moment for the first. A worker that died is removed from `workers`.

        Raises:
            OmnidataError: no worker can open or is placed, or many died in a row.
        """
        calls = {worker.call: worker for worker in self.workers if worker.call is not None}
        ready: list[Any] = []
        if calls:
            if self._ray.wait([*calls], timeout=_LOOK_S)[0]:
                ready, _ = self._ray.wait([*calls], num_returns=len(calls), timeout=0)
        else:
            time.sleep(_LOOK_S)
        found = []
        for call in ready:
            worker, outcome = calls[call], self._outcome(call)
            task, worker.task, worker.call = worker.task, None, None
            if isinstance(outcome, Died):
                self._bury(worker, outcome, _FUTILE_OPENINGS if task is None else _FUTILE)
            if task is None:
                self._end_opening(worker, outcome)
                continue
            if not isinstance(outcome, Died | OmnidataError):
                self.deaths = 0
            found.append((worker, task, outcome))
        now, placed = time.monotonic(), [worker.placed for worker in self.workers]
        if ready or (placed and self._ray.wait(placed, timeout=0)[0]):
            self._placed_at = now
        elif now - self._placed_at > self._cluster.wait_s:
            raise self._not_placed()
        return found

    def _bury(self, worker: Worker, died: Died, most: int) -> None:
        self.dismiss(worker)
        self.deaths += 1
        if self.deaths >= most and not self.busy:
            raise RunError(
                f"{plural(self.deaths, 'worker')} died in a row without an answer; the last, "
                f"{worker.name}: {died.why}",
                where=f"--address {self._cluster.address}",
                expected="workers that answer",
                remedy="see Ray's logs on that machine; existing answers are kept",
            )

    def _end_opening(self, worker: Worker, outcome: Any) -> None:
        if isinstance(outcome, Died):
            self._pause_until = time.monotonic() + _PAUSE_S
        elif isinstance(outcome, OmnidataError):
            self.dismiss(worker)
            if not self.workers:
                raise outcome
            # The others go on; later another machine may have capacity.
            self._pause_until = time.monotonic() + self._cluster.wait_s
        else:
            machine_name, self._opened = outcome
            worker.name += f" on {machine_name}"

    def _outcome(self, call: Any) -> Any:
        from ray.exceptions import RayTaskError

        try:
            return self._ray.get(call)
        except RayTaskError as error:
            cause = error.cause
            return cause if isinstance(cause, OmnidataError) else RunError(_reason(error))
        except Exception as error:  # the worker's process, its machine, or the way there
            return Died(_reason(error))

    def dismiss(self, worker: Worker) -> None:
        """End a worker, whatever it does."""
        self.workers.remove(worker)
        with suppress(Exception):
            self._ray.kill(worker.actor)

    def close(self) -> None:
        """End all."""
        for worker in tuple(self.workers):
            self.dismiss(worker)


class Caller:
    """Calls a function on items, in a process of the cluster.

    Args:
        function: as of `each`.
        limit_s: seconds that one call may take.
    """

    def __init__(self, function: Callable[[Any], Any], limit_s: float) -> None:
        self._function, self._limit_s = function, limit_s

    async def open(self, sees: Sequence[Place]) -> tuple[str, None]:
        """Check that this machine sees the files, and return its name.

        Raises:
            OmnidataError: as `check_seen`.
        """
        check_seen(sees)
        return machine(), None

    async def work(self, items: Sequence[bytes]) -> Answers:
        """Call the function on each item, in order, until one is late.

        Args:
            items: pickled.
        """
        self._answers: list[bytes] = []
        self._began = time.monotonic()
        work = asyncio.ensure_future(asyncio.to_thread(self._call, items))
        while not work.done():
            answers = self._answers.copy()
            left = self._began + self._limit_s - time.monotonic()
            if left <= 0:
                return Answers(answers, is_late=True)
            await asyncio.wait([work], timeout=left)
        work.result()
        return Answers(self._answers)

    def _call(self, items: Sequence[bytes]) -> None:
        for item in items:
            self._began = time.monotonic()
            self._answers.append(pickle.dumps(self._function(pickle.loads(item))))


def start_beside(ray: Any, kind: type, *arguments: Any) -> Any:
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
    """Return the first line of Ray's message, without traces of other processes."""
    cause = getattr(error, "cause", None)
    text = str(cause or error).strip()
    return text.splitlines()[0].strip() if text else type(error).__name__
