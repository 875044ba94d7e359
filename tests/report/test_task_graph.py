"""A task graph on a step's page: every subtask right of those it waits for, and nothing obeyed."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from omnidata.graphs import Graph
from omnidata.tasks import get_task
from omnidata.types import TaskDiagram
from omnidata.viewer.html import Pages
from omnidata.viewer.media_index import OnServer
from omnidata.viewer.report_data import facts, open_data
from omnidata.viewer.task_graph import LIMIT, drawing
from tests.loaders import omnibench


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    nodes = tuple(f"n{number}" for number in range(draw(st.integers(1, 9))))
    pairs = list(combinations(nodes, 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Graph(draw(st.permutations(nodes).map(tuple)), tuple(edges))


@given(graphs())
def test_nodes_lie_apart_and_right_of_what_they_wait_for(graph: Graph) -> None:
    made = drawing(TaskDiagram(graph, {}, {}))
    place = dict(zip(graph.nodes, made.nodes, strict=True))
    for first, second in graph.edges:
        assert place[first].x + place[first].width < place[second].x
    for one, other in combinations(made.nodes, 2):
        assert abs(one.x - other.x) >= one.width or abs(one.y - other.y) >= one.height
    for node in made.nodes:
        assert 0 < node.x < node.x + node.width < made.width
        assert 0 < node.y < node.y + node.height < made.height
    assert len(made.edges) == len(graph.edges)


def data(folder: Path, dag: object, **changes: object) -> Path:
    whole = omnibench.trajectory(omnibench.act(), trajectory_id="1(0)", task_id="1")
    del whole["subtask_id"]
    subtasks = [omnibench.subtask("A", instruction_template="Say <b>{x}"), omnibench.subtask("E")]
    files = {
        "subtasks.jsonl": subtasks,
        "tasks.jsonl": [omnibench.task("1", dag, **changes)],
        "trajectories.jsonl": [whole],
        "subtask_trajectories.jsonl": [omnibench.trajectory(omnibench.act())],
    }
    return omnibench.written(folder, files)


def test_a_step_of_a_task_shows_its_graph(tmp_path: Path) -> None:
    place = data(tmp_path / "data", {"A": ["E"]})
    book = open_data(get_task("omnibench"), place)
    number = next(n for n, step in enumerate(book.steps) if "task_id" in step.source)
    page = Pages(book, OnServer()).step(number)
    found = facts(book, number).graph
    assert found and [node.title for node in found.nodes] == [
        "Say <b>{x} (PowerPoint)", "Make '{path}' ready. (Outlook)",
    ]  # fmt: skip
    assert found.groups == {"PowerPoint": 0, "Outlook": 1}
    assert '<svg class="graph"' in page and "Say &lt;b&gt;{x}" in page and "Say <b>" not in page
    assert page.count('class="edge"') == 1
    other = next(n for n, step in enumerate(book.steps) if "task_id" not in step.source)
    assert "Task graph" not in Pages(book, OnServer()).step(other)


def test_a_graph_that_nobody_could_read_is_told_and_not_drawn(tmp_path: Path) -> None:
    chain = {f"n{number}": [f"n{number + 1}"] for number in range(LIMIT)}
    book = open_data(get_task("omnibench"), data(tmp_path / "data", chain))
    number = next(n for n, step in enumerate(book.steps) if "task_id" in step.source)
    found = facts(book, number)
    assert found.graph is None and f"{LIMIT + 1} subtasks" in found.graph_note
    assert found.graph_note in Pages(book, OnServer()).step(number)
