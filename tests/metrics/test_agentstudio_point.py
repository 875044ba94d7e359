"""Points in responses: both readings, both rules, and rows that cannot be judged."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidata.actions import Space
from omnidata.tasks.agentstudio.answers import read_released
from omnidata.tasks.agentstudio.rules import PointVerdict, judge_point, judge_released
from omnidata.tasks.points import read_point
from tests.full import FULL

ROW = {"bbox": [100, 200, 300, 400], "resolution": [1000, 2000]}

# --- the release's reading ------------------------------------------------------------------------

RELEASED = (
    *("(0.5, 0.25)", "(.5,.25)", "(+0.5, -0.25)", "( 0.5 \n,\t 0.25 )", "((0.5, 0.25))", "(½, ²)"),
    *("(\u00a00.5\u2003,\u20280.25\x1c)", "(٠.٥, ٠.٢٥)", "(٠.5, 0.२५)", "f(0.5, 0.25)", ""),
    *("(1, 2) (0.5, 0.25)", "(1, 2)\n(0.5, 0.25)", "(0.1, 0.2), (0.5, 0.25)", "(5e-1, 0.25)"),
    *("(0.5, 0.25) (1, 2, 3)", "(0.5, 0.25", "(50%, 25%)", "(0.5 0.25)", "[0.5, 0.25]"),
    *("(x=0.5, y=0.25)", "(0.1, 0.2, 0.3, 0.4)", "（0.5，0.25）", "(- 0.5, 0.25)", "(--0.5, 0.25)"),
    *("(1., 1.)", "0.5, 0.25", "(0..5, 0.25)", "(0.5,(0.5,0.25)", "(0.50.5,1)"),
)  # fmt: skip


def test_no_response_gives_no_pair() -> None:
    assert read_released(None) is None and read_point(None) is None


def test_numbers_beyond_a_float_are_infinite_and_miss() -> None:
    text = f"({'9' * 400}, -{'9' * 400})"
    assert read_released(text) == read_point(text) == (math.inf, -math.inf)
    for judge in (judge_released, judge_point):
        assert judge(ROW, text, space="rel") == PointVerdict(False, (math.inf, -math.inf))


_NUMBER = r"[-+]?\d*\.?\d+"
_BACKTRACKING = re.compile(rf"\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\)")
pieces = st.lists(
    st.sampled_from([*"()+-.,05٥[]xy=eE% \n\u00a0", "(0.5,", "0.25)", "(1,2)", "answer:"]),
    max_size=24,
).map("".join)


def check_released(text: str) -> None:
    pairs = _BACKTRACKING.findall(text)
    wanted = (float(pairs[-1][0]), float(pairs[-1][1])) if pairs else None
    assert read_released(text) == wanted


def test_the_linear_search_finds_what_the_releases_pattern_finds() -> None:
    """The last pair of plain numbers."""
    for text in RELEASED:
        check_released(text)
    settings(deadline=None, max_examples=2_000 if FULL else 200)(given(pieces)(check_released))()
    assert read_released("(1, 2) (٠.٥, 0.25) (5e-1, 3)") == (0.5, 0.25)


# --- the careful reading --------------------------------------------------------------------------

CAREFUL: dict[str, tuple[float, float] | None] = {
    "(0.5, 0.25)": (0.5, 0.25),
    "(1., 2.)": (1.0, 2.0),
    "(5e-1, 2.5E-1)": (0.5, 0.25),
    "'( +.5 \n,\t .25 )'": (0.5, 0.25),
    "[0.5, 0.25]": (0.5, 0.25),
    "`0.5, 0.25`": (0.5, 0.25),
    "**Answer:** 0.5, 0.25.": (0.5, 0.25),
    "(x=0.5, y=0.25)": (0.5, 0.25),
    "(X: 0.5, Y: 0.25)": (0.5, 0.25),
    "（0.5，0.25）": (0.5, 0.25),
    "［x：0.5，y：0.25］": (0.5, 0.25),
    "(٠.٥, ٠.٢٥)": (0.5, 0.25),
    "(0.5, 0.25), see [1, 2]": (0.5, 0.25),
    "(1, 2) or rather\n(x=0.5, y=0.25)": (0.5, 0.25),
    "[1, 2] or rather [0.5, 0.25]": (0.5, 0.25),
    "Answer: (0.5, 0.25)\n\nThe other icon is at (1, 2).": (0.5, 0.25),
    "Answer: (1, 2)\nNo.\n**Answer:** [0.5, 0.25], not (1, 2)": (0.5, 0.25),
    "The header is at (1, 2).\r\nANSWER :\r\n\r\n0.5, 0.25\r\nThat is all.": (0.5, 0.25),
    "Answer: see below.\n(0.5, 0.25)": (0.5, 0.25),
    "Answer: (1, 2), (0.5, 0.25)": (0.5, 0.25),
    "(0.5, 0.25)\nAnswer: 1, 2, 3, 4": (0.5, 0.25),
    "(0.5, 0.25)\nAnswer: 1, 2%": (0.5, 0.25),
    "(y=0.5, x=0.25)": None,
    "the point 0.5, 0.25": None,
    "(50%, 25%)": None,
    "(1/2, 1/4)": None,
    "(0.1, 0.2, 0.3, 0.4)": None,
    "[0.1, 0.2, 0.3, 0.4]": None,
    "(0.5, 0.25]": None,
    "(nan, inf)": None,
    "(None, None)": None,
    "I cannot see the screen.": None,
    "": None,
}


@pytest.mark.parametrize("text", CAREFUL)
def test_a_careful_reader_takes_every_spelling_of_a_pair(text: str) -> None:
    assert read_point(text) == CAREFUL[text]


@settings(deadline=None, max_examples=1_000 if FULL else 100)
@given(pieces)
def test_a_response_that_the_release_reads_is_never_unread(text: str) -> None:
    if read_released(text) is not None:
        assert read_point(text) is not None


finite = st.floats(-1e6, 1e6)


@settings(deadline=None)
@given(finite, finite, st.sampled_from(["({}, {})", "[{},{}]", "go to (x={}, y={}) now", "{}, {}"]))
def test_a_written_pair_is_read_back_exactly(x: float, y: float, form: str) -> None:
    assert read_point(form.format(x, y)) == (x, y)


# --- the rules ------------------------------------------------------------------------------------

INSIDE, EDGES = "(200, 300)", ("(100, 300)", "(300, 300)", "(200, 200)", "(200, 400)", "(100, 200)")


def test_the_release_wants_the_point_strictly_inside_and_the_paper_takes_the_edges() -> None:
    for judge in (judge_released, judge_point):
        assert judge(ROW, INSIDE, space="px").hit is True
        for text in ("(99.9, 300)", "(300.1, 300)", "(200, 199.9)", "(200, 400.1)", "(-200, 300)"):
            assert judge(ROW, text, space="px").hit is False, text
    for text in EDGES:
        assert judge_released(ROW, text, space="px").hit is False, text
        assert judge_point(ROW, text, space="px").hit is True, text


@pytest.mark.parametrize(
    ("space", "text"), [("px", "(200, 300)"), ("rel", "(0.2, 0.15)"), ("norm1000", "(200, 150)")]
)
def test_the_unit_of_the_coordinates_is_what_the_caller_says(space: Space, text: str) -> None:
    for judge in (judge_released, judge_point):
        assert judge(ROW, text, space=space) == PointVerdict(True, (200.0, 300.0))
    others: set[Space] = {"px", "rel", "norm1000"}
    for other in others - {space}:
        assert judge_released(ROW, text, space=other).hit is False


@settings(deadline=None)
@given(st.integers(1, 4000), st.integers(1, 4000), st.data())
def test_in_the_paper_a_converted_edge_lies_on_the_edge(
    width: int, height: int, data: st.DataObject
) -> None:
    left, top = data.draw(st.integers(0, width)), data.draw(st.integers(0, height))
    row = {"bbox": [left, top, left, top], "resolution": [width, height]}
    assert judge_point(row, f"({left / width}, {top / height})", space="rel").hit is True
    thousandths = f"({left * 1000 / width}, {top * 1000 / height})"
    assert judge_point(row, thousandths, space="norm1000").hit is True
    assert judge_point(row, f"({left + 0.001}, {top})", space="px").hit is False


def test_a_box_without_height_is_out_of_reach_of_the_release_only() -> None:
    row = {"bbox": [336, 652, 466, 652], "resolution": [1440, 900]}
    text = f"({400 / 1440}, {652 / 900})"
    assert judge_released(row, text, space="rel").hit is False
    assert judge_point(row, text, space="rel").hit is True


def test_a_box_may_lie_outside_the_screen() -> None:
    row = {"bbox": [10, -65, 50, -5], "resolution": [100, 100]}
    for judge in (judge_released, judge_point):
        assert judge(row, "(0.3, -0.35)", space="rel").hit is True


# --- rows that cannot be judged -------------------------------------------------------------------

NAN, INF = math.nan, math.inf
BROKEN_BOXES: list[Any] = [
    None,
    [],
    [1, 2, 3],
    [1, 2, 3, "4"],
    [1, 2, 3, None],
    {"x": 1},
    "1,2,3,4",
]
UNUSABLE_BOXES: list[Any] = [[NAN, 1, 2, 3], [0, 0, INF, 5], [300, 200, 100, 400], [0, 9, 9, 0]]
BROKEN_SIZES: list[Any] = [None, [1000], ["1000", 2000], [1000, 10**400], "1000x2000"]


@pytest.mark.parametrize("box", [*BROKEN_BOXES, [0, 0, 10**400, 10**400]], ids=repr)
def test_a_row_without_a_box_is_not_judged(box: Any) -> None:
    row = {"bbox": box, "resolution": [1000, 2000]}
    for judge in (judge_released, judge_point):
        verdict = judge(row, "(0.2, 0.15)", space="rel")
        assert verdict == PointVerdict(None, (200.0, 300.0), "box-unusable")
    assert judge_point(row, "no point", space="rel") == PointVerdict(None, None, "box-unusable")


@pytest.mark.parametrize("box", UNUSABLE_BOXES, ids=repr)
def test_a_box_that_is_none_is_missed_in_the_release_and_not_judged_in_the_paper(box: Any) -> None:
    row = {"bbox": box, "resolution": [1000, 2000]}
    assert judge_released(row, "(200, 3)", space="px").hit is (box[2] == INF)
    assert judge_point(row, "(200, 3)", space="px").fault == "box-unusable"


@pytest.mark.parametrize("size", BROKEN_SIZES, ids=repr)
def test_a_resolution_is_needed_unless_points_are_in_pixels(size: Any) -> None:
    row = {**ROW, "resolution": size}
    for judge in (judge_released, judge_point):
        verdict = judge(row, "(0.2, 0.15)", space="rel")
        assert verdict == PointVerdict(None, None, "resolution-unusable")
        assert judge(row, "(200, 300)", space="px").hit is True


@pytest.mark.parametrize("size", [[0, 0], [-1, 5], [NAN, 100], [INF, 100]], ids=repr)
def test_a_screen_has_a_size_in_the_paper(size: Any) -> None:
    verdict = judge_point({**ROW, "resolution": size}, "(0.2, 0.15)", space="rel")
    assert verdict.fault == "resolution-unusable"
