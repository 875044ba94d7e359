"""Steps in, answers out: everything between a step and its line in the run folder."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import count
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
from omnidata.run.journal import TRANSIENT
from omnidata.run.media_stamps import stamps
from omnidata.run.scheduling import (
    AdaptiveConcurrency,
    CircuitBreaker,
    Prefetch,
    StageTimer,
    retry_delay,
)
from omnidata.tasks.asking import Asking
from omnidata.types import Adapter, Completion, GenerationParams, Prepared, Progress, Request, Step

Batch = Sequence[tuple[Step, Prepared]]


class Way(Protocol):
    """How requests go out: a `Gate`, here or on another machine."""

    async def enter(self) -> float | str:
        """As `Gate.enter`."""

    async def leave(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        """As `Gate.leave`."""


class Lines(Protocol):
    """Where lines go: a run folder, or a part of one."""

    @property
    def done(self) -> Mapping[str, Completion]:
        """The final lines that there are, by the ids of their steps."""

    def append(self, sample_id: str, completion: Completion) -> None:
        """Record a step's final line, which is in `done` from then on."""

    def append_attempt(self, sample_id: str, completion: Completion) -> None:
        """Record an attempt that is followed by another."""

    def sync(self) -> None:
        """Make all lines outlive the machine."""


_SYNC_S = 0.2
"""Lines wait so long, at most, until the disk is asked to have them; one request serves all."""

_LONGEST_ERROR = 10_000  # letters; an adapter may be anybody's, and a line has an end
_SHOW_S = 0.1
_POOLED = 4
"""Batches from which one of like lengths is chosen: padding is work for nothing."""


class Engine:
    """One pass over the steps that have no answer yet.

    Args:
        task: makes the prompts, and reads answers for histories of predictions.
        adapter: the model.
        run: takes every line the moment it is known.
        params: how to decode.
        limits: how fast, how long, how much.
        gate: lets requests out, as fast and as many as may go.
        cache: answers to equal requests; None = ask always.
        meter: books where the time goes.
        breaker: counts failures in a row; its own if None, where the run has all answers.

    Attributes:
        stopped: why the run stopped before its end; empty if it did not.
        slipped: how the adapter's own code failed last; None if it did not.
        failed: why the last step without an answer has none; empty if all were answered.
        asked: steps whose line is of a request that this pass has sent.
        reused: steps whose line came out of the cache.
    """

    def __init__(
        self,
        task: Asking,
        adapter: Adapter,
        run: Lines,
        params: GenerationParams,
        *,
        limits: Limits,
        gate: Way,
        cache: ResponseCache | None,
        meter: StageTimer,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.meter = meter
        self.stopped = self.failed = ""
        self.slipped: AdapterError | None = None
        self.asked = self.reused = 0
        self._takes = frozenset(adapter.accepts or ())
        self._shown: dict[str, dict[str, Any]] = {}  # of steps that are ready or under way
        self._task, self._adapter, self._run, self._params = task, adapter, run, params
        self._gate, self._cache = gate, cache
        self._model: Mapping[str, Any] = {"name": adapter.name, **adapter.settings}
        if cache and not is_ours(adapter):
            self._model = {**self._model, "code": code_of(adapter)}
        self._attempts = limits.attempts
        self._timeout_s = limits.timeout_s or adapter.timeout_s
        self._window = AdaptiveConcurrency(limits.concurrency or adapter.concurrency)
        self._breaker = breaker or CircuitBreaker(answered=bool(run.done))
        self._ahead = Prefetch(
            self._prepare,
            threads=bool(self._takes),
            max_bytes=limits.ahead_bytes,
            max_waiting=2 * adapter.max_batch * self._window.size,
            pool=_POOLED * adapter.max_batch if adapter.max_batch > 1 and self._takes else 0,
            meter=self.meter,
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
        waiting = select_steps(
            first, (n for n, name in enumerate(ids_of(first)) if name not in done)
        )
        self._open = len(waiting)
        self._ahead.add(waiting)
        try:
            if waiting:
                await _until(
                    self._finished,
                    self._ahead.work(),
                    self._sync_often(),
                    self._show(progress, len(steps)),
                    *(self._send() for _ in range(min(self._window.size, len(steps)))),
                )
        finally:
            with self.meter.writing():
                self._sync()
            if progress:
                progress(len(self._run.done), len(steps))

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

    def _prepare(self, step: Step) -> Prepared | Completion:
        past = self._histories.before(step)
        made, shown = prepare_step(self._task, self._adapter, step, past, failed=self._note_slip)
        if isinstance(made, Completion):
            return made
        if self._takes:
            self._shown[step.sample_id] = shown
        return (self._cache.get(self._key(made)) if self._cache and made.key else None) or made

    def _note_slip(self, error: CallError) -> None:
        if isinstance(error, AdapterError):
            self.slipped = error

    async def _send(self) -> None:
        while not self.stopped:
            ready = await self._ahead.take(self._adapter.max_batch)
            if known := [(step, made) for step, made in ready if isinstance(made, Completion)]:
                self.reused += sum(made.delivery not in TRANSIENT for _, made in known)
                await self._record(known)
            if batch := [(step, made) for step, made in ready if isinstance(made, Prepared)]:
                await self._answer(batch)

    def _key(self, made: Prepared) -> str:
        return key(self._model, self._params, made.key, made.request.sample_id)

    async def _answer(self, batch: Batch) -> None:
        for attempt in count(1):
            async with self._window:
                reserved = await self._gate.enter()
                if isinstance(reserved, str):
                    self.stop(reserved)
                    return
                self._in_flight += 1
                if self.stopped:
                    await self._end_request(reserved, ())
                    return
                wait = await self._attempt(batch, attempt, reserved)
            if wait is None:
                return
            with self.meter.pausing():
                await asyncio.sleep(wait)

    async def _attempt(self, batch: Batch, attempt: int, reserved: float) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none."""
        sent = time.monotonic()
        usages: list[Mapping[str, Any]] = []
        try:
            with self.meter.asking():
                completions = await self._call([made for _, made in batch])
            usages += [completion.usage for completion in completions]
            await self._write_answers(batch, completions, attempt)
        except CallError as error:
            wait = retry_delay(error, attempt)
            if error.throttled:  # a wait that is too long for a pause holds up nobody else either
                self._window.slow_down(sent, 0.0 if wait is None else error.retry_after or 0.0)
            return await self._write_failures(batch, error, attempt, wait)
        finally:
            await self._end_request(reserved, usages)
        return None

    async def _write_answers(
        self, batch: Batch, completions: Sequence[Completion], attempt: int
    ) -> None:
        """Write without awaiting first, so that no answer is lost to a cancellation."""
        lines = []
        for (step, made), completion in zip(batch, completions, strict=True):
            if completion.attempts != attempt:
                completion = msgspec.structs.replace(completion, attempts=attempt)
            if self._cache and made.key:
                self._fresh.append((self._key(made), completion))
            lines.append((step, completion))
        self._window.note_answer()
        self._breaker.note_answer()
        self.asked += len(lines)
        await self._record(lines)

    async def _write_failures(
        self, batch: Batch, error: CallError, attempt: int, wait: float | None
    ) -> float | None:
        """Write a failed attempt; return None if it was the last one."""
        self._note_slip(error)
        said = str(error)[:_LONGEST_ERROR]
        failed = Completion(delivery="api_error", error=said, attempts=attempt)
        if wait is not None and attempt < self._attempts:
            for step, _ in batch:
                self._run.append_attempt(step.sample_id, failed)
            return wait
        self.asked += len(batch)
        await self._record(
            [
                (step, msgspec.structs.replace(failed, receipt=dict(made.receipt)))
                for step, made in batch
            ]
        )
        if reason := self._breaker.note_failure(error):
            self.stop(reason)
            self._finished.set()  # what is still under way will fail as well
        return None

    async def _end_request(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        self._in_flight -= 1
        if self.stopped and not self._in_flight:
            self._finished.set()
        await self._gate.leave(reserved, usages)

    async def _call(self, batch: Sequence[Prepared]) -> Sequence[Completion]:
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                completions = await self._adapter.generate(batch, self._params)
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
        except Exception as error:
            if isinstance(self._adapter, Baseline) and not isinstance(error, OmnidataError):
                raise  # its rule is the task's code
            raise slip(self._adapter, error, "generate") from error

    def stop(self, reason: str) -> None:
        """Begin nothing more and wait for nothing but answers, which are recorded."""
        self.stopped = reason
        if not self._in_flight:
            self._finished.set()

    async def _record(self, lines: Sequence[tuple[Step, Completion]]) -> None:
        with self.meter.writing():
            for step, completion in lines:
                shown = self._shown.pop(step.sample_id, None)
                if completion.delivery in TRANSIENT:
                    self.failed = completion.error
                elif shown:
                    receipt = {**completion.receipt, "media": shown}
                    completion = msgspec.structs.replace(completion, receipt=receipt)
                self._run.append(step.sample_id, completion)
        self._open -= len(lines)
        if self._task.needs_predictions:
            for step, _ in lines:
                self._remember(step)
                following = self._following.pop(step.sample_id, None)
                if following is not None and not self._histories.has_ended(step):
                    self._open += 1
                    await self._ahead.add_next(self._steps[following])
        if not self._open:
            self._finished.set()

    def _remember(self, step: Step) -> None:
        self._histories.remember(step, self._run.done[step.sample_id])

    async def _sync_often(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            with self.meter.writing():
                await asyncio.to_thread(self._sync)

    def _sync(self) -> None:
        with self._syncing:
            self._run.sync()
            if self._cache and self._fresh:
                known = len(self._fresh)  # the event loop goes on adding
                self._cache.put_many(self._fresh[:known])
                del self._fresh[:known]

    async def _show(self, progress: Progress | None, total: int) -> None:
        while progress:
            progress(len(self._run.done), total)
            await asyncio.sleep(_SHOW_S)


def prepare_step(
    task: Asking,
    adapter: Adapter,
    step: Step,
    past: Sequence[Action | None] = (),
    *,
    failed: Callable[[CallError], None],
) -> tuple[Prepared | Completion, dict[str, Any]]:
    """Return the request for a step, or the completion that its line gets without one.

    Args:
        task: makes the prompt.
        adapter: the model.
        step: the step.
        past: earlier answers of its episode, for a history of predictions.
        failed: is told of a request that the adapter could not make.

    Returns:
        The request, with what the receipt of its answer says of the media (`stamps`).

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


async def _until(finished: asyncio.Event, *workers: Coroutine[Any, Any, None]) -> None:
    """Run workers; raise the first error of one as it is and stop the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(worker) for worker in workers]
            await finished.wait()
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
