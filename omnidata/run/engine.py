"""Steps in, answers out: everything between a step and its line in the run folder."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import msgspec

from omnidata.actions import Action
from omnidata.errors import CallError, MediaError
from omnidata.run.ahead import Ahead
from omnidata.run.breaker import Breaker
from omnidata.run.cache import ResponseCache, key
from omnidata.run.folder import RunFolder
from omnidata.run.limits import Limits
from omnidata.run.meter import Meter
from omnidata.run.prices import Budget
from omnidata.run.rates import Rates
from omnidata.run.retry import pause
from omnidata.run.select import episode_key
from omnidata.run.window import Window
from omnidata.types import Adapter, Completion, GenerationParams, Prepared, Request, Step, Task

Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""

_SYNC_S = 0.2
"""Lines wait so long, at most, until the disk is asked to have them; one request serves all."""

_SHOW_S = 0.1


class Engine:
    """One pass over the steps that have no answer yet.

    Args:
        task: makes the prompts, and reads answers for histories of predictions.
        adapter: the model.
        run: takes every line the moment it is known.
        params: how to decode.
        limits: how fast, how long, how much.
        budget: what may be spent.
        cache: answers to equal requests; None = ask always.

    Attributes:
        meter: where the time went.
        stopped: why the run stopped before its end; empty if it did not.
    """

    def __init__(
        self,
        task: Task,
        adapter: Adapter,
        run: RunFolder,
        params: GenerationParams,
        *,
        limits: Limits,
        budget: Budget,
        cache: ResponseCache | None,
    ) -> None:
        """Nothing is asked yet; to be made inside the event loop."""
        self.meter = Meter()
        self.stopped = ""
        self._task, self._adapter, self._run, self._params = task, adapter, run, params
        self._budget, self._cache = budget, cache
        self._attempts = limits.attempts
        self._timeout_s = limits.timeout_s or adapter.timeout_s
        self._window = Window(limits.concurrency or adapter.concurrency)
        self._rates = Rates(limits.requests_per_minute, limits.tokens_per_minute)
        self._breaker = Breaker()
        self._ahead = Ahead(
            self._prepare,
            threads=bool(adapter.accepts),
            max_bytes=limits.ahead_bytes,
            max_waiting=2 * adapter.max_batch * self._window.size,
            meter=self.meter,
        )
        self._past: dict[str, list[Action | None]] = {}
        self._following: dict[str, Step] = {}
        self._fresh: list[tuple[str, Completion]] = []  # answers that the cache lacks
        self._syncing = threading.Lock()
        self._open = 0
        self._busy = 0
        self._in_flight = 0
        self._spending = asyncio.Condition()
        self._stopping = asyncio.Event()
        self._finished = asyncio.Event()

    async def ask(self, steps: Sequence[Step], progress: Progress | None) -> None:
        """Ask about every step that has no line; returns when all have one, or the run stopped.

        Raises:
            RunError: the disk takes no more.
            DataError: a prompt cannot be made.
        """
        first = self._chained(steps) if self._task.needs_predictions else steps
        waiting = [step for step in first if step.sample_id not in self._run.done]
        self._open = len(waiting)
        self._ahead.add(waiting)
        try:
            if waiting:
                await _until(
                    self._finished,
                    self._ahead.work(),
                    self._sync_often(),
                    self._show(progress, len(steps)),
                    *(self._send() for _ in range(self._window.size)),
                )
        finally:
            self._sync()
            if progress:
                progress(len(self._run.done), len(steps))

    def _chained(self, steps: Sequence[Step]) -> list[Step]:
        """The first open step of every episode; the others follow as their histories are known."""
        first: list[Step] = []
        before: dict[str, Step] = {}
        for step in steps:
            name = episode_key(step)
            self._past.setdefault(name, [])
            if step.sample_id in self._run.done and name not in before:
                self._remember(step)
            elif name in before:
                self._following[before[name].sample_id] = before[name] = step
            else:
                first.append(step)
                before[name] = step
        return first

    def _prepare(self, step: Step) -> Prepared | Completion:
        """The request for a step, or why there can be none; runs in a thread."""
        try:
            if "image" in self._adapter.accepts and step.media.get("screenshot", ...) is None:
                raise MediaError("the row names no screenshot", fault="missing")
            past = list(self._past.get(episode_key(step), ()))
            conversation = self._task.prompt(step, past)
            return self._adapter.prepare(Request(step.sample_id, conversation))
        except MediaError as error:
            return Completion(
                delivery="media_error", error=f"{step.sample_id}: {error}", attempts=0
            )

    async def _send(self) -> None:
        """Answer batch after batch, until cancelled or stopped."""
        while not self.stopped:
            batch: list[tuple[Step, Prepared]] = []
            for step, made in await self._ahead.take(self._adapter.max_batch):
                kept = made if isinstance(made, Completion) else self._kept(made)
                if kept is not None:
                    await self._record(step, kept)
                elif isinstance(made, Prepared):
                    batch.append((step, made))
            self._busy += 1
            if batch:
                await self._answer(batch)
            self._busy -= 1
            if self.stopped and not self._busy:
                self._finished.set()

    def _kept(self, made: Prepared) -> Completion | None:
        return self._cache.get(self._key(made)) if self._cache and made.key else None

    def _key(self, made: Prepared) -> str:
        model = {"name": self._adapter.name, **self._adapter.settings}
        return key(model, self._params, made.key, made.request.sample_id)

    async def _answer(self, batch: Sequence[tuple[Step, Prepared]]) -> None:
        """Attempt after attempt, until there are answers or no hope, or the run stops."""
        for attempt in count(1):
            try:
                completions = await self._attempt([made for _, made in batch])
            except CallError as error:
                failed = Completion(delivery="api_error", error=str(error), attempts=attempt)
                wait = pause(error, attempt) if attempt < self._attempts else None
                if wait is None:
                    await self._give_up(batch, failed, error)
                    return
                for step, _ in batch:
                    self._run.append_attempt(step.sample_id, failed)
                await self._rest(wait)
                continue
            if completions is None:
                return
            for (step, made), completion in zip(batch, completions, strict=True):
                whole = msgspec.structs.replace(completion, attempts=attempt)
                if self._cache and made.key:
                    self._fresh.append((self._key(made), whole))
                await self._record(step, whole)
            return

    async def _rest(self, seconds: float) -> None:
        """Wait, but not beyond the run's stop."""
        self.meter.pause_s += seconds
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _attempt(self, batch: Sequence[Prepared]) -> Sequence[Completion] | None:
        """One call of the model; None if nothing more is to be asked.

        Raises:
            CallError: no answer came.
        """
        async with self._window:
            reserved = await self._rates.take()
            if not await self._admitted():
                return None
            sent = time.monotonic()
            usages: list[Mapping[str, Any]] = []
            try:
                with self.meter.asking():
                    completions = await self._call(batch)
                usages += [completion.usage for completion in completions]
            except CallError as error:
                if error.throttled:
                    self._window.throttled(sent, error.retry_after or 0.0)
                raise
            finally:
                self._rates.settle(reserved, usages)
                await self._told(usages)
        self._window.answered()
        self._breaker.answered()
        return completions

    async def _admitted(self) -> bool:
        """Wait until the budget allows a request; False if the run stops."""
        async with self._spending:
            while not self.stopped and (reason := self._budget.refuses(self._in_flight)):
                if self._in_flight:  # they may take less than is feared
                    await self._spending.wait()
                else:
                    self._stop(reason)
            self._in_flight += not self.stopped
        return not self.stopped

    async def _told(self, usages: Sequence[Mapping[str, Any]]) -> None:
        """A request has ended; what its answers used is known."""
        async with self._spending:
            self._in_flight -= 1
            for usage in usages:
                self._budget.spend(usage)
            self._spending.notify_all()

    async def _call(self, batch: Sequence[Prepared]) -> Sequence[Completion]:
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                completions = await self._adapter.generate(batch, self._params)
        except CallError:
            raise
        except TimeoutError as error:
            if limit.expired():
                raise CallError(f"no answer within {self._timeout_s:g} s") from None
            raise CallError(f"the connection timed out ({error})") from error
        except Exception as error:  # an adapter may be anybody's: its slips must not end the run
            raise CallError(
                f"the adapter failed ({type(error).__name__}: {error})",
                where=self._adapter.name,
                transient=False,
            ) from error
        if len(completions) != len(batch):
            raise CallError(
                f"the adapter gave {len(completions)} answers to {len(batch)} requests",
                where=self._adapter.name,
                transient=False,
            )
        return completions

    async def _give_up(
        self, batch: Sequence[tuple[Step, Prepared]], failed: Completion, error: CallError
    ) -> None:
        for step, made in batch:
            await self._record(step, msgspec.structs.replace(failed, receipt=dict(made.receipt)))
        if reason := self._breaker.failed(error):
            self._stop(reason)
            self._finished.set()  # what is still under way will fail as well

    def _stop(self, reason: str) -> None:
        """Begin nothing more; what is under way ends, and is recorded."""
        self.stopped = reason
        self._stopping.set()

    async def _record(self, step: Step, completion: Completion) -> None:
        """The step's line, and the step that waited for it."""
        with self.meter.writing():
            self._run.append(step.sample_id, completion)
        self._open -= 1
        if self._task.needs_predictions:
            self._remember(step)
            if following := self._following.pop(step.sample_id, None):
                self._open += 1
                await self._ahead.add_next(following)
        if not self._open:
            self._finished.set()

    def _remember(self, step: Step) -> None:
        line = self._past.setdefault(episode_key(step), [])
        line.extend([None] * (step.step_index - len(line)))  # steps that the data lacks
        completion = self._run.done[step.sample_id]
        said = completion.delivery == "ok"
        line.append(self._task.read(completion.text, completion.receipt) if said else None)

    async def _sync_often(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            with self.meter.writing():
                await asyncio.to_thread(self._sync)

    def _sync(self) -> None:
        """What is known outlives the machine from here on."""
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


async def _until(finished: asyncio.Event, *workers: Coroutine[Any, Any, None]) -> None:
    """Let workers work; the first error of one ends all and is raised as it is."""
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
