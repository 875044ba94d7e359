"""Task graphs: what is refused, and orders against plain enumeration."""

from __future__ import annotations

import pickle
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import DataError
from omnidata.graphs import MAX_NODES, Graph
from tests.task_graphs import CHAIN, MEETING, TWICE, all_orders, graphs

LONG = tuple(str(number) for number in range(MAX_NODES))


@pytest.mark.parametrize(
    ("dag", "message"),
    [
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, "cycle: 'a' -> 'b' -> 'c' -> 'a'"),
        ({"nodes": ["x", "a", "b"], "edges": {"a": ["b"], "b": ["a"], "x": ["a"]}}, "cycle: "),
        ({"a": ["a"]}, "node 'a' waits for itself"),
        ({"a": ["b", "b"]}, "edge 'a' -> 'b' is repeated"),
        ({"nodes": ["a", "a"], "edges": {}}, "node 'a' is repeated"),
        ({"nodes": ["a"], "edges": {"a": ["b"]}}, "names 'b', which is no node"),
        ({"nodes": ["a"], "edges": {"b": ["a"]}}, "names 'b', which is no node"),
        ({"nodes": [], "edges": {}}, "the graph has 0 nodes"),
        ({}, "the graph has 0 nodes"),
        (None, "the edges are a NoneType"),
        (["a"], "the edges are a list"),
        ({"nodes": "ab", "edges": {}}, "the nodes are a str"),
        ({"nodes": ["a", True], "edges": {}}, "the nodes hold an id of type bool"),
        ({"nodes": [1, "1"], "edges": {}}, "node '1' is repeated"),
        ({"nodes": ["a"], "edges": []}, "the edges are a list"),
        ({"nodes": ["a"], "edges": None}, "the edges are a NoneType"),
        ({"a": "b"}, "the edges of 'a' are a str"),
        ({"a": [None]}, "the edges of 'a' hold an id of type NoneType"),
        ({"a": [1.0]}, "the edges of 'a' hold an id of type float"),
        ({"nodes": [*LONG, "one more"], "edges": {}}, f"{MAX_NODES + 1} nodes"),
    ],
)
def test_what_is_no_task_graph_is_refused_by_name(dag: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        Graph.read(dag, where="tasks.jsonl:3")
    assert message in caught.value.what
    assert caught.value.where == "tasks.jsonl:3"
    assert caught.value.expected
    assert caught.value.remedy


def test_a_long_cycle_and_long_ids_are_named_in_a_short_message() -> None:
    nodes = [f"{number}-{'x' * 10_000}" for number in range(200)]
    ring = {node: [after] for node, after in pairwise([*nodes, nodes[0]])}
    with pytest.raises(DataError) as caught:
        Graph.read(ring, where="")
    assert len(str(caught.value)) < 2000


def test_an_id_nested_deeper_than_the_stack_is_refused_by_name() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(DataError, match="the nodes hold an id of type list"):
        Graph.read({"nodes": [nested], "edges": {}}, where="")


def test_a_graph_that_is_made_is_checked_like_one_that_is_read() -> None:
    with pytest.raises(DataError, match="cycle"):
        Graph(("a", "b"), (("a", "b"), ("b", "a")))


def test_every_published_form_of_a_graph_is_read() -> None:
    whole = {"nodes": ["a", "b"], "edges": {"a": ["b"], "b": []}}
    graph = Graph.read(whole, where="")
    assert graph == Graph.read({"nodes": ["a", "b"], "edges": {"a": ["b"]}}, where="")
    assert (
        graph == Graph.read({"edges": {"a": ["b"]}}, where="") == Graph.read({"a": ["b"]}, where="")
    )
    assert graph.as_json() == whole
    assert Graph.read({"nodes": ["a"]}, where="") == Graph(("a",), ())


@given(graph=graphs())
def test_a_graph_survives_json_and_pickle(graph: Graph) -> None:
    again = Graph.read(graph.as_json(), where="")
    assert (again.nodes, set(again.edges)) == (graph.nodes, set(graph.edges))
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    assert copy.depths() == graph.depths()


@given(graph=graphs(), limit=st.integers(0, 10))
def test_orders_are_all_topological_orders_sorted(graph: Graph, limit: int) -> None:
    expected = list(all_orders(graph))
    assert list(graph.orders()) == expected
    assert list(graph.orders(limit)) == expected[:limit]
    assert graph.count_orders() == len(expected)
    for order in expected:
        graph.check_order(order)


@given(graph=graphs(), cap=st.integers(0, 20))
def test_a_capped_count_is_right_or_none(graph: Graph, cap: int) -> None:
    assert graph.count_orders(cap) in (None, sum(1 for _ in all_orders(graph)))


@given(graph=graphs())
def test_depths_and_ancestors_follow_the_paths(graph: Graph) -> None:
    def paths(node: str) -> list[tuple[str, ...]]:
        before = [a for a, b in graph.edges if b == node]
        return [(*path, node) for other in before for path in paths(other)] or [(node,)]

    for node, ancestors in zip(graph.nodes, graph.ancestors(), strict=True):
        found = paths(node)
        assert graph.depths()[node] == max(map(len, found))
        assert {other for other in graph.nodes if ancestors >> graph.index[other] & 1} == {
            other for path in found for other in path[:-1]
        }


@given(graph=graphs(), data=st.data())
def test_an_order_is_refused_exactly_if_it_is_not_topological(
    graph: Graph, data: st.DataObject
) -> None:
    order = data.draw(st.lists(st.sampled_from([*graph.nodes, "stranger"]), max_size=8))
    prefixes = {whole[: len(order)] for whole in all_orders(graph)}
    for complete in (False, True):
        valid = tuple(order) in prefixes and (not complete or len(order) == len(graph.nodes))
        try:
            graph.check_order(order, complete=complete)
        except DataError:
            assert not valid
        else:
            assert valid


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["A", "Z"], "place 2 is 'Z', which is no node"),
        (["A", "D", "A"], "place 3 is 'A' for a second time"),
        (["A", "C"], "place 2 is 'C', but 'D' is not done before it"),
        (["A", "D"], "'C' is not in the order"),
    ],
)
def test_an_order_that_is_wrong_is_refused_by_name(order: list[str], message: str) -> None:
    with pytest.raises(DataError) as caught:
        MEETING[0].check_order(order, where="sequences.jsonl:8")
    assert (caught.value.what, caught.value.where) == (message, "sequences.jsonl:8")
    assert caught.value.expected
    assert caught.value.remedy


def test_the_published_examples_have_the_orders_counted_by_hand() -> None:
    assert list(CHAIN[0].orders()) == [("x", "y")]
    # C after A and D in 2 ways, F at any of the 4 places before G.
    assert MEETING[0].count_orders() == 8
    assert TWICE[0].count_orders() == 2
    assert MEETING[0].depths() == {"A": 1, "C": 2, "D": 1, "F": 1, "G": 3, "E": 4}
    assert TWICE[0].depths() == {"D": 1, "C1": 2, "A": 1, "C2": 4, "B": 3, "E": 5}


def test_the_largest_graphs_are_no_deeper_than_the_stack() -> None:
    chain = Graph(LONG, tuple(pairwise(LONG)))
    assert next(chain.orders()) == LONG
    assert chain.count_orders() == 1
    assert chain.depths()["999"] == MAX_NODES


def test_a_count_beyond_its_cap_is_given_up_before_it_fills_the_memory() -> None:
    hub = Graph(LONG, tuple(("0", node) for node in LONG[1:]))
    assert hub.count_orders() is None
    assert len(list(islice(hub.orders(), 3))) == 3
