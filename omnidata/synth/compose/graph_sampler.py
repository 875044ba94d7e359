"""A task in the making: subtasks one after another, and the edges that follow from resources.

The rules (OmniBench, sections 3.1 and 3.2, appendix B.3; the authors' examples in the reviews):

1. An edge a -> b only where an output of a is an input of b, category and value.
2. Each input is provided by a subtask before it, or exists initially.
3. A resource is created once. Its editors (they need it and leave it, edited in place) come after
   that, one after another, in the order in which they were added. Subtasks that only need it come
   after the last editor. So each such pair is joined by a path, and every
   topological order is a valid one.
4. Things that take turns in one place (the clipboard) are not mixed.
5. A subtask is repeated with the same binding only if something that it needs has been changed by
   another subtask since.

Edges are either the `latest` ones, to each subtask from the one that has last made or changed what
it needs, as in all examples of the authors; or `every` pair that rule 1 allows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from omnidata.metrics.graph_complexity import Dimension
from omnidata.synth.compose.pool import Group, IndexedPool
from omnidata.synth.compose.settings import LEAST, ComplexityTarget, EdgeRule

_START = -1
"""Stands for what exists initially among the makers of a resource."""


class PartialPlan:
    """Instances in an order in which they can be done, and the edges between their places.

    Args:
        indexed: whose instances.
        rule: which edges there are.

    Attributes:
        instances: in order.
        edges: pairs of places.
        depths: 1-based, of each place.
    """

    __slots__ = (
        "_closed",
        "_opened",
        "_pool",
        "_rule",
        "_seen",
        "_slots",
        "_versions",
        "depths",
        "edges",
        "instances",
    )

    def __init__(self, indexed: IndexedPool, rule: EdgeRule) -> None:
        self._pool = indexed
        self._rule = rule
        self.instances: list[int] = []
        self.edges: list[tuple[int, int]] = []
        self.depths: list[int] = []
        self._versions: dict[int, int] = {}  # resource -> the place that last made or changed it
        self._opened: set[int] = set()  # resources that exist initially and were needed
        self._closed: set[int] = set()  # resources that were only needed: never changed again
        self._slots: dict[int, int] = {}  # slot -> the resource in it
        self._seen: dict[int, tuple[int, dict[int, int]]] = {}  # instance -> place, its versions

    def copy(self) -> PartialPlan:
        """Return the same, to be continued in another way."""
        other = PartialPlan(self._pool, self._rule)
        other.instances = self.instances.copy()
        other.edges = self.edges.copy()
        other.depths = self.depths.copy()
        other._versions = self._versions.copy()
        other._opened = self._opened.copy()
        other._closed = self._closed.copy()
        other._slots = self._slots.copy()
        other._seen = self._seen.copy()
        return other

    def has(self, resource: int) -> bool:
        """Return whether a subtask has made the resource."""
        return resource in self._versions

    def needs(self, resource: int) -> bool:
        """Return whether the resource was assumed to exist initially."""
        return resource in self._opened

    @property
    def made(self) -> list[int]:
        """The resources that subtasks have made or changed, those made first to the front."""
        return list(self._versions)

    @property
    def opened(self) -> list[int]:
        """The resources that must exist initially, sorted."""
        return sorted(self._opened)

    def refuses(self, instance: int) -> str:
        """Return the rule that forbids to add an instance; empty if none does."""
        indexed = self._pool
        inputs = indexed.inputs[instance]
        for needed in inputs:
            if needed not in self._versions and needed not in indexed.initial:
                return "an input is not there"
        for made in indexed.outputs[instance]:
            if made in self._closed:
                return "something was done with an earlier state of what it changes"
            if made not in inputs and made in self._versions:
                return "what it creates is there already"
            if self._slots.get(indexed.slots[made], made) != made:
                return "something else is in the same place"
        for needed in inputs:
            if self._slots.get(indexed.slots[needed], needed) != needed:
                return "something else is in the same place"
        if instance in self._seen and not self._has_changed(instance):
            return "it was done already, and nothing has changed since"
        return ""

    def _has_changed(self, instance: int) -> bool:
        place, before = self._seen[instance]
        for needed in self._pool.inputs[instance]:
            now = self._versions.get(needed, _START)
            if now not in (place, before[needed]):
                return True
        return False

    def add(self, instance: int) -> None:
        """Add an instance that `refuses` has nothing against."""
        indexed = self._pool
        place = len(self.instances)
        inputs, outputs = indexed.inputs[instance], indexed.outputs[instance]
        versions = {needed: self._versions.get(needed, _START) for needed in inputs}
        self._seen[instance] = place, versions
        if self._rule == "latest":
            before = sorted({maker for maker in versions.values() if maker != _START})
        else:
            wanted = set(inputs)
            before = [
                earlier
                for earlier, other in enumerate(self.instances)
                if not wanted.isdisjoint(indexed.outputs[other])
            ]
        self.edges += [(earlier, place) for earlier in before]
        self.depths.append(1 + max((self.depths[earlier] for earlier in before), default=0))
        self.instances.append(instance)
        for needed in inputs:
            if versions[needed] == _START:
                self._opened.add(needed)
            if needed not in outputs:
                self._closed.add(needed)
            if indexed.slots[needed] >= 0:
                self._slots[indexed.slots[needed]] = needed
        for made in outputs:
            self._versions[made] = place
            if indexed.slots[made] >= 0:
                self._slots[indexed.slots[made]] = made

    @property
    def connected(self) -> bool:
        """Whether every subtask is joined with every other, directions aside."""
        reached, frontier = {0}, [0]
        neighbours: dict[int, list[int]] = {}
        for first, second in self.edges:
            neighbours.setdefault(first, []).append(second)
            neighbours.setdefault(second, []).append(first)
        while frontier:
            for other in neighbours.get(frontier.pop(), ()):
                if other not in reached:
                    reached.add(other)
                    frontier.append(other)
        return len(reached) == len(self.instances)


# Names of nodes: a subtask's id, or that id with a number where it occurs more than once.

_MARK = "#"


def node_names(subtasks: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Return the names of a task's nodes, as in the examples of OmniBench's authors.

    Args:
        subtasks: ids, in order.
        known: ids of all subtasks of the pool. Where an id with a number would be another one, or
            could be taken for an instance of it, a sign stands before the number.

    Examples:
        >>> node_names(["A", "C", "B", "C"], {"A", "B", "C"})
        ('A', 'C1', 'B', 'C2')
        >>> node_names(["C", "C"], {"C", "C1"})
        ('C#1', 'C#2')
    """
    counts = Counter(subtasks)
    clear = {
        name: not any(other != name and other.startswith(name) for other in known)
        for name, count in counts.items()
        if count > 1
    }
    seen: Counter[str] = Counter()
    names = []
    for name in subtasks:
        seen[name] += 1
        mark = "" if clear.get(name) else _MARK
        names.append(f"{name}{mark}{seen[name]}" if counts[name] > 1 else name)
    return tuple(names)


# One attempt at a task: a graph that grows from below, towards what was asked for.

_TRIED = 6
"""Candidates per node; the best is taken."""

_MAKE = 0.6
"""How often a file that may exist initially is made by a subtask, where one can."""


@dataclass(frozen=True, slots=True)
class _Taste:
    """What one attempt prefers, each in [-1, 1].

    Attributes:
        deep: longer chains.
        wide: more subtasks of one depth.
        mixed: more categories of applications.
        dense: more edges.
    """

    deep: float
    wide: float
    mixed: float
    dense: float


def grow(
    indexed: IndexedPool, group: Group, target: ComplexityTarget, rule: EdgeRule, rng: random.Random
) -> PartialPlan | None:
    """Compose one graph of a group's instances.

    Args:
        indexed: the pool.
        group: of the intent.
        target: what it is to be like; it need not be when it comes back, but for its parts where
            they must be connected.
        rule: which edges there are.
        rng: decides.

    Returns:
        None where the attempt came to nothing.
    """
    size = target.spans["instruction"]
    wanted = rng.randint(size.low, size.high)
    if "hard" in (target.levels.get("branch"), target.levels.get("hierarchy")):
        wanted = max(wanted, rng.randint(size.low, size.high))
    taste = _Taste(
        deep=_lean(target, "hierarchy", rng),
        wide=_lean(target, "branch", rng),
        mixed=_lean(target, "knowledge", rng),
        dense=_lean(target, "dependency", rng),
    )
    plan = PartialPlan(indexed, rule)
    while len(plan.instances) < wanted:
        best, score = None, float("-inf")
        for _ in range(_TRIED):
            instance = _candidate(plan, group, target, rng)
            tried = plan.copy()
            if instance is None or not _reach(tried, instance, indexed, group, wanted, rng):
                continue
            found = _score(plan, tried, indexed, target, taste)
            if found is not None and (found := found + rng.random()) > score:
                best, score = tried, found
        if best is None:
            break
        plan = best
    if len(plan.instances) < LEAST:
        return None
    return None if target.connected and not plan.connected else plan


def _lean(target: ComplexityTarget, name: Dimension, rng: random.Random) -> float:
    by_chance = rng.uniform(-1, 1)
    return {"easy": -1.0, "medium": 0.0, "hard": 1.0}.get(target.levels.get(name, ""), by_chance)


def _candidate(
    plan: PartialPlan, group: Group, target: ComplexityTarget, rng: random.Random
) -> int | None:
    if not target.connected or not plan.instances:
        return rng.choice(group.instances)
    users = group.users.get(rng.choice(plan.made), ()) if plan.made else ()
    return rng.choice(users) if users else None


def _reach(
    plan: PartialPlan,
    instance: int,
    indexed: IndexedPool,
    group: Group,
    wanted: int,
    rng: random.Random,
) -> bool:
    for needed in indexed.inputs[instance]:
        if plan.has(needed):
            continue
        makers = group.makers.get(needed, ())
        exists = needed in indexed.initial
        if exists and (not makers or plan.needs(needed) or rng.random() >= _MAKE):
            continue
        if not makers or len(plan.instances) + 2 > wanted:
            if exists:
                continue
            return False
        if not _reach(plan, rng.choice(makers), indexed, group, wanted - 1, rng):
            return False
    if len(plan.instances) >= wanted or plan.refuses(instance):
        return False
    plan.add(instance)
    return True


def _score(
    before: PartialPlan,
    after: PartialPlan,
    indexed: IndexedPool,
    target: ComplexityTarget,
    taste: _Taste,
) -> float | None:
    depth, edges = max(after.depths), len(after.edges)
    kinds = len({indexed.categories[one] for one in after.instances})
    spans = target.spans
    if depth > spans["hierarchy"].high or edges > spans["dependency"].high:
        return None
    if kinds > spans["knowledge"].high:
        return None
    if not before.instances:
        return 0.0
    added = len(after.instances) - len(before.instances)
    joined = (edges - len(before.edges)) / added
    deeper = (depth - max(before.depths)) / added
    kinds_before = len({indexed.categories[one] for one in before.instances})
    more = (kinds - kinds_before) / added
    wider = (_widest(after) - _widest(before)) / added
    return (
        2 * taste.deep * deeper + 2 * taste.wide * wider + 2 * taste.mixed * more
    ) + taste.dense * joined


def _widest(plan: PartialPlan) -> int:
    """Return the most subtasks of one depth: at most the width, and fast to see."""
    return max(map(plan.depths.count, plan.depths))
