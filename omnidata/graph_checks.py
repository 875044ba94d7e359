"""What a task graph must be before it is one, said by name where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from omnidata.errors import DataError

MAX_NODES: Final = 1000
"""Sets of nodes are integers of one bit per node: a graph of a million would fill the memory."""

_SHOWN = 12


def index_nodes(nodes: Sequence[str], where: str) -> dict[str, int]:
    """Node -> its place.

    Args:
        nodes: ids.
        where: names the source in errors.

    Raises:
        DataError: no node, too many, or a repeated one.
    """
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
                f"node {shown(node)} is repeated",
                where=where,
                expected="each node once",
                remedy="number the instances of a subtask that occurs twice: C1, C2",
            )
        index[node] = len(index)
    return index


def check_edges(edges: Sequence[tuple[str, str]], index: Mapping[str, int], where: str) -> None:
    """Hold pairs (before, after) against the nodes.

    Args:
        edges: the pairs.
        index: has the nodes as keys.
        where: names the source in errors.

    Raises:
        DataError: an edge from or to a node that is not there, a self loop, or a repeated edge.
    """
    seen: set[tuple[str, str]] = set()
    for edge in edges:
        stranger = next((node for node in edge if node not in index), None)
        if stranger is not None:
            what = f"the edge {_path(edge)} names {shown(stranger)}, which is no node"
            remedy = "add it to the nodes, or remove the edge"
        elif edge[0] == edge[1]:
            what, remedy = f"node {shown(edge[0])} waits for itself", "remove the edge"
        elif edge in seen:
            what, remedy = f"the edge {_path(edge)} is repeated", "keep one of them"
        else:
            seen.add(edge)
            continue
        raise DataError(
            what, where=where, expected="each edge once, between two nodes", remedy=remedy
        )


def read_edges(value: object, where: str) -> dict[str, list[str]]:
    """The edges of a task's JSON, {id: [id]}.

    Args:
        value: what stands there.
        where: names the source in errors.

    Raises:
        DataError: it has another form.
    """
    if not isinstance(value, Mapping):
        raise _form_error(f"the edges are a {type(value).__name__}", where)
    return {
        _read_id(key, "the edges", where): read_ids(others, f"the edges of {shown(key)}", where)
        for key, others in value.items()
    }


def read_ids(value: object, what: str, where: str) -> list[str]:
    """A list of node ids of a task's JSON.

    Args:
        value: what stands there.
        what: names it in errors.
        where: names the source in errors.

    Raises:
        DataError: it has another form.
    """
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
    """An id of a task's JSON: a text, or a whole number as one; None for anything else.

    Examples:
        >>> id_of("C1"), id_of(12), id_of(True)
        ('C1', '12', None)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _form_error(what: str, where: str) -> DataError:
    return DataError(
        what,
        where=where,
        expected='{"nodes": [id, ...], "edges": {id: [id, ...]}}, ids as strings or whole numbers',
        remedy="write the graph in this form",
    )


def cycle_error(cycle: Sequence[str], where: str) -> DataError:
    """What to raise about nodes that wait for each other.

    Args:
        cycle: the nodes, the first again at the end.
        where: names the source.
    """
    return DataError(
        f"the edges form a cycle: {_path(cycle)}",
        where=where,
        expected="a directed acyclic graph",
        remedy="remove one of these edges",
    )


def order_error(what: str, where: str) -> DataError:
    """What to raise about an order of subtasks.

    Args:
        what: is wrong with it.
        where: names the order.
    """
    return DataError(
        what,
        where=where,
        expected="every subtask after the ones it waits for",
        remedy="mend the order, or the edges of the task's graph",
    )


def shown(node: str) -> str:
    """A node's id in a message, cut where it is long."""
    return f"{node!r:.80}"


def _path(nodes: Sequence[str]) -> str:
    names = [shown(node) for node in nodes]
    if len(names) > _SHOWN:
        names[_SHOWN - 1 : -1] = ["..."]
    return " -> ".join(names)
