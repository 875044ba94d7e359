"""A run on a cluster: the driver hands out parts, and workers ask about their steps.

A worker writes each answer into a file of its own below `RUN/parts/` the moment it comes, as a run
on one machine does; the driver moves lines into `predictions.jsonl`, one per step. So a worker that
dies costs the requests that were under way, a driver that dies costs nothing, and it does not
matter which engine resumes. Workers and driver share the folder and the data: a shared disk.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count, groupby
from pathlib import Path
from typing import Any

import numpy as np

from omnidata import adapters
from omnidata.errors import AdapterError, RunError, UsageError
from omnidata.loaders.steps import as_steps
from omnidata.plugins import blaming
from omnidata.predictions import Prediction
from omnidata.registry import plugin_origin
from omnidata.run.adapter_contract import About, describe_model, model_facts, one_of_each_kind
from omnidata.run.ask import AskingOutcome, Engine
from omnidata.run.asker import Recipe
from omnidata.run.cost import Budget, Limits
from omnidata.run.engines import Cluster
from omnidata.run.engines.local import Died
from omnidata.run.engines.ray import (
    SEEN_S,
    Crew,
    Place,
    Worker,
    check_seen,
    connect,
    machine,
    start_beside,
)
from omnidata.run.histories import not_asked
from omnidata.run.journal import (
    TRANSIENT,
    PartFile,
    RunFolder,
    attempts_of,
    join_left,
    whole_lines,
)
from omnidata.run.pace import CircuitBreaker, Gate, StageTimer
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import Completion, GenerationParams, Progress, Step

_DEADLY = 2
"""So many workers die while a step is under way alone, and it is not repeated."""
_LARGEST = 2_000
"""Steps of a part at most; its worker holds their answers in memory."""
_ANSWER_S, _CANCEL_S = 0.3, 0.3
"""Seconds for which an interrupted run waits for answers, and then for workers that cancel."""
_REFUSALS = 3
"""So many parts in a row that workers refuse, as their disks are full, and the run ends."""


@dataclass(frozen=True, slots=True)
class Job:
    """The settings of a run that all its workers share.

    Attributes:
        task: the name of the benchmark.
        options: of the benchmark.
        places: where the dataset and its media lie, on every machine.
        steps: of the whole dataset, for a model that looks at them; else none.
        model: how to make it.
        params: how to decode; the model's own if None.
        limits: of the run; rates and budget are kept by the gate of all workers.
        parts: the folder that lines go to.
        unnamed: the benchmark itself, if no name leads to it.
    """

    task: str
    options: Mapping[str, str]
    places: Sequence[Place]
    steps: Sequence[Step]
    model: Recipe
    params: GenerationParams | None
    limits: Limits
    parts: Path
    unnamed: Asking | None = None


@dataclass(frozen=True, slots=True)
class PartEnd:
    """How a part ended.

    Attributes:
        lines: the content of its file, which this machine may not see yet.
        outcome: of asking about its steps.
        timings: as of `StageTimer`.
        facts: the model's `run_metadata`.
    """

    lines: bytes
    outcome: AskingOutcome
    timings: Mapping[str, float]
    facts: Mapping[str, Any]


class AskingWorker:
    """Asks about parts of a run, in a process of the cluster."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._engine: Engine | None = None
        self._breaker = CircuitBreaker()  # of all its parts together
        self._hearing: asyncio.Task[None] | None = None
        self._held_until = 0.0

    async def open(self, samples: Sequence[Step], code: str = "") -> tuple[str, About]:
        """Load the model; return the machine and the model's description.

        `code` is that of the model on the machine that opened first; empty there.

        Raises:
            OmnidataError: as a run on one machine; or this machine does not see the data, or has
                other code of the model.
        """
        return machine(), await asyncio.to_thread(self._open, samples, code)

    def _open(self, samples: Sequence[Step], code: str) -> About:
        job = self._job
        check_seen(job.places)
        self._task = job.unnamed or get_task(job.task, job.options)
        self._adapter = job.model.make(self._task, job.steps)
        about = describe_model(
            self._task, self._adapter, job.params, samples, job.limits.concurrency
        )
        self._params = about.params
        if code and about.code != code:
            raise RunError(
                f"{machine()} has other code of the model: {about.code}, where the first worker "
                f"has {code}",
                where=f"--model {job.model.spec}",
                expected="the same code on every machine",
                remedy="install the same version of the model's package everywhere",
            )
        return about

    async def work(
        self, name: str, steps: Sequence[Step], known: Mapping[str, Completion], gate: Any
    ) -> PartEnd:
        """Ask about the steps of a part, in their order.

        Args:
            name: of its file.
            steps: of the part, behind those of their episodes that have a line already.
            known: those lines, for histories of predictions.
            gate: an actor of `SharedGate`; None if workers need none.

        Raises:
            OmnidataError: the folder is missing, its disk is full, or a prompt cannot be made.
        """
        meter, path = StageTimer(), self._job.parts / name
        free = Gate(Limits(), Budget(Limits(), self._adapter.name))
        is_limited = _is_limited(self._job.limits)
        check_seen([Place(self._job.parts)])
        lines = PartFile(path, known)
        self._engine = engine = Engine(
            self._task,
            self._adapter,
            lines,
            self._params,
            limits=self._job.limits,
            gate=_RemoteGate(gate, name) if gate and is_limited else free,
            cache=None,
            meter=meter,
            breaker=self._breaker,
            on_hold=gate.hold.remote if gate else None,
        )
        if gate and not self._hearing:
            seen = await self._obey_hold(gate, -1.0)  # nothing is sent before the gate is there
            self._hearing = asyncio.create_task(self._obey_holds(gate, seen))
        engine.hold(self._held_until - time.monotonic())
        try:
            with blaming(plugin_origin(self._task.name)):
                await engine.ask(steps, None)
        finally:
            self._engine = None
            lines.close()
        facts: dict[str, Any] = {}
        with suppress(Exception):  # whatever the model lacks, it has answered
            facts = model_facts(self._adapter)
        return PartEnd(
            path.read_bytes() if path.exists() else b"",
            engine.outcome,
            meter.timings(),
            facts,
        )

    async def _obey_holds(self, gate: Any, seen: float) -> None:
        while seen < math.inf:
            seen = await self._obey_hold(gate, seen)

    async def _obey_hold(self, gate: Any, seen: float) -> float:
        try:
            seen, seconds = await gate.next_hold.remote(seen)
        except Exception:  # Ray's: the gate has died, and there are no more holds
            return math.inf
        self._held_until = time.monotonic() + seconds
        if self._engine:
            self._engine.hold(seconds)
        return seen

    async def stop(self, reason: str, *, cancel: bool = False) -> None:
        """End the part that is being asked about; see `Engine.stop`."""
        if self._engine:
            self._engine.stop(reason, cancel=cancel)


def _is_limited(limits: Limits) -> bool:
    rates = (limits.requests_per_minute, limits.tokens_per_minute)
    return any((*rates, limits.max_cost, limits.max_tokens))


class SharedGate:
    """The pace of all workers, in a process of its own.

    Rates and budget are of the whole run, and so is a pause that the model asks one worker for.
    """

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._gate = Gate(limits, budget)
        self._held_until = 0.0
        self._held = asyncio.Event()
        self._under_way: defaultdict[str, Counter[float]] = defaultdict(Counter)
        self._dead: set[str] = set()

    async def enter(self, part: str) -> float | str:
        """As `Gate.enter`, for a part."""
        reserved = await self._gate.enter()
        if not isinstance(reserved, str):
            self._under_way[part][reserved] += 1
            if part in self._dead:
                await self.leave(part, reserved, ())
        return reserved

    async def leave(self, part: str, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        """As `Gate.leave`, for a part."""
        if self._under_way[part][reserved] > 0:
            self._under_way[part][reserved] -= 1
            await self._gate.leave(reserved, usages)

    async def hold(self, seconds: float) -> None:
        """Let every worker send nothing for some seconds."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)
        self._held.set()
        self._held = asyncio.Event()

    async def next_hold(self, seen: float) -> tuple[float, float]:
        """Wait for a hold that ends after `seen`; return its end, and the seconds until then.

        Before the first hold the end is 0.
        """
        while self._held_until <= seen:
            await self._held.wait()
        return self._held_until, self._held_until - time.monotonic()

    async def leave_dead(self, part: str) -> None:
        """Release the requests that the dead worker of a part had in flight."""
        self._dead.add(part)
        for reserved in self._under_way.pop(part, Counter()).elements():
            await self._gate.leave(reserved, ())


@dataclass(frozen=True, slots=True)
class _RemoteGate:
    actor: Any
    part: str

    async def enter(self) -> float | str:
        reserved: float | str = await self.actor.enter.remote(self.part)
        return reserved

    async def leave(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        await self.actor.leave.remote(self.part, reserved, list(usages))


# The driver.


@dataclass(eq=False, slots=True)
class _Part:
    numbers: Sequence[int]  # of the steps, in the order of asking; those of an episode together
    deaths: int = 0
    name: str = ""
    read: int = 0  # bytes of its file


class OnCluster:
    """Asks about the steps of a run, on a cluster.

    Attributes:
        outcome: how asking has gone so far.
        timings: seconds of all workers together.
        facts: the model's `run_metadata` in each worker, by the worker's name.
    """

    def __init__(self, job: Job, cluster: Cluster) -> None:
        if job.limits.cache:
            raise UsageError(
                "machines cannot share one database of answers",
                where=f"--cache {job.limits.cache}",
                expected="a run on this machine alone",
                remedy="drop --cache or --engine",
            )
        self._job, self._cluster = job, cluster
        self.outcome = AskingOutcome()
        self.timings: Counter[str] = Counter()
        self.facts: dict[str, Mapping[str, Any]] = {}
        self._task = job.unnamed or get_task(job.task, job.options)
        self._names = (f"{secrets.token_hex(4)}-{number}.jsonl" for number in count(1))
        self._waiting: deque[_Part] = deque()
        self._refused = self._unsent = 0
        self._alone: Counter[str] = Counter()

    def begin(self, stack: Any, steps: Sequence[Step]) -> About:
        """Connect, start the first worker, and return its description of the model.

        Raises:
            OmnidataError: the cluster, the model or the data cannot be used.
        """
        self._ray = stack.enter_context(connect(self._cluster))
        from_store = any(place.url for place in self._job.places)
        self._crew = Crew(self._ray, self._cluster, AskingWorker, self._job, from_store=from_store)
        stack.callback(self._crew.close)
        about: About = self._crew.open_first(one_of_each_kind(steps))
        self._at_once, self._crew.opening = about.at_once, ((), about.code)
        return about

    def ask(
        self, steps: Sequence[Step], run: RunFolder, budget: Budget, progress: Progress | None
    ) -> None:
        """Ask about every step that has no line.

        Raises:
            RunError: the cluster or a disk is at fault.
            KeyboardInterrupt: on Ctrl-C, after a moment in which answers may still come.
        """
        self._run, self._progress, self._budget = run, progress, budget
        self._steps = as_steps(steps)
        self._ids = self._steps.sample_ids
        # A unit is asked by one worker, in order: an episode, or a step alone.
        is_sequential = self._task.needs_predictions
        self._owners = self._steps.episodes if is_sequential else np.arange(len(self._steps))
        left = (number for number, name in enumerate(self._ids) if name not in run.done)
        numbers = np.fromiter(left, np.int64)
        if not len(numbers):
            return
        self._order = numbers[np.argsort(self._owners[numbers], kind="stable")]
        begins = np.flatnonzero(np.diff(self._owners[self._order], prepend=-1))
        self._bounds, self._unit = np.append(begins, len(numbers)), 0
        self._job.parts.mkdir(exist_ok=True)
        before = len(run.done)
        self._wanted = self._crew.worker_count(len(begins))
        limits, spec = self._job.limits, self._job.model.spec
        is_shared = self._wanted > 1 and not adapters.asks_nobody(spec)
        is_shared |= _is_limited(limits)
        self._gate = start_beside(self._ray, SharedGate, limits, budget) if is_shared else None
        try:
            while not self.outcome.stopped and (self._todo or self._waiting or self._crew.busy):
                self._hand_out()
                self._advance()
            self._wind_up(self.outcome.stopped)
        except Exception:
            with suppress(Exception):
                self._wind_up("another part of the run failed")
            raise
        except BaseException:
            with suppress(Exception):
                self._break_off()
            raise
        finally:
            for worker in self._crew.busy:
                self._join(worker.task)
            if not self._crew.busy:  # else a worker may still write; the next call joins its lines
                join_left(run, again=False)
            self.outcome.asked = len(run.done) - before - self._unsent
            run.sync()

    @property
    def _todo(self) -> int:
        """Units that no worker was given."""
        return len(self._bounds) - 1 - self._unit

    def _hand_out(self) -> None:
        if self._todo or self._waiting:
            self._crew.fill(self._wanted)
        for worker in self._crew.free:
            if not (self._todo or self._waiting):
                break
            part = self._waiting.popleft() if self._waiting else self._next_part()
            part.name = next(self._names)
            before = [each for each in self._beside(part) if self._ids[each] in self._run.done]
            known = {(name := self._ids[each]): self._run.done[name] for each in before}
            # As bytes: another machine has no such file, and asking takes 500 times as long.
            steps = self._steps.select([*before, *part.numbers]).pack()
            self._crew.give(worker, part, part.name, steps, known, self._gate)

    def _next_part(self) -> _Part:
        """Return a share of the remaining units, so that all workers end together."""
        begin = self._bounds[self._unit]
        share = min((self._bounds[-1] - begin) // (2 * self._wanted), _LARGEST)
        end = np.searchsorted(self._bounds, begin + max(share, self._at_once))
        others = self._wanted - 1 - len(self._crew.busy)  # have something to do as well
        end = max(self._unit + 1, min(end, len(self._bounds) - 1 - others))
        self._unit = int(end)
        return _Part(self._order[begin : self._bounds[end]].tolist())

    def _beside(self, part: _Part) -> list[int]:
        """Return the steps of the part's episodes, if their prompts depend on each other."""
        if not self._task.needs_predictions:
            return []
        return np.flatnonzero(np.isin(self._owners, self._owners[part.numbers])).tolist()

    def _advance(self) -> None:
        for worker, part, outcome in self._crew.outcomes():
            self._end(worker, part, outcome)
        for worker in self._crew.busy:
            self._join(worker.task)
        if self._progress:
            self._progress(len(self._run.done), len(self._steps))

    def _end(self, worker: Worker, part: _Part, ended: Any) -> None:
        self._join(part, ended.lines if isinstance(ended, PartEnd) else None)
        left = self._remaining(part)
        if isinstance(ended, PartEnd):
            self._refused = 0
            self.timings.update(ended.timings)
            if ended.facts:
                self.facts[worker.name] = ended.facts
            whole, own = self.outcome, ended.outcome
            whole.stopped = whole.stopped or own.stopped
            whole.failed = own.failed or whole.failed
            if own.slipped:
                whole.slipped = AdapterError(str(own.slipped), where=worker.name)
            self._requeue(left, part.deaths)
        else:
            if self._gate:
                self._gate.leave_dead.remote(part.name)
            if isinstance(ended, Died):
                self._isolate(part, left, ended)
            else:  # its disk is full, or a prompt cannot be made: others may do better
                self._crew.dismiss(worker)
                self._refused += 1
                if self._refused >= _REFUSALS or not self._crew.workers:
                    raise ended
                self._requeue(left, part.deaths)
        path = self._job.parts / part.name
        for _, line in whole_lines(attempts_of(path)):
            self._run.append_attempt(line.sample_id, line.completion())
        self._run.sync()
        for gone in (path, attempts_of(path)):
            gone.unlink(missing_ok=True)

    def _remaining(self, part: _Part) -> list[int]:
        """Return the steps of a part that are still to be asked about."""
        done = self._run.done
        over = not_asked(self._task, self._steps.select(self._beside(part)), done)
        return [n for n in part.numbers if self._ids[n] not in done and self._ids[n] not in over]

    def _isolate(self, part: _Part, left: list[int], died: Died) -> None:
        """Find the step that killed a worker: a few of the steps next, then fewer, then one."""
        if part.read:
            self._crew.deaths = 0
        units = [[*same] for _, same in groupby(left, key=lambda number: self._owners[number])]
        if len(units) > 1:
            # Steps are begun in their order, so the one that killed it is among the first.
            first = max(1, len(units) // 8) if part.deaths else self._at_once * 4
            self._requeue([*chain.from_iterable(units[:first])], part.deaths + 1)
            self._requeue([*chain.from_iterable(units[first:])], part.deaths)
        elif left:
            sample_id = self._ids[left[0]]
            # One that was under way alone, and not one that waited after a failed attempt.
            waited = attempts_of(self._job.parts / part.name).exists()
            is_alone = self._owners[part.numbers[0]] == self._owners[part.numbers[-1]]
            self._alone[sample_id] += is_alone and not waited
            if self._alone[sample_id] >= _DEADLY:
                why = f"{sample_id}: its worker died {_DEADLY} times: {died.why}"
                failed = Completion(delivery="api_error", error=why)
                self._record(Prediction.of(sample_id, failed))
                left = self._remaining(part)
            self._requeue(left, part.deaths)

    def _requeue(self, numbers: Sequence[int], deaths: int) -> None:
        if numbers:
            self._waiting.append(_Part(numbers, deaths))

    def _join(self, part: _Part, content: bytes | None = None) -> None:
        """Move new whole lines into the run folder."""
        for end, line in whole_lines(self._job.parts / part.name, part.read, content):
            self._record(line)
            part.read = end

    def _record(self, line: Prediction) -> None:
        """Record one line per step, even if several workers asked about it."""
        if line.sample_id not in self._run.done:
            self._run.append(line.sample_id, line.completion())
            self._unsent += not line.attempts
            if line.delivery not in TRANSIENT:
                self._budget.spend(line.usage)

    def _wind_up(self, reason: str) -> None:
        """Wait until the requests under way are answered."""
        self._stop_workers(reason, (self._job.limits.timeout_s or SEEN_S) + SEEN_S)

    def _break_off(self) -> None:
        """Cancel the requests that are not answered in a moment; a person waits for the prompt."""
        self._stop_workers("the run was interrupted", _ANSWER_S)
        self._stop_workers("the run was interrupted", _CANCEL_S, cancel=True)

    def _stop_workers(self, reason: str, wait_s: float, *, cancel: bool = False) -> None:
        for worker in self._crew.busy:
            worker.actor.stop.remote(reason, cancel=cancel)
        until = time.monotonic() + wait_s
        while self._crew.busy and time.monotonic() < until:
            self._advance()
