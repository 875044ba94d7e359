"""Android in the Zoo's evaluator, worked out by hand, on a screen of 1000 x 1000 pixels."""

from __future__ import annotations

from typing import get_args

import pytest

from omnidata.actions import Action, Box, Direction
from tests.metrics.phones import (
    BACK,
    COMPLETE,
    ENTER,
    HOME,
    IMPOSSIBLE,
    WAIT,
    Rect,
    at,
    drag,
    rules,
    tap,
)

BOTH = rules("aitw", "aitz", "aitz-fixed")
YES, NO, OTHER = (True, True), (True, False), (False, False)


def boxed(left: float, top: float, right: float, bottom: float) -> Action:
    return Action("tap", (Box(left, top, right, bottom, "rel"),))


def verdicts(wanted: Action, said: Action, *rects: Rect) -> list[tuple[bool, bool] | None]:
    return [rule(wanted, said, rects) for rule in BOTH]


def test_as_released_a_click_is_right_where_its_box_holds_the_corner() -> None:
    assert verdicts(tap(0.5, 0.5), boxed(0.45, 0.45, 0.55, 0.55)) == [NO, YES]
    assert verdicts(tap(0.5, 0.5), boxed(0.0, 0.0, 0.1, 0.1)) == [YES, NO]
    # 10 pixels from the corner, 100 wide: enlarged it begins exactly there.
    assert verdicts(tap(0.9, 0.9), boxed(0.01, 0.01, 0.11, 0.11)) == [YES, NO]
    assert verdicts(tap(0.9, 0.9), boxed(0.011, 0.01, 0.111, 0.11)) == [NO] * 2


def test_mended_the_box_enlarged_by_a_fifth_holds_the_experts_point() -> None:
    # 400 to 500 becomes 390 to 510.
    box = boxed(0.4, 0.4, 0.5, 0.5)
    for x, verdict in ((0.39, YES), (0.389, NO), (0.51, YES), (0.511, NO)):
        assert verdicts(tap(x, 0.45), box)[1] == verdict


def test_mended_a_box_may_overlap_with_the_experts_element_instead() -> None:
    # The element, 200 x 200, becomes 240 x 240; so does the box, moved by a third of that: 160 of
    # 320 pixels of each row are common, one half, which is not above it.
    rect = (0.1, 0.1, 0.2, 0.2)
    wanted = tap(0.1, 0.2)
    assert verdicts(wanted, boxed(0.18, 0.1, 0.38, 0.3), rect)[1] == NO
    assert verdicts(wanted, boxed(0.179, 0.1, 0.379, 0.3), rect)[1] == YES
    assert verdicts(tap(0.05, 0.2), boxed(0.179, 0.1, 0.379, 0.3), rect)[1] == NO


def test_mended_a_point_is_right_in_the_experts_element() -> None:
    rect = (0.1, 0.1, 0.2, 0.2)  # enlarged: 80 to 320
    assert verdicts(tap(0.2, 0.2), tap(0.32, 0.08), rect) == [NO, YES]
    assert verdicts(tap(0.2, 0.2), tap(0.321, 0.2), rect) == [NO] * 2
    assert verdicts(tap(0.2, 0.2), tap(0.2, 0.2)) == [NO, YES]
    assert verdicts(tap(0.2, 0.2), Action("tap"), rect) == [NO] * 2


def test_a_click_on_a_screen_of_unknown_size_is_not_judged() -> None:
    for rule in rules("aitw", "aitz", "aitz-fixed", screen=(0, 0)):
        assert rule(tap(0.5, 0.5), tap(0.1, 0.1), ()) is None
        assert rule(HOME, HOME, ()) == YES


def test_scrolls_are_vertical_from_nine_tenths_on() -> None:
    for wanted, right in (
        (drag((0.0, 0.0), (1.0, 0.9)), "down"),
        (drag((0.0, 0.0), (1.0, 0.89)), "right"),
        (drag((1.0, 0.0), (0.0, 0.89)), "left"),
        (drag((0.5, 0.9), (0.5, 0.1)), "up"),
    ):
        for direction in get_args(Direction):
            said = Action("swipe", direction=direction)
            assert verdicts(wanted, said) == [YES if direction == right else NO] * 2
        assert verdicts(wanted, Action("swipe")) == [NO] * 2


@pytest.mark.parametrize(
    ("wanted", "said", "verdict", "mended"),
    [
        ("hello", "hello world", YES, YES),
        ("hello world", "hello", YES, YES),
        ("Hello", "hello", NO, NO),
        ("abcdefghi", "abcdefghx", YES, YES),  # 2 * 8 / 18 = 0.89
        ("abcde", "abcdx", NO, NO),  # 2 * 4 / 10 = 0.8, which is not above it
        ("hello", "", YES, NO),
        ("", "hello", YES, NO),
        ("", "", YES, YES),
    ],
)
def test_texts_are_parts_of_each_other_or_alike(
    wanted: str, said: str, verdict: tuple[bool, bool], mended: tuple[bool, bool]
) -> None:
    typed = Action("type", text=wanted), Action("type", text=said)
    assert verdicts(*typed) == [verdict, mended]


def test_presses_and_ends() -> None:
    for one in (BACK, HOME, ENTER):
        for other in (BACK, HOME, ENTER):
            assert verdicts(one, other) == [YES if one is other else NO] * 2
    assert verdicts(COMPLETE, IMPOSSIBLE) == [YES, NO]
    assert verdicts(COMPLETE, COMPLETE) == [YES] * 2
    assert verdicts(COMPLETE, HOME) == [OTHER] * 2
    for said in (WAIT, Action("long_press"), Action("tap", count=2)):
        assert verdicts(said, said) == [OTHER] * 2


def test_as_released_whatever_is_called_a_press_has_its_type() -> None:
    home, menu = HOME, Action("keys", keys=("menu",))
    assert verdicts(home, home) == [YES, YES]
    assert verdicts(home, menu) == [NO, NO]
    assert verdicts(home, Action("long_press", at((0.5, 0.5)))) == [NO, OTHER]
    assert verdicts(tap(0.5, 0.5), Action("long_press", at((0.5, 0.5)))) == [OTHER, OTHER]


def test_a_click_may_name_an_element_by_its_number_in_reading_order() -> None:
    rects = (0.5, 0.5, 0.1, 0.1), (0.02, 0.4, 0.1, 0.1), (0.0, 0.0, 0.1, 0.1)
    named = [Action("tap", element=number) for number in range(4)]
    # The upper two are one line: the second lies beside the first, a little lower.
    assert [verdicts(tap(0.55, 0.55), said, *rects)[1] for said in named] == [NO, NO, YES, NO]
    assert [verdicts(tap(0.05, 0.05), said, *rects)[1] for said in named] == [YES, NO, NO, NO]
    # The release looks for the corner, which the first element holds; 0 is no number to it.
    assert [verdicts(tap(0.9, 0.9), said, *rects)[0] for said in named] == [NO] * 4
    second = (0.015, 0.0, 0.2, 0.1), (0.0, 0.5, 0.02, 0.1)
    assert [verdicts(tap(0.9, 0.9), said, *second)[0] for said in named] == [NO, YES, NO, NO]
