"""A task in the making: subtasks one after another, and the edges that follow from resources.

The rules (OmniBench, sections 3.1 and 3.2, appendix B.3; the authors' examples in the reviews):

1. An edge a -> b only where an output of a is an input of b, category and value.
2. Each input is provided by a subtask before it, or exists initially.
3. A resource is created once. Who needs and leaves it (edits in place) comes after it was created;
   editors of one resource stand one after another, in the order in which they were added; who only
   needs it comes after the last of them. So each such pair is joined by a path, and every
   topological order is a valid one.
4. Things that take turns in one place (the clipboard) are not mixed.
5. A subtask is repeated with the same binding only if something that it needs has been changed by
   another subtask since.

Edges are either the `latest` ones, to each subtask from the one that has last made or changed what
it needs, as in all examples of the authors; or `every` pair that rule 1 allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

from omnidata.synth.compose.pool_index import Stock

EdgeRule = Literal["latest", "every"]
_START = -1
"""Stands for what exists initially among the makers of a resource."""


class Serial:
    """Instances in an order in which they can be done, and the edges between their places.

    Args:
        stock: whose instances.
        rule: which edges there are.

    Attributes:
        instances: in order.
        edges: pairs of places.
        depths: 1-based, of each place.
    """

    __slots__ = (
        "_closed",
        "_opened",
        "_rule",
        "_seen",
        "_slots",
        "_stock",
        "_versions",
        "depths",
        "edges",
        "instances",
    )

    def __init__(self, stock: Stock, rule: EdgeRule) -> None:
        self._stock = stock
        self._rule = rule
        self.instances: list[int] = []
        self.edges: list[tuple[int, int]] = []
        self.depths: list[int] = []
        self._versions: dict[int, int] = {}  # resource -> the place that last made or changed it
        self._opened: set[int] = set()  # resources that exist initially and were needed
        self._closed: set[int] = set()  # resources that somebody only needed: never changed again
        self._slots: dict[int, int] = {}  # slot -> the resource in it
        self._seen: dict[int, tuple[int, dict[int, int]]] = {}  # instance -> place, its versions

    def copy(self) -> Serial:
        """The same, to be continued in another way."""
        other = Serial(self._stock, self._rule)
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
        """Whether a subtask has made the resource."""
        return resource in self._versions

    def needs(self, resource: int) -> bool:
        """Whether it was taken to exist initially."""
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
        """Which rule forbids to add an instance; empty if none does."""
        stock = self._stock
        inputs = stock.inputs[instance]
        for needed in inputs:
            if needed not in self._versions and needed not in stock.initial:
                return "an input is not there"
        for made in stock.outputs[instance]:
            if made in self._closed:
                return "something was done with an earlier state of what it changes"
            if made not in inputs and made in self._versions:
                return "what it creates is there already"
            if self._slots.get(stock.slots[made], made) != made:
                return "something else is in the same place"
        for needed in inputs:
            if self._slots.get(stock.slots[needed], needed) != needed:
                return "something else is in the same place"
        if instance in self._seen and not self._changed(instance):
            return "it was done already, and nothing has changed since"
        return ""

    def _changed(self, instance: int) -> bool:
        place, before = self._seen[instance]
        for needed in self._stock.inputs[instance]:
            now = self._versions.get(needed, _START)
            if now not in (place, before[needed]):
                return True
        return False

    def add(self, instance: int) -> None:
        """Add an instance that `refuses` has nothing against."""
        stock = self._stock
        place = len(self.instances)
        inputs, outputs = stock.inputs[instance], stock.outputs[instance]
        versions = {needed: self._versions.get(needed, _START) for needed in inputs}
        self._seen[instance] = place, versions
        if self._rule == "latest":
            before = sorted({maker for maker in versions.values() if maker != _START})
        else:
            wanted = set(inputs)
            before = [
                earlier
                for earlier, other in enumerate(self.instances)
                if not wanted.isdisjoint(stock.outputs[other])
            ]
        self.edges += [(earlier, place) for earlier in before]
        self.depths.append(1 + max((self.depths[earlier] for earlier in before), default=0))
        self.instances.append(instance)
        for needed in inputs:
            if versions[needed] == _START:
                self._opened.add(needed)
            if needed not in outputs:
                self._closed.add(needed)
            if stock.slots[needed] >= 0:
                self._slots[stock.slots[needed]] = needed
        for made in outputs:
            self._versions[made] = place
            if stock.slots[made] >= 0:
                self._slots[stock.slots[made]] = made

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
    """The nodes of a task, as in the examples that OmniBench's authors gave their reviewers.

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
