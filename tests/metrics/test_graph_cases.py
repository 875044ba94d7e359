"""OmniBench's metrics against cases whose verdicts enumeration and the released code gave."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from omnidata.graphs import Graph
from omnidata.metrics.graphs import longest_possible_run, longest_run, score_task, states
from tests.trees import NO_SHARED, SHARED, read_lines

CASES = SHARED / "cases" / "omnibench_sample.jsonl"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason=NO_SHARED)


def cases() -> list[Any]:
    return read_lines(CASES) if CASES.exists() else []


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case['id']}-{case['tag']}")
def test_every_field_of_a_case_is_found(case: Any) -> None:
    graph = Graph.read(case["dag"], where="")
    used, executed = case["app"], case["executed"]
    score = score_task(graph, used, case["category"], executed)
    values = score.values()
    measured = score.complexity

    found: dict[str, Any] = {
        "depth": graph.depths(),
        "CR_exact": score.cr.as_integer_ratio(),
        "CR": values["CR"],
        "CS_agent": values["CS_agent"],
        "CS_max": values["CS_max"],
        "LC": values["LC"],
        "n_topological_orders": graph.count_orders(),
        "measures": {
            **{name: getattr(measured, name) for name in measured.levels()},
            "branch_max_level_size": measured.largest_level,
        },
        "levels": measured.levels(),
        "status_initial": states(graph, []),
        "status_final": states(graph, executed),
        "released": {
            **score.values("release"),
            "max_run_agent": longest_run(executed, used),
            "max_run_best": longest_possible_run(graph, used),
        },
    }
    assert found == {
        **{name: value for name, value in case.items() if name not in GIVEN},
        "CR_exact": tuple(case["CR_exact"]),
    }
    assert score.cr == Fraction(*case["CR_exact"])


GIVEN = {"id", "tag", "dag", "app", "category", "executed"}
