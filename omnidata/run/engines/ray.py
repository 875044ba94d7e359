"""Ray: the cluster that work is done on, and workers there, each of which may die.

Ray finds room for workers and says when one has died. What is kept, asked again and believed is
decided here and in run folders: nothing is retried by Ray, which would repeat paid calls unseen.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from omnidata.errors import OmnidataError, PlatformError, RunError, UsageError
from omnidata.run.engines.local import cores

_REACHED_S = 5.0
_DEAF_S = 60.0
"""A worker that does not answer "are you there?" for so long is given up."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines that Ray has made one of.

    Attributes:
        address: "local" starts one on this machine; "auto" is the one that this machine is part
            of; or HOST:PORT.
        workers: processes; None = as many as have room now.
        cpus_per_worker: cores that each is given.
        gpus_per_worker: GPUs that each is given; 0.5 lets two share one.
        wait_s: seconds after which a worker for which there is no room is an error.
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
def connected(cluster: Cluster) -> Iterator[Any]:
    """The library, with a cluster behind it, which ends with the block if it was started for it.

    Raises:
        PlatformError: Ray is not installed.
        UsageError: nothing answers at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell others of runs
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
    settings: dict[str, Any] = {"address": cluster.address}
    if cluster.address == "local":
        # Ray's own tasks need no core, but a worker without one would wait for ever.
        wanted = (cluster.workers or 1) * cluster.cpus_per_worker
        settings |= {"num_cpus": max(cores(), math.ceil(wanted)), "include_dashboard": False}
    else:
        _check_address(cluster.address)
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise UsageError(
            f"the cluster cannot be reached: {str(error).strip().splitlines()[0]}",
            where=f"--address {cluster.address}",
            expected="a running cluster of the same versions of Ray and Python",
            remedy="`ray status` on this machine tells more; docs/cluster.md has an example",
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()
        if in_main:
            signal.signal(signal.SIGTERM, handler)  # Ray puts up one of its own, and leaves it


def _check_address(address: str) -> None:
    """Refuse what nobody listens at: Ray itself would wait for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(
            "this is no address of a cluster",
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
        name: which, and on which machine once it has a place there, for messages.
        actor: Ray's handle.
        since: when it was hired (`time.monotonic()`).
        call: the call that it is busy with; None if it is free.
        beat: the question whether it is there; None if none is open.
        heard: when it last answered that; None before it has a place.
    """

    name: str
    actor: Any
    since: float
    call: Any = None
    beat: Any = None
    heard: float | None = None


@dataclass(frozen=True, slots=True)
class Died:
    """What a call comes to whose worker has died, or was given up."""

    why: str


class Crew:
    """Workers of one kind, each with one call at a time; who dies is replaced by `hire`.

    Args:
        ray: the library, connected.
        cluster: what each worker is given.
        kind: the class that each is one of; has an async method `here`.
        arguments: of its constructor.
    """

    def __init__(self, ray: Any, cluster: Cluster, kind: type, *arguments: Any) -> None:
        self._ray, self._cluster = ray, cluster
        self._kind = ray.remote(kind).options(
            num_cpus=cluster.cpus_per_worker,
            num_gpus=cluster.gpus_per_worker,
            max_restarts=0,  # a row that kills its worker would do so for ever
            max_task_retries=0,
            max_concurrency=16,
        )
        self._arguments = [ray.put(argument) for argument in arguments]
        self._hired = 0
        self.workers: list[Worker] = []

    @property
    def room(self) -> int:
        """How many workers the cluster has room for now, one at least."""
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

    def _lacks_here(self) -> bool:
        """Whether this machine alone is asked for more than it has: no other will come."""
        has, cluster = self._ray.cluster_resources(), self._cluster
        return cluster.address == "local" and (
            has.get("CPU", 0) < cluster.cpus_per_worker
            or has.get("GPU", 0) < cluster.gpus_per_worker
        )

    def hire(self, count: int, method: str, *arguments: Any) -> list[Worker]:
        """Start workers, each with a first call, for which nobody waits here.

        Raises:
            RunError: this machine alone has no room, and no other will come.
        """
        if self._lacks_here():
            raise self._no_room()
        found: list[Worker] = []
        for _ in range(count):
            actor = self._kind.remote(*self._arguments)
            self._hired += 1
            worker = Worker(f"worker {self._hired}", actor, time.monotonic())
            worker.beat = actor.here.remote()
            self.give(worker, method, *arguments)
            found.append(worker)
        self.workers += found
        return found

    def _no_room(self) -> RunError:
        wanted = _amount(self._cluster.cpus_per_worker, "core")
        if self._cluster.gpus_per_worker:
            wanted += f" and {_amount(self._cluster.gpus_per_worker, 'GPU')}"
        has = self._ray.cluster_resources()
        waited = "" if self._lacks_here() else f" within {self._cluster.wait_s:g} s"
        return RunError(
            f"no machine gave a worker its {wanted}{waited}",
            where=f"--address {self._cluster.address}",
            expected=f"room; the cluster has {has.get('CPU', 0):g} cores and "
            f"{has.get('GPU', 0):g} GPUs",
            remedy="ask for less with --cpus-per-worker and --gpus-per-worker, or free some",
        )

    def give(self, worker: Worker, method: str, *arguments: Any) -> None:
        """Begin a call."""
        worker.call = getattr(worker.actor, method).remote(*arguments)
        if worker.heard is not None:
            worker.heard = time.monotonic()

    def ended(self, timeout_s: float) -> list[tuple[Worker, Any]]:
        """The calls that have ended, each with what came of it: a value, an error or `Died`.

        Waits until there is one, for so long at most. Who died, or found no place in time, which
        is a `RunError`, is no more in `workers`.
        """
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
        return found + self._deaf()

    def _outcome(self, call: Any) -> Any:
        from ray.exceptions import RayTaskError

        try:
            return self._ray.get(call)
        except RayTaskError as error:
            cause = error.cause
            return cause if isinstance(cause, OmnidataError) else RunError(_reason(error))
        except Exception as error:  # the worker's process, its machine, or the way there
            return Died(_reason(error))

    def _deaf(self) -> list[tuple[Worker, Any]]:
        """Workers that have not been heard of for too long, given up."""
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
                with suppress(Exception):  # of one that has died its call tells
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


def beside_us(ray: Any, kind: type, *arguments: Any) -> Any:
    """An actor on this machine, which lives as long as we do; it needs no core of its own."""
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
    """The name of this machine, as messages have it."""
    return socket.gethostname()


def _reason(error: BaseException) -> str:
    """The last line of what Ray says, without the traces of other processes."""
    cause = getattr(error, "cause", None)
    text = str(cause or error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
