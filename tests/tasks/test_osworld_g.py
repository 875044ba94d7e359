"""OSWorld-G: its rows in both forms, and lmms-eval's rules, by cases computed by hand."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Box
from omnidata.errors import DataError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.types import Step
from tests.data.tiny import SIZE, png
from tests.loaders.neighbours import osworld_g, region
from tests.tasks.verbs import every_verb
from tests.trees import codes


def one(folder: Path, kind: str = "bbox", **changes: Any) -> Step:
    return get_task("osworld-g").load(osworld_g(folder, region("g1", kind, **changes))).steps[0]


def step_of(row: dict[str, Any]) -> Step:
    return Step("a", "a", 0, 1, "i", SIZE, {}, (), (), None, {}, {"row": row})


def judged(step: Step, text: str, profile: str = "osworld-g", **options: str) -> Any:
    return get_task("osworld-g", options).profiles[profile].judge(step, text).values[0]


def test_every_verb_takes_the_data(tmp_path: Path) -> None:
    kinds = ("bbox", "bbox", "polygon", "refusal")
    rows = [region(f"g{number}", kind) for number, kind in enumerate(kinds)]
    classes = {"text_matching": [{"id": "g0"}, "g2"], "refusal": [{"id": "g3"}]}
    data = osworld_g(tmp_path / "data", *rows, classes=classes)
    found = every_verb("osworld-g", data, tmp_path, subset="bbox")
    names = ("accuracy", "bbox", "polygon", "refusal")
    assert found["oracle"]["overall"] == dict.fromkeys(names, 1.0)
    assert found["center"]["overall"]["accuracy"] == 0.0
    by = found["oracle"]["by"]
    assert {name: table["steps"] for name, table in by["capability"].items()} == {
        "text_matching": 2,
        "refusal": 1,
    }


def test_both_wordings_are_asked_for(tmp_path: Path) -> None:
    osworld_g(tmp_path, region("g1"))
    osworld_g(tmp_path, region("g1", instruction="Click the funnel"), name="OSWorld-G_refined.json")
    assert recognise(tmp_path) == ["osworld-g"]
    said = {
        wording: get_task("osworld-g", {"instructions": wording}).load(tmp_path).steps
        for wording in ("original", "refined")
    }
    assert [step.instruction for step in said["original"]] == ["Click g1"]
    assert [step.instruction for step in said["refined"]] == ["Click the funnel"]
    assert said["refined"][0].sample_id == "g1"
    (tmp_path / "OSWorld-G.json").unlink()
    (step,) = get_task("osworld-g").load(tmp_path / "OSWorld-G_refined.json").steps
    assert step.tags["instructions"] == "refined"
    with pytest.raises(DataError, match="original instructions are not there"):
        get_task("osworld-g").load(tmp_path)


def test_a_row_becomes_a_step(tmp_path: Path) -> None:
    step = one(tmp_path)
    assert (step.sample_id, step.screen, step.group) == ("g1", SIZE, "g1.png")
    assert step.action == Action("tap", (Box(8, 9, 24, 18, "px"),))
    assert step.tags == {"box_type": "bbox", "instructions": "original"}
    assert one(tmp_path / "absent", "refusal").action == Action("done", status="failure")


def test_the_hubs_parquet_is_read_as_the_json_is(tmp_path: Path) -> None:
    rows = [region("g1"), region("g2", "polygon")]
    files = get_task("osworld-g").load(osworld_g(tmp_path / "json", *rows)).steps
    held = [
        {"id": row["id"], **{k: row[k] for k in row if k not in ("id", "image_path")}}
        for row in rows
    ]
    table = [row | {"image": {"bytes": png(n), "path": None}} for n, row in enumerate(held)]
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "data" / "test-00000-of-00001.parquet")
    source = get_task("osworld-g").load(tmp_path / "data")
    assert recognise(tmp_path / "data") == ["osworld-g"]
    assert not source.findings
    assert [(step.sample_id, step.action) for step in source.steps] == [
        (step.sample_id, step.action) for step in files
    ]


def test_rows_that_cannot_be_used_are_found(tmp_path: Path) -> None:
    rows: list[Any] = [
        region("a", box_coordinates=[1, 2, 3]),
        region("b", box_coordinates="1, 2, 3, 4"),
        region("c", "polygon", box_coordinates=[1, 2, 3, 4]),
        region("d", box_type="circle"),
        region("e", box_coordinates=[60, 9, 30, 9]),
        region("f", instruction=""),
        region("g", image_path="../../etc/passwd"),
        region("h", image_size=[9, 9]),
        7,
    ]
    data = osworld_g(tmp_path, *rows[:6])
    (data / "OSWorld-G.json").write_text(json.dumps(rows))
    source = get_task("osworld-g").load(data)
    assert codes(source) == {
        "box-unusable": 4, "target-outside": 2, "instruction-missing": 1, "path-unsafe": 1,
        "json-invalid": 1, "media-broken": 1,
    }  # fmt: skip
    assert [step.action is not None for step in source.steps] == [False] * 4 + [True] * 3
    assert judged(source.steps[0], "[1, 2]") is None


@pytest.mark.parametrize(
    ("kind", "point", "right"),
    [
        ("bbox", (8, 9), True),
        ("bbox", (24, 18), True),
        ("bbox", (7, 9), False),
        ("bbox", (25, 18), False),
        ("bbox", (8, 19), False),
        ("polygon", (20, 12), True),  # of the corners (8, 9), (24, 9), (24, 18)
        ("polygon", (10, 15), False),
        ("polygon", (25, 12), False),
        ("refusal", (-1, -1), True),
        ("refusal", (-1, 5), False),
        ("refusal", (20, 12), False),
        ("bbox", (-1, -1), False),
    ],
)
def test_a_point_in_the_region_is_right_and_one_pixel_outside_is_wrong(
    kind: str, point: tuple[int, int], right: bool, tmp_path: Path
) -> None:
    step = one(tmp_path, kind)
    for profile in ("osworld-g", "osworld-g-fixed"):
        assert judged(step, f"[{point[0]}, {point[1]}]", profile) is right


@pytest.mark.parametrize(
    ("text", "released", "fixed"),
    [
        ("[16, 14]", True, True),
        ("[0.25, 0.09]", True, False),  # shares, where pixels were asked for
        ("(16 14)", True, False),
        ("<bbox>8 9 24 18</bbox>", True, False),
        ("[22%, 9%]", True, False),
        ("x: 16, y: 14", True, True),
        ("the box is 8 9 24 18", True, False),
        ("I click [1] and then (16, 14)", True, True),
        ("[16, 14] and not [60, 100]", True, False),  # the first, the last
        ("<point>16 14</point>", True, True),
        ("16, 14", True, True),
        ("there", False, False),
        ("", False, False),
    ],
)
def test_answers_are_read_as_released_and_with_care(
    text: str, released: bool, fixed: bool, tmp_path: Path
) -> None:
    step = one(tmp_path)
    assert judged(step, text) is released
    assert judged(step, text, "osworld-g-fixed") is fixed


def test_what_is_not_there_may_be_said_in_a_word(tmp_path: Path) -> None:
    step = one(tmp_path, "refusal")
    assert judged(step, "negative", "osworld-g-fixed") is True
    assert judged(step, "negative") is False


sides = st.integers(2, 40).map(float)  # lmms-eval takes pixels up to 1 for shares


@given(
    st.lists(st.tuples(sides, sides), min_size=3, max_size=9),
    st.sampled_from(("px", "rel", "norm1000")),
)
def test_the_target_of_a_polygon_lies_in_it(corners: list[tuple[float, float]], unit: str) -> None:
    row = region(kind="polygon", box_coordinates=[side for corner in corners for side in corner])
    task = get_task("osworld-g", {"coordinates": unit})
    target = task.target(step_of(row))
    area = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise([*corners, corners[0]]))
    assert target or not area  # one without an area may have no point inside
    if target:
        verdicts = [rule.judge(step_of(row), target.text) for rule in task.profiles.values()]
        assert all(verdict.values[0] is True for verdict in verdicts)


@given(st.floats(-5, 45), st.floats(-5, 45), sides, sides, sides, sides)
def test_a_rectangle_is_a_polygon(
    x: float, y: float, left: float, top: float, wide: float, high: float
) -> None:
    right, bottom = left + wide + 1, top + high + 1
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    if x not in (left, right) and y not in (top, bottom):  # edges are the box's alone
        box = region(box_coordinates=[left, top, wide + 1, high + 1])
        polygon = region(
            kind="polygon", box_coordinates=[side for pair in corners for side in pair]
        )
        said = f"[{x!r}, {y!r}]"
        verdicts = [judged(step_of(row), said, "osworld-g-fixed") for row in (box, polygon)]
        assert verdicts[0] == verdicts[1]
