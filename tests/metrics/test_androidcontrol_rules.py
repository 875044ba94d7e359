"""AndroidControl's published protocols, worked out by hand at every boundary.

Places are (x, y) from 0 to 1, elements (y, x, height, width).
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from omnidata.actions import Action, Direction, Kind, Point
from tests.metrics.phones import BACK, COMPLETE, HOME, WAIT, Rule, open_app, rules, tap

OS_ATLAS, UGROUND, CURATED = rules("androidcontrol", "os-atlas-ac", "uground-ac", "curated")
YES, NO, OTHER = (True, True), (True, False), (False, False)
BUTTON, SCREEN = (0.4, 0.4, 0.2, 0.2), (0.0, 0.0, 1.0, 1.0)


def text(said: str, *, at: float | None = None) -> Action:
    return Action("type", (Point(at, 0.5, "rel"),) if at is not None else (), text=said)


def scroll(direction: Direction) -> Action:
    return Action("swipe", direction=direction)


@pytest.mark.parametrize("kind", ["tap", "long_press"])
def test_14_percent_of_the_screen_are_near_enough_for_os_atlas(kind: Kind) -> None:
    wanted = replace(tap(0.36), kind=kind)
    for x, verdict in ((0.5, YES), (0.501, NO)):
        assert OS_ATLAS(wanted, replace(tap(x), kind=kind), (BUTTON,)) == verdict
    assert OS_ATLAS(wanted, WAIT, (BUTTON,)) == OTHER


@pytest.mark.parametrize("kind", ["tap", "long_press"])
def test_the_smallest_element_with_the_experts_point_is_ugrounds(kind: Kind) -> None:
    wanted = replace(tap(0.5), kind=kind)
    for x, verdict in ((0.4, YES), (0.6, YES), (0.399, NO)):
        assert UGROUND(wanted, replace(tap(x), kind=kind), (SCREEN, BUTTON)) == verdict
    assert UGROUND(wanted, wanted, ()) == NO  # no element: nothing is right


def test_a_click_is_no_long_press_and_no_double_click() -> None:
    for said in (replace(tap(0.5), kind="long_press"), replace(tap(0.5), count=2)):
        assert [rule(tap(0.5), said, (BUTTON,)) for rule in (OS_ATLAS, UGROUND)] == [OTHER] * 2


@pytest.mark.parametrize(
    ("wanted", "said", "atlas", "to_the_letter"),
    [
        ("pizza near me", "pizza near me", YES, YES),
        ("pizza near me", "PIZZA", NO, NO),  # "[pizza" is not "[pizza]"
        ("pizza near me", "Pizza hut", YES, NO),
        ("pizza", "Pizza", YES, NO),
        ("pizza near me", "near me", NO, NO),
        ("", "", YES, YES),
        ("", "a", NO, NO),
    ],
)
def test_first_words_decide_for_os_atlas_and_all_letters_for_uground(
    wanted: str, said: str, atlas: tuple[bool, bool], to_the_letter: tuple[bool, bool]
) -> None:
    for made in (text, open_app):
        assert OS_ATLAS(made(wanted), made(said), ()) == atlas
        assert UGROUND(made(wanted), made(said), ()) == to_the_letter


def test_a_text_typed_at_a_place_needs_both_for_uground() -> None:
    wanted = text("7:30", at=0.5)
    assert UGROUND(wanted, text("7:30", at=0.6), (BUTTON,)) == YES
    assert UGROUND(wanted, text("7:31", at=0.5), (BUTTON,)) == NO
    assert UGROUND(wanted, text("7:30", at=0.7), (BUTTON,)) == NO
    assert UGROUND(wanted, text("7:30"), (BUTTON,)) == NO
    assert OS_ATLAS(wanted, text("7:30"), (BUTTON,)) == YES


@pytest.mark.parametrize("rule", [OS_ATLAS, UGROUND, CURATED])
def test_all_else_must_be_the_same(rule: Rule) -> None:
    for wanted in (scroll("up"), BACK, HOME, WAIT):
        assert rule(wanted, wanted, ()) == YES
    part = OTHER if rule is CURATED else NO
    assert rule(scroll("up"), scroll("down"), ()) == part
    assert rule(scroll("up"), Action("swipe"), ()) == part
    assert rule(WAIT, COMPLETE, ()) == OTHER


@pytest.mark.parametrize("kind", ["tap", "long_press"])
def test_the_box_decides_for_curated_and_without_one_less_than_14_percent(kind: Kind) -> None:
    wanted = replace(tap(0.5), kind=kind)
    for x, verdict in ((0.4, YES), (0.6, YES), (0.399, NO), (0.601, NO)):
        assert CURATED(wanted, replace(tap(x), kind=kind), (BUTTON,)) == verdict
    for x, verdict in ((0.639, YES), (0.641, NO)):
        assert CURATED(wanted, replace(tap(x), kind=kind), ()) == verdict
    assert CURATED(wanted, WAIT, (BUTTON,)) == OTHER
    assert CURATED(wanted, Action(kind), (BUTTON,)) == NO


@pytest.mark.parametrize(
    ("wanted", "said", "verdict"),
    [
        ("Shanghai shopping mall", "shopping", YES),
        ("Shanghai shopping mall", "mall Shanghai", YES),
        ("Shanghai shopping mall", "mall of Paris", OTHER),
        ("pizza", "PIZZAS", YES),
        ("7:30", "7:45", YES),  # the released code reads up to the colon
        ("", "any", YES),
    ],
)
def test_texts_are_part_of_the_type_for_curated(
    wanted: str, said: str, verdict: tuple[bool, bool]
) -> None:
    for made in (text, open_app):
        assert CURATED(made(wanted), made(said), ()) == verdict
