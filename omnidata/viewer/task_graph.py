"""A task graph as a drawing, subtasks from left to right (OmniBench, Figure 11)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from omnidata.graphs import Graph
from omnidata.types import TaskDiagram

LIMIT: Final = 100
"""Nodes of a drawn graph, at most: labels of larger graphs are not readable."""
COLOURS: Final = 8
"""Colours of the nodes, `g0` to `g7` in the style; further apps share them."""
_WIDE, _HIGH, _GAP, _BETWEEN, _EDGE = 168, 52, 56, 16, 8
_LETTERS, _LINES = 24, 2


@dataclass(frozen=True, slots=True)
class Node:
    """A subtask's box.

    Attributes:
        x, y, width, height: where it is.
        lines: of its label, cut where it is long.
        title: the whole label, with the app.
        colour: the number of its app's colour.
    """

    x: float
    y: float
    width: float
    height: float
    lines: Sequence[str]
    title: str
    colour: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """A laid-out graph.

    Attributes:
        width, height: of the whole.
        nodes: in the order of the graph.
        edges: paths from the one to the other, with the point of an arrow at the end.
        groups: name -> the number of its colour.
    """

    width: float
    height: float
    nodes: Sequence[Node]
    edges: Sequence[tuple[str, str]]
    groups: Mapping[str, int]


def drawing(task: TaskDiagram) -> Drawing:
    """Lay out a task graph.

    A node is right of all its predecessors. From left to right, each column sorts its nodes by the
    mean height of their predecessors.
    """
    graph = task.graph
    columns: dict[int, list[str]] = {}
    for node, depth in graph.depths().items():
        columns.setdefault(depth, []).append(node)
    rows = _rows(graph, [columns[depth] for depth in sorted(columns)])
    places = {
        node: (_EDGE + (depth - 1) * (_WIDE + _GAP), _EDGE + rows[node] * (_HIGH + _BETWEEN))
        for node, depth in graph.depths().items()
    }
    names = dict.fromkeys(task.groups.values())
    groups = {name: number % COLOURS for number, name in enumerate(names)}
    nodes = []
    for node in graph.nodes:
        label, group = task.labels.get(node, node), task.groups.get(node, "")
        lines = textwrap.wrap(label, _LETTERS, max_lines=_LINES, placeholder=" …") or [node]
        title = f"{label} ({group})" if group else label
        colour = groups.get(group, COLOURS)
        nodes.append(Node(*places[node], _WIDE, _HIGH, lines, title, colour))
    most = max(map(len, columns.values()))
    return Drawing(
        len(columns) * (_WIDE + _GAP) - _GAP + 2 * _EDGE,
        most * (_HIGH + _BETWEEN) - _BETWEEN + 2 * _EDGE,
        nodes,
        [_edge(places[first], places[second]) for first, second in graph.edges],
        groups,
    )


def _rows(graph: Graph, columns: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the height of each node, in rows; columns are centred."""
    rows: dict[str, float] = {}

    def mean(node: str) -> float:
        before = [rows[other] for other in graph.predecessors[node]]
        return sum(before) / len(before) if before else 0.0

    most = max(map(len, columns))
    for nodes in columns:
        top = (most - len(nodes)) / 2
        rows |= {node: top + place for place, node in enumerate(sorted(nodes, key=mean))}
    return rows


def _edge(first: tuple[float, float], second: tuple[float, float]) -> tuple[str, str]:
    x, y = first[0] + _WIDE, first[1] + _HIGH / 2
    end, to = second[0], second[1] + _HIGH / 2
    bend = _GAP / 2
    line = f"M{x:g} {y:g}C{x + bend:g} {y:g} {end - bend:g} {to:g} {end - 6:g} {to:g}"
    return line, f"M{end:g} {to:g}l-8 -4v8z"
