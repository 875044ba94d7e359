"""Rules of composition: on the authors' own examples, and on pools of all kinds."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnidata.errors import DataError
from omnidata.graphs import Graph
from omnidata.synth.compose.pool import Pool, read_pool
from omnidata.synth.compose.search import Job, Search, Sketch, try_batch
from omnidata.synth.compose.settings import EdgeRule, Settings, complexity_target
from tests.full import FULL
from tests.synth.composing import subtask, write_pool
from tests.synth.oracle import check_graph, check_orders, node_of

GRAPHS_ALONE = Settings(trajectories=0)


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
