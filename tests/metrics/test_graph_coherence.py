"""CS_max, its bounds, widths and runs against plain enumeration."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidata.graphs import MAX_NODES, Graph
from omnidata.metrics.graph_complexity import complexity
from omnidata.metrics.graphs import (
    Bounds,
    coherence,
    longest_possible_run,
    longest_run,
    most_coherent,
)
from tests.full import FULL
from tests.task_graphs import CROSSED, Task, all_orders, graphs, tasks


def brute(task: Task) -> int:
    graph, used = task
    return max(coherence(order, used) for order in all_orders(graph))


@settings(max_examples=2000 if FULL else 200)
@given(task=tasks(most=6), cap=st.integers(0, 40))
def test_cs_max_is_what_enumeration_finds_and_a_cap_encloses_it(task: Task, cap: int) -> None:
    best = brute(task)
    assert most_coherent(*task) == Bounds(best, best)
    capped = most_coherent(*task, cap=cap)
    assert capped.lower <= best <= capped.upper
    assert bool(capped.lower) == bool(capped.upper) == bool(best)


@settings(max_examples=200 if FULL else 40)
@given(task=tasks(most=8, applications=3))
def test_cs_max_of_larger_graphs_is_what_enumeration_finds(task: Task) -> None:
    assert most_coherent(*task).exact == brute(task)


def test_the_block_that_looks_best_is_not_always_taken() -> None:
    """A block that shortens a chain of Files or Slides can cost one more in the end."""
    graph = Graph(
        tuple("abcdefgh"), (("g", "c"), ("e", "d"), ("b", "h"), ("c", "f"), ("f", "a"), ("h", "d"))
    )
    names = ["Mail", "Files", "Files", "Files", "Mail", "Slides", "Slides", "Slides"]
    task = (graph, dict(zip("abcdefgh", names, strict=True)))
    assert most_coherent(*task).exact == brute(task) == 3


def test_a_search_that_is_cut_short_says_so() -> None:
    assert most_coherent(*CROSSED) == Bounds(1, 1)
    assert most_coherent(*CROSSED, cap=0) == Bounds(1, 2)
    assert most_coherent(*CROSSED, cap=0).exact is None


def test_each_step_of_a_search_costs_as_many_as_the_graph_has_subtasks() -> None:
    graph, used = CROSSED
    tail = tuple(f"tail {number}" for number in range(100))
    longer = Graph(graph.nodes + tail, graph.edges + tuple(pairwise(("a", *tail))))
    assert most_coherent(graph, used, cap=100) == Bounds(1, 1)
    with_tail = used | dict.fromkeys(tail, "Files")
    assert most_coherent(longer, with_tail) == Bounds(100, 100)
    assert most_coherent(longer, with_tail, cap=100) == Bounds(100, 101)


def test_a_search_never_tries_orders_one_by_one() -> None:
    """30 independent subtasks have 2.7e32 orders; 1000 in a chain are deeper than the stack."""
    loose = tuple(str(number) for number in range(30))
    assert (
        most_coherent(Graph(loose, ()), {node: f"App{int(node) % 6}" for node in loose}).exact == 24
    )
    row = tuple(str(number) for number in range(MAX_NODES))
    chain = Graph(row, tuple(pairwise(row)))
    assert most_coherent(chain, {node: f"App{int(node) // 2 % 2}" for node in row}).exact == 500
    assert complexity(chain, dict.fromkeys(row, "App"), {}).branch == 1


@given(task=tasks())
def test_the_longest_possible_run_is_what_enumeration_finds(task: Task) -> None:
    graph, used = task
    assert longest_possible_run(graph, used) == max(
        longest_run(order, used) for order in all_orders(graph)
    )


@given(graph=graphs(most=6))
def test_the_width_is_the_largest_set_of_pairwise_unrelated_nodes(graph: Graph) -> None:
    orders = list(all_orders(graph))

    def free(one: str, other: str) -> bool:
        return len({order.index(one) < order.index(other) for order in orders}) == 2

    widths = [
        size
        for size in range(1, len(graph.nodes) + 1)
        for chosen in combinations(graph.nodes, size)
        if all(free(one, other) for one, other in combinations(chosen, 2))
    ]
    found = complexity(graph, dict.fromkeys(graph.nodes, "App"), {})
    assert found.branch == max(widths)
    assert found.largest_level <= found.branch


@pytest.mark.parametrize(
    ("sequence", "expected"), [("", 0), ("a", 0), ("ab", 1), ("abc", 1), ("acb", 0), ("abdc", 1)]
)
def test_coherence_counts_adjacent_subtasks_of_one_application(
    sequence: str, expected: int
) -> None:
    assert coherence(sequence, {"a": "X", "b": "X", "c": "Y", "d": "Z"}) == expected
