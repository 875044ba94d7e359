"""Steps in, answers out: everything between a step and its line in the run folder."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Protocol

import msgspec

from omnidata.actions import Action
from omnidata.adapters.base import Baseline
from omnidata.errors import (
    AdapterError,
    CallError,
    MediaError,
    OmnidataError,
    PluginError,
    StoreError,
)
from omnidata.loaders.steps import ids_of, select_steps
from omnidata.run.adapter_code import code_of, is_ours
from omnidata.run.adapter_contract import check_answers, render_request, slip
from omnidata.run.cache import ResponseCache, key
from omnidata.run.cost import Limits
from omnidata.run.histories import Histories
from omnidata.run.journal import TRANSIENT, PartFile, RunFolder
from omnidata.run.media_stamps import stamps
from omnidata.run.pace import AdaptiveConcurrency, CircuitBreaker, StageTimer, retry_delay
from omnidata.tasks.asking import Asking
from omnidata.types import Adapter, Completion, GenerationParams, Prepared, Progress, Request, Step


class _GateLike(Protocol):
    async def enter(self) -> float | str: ...

    async def leave(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None: ...


_SYNC_S = 0.2  # between two writes of all new lines to the disk

_LONGEST_ERROR = 10_000  # characters


class _Finished(Exception):  # noqa: N818 - no error: it ends the tasks of a pass
    pass


@dataclass(slots=True)
class AskingOutcome:
    """How asking about steps has gone so far.

    Attributes:
        stopped: why it stopped before its end; empty if it did not.
        failed: why the last step without an answer has none; empty if all were answered.
        slipped: the last failure of the adapter's own code; None if there is none.
        asked: number of steps with a line of a request that was sent.
        reused: number of steps with a line of the cache.
    """

    stopped: str = ""
    failed: str = ""
    slipped: AdapterError | None = None
    asked: int = 0
    reused: int = 0


class Engine:
    """One pass over the steps that have no answer yet.

    Args:
        gate: a `Gate`, here or on another machine.
        cache: answers to equal requests; None asks always.
        breaker: counts failures in a row; None for one of this pass alone.
        on_hold: called with the seconds if the model asks to be sent nothing for a while.

    Attributes:
        outcome: of this pass.
    """

    def __init__(
        self,
        task: Asking,
        adapter: Adapter,
        run: RunFolder | PartFile,
        params: GenerationParams,
        *,
        limits: Limits,
        gate: _GateLike,
        cache: ResponseCache | None,
        meter: StageTimer,
        breaker: CircuitBreaker | None = None,
        on_hold: Callable[[float], None] | None = None,
    ) -> None:
        self.meter = meter
        self.outcome = AskingOutcome()
        self._task, self._adapter, self._run, self._params = task, adapter, run, params
        self._gate, self._cache, self._on_hold = gate, cache, on_hold
        self._model: Mapping[str, Any] = {"name": adapter.name, **adapter.settings}
        if cache and not is_ours(adapter):
            self._model = {**self._model, "code": code_of(adapter)}
        self._attempts = limits.attempts
        self._timeout_s = limits.timeout_s or adapter.timeout_s
        self._window = AdaptiveConcurrency(limits.concurrency or adapter.concurrency)
        self._breaker = breaker or CircuitBreaker(answered=bool(run.done))
        self._ahead = _Ahead(
            self._prepare,
            threads=(os.cpu_count() or 1) + 1 if adapter.accepts else 0,
            batch=adapter.max_batch,
            open_batches=self._window.size,
            max_bytes=limits.ahead_bytes,
            meter=meter,
        )
        self._histories = Histories(task)
        self._steps: Sequence[Step] = ()
        self._following: dict[str, int] = {}  # a step's id -> the number of the one after it
        self._fresh: list[tuple[str, Completion]] = []  # answers that the cache lacks
        self._syncing = threading.Lock()
        self._open = 0
        self._in_flight = 0
        self._finished = asyncio.Event()

    async def ask(self, steps: Sequence[Step], progress: Progress | None) -> None:
        """Ask about every step that has no line; returns when all have one, or the run stopped.

        Raises:
            RunError: the disk takes no more.
            DataError: a prompt cannot be made.
        """
        first = self._first_of_episodes(steps) if self._task.needs_predictions else steps
        done = self._run.done
        waiting = first
        if done:
            waiting = select_steps(
                first, (n for n, name in enumerate(ids_of(first)) if name not in done)
            )
        self._open = len(waiting)
        self._ahead.add(waiting)
        try:
            if waiting:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._begin_batches(group))
                    group.create_task(self._sync_often(progress, len(steps)))
                    await self._finished.wait()
                    raise _Finished
        except BaseExceptionGroup as errors:
            error = errors.exceptions[0]
            if not isinstance(error, _Finished):
                raise error from None
        finally:
            self._ahead.close()
            with self.meter.measure("disk_s"):
                self._sync()
            if progress:
                progress(len(self._run.done), len(steps))

    def stop(self, reason: str, *, cancel: bool = False) -> None:
        """Begin nothing more; the requests under way are answered and recorded, or cancelled."""
        self.outcome.stopped = reason
        if cancel or not self._in_flight:
            self._finished.set()

    def hold(self, seconds: float) -> None:
        """Send nothing for some seconds: the model has asked another process for it."""
        self._window.slow_down(-math.inf, seconds)  # the window is not narrowed

    # A step, until it can be sent.

    def _first_of_episodes(self, steps: Sequence[Step]) -> Sequence[Step]:
        first: list[int] = []
        before: dict[str, str] = {}
        self._steps = steps
        for number, step in enumerate(steps):
            name = step.episode
            if step.sample_id in self._run.done and name not in before:
                self._remember(step)
                continue
            if self._histories.has_ended(step):
                continue
            if name in before:
                self._following[before[name]] = number
            else:
                first.append(number)
            before[name] = step.sample_id
        return select_steps(steps, first)

    def _prepare(self, step: Step) -> _Ready:
        past = self._histories.before(step)
        made, media = prepare_step(self._task, self._adapter, step, past, failed=self._note_slip)
        if isinstance(made, Completion):
            return _Ready(step, known=made)
        name = ""
        if self._cache and made.key:
            name = key(self._model, self._params, made.key, step.sample_id)
            if known := self._cache.get(name):
                return _Ready(step, known=known, media=media)
        return _Ready(step, made, media=media, key=name)

    def _note_slip(self, error: CallError) -> None:
        if isinstance(error, AdapterError):
            self.outcome.slipped = error

    async def _begin_batches(self, group: asyncio.TaskGroup) -> None:
        """Start a task for each batch; those that pause between attempts count as well."""
        places = asyncio.Semaphore(self._window.size)
        while not self.outcome.stopped:
            await places.acquire()
            batch = await self._ahead.take()
            for ready in batch:
                if ready.known:
                    self.outcome.reused += ready.known.delivery not in TRANSIENT
                    self._record(ready, ready.known)
            if batch := [ready for ready in batch if ready.request]:
                task = group.create_task(self._answer(batch))
                task.add_done_callback(lambda _: places.release())
            else:
                places.release()
            await asyncio.sleep(0)  # many may be ready at once, and the run be interrupted

    # A request, until its steps have their lines.

    async def _answer(self, batch: Sequence[_Ready]) -> None:
        for attempt in count(1):
            async with self._window:
                reserved = await self._take_turn()
                if isinstance(reserved, str):
                    self.stop(reserved)
                    return
                usages: list[Mapping[str, Any]] = []
                self._in_flight += 1
                try:
                    wait = (
                        None
                        if self.outcome.stopped
                        else await self._attempt(batch, attempt, usages)
                    )
                finally:
                    self._in_flight -= 1
                    if self.outcome.stopped and not self._in_flight:
                        self._finished.set()
                    await self._gate.leave(reserved, usages)
            if wait is None:
                return
            with self.meter.measure("pause_s"):
                await asyncio.sleep(wait)

    async def _take_turn(self) -> float | str:
        """Return what `Gate.enter` does; a turn that comes while requests are held is given back.

        A turn that was kept would go out in one burst with the others after the hold.
        """
        while True:
            while (wait := self._window.hold) > 0:
                await asyncio.sleep(wait)
            reserved = await self._gate.enter()
            if isinstance(reserved, str) or self._window.hold <= 0:
                return reserved
            await self._gate.leave(reserved, ())

    async def _attempt(
        self, batch: Sequence[_Ready], attempt: int, usages: list[Mapping[str, Any]]
    ) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none.

        Nothing is awaited between an answer and its line, so no answer is lost to a cancellation.
        """
        sent = time.monotonic()
        try:
            with self.meter.count("asking"):
                completions = await self._call([ready.request for ready in batch if ready.request])
        except CallError as error:
            wait = retry_delay(error, attempt)
            if error.throttled:  # a wait that is too long for a pause does not hold up the others
                seconds = 0.0 if wait is None else error.retry_after or 0.0
                self._window.slow_down(sent, seconds)
                if seconds and self._on_hold:
                    self._on_hold(seconds)
            return self._write_failures(batch, error, attempt, wait)
        usages += [completion.usage for completion in completions]
        self._window.note_answer()
        self._breaker.note_answer()
        for ready, completion in zip(batch, completions, strict=True):
            if completion.attempts != attempt:
                completion = msgspec.structs.replace(completion, attempts=attempt)
            if ready.key:
                self._fresh.append((ready.key, completion))
            self._record(ready, completion)
            self.outcome.asked += 1
        return None

    def _write_failures(
        self, batch: Sequence[_Ready], error: CallError, attempt: int, wait: float | None
    ) -> float | None:
        """Write a failed attempt; return None if it was the last one."""
        self._note_slip(error)
        why = str(error)[:_LONGEST_ERROR]
        failed = Completion(delivery="api_error", error=why, attempts=attempt)
        if wait is not None and attempt < self._attempts:
            for ready in batch:
                self._run.append_attempt(ready.step.sample_id, failed)
            return wait
        for ready in batch:
            receipt = dict(ready.request.receipt) if ready.request else {}
            self._record(ready, msgspec.structs.replace(failed, receipt=receipt))
            self.outcome.asked += 1
        if reason := self._breaker.note_failure(error):
            self.stop(reason, cancel=True)  # what is still under way will fail as well
        return None

    async def _call(self, batch: Sequence[Prepared]) -> Sequence[Completion]:
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                answering: Any = self._adapter.generate(batch, self._params)
                if not isinstance(answering, Awaitable):
                    raise TypeError("`generate` is no coroutine: write `async def generate`")
                completions = await answering
            return check_answers(completions, len(batch))
        except (CallError, PluginError):
            raise
        except TimeoutError as error:
            if limit.expired():
                raise CallError(f"no answer within {self._timeout_s:g} s") from None
            raise CallError(f"the connection timed out ({error})") from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            raise CallError("the adapter cancelled itself", where=self._adapter.name) from error
        except (Exception, SystemExit) as error:
            if isinstance(self._adapter, Baseline) and not isinstance(error, OmnidataError):
                raise  # its rule is the task's code
            raise slip(self._adapter, error, "generate") from error

    # The lines.

    def _record(self, ready: _Ready, completion: Completion) -> None:
        step = ready.step
        if completion.delivery in TRANSIENT:
            self.outcome.failed = completion.error
        elif ready.media:
            receipt = {**completion.receipt, "media": ready.media}
            completion = msgspec.structs.replace(completion, receipt=receipt)
        with self.meter.measure("disk_s"):
            self._run.append(step.sample_id, completion)
        self._open -= 1
        if self._task.needs_predictions:
            self._remember(step)
            following = self._following.pop(step.sample_id, None)
            if following is not None and not self._histories.has_ended(step):
                self._open += 1
                self._ahead.add_next(self._steps[following])
        if not self._open:
            self._finished.set()

    def _remember(self, step: Step) -> None:
        self._histories.remember(step, self._run.done[step.sample_id])

    async def _sync_often(self, progress: Progress | None, total: int) -> None:
        while True:
            if progress:
                progress(len(self._run.done), total)
            await asyncio.sleep(_SYNC_S)
            with self.meter.measure("disk_s"):
                await asyncio.to_thread(self._sync)

    def _sync(self) -> None:
        with self._syncing:
            self._run.sync()
            if self._cache and self._fresh:
                known = len(self._fresh)  # the event loop goes on adding
                self._cache.put_many(self._fresh[:known])
                del self._fresh[:known]


# Requests that are prepared ahead of the model.


def prepare_step(
    task: Asking,
    adapter: Adapter,
    step: Step,
    past: Sequence[Action | None] = (),
    *,
    failed: Callable[[CallError], None],
) -> tuple[Prepared | Completion, dict[str, Any]]:
    """Return the request for a step, or its completion if there is none; and stamps of its media.

    Args:
        task: makes the prompt.
        adapter: the model.
        step: the step.
        past: the earlier answers of its episode.
        failed: called with the error if the adapter makes no request.

    Raises:
        DataError: a prompt cannot be made.
    """
    takes = frozenset(adapter.accepts or ())
    try:
        if "image" in takes and step.media.get("screenshot", ...) is None:
            raise MediaError("the row names no screenshot", fault="missing")
        asked = Request(step.sample_id, task.conversation(step, list(past)))
        made = render_request(task, adapter, asked)
        return made, stamps(made.request.conversation, takes) if takes else {}
    except (MediaError, StoreError) as error:
        why = f"{step.sample_id}: {error}"
        return Completion(delivery="media_error", error=why, attempts=0), {}
    except CallError as error:
        failed(error)
        return Completion(delivery="api_error", error=str(error)[:_LONGEST_ERROR], attempts=0), {}


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A step that can be sent, or its line where none is to be sent.

    Attributes:
        request: None where the line is known.
        known: of the cache, or of a request that cannot be made.
        media: stamps of its media, for the receipt.
        key: of the request in the cache; empty if its answer is not kept.
    """

    step: Step
    request: Prepared | None = None
    known: Completion | None = None
    media: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""

    @property
    def size(self) -> int:
        return self.request.size if self.request else 0

    @property
    def length(self) -> int:
        return self.request.length if self.request else 0


_POOLED = 4
"""Batches from which one of like lengths is chosen, because padding costs time."""


class _Ahead:
    """Prepares steps in their order; the steps that depend on an answer are added as it comes.

    Args:
        threads: how many prepare; 0 prepares in the event loop, where no media are read.
        batch: requests that are taken together, where threads prepare them of like length.
        open_batches: how many may be under way; twice as many are prepared.
        max_bytes: of requests that are ready and wait; the one that exceeds it is the last.
    """

    def __init__(
        self,
        make: Callable[[Step], _Ready],
        *,
        threads: int,
        batch: int,
        open_batches: int,
        max_bytes: int,
        meter: StageTimer,
    ) -> None:
        self._make, self._batch, self._max_bytes, self._meter = make, batch, max_bytes, meter
        self._threads = threads
        self._pool = ThreadPoolExecutor(max(1, threads), "omnidata-media")
        self._most = batch * max(_POOLED, 2 * open_batches)
        self._begun: deque[Step] = deque()  # of episodes that have begun
        self._todo: Iterator[Step] = iter(())
        self._left = self._making = self._bytes = 0
        self._ready: list[_Ready] = []
        self._error: BaseException | None = None
        self._changed = asyncio.Event()

    def add(self, steps: Sequence[Step]) -> None:
        """Append steps; each is read when its turn comes."""
        self._todo = chain(self._todo, steps)
        self._left += len(steps)

    def add_next(self, step: Step) -> None:
        """Put a step before the others: its episode has begun."""
        self._begun.appendleft(step)
        self._left += 1
        self._changed.set()

    async def take(self) -> list[_Ready]:
        """Return the next batch, a smaller one only if no other step is left."""
        self._fill()
        while self._is_short():
            # If nothing is being prepared, it is answers or pauses that are waited for.
            with self._meter.count("waiting for media") if self._is_coming() else nullcontext():
                self._changed.clear()
                await self._changed.wait()
            self._fill()
        if self._error:
            raise self._error
        if self._threads and self._batch > 1:  # the longest first
            self._ready.sort(key=lambda ready: ready.length, reverse=True)
        taken = self._ready[: self._batch]
        del self._ready[: self._batch]
        self._bytes -= sum(ready.size for ready in taken)
        self._fill()
        return taken

    def _is_short(self) -> bool:
        if self._error or len(self._ready) >= self._batch:
            return False
        return self._is_coming() or not self._ready

    def _is_coming(self) -> bool:
        return bool(self._making or self._left)

    def _fill(self) -> None:
        while self._left and self._has_room():
            self._left -= 1
            step = self._begun.popleft() if self._begun else next(self._todo)
            if self._threads:
                self._making += 1
                work = asyncio.get_running_loop().run_in_executor(self._pool, self._measure, step)
                work.add_done_callback(self._end)
            else:
                self._ready.append(self._make(step))

    def _has_room(self) -> bool:
        if len(self._ready) < self._batch:
            return not self._threads or self._making < self._threads
        return (
            self._making < self._threads
            and self._bytes < self._max_bytes
            and len(self._ready) < self._most
        )

    def _measure(self, step: Step) -> tuple[_Ready, float]:
        began = time.perf_counter()
        return self._make(step), time.perf_counter() - began

    def _end(self, work: asyncio.Future[tuple[_Ready, float]]) -> None:
        self._making -= 1
        if work.cancelled():
            return
        if error := work.exception():
            self._error = error
        else:
            ready, seconds = work.result()
            self._meter.add("media_s", seconds)
            self._ready.append(ready)
            self._bytes += ready.size
            self._fill()
        self._changed.set()

    def close(self) -> None:
        """Prepare nothing more, and let the threads go."""
        self._left = 0
        self._pool.shutdown(wait=False, cancel_futures=True)
