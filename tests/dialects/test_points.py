"""Points and boxes in answers of grounding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Box, Point
from omnidata.dialects.points import place_of, read_place

POINT, BOX = Point(10, 20, "px"), Box(10, 20, 30, 40, "px")


@pytest.mark.parametrize(
    "text",
    [
        "(10,20)", "[10, 20]", "[[10, 20]]", "10, 20", "`(10, 20)`.", "<point>10 20</point>",
        '<points x="10" y="20" alt="a">a</points>', '<points x1="10" y1="20" x2="3" y2="4">',
        '{"point_2d": [10, 20]}', '```json\n[{"point_2d": ["10", "20"], "label": "3, 4"}]\n```',
        '{"x": 10, "y": 20}', "Click(10, 20)", "click(start_box='(10,20)')",
        "click(start_box='<|box_start|>(10,20)<|box_end|>')", "click(point='<point>10 20</point>')",
        "pyautogui.click(x=10, y=20)", "pyautogui.click(10, 20)", "CLICK <point>[[10, 20]]</point>",
        "It is not (1, 2), but (10, 20).", "At [1, 2] is the menu: <point>10, 20</point>",
    ],
)  # fmt: skip
def test_points(text: str) -> None:
    assert read_place(text, "px") == POINT


@pytest.mark.parametrize(
    "text",
    [
        "[10, 20, 30, 40]", "(30,40),(10,20)", "[[10, 20], [30, 40]]", "<box>10 20 30 40</box>",
        "<|object_ref_start|>ok<|object_ref_end|><|box_start|>(10,20),(30,40)<|box_end|><|im_end|>",
        "<box>[[10,20,30,40]]</box>", '[{"bbox_2d": [10, 20, 30, 40], "label": "5"}]',
        '[{"bbox_2d": [10, 20, 30, 40]}, {"bbox_2d": [1, 2, 3, 4]}]', "start_box='(10,20,30,40)'",
    ],
)  # fmt: skip
def test_boxes(text: str) -> None:
    assert read_place(text, "px") == BOX


@pytest.mark.parametrize(
    "text", ["[-1, -1]", "[-1,-1,-1,-1]", "[]", "None", "<point>-1 -1</point>"]
)
def test_refusals(text: str) -> None:
    assert read_place(text, "px") is None


@pytest.mark.parametrize(
    "text", ["", "no", "(1, 2, 3)", "(85%, 7%)", "5", "[1e999, 2]", f"({'9' * 100}, 1)"]
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match="no place"):
        read_place(text, "px")


def test_prose_is_only_read_where_it_may_be() -> None:
    with pytest.raises(ValueError, match="no place"):
        read_place("It is at (10, 20).", "px", prose=False)
    assert read_place(" (10, 20)\n", "px", prose=False) == POINT


@given(
    st.integers(-9999, 9999) | st.floats(-9999, 9999),
    st.integers(0, 9999) | st.floats(0, 9999),
    st.sampled_from(["({}, {})", "<point>{} {}</point>", '{{"point_2d": [{}, {}]}}', "x={}, y={}"]),
)
def test_numbers_stay_as_they_are_written(x: float, y: float, form: str) -> None:
    found = read_place(form.format(repr(x), repr(y)), "rel")
    assert repr(found) == repr(Point(x, y, "rel"))


@given(st.recursive(st.none() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_value_is_a_place_or_none(value: object) -> None:
    place_of(value, "px")
