"""Topological orders of a task: all of them where they are few, else a fair sample."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from omnidata.graphs import Graph


@dataclass(frozen=True, slots=True)
class Orders:
    """Valid orders of a task.

    Attributes:
        listed: some or all of them, sorted by the places of their nodes in the graph.
        total: how many there are.
    """

    listed: tuple[tuple[str, ...], ...]
    total: int

    @property
    def sampled(self) -> bool:
        """Whether some are not listed."""
        return len(self.listed) < self.total


def orders_of(graph: Graph, *, most: int, rng: random.Random) -> Orders:
    """The orders of a graph; of more than `most` a sample in which each is equally likely.

    The number of orders from each set of done nodes on is counted first, so the cost is the number
    of such sets: at most two to the number of nodes.

    Args:
        graph: of a task.
        most: orders to list.
        rng: draws the sample.

    Examples:
        >>> graph = Graph(("a", "b", "c"), (("a", "c"),))
        >>> orders_of(graph, most=9, rng=random.Random(0)).listed
        (('a', 'b', 'c'), ('a', 'c', 'b'), ('b', 'a', 'c'))
        >>> found = orders_of(graph, most=2, rng=random.Random(0))
        >>> len(found.listed), found.total, found.sampled
        (2, 3, True)
    """
    whole = (1 << len(graph.nodes)) - 1
    choices: dict[int, list[tuple[int, int]]] = {}  # done -> a node as a bit, the ways from there

    def ways(done: int) -> int:
        if done == whole:
            return 1
        if done not in choices:
            choices[done] = [(bit, ways(done | bit)) for bit in _bits(graph.available(done))]
        return sum(count for _, count in choices[done])

    total = ways(0)
    if total <= most:
        return Orders(tuple(graph.orders()), total)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < most:
        drawn.add(tuple(_drawn(choices, whole, rng.randrange(total))))
    named = (tuple(graph.nodes[place] for place in order) for order in sorted(drawn))
    return Orders(tuple(named), total)


def _drawn(choices: Mapping[int, list[tuple[int, int]]], whole: int, number: int) -> Iterator[int]:
    """The order of that number, as places."""
    done = 0
    while done != whole:
        steps = iter(choices[done])
        bit, count = next(steps)
        while number >= count:
            number -= count
            bit, count = next(steps)
        done |= bit
        yield bit.bit_length() - 1


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest)
        mask ^= lowest
    return found
