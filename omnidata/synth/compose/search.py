"""Attempts in numbered batches: what one finds follows from the settings and its number alone."""

from __future__ import annotations

import hashlib
import math
import random
from collections import defaultdict
from collections.abc import Generator, Hashable, Iterator, Mapping, Sequence
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

# What two tasks have in common that differ in the names of their nodes only.

_MOST = 5040
"""Ways to number equal nodes that are tried; there are fewer in every task of a real pool."""


def identity(labels: Sequence[Hashable], edges: Sequence[tuple[int, int]]) -> bytes:
    """Return a key that two graphs share if and only if they are isomorphic.

    Nodes are distinguished by their labels, then by those of their neighbours (colour refinement,
    by Weisfeiler and Leman). Equal nodes are numbered in every way, and the smallest result counts.

    Args:
        labels: of the nodes: subtask and parameters. Any values that have the same `repr` in every
            process.
        edges: pairs of nodes.

    Returns:
        16 bytes.

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
                    sorted(colours[other] for other in before[node]),
                    sorted(colours[other] for other in after[node]),
                )
            )
            for node, colour in enumerate(colours)
        ]
    return colours


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


BATCH = 512
"""Attempts of a batch."""


@dataclass(frozen=True, slots=True)
class Search:
    """The settings that all batches share.

    Attributes:
        seed: decides.
        target: what tasks are to be like.
        rule: which edges there are.
    """

    seed: int
    target: ComplexityTarget
    rule: EdgeRule


class Sketch(msgspec.Struct, frozen=True, array_like=True):
    """A task that has been found.

    Attributes:
        attempt: its number.
        group: of the indexed pool.
        instances: in an order in which they can be done.
        edges: between places in that order.
        initial: resources that must exist before it begins.
        key: equal for equal tasks, see `identity`.
        measured: dependency, instruction, knowledge, hierarchy, branch.
    """

    attempt: int
    group: int
    instances: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    initial: tuple[int, ...]
    key: bytes
    measured: tuple[int, int, int, int, int]


class Near(msgspec.Struct, frozen=True, array_like=True):
    """The graph that came nearest to the levels without having them.

    Attributes:
        gap: how far it is from them.
        measured: as in `Sketch`.
    """

    gap: int
    measured: tuple[int, int, int, int, int]


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The result of a batch.

    Attributes:
        number: of the batch.
        found: each task once.
        missed: numbers of the attempts that came to a graph of other levels.
        failed: numbers of those that came to no graph.
        nearest: of the missed ones; None if there are none.
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
        measured = measure(indexed, plan)
        gap = search.target.gap(measured)
        if gap:
            missed.append(attempt)
            if nearest is None or gap < nearest.gap:
                nearest = Near(gap, _values(measured))
            continue
        sketch = Sketch(
            attempt,
            place,
            tuple(plan.instances),
            tuple(plan.edges),
            tuple(plan.opened),
            identity(plan.instances, plan.edges),
            _values(measured),
        )
        found.setdefault(sketch.key, sketch)
    return Batch(number, list(found.values()), missed, failed, nearest)


def measure(indexed: IndexedPool, plan: PartialPlan) -> Complexity:
    """Return the complexity of a graph in the making."""
    names = [str(place) for place in range(len(plan.instances))]
    kinds = {
        name: str(indexed.categories[one]) for name, one in zip(names, plan.instances, strict=True)
    }
    graph = Graph(tuple(names), tuple((names[a], names[b]) for a, b in plan.edges))
    return complexity(graph, kinds, {})


def _values(measured: Complexity) -> tuple[int, int, int, int, int]:
    return (
        measured.dependency,
        measured.instruction,
        measured.knowledge,
        measured.hierarchy,
        measured.branch,
    )


def _new_tasks(batch: Batch, *, known: set[bytes], wanted: int) -> list[Sketch]:
    new: list[Sketch] = []
    for sketch in batch.found:
        if len(new) == wanted:
            break
        if sketch.key not in known:
            known.add(sketch.key)
            new.append(sketch)
    return new


# Enough tasks, each once: batches of attempts until there are as many as were asked for.

PATIENCE = 24
"""Batches in a row without a new task, after which there are taken to be no more."""

_AHEAD = 64
"""Batches that are begun at a time, at most."""


@dataclass(slots=True)
class Found:
    """The result of the search.

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

    What is found does not depend on the number of processes, and the first tasks not on how many
    are asked for. Batches that are whole are kept in the folder and not tried again.

    Args:
        indexed: the pool.
        search: what tasks are to be like.
        folder: for batches; made if missing.
        tasks: how many.
        workers: processes; 1 = this one.
        cluster: whose workers try; None for this machine.
        progress: called with the tasks found and their number.

    Raises:
        DataError: there are not so many; the message says how near the search came.
        RunError: a process was lost.
    """
    found, known = Found(), set[bytes]()
    idle = 0
    # Closed here and not by the collector of garbage, which ignores Ctrl-C while it ends processes.
    with (
        connect(cluster) if cluster else nullcontext(),
        closing(_batches(indexed, search, folder, found, tasks, workers, cluster)) as batches,
    ):
        for batch in batches:
            new = _new_tasks(batch, known=known, wanted=tasks - len(found.sketches))
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
    if batch.nearest and (found.nearest is None or batch.nearest.gap < found.nearest.gap):
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
    folder.mkdir(parents=True, exist_ok=True)
    first = 0
    while True:
        rate = len(found.sketches) / found.attempts if found.attempts else 0.0
        missing = tasks - len(found.sketches)
        size = min(_AHEAD, math.ceil(missing / (rate * BATCH) * 1.05)) if rate else workers
        numbers = range(first, first + size)
        yield from _try_all(indexed, search, folder, numbers, workers, cluster)
        first += size


def _try_all(
    indexed: IndexedPool,
    search: Search,
    folder: Path,
    numbers: range,
    workers: int,
    cluster: Cluster | None,
) -> Generator[Batch]:
    paths = {number: folder / f"{number:07d}.msgpack" for number in numbers}
    open_ = [number for number, path in paths.items() if not path.is_file()]
    jobs = [Job(indexed, search, number) for number in open_]
    with closing(each(try_batch, jobs, workers=workers, cluster=cluster)) as answers:
        yield from _all_batches(paths, set(open_), answers)


def _all_batches(
    paths: Mapping[int, Path], tried: set[int], answers: Iterator[Batch | Lost]
) -> Generator[Batch]:
    for number, path in paths.items():
        if number not in tried:
            yield msgspec.msgpack.decode(path.read_bytes(), type=Batch)
            continue
        batch = next(answers)
        if isinstance(batch, Lost):
            raise RunError(
                f"a process was lost: {batch.why}",
                where=str(path.parent),
                expected="enough memory",
                remedy="the same command resumes",
            )
        with atomic_write(path) as file:
            file.write(msgspec.msgpack.encode(batch))
        yield batch


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
            for name, value in zip(DIMENSIONS, found.nearest.measured, strict=True)
        )
    return DataError(
        f"none of {tried} gave a task with {asked}; {near}",
        where=" ".join(f"--level {name}={value}" for name, value in target.levels.items())
        or f"--tasks {tasks}",
        expected="levels that graphs of this pool can have",
        remedy="ask for other levels, or for more subtasks with --most; or use a larger pool",
    )
