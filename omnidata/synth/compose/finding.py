"""Enough tasks, each once: lots of attempts until there are as many as were asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from omnidata.data.validate.pool import Lost, each
from omnidata.errors import DataError, RunError
from omnidata.metrics.graph_complexity import DIMENSIONS, level
from omnidata.storage import atomic_write
from omnidata.synth.compose.levels import Aim
from omnidata.synth.compose.search import (
    LOT,
    Job,
    Lot,
    Near,
    Search,
    Sketch,
    distinct,
    try_lot,
)
from omnidata.synth.compose.stock import Stock

PATIENCE = 24
"""Lots in a row without a new task, after which there are taken to be no more."""

_AHEAD = 64
"""Lots that are begun at a time, at most."""


@dataclass(slots=True)
class Found:
    """What the search came to.

    Attributes:
        sketches: the tasks, in the order of their attempts.
        attempts: how many were made, up to the one that came to the last task.
        missed: of these, those that came to a graph of other levels.
        failed: those that came to no graph.
        nearest: of the missed ones.
    """

    sketches: list[Sketch] = field(default_factory=list)
    attempts: int = 0
    missed: int = 0
    failed: int = 0
    nearest: Near | None = None

    def as_dict(self) -> Mapping[str, int]:
        """The counts; every attempt that is no task is one of the three others."""
        return {
            "attempts": self.attempts,
            "isomorphic_copies": self.attempts - len(self.sketches) - self.missed - self.failed,
            "other_levels": self.missed,
            "no_graph": self.failed,
        }


def find_tasks(
    stock: Stock,
    search: Search,
    folder: Path,
    *,
    tasks: int,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Found:
    """Look for distinct tasks.

    What is found does not depend on the number of processes, and the first tasks not on how many
    are asked for. Lots that are whole are kept in the folder and not tried again.

    Args:
        stock: the pool.
        search: what tasks are to be like.
        folder: for lots; made if missing.
        tasks: how many.
        workers: processes; 1 = this one.
        progress: called with the tasks found and their number.

    Raises:
        DataError: there are not so many; the message says how near the search came.
        RunError: a process was lost.
    """
    found, known = Found(), set[bytes]()
    idle = 0
    # Closed here and not by the collector of garbage, which ignores Ctrl-C while it ends processes.
    with closing(_lots(stock, search, folder, found, tasks, workers)) as lots:
        for lot in lots:
            new = distinct(lot, known=known, wanted=tasks - len(found.sketches))
            found.sketches += new
            _count(found, lot, new, ended=len(found.sketches) == tasks)
            idle = 0 if new else idle + 1
            if progress:
                progress(len(found.sketches), tasks)
            if len(found.sketches) == tasks:
                break
            if idle == PATIENCE:
                raise _too_few(found, search.aim, tasks)
    return found


def _count(found: Found, lot: Lot, new: Sequence[Sketch], *, ended: bool) -> None:
    """Add up the counts of a lot; of the last one only up to the last task that was taken."""
    first = lot.number * LOT
    end = new[-1].attempt + 1 if ended else first + LOT
    found.attempts += end - first
    found.missed += sum(attempt < end for attempt in lot.missed)
    found.failed += sum(attempt < end for attempt in lot.failed)
    if lot.nearest and (found.nearest is None or lot.nearest.gap < found.nearest.gap):
        found.nearest = lot.nearest


def _lots(
    stock: Stock, search: Search, folder: Path, found: Found, tasks: int, workers: int
) -> Generator[Lot]:
    """Lots without end, in order; those of a batch are tried at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    first = 0
    while True:
        rate = len(found.sketches) / found.attempts if found.attempts else 0.0
        missing = tasks - len(found.sketches)
        size = min(_AHEAD, math.ceil(missing / (rate * LOT) * 1.05)) if rate else workers
        yield from _batch(stock, search, folder, range(first, first + size), workers)
        first += size


def _batch(
    stock: Stock, search: Search, folder: Path, numbers: range, workers: int
) -> Generator[Lot]:
    paths = {number: folder / f"{number:07d}.msgpack" for number in numbers}
    open_ = [number for number, path in paths.items() if not path.is_file()]
    jobs = [Job(stock, search, number) for number in open_]
    with closing(_tried(jobs, workers)) as answers:
        yield from _kept(paths, set(open_), answers)


def _tried(jobs: Sequence[Job], workers: int) -> Generator[Lot | Lost]:
    if workers == 1 or len(jobs) == 1:
        yield from map(try_lot, jobs)
    else:
        yield from each(try_lot, jobs, workers=workers, limit_s=math.inf)


def _kept(
    paths: Mapping[int, Path], tried: set[int], answers: Iterator[Lot | Lost]
) -> Generator[Lot]:
    """All lots; those that have just been tried are kept from now on."""
    for number, path in paths.items():
        if number not in tried:
            yield msgspec.msgpack.decode(path.read_bytes(), type=Lot)
            continue
        lot = next(answers)
        if isinstance(lot, Lost):
            raise RunError(
                f"a process was lost: {lot.why}",
                where=str(path.parent),
                expected="room in memory",
                remedy="the same command goes on where this one stopped",
            )
        with atomic_write(path) as file:
            file.write(msgspec.msgpack.encode(lot))
        yield lot


def _too_few(found: Found, aim: Aim, tasks: int) -> DataError:
    count = len(found.sketches)
    asked = " ".join(f"{name}={value}" for name, value in aim.levels.items()) or "any levels"
    tried = f"{found.attempts:,} attempts"
    if count:
        return DataError(
            f"the pool has {count} distinct tasks with {asked}, as far as {tried} tell",
            where=f"--tasks {tasks}",
            expected="as many as are asked for, each once",
            remedy=f"ask for {count}, for other levels, or for more subtasks with --most; or give "
            "a larger pool",
        )
    near = "no graph of two subtasks at all"
    if found.nearest:
        near = "the nearest has " + ", ".join(
            f"{name} {value} ({level(name, value)})"
            for name, value in zip(DIMENSIONS, found.nearest.measured, strict=True)
        )
    return DataError(
        f"none of {tried} came to a task with {asked}; {near}",
        where=" ".join(f"--level {name}={value}" for name, value in aim.levels.items())
        or f"--tasks {tasks}",
        expected="levels that graphs of this pool can have",
        remedy="ask for other levels, or for more subtasks with --most; or give a larger pool",
    )
