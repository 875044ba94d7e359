"""`omnigui-release` against the released evaluator's own verdicts and aggregates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata.metrics.intervals import Floats
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from omnidata.tasks.profile import Profile
from omnidata.types import Step, VerdictColumns
from tests.metrics.mutations import CASES, STEP_CASES
from tests.trees import NO_SHARED, read_lines, write_rows
from tests.trees import row as tree_row

AGGREGATE_CASES = CASES / "omnigui_aggregates_sample.jsonl"
shared = pytest.mark.skipif(not CASES.is_dir(), reason=NO_SHARED)
COORDINATES = {"normalized": "norm1000", "auto": "auto", "pixel": "px"}
INFORMATIVE = {"duration", "reasoning", "confidence"}


def profile(coordinate_type: str) -> Profile:
    task = get_task("omnigui", {"coordinates": COORDINATES[coordinate_type]})
    return task.profiles["omnigui-release"]


PROFILES = {name: profile(name) for name in COORDINATES}


def step(row: dict[str, Any]) -> Step:
    """The row as a step; what the released rules do not look at is left empty or wrong."""
    tags = {"app": str(row.get("app"))}
    return Step(str(row.get("ID")), "", 0, 1, "", (1, 1), {}, (), (), None, tags, row)


def truncated(parsed: dict[str, Any] | None) -> dict[str, Any] | None:
    """In whole numbers, as the release writes it; we keep fractions until a rule cuts them."""
    if parsed is None:
        return None
    return {
        key: [int(part) for part in value] if key.endswith("coordinate") else value
        for key, value in parsed.items()
    }


def official(parsed: dict[str, Any] | None) -> dict[str, Any] | None:
    """Without what only informs, and without a swipe's start a second time as `coordinate`."""
    if parsed is None:
        return None
    kept = {key: value for key, value in parsed.items() if key not in INFORMATIVE}
    if 3 <= kept["action_type"] <= 6:
        assert kept.pop("coordinate", None) == kept.get("start_coordinate")
    return kept


@shared
def test_every_output_is_read_and_judged_as_by_the_released_evaluator() -> None:
    """Where it raises, the step is unparsed."""
    cases, wrong = read_lines(STEP_CASES), []
    for case in cases:
        verdict = PROFILES[case["coordinate_type"]].judge(step(case["doc"]), case["output"])
        found = (*verdict.values[:2], truncated(verdict.parsed))
        judged = case["verdict"] or {"type_match": False, "exact_match": False}
        parsed = None if "error" in case else official(case["parsed"])
        if found != (judged["type_match"], judged["exact_match"], parsed):
            wrong.append((case["id"], case["output"], found))
        assert verdict.outcome == ("unparsed" if parsed is None else "ok"), case["id"]
        assert (verdict.reason == "") == (verdict.outcome == "ok"), case["id"]
    assert (len(cases), sum("error" in case for case in cases)) == (1_500, 86)
    assert wrong == []


def column(rows: list[dict[str, Any]], name: str) -> Floats:
    return np.array([row.get(name, False) for row in rows], dtype=np.float64)


@shared
def test_the_profiles_table_is_the_released_aggregate() -> None:
    """The cases distinguish the two readings of goal progress."""
    aggregates = read_lines(AGGREGATE_CASES)
    assert len(aggregates) == 60
    ratios = 0
    for case in aggregates:
        rows = case["results"]
        steps = [
            replace(step(row), step_index=row.get("step_id", 0), tags={"app": "unknown"})
            for row in rows
        ]
        values = {name: column(rows, name) for name in ("type_match", "exact_match")}
        values |= {name: np.zeros(len(rows)) for name in ("format_ok", "extension")}
        whole = np.ones(len(rows), dtype=np.bool_)
        verdicts = VerdictColumns(np.zeros(len(rows), dtype=np.uint8), values, whole)
        found = PROFILES["normalized"].total(steps, verdicts)["overall"]
        for name in ("TM", "EM", "SR", "GP"):
            assert abs(found[name] - case["official"][name]) <= 1e-12, (case["id"], name)
        ratios += abs(found["GP_ratio"] - case["official"]["GP"]) > 1e-6
    assert ratios >= 10


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        ('{"action":"swipe","coordinate":["x",5]}', {"action_type": 3}),
        ('{"action":"swipe","coordinate":["7",5.9]}',
         {"action_type": 3, "start_coordinate": [7, 5]}),
        ('{"action":"swipe","coordinate":"12","direction":"Down"}',
         {"action_type": 4, "start_coordinate": [1, 2]}),
        ('{"action":"swipe","coordinate":[1,2],"to":[]}',
         {"action_type": 3, "start_coordinate": [1, 2]}),
        ('{"action":"swipe","coordinate":[1,2],"to":["x",5]}', None),
        ('{"action":"swipe","coordinate":[1,2],"to":[5]}', None),
        ('{"action":"swipe","coordinate":[1,2],"to":{"x":3,"y":4}}', None),
        ('{"action":"swipe","coordinate":[5]}', None),
        ('{"action":"swipe","coordinate":[1,2],"direction":3}', None),
        ('{"action":"click","x":1e999}', {"action_type": 0}),
        ('{"action":"click","x":"5","y":null}', {"action_type": 0}),
        ('{"action":"click","coordinate":[5]}', {"action_type": 0}),
        ('{"action":"swipe","start_coordinate":5}', {"action_type": 3}),
        ('{"action":"swipe","coordinate":["a","b"],"direction":"left"}', {"action_type": 5}),
        ('{"action":"click","coordinate":[5,6],"time":-1e306}', None),  # milliseconds overflow
        ('{"action":"click","coordinate":[5,6],"time":1e306}',
         {"action_type": 0, "coordinate": [5, 6]}),
        ('{"action":"system_button","button":" Home "}', {"action_type": 9}),
        ('{"action":"terminate","status":null}', {"action_type": 11}),
        ('{"action":"terminate","status":" Success"}', {"action_type": 10}),
        ('{"action":"terminate"}', {"action_type": 10}),
    ],
)  # fmt: skip
def test_tool_calls_with_half_a_place_are_read_as_released(
    arguments: str, parsed: dict[str, Any] | None
) -> None:
    text = f'<tool_call>{{"name":"mobile_use","arguments":{arguments}}}</tool_call>'
    for name in ("omnigui-release", "omnigui-paper"):
        verdict = get_task("omnigui").profiles[name].judge(step({"result_action_type": 8}), text)
        assert truncated(verdict.parsed) == parsed


@pytest.mark.parametrize(
    ("said", "parsed"),
    [
        ('{"action":"tap","x":"a","X":5,"y":null,"pos_y":"6"}', [5, 6]),
        ('{"action":"tap","x":5,"X":"a","y":6}', [5, 6]),
        ('{"action":"tap","x":"a","y":6}', None),
        ('{"action":"tap","coordinate":"a","x":5,"y":6}', [5, 6]),
        ('{"action":"tap","coordinate":[1,2],"x":1e999,"y":6}', [1, 2]),  # nobody looks at x
        ('{"action":"tap","coordinate":"1,, 2"}', [1, 2]),
        ('{"action":"tap","coordinate":",1,2"}', None),
        ('{"action":"tap","coordinate":",1,2","position":"3 4"}', [3, 4]),
        ("TAP(1, 2)", [1, 2]),
        ("tap(1, 9007199254740993)", [1, 9007199254740992]),  # through a float
        (f"tap(1, {'9' * 5000})", None),  # more digits than Python converts
    ],
)
def test_places_are_looked_for_in_the_order_of_the_release(
    said: str, parsed: list[int] | None
) -> None:
    verdict = PROFILES["normalized"].judge(step({"result_action_type": 0}), said)
    assert (truncated(verdict.parsed) or {}).get("coordinate") == parsed
    assert verdict.values[0] is True


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("LONG _PRESS", 2), ("no act_ion", -1), ("scroll _up", 3), ("Double_ tap", 1),
        ("go _back", None), ("task _complete", None), ("s_wipe", None), ("sc_roll_down", 4),
    ],
)  # fmt: skip
def test_names_with_stray_underscores_and_blanks_are_read_as_released(
    name: str, number: int | None
) -> None:
    verdict = PROFILES["normalized"].judge(step({}), json.dumps({"action": name}))
    assert (verdict.parsed or {}).get("action_type") == number


def test_a_call_with_a_place_and_an_empty_text_has_no_text() -> None:
    verdict = PROFILES["normalized"].judge(step({}), 'type(5, 6, "")')
    assert verdict.parsed == {"action_type": 7, "coordinate": (5, 6)}


def test_an_infinite_place_that_is_looked_at_ends_the_release() -> None:
    for said in (
        '{"action":"tap","x":1e999,"y":6}',
        '{"action":3,"start":[1,2],"x":1,"y":1e999}',
        f"tap(1, {'9' * 400})",
    ):
        verdict = PROFILES["normalized"].judge(step({"result_action_type": 0}), said)
        assert (verdict.outcome, verdict.values[0]) == ("unparsed", False), said


@pytest.mark.parametrize(
    ("touch", "ends"),
    [
        ([[1, 2], 3], True),
        ([[1, 2], "ab"], True),
        ([[1, 2], {"x": 1, "y": 2}], True),
        ([[1, 2], "abc"], False),
        ([[1, 2], [3]], False),
        ([[1], 3], False),
        ([[1, 2]], False),
        ([1, [2, 3]], False),  # two items are a point, at which nobody looks here
    ],
)
def test_a_second_corner_that_is_none_ends_the_release(touch: Any, ends: bool) -> None:
    row = {"result_action_type": 8, "result_touch_xy": touch}
    verdict = PROFILES["normalized"].judge(step(row), '{"action_type": 8}')
    assert verdict.outcome == ("unparsed" if ends else "ok")
    assert verdict.values[:2] == ((False, False) if ends else (True, True))


@pytest.mark.parametrize(
    ("touch", "lift"),
    [
        ('[["200", "200"], ["400", "400.5"]]', ""),
        ([["200", 200], [400, 400]], ""),
        (["300", "300"], ""),
        ("", [["1", 2], [3, 4]]),  # both targets of a swipe are read, whether one is missing or not
    ],
)
def test_a_target_with_numbers_as_texts_ends_the_release_and_is_unusable_else(
    tmp_path: Path, touch: Any, lift: Any
) -> None:
    text = '{"action_type": 3, "start_coordinate": [1, 1], "end_coordinate": [1, 2]}'
    size = {"image_width": 1000, "image_height": 1000}
    row = {"result_action_type": 3, "result_touch_xy": touch, "result_lift_xy": lift, **size}
    released = get_task("omnigui").profiles["omnigui-release"]
    assert released.judge(step(row), text).outcome == "unparsed"
    nowhere = released.judge(step(row), '{"action_type": 3, "start_coordinate": [-1, -1]}')
    if touch == ["300", "300"]:  # whose numbers nobody looks at where the answer is no point
        assert nowhere.values[:2] == (True, False)
    found = load(write_rows(tmp_path / "steps.json", [tree_row(**row)])).findings
    assert any("a str" in one.what for one in found)
