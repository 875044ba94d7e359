"""A task graph on a step's page: every subtask right of those it waits for, and nothing obeyed."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata import viewer
from omnidata.graphs import Graph
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.types import TaskDiagram
from omnidata.viewer.book import Book, open_data
from omnidata.viewer.step_page import step_page
from tests.loaders import omnibench


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    nodes = tuple(f"n{number}" for number in range(draw(st.integers(1, 9))))
    pairs = list(combinations(nodes, 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Graph(draw(st.permutations(nodes).map(tuple)), tuple(edges))


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """A step of a task, whose diagram tests replace."""
    task = get_task("omnibench")
    return open_data(task, data(tmp_path_factory.mktemp("data"), {"A": ["E"]}))


@given(graph=graphs())
def test_nodes_lie_apart_and_right_of_what_they_wait_for(book: Book, graph: Graph) -> None:
    vars(book.task.benchmark)["diagram"] = lambda source, step: TaskDiagram(graph, {}, {})
    made = step_page(book, 0).graph
    assert made
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


def pages(folder: Path, dag: object) -> list[str]:
    source = get_task("omnibench").load(data(folder / "data", dag), check_media=False)
    evaluate(get_task("omnibench"), source, "baseline:center", folder / "run")
    viewer.write(read_run(folder / "run"), folder / "pages")
    made = (folder / "pages" / "steps").glob("*.html")
    return [path.read_text("utf-8") for path in made]


def test_a_step_of_a_task_shows_its_graph(tmp_path: Path) -> None:
    [page] = [page for page in pages(tmp_path, {"A": ["E"]}) if "Task graph" in page]
    titles = ["Say &lt;b&gt;{x} (PowerPoint)", "Make &#39;{path}&#39; ready. (Outlook)"]
    assert re.findall("<title>(.*?)</title><rect", page) == titles
    assert re.findall(r'<li class="g(\d)"><bdi>(.*?)</bdi>', page) == [
        ("0", "PowerPoint"), ("1", "Outlook"),
    ]  # fmt: skip
    assert '<svg class="graph"' in page and "Say <b>" not in page
    assert page.count('class="edge"') == 1


def test_a_graph_that_nobody_could_read_is_told_and_not_drawn(tmp_path: Path) -> None:
    chain = {f"n{number}": [f"n{number + 1}"] for number in range(100)}
    [page] = [page for page in pages(tmp_path, chain) if "Task graph" in page]
    assert "101 subtasks" in page and '<svg class="graph"' not in page
