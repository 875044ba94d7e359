"""AgentCPM-GUI's evaluator, worked out by hand at every boundary.

Places are (x, y) from 0 to 1, elements (y, x, height, width).
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from omnidata.actions import Action, Kind, Pair
from tests.metrics.phones import (
    BACK,
    COMPLETE,
    ENTER,
    HOME,
    IMPOSSIBLE,
    RECENTS,
    STOP,
    WAIT,
    Match,
    Rect,
    at,
    drag,
    open_app,
    rules,
    tap,
)

BOTH = rules("aitw", "agentcpm", "agentcpm-fixed")
CONTROL = rules("androidcontrol", "agentcpm-ac", "agentcpm-ac-fixed")
YES, NO, OTHER = (True, True), (True, False), (False, False)


def text(said: str) -> Action:
    return Action("type", text=said)


def verdicts(wanted: Action, said: Action, *rects: Rect) -> list[Match]:
    return [rule(wanted, said, rects) for rule in BOTH]


def control(wanted: Action, said: Action, *rects: Rect) -> list[Match]:
    return [rule(wanted, said, rects) for rule in CONTROL]


def pressed(action: Action) -> Action:
    return replace(action, kind="long_press")


@pytest.mark.parametrize("kind", ["tap", "long_press"])
def test_without_an_element_a_click_may_be_14_percent_away(kind: Kind) -> None:
    wanted = replace(tap(0.36, 0.5), kind=kind)
    for x, verdict in ((0.5, YES), (0.501, NO)):
        assert verdicts(wanted, replace(tap(x, 0.5), kind=kind)) == [verdict] * 2


def test_in_androidcontrol_it_may_be_4_percent_away() -> None:
    assert control(tap(0.0, 0.0), tap(0.04, 0.0)) == [YES] * 2
    assert control(tap(0.0, 0.0), tap(0.041, 0.0)) == [NO] * 2


def test_a_click_into_the_enlarged_element_of_the_experts_is_right() -> None:
    # 0.5 wide, from 0.25: enlarged by a fifth 0.2 to 0.8, and 0.45 to 0.55 from top to bottom.
    rect = (0.4583, 0.25, 0.0834, 0.5)
    wanted = tap(0.3, 0.5)
    assert verdicts(wanted, tap(0.79, 0.5), rect) == [YES] * 2
    assert verdicts(wanted, tap(0.81, 0.5), rect) == [NO] * 2
    assert verdicts(wanted, tap(0.7, 0.54), rect) == [YES] * 2
    assert verdicts(wanted, tap(0.7, 0.56), rect) == [NO] * 2
    # The expert's point only lies in the enlarged element: that is enough.
    assert verdicts(tap(0.21, 0.5), tap(0.79, 0.5), rect) == [YES] * 2
    assert verdicts(tap(0.19, 0.5), tap(0.79, 0.5), rect) == [NO] * 2


def test_the_edge_of_an_element_is_inside() -> None:
    whole = (0.0, 0.0, 1.0, 1.0)
    assert verdicts(tap(0.5, 0.5), tap(1.0, 1.0), whole) == [YES] * 2
    assert verdicts(tap(0.5, 0.5), tap(0.0, 0.0), whole) == [YES] * 2
    assert verdicts(tap(0.5, 0.5), tap(1.0, 1.001), whole) == [NO] * 2


def test_an_element_at_the_edge_is_moved_as_released_and_cut_when_mended() -> None:
    # From 0 to 0.5: on the screen 0 to 0.55; as released 0 to 0.6.
    rect = (0.0, 0.0, 1.0, 0.5)
    assert verdicts(tap(0.1, 0.5), tap(0.54, 0.5), rect) == [YES] * 2
    assert verdicts(tap(0.1, 0.5), tap(0.59, 0.5), rect) == [YES, NO]
    assert verdicts(tap(0.1, 0.5), tap(0.61, 0.5), rect) == [NO] * 2


def test_near_is_right_even_outside_of_the_element() -> None:
    rect = (0.4, 0.4, 0.1, 0.1)
    assert verdicts(tap(0.45, 0.45), tap(0.45, 0.58), rect) == [YES] * 2


def test_in_androidcontrol_the_five_elements_with_the_nearest_middles_count() -> None:
    far = [(0.0, 0.9, 0.02, 0.02)] * 5
    button, screen = (0.45, 0.45, 0.1, 0.1), (0.0, 0.0, 1.0, 1.0)
    # The middle of the screen is near the expert's point, so the whole screen is right.
    assert control(tap(0.5, 0.5), tap(0.1, 0.9), *far, button, screen) == [YES, NO]
    assert control(tap(0.5, 0.5), tap(0.45, 0.55), *far, button, screen) == [YES] * 2
    # Five smaller ones are nearer: it is the sixth, and no longer counts.
    near = [(0.1, 0.1, 0.01 * n, 0.01 * n) for n in range(1, 6)]
    assert control(tap(0.1, 0.1), tap(0.9, 0.9), screen, *near) == [NO] * 2
    assert control(tap(0.1, 0.1), tap(0.9, 0.9), screen, *near[:4]) == [YES, NO]


def test_mended_the_smallest_element_that_holds_the_point_counts_enlarged() -> None:
    rects = [(0.0, 0.0, 1.0, 1.0), (0.2, 0.25, 0.4, 0.5), (0.4, 0.25, 0.1, 0.5)]
    wanted = tap(0.3, 0.45)
    assert control(wanted, tap(0.79, 0.45), *rects)[1] == YES
    assert control(wanted, tap(0.81, 0.45), *rects)[1] == NO
    assert control(wanted, tap(0.7, 0.52), *rects)[1] == NO


def test_androidcontrols_long_presses_are_clicks_as_released() -> None:
    wanted = pressed(tap(0.5, 0.5))
    assert control(wanted, tap(0.5, 0.5)) == [YES, OTHER]
    assert control(wanted, pressed(tap(0.5, 0.5))) == [OTHER, YES]


def test_steps_that_the_release_leaves_out_are_judged_when_mended() -> None:
    app = open_app("Zoho Meet")
    assert control(app, open_app("zoho meet ")) == [None, YES]
    assert control(app, open_app("Zoho")) == [None, NO]
    assert control(app, tap(0.5, 0.5)) == [None, OTHER]
    typed = Action("type", at((0.5, 0.5)), text="a")
    assert control(typed, text("a")) == [None, YES]
    assert control(text("a"), text("a")) == [YES] * 2


@pytest.mark.parametrize("said", ["up", "down", "left", "right"])
def test_scrolls_have_a_direction(said: str) -> None:
    ways: dict[str, Pair] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
    for direction, (x, y) in ways.items():
        wanted = drag((0.5, 0.5), (0.5 + 0.3 * x, 0.5 + 0.3 * y))
        answer = Action("swipe", at((0.5, 0.5)), direction=said)  # type: ignore[arg-type]  # a literal
        assert verdicts(wanted, answer) == [YES if said == direction else NO] * 2
        lift = (0.5 + ways[said][0] / 9, 0.5 + ways[said][1] / 9)
        placed = Action("swipe", at((0.5, 0.5)), at(lift))
        assert verdicts(wanted, placed) == verdicts(wanted, answer)


def test_a_scroll_along_the_diagonal_is_vertical() -> None:
    wanted = drag((0.0, 0.0), (0.5, 0.5))
    assert verdicts(wanted, Action("swipe", direction="down")) == [YES] * 2
    assert verdicts(wanted, Action("swipe", direction="right")) == [NO] * 2


def test_a_scroll_to_nowhere_is_wrong() -> None:
    wanted = drag((0.5, 0.5), (0.5, 0.1))
    assert verdicts(wanted, Action("swipe", at((0.5, 0.5)), at((0.5, 0.5)))) == [NO] * 2
    assert verdicts(wanted, Action("swipe")) == [NO] * 2


def test_a_finger_that_moves_up_to_4_percent_clicks() -> None:
    assert verdicts(drag((0.5, 0.0), (0.5, 0.04)), tap(0.5, 0.0)) == [YES] * 2
    assert verdicts(drag((0.5, 0.0), (0.5, 0.041)), tap(0.5, 0.0)) == [OTHER] * 2


@pytest.mark.parametrize(
    ("wanted", "said", "as_released", "mended"),
    [
        ("Hello World", " hello world ", YES, YES),
        ("Hello World", "hello", YES, YES),
        ("hello", "Say Hello World", YES, YES),
        ("a long text", "a", YES, YES),
        ("hello", "help", NO, NO),
        ("hello", "", YES, NO),
        ("", "anything", YES, NO),
        ("", " ", YES, YES),
        ("", "", YES, YES),
    ],
)
def test_a_text_is_part_of_the_other(
    wanted: str, said: str, as_released: tuple[bool, bool], mended: tuple[bool, bool]
) -> None:
    assert verdicts(text(wanted), text(said)) == [as_released, mended]


BUTTONS = (BACK, HOME, ENTER)


@pytest.mark.parametrize("wanted", BUTTONS)
@pytest.mark.parametrize("said", [*BUTTONS, RECENTS])
def test_presses_are_of_the_same_button(wanted: Action, said: Action) -> None:
    assert verdicts(wanted, said) == [YES if wanted is said else NO] * 2


ENDS = (WAIT, COMPLETE, IMPOSSIBLE)


@pytest.mark.parametrize("wanted", ENDS)
@pytest.mark.parametrize("said", [*ENDS, STOP])
def test_as_released_waiting_and_every_end_are_the_same(wanted: Action, said: Action) -> None:
    mended = YES if wanted is said else OTHER if WAIT in (wanted, said) else NO
    assert verdicts(wanted, said) == [YES, mended]


def test_another_type_is_wrong() -> None:
    actions = [
        tap(0.5, 0.5), pressed(tap(0.5, 0.5)), drag((0.5, 0.5), (0.5, 0.1)), text("a"),
        HOME, COMPLETE, Action("tap", at((0.5, 0.5)), count=2),
    ]  # fmt: skip
    for one in actions:
        for other in actions:
            if one is not other:
                assert verdicts(one, other) == [OTHER] * 2
                assert control(one, other)[1] == OTHER


def test_an_answer_without_its_place_is_wrong() -> None:
    assert verdicts(tap(0.5, 0.5), Action("tap"), (0.0, 0.0, 1.0, 1.0)) == [NO] * 2


def test_the_mended_rule_has_its_edges_inside_whatever_the_last_digit() -> None:
    for number in range(0, 860, 7):
        x = number / 1000
        for judged, reach in ((verdicts, 140), (control, 40)):
            assert judged(tap(x, 0.5), tap((number + reach) / 1000, 0.5))[1] == YES
            assert judged(tap(x, 0.5), tap((number + reach + 1) / 1000, 0.5))[1] == NO
    for number in range(100, 400, 7):  # 0.4 wide, and 0.04 more on either side
        rect = (0.4, number / 1000, 0.2, 0.4)
        for judged in (verdicts, control):
            wanted = tap((number + 200) / 1000, 0.5)
            for edge, beyond in ((-40, -41), (440, 441)):
                assert judged(wanted, tap((number + edge) / 1000, 0.5), rect)[1] == YES
                assert judged(wanted, tap((number + beyond) / 1000, 0.5), rect)[1] == NO
