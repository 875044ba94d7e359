"""Android in the Wild's action matching, worked out by hand at every boundary.

Places are (x, y) from 0 to 1, elements (y, x, height, width).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from omnidata.actions import Action, Pair
from tests.metrics.phones import (
    BACK,
    COMPLETE,
    ENTER,
    HOME,
    IMPOSSIBLE,
    RECENTS,
    STOP,
    WAIT,
    Rect,
    at,
    drag,
    open_app,
    rules,
    tap,
)

BOTH = rules("aitw", "aitw", "aitw-fixed")


def swipe(direction: str, touch: Pair | None = None, lift: Pair | None = None) -> Action:
    start, end = (at(place) if place else () for place in (touch, lift))
    return Action("swipe", start, end, direction=direction)  # type: ignore[arg-type]  # a literal


def verdicts(wanted: Action, said: Action, *rects: Rect) -> list[tuple[bool, bool] | None]:
    return [rule(wanted, said, rects) for rule in BOTH]


def test_taps_match_up_to_14_percent_of_the_screen() -> None:
    # 0.5 - 0.36 = 0.14 to the last digit, also in 32 bits.
    assert verdicts(tap(0.36, 0.5), tap(0.5, 0.5)) == [(True, True)] * 2
    assert verdicts(tap(0.36, 0.5), tap(0.501, 0.5)) == [(True, False)] * 2
    # A triangle of 3, 4 and 5: 0.084, 0.112 and 0.14; one thousandth more is too far.
    assert verdicts(tap(0, 0), tap(0.084, 0.111)) == [(True, True)] * 2
    assert verdicts(tap(0, 0), tap(0.084, 0.113)) == [(True, False)] * 2


def test_a_finger_that_moves_up_to_4_percent_taps() -> None:
    inside, beyond = drag((0.5, 0.0), (0.5, 0.04)), drag((0.5, 0.0), (0.5, 0.041))
    assert verdicts(inside, tap(0.5, 0.0)) == [(True, True)] * 2
    assert verdicts(beyond, tap(0.5, 0.0)) == [(False, False)] * 2
    assert verdicts(beyond, swipe("down")) == [(True, True)] * 2
    assert verdicts(inside, swipe("down")) == [(False, False)] * 2


def test_taps_in_one_element_match_edges_included() -> None:
    # 0.125 high and 0.25 wide, in the middle; enlarged by 1.4: y 0.35 to 0.65, x 0.2 to 0.8.
    rect = (0.4375, 0.375, 0.125, 0.25)
    assert verdicts(tap(0.25, 0.5), tap(0.75, 0.5), rect) == [(True, True)] * 2
    assert verdicts(tap(0.25, 0.5), tap(0.81, 0.5), rect) == [(True, False)] * 2
    assert verdicts(tap(0.25, 0.5), tap(0.75, 0.36), rect) == [(True, True)] * 2
    assert verdicts(tap(0.25, 0.5), tap(0.75, 0.34), rect) == [(True, False)] * 2
    assert verdicts(tap(0.15, 0.5), tap(0.75, 0.5), rect) == [(True, False)] * 2


def test_an_edge_is_inside() -> None:
    # 0.3125 wide, from 0.3125: 1.4 times that is 0.4375, half of it before: 0.09375 to 0.84375.
    rect = (0.0, 0.3125, 1.0, 0.3125)
    assert verdicts(tap(0.09375, 0.5), tap(0.84375, 0.5), rect)[1] == (True, True)
    assert verdicts(tap(0.0937, 0.5), tap(0.84375, 0.5), rect) == [(True, False)] * 2
    assert verdicts(tap(0.09375, 0.5), tap(0.8438, 0.5), rect) == [(True, False)] * 2


def test_taps_in_two_elements_do_not_match() -> None:
    rects = [(0.4, 0.1, 0.1, 0.1), (0.4, 0.8, 0.1, 0.1)]
    assert verdicts(tap(0.15, 0.45), tap(0.85, 0.45), *rects) == [(True, False)] * 2


def test_an_element_at_the_edge_reaches_too_far_as_released() -> None:
    # At the left edge, 0.2 wide: 0 to 0.34 on the screen. The release moves it to 0 to 0.48.
    rect = (0.4, 0.0, 0.2, 0.2)
    assert verdicts(tap(0.1, 0.5), tap(0.33, 0.5), rect) == [(True, True)] * 2
    assert verdicts(tap(0.1, 0.5), tap(0.47, 0.5), rect) == [(True, True), (True, False)]
    assert verdicts(tap(0.1, 0.5), tap(0.49, 0.5), rect) == [(True, False)] * 2


def test_without_elements_the_distance_decides() -> None:
    assert verdicts(tap(0.1, 0.1), tap(0.1, 0.2)) == [(True, True)] * 2
    assert verdicts(tap(0.1, 0.1), tap(0.1, 0.9)) == [(True, False)] * 2


def test_as_released_swipes_match_along_the_same_axis() -> None:
    for one, other in (("up", "down"), ("left", "right")):
        assert verdicts(swipe(one), swipe(one)) == [(True, True)] * 2
        assert verdicts(swipe(one), swipe(other)) == [(True, True), (True, False)]
    assert verdicts(swipe("up"), swipe("left")) == [(True, False)] * 2


def test_the_longer_way_is_the_axis_and_equal_ones_are_vertical() -> None:
    down = drag((0.0, 0.0), (0.5, 0.5))
    assert verdicts(down, swipe("down")) == [(True, True)] * 2
    assert verdicts(drag((0.0, 0.0), (0.5, 0.4375)), swipe("right")) == [(True, True)] * 2
    assert verdicts(drag((0.0, 0.0), (0.5, 0.4375)), swipe("down")) == [(True, False)] * 2


@pytest.mark.parametrize("other", [BACK, HOME, ENTER, COMPLETE, IMPOSSIBLE])
def test_of_everything_else_the_type_decides(other: Action) -> None:
    assert verdicts(other, other) == [(True, True)] * 2
    assert verdicts(other, tap(0.5, 0.5)) == [(False, False)] * 2
    assert verdicts(tap(0.5, 0.5), other) == [(False, False)] * 2
    assert verdicts(other, Action("type", text="")) == [(False, False)] * 2


def test_as_released_any_text_matches() -> None:
    typed = Action("type", text="Walmart")
    assert verdicts(typed, Action("type", text=" walmart")) == [(True, True)] * 2
    for other in ("", "Walmart store", "x"):
        assert verdicts(typed, Action("type", text=other)) == [(True, True), (True, False)]
    assert verdicts(Action("type", text=""), Action("type", text="")) == [(True, True)] * 2


@pytest.mark.parametrize("other", [Action("tap", count=2), open_app("Clock"), RECENTS, STOP])
def test_what_the_dataset_cannot_express_matches_nothing(other: Action) -> None:
    for wanted in (tap(0.5, 0.5), HOME, COMPLETE):
        assert verdicts(wanted, replace(other, start=at((0.5, 0.5)))) == [(False, False)] * 2


def test_long_presses_and_waiting_match_where_data_have_them() -> None:
    for wanted in (Action("long_press"), WAIT):
        said = replace(wanted, start=at((0.5, 0.5)))
        assert verdicts(tap(0.5, 0.5), said) == [(False, False)] * 2
        assert verdicts(wanted, said) == [(True, True)] * 2


def test_an_answer_without_its_place_is_wrong() -> None:
    assert verdicts(tap(0.5, 0.5), Action("tap")) == [(False, False)] * 2
    assert verdicts(swipe("up"), Action("swipe")) == [(False, False)] * 2


def test_a_named_swipe_stays_one_however_short() -> None:
    assert verdicts(swipe("left"), swipe("left", (0.5, 0.5), (0.5, 0.5))) == [(True, True)] * 2
    assert verdicts(swipe("left"), swipe("left", (0.5, 0.5), (0.5, 0.51))) == [(True, True)] * 2
    far = swipe("left", (0.5, 0.5), (0.5, 0.1))  # a longer one goes where its places say
    assert verdicts(swipe("up"), far)[0] == (True, True)


places = st.tuples(st.floats(0, 1), st.floats(0, 1))
rects = st.lists(st.tuples(*[st.floats(0, 1)] * 4), max_size=3)


@given(places, places, places, places, rects)
def test_matching_is_symmetric_and_every_gesture_matches_itself(
    touch: Pair, lift: Pair, other: Pair, end: Pair, elements: list[Rect]
) -> None:
    one, two = drag(touch, lift), drag(other, end)
    for rule in BOTH:
        assert rule(one, one, tuple(elements)) == (True, True)
        there = rule(one, two, tuple(elements))
        assert there == rule(two, one, tuple(elements))


def test_the_mended_rule_has_its_edges_inside_whatever_the_last_digit() -> None:
    for number in range(0, 860, 7):
        wanted = tap(number / 1000, 0.5)
        assert verdicts(wanted, tap((number + 140) / 1000, 0.5))[1] == (True, True)
        assert verdicts(wanted, tap((number + 141) / 1000, 0.5))[1] == (True, False)
    for number in range(210, 400, 7):  # 0.3 wide, and 0.21 more on either side
        wanted, rect = tap((number + 150) / 1000, 0.5), (0.4, number / 1000, 0.2, 0.3)
        for edge, beyond in ((-210, -211), (510, 511)):
            assert verdicts(wanted, tap((number + edge) / 1000, 0.5), rect)[1] == (True, True)
            assert verdicts(wanted, tap((number + beyond) / 1000, 0.5), rect)[1] == (True, False)
