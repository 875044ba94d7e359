"""Scores of the published examples, counted by hand; what is refused; tables over tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib import resources
from typing import Any

import numpy as np
import pytest

from omnidata.errors import DataError
from omnidata.graphs import Graph
from omnidata.metrics.graph_complexity import DIMENSIONS, capabilities, complexity, eligible, level
from omnidata.metrics.graphs import (
    Bounds,
    TaskScore,
    most_coherent,
    score_task,
    sensitivity,
    states,
    total,
)
from omnidata.metrics.row_tables import means
from tests.task_graphs import CHAIN, CROSSED, MEETING, TABLE_10, TWICE, Task


def score(task: Task, executed: Sequence[str], **options: Any) -> TaskScore:
    return score_task(*task, TABLE_10, executed, **options)


# Depths: chain 1 2; MEETING A1 D1 F1 C2 G3 E4, in all 12; TWICE D1 A1 C1 2 B3 C2 4 E5, in all 16.
# Most coherent: x y; D F A C G E (A C, C G); D A C1 B C2 E (A C1).
@pytest.mark.parametrize(
    ("task", "executed", "values"),
    [
        (CHAIN, "", (Fraction(0), 0, 1, Fraction(0))),
        (CHAIN, "x", (Fraction(1, 3), 0, 1, Fraction(0))),
        (CHAIN, "x y", (Fraction(1), 1, 1, Fraction(1))),
        (MEETING, "D F A C G E", (Fraction(1), 2, 2, Fraction(1))),
        (MEETING, "D A F C G E", (Fraction(1), 1, 2, Fraction(1, 2))),
        (MEETING, "D A C", (Fraction(4, 12), 1, 2, Fraction(1, 2))),
        (MEETING, "D A F C", (Fraction(5, 12), 0, 2, Fraction(0))),
        (TWICE, "D A C1 B C2 E", (Fraction(1), 1, 1, Fraction(1))),
        (TWICE, "A D C1 B C2 E", (Fraction(1), 0, 1, Fraction(0))),
        (TWICE, "D A C1 B", (Fraction(7, 16), 1, 1, Fraction(1))),
    ],
)
def test_the_published_examples_score_as_counted_by_hand(
    task: Task, executed: str, values: tuple[Fraction, int, int, Fraction]
) -> None:
    found = score(task, executed.split())
    assert (found.cr, found.cs_agent, found.cs_max.exact) == values[:3]
    assert found.lc == Bounds(values[3], values[3])


def test_the_published_examples_measure_as_counted_by_hand() -> None:
    meeting, twice = (complexity(*task, TABLE_10) for task in (MEETING, TWICE))
    assert [getattr(meeting, name) for name in DIMENSIONS] == [5, 6, 3, 4, 3]
    assert [getattr(twice, name) for name in DIMENSIONS] == [6, 6, 3, 5, 2]
    identifying = ("Subtask Identification", "Dependency Identification")
    assert eligible(meeting) == identifying
    assert eligible(twice) == ("Long-Range Planning", "Long-Sequence Reasoning", *identifying)


def test_states_follow_the_published_example() -> None:
    graph = MEETING[0]
    seen = [states(graph, "DACFGE"[:done]) for done in range(7)]
    assert ["".join(name for name in "ADCFGE" if at[name] == "Evaluating") for at in seen] == [
        "ADF", "AF", "CF", "F", "G", "E", "",
    ]  # fmt: skip
    assert set(seen[-1].values()) == {"Completed"}


def test_released_scores_differ_from_the_paper_as_documented() -> None:
    nothing = score((Graph(("a", "b"), ()), {"a": "Mail", "b": "Mail"}), [])
    assert nothing.values("release") == {"completion": 1.0, "coherence": 0.0}
    assert nothing.values()["CR"] == 0.0
    # Mail, Mail, Files, Files in this order: two of two possible pairs, and the longest run is 2.
    pairs = (
        Graph(tuple("abcd"), ()),
        dict(zip("abcd", ["Mail", "Mail", "Files", "Files"], strict=True)),
    )
    found = score(pairs, list("acdb"))
    assert found.values() == {"CR": 1.0, "LC": 0.5, "CS_agent": 1, "CS_max": 2}
    assert found.values("release") == {"completion": 1.0, "coherence": 1.0}
    # D A C of MEETING: F is open on the first level, and A C is a run of 2 of 3.
    assert score(MEETING, list("DAC")).values("release") == {"completion": 0.0, "coherence": 0.5}


@pytest.mark.parametrize(
    ("executed", "message"),
    [
        (["A", "Z"], "place 2 is 'Z', which is no node"),
        (["A", "A"], "place 2 is 'A' for a second time"),
        (["D", "C"], "place 2 is 'C', but 'A' is not done before it"),
    ],
)
def test_a_sequence_that_cannot_have_happened_is_refused(executed: list[str], message: str) -> None:
    with pytest.raises(DataError) as caught:
        score(MEETING, executed, where="runs.jsonl:2")
    assert (caught.value.what, caught.value.where) == (message, "runs.jsonl:2")
    assert caught.value.expected
    assert caught.value.remedy


def test_a_node_without_application_is_refused() -> None:
    with pytest.raises(DataError, match="'y' has no application"):
        score((CHAIN[0], {"x": "Sheets"}), [])


def test_a_capped_search_shows_bounds_and_no_values() -> None:
    assert score(CROSSED, list("dcb"), cap=0).values() == {
        "CR": 4 / 6, "LC": None, "CS_agent": 1, "CS_max": None,
        "LC_bounds": [0.5, 1.0], "CS_max_bounds": [1, 2],
    }  # fmt: skip
    assert score(CROSSED, list("dcb")).values() == {
        "CR": 4 / 6, "LC": 1.0, "CS_agent": 1, "CS_max": 1,
    }  # fmt: skip


def test_what_was_done_bounds_a_capped_search_from_below() -> None:
    """All that an agent did can be continued to an order of the whole task."""
    graph = Graph(tuple("abcdef"), (("f", "d"), ("c", "d"), ("c", "e"), ("d", "b")))
    used = dict(zip("abcdef", ["Mail", "Mail", "Files", "Files", "Slides", "Slides"], strict=True))
    assert most_coherent(graph, used, cap=0) == Bounds(1, 3)
    assert score((graph, used), list("cefdab"), cap=0).cs_max == Bounds(2, 3)


def test_lc_is_none_where_no_order_is_coherent() -> None:
    alone = score((Graph(("a",), ()), {"a": "Mail"}), ["a"])
    assert alone.values() == {"CR": 1.0, "LC": None, "CS_agent": 0, "CS_max": 0}
    assert alone.lc is None


# --- tables over tasks ----------------------------------------------------------------------------

ALONE: Task = (Graph(("a",), ()), {"a": "Mail"})


def scores() -> list[TaskScore]:
    """CR 1, 1/3, 5/12, 1; LC 1, 1/2, 0, undefined."""
    return [
        score(CHAIN, ["x", "y"]),
        score(MEETING, list("DAC")),
        score(MEETING, list("DAFC")),
        score(ALONE, ["a"]),
    ]


def shape(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Any, Any, Any]]:
    return {
        name: (table["CR"], table["LC"], table["undefined_LC"]) for name, table in tables.items()
    }


def test_totals_leave_undefined_lc_out_and_count_it() -> None:
    found = total(scores())["overall"]
    assert found["CR"] == pytest.approx((1 + 1 / 3 + 5 / 12 + 1) / 4)
    assert found["LC"] == pytest.approx(0.5)
    assert (found["tasks"], found["undefined_LC"], found["capped_LC"]) == (4, 1, 0)
    assert found["ci95"]["LC"] == means({"LC": np.array([1, 0.5, 0, np.nan])})["ci95"]["LC"]


def test_a_task_counts_in_every_group_it_belongs_to() -> None:
    found = total(
        scores(),
        intents=["tidy", "present", "present", None],
        labels=[[], ["Parallel Planning", "Our own"], ["Parallel Planning"] * 2, []],
    )["by"]
    meeting = (pytest.approx(3 / 8), 0.25, 0)
    mail = (pytest.approx(7 / 12), 0.25, 1)
    assert shape(found["app"]) == {
        "Files": meeting, "Mail": mail, "Sheets": (1, 1, 0), "Slides": meeting,
    }  # fmt: skip
    assert shape(found["category"]) == {
        "Mail": mail, "Office": (pytest.approx(7 / 12), 0.5, 0), "System": meeting,
    }  # fmt: skip
    assert shape(found["dependency"]) == {"easy": (1, 1, 1), "hard": meeting}
    assert shape(found["knowledge"]) == {"easy": (1, 1, 1), "medium": meeting}
    assert shape(found["intent"]) == {"present": meeting, "tidy": (1, 1, 0)}
    assert next(iter(found["capability"])) == "Parallel Planning"
    assert found["capability"]["Parallel Planning"]["tasks"] == 2
    assert found["capability"]["Our own"]["tasks"] == 1
    assert shape(found["eligible"]) == {
        "Subtask Identification": meeting, "Dependency Identification": meeting,
    }  # fmt: skip
    assert list(found)[:2] == ["app", "category"]


def test_chains_stand_beside_graphs_of_as_many_nodes_and_edges() -> None:
    def of(nodes: str, *edges: str) -> Task:
        return Graph(tuple(nodes), tuple((edge[0], edge[1]) for edge in edges)), dict.fromkeys(
            nodes, "Mail"
        )

    chain, fork = of("abc", "ab", "bc"), of("abc", "ab", "ac")
    loose = of("abc", "ab")  # an edge less
    tied = of("abc", "ab", "bc", "ac")  # an edge more
    long = of("abcd", "ab", "bc", "cd")  # no graph of its length
    given = [(chain, "abc"), (fork, "a"), (loose, ""), (tied, ""), (long, "a"), (CHAIN, "x")]
    tables = total([score(task, list(executed)) for task, executed in given])["by"]["shape"]
    assert {name: (found["CR"], found["tasks"]) for name, found in tables.items()} == {
        "chain of 3: Mail": (1.0, 1), "graph of 3: Mail": (0.2, 1)
    }  # fmt: skip
    assert "shape" not in total(scores())["by"]


def shapes(*given: tuple[str, str, str]) -> dict[str, int]:
    """How many tasks of each shape; of a task its edges, its applications and what was done."""
    named = {"M": "Mail", "W": "Word"}
    tasks = []
    for edges, used, done in given:
        graph = Graph(tuple("abc"), tuple((edge[0], edge[1]) for edge in edges.split()))
        applications = {node: named[used[place]] for place, node in enumerate("abc")}
        tasks.append(score((graph, applications), list(done)))
    found = total(tasks)["by"].get("shape", {})
    return {name: table["tasks"] for name, table in found.items()}


CHAIN_OF_3, FORK = "ab bc", "ab ac"


def test_chains_and_graphs_are_compared_within_the_same_categories() -> None:
    given = [
        (CHAIN_OF_3, "MMM", "abc"),
        (FORK, "MMM", "a"),
        (CHAIN_OF_3, "WWW", "a"),
        (FORK, "MWW", "a"),
    ]
    assert shapes(*given) == {"chain of 3: Mail": 1, "graph of 3: Mail": 1}
    both = [*given, (CHAIN_OF_3, "MWW", "a")]
    assert shapes(*both) == {
        "chain of 3: Mail": 1, "graph of 3: Mail": 1,
        "chain of 3: Mail, Word": 1, "graph of 3: Mail, Word": 1,
    }  # fmt: skip


def test_chains_and_graphs_of_other_categories_are_said_to_be() -> None:
    """A difference between them may be the domain's, or its level's."""
    assert shapes((CHAIN_OF_3, "MMM", "abc"), (FORK, "MWW", "a"), (FORK, "MWW", "")) == {
        "chain of 3: confounded by category": 1, "graph of 3: confounded by category": 2,
    }  # fmt: skip
    assert not shapes((CHAIN_OF_3, "MMM", "abc"), (CHAIN_OF_3, "WWW", "a"))


@pytest.mark.parametrize("given", [{"intents": ["tidy"] * 3}, {"labels": [[]] * 5}])
def test_intents_and_labels_of_other_tasks_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="every task"):
        total(scores(), **given)


def test_totals_of_the_release_average_its_scores() -> None:
    found = total(scores(), profile="release")
    assert found["overall"]["completion"] == pytest.approx((1 + 0 + 0.5 + 1) / 4)
    assert found["overall"]["coherence"] == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    assert found["overall"]["tasks"] == 4
    assert "LC" not in found["overall"]
    assert found["by"]["app"]["Sheets"]["coherence"] == 1.0


def test_totals_enclose_what_a_capped_search_does_not_know() -> None:
    capped = score(CROSSED, list("dcb"), cap=0)
    found = total([score(CHAIN, ["x", "y"]), score(ALONE, ["a"]), capped])["overall"]
    assert (found["undefined_LC"], found["capped_LC"]) == (1, 1)
    assert found["LC"] == 1.0
    assert found["LC_bounds"] == [(1.0 + 0.5) / 2, 1.0]


def test_totals_over_nothing_are_none() -> None:
    found = total([])
    assert found["overall"] == {
        "CR": None, "LC": None, "ci95": {"CR": None, "LC": None},
        "tasks": 0, "undefined_LC": 0, "capped_LC": 0,
    }  # fmt: skip
    assert not any(found["by"].values())
    json.dumps(total(scores()))


def test_sensitivity_is_the_mean_deviation_over_tasks() -> None:
    assert sensitivity([[1, 1, 1], [0, 3, 6]]) == pytest.approx(6**0.5 / 2)
    assert sensitivity([[1, 1, 1], [0, 3, 6]], ddof=1) == pytest.approx(1.5)
    for wrong in ([], [[1.0]]):
        with pytest.raises(ValueError, match="more than 1"):
            sensitivity(wrong, ddof=1)


# --- the tables as data ---------------------------------------------------------------------------


def test_levels_are_those_of_table_2() -> None:
    found = {name: [level(name, value) for value in (1, 2, 3, 4, 5)] for name in DIMENSIONS}
    one = ["easy", "medium", "medium", "hard", "hard"]
    two = ["easy", "easy", "medium", "medium", "hard"]
    assert found == {
        "dependency": one, "instruction": two, "knowledge": one, "hierarchy": two, "branch": two,
    }  # fmt: skip


def test_capabilities_are_those_of_table_11() -> None:
    file = resources.files("omnidata.metrics").joinpath("graph_capabilities.json")
    table = json.loads(file.read_text("utf-8"))
    assert "Table 11" in table["source"]
    assert all(set(stars) == set(DIMENSIONS) for stars in table["stars"].values())
    assert {name: " ".join(wanted) for name, wanted in capabilities().items()} == {
        "Parallel Planning": "dependency branch",
        "Long-Range Planning": "dependency hierarchy",
        "Long-Sequence Reasoning": "instruction hierarchy",
        "Long Instruction Following": "hierarchy branch",
        "Sequential Decision-Making": "hierarchy branch",
        "Cross-Domain Decision-Making": "branch knowledge",
        "Subtask Identification": "dependency instruction",
        "Dependency Identification": "dependency instruction",
        "Cross-Domain Knowledge": "instruction knowledge",
        "Domain-Specific Knowledge": "instruction knowledge",
    }
    assert {level for wanted in capabilities().values() for level in wanted.values()} == {"hard"}
