"""Coherence of a sequence of subtasks (OmniBench, section 4.1), and the most a graph allows.

CS counts adjacent subtasks of one application, so for n subtasks CS_max is n less the fewest
*blocks*, maximal stretches within one application, of any topological order. With unboundedly
many applications and chains that contains the shortest common supersequence, which is NP-hard;
tasks of the published size take microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Generic, NamedTuple, TypeVar

from omnidata.graphs import Graph

CAP: Final = 10_000_000
"""What a search may cost before it gives bounds, in subtasks: about a second."""

Number = TypeVar("Number")


class Bounds(NamedTuple, Generic[Number]):
    """Between what a value lies, ends included; equal ends are the value."""

    lower: Number
    upper: Number

    @property
    def exact(self) -> Number | None:
        """The value, where it is known."""
        return self.lower if self.lower == self.upper else None


def coherence(sequence: Sequence[str], applications: Mapping[str, str]) -> int:
    """CS: the number of adjacent subtasks that belong to one application.

    Args:
        sequence: nodes in the order of their completion.
        applications: node -> application.

    Examples:
        >>> coherence(["a", "b", "c"], {"a": "Word", "b": "Word", "c": "Mail"})
        1
    """
    used = [applications[node] for node in sequence]
    return sum(first == second for first, second in pairwise(used))


def most_coherent(graph: Graph, applications: Mapping[str, str], *, cap: int = CAP) -> Bounds[int]:
    """CS_max: the most coherence that a topological order of the whole graph has.

    A* over the sets of done subtasks that full blocks reach. Three facts make it exact and short:

    - Once in an application it is never worse to finish all of it that is or becomes available.
    - Where that finishes the application for good, no other next block is better.
    - Subtasks of one application with one of another on a path between them are in different
      blocks. The longest such chain of each application, summed, bounds the blocks to come from
      below, and a block shortens one chain by at most one: the first set that the search reaches
      is reached with the fewest blocks.

    Args:
        graph: the task.
        applications: node -> application, for every node.
        cap: subtasks to look at; each set that is reached costs all of the graph's.

    Returns:
        Equal bounds, unless the cap was reached. Whether CS_max is 0 is always known.

    Examples:
        >>> graph = Graph.read({"a": ["b"], "b": ["c"]}, where="task 1")
        >>> most_coherent(graph, {"a": "Word", "b": "Mail", "c": "Word"})
        Bounds(lower=0, upper=0)
        >>> most_coherent(graph, {"a": "Word", "b": "Word", "c": "Mail"}).exact
        1
    """
    nodes = len(graph.nodes)
    blocks = _fewest_blocks(_groups(graph, applications), (1 << nodes) - 1, cap)
    return Bounds(nodes - blocks.upper, nodes - blocks.lower)


def separated(graph: Graph, applications: Mapping[str, str]) -> tuple[int, ...]:
    """What comes after each node beyond a change of application, on some path.

    Among the nodes of one application this is a strict order, and what it relates never is in one
    block.

    Args:
        graph: the task.
        applications: node -> application, for every node.

    Returns:
        Bit sets by place in `graph.nodes`.
    """
    after = [0] * len(graph.nodes)
    beyond = [0] * len(graph.nodes)
    for place in reversed(graph.sequence):
        node = graph.nodes[place]
        for name in graph.successors[node]:
            other = graph.index[name]
            reached = after[other] | 1 << other
            after[place] |= reached
            beyond[place] |= beyond[other] if applications[node] == applications[name] else reached
    return tuple(beyond)


@dataclass(frozen=True, slots=True)
class _Group:
    """The nodes of one application.

    Attributes:
        members: bit set.
        ordered: each node's bit and the bit set of its predecessors, in a topological order.
        chains: for h = 1, 2, ..., the nodes that begin a chain of h nodes of which no two are in
            one block. As many of these sets as meet the nodes to come, so many blocks remain.
    """

    members: int
    ordered: tuple[tuple[int, int], ...]
    chains: tuple[int, ...]

    def blocks(self, done: int) -> int:
        """A lower bound of this application's blocks after a set of nodes is done."""
        return sum(1 for chain in self.chains if chain & ~done)

    def close(self, done: int) -> int:
        """What is done after all of the application that is or becomes available."""
        for bit, before in self.ordered:
            if not before & ~done:
                done |= bit
        return done


def _groups(graph: Graph, applications: Mapping[str, str]) -> list[_Group]:
    ordered: dict[str, list[int]] = {}
    for place in graph.sequence:
        ordered.setdefault(applications[graph.nodes[place]], []).append(place)
    beyond = separated(graph, applications)
    return [
        _Group(
            sum(1 << place for place in places),
            tuple((1 << place, graph.before[place]) for place in places),
            _chains(places, beyond),
        )
        for places in ordered.values()
    ]


def _chains(places: Sequence[int], beyond: Sequence[int]) -> tuple[int, ...]:
    chains: list[int] = []
    for place in reversed(places):
        height = sum(1 for chain in chains if chain & beyond[place])
        if height == len(chains):
            chains.append(0)
        for level in range(height + 1):
            chains[level] |= 1 << place
    return tuple(chains)


def _fewest_blocks(groups: Sequence[_Group], whole: int, cap: int) -> Bounds[int]:
    """The fewest blocks of any order.

    A block either shortens a chain, and the bound of its set stays, or raises that by one: two
    stacks do for A*'s queue. Sets that a reached set holds are not looked for: to drop them halves
    the sets of hard graphs and costs more time than it saves.
    """
    bound = sum(len(group.chains) for group in groups)
    now, later, seen = [0], list[int](), set[int]()
    while True:
        while now:
            done = now.pop()
            if done == whole:
                return Bounds(bound, bound)
            if done in seen:
                continue
            seen.add(done)
            moves = [move for move in _moves(groups, done) if move[0] not in seen]
            cap -= len(moves) * whole.bit_length()
            if cap < 0:
                return Bounds(bound, _greedy(groups, whole))
            for reached, shorter in moves:
                (now if shorter else later).append(reached)
        now, later = later, []
        bound += 1


def _moves(groups: Sequence[_Group], done: int) -> list[tuple[int, bool]]:
    """The sets that one more block reaches, and whether it shortens a chain."""
    moves = []
    for group in groups:
        if not group.members & ~done:
            continue
        reached = group.close(done)
        if not group.members & ~reached:
            return [(reached, True)]
        if reached != done:
            moves.append((reached, group.blocks(reached) < group.blocks(done)))
    return moves


def _greedy(groups: Sequence[_Group], whole: int) -> int:
    """The blocks of one good order: shorten a chain where possible, by the largest block.

    It has a block of two nodes wherever any order has. Were all single, each application would have
    one chain left after the last block that shortened none. None of these was free beside that
    block's node, so all wait for it, and it headed a longer chain of its own: it shortened one.
    """
    done = blocks = 0
    while done != whole:
        done, _ = max(_moves(groups, done), key=lambda move: (move[1], move[0].bit_count()))
        blocks += 1
    return blocks
