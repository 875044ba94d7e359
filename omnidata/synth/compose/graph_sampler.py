"""Graphs of tasks: subtasks in order, and the edges that follow from their resources.

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
from dataclasses import dataclass, field

from omnidata.metrics.graph_complexity import Dimension
from omnidata.synth.compose.pool import Group, IndexedPool
from omnidata.synth.compose.settings import LEAST, ComplexityTarget, EdgeRule

_START = -1
"""Stands for what exists initially among the makers of a resource."""


@dataclass(slots=True)
class PartialPlan:
    """Instances in an order in which they can be done, and the edges between their places.

    Attributes:
        pool: of the instances.
        rule: which edges there are.
        instances: in order.
        edges: pairs of places.
        depths: 1-based, of each place.
        versions: resource -> the place that last made or changed it, in the order of making.
        opened: resources that exist initially and were needed.
        closed: resources that were only needed: never changed again.
        clipboard: the resource in the clipboard.
        seen: instance -> its last place, and the versions of its inputs there.
    """

    pool: IndexedPool
    rule: EdgeRule
    instances: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    versions: dict[int, int] = field(default_factory=dict)
    opened: set[int] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)
    clipboard: int | None = None
    seen: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)

    def copy(self) -> PartialPlan:
        """Return the same, to be continued in another way."""
        return PartialPlan(
            self.pool,
            self.rule,
            self.instances.copy(),
            self.edges.copy(),
            self.depths.copy(),
            self.versions.copy(),
            self.opened.copy(),
            self.closed.copy(),
            self.clipboard,
            self.seen.copy(),
        )

    def refuses(self, instance: int) -> str:
        """Return the rule that forbids to add an instance; empty if none does."""
        inputs = self.pool.inputs[instance]
        for needed in inputs:
            if needed not in self.versions and needed not in self.pool.initial:
                return "an input is not there"
        for made in self.pool.outputs[instance]:
            if made in self.closed:
                return "something was done with an earlier state of what it changes"
            if made not in inputs and made in self.versions:
                return "what it creates is there already"
            if self._is_displaced(made):
                return "something else is in the same place"
        if any(map(self._is_displaced, inputs)):
            return "something else is in the same place"
        if instance in self.seen and not self._has_changed(instance):
            return "it was done already, and nothing has changed since"
        return ""

    def _is_displaced(self, resource: int) -> bool:
        """Return whether the clipboard, where the resource belongs, holds another one."""
        return resource in self.pool.clipboard and self.clipboard not in (None, resource)

    def _has_changed(self, instance: int) -> bool:
        place, before = self.seen[instance]
        return any(
            self.versions.get(needed, _START) not in (place, before[needed])
            for needed in self.pool.inputs[instance]
        )

    def add(self, instance: int) -> None:
        """Add an instance that `refuses` has nothing against."""
        place = len(self.instances)
        inputs, outputs = self.pool.inputs[instance], self.pool.outputs[instance]
        versions = {needed: self.versions.get(needed, _START) for needed in inputs}
        self.seen[instance] = place, versions
        if self.rule == "latest":
            before = sorted({maker for maker in versions.values() if maker != _START})
        else:
            wanted = set(inputs)
            before = [
                earlier
                for earlier, other in enumerate(self.instances)
                if not wanted.isdisjoint(self.pool.outputs[other])
            ]
        self.edges += [(earlier, place) for earlier in before]
        self.depths.append(1 + max((self.depths[earlier] for earlier in before), default=0))
        self.instances.append(instance)
        self.opened.update(needed for needed in inputs if versions[needed] == _START)
        self.closed.update(needed for needed in inputs if needed not in outputs)
        self.versions.update(dict.fromkeys(outputs, place))
        for resource in (*inputs, *outputs):
            if resource in self.pool.clipboard:
                self.clipboard = resource

    @property
    def connected(self) -> bool:
        """Whether a path joins every pair of subtasks, regardless of direction."""
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
        known: ids of all subtasks of the pool. A sign before the number keeps an id with a number
            apart from them.

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


# One attempt at a task: a graph that grows from below, towards the target.

_TRIED = 6
"""Candidates per node; the best is taken."""

_MAKE = 0.6
"""The probability that a subtask creates a file that could also exist initially."""


def grow(
    indexed: IndexedPool, group: Group, target: ComplexityTarget, rule: EdgeRule, rng: random.Random
) -> PartialPlan | None:
    """Compose one graph of a group's instances; return None if the attempt fails.

    The graph leans towards the target, and need not have it. It is connected if the target is.
    """
    size = target.spans["instruction"]
    wanted = rng.randint(size.low, size.high)
    if "hard" in (target.levels.get("branch"), target.levels.get("hierarchy")):
        wanted = max(wanted, rng.randint(size.low, size.high))
    leaning = [_lean(target, name, rng) for name in _LEANING]
    plan = PartialPlan(indexed, rule)
    while len(plan.instances) < wanted:
        best, score = None, float("-inf")
        for _ in range(_TRIED):
            instance = _candidate(plan, group, target, rng)
            tried = plan.copy()
            if instance is None or not _reach(tried, instance, group, wanted, rng):
                continue
            found = _score(plan, tried, target, leaning)
            if found is not None and (found := found + rng.random()) > score:
                best, score = tried, found
        if best is None:
            break
        plan = best
    if len(plan.instances) < LEAST:
        return None
    return None if target.connected and not plan.connected else plan


_LEANING: tuple[Dimension, ...] = ("hierarchy", "branch", "knowledge", "dependency")
"""The dimensions that an attempt is biased in, each by a number in [-1, 1]."""


def _lean(target: ComplexityTarget, name: Dimension, rng: random.Random) -> float:
    by_chance = rng.uniform(-1, 1)
    return {"easy": -1.0, "medium": 0.0, "hard": 1.0}.get(target.levels.get(name, ""), by_chance)


def _candidate(
    plan: PartialPlan, group: Group, target: ComplexityTarget, rng: random.Random
) -> int | None:
    if not target.connected or not plan.instances:
        return rng.choice(group.instances)
    made = list(plan.versions)
    users = group.users.get(rng.choice(made), ()) if made else ()
    return rng.choice(users) if users else None


def _reach(plan: PartialPlan, instance: int, group: Group, wanted: int, rng: random.Random) -> bool:
    """Add an instance after what it needs; return whether that is possible."""
    for needed in plan.pool.inputs[instance]:
        if needed in plan.versions:
            continue
        makers = group.makers.get(needed, ())
        exists = needed in plan.pool.initial
        if exists and (not makers or needed in plan.opened or rng.random() >= _MAKE):
            continue
        if not makers or len(plan.instances) + 2 > wanted:
            if exists:
                continue
            return False
        if not _reach(plan, rng.choice(makers), group, wanted - 1, rng):
            return False
    if len(plan.instances) >= wanted or plan.refuses(instance):
        return False
    plan.add(instance)
    return True


def _score(
    before: PartialPlan, after: PartialPlan, target: ComplexityTarget, leaning: Sequence[float]
) -> float | None:
    """Return how welcome the added instances are; None if they exceed the target."""
    depth, edges, kinds = max(after.depths), len(after.edges), _kinds(after)
    spans = target.spans
    if depth > spans["hierarchy"].high or edges > spans["dependency"].high:
        return None
    if kinds > spans["knowledge"].high:
        return None
    if not before.instances:
        return 0.0
    added = len(after.instances) - len(before.instances)
    deep, wide, mixed, dense = leaning
    deeper = (depth - max(before.depths)) / added
    wider = (_widest(after) - _widest(before)) / added
    more = (kinds - _kinds(before)) / added
    joined = (edges - len(before.edges)) / added
    return (2 * deep * deeper + 2 * wide * wider + 2 * mixed * more) + dense * joined


def _kinds(plan: PartialPlan) -> int:
    return len({plan.pool.categories[one] for one in plan.instances})


def _widest(plan: PartialPlan) -> int:
    """Return the most subtasks of one depth: at most the width, and fast to see."""
    return max(map(plan.depths.count, plan.depths))
