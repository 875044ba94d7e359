"""The pieces of composition: levels, identity, orders, names, wording, stitching."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import UsageError
from omnidata.graphs import Graph
from omnidata.loaders.task_library import Subtask
from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS, complexity
from omnidata.synth.compose.graph_sampler import node_names
from omnidata.synth.compose.instructions import instruct
from omnidata.synth.compose.pool import resources
from omnidata.synth.compose.search import identity
from omnidata.synth.compose.settings import complexity_target, parse_levels
from omnidata.synth.compose.trajectories import Recorded, orders_of, stitch
from omnidata.tasks.omnibench.rows import subtask_of
from tests.synth.oracle import connected, edges_told

Edges = frozenset[tuple[int, int]]


@st.composite
def dags(draw: st.DrawFn, most: int = 8) -> tuple[int, Edges]:
    size = draw(st.integers(2, most))
    pairs = list(combinations(range(size), 2))
    return size, frozenset(draw(st.lists(st.sampled_from(pairs), unique=True)))


def graph_of(size: int, edges: Edges) -> Graph:
    names = [str(place) for place in range(size)]
    return Graph(tuple(names), tuple((names[a], names[b]) for a, b in sorted(edges)))


@given(dag=dags(), apps=st.lists(st.sampled_from("ABCDE"), min_size=8, max_size=8), data=st.data())
def test_levels_that_a_graph_has_are_never_refused(
    dag: tuple[int, Edges], apps: list[str], data: st.DataObject
) -> None:
    size, edges = dag
    graph = graph_of(size, edges)
    measured = complexity(graph, dict(zip(graph.nodes, apps, strict=False)), {})
    names = data.draw(st.sets(st.sampled_from(DIMENSIONS)))
    asked = {name: level for name, level in measured.levels().items() if name in names}
    wanted = complexity_target(asked, most=8)
    joined = len(graph.edges) >= size - 1 and connected({"dag": graph.as_json()})
    assert wanted.gap(measured) == 0 or (wanted.connected and not joined)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("hierarchy=hard dependency=easy branch=hard", "dependency=easy (0 to 1 edges) and hier"),
        ("instruction=easy branch=medium", "instruction=easy (1 to 2 subtasks) and branch=medium"),
        ("instruction=easy dependency=hard", "dependency=hard (at least 4 edges)"),
        ("knowledge=hard instruction=easy", "knowledge=hard (at least 4 categories"),
        ("instruction=hard hierarchy=easy branch=easy", "and branch=easy"),
    ],
)
def test_levels_that_exclude_each_other_are_named(asked: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        levels = sorted(asked.split(), key=lambda one: DIMENSIONS.index(one.split("=")[0]))
        complexity_target(parse_levels(levels), most=10)
    assert told in raised.value.what


def test_two_levels_are_refused_exactly_where_no_small_graph_has_both() -> None:
    """By looking at all graphs of up to five nodes, which have every pair of levels there is."""
    have = set()
    for size in range(2, 6):
        pairs = list(combinations(range(size), 2))
        for number in range(1 << len(pairs)):
            edges = frozenset(pair for place, pair in enumerate(pairs) if number >> place & 1)
            for kinds in (1, 2, 3, 4, 5):
                apps = {str(place): str(min(place, kinds - 1)) for place in range(size)}
                found = complexity(graph_of(size, edges), apps, {}).levels()
                have |= set(combinations(found.items(), 2))
    for first, second in combinations(DIMENSIONS, 2):
        for one in LEVELS:
            for other in LEVELS:
                possible = ((first, one), (second, other)) in have
                if possible:
                    complexity_target({first: one, second: other}, most=5)
                    continue
                with pytest.raises(UsageError):
                    complexity_target({first: one, second: other}, most=5)


def isomorphic(labels: str, others: str, edges: Edges, rest: Edges) -> bool:
    return any(
        all(labels[node] == others[place] for node, place in enumerate(way))
        and {(way[a], way[b]) for a, b in edges} == rest
        for way in permutations(range(len(labels)))
    )


@given(dag=dags(5), other=dags(5), labels=st.text("ab", min_size=5, max_size=5))
def test_two_graphs_have_one_identity_exactly_if_one_is_a_copy_of_the_other(
    dag: tuple[int, Edges], other: tuple[int, Edges], labels: str
) -> None:
    (size, edges), (rest_size, rest) = dag, other
    mine, theirs = labels[:size], labels[:rest_size][::-1]
    same = identity(mine, sorted(edges)) == identity(theirs, sorted(rest))
    assert same == (size == rest_size and isomorphic(mine, theirs, edges, rest))


@given(dag=dags(7), labels=st.text("abc", min_size=7, max_size=7), seed=st.integers())
def test_a_renumbered_graph_keeps_its_identity(
    dag: tuple[int, Edges], labels: str, seed: int
) -> None:
    size, edges = dag
    way = list(range(size))
    random.Random(seed).shuffle(way)
    moved = [""] * size
    for node, place in enumerate(way):
        moved[place] = labels[node]
    there = [(way[a], way[b]) for a, b in edges]
    assert identity(moved, there) == identity(labels[:size], sorted(edges))


@given(dag=dags(7), most=st.integers(1, 30), seed=st.integers(0, 9))
def test_orders_are_all_of_them_or_a_sample_of_the_size_asked_for(
    dag: tuple[int, Edges], most: int, seed: int
) -> None:
    graph = graph_of(*dag)
    every = list(graph.orders())
    found = orders_of(graph, most=most, rng=random.Random(seed))
    assert found.total == len(every) == graph.count_orders()
    assert found.sampled == (len(every) > most)
    assert len(found.listed) == min(most, len(every))
    assert set(found.listed) <= set(every)
    assert list(found.listed) == [order for order in every if order in found.listed]


def test_a_sample_takes_every_order_about_equally_often() -> None:
    graph = Graph(tuple("abcde"), (("a", "b"), ("c", "d"), ("a", "d")))
    every = list(graph.orders())
    drawn = Counter(
        orders_of(graph, most=1, rng=random.Random(seed)).listed[0] for seed in range(4000)
    )
    assert set(drawn) == set(every)
    mean = 4000 / len(every)
    # A random walk over the available nodes would take some orders twice as often as others.
    assert all(0.75 * mean < count < 1.25 * mean for count in drawn.values())


@given(
    st.lists(st.sampled_from(["C", "C1", "D", "C12", "u-1"]), min_size=1, max_size=6),
    st.sets(st.sampled_from(["C", "C1", "D", "C12", "u-1"])),
)
def test_the_loader_finds_the_subtask_of_every_node(chosen: list[str], more: set[str]) -> None:
    known = {name: Subtask(name, "", "") for name in {*chosen, *more}}
    names = node_names(chosen, known)
    assert len(set(names)) == len(names)
    for name, wanted in zip(names, chosen, strict=True):
        found = subtask_of(name, known)
        assert found is not None
        assert found.id == wanted


texts = st.text(max_size=30) | st.sampled_from(["2. (after 1) In X: y", "\n3. (after 2) z", "a.b "])


@given(dag=dags(), intent=texts, data=st.data())
def test_the_graph_can_be_read_from_an_instruction_by_template(
    dag: tuple[int, Edges], intent: str, data: st.DataObject
) -> None:
    size, edges = dag
    pairs = st.tuples(texts, texts)
    subtasks = data.draw(st.lists(pairs, min_size=size, max_size=size))
    assert edges_told(instruct(intent, subtasks, sorted(edges))) == sorted(edges)


def test_resources_without_a_parameter_of_their_name() -> None:
    every = ("ppt_path", "img_path")
    assert resources(every, every, {"path": "x"}) == (("ppt_path", None), ("img_path", None))
    assert resources(every, every, {"ppt_path": 1, "path": "x"}) == (
        ("ppt_path", "1"),
        ("img_path", "x"),
    )


def action(number: int, **columns: Any) -> dict[str, Any]:
    return {"function": "click_input", "args": {}, "control_text": f"b{number}", **columns}


END = {"function": "", "args": {}, "status": "FINISH"}


@pytest.mark.parametrize(
    ("part", "pictures", "said"),
    [
        (Recorded(("1.png",), (action(1, Status="FINISH"),)), 2,
         [action(1, Status="CONTINUE"), action(1, Status="FINISH")]),
        # An end is added where a picture shows it.
        (Recorded(("1.png",), (action(1),), "2.png"), 3, [action(1), action(1), END]),
        (Recorded(("1.png",), (action(1, status="FINISH"),), "2.png"), 3,
         [action(1, status="CONTINUE"), action(1, status="CONTINUE"), END]),
    ],
)  # fmt: skip
def test_a_task_ends_once_and_not_with_a_subtask(
    part: Recorded, pictures: int, said: list[dict[str, Any]]
) -> None:
    observations, actions = stitch([part, part])
    assert observations == ["1.png", "1.png", "2.png"][:pictures]
    assert actions == said


def test_histories_tell_the_whole_task() -> None:
    part = Recorded(("1.png", "2.png"), (action(1, history=[]), action(2, history=[action(1)])))
    _, actions = stitch([part, part])
    assert [len(one["history"]) for one in actions] == [0, 1, 2, 3]
    assert actions[3]["history"] == [action(1), action(2), action(1)]
