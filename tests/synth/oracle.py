"""What must hold of every composed task, told anew from its rows and those of the pool alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from omnidata.graphs import Graph
from omnidata.metrics.graph_complexity import complexity

Resource = tuple[str, Any]

_LINE = re.compile(r"(?P<number>\d+)\. (?:\(after (?P<before>\d+(?:(?:, | and )\d+)*)\) )?")


@dataclass(frozen=True)
class Node:
    """A subtask with its parameters.

    Attributes:
        inputs, outputs: resources, as category and value.
    """

    inputs: frozenset[Resource]
    outputs: frozenset[Resource]

    def gives(self, other: Node) -> bool:
        """Whether this one makes or changes what the other needs."""
        return bool(self.outputs & other.inputs)


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def node_of(subtask: Mapping[str, Any], binding: Mapping[str, Any]) -> Node:
    """The node of a subtask whose parameters are called after their categories."""

    def resources(kinds: Iterable[str]) -> frozenset[Resource]:
        return frozenset((kind, binding[kind] if "_path" in kind else None) for kind in kinds)

    return Node(resources(subtask["input_resources"]), resources(subtask["output_resources"]))


def check_task(
    row: Mapping[str, Any],
    subtasks: Mapping[str, Mapping[str, Any]],
    *,
    initial: Iterable[str],
    every_edge: bool = False,
) -> None:
    """Hold a task's row against the rules.

    Args:
        row: of the task.
        subtasks: rows of the pool by id.
        initial: categories that exist before the task begins.
        every_edge: whether all pairs that match are edges.
    """
    graph = Graph.read(row["dag"], where=row["task_id"])
    chosen = {name: subtasks[row["subtasks"][name]] for name in graph.nodes}
    nodes = {}
    for name, subtask in chosen.items():
        binding = row["parameters"][name]
        assert binding in (subtask["available_parameters"] or [{}])
        assert row["application"][name] == subtask["application"]
        nodes[name] = node_of(subtask, binding)
        text = subtask["instruction_template"]
        for place, value in binding.items():
            text = text.replace(f"{{{place}}}", value)
        if "instruction_by" not in row:
            assert text in row["task_instruction"]
    stated = [(kind, value) for kind, value in row["initial_resources"]]
    assert {kind for kind, _ in stated} <= set(initial)
    check_graph(graph, nodes, initial=set(stated), every_edge=every_edge)
    orders = [tuple(order) for order in row["successful_topo"]]
    check_orders(graph, nodes, orders)
    assert len(set(orders)) == len(orders)
    assert row["orders_total"] == graph.count_orders()
    apps = row["application"]
    assert row["levels"] == complexity(graph, apps, row["category"]).levels()


def check_graph(
    graph: Graph, nodes: Mapping[str, Node], *, initial: set[Resource], every_edge: bool = False
) -> None:
    """Edges follow from resources, and resources are there when they are needed."""
    before = _ancestors(graph)
    for first, second in graph.edges:
        assert nodes[first].gives(nodes[second]), "an edge without a resource"
    for name, node in nodes.items():
        for needed in node.inputs:
            provided = any(needed in nodes[other].outputs for other in before[name])
            assert provided or needed in initial, f"nobody provides {needed}"
        for other, its in nodes.items():
            if name == other or not node.gives(its):
                continue
            ordered = name in before[other]
            mutual = its.gives(node) and other in before[name]
            assert ordered or mutual, f"{name} and {other} can run in any order"
            if every_edge and ordered:
                assert (name, other) in graph.edges
    creators: dict[Resource, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        for made in node.outputs - node.inputs:
            creators[made].append(name)
    for made, names in creators.items():
        assert len(names) == 1, f"{made} is created twice"
        assert made not in initial, f"{made} is created, and exists before"
        users = [name for name, node in nodes.items() if made in node.inputs]
        assert all(names[0] in before[name] for name in users)


def check_orders(graph: Graph, nodes: Mapping[str, Node], orders: Iterable[Sequence[str]]) -> None:
    """In every order each subtask finds what it needs, in the same state; nothing is lost."""
    seen: dict[str, dict[Resource, frozenset[str]]] = {}
    for order in orders:
        graph.check_order(order)
        versions: dict[Resource, frozenset[str]] = {}
        clipboard: str | None = None
        for name in order:
            node = nodes[name]
            found = {needed: versions.get(needed, frozenset()) for needed in node.inputs}
            assert seen.setdefault(name, found) == found, f"{name} finds another state"
            for kind, _ in node.inputs:
                if kind.endswith("_in_clipboard"):
                    assert clipboard in (None, kind), "the clipboard holds something else"
            for made in node.outputs:
                versions[made] = versions.get(made, frozenset()) | {name}
                if made[0].endswith("_in_clipboard"):
                    clipboard = made[0]


def _ancestors(graph: Graph) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for place in graph.sequence:
        name = graph.nodes[place]
        found[name] = set(graph.predecessors[name])
        for other in graph.predecessors[name]:
            found[name] |= found[other]
    return found


def connected(row: Mapping[str, Any]) -> bool:
    parts = {name: name for name in row["dag"]["nodes"]}
    for first, others in row["dag"]["edges"].items():
        for second in others:
            old, new = parts[first], parts[second]
            parts = {name: new if part == old else part for name, part in parts.items()}
    return len(set(parts.values())) == 1


def key(row: Mapping[str, Any]) -> str:
    """What makes two tasks the same where no subtask is in them twice with equal parameters."""
    names = {
        node: json.dumps([row["subtasks"][node], row["parameters"][node]], sort_keys=True)
        for node in row["dag"]["nodes"]
    }
    edges = sorted(
        [names[first], names[second]]
        for first, others in row["dag"]["edges"].items()
        for second in others
    )
    return json.dumps([sorted(names.values()), edges])


def changes(order: Sequence[str], apps: Mapping[str, str]) -> int:
    return sum(apps[first] != apps[second] for first, second in pairwise(order))


def edges_told(instruction: str) -> list[tuple[int, int]]:
    """The edges that an instruction by template tells, sorted."""
    found = []
    for line in instruction.split("\n")[1:]:
        head = _LINE.match(line)
        if head:
            place = int(head["number"]) - 1
            before = re.findall(r"\d+", head["before"] or "")
            found += [(int(one) - 1, place) for one in before]
    return sorted(found)
