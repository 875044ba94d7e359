"""A run on a cluster: the driver hands out parts, workers ask, and the run folder has all of it.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

from omnidata import adapters
from omnidata.errors import AdapterError, RunError, UsageError, counted
from omnidata.mirror import local
from omnidata.predictions import Prediction, decode
from omnidata.run.adapter_contract import About, accepted
from omnidata.run.cost import Budget, Limits
from omnidata.run.engine import Engine
from omnidata.run.engines.ray import (
    Cluster,
    Crew,
    Died,
    Worker,
    beside_us,
    connected,
    machine,
)
from omnidata.run.folder import TRANSIENT, PartFile, RunFolder, attempts_of
from omnidata.run.scheduling import Gate, StageTimer
from omnidata.storage import drop_partial_line, open_own
from omnidata.tasks import get_task
from omnidata.types import Adapter, Completion, GenerationParams, MediaRef, Progress, Step, Task

_LOOK_S = 0.1
_SEEN_S = 60.0
"""Network disks show what another machine wrote after a while; after this one they never will."""
_AGAIN_S = 1.0
_FUTILE = 3
"""So many workers in a row that die without an answer, and the cluster is at fault."""
_DEADLY = 2
"""How often a step may be alone with a worker that dies."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model that is made where it is asked.

    Attributes:
        spec, options, base_url, key_file, models: as of `omnidata.adapters.get_adapter`.
    """

    spec: str
    options: Mapping[str, str] = field(default_factory=dict)
    base_url: str | None = None
    key_file: Path | None = None
    models: Path | None = None

    def make(self, task: Task, steps: Sequence[Step], *, asks: bool = True) -> Adapter:
        """The model; see `omnidata.adapters.get_adapter`."""
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
    """What a worker has to know of a run.

    Attributes:
        task: its name.
        options: the task's.
        data: where the dataset lies, on every machine: a path or a URL.
        fingerprint: of the dataset as the driver found it.
        model: how to make it.
        params: how to decode; the model's own if None.
        limits: of the run; rates and budget are kept by the gate of all workers.
        parts: the folder that lines go to.
    """

    task: str
    options: Mapping[str, str]
    data: str
    fingerprint: str
    model: Recipe
    params: GenerationParams | None
    limits: Limits
    parts: Path


@dataclass(frozen=True, slots=True)
class PartEnd:
    """How a part ended.

    Attributes:
        written: bytes of its lines.
        stopped, failed, slipped: as of `omnidata.run.engine.Engine`.
        timings: as of `StageTimer`.
        facts: what the model knows of the run.
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
        job: what all parts have in common.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._engine: Engine | None = None

    async def here(self) -> str:
        """The machine."""
        return machine()

    async def open(self, asked: Sequence[str] | None) -> About:
        """Load the data and the model.

        Args:
            asked: ids of the steps that the model has to take; None where another worker looked.

        Raises:
            OmnidataError: as a run on one machine; or this machine does not see the data.
        """
        return await asyncio.to_thread(self._open, asked)

    def _open(self, asked: Sequence[str] | None) -> About:
        job, model = self._job, self._job.model
        data = local(job.data)  # each machine has a mirror of its own
        _check_seen(data)
        self._task = get_task(job.task, job.options)
        source = self._task.load(data, check_media=False)
        if source.fingerprint != job.fingerprint:
            raise RunError(
                f"{machine()} has other data under this name",
                where=job.data,
                expected="the dataset that the run was begun with, on every machine",
                remedy="share one copy, or make the copies equal",
            )
        self._steps = {step.sample_id: step for step in source.steps}
        self._adapter = model.make(self._task, source.steps)
        about = accepted(
            self._task,
            self._adapter,
            job.params,
            [self._steps[name] for name in asked or ()],
            job.limits.concurrency,
        )
        self._params = about.params
        return about

    async def ask(
        self, name: str, asked: Sequence[str], known: Mapping[str, Completion], gate: Any
    ) -> PartEnd:
        """Ask about the steps of a part, in their order.

        Args:
            name: of its file.
            asked: ids.
            known: final lines of other steps of their episodes, for histories of predictions.
            gate: an actor of `SharedGate`; None where nothing is limited.

        Raises:
            OmnidataError: the folder is not there, its disk takes no more, or a prompt cannot be
                made.
        """
        limits, meter = self._job.limits, StageTimer()
        free = Gate(Limits(), Budget(Limits(), self._adapter.name))
        _check_seen(self._job.parts)
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
            )
            steps = [self._steps[each] for each in [*known, *asked]]
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
            return dict(self._adapter.run_metadata())
        except Exception:  # whatever the model lacks, it has answered
            return {}

    async def stop(self, reason: str) -> None:
        """Begin nothing more; what is under way is waited for."""
        if self._engine:
            self._engine.stop(reason)

    async def close(self) -> None:
        """Let the model go."""
        with suppress(Exception):
            await self._adapter.close()


def _check_seen(path: Path) -> None:
    """Refuse a path that another machine has, and this one not."""
    if not path.exists():
        raise RunError(
            f"{machine()} does not see it",
            where=str(path),
            expected="data and run folder on a disk that all machines share",
            remedy="name them by a path that is the same everywhere",
        )


class SharedGate:
    """The gate of all workers, in a process of its own; rates and budget are of the whole run.

    Args:
        limits: the rates.
        budget: what was used before.
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

    async def gone(self, part: str) -> None:
        """The worker of a part has died: nobody else tells of what it had under way."""
        for reserved in self._through.pop(part, Counter()).elements():
            await self._gate.leave(reserved, ())


@dataclass(frozen=True, slots=True)
class _GateAfar:
    """A `SharedGate`, asked by a worker."""

    actor: Any
    part: str

    async def enter(self) -> float | str:
        said: float | str = await self.actor.enter.remote(self.part)
        return said

    async def leave(self, reserved: float, usages: Sequence[Mapping[str, Any]]) -> None:
        await self.actor.leave.remote(self.part, reserved, list(usages))


# The driver.

_Unit = Sequence[Step]
"""Steps that one worker asks about, in their order: an episode, or a step that stands alone."""


@dataclass(eq=False, slots=True)
class _Part:
    """What is handed to a worker.

    Attributes:
        units: what is to be asked.
        deaths: how many workers have died of it, or of what it was cut from.
        name: of the file that its lines go to; empty until it is handed out.
        read: bytes of the file that are joined.
        ended: how it ended; None while it is under way.
        until: when the file has to have all that the worker wrote.
    """

    units: Sequence[_Unit]
    deaths: int = 0
    name: str = ""
    read: int = 0
    ended: PartEnd | None = None
    until: float = 0.0


class OnCluster:
    """Asks about the steps of a run, on a cluster.

    Args:
        job: what workers have to know.
        cluster: what they are given.

    Attributes:
        stopped, failed, slipped: as of `omnidata.run.engine.Engine`.
        timings: seconds of all workers together.
        facts: what each worker's knows of the run, by the worker's name.
    """

    def __init__(self, job: Job, cluster: Cluster) -> None:
        if job.limits.cache:
            raise UsageError(
                "one database of answers cannot be shared by machines",
                where=f"--cache {job.limits.cache}",
                expected="a run on this machine alone",
                remedy="leave --cache out, or --engine",
            )
        self._job, self._cluster = job, cluster
        self.stopped = self.failed = ""
        self.slipped: AdapterError | None = None
        self.timings: dict[str, float] = {}
        self.facts: dict[str, Mapping[str, Any]] = {}
        self._task = get_task(job.task, job.options)
        self._numbers = count(1)
        self._session = secrets.token_hex(4)
        self._waiting: deque[_Part] = deque()
        self._busy: dict[Worker, _Part] = {}
        self._joining: list[_Part] = []
        self._futile = self._refused = 0
        self._about: About | None = None
        self._opening: set[Worker] = set()
        self._shy_until = 0.0
        self._alone: Counter[str] = Counter()

    def begin(self, stack: Any, steps: Sequence[Step]) -> About:
        """Connect, and start the first worker, which says what the model is.

        Args:
            stack: an `ExitStack` that ends both.
            steps: that are to be asked about.

        Raises:
            OmnidataError: the cluster, the model or the data are not what they should be.
        """
        self._ray = stack.enter_context(connected(self._cluster))
        self._gate: Any = None
        self._crew = Crew(self._ray, self._cluster, AskingWorker, self._job)
        stack.callback(lambda: self._crew.close())
        names = [step.sample_id for step in steps]
        while self._about is None:
            if not self._crew.workers:
                self._hire(1, names)
            for worker, outcome in self._crew.ended(_LOOK_S):
                self._opened(worker, outcome)
        return self._about

    def _hire(self, count: int, asked: Sequence[str] | None = None) -> None:
        """Start workers, which load what they need; nobody waits for them."""
        if time.monotonic() >= self._shy_until:
            self._opening |= {*self._crew.hire(count, "open", asked)}

    def _opened(self, worker: Worker, outcome: Any) -> None:
        """A worker has loaded what it needs, or could not.

        Raises:
            RunError: there is no other that goes on.
        """
        self._opening.discard(worker)
        if isinstance(outcome, About):
            self._about = outcome
            return
        if isinstance(outcome, Died):
            self._shy_until = time.monotonic() + _AGAIN_S
            self._blame(worker.name, outcome.why)
            return
        if worker in self._crew.workers:
            self._crew.dismiss(worker)
        if not self._crew.workers:
            raise outcome
        # Those who have a place go on; after a while there may be room for more.
        self._shy_until = time.monotonic() + self._cluster.wait_s

    def _blame(self, name: str, why: str, most: int = _FUTILE) -> None:
        """A worker died before it had answered anything.

        Raises:
            RunError: as so many before it did.
        """
        self._futile += 1
        if self._futile >= most and not self._busy:
            raise RunError(
                f"{counted(self._futile, 'worker')} died in a row without an answer; the last, "
                f"{name}: {why}",
                where=f"--address {self._cluster.address}",
                expected="workers that live long enough to answer",
                remedy="Ray's logs on that machine tell more; what was answered is kept",
            )

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
            KeyboardInterrupt: on Ctrl-C; what was under way has been waited for.
        """
        assert self._about
        self._at_once = self._about.at_once
        self._run, self._steps, self._progress = run, steps, progress
        self._budget = budget
        units = self._units(steps)
        if not units:
            return
        self._todo = deque(units)
        self._left = float(sum(map(_cost, units)))
        self._limit(budget)
        self._job.parts.mkdir(exist_ok=True)
        wanted = min(self._cluster.workers or self._crew.room + 1, len(units))
        try:
            while not self.stopped and self._pending():
                self._hand_out(wanted)
                self._round()
            self._wind_up()
        except BaseException:
            with suppress(Exception):
                self._wind_up("the run was interrupted")
            raise
        finally:
            self._join_all()
            run.sync()

    def _units(self, steps: Sequence[Step]) -> list[_Unit]:
        """What is open: of an episode the steps in their order, where they follow from another."""
        open_steps = [step for step in steps if step.sample_id not in self._run.done]
        if not self._task.needs_predictions:
            return [(step,) for step in open_steps]
        episodes: dict[str, list[Step]] = {}
        for step in open_steps:
            episodes.setdefault(step.episode, []).append(step)
        return list(episodes.values())

    def _limit(self, budget: Budget) -> None:
        """Put up the gate of all workers, where the run is limited at all."""
        limits = self._job.limits
        rates = (limits.requests_per_minute, limits.tokens_per_minute)
        if not any((*rates, limits.max_cost, limits.max_tokens)):
            return
        self._gate = beside_us(self._ray, SharedGate, limits, budget)

    def _pending(self) -> bool:
        return bool(self._todo or self._waiting or self._busy or self._joining)

    def _hand_out(self, wanted: int) -> None:
        """Give each free worker a part; replace who has died."""
        lacking = wanted - len(self._crew.workers)
        if lacking > 0 and (self._todo or self._waiting):
            self._hire(lacking)
        for worker in self._crew.workers:
            if worker.call is None and (part := self._next_part(wanted)):
                number = next(self._numbers)
                names = [step.sample_id for unit in part.units for step in unit]
                digest = hashlib.sha256("\n".join(names).encode("utf-8", "surrogatepass"))
                part.name = f"{self._session}-{number}-{digest.hexdigest()[:12]}.jsonl"
                self._busy[worker] = part
                self._crew.give(worker, "ask", part.name, names, self._known(part), self._gate)

    def _next_part(self, wanted: int) -> _Part | None:
        """The next part: a share of what is left, so that all workers end together."""
        if self._waiting:
            return self._waiting.popleft()
        if not self._todo:
            return None
        share = self._left / (2 * wanted)
        units: list[_Unit] = []
        cost = 0.0
        while self._todo and (cost < share or len(units) < self._at_once):
            if units and len(self._todo) <= wanted - 1 - len(self._busy):
                break  # the others have something to do as well
            unit = self._todo.popleft()
            units.append(unit)
            cost += _cost(unit)
        self._left -= cost
        return _Part(units)

    def _known(self, part: _Part) -> dict[str, Completion]:
        """The lines that the part's histories are made of."""
        if not self._task.needs_predictions:
            return {}
        episodes = {unit[0].episode for unit in part.units}
        return {
            step.sample_id: self._run.done[step.sample_id]
            for step in self._steps
            if step.episode in episodes and step.sample_id in self._run.done
        }

    def _round(self) -> None:
        """Wait a moment for workers, and move what has been written."""
        for worker, outcome in self._crew.ended(_LOOK_S):
            if worker in self._opening:
                self._opened(worker, outcome)
            else:
                self._end(worker, outcome)
        for part in self._busy.values():
            self._join(part)
        for part in tuple(self._joining):
            self._settle(part)
        if self._progress:
            self._progress(len(self._run.done), len(self._steps))

    def _end(self, worker: Worker, outcome: Any) -> None:
        """A part has ended, one way or the other."""
        part = self._busy.pop(worker)
        self._join(part)
        if isinstance(outcome, PartEnd):
            self._futile = self._refused = 0
            part.ended, part.until = outcome, time.monotonic() + _SEEN_S
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
            self._gate.gone.remote(part.name)
        if isinstance(outcome, Died):
            self._mourn(part, worker, outcome)
        else:  # its disk is full, or a prompt cannot be made: others may do better
            self._crew.dismiss(worker)
            self._refused += 1
            if self._refused >= _FUTILE or not self._crew.workers:
                raise outcome
            self._waiting.append(_Part(self._still(part), part.deaths))
        self._drop(part)

    def _still(self, part: _Part) -> list[_Unit]:
        """The units of a part that lack lines."""
        left = [[s for s in unit if s.sample_id not in self._run.done] for unit in part.units]
        return [unit for unit in left if unit]

    def _mourn(self, part: _Part, worker: Worker, outcome: Died) -> None:
        """Find the step that a worker died of, if it was a step: what is left is cut in two."""
        if part.read:
            self._futile = 0
        else:
            # Until the step that kills is alone, nothing may be answered between deaths.
            self._blame(worker.name, outcome.why, _FUTILE + (8 * self._at_once).bit_length())
        left = self._still(part)
        if not left:
            return
        if len(left) == 1:
            step = left[0][0]
            # One that was under way alone, and not one that waited after a failed attempt.
            waited = attempts_of(self._job.parts / part.name).exists()
            self._alone[step.sample_id] += len(part.units) == 1 and not waited
            if self._alone[step.sample_id] >= _DEADLY:
                why = f"{step.sample_id}: its worker died {_DEADLY} times: {outcome.why}"
                failed = Completion(delivery="api_error", error=why)
                self._record(Prediction.of(step.sample_id, failed))
                left = self._still(part)
            self._waiting.extend([_Part(left)] if left else ())
            return
        # Steps are begun in their order, so the one that killed it is among the first.
        first = self._at_once * 4 if not part.deaths else len(left) // 2
        suspects, others = left[:first], left[first:]
        self._waiting.append(_Part(suspects, part.deaths + 1))
        if others:
            self._waiting.append(_Part(others, part.deaths))

    def _join(self, part: _Part) -> None:
        """Move whole lines that are new into the run folder."""
        try:
            file = open_own(self._job.parts / part.name, "rb")
        except FileNotFoundError:
            return
        with file:
            part.read = self._move(file, part.read, self._record, self._job.parts / part.name)

    def _move(
        self, file: IO[bytes], at: int, take: Callable[[Prediction], None], path: Path
    ) -> int:
        """Take the whole lines from a place on; returns where the next begins."""
        file.seek(at)
        for line in file:
            if not line.endswith(b"\n"):
                break
            at += len(line)
            take(decode(line, path))
        return at

    def _record(self, line: Prediction) -> None:
        """A step has one line, whoever else has asked about it."""
        if line.sample_id not in self._run.done:
            self._run.append(line.sample_id, line.completion())
            if line.delivery not in TRANSIENT:
                self._budget.spend(line.usage)

    def _settle(self, part: _Part) -> None:
        """Let go of a part that has ended once all that its worker wrote is joined.

        Raises:
            RunError: it does not come into sight.
        """
        self._join(part)
        assert part.ended
        if part.read < part.ended.written:
            if time.monotonic() > part.until:
                raise RunError(
                    f"a worker wrote {part.ended.written:,} bytes, of which this machine sees "
                    f"{part.read:,} after {_SEEN_S:g} s",
                    where=str(self._job.parts / part.name),
                    expected="a run folder on a disk that all machines share",
                    remedy="give an --out that is the same place everywhere",
                )
            return
        self._joining.remove(part)
        if (left := self._still(part)) and not self.stopped:
            self._waiting.append(_Part(left, part.deaths))
        self._drop(part)

    def _drop(self, part: _Part) -> None:
        """Take a part's files away: all lines of it are in the run folder."""
        path = self._job.parts / part.name
        self._join_attempts(attempts_of(path))
        self._run.sync()
        for gone in (path, attempts_of(path)):
            gone.unlink(missing_ok=True)

    def _join_attempts(self, path: Path) -> None:
        with suppress(FileNotFoundError), open_own(path, "rb") as file:
            self._move(file, 0, self._record_attempt, path)

    def _record_attempt(self, line: Prediction) -> None:
        self._run.append_attempt(line.sample_id, line.completion())

    def _wind_up(self, reason: str = "") -> None:
        """Let workers end what is under way, and join it."""
        for worker in self._busy:
            worker.actor.stop.remote(reason or self.stopped)
        until = time.monotonic() + (self._job.limits.timeout_s or _SEEN_S) + _SEEN_S
        while self._busy and time.monotonic() < until:
            self._round()
        while self._joining and time.monotonic() < until:
            self._round()

    def _join_all(self) -> None:
        """Whatever lies in the folder of parts."""
        for part in (*self._busy.values(), *self._joining):
            self._join(part)
        join_left(self._run)


def join_left(run: RunFolder) -> None:
    """Join what workers wrote and no driver has: it was killed, whatever engine goes on.

    Raises:
        RunError, PredictionError: the disk takes no more, or a file is none of a worker's.
    """
    folder = run.path / "parts"
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.jsonl")):
        drop_partial_line(path)
        with open_own(path, "rb") as file:
            for raw in file:
                line = decode(raw, path)
                if line.sample_id not in run.done:
                    run.append(line.sample_id, line.completion())
    for path in sorted(folder.glob("*.attempts")):
        drop_partial_line(path)
        with open_own(path, "rb") as file:
            for raw in file:
                line = decode(raw, path)
                run.append_attempt(line.sample_id, line.completion())
    run.sync()
    for path in [*folder.glob("*.jsonl"), *folder.glob("*.attempts")]:
        path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _cost(unit: _Unit) -> float:
    """What a unit costs, in steps: a step, and as much again for each megabyte of its media."""
    return sum(1.0 + sum(map(_megabytes, step.media.values())) for step in unit)


def _megabytes(ref: MediaRef | None) -> float:
    if ref is None or ref.inline is not None or ref.cell is not None:
        return 0.0
    try:
        return (ref.root / ref.path).stat().st_size / 1e6
    except (OSError, ValueError):
        return 0.0
