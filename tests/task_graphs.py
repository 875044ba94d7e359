"""Small task graphs: drawn, enumerated, and the two of the published examples."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from omnidata.graphs import Graph

Task = tuple[Graph, dict[str, str]]
"""A graph and the application of each of its nodes."""


@st.composite
def graphs(draw: st.DrawFn, *, most: int = 7) -> Graph:
    """Any acyclic graph; the order of the nodes says nothing about the order of the work."""
    count = draw(st.integers(1, most))
    work = draw(st.permutations([f"s{number}" for number in range(count)]))
    pairs = [(a, b) for number, b in enumerate(work) for a in work[:number]]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Graph(tuple(f"s{number}" for number in range(count)), tuple(edges))


@st.composite
def tasks(draw: st.DrawFn, *, most: int = 7, applications: int = 4) -> Task:
    """A graph whose subtasks share a few applications."""
    graph = draw(graphs(most=most))
    names = st.sampled_from([f"App{number}" for number in range(applications)])
    return graph, {node: draw(names) for node in graph.nodes}


def all_orders(graph: Graph) -> Iterator[tuple[str, ...]]:
    """Every topological order, by trying all nodes at every place."""
    waits_for = {node: {a for a, b in graph.edges if b == node} for node in graph.nodes}

    def after(*done: str) -> Iterator[tuple[str, ...]]:
        if len(done) == len(graph.nodes):
            yield done
        for node in graph.nodes:
            if node not in done and waits_for[node].issubset(done):
                yield from after(*done, node)

    return after()


TABLE_10 = {"Slides": "Office", "Sheets": "Office", "Files": "System", "Pictures": "Editing"}
"""Categories of the made-up applications below; the mail program is in none."""

CHAIN: Task = (Graph.read({"x": ["y"], "y": []}, where="chain"), {"x": "Sheets", "y": "Sheets"})
"""The graph of the paper's appendix C.4: two subtasks of one application."""

MEETING: Task = (
    Graph.read({"A": ["C"], "D": ["C"], "F": ["G"], "C": ["G"], "G": ["E"]}, where="first"),
    {"A": "Slides", "C": "Slides", "D": "Mail", "F": "Files", "G": "Slides", "E": "Mail"},
)
"""The first graph of the reviews: C waits for A and D, G for C and F, E for G."""

TWICE: Task = (
    Graph.read(
        {"D": ["C1"], "A": ["C1"], "C1": ["C2", "B"], "B": ["C2"], "C2": ["E"]}, where="second"
    ),
    {"D": "Mail", "C1": "Slides", "A": "Slides", "C2": "Slides", "B": "Pictures", "E": "Mail"},
)
"""The second graph of the reviews, in which one subtask occurs twice."""

CROSSED: Task = (
    Graph(tuple("abcd"), (("d", "b"), ("c", "a"))),
    {"a": "Slides", "b": "Mail", "c": "Mail", "d": "Slides"},
)
"""Either application can be done in one go, but not both: d b, c a each change it."""
