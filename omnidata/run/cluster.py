"""A run on a cluster: the driver hands out parts, and workers ask about their steps.

A worker writes each answer into a file of its own below `RUN/parts/` the moment it comes, as a run
on one machine does; the driver moves lines into `predictions.jsonl`, one per step. So a worker that
dies costs the requests that were under way, a driver that dies costs nothing, and it does not
matter which engine resumes. Workers and driver share the folder and the data: a shared disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from omnidata import adapters
from omnidata.errors import AdapterError, RunError, UsageError
from omnidata.loaders.steps import Steps, as_steps
from omnidata.plugins import blaming
from omnidata.predictions import Prediction, decode
from omnidata.registry import plugin_origin
from omnidata.run.adapter_contract import About, describe_model, one_of_each_kind
from omnidata.run.ask import Engine
from omnidata.run.cost import Budget, Limits
from omnidata.run.engines.ray import (
    FUTILE,
    SEEN_S,
    Cluster,
    Crew,
    Died,
    Place,
    Worker,
    beside_us,
    check_seen,
    connect,
    machine,
)
from omnidata.run.folder import TRANSIENT, PartFile, RunFolder, attempts_of
from omnidata.run.histories import not_asked
from omnidata.run.pace import CircuitBreaker, Gate, StageTimer
from omnidata.run.run_files import INFO, check_info
from omnidata.storage import open_own
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import Adapter, Completion, GenerationParams, Progress, Step

_DEADLY = 2
"""How often a step may be alone with a worker that dies."""
_LARGEST = 2_000
"""The highest `_cost` of a part, whose answers its worker holds in memory."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Description of a model, created in the process that asks it.

    Attributes:
        spec, options, base_url, key_file, models: as in `omnidata.adapters.get_adapter`.
    """

    spec: str
    options: Mapping[str, str] = field(default_factory=dict)
    base_url: str | None = None
    key_file: Path | None = None
    models: Path | None = None

    def make(self, task: Asking, steps: Sequence[Step], *, asks: bool = True) -> Adapter:
        """Return the model; see `omnidata.adapters.get_adapter`."""
        return adapters.get_adapter(
            self.spec,
            task,
            steps,
            options=self.options,
            base_url=self.base_url,
            key_file=self.key_file,
            models=self.models,
            asks=asks,
        )


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
        written: bytes of its lines.
        stopped, failed, slipped: as of `omnidata.run.ask.Engine`.
        timings: as of `StageTimer`.
        facts: the model's `run_metadata`.
    """

    written: int
    stopped: str
    failed: str
    slipped: str
    timings: Mapping[str, float]
    facts: Mapping[str, Any]


class AskingWorker:
    """Asks about parts of a run, in a process of the cluster.

    Args:
        job: shared by all parts.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._engine: Engine | None = None
        self._breaker = CircuitBreaker()  # of all its parts together

    async def here(self) -> str:
        """Return the name of the machine."""
        return machine()

    async def open(self, samples: Sequence[Step], code: str = "") -> About:
        """Load the model.

        Args:
            samples: steps of every kind that the model has to take.
            code: of the model on the machine that opened first; empty there.

        Raises:
            OmnidataError: as a run on one machine; or this machine does not see the data, or has
                other code of the model.
        """
        return await asyncio.to_thread(self._open, samples, code)

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

    async def ask(
        self, name: str, steps: Sequence[Step], known: Mapping[str, Completion], gate: Any
    ) -> PartEnd:
        """Ask about the steps of a part, in their order.

        Args:
            name: of its file.
            steps: of the part, behind those of their episodes that have a line already.
            known: those lines, for histories of predictions.
            gate: an actor of `SharedGate`; None where nothing is limited.

        Raises:
            OmnidataError: the folder is missing, its disk is full, or a prompt cannot be made.
        """
        limits, meter = self._job.limits, StageTimer()
        free = Gate(Limits(), Budget(Limits(), self._adapter.name))
        check_seen([Place(self._job.parts)])
        path = self._job.parts / name
        lines = PartFile(path, known)
        try:
            self._engine = engine = Engine(
                self._task,
                self._adapter,
                lines,
                self._params,
                limits=limits,
                gate=_GateAfar(gate, name) if gate else free,
                cache=None,
                meter=meter,
                breaker=self._breaker,
            )
            with blaming(plugin_origin(self._task.name)):
                await engine.ask(steps, None)
        finally:
            self._engine = None
            lines.close()
        return PartEnd(
            path.stat().st_size if path.exists() else 0,
            engine.stopped,
            engine.failed,
            str(engine.slipped or ""),
            meter.timings(),
            self._facts(),
        )

    def _facts(self) -> Mapping[str, Any]:
        try:
            facts = dict(self._adapter.run_metadata())
            check_info({"task": "", "model": "", "facts": facts}, Path(INFO))
            return facts
        except Exception:  # whatever the model lacks, it has answered
            return {}

    async def stop(self, reason: str) -> None:
        """Start no more requests; those in flight are waited for."""
        if self._engine:
            self._engine.stop(reason)


class SharedGate:
    """The gate of all workers, in a process of its own; rates and budget are of the whole run.

    Args:
        limits: the rates.
        budget: with the answers that the run has.
    """

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._gate = Gate(limits, budget)
        self._through: dict[str, Counter[float]] = {}

    async def enter(self, part: str) -> float | str:
        """As `Gate.enter`, for a part."""
        reserved = await self._gate.enter()
        if not isinstance(reserved, str):
            self._through.setdefault(part, Counter())[reserved] += 1
        return reserved

    async def leave(self, part: str, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        """As `Gate.leave`, for a part."""
        if self._through.get(part, Counter())[reserved] > 0:
            self._through[part][reserved] -= 1
            await self._gate.leave(reserved, usages)

    async def leave_dead(self, part: str) -> None:
        """Release the requests that the dead worker of a part had in flight."""
        for reserved in self._through.pop(part, Counter()).elements():
            await self._gate.leave(reserved, ())


@dataclass(frozen=True, slots=True)
class _GateAfar:
    actor: Any
    part: str

    async def enter(self) -> float | str:
        said: float | str = await self.actor.enter.remote(self.part)
        return said

    async def leave(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        await self.actor.leave.remote(self.part, reserved, list(usages))


# The driver.

_Unit = Sequence[int]
"""Indices of the steps that one worker asks about, in order: an episode, or a step alone."""


@dataclass(eq=False, slots=True)
class _Part:
    units: Sequence[_Unit]
    deaths: int = 0
    name: str = ""
    read: int = 0
    ended: PartEnd | None = None
    until: float = 0.0


class _Units:
    def __init__(self, steps: Steps, done: Container[str], *, whole: bool) -> None:
        self._steps = steps
        self._episodes = steps.episodes if whole else np.arange(len(steps))
        ids = enumerate(steps.sample_ids)
        left = np.fromiter((number for number, name in ids if name not in done), np.int64)
        owner = self._episodes[left]
        order = np.argsort(owner, kind="stable")
        self._numbers = left[order]
        begins = np.flatnonzero(np.diff(owner[order], prepend=-1))
        self._bounds = np.append(begins, len(left))
        self._given = 0

    def __len__(self) -> int:
        return len(self._bounds) - 1 - self._given

    def popleft(self) -> _Unit:
        begin, end = self._bounds[self._given : self._given + 2]
        self._given += 1
        unit: list[int] = self._numbers[begin:end].tolist()
        return unit

    def cost(self) -> float:
        return _cost(self._steps.select(self._numbers))

    def beside(self, units: Sequence[_Unit]) -> list[int]:
        owners = self._episodes[[unit[0] for unit in units]]
        return np.flatnonzero(np.isin(self._episodes, owners)).tolist()


class OnCluster:
    """Asks about the steps of a run, on a cluster.

    Args:
        job: shared by all workers.
        cluster: the machines.

    Attributes:
        stopped, failed, slipped, asked, reused: as of `omnidata.run.ask.Engine`.
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
        self.stopped = self.failed = ""
        self.slipped: AdapterError | None = None
        self.asked = self.reused = 0
        self.timings: dict[str, float] = {}
        self.facts: dict[str, Mapping[str, Any]] = {}
        self._task = job.unnamed or get_task(job.task, job.options)
        self._numbers = count(1)
        self._session = secrets.token_hex(4)
        self._waiting: deque[_Part] = deque()
        self._busy: dict[Worker, _Part] = {}
        self._joining: list[_Part] = []
        self._refused = self._unsent = 0
        self._alone: Counter[str] = Counter()

    def begin(self, stack: Any, steps: Sequence[Step]) -> About:
        """Connect, start the first worker, and return its description of the model.

        Args:
            stack: an `ExitStack` that ends both.
            steps: that are to be asked about.

        Raises:
            OmnidataError: the cluster, the model or the data cannot be used.
        """
        self._ray = stack.enter_context(connect(self._cluster))
        from_store = any(place.url for place in self._job.places)
        self._crew = Crew(self._ray, self._cluster, AskingWorker, self._job, from_store=from_store)
        stack.callback(self._crew.close)
        about: About = self._crew.first(one_of_each_kind(steps))
        self._at_once, self._code = about.at_once, about.code
        return about

    def ask(
        self,
        steps: Sequence[Step],
        run: RunFolder,
        budget: Budget,
        progress: Progress | None,
    ) -> None:
        """Ask about every step that has no line.

        Raises:
            RunError: the cluster or a disk is at fault.
            KeyboardInterrupt: on Ctrl-C, once the requests in flight have ended.
        """
        self._run, self._progress, self._budget = run, progress, budget
        self._steps = as_steps(steps)
        self._ids = self._steps.sample_ids
        self._todo = _Units(self._steps, run.done, whole=self._task.needs_predictions)
        if not self._todo:
            return
        self._left = self._todo.cost()
        limits = self._job.limits
        rates = (limits.requests_per_minute, limits.tokens_per_minute)
        is_limited = any((*rates, limits.max_cost, limits.max_tokens))
        self._gate = beside_us(self._ray, SharedGate, limits, budget) if is_limited else None
        self._job.parts.mkdir(exist_ok=True)
        before = len(run.done)
        wanted = min(self._cluster.workers or self._crew.room + 1, len(self._todo))
        try:
            while not self.stopped and (self._todo or self._waiting or self._busy or self._joining):
                self._hand_out(wanted)
                self._round()
            self._wind_up()
        except BaseException:
            with suppress(Exception):
                self._wind_up("the run was interrupted")
            raise
        finally:
            for part in (*self._busy.values(), *self._joining):
                self._join(part)
            join_left(run, again=False)
            self.asked = len(run.done) - before - self._unsent
            run.sync()

    def _hand_out(self, wanted: int) -> None:
        if self._todo or self._waiting:
            self._crew.fill(wanted, (), self._code)
        for worker in self._crew.free:
            if part := self._next_part(wanted):
                asked = [number for unit in part.units for number in unit]
                names = "\n".join(self._ids[number] for number in asked)
                digest = hashlib.sha256(names.encode("utf-8", "surrogatepass"))
                part.name = f"{self._session}-{next(self._numbers)}-{digest.hexdigest()[:12]}.jsonl"
                self._busy[worker] = part
                beside = self._todo.beside(part.units) if self._task.needs_predictions else ()
                before = [number for number in beside if self._ids[number] in self._run.done]
                known = {(name := self._ids[number]): self._run.done[name] for number in before}
                # As bytes: another machine has no such file, and asking takes 500 times as long.
                steps = self._steps.select([*before, *asked]).pack()
                self._crew.give(worker, "ask", part.name, steps, known, self._gate)

    def _next_part(self, wanted: int) -> _Part | None:
        """Return a share of the remaining units, so that all workers end together."""
        if self._waiting:
            return self._waiting.popleft()
        if not self._todo:
            return None
        share = min(self._left / (2 * wanted), _LARGEST)
        units: list[_Unit] = []
        cost = 0.0
        while self._todo and (cost < share or len(units) < self._at_once):
            if units and len(self._todo) <= wanted - 1 - len(self._busy):
                break  # the others have something to do as well
            unit = self._todo.popleft()
            units.append(unit)
            cost += _cost(self._steps.select(unit))
        self._left -= cost
        return _Part(units)

    def _round(self) -> None:
        for worker, outcome in self._crew.finished_calls():
            self._end(worker, outcome)
        for part in self._busy.values():
            self._join(part)
        for part in tuple(self._joining):
            self._settle(part)
        if self._progress:
            self._progress(len(self._run.done), len(self._steps))

    def _end(self, worker: Worker, outcome: Any) -> None:
        part = self._busy.pop(worker)
        self._join(part)
        if isinstance(outcome, PartEnd):
            self._crew.reset_deaths()
            self._refused = 0
            part.ended, part.until = outcome, time.monotonic() + SEEN_S
            self._joining.append(part)
            for name, seconds in outcome.timings.items():
                self.timings[name] = self.timings.get(name, 0.0) + seconds
            if outcome.facts:
                self.facts[worker.name] = outcome.facts
            self.failed = outcome.failed or self.failed
            if outcome.slipped:
                self.slipped = AdapterError(outcome.slipped, where=worker.name)
            if outcome.stopped and not self.stopped:
                self.stopped = outcome.stopped
            return
        if self._gate:
            self._gate.leave_dead.remote(part.name)
        if isinstance(outcome, Died):
            self._isolate(part, worker, outcome)
        else:  # its disk is full, or a prompt cannot be made: others may do better
            self._crew.dismiss(worker)
            self._refused += 1
            if self._refused >= FUTILE or not self._crew.workers:
                raise outcome
            self._waiting.append(_Part(self._units_left(part), part.deaths))
        self._drop(part)

    def _units_left(self, part: _Part) -> list[_Unit]:
        done = self._run.done
        left = [[each for each in unit if self._ids[each] not in done] for unit in part.units]
        kept = [unit for unit in left if unit]
        beside = self._todo.beside(kept) if kept and self._task.needs_predictions else ()
        over = not_asked(self._task, self._steps.select(beside), done)
        return [unit for unit in kept if self._ids[unit[0]] not in over]

    def _isolate(self, part: _Part, worker: Worker, outcome: Died) -> None:
        """Find the step that killed a worker by halving what is left."""
        if part.read:
            self._crew.reset_deaths()
        else:
            # Until the step that kills is alone, nothing may be answered between deaths.
            self._crew.count_death(worker, outcome, FUTILE + (8 * self._at_once).bit_length())
        left = self._units_left(part)
        if not left:
            return
        if len(left) == 1:
            sample_id = self._ids[left[0][0]]
            # One that was under way alone, and not one that waited after a failed attempt.
            waited = attempts_of(self._job.parts / part.name).exists()
            self._alone[sample_id] += len(part.units) == 1 and not waited
            if self._alone[sample_id] >= _DEADLY:
                why = f"{sample_id}: its worker died {_DEADLY} times: {outcome.why}"
                failed = Completion(delivery="api_error", error=why)
                self._record(Prediction.of(sample_id, failed))
                left = self._units_left(part)
            self._waiting.extend([_Part(left)] if left else ())
            return
        # Steps are begun in their order, so the one that killed it is among the first.
        first = self._at_once * 4 if not part.deaths else len(left) // 2
        suspects, others = left[:first], left[first:]
        self._waiting.append(_Part(suspects, part.deaths + 1))
        if others:
            self._waiting.append(_Part(others, part.deaths))

    def _join(self, part: _Part) -> None:
        """Move new whole lines into the run folder."""
        for end, line in _whole_lines(self._job.parts / part.name, part.read):
            self._record(line)
            part.read = end

    def _record(self, line: Prediction) -> None:
        """Record one line per step, even if several workers asked about it."""
        if line.sample_id not in self._run.done:
            self._run.append(line.sample_id, line.completion())
            self._unsent += not line.attempts
            if line.delivery not in TRANSIENT:
                self._budget.spend(line.usage)

    def _settle(self, part: _Part) -> None:
        """Release a finished part once all that its worker wrote is joined."""
        self._join(part)
        assert part.ended
        if part.read < part.ended.written:
            if time.monotonic() > part.until:
                raise RunError(
                    f"a worker wrote {part.ended.written:,} bytes, of which this machine sees "
                    f"{part.read:,} after {SEEN_S:g} s",
                    where=str(self._job.parts / part.name),
                    expected="a run folder on a disk that all machines share",
                    remedy="choose an --out that is the same folder on every machine",
                )
            return
        self._joining.remove(part)
        if (left := self._units_left(part)) and not self.stopped:
            self._waiting.append(_Part(left, part.deaths))
        self._drop(part)

    def _drop(self, part: _Part) -> None:
        path = self._job.parts / part.name
        for _, line in _whole_lines(attempts_of(path)):
            self._run.append_attempt(line.sample_id, line.completion())
        self._run.sync()
        for gone in (path, attempts_of(path)):
            gone.unlink(missing_ok=True)

    def _wind_up(self, reason: str = "") -> None:
        for worker in self._busy:
            worker.actor.stop.remote(reason or self.stopped)
        until = time.monotonic() + (self._job.limits.timeout_s or SEEN_S) + SEEN_S
        while self._busy and time.monotonic() < until:
            self._round()
        while self._joining and time.monotonic() < until:
            self._round()


def join_left(run: RunFolder, *, again: bool) -> None:
    """Join the lines that workers wrote for a driver that was killed.

    Args:
        run: the folder.
        again: make attempts of transient failures: their steps are to be asked again.

    Raises:
        RunError, PredictionError: the disk is full, or a file was not written by a worker.
    """
    folder = run.path / "parts"
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.jsonl")):
        for _, line in _whole_lines(path):
            if again and line.delivery in TRANSIENT:
                run.append_attempt(line.sample_id, line.completion())
            elif line.sample_id not in run.done:
                run.append(line.sample_id, line.completion())
    for path in sorted(folder.glob("*.attempts")):
        for _, line in _whole_lines(path):
            run.append_attempt(line.sample_id, line.completion())
    run.sync()
    for path in [*folder.glob("*.jsonl"), *folder.glob("*.attempts")]:
        path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _whole_lines(path: Path, start: int = 0) -> Iterator[tuple[int, Prediction]]:
    """Yield the lines of a file with the byte behind each, but for a last one that is torn."""
    with suppress(FileNotFoundError), open_own(path, "rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                break
            start += len(line)
            yield start, decode(line, path)


def _cost(steps: Iterable[Step]) -> float:
    """Return the cost of steps: one for each, and one for each megabyte of its media."""
    cost = 0.0
    for step in steps:
        files = (ref for ref in step.media.values() if ref and not (ref.inline or ref.cell))
        cost += 1.0 + sum(_megabytes(ref.root, ref.path) for ref in files)
    return cost


@lru_cache(maxsize=4096)
def _megabytes(root: Path, path: str) -> float:
    try:
        return (root / path).stat().st_size / 1e6
    except (OSError, ValueError):
        return 0.0
