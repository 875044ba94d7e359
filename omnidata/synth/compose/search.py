"""Attempts in numbered batches, whose results depend on the settings and the number alone."""

from __future__ import annotations

import hashlib
import math
import random
from collections import defaultdict
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from itertools import permutations, product
from math import factorial, prod
from pathlib import Path
from typing import NamedTuple

import msgspec

from omnidata.errors import DataError, RunError
from omnidata.graphs import Graph
from omnidata.metrics.graph_complexity import DIMENSIONS, Complexity, complexity, level
from omnidata.run.engines import Cluster, Lost, each
from omnidata.run.engines.ray import connect
from omnidata.storage import atomic_write
from omnidata.synth.compose.graph_sampler import PartialPlan, grow
from omnidata.synth.compose.pool import IndexedPool
from omnidata.synth.compose.settings import ComplexityTarget, EdgeRule
from omnidata.types import Progress

# The identity of tasks, without the names of their nodes.

_MOST = 5040
"""The largest number of ways to number equal nodes; every task of a real pool has fewer."""


def identity(labels: Sequence[Hashable], edges: Sequence[tuple[int, int]]) -> bytes:
    """Return 16 bytes that two graphs share if and only if they are isomorphic.

    Nodes are distinguished by their labels, then by those of their neighbours (colour refinement,
    by Weisfeiler and Leman). Equal nodes are numbered in every way, and the smallest result counts.

    Args:
        labels: of the nodes; values with the same `repr` in every process.
        edges: pairs of nodes.

    Examples:
        >>> identity(["a", "b"], [(0, 1)]) == identity(["b", "a"], [(1, 0)])
        True
        >>> identity(["a", "a"], [(0, 1)]) == identity(["a", "a"], [])
        False
    """
    colours = _refine([repr(label) for label in labels], edges)
    classes: dict[str, list[int]] = defaultdict(list)
    for node, colour in enumerate(colours):
        classes[colour].append(node)
    ordered = [classes[colour] for colour in sorted(classes)]
    alone = prod(factorial(len(nodes)) for nodes in ordered) > _MOST
    ways = product(*([tuple(nodes)] if alone else list(permutations(nodes)) for nodes in ordered))
    best: list[tuple[int, int]] | None = None
    for way in ways:
        numbers = {node: number for number, node in enumerate(n for nodes in way for n in nodes)}
        found = sorted((numbers[first], numbers[second]) for first, second in edges)
        if best is None or found < best:
            best = found
    key = repr((sorted(colours), best or []))
    return hashlib.blake2b(key.encode(), digest_size=16).digest()


def _refine(colours: list[str], edges: Sequence[tuple[int, int]]) -> list[str]:
    before: Mapping[int, list[int]] = defaultdict(list)
    after: Mapping[int, list[int]] = defaultdict(list)
    for first, second in edges:
        after[first].append(second)
        before[second].append(first)
    known = 0
    while known < len(set(colours)):
        known = len(set(colours))
        colours = [
            _digest(
                (
                    colour,
                    sorted(colours[n] for n in before[node]),
                    sorted(colours[n] for n in after[node]),
                )
            )
            for node, colour in enumerate(colours)
        ]
    return colours


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


BATCH = 512
"""The number of attempts in a batch."""


@dataclass(frozen=True, slots=True)
class Search:
    """The settings that all batches share."""

    seed: int
    target: ComplexityTarget
    rule: EdgeRule


Measured = tuple[int, ...]
"""A value of each dimension, in their order."""

Near = tuple[int, Measured]
"""The distance of a graph from the levels, and its values."""


class Sketch(msgspec.Struct, frozen=True, array_like=True):
    """A task.

    Attributes:
        attempt: its number.
        group: of the indexed pool.
        instances: in a valid order.
        edges: between places in that order.
        initial: resources that must exist before it begins.
        key: see `identity`.
        measured: its complexity.
    """

    attempt: int
    group: int
    instances: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    initial: tuple[int, ...]
    key: bytes
    measured: Measured


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The result of a batch.

    Attributes:
        number: of the batch.
        found: each task once.
        missed, failed: numbers of the attempts with a graph of other levels, and with none.
        nearest: the missed graph with the smallest distance.
    """

    number: int
    found: list[Sketch]
    missed: list[int]
    failed: list[int]
    nearest: Near | None


class Job(NamedTuple):
    """A batch to be tried; picklable."""

    indexed: IndexedPool
    search: Search
    number: int


def try_batch(job: Job) -> Batch:
    """Make the attempts of a batch."""
    indexed, search, number = job
    found: dict[bytes, Sketch] = {}
    missed: list[int] = []
    failed: list[int] = []
    nearest: Near | None = None
    for attempt in range(number * BATCH, (number + 1) * BATCH):
        rng = random.Random(f"{search.seed}/compose/{attempt}")
        place = rng.randrange(len(indexed.groups))
        plan = grow(indexed, indexed.groups[place], search.target, search.rule, rng)
        if plan is None:
            failed.append(attempt)
            continue
        measured = _measure(plan)
        values = tuple(getattr(measured, name) for name in DIMENSIONS)
        if gap := search.target.gap(measured):
            missed.append(attempt)
            if nearest is None or gap < nearest[0]:
                nearest = gap, values
            continue
        key = identity(plan.instances, plan.edges)
        instances, edges, opened = tuple(plan.instances), tuple(plan.edges), sorted(plan.opened)
        found.setdefault(key, Sketch(attempt, place, instances, edges, tuple(opened), key, values))
    return Batch(number, list(found.values()), missed, failed, nearest)


def _measure(plan: PartialPlan) -> Complexity:
    names = [str(place) for place in range(len(plan.instances))]
    kinds = [plan.pool.categories[one] for one in plan.instances]
    graph = Graph(tuple(names), tuple((names[a], names[b]) for a, b in plan.edges))
    return complexity(graph, dict(zip(names, kinds, strict=True)), {})


# Batches of attempts until there are enough distinct tasks.

PATIENCE = 24
"""Batches in a row without a new task that end the search."""

_AHEAD = 64
"""The largest number of batches at a time."""


@dataclass(slots=True)
class Found:
    """The result of the search.

    Attributes:
        sketches: the tasks, in the order of their attempts.
        attempts: their number up to the last task.
        missed, failed, nearest: of these attempts, as of a batch.
    """

    sketches: list[Sketch] = field(default_factory=list)
    attempts: int = 0
    missed: int = 0
    failed: int = 0
    nearest: Near | None = None

    def as_dict(self) -> Mapping[str, int]:
        """Return the counts; every attempt that is no task is one of the three others."""
        return {
            "attempts": self.attempts,
            "isomorphic_copies": self.attempts - len(self.sketches) - self.missed - self.failed,
            "other_levels": self.missed,
            "no_graph": self.failed,
        }


def find_tasks(
    indexed: IndexedPool,
    search: Search,
    folder: Path,
    *,
    tasks: int,
    workers: int = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> Found:
    """Look for distinct tasks.

    The result does not depend on the number of processes, and the first tasks not on the number
    of tasks. Finished batches are kept in the folder and not tried again.

    Raises:
        DataError: there are fewer tasks; the message says how near the search came.
        RunError: a process was lost.
    """
    found, known, idle = Found(), set[bytes](), 0
    # Closed here, since the garbage collector would ignore Ctrl-C while it ends processes.
    with (
        connect(cluster) if cluster else nullcontext(),
        closing(_batches(indexed, search, folder, found, tasks, workers, cluster)) as batches,
    ):
        for batch in batches:
            new = [sketch for sketch in batch.found if sketch.key not in known]
            new = new[: tasks - len(found.sketches)]
            known.update(sketch.key for sketch in new)
            found.sketches += new
            _count(found, batch, new, ended=len(found.sketches) == tasks)
            idle = 0 if new else idle + 1
            if progress:
                progress(len(found.sketches), tasks)
            if len(found.sketches) == tasks:
                break
            if idle == PATIENCE:
                raise _too_few(found, search.target, tasks)
    return found


def _count(found: Found, batch: Batch, new: Sequence[Sketch], *, ended: bool) -> None:
    first = batch.number * BATCH
    end = new[-1].attempt + 1 if ended else first + BATCH
    found.attempts += end - first
    found.missed += sum(attempt < end for attempt in batch.missed)
    found.failed += sum(attempt < end for attempt in batch.failed)
    if batch.nearest and (found.nearest is None or batch.nearest[0] < found.nearest[0]):
        found.nearest = batch.nearest


def _batches(
    indexed: IndexedPool,
    search: Search,
    folder: Path,
    found: Found,
    tasks: int,
    workers: int,
    cluster: Cluster | None,
) -> Generator[Batch]:
    """Yield batches without end, as many at a time as are likely to be needed."""
    folder.mkdir(parents=True, exist_ok=True)
    first = 0
    while True:
        rate = len(found.sketches) / found.attempts if found.attempts else 0.0
        missing = tasks - len(found.sketches)
        size = min(_AHEAD, math.ceil(missing / (rate * BATCH) * 1.05)) if rate else workers
        paths = {n: folder / f"{n:07d}.msgpack" for n in range(first, first + size)}
        jobs = [Job(indexed, search, n) for n, path in paths.items() if not path.is_file()]
        tried = {job.number for job in jobs}
        with closing(each(try_batch, jobs, workers=workers, cluster=cluster)) as answers:
            for number, path in paths.items():
                if number not in tried:
                    yield msgspec.msgpack.decode(path.read_bytes(), type=Batch)
                    continue
                batch = next(answers)
                if isinstance(batch, Lost):
                    raise RunError(
                        f"a process was lost: {batch.why}",
                        where=str(folder),
                        expected="enough memory",
                        remedy="the same command resumes",
                    )
                with atomic_write(path) as file:
                    file.write(msgspec.msgpack.encode(batch))
                yield batch
        first += size


def _too_few(found: Found, target: ComplexityTarget, tasks: int) -> DataError:
    count = len(found.sketches)
    asked = " ".join(f"{name}={value}" for name, value in target.levels.items()) or "any levels"
    tried = f"{found.attempts:,} attempts"
    if count:
        return DataError(
            f"the pool has {count} distinct tasks with {asked}, as far as {tried} tell",
            where=f"--tasks {tasks}",
            expected="as many distinct tasks as requested",
            remedy=f"ask for {count}, for other levels, or for more subtasks with --most; or give "
            "a larger pool",
        )
    near = "no graph of two subtasks at all"
    if found.nearest:
        near = "the nearest has " + ", ".join(
            f"{name} {value} ({level(name, value)})"
            for name, value in zip(DIMENSIONS, found.nearest[1], strict=True)
        )
    return DataError(
        f"none of {tried} gave a task with {asked}; {near}",
        where=" ".join(f"--level {name}={value}" for name, value in target.levels.items())
        or f"--tasks {tasks}",
        expected="levels that graphs of this pool can have",
        remedy="ask for other levels, or for more subtasks with --most; or use a larger pool",
    )
