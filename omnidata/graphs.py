"""Task graphs of OmniBench: subtasks as nodes, dependencies as edges, without cycles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any, Final

from omnidata.errors import DataError
from omnidata.jsontext import is_integer

__all__ = ["MAX_NODES", "STATES", "Graph", "places"]


# What a task graph must be before it is one, said by name where it is not.

MAX_NODES: Final = 1000
"""Sets of nodes are integers of one bit per node: a graph of a million would fill the memory."""

_SHOWN = 12


def _index_nodes(nodes: Sequence[str], where: str) -> dict[str, int]:
    if not 0 < len(nodes) <= MAX_NODES:
        raise DataError(
            f"the graph has {len(nodes)} nodes",
            where=where,
            expected=f"1 to {MAX_NODES}",
            remedy="list the task's subtasks in the nodes, or split the task",
        )
    index: dict[str, int] = {}
    for node in nodes:
        if node in index:
            raise DataError(
                f"node {_short_id(node)} is repeated",
                where=where,
                expected="each node once",
                remedy="number the instances of a subtask that occurs twice: C1, C2",
            )
        index[node] = len(index)
    return index


def _check_edges(edges: Sequence[tuple[str, str]], index: Mapping[str, int], where: str) -> None:
    seen: set[tuple[str, str]] = set()
    for edge in edges:
        stranger = next((node for node in edge if node not in index), None)
        if stranger is not None:
            what = f"the edge {_path(edge)} names {_short_id(stranger)}, which is no node"
            remedy = "add it to the nodes, or remove the edge"
        elif edge[0] == edge[1]:
            what, remedy = f"node {_short_id(edge[0])} waits for itself", "remove the edge"
        elif edge in seen:
            what, remedy = f"the edge {_path(edge)} is repeated", "keep one of them"
        else:
            seen.add(edge)
            continue
        raise DataError(
            what, where=where, expected="each edge once, between two nodes", remedy=remedy
        )


def read_edges(value: object, where: str) -> dict[str, list[str]]:
    """Read the edges of a task's JSON, {id: [id]}.

    Args:
        value: what stands there.
        where: names the source in errors.

    Raises:
        DataError: it has another form.
    """
    if not isinstance(value, Mapping):
        raise _form_error(f"the edges are a {type(value).__name__}", where)
    return {
        _read_id(key, "the edges", where): _read_ids(
            others, f"the edges of {_short_id(key)}", where
        )
        for key, others in value.items()
    }


def _read_ids(value: object, what: str, where: str) -> list[str]:
    if not isinstance(value, list | tuple):
        raise _form_error(f"{what} are a {type(value).__name__}", where)
    return [_read_id(item, what, where) for item in value]


def _read_id(value: object, what: str, where: str) -> str:
    found = id_of(value)
    if found is None:
        # Never its text: a list can be nested too deeply for one.
        raise _form_error(f"{what} hold an id of type {type(value).__name__}", where)
    return found


def id_of(value: object) -> str | None:
    """Return an id of a task's JSON as text (a text or whole number); None for anything else.

    Examples:
        >>> id_of("C1"), id_of(12), id_of(True)
        ('C1', '12', None)
    """
    if is_integer(value):
        return str(value)
    return value if isinstance(value, str) else None


def _form_error(what: str, where: str) -> DataError:
    return DataError(
        what,
        where=where,
        expected='{"nodes": [id, ...], "edges": {id: [id, ...]}}, ids as strings or whole numbers',
        remedy="write the graph in this form",
    )


def _cycle_error(cycle: Sequence[str], where: str) -> DataError:
    return DataError(
        f"the edges form a cycle: {_path(cycle)}",
        where=where,
        expected="a directed acyclic graph",
        remedy="remove one of these edges",
    )


def _order_error(what: str, where: str) -> DataError:
    return DataError(
        what,
        where=where,
        expected="every subtask after the ones it waits for",
        remedy="correct the order, or the edges of the task's graph",
    )


def _short_id(node: str) -> str:
    return f"{node!r:.80}"


def _path(nodes: Sequence[str]) -> str:
    names = [_short_id(node) for node in nodes]
    if len(names) > _SHOWN:
        names[_SHOWN - 1 : -1] = ["..."]
    return " -> ".join(names)


STATES: Final = 100_000
"""How many sets of done nodes `count_orders` visits before it gives up: a second for 100 nodes."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A task's subtasks and what each waits for (OmniBench, section 3.1 and appendix C).

    Making one checks it. A node is an instance: a subtask that occurs twice is two nodes.

    Attributes:
        nodes: ids, in the order of the source, at least one and at most `MAX_NODES`.
        edges: pairs (before, after), in the order of the source.
        index: node -> its place in `nodes`.
        predecessors: node -> the nodes it waits for, in the order of the edges.
        successors: node -> the nodes that wait for it, in the order of the edges.
        before: `predecessors` as bit sets: bit j of before[i] says that node i waits for node j.
        sequence: one topological order, as places in `nodes`.

    Args:
        where: names the source in errors.

    Raises:
        DataError: no node, too many, a repeated one, an edge from or to a node that is not there,
            a self loop, a repeated edge, or a cycle, which is named.

    Examples:
        >>> graph = Graph(("search", "save", "mail"), (("search", "save"), ("save", "mail")))
        >>> graph.depths()
        {'search': 1, 'save': 2, 'mail': 3}
        >>> graph.predecessors["mail"]
        ('save',)
    """

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    where: InitVar[str] = ""
    index: Mapping[str, int] = field(init=False, repr=False, compare=False)
    predecessors: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    successors: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    before: tuple[int, ...] = field(init=False, repr=False, compare=False)
    sequence: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _depths: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self, where: str) -> None:
        index = _index_nodes(self.nodes, where)
        before: dict[str, list[str]] = {node: [] for node in self.nodes}
        after: dict[str, list[str]] = {node: [] for node in self.nodes}
        _check_edges(self.edges, index, where)
        for first, second in self.edges:
            before[second].append(first)
            after[first].append(second)
        try:
            order = tuple(TopologicalSorter(before).static_order())
        except CycleError as error:
            raise _cycle_error(error.args[1], where) from None
        depths = dict.fromkeys(self.nodes, 1)
        for node in order:
            for other in after[node]:
                depths[other] = max(depths[other], depths[node] + 1)
        for name, value in (
            ("index", index),
            ("predecessors", {node: tuple(others) for node, others in before.items()}),
            ("successors", {node: tuple(others) for node, others in after.items()}),
            ("before", tuple(sum(1 << index[one] for one in before[node]) for node in self.nodes)),
            ("sequence", tuple(index[node] for node in order)),
            ("_depths", depths),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def read(cls, dag: object, *, where: str) -> Graph:
        """Read the graph of a task's JSON, in any of its published forms.

        Args:
            dag: {"nodes": [id], "edges": {id: [id]}}, or the edges alone, whose nodes are then
                taken in the order in which they are named. A sink may lack its key in the edges.
            where: names the source in errors.

        Raises:
            DataError: the object has another form, or is not such a graph.

        Examples:
            >>> Graph.read({"a": ["b"], "b": ["c"]}, where="task 1").nodes
            ('a', 'b', 'c')
            >>> Graph.read({"nodes": ["a", "b"], "edges": {"b": ["a"]}}, where="task 2").edges
            (('b', 'a'),)
        """
        parts: Mapping[Any, Any] = {"edges": dag}
        if isinstance(dag, Mapping) and ("nodes" in dag or "edges" in dag):
            parts = dag
        edges = read_edges(parts.get("edges", {}), where)
        if "nodes" in parts:
            nodes = _read_ids(parts["nodes"], "the nodes", where)
        else:
            nodes = list(dict.fromkeys(id for key in edges for id in (key, *edges[key])))
        return cls(tuple(nodes), tuple((a, b) for a in edges for b in edges[a]), where)

    def as_json(self) -> dict[str, Any]:
        """Return the graph in the paper's form (appendix C): every node is a key of the edges."""
        edges = {node: list(others) for node, others in self.successors.items()}
        return {"nodes": list(self.nodes), "edges": edges}

    def depths(self) -> dict[str, int]:
        """Return each node's depth: nodes on the longest path to it; 1 for a root."""
        return dict(self._depths)

    def ancestors(self) -> tuple[int, ...]:
        """Return for each node its direct and indirect predecessors, as bit sets by index.

        Examples:
            >>> chain = Graph.read({"a": ["b"], "b": ["c"]}, where="task 1")
            >>> [bin(others) for others in chain.ancestors()]
            ['0b0', '0b1', '0b11']
        """
        found = [0] * len(self.nodes)
        for place in self.sequence:
            found[place] = self.before[place]
            for other in self.predecessors[self.nodes[place]]:
                found[place] |= found[self.index[other]]
        return tuple(found)

    def check_order(self, order: Sequence[str], *, complete: bool = True, where: str = "") -> None:
        """Check an order of subtasks against the graph.

        Args:
            order: nodes, first to last.
            complete: whether every node must occur; a run that stopped early has a part of them.
            where: names the order in errors.

        Raises:
            DataError: an unknown node, a repeated one, one that comes before a node it waits for,
                or, where the order must be complete, a missing one.

        Examples:
            >>> graph = Graph.read({"a": ["b"]}, where="task 1")
            >>> graph.check_order(["a"], complete=False)
            >>> graph.check_order(["b", "a"], where="sequence 7")
            Traceback (most recent call last):
            ...
            omnidata.errors.DataError: sequence 7: place 1 is 'b', but 'a' is not done before it
              Expected: every subtask after the ones it waits for
              Fix: correct the order, or the edges of the task's graph
        """
        done = 0
        for place, node in enumerate(order, start=1):
            number = self.index.get(node)
            if number is None:
                raise _order_error(f"place {place} is {_short_id(node)}, which is no node", where)
            if done >> number & 1:
                raise _order_error(f"place {place} is {_short_id(node)} for a second time", where)
            missing = self.before[number] & ~done
            if missing:
                other = self.nodes[(missing & -missing).bit_length() - 1]
                late = _short_id(other)
                what = f"place {place} is {_short_id(node)}, but {late} is not done before it"
                raise _order_error(what, where)
            done |= 1 << number
        if complete and len(order) < len(self.nodes):
            missed = next(node for node in self.nodes if not done >> self.index[node] & 1)
            raise _order_error(f"{_short_id(missed)} is not in the order", where)

    def orders(self, limit: int | None = None) -> Iterator[tuple[str, ...]]:
        """Yield topological orders, sorted by the indices of their nodes.

        Args:
            limit: stop after so many; None = all, which may be astronomically many.

        Examples:
            >>> list(Graph(("a", "b", "c"), (("a", "c"),)).orders(2))
            [('a', 'b', 'c'), ('a', 'c', 'b')]
        """
        return islice(self._orders(), limit)

    def _orders(self) -> Iterator[tuple[str, ...]]:
        """Depth first with a stack of its own: a chain may be longer than Python's stack."""
        whole = (1 << len(self.nodes)) - 1
        done, order = 0, list[int]()
        choices = [self.available(done)]
        while choices:
            if done == whole:
                yield tuple(self.nodes[place] for place in order)
            if choices[-1]:
                lowest = choices[-1] & -choices[-1]
                choices[-1] ^= lowest
                done |= lowest
                order.append(lowest.bit_length() - 1)
                choices.append(self.available(done))
            else:
                choices.pop()
                if order:
                    done ^= 1 << order.pop()

    def available(self, done: int) -> int:
        """Return the open nodes whose predecessors are done, as a bit set, like `done`."""
        found = 0
        for place, before in enumerate(self.before):
            if not before & ~done:
                found |= 1 << place
        return found & ~done

    def count_orders(self, cap: int = STATES) -> int | None:
        """Return the number of topological orders.

        Parts that no edge joins are counted alone and interleaved. Within a part the orders that
        reach the same set of done nodes are counted once, so the cost is the number of such sets.

        Args:
            cap: sets to visit at most.

        Returns:
            The number; None where the cap was reached before it was known.

        Examples:
            >>> Graph(("a", "b", "c"), (("a", "c"),)).count_orders()
            3
        """
        total, placed = 1, 0
        for part in self._parts():
            reached = {0: 1}
            for _ in range(part.bit_count()):
                following: dict[int, int] = {}
                for done, ways in reached.items():
                    for place in places(self.available(done) & part):
                        more = done | 1 << place
                        following[more] = following.get(more, 0) + ways
                    if len(following) > cap:
                        return None
                cap -= len(following)
                reached = following
            placed += part.bit_count()
            total *= reached[part] * math.comb(placed, part.bit_count())
        return total

    def _parts(self) -> list[int]:
        """Sets of nodes that no edge joins, as bit sets."""
        parts: list[int] = []
        for place, before in enumerate(self.before):
            joined = before | 1 << place
            apart = []
            for part in parts:
                if part & joined:
                    joined |= part
                else:
                    apart.append(part)
            parts = [*apart, joined]
        return parts


def places(members: int) -> Iterator[int]:
    """Yield the numbers in a bit set, ascending.

    Examples:
        >>> list(places(0b1001))
        [0, 3]
    """
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest


def largest_antichain(related: Sequence[int], among: int | None = None) -> int:
    """Return the largest number of pairwise unrelated elements (Dilworth).

    Augmenting paths over bit sets: graphs here have ten nodes, for which a matching of NetworkX or
    SciPy costs more to set up than to find.

    Args:
        related: for each element the bit set of those on one side of it, always the same side;
            transitive.
        among: bit set of the elements to choose from; None = all.

    Examples:
        >>> largest_antichain([0b000, 0b001, 0b001])
        2
    """
    if among is None:
        among = (1 << len(related)) - 1
    partners: dict[int, int] = {}
    for element in places(among):
        if related[element] & among:
            _match(element, related, among, partners)
    return among.bit_count() - len(partners)


def _match(element: int, related: Sequence[int], among: int, partners: dict[int, int]) -> None:
    came: dict[int, int] = {}
    chosen = {left: right for right, left in partners.items()}
    waiting, unseen = [element], among
    while waiting:
        left = waiting.pop()
        found = related[left] & unseen
        unseen ^= found
        for right in places(found):
            came[right] = left
            if right in partners:
                waiting.append(partners[right])
                continue
            step: int | None = right
            while step is not None:
                left = came[step]
                partners[step] = left
                step = chosen.get(left)
            return
