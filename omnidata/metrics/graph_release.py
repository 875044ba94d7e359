"""Completion and coherence as OmniBench's released code scores them; neither is the paper's metric.

Both definitions are the code's: it holds no CR and no LC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from omnidata.graphs import Graph
from omnidata.metrics.graph_coherence import separated
from omnidata.metrics.graph_width import largest_antichain


def completion(graph: Graph, executed: Sequence[str]) -> float:
    """The share of the graph's levels that the release counts as completed.

    Depths start at 1, but the release looks at levels 0 to depth - 1 and stops at the first that is
    not completed. It never looks at the deepest: one level, or all but the deepest, is all.

    Args:
        graph: the task.
        executed: nodes in the order of their completion.

    Examples:
        >>> completion(Graph.read({"a": ["b"], "b": ["c"]}, where="task 1"), ["a", "b"])
        1.0
        >>> completion(Graph(("a",), ()), [])
        1.0
    """
    depths = graph.depths()
    depth = max(depths.values())
    left = [depths[node] for node in set(graph.nodes).difference(executed)]
    first = min(left, default=depth)
    return 1.0 if first == depth else (first - 1) / depth


def run_coherence(graph: Graph, applications: Mapping[str, str], executed: Sequence[str]) -> float:
    """The longest run within one application, held against the longest of all orders.

    The release takes one from both, and gives 0 where nothing is left below the line.

    Args:
        graph: the task.
        applications: node -> application, for every node.
        executed: nodes in the order of their completion.

    Examples:
        >>> graph = Graph(("a", "b", "c", "d"), ())
        >>> used = {"a": "Word", "b": "Word", "c": "Mail", "d": "Mail"}
        >>> run_coherence(graph, used, ["a", "c", "d"]), run_coherence(graph, used, ["a", "c"])
        (1.0, 0.0)
    """
    possible = longest_possible_run(graph, applications)
    if possible == 1 or not executed:
        return 0.0
    return (longest_run(executed, applications) - 1) / (possible - 1)


def longest_run(sequence: Sequence[str], applications: Mapping[str, str]) -> int:
    """How many subtasks in a row belong to one application, at most."""
    return max(
        (len(list(run)) for _, run in groupby(sequence, applications.__getitem__)), default=0
    )


def longest_possible_run(graph: Graph, applications: Mapping[str, str]) -> int:
    """The longest run within one application that a topological order has.

    The release finds it by enumerating all orders. Subtasks of one application can be done in a
    row if and only if no path from one to another leaves the application, and leaving it is a
    strict order: the answer is an application's largest antichain in `separated`.
    """
    members: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        members[applications[node]] = members.get(applications[node], 0) | 1 << place
    beyond = separated(graph, applications)
    return max(largest_antichain(beyond, among) for among in members.values())
