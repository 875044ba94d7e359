"""Rules of composition: on the authors' own examples, and on pools of all kinds."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnidata.errors import DataError
from omnidata.graphs import Graph
from omnidata.synth.compose.graph_sampler import PartialPlan
from omnidata.synth.compose.pool import IndexedPool, Pool, read_pool
from omnidata.synth.compose.search import Job, Search, Sketch, try_batch
from omnidata.synth.compose.settings import EdgeRule, Settings, complexity_target
from tests.full import FULL
from tests.synth.composing import EMILY, subtask, write_pool
from tests.synth.oracle import check_graph, check_orders, node_of

GRAPHS_ALONE = Settings(trajectories=0)


def serial_of(indexed: IndexedPool, instances: Sequence[int], rule: EdgeRule) -> PartialPlan | str:
    """The graph of instances in the given order; or which of them breaks which rule."""
    plan = PartialPlan(indexed, rule)
    for place, instance in enumerate(instances):
        why = plan.refuses(instance)
        if why:
            return f"place {place}: {why}"
        plan.add(instance)
    return plan


def edges(pool: Pool, order: Sequence[str], rule: EdgeRule = "latest") -> set[tuple[int, int]]:
    """The edges between places of subtasks that have one binding each."""
    numbers = {card.subtask: number for number, card in enumerate(pool.cards)}
    plan = serial_of(pool.indexed, [numbers[name] for name in order], rule)
    assert not isinstance(plan, str), plan
    return set(plan.edges)


@pytest.fixture(scope="module")
def emily(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    return read_pool(write_pool(tmp_path_factory.mktemp("emily"), EMILY), GRAPHS_ALONE)


def named(order: Sequence[str], dag: Mapping[str, Sequence[str]]) -> set[tuple[int, int]]:
    return {(order.index(a), order.index(b)) for a, others in dag.items() for b in others}


def test_the_first_example_of_the_authors_is_composed_as_printed(emily: Pool) -> None:
    dag = {"A": ["C"], "D": ["C"], "F": ["G"], "C": ["G"], "G": ["E"]}
    order = ["A", "D", "C", "F", "G", "E"]
    assert edges(emily, order) == named(order, dag)


def test_the_second_example_with_a_repeated_subtask_is_composed_as_printed(emily: Pool) -> None:
    dag = {"D": ["C1"], "A": ["C1"], "C1": ["C2", "B"], "B": ["C2"], "C2": ["E"]}
    order = ["A", "D", "C1", "B", "C2", "E"]
    assert edges(emily, [name[0] for name in order]) == named(order, dag)


def test_every_matching_pair_can_be_asked_for(emily: Pool) -> None:
    order = ["A", "D", "C", "F", "G", "E"]
    found = edges(emily, order, "every")
    assert found == edges(emily, order) | named(order, {"A": ["G", "E"], "C": ["E"]})


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ("C C", "nothing has changed"),
        ("A A", "there already"),
        ("C A", "there already"),
        ("G", "not there"),
        ("F F", "there already"),
    ],
)
def test_an_order_that_breaks_a_rule_is_refused(emily: Pool, order: str, why: str) -> None:
    numbers = {card.subtask: number for number, card in enumerate(emily.cards)}
    told = serial_of(emily.indexed, [numbers[name] for name in order.split()], "latest")
    assert isinstance(told, str)
    assert why in told


def test_what_was_only_needed_is_not_changed_afterwards(tmp_path: Path) -> None:
    rows = [
        subtask("make", (), ("doc_path",), {"doc_path": "a"}),
        subtask("edit", ("doc_path",), ("doc_path",), {"doc_path": "a"}),
        subtask("send", ("doc_path",), (), {"doc_path": "a"}),
    ]
    pool = read_pool(write_pool(tmp_path, rows), GRAPHS_ALONE)
    assert edges(pool, ["make", "edit", "send"]) == {(0, 1), (1, 2)}
    told = serial_of(pool.indexed, [0, 2, 1], "latest")
    assert isinstance(told, str)
    assert "earlier state" in told


def test_the_clipboard_holds_one_thing(tmp_path: Path) -> None:
    rows = [
        subtask("text", (), ("text_in_clipboard",)),
        subtask("table", (), ("table_in_clipboard",)),
        subtask("paste", ("text_in_clipboard",), ()),
    ]
    pool = read_pool(write_pool(tmp_path, rows), GRAPHS_ALONE)
    told = serial_of(pool.indexed, [0, 1, 2], "latest")
    assert isinstance(told, str)
    assert "same place" in told


FILES = ("doc_path", "img_path", "pdf_path")
STATES = ("text_in_clipboard", "table_in_clipboard", "deck_in_processing")


@st.composite
def pools(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    kinds = st.sampled_from(FILES + STATES)
    for number in range(draw(st.integers(4, 12))):
        one, other = draw(st.tuples(kinds, kinds))
        inputs, outputs = draw(
            st.sampled_from(
                [
                    ([], [one]),
                    ([one], []),
                    ([one], [one]),
                    ([one], [other]),
                    ([one, other], [one]),
                    ([one], [one, other]),
                    ([one, other], [one, other]),
                ]
            )
        )
        inputs, outputs = list(dict.fromkeys(inputs)), list(dict.fromkeys(outputs))
        places = [kind for kind in FILES if kind in (*inputs, *outputs)]
        values = draw(st.sampled_from([["x"], ["x", "y"]]))
        bindings = [dict.fromkeys(places, value) for value in values] if places else [{}]
        app = draw(st.sampled_from(["Word", "Zoom Workplace", "Maps", "Cursor", "Paint"]))
        rows.append(subtask(f"S{number}", inputs, outputs, *bindings, app=app))
    return rows


def composed(rows: Sequence[Mapping[str, Any]], rule: EdgeRule) -> tuple[Pool, list[Sketch]]:
    with tempfile.TemporaryDirectory() as name:
        pool = read_pool(write_pool(Path(name), rows), GRAPHS_ALONE)
    search = Search(0, complexity_target({}, most=8), rule)
    return pool, try_batch(Job(pool.indexed, search, 0)).found


@settings(
    max_examples=400 if FULL else 12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
@given(rows=pools(), rule=st.sampled_from(["latest", "every"]))
def test_graphs_of_random_pools_satisfy_every_constraint(
    rows: list[dict[str, Any]], rule: EdgeRule
) -> None:
    try:
        pool, sketches = composed(rows, rule)
    except DataError as error:
        assert "no subtask of the pool can be used" in error.what
        return
    known = {row["id"]: row for row in rows}
    seen = set()
    for sketch in sketches:
        cards = [pool.cards[one] for one in sketch.instances]
        names = [str(place) for place in range(len(cards))]
        graph = Graph(tuple(names), tuple((names[a], names[b]) for a, b in sketch.edges))
        nodes = {
            name: node_of(known[card.subtask], card.binding)
            for name, card in zip(names, cards, strict=True)
        }
        initial = {pool.indexed.resources[one] for one in sketch.initial}
        assert all(kind in FILES for kind, _ in initial)
        check_graph(graph, nodes, initial=set(initial), every_edge=rule == "every")
        check_orders(graph, nodes, graph.orders(200))
        assert sketch.key not in seen
        seen.add(sketch.key)
