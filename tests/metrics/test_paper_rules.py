"""The rules of `omnigui-paper` against answers made from the targets themselves."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omnidata.actions import NUMBERS, Action, Box, Point, Region, Screen, Space
from omnidata.tasks import get_task
from omnidata.tasks.json_answers import Answer
from omnidata.tasks.omnigui.answers import PredictedSpace, action_of, parse
from omnidata.tasks.omnigui.rules import Match, judge_paper
from omnidata.types import Step
from tests.full import FULL

EXACT, TYPE_ONLY, NOTHING = (
    Match(True, True, False),
    Match(True, False, False),
    Match(False, False, False),
)
SCREEN = (720, 1600)
SPACES: tuple[Space, ...] = ("norm1000", "px", "rel")
TASKS = {space: get_task("omnigui", {"coordinates": space}) for space in SPACES}
SWIPES = [label for label in NUMBERS if label.startswith("SWIPE")]
PLACED = ["TAP", "DOUBLE_TAP", "LONG_PRESS", *SWIPES]
any_text = st.text(st.characters(exclude_categories=())).filter(lambda text: "<tool" not in text)
accented = st.text("aeo é\u0301ñÅ\u212b각ệ\u0323ﬁ苹") | any_text
screens = st.sampled_from([SCREEN, (1080, 2400), (1179, 2556), (1, 1), (333, 777)]) | st.tuples(
    st.integers(1, 5_000), st.integers(1, 5_000)
)


def read(body: dict[str, Any], *, ascii_only: bool = True) -> Answer:
    """What comes back of an answer that goes out as JSON."""
    found = parse(json.dumps(body, ensure_ascii=ascii_only))
    assert isinstance(found, Answer), found
    return found


def judge(action: Action, screen: Screen, given: Answer | None, space: PredictedSpace) -> Match:
    return judge_paper(action, screen, action_of(given, space) if given else None)


def answer(action: Action, screen: Screen, *, space: Space = "norm1000") -> dict[str, Any]:
    step = Step("s", "e", 0, 1, "", screen, {}, (), (), action, {}, {})
    target = TASKS[space].target(step)
    assert target
    body: dict[str, Any] = json.loads(target.text)
    return body


def extent(space: Space, pixels: int) -> float:
    return {"px": pixels, "norm1000": 1000, "rel": 1}[space]


@st.composite
def spans(draw: st.DrawFn, space: Space, pixels: int) -> tuple[float, float]:
    """Two edges along one axis, at times a millionth of the screen apart."""
    most = extent(space, pixels)
    if space != "rel" and draw(st.booleans()):
        low = draw(st.integers(0, int(most) - 1))
        return low, draw(st.integers(low + 1, int(most)))
    begin = draw(st.floats(0, 0.9999))
    size = draw(st.sampled_from([1e-6, 1e-5, 1e-4]) | st.floats(1e-6, 1 - begin))
    return begin * most, min(1.0, begin + size) * most


@st.composite
def boxes(draw: st.DrawFn, screen: Screen) -> Box:
    space: Space = draw(st.sampled_from(["px", "norm1000", "rel"]))
    left, right = draw(spans(space, screen[0]))
    top, bottom = draw(spans(space, screen[1]))
    return Box(left, top, right, bottom, space)


@st.composite
def points(draw: st.DrawFn, screen: Screen) -> Point:
    space: Space = draw(st.sampled_from(["px", "norm1000", "rel"]))
    x, y = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    return Point(x * extent(space, screen[0]), y * extent(space, screen[1]), space)


@st.composite
def regions(draw: st.DrawFn, screen: Screen) -> tuple[Region, ...]:
    """One target, or several of which each will do."""
    return tuple(draw(st.lists(boxes(screen) | points(screen), min_size=1, max_size=3)))


@st.composite
def targets(draw: st.DrawFn) -> tuple[Action, Screen]:
    """An expert's action, any primitive, with the regions or the text it needs."""
    screen = draw(screens)
    label = draw(st.sampled_from(list(NUMBERS)))
    if label == "INPUT":
        return Action("type", text=draw(any_text.filter(bool))), screen
    if label in SWIPES:
        lift = draw(st.just(()) | regions(screen))
        return Action.of(label, draw(regions(screen)), lift), screen
    return Action.of(label, draw(regions(screen)) if label in PLACED else ()), screen


def placed(action: Action) -> bool:
    """Whether the paper's rules need ours for targets that are points."""
    return any(isinstance(region, Point) for region in (*action.start, *action.end))


@settings(deadline=None, max_examples=1_000 if FULL else 100)
@given(targets(), st.sampled_from(["norm1000", "px", "rel"]), st.booleans())
def test_the_experts_answer_is_an_exact_match_in_every_unit(
    target: tuple[Action, Screen], space: Space, ascii_only: bool
) -> None:
    action, screen = target
    assume(not placed(action) or min(screen) > 5)  # pixels are rounded
    given_back = read(answer(action, screen, space=space), ascii_only=ascii_only)
    assert judge(action, screen, given_back, space) == Match(True, True, placed(action))
    if space == "norm1000":
        assert judge(action, screen, given_back, "auto").exact


@pytest.mark.parametrize("space", ["norm1000", "px", "rel"])
def test_the_experts_answer_hits_a_target_of_a_single_pixel(space: Space) -> None:
    """Edges count, so a box whose edges coincide still holds its point."""
    missed = []
    for width in range(1, 60):
        for x in range(width + 1):
            action = Action("tap", (Box(x, 7, x, 7, "px"),))
            if not judge(
                action, (width, 9), read(answer(action, (width, 9), space=space)), space
            ).exact:
                missed.append((width, x))
    assert missed == []


@settings(deadline=None)
@given(st.floats(0, 1000), st.floats(0, 1000), screens)
def test_a_point_hits_the_box_that_is_that_point_in_the_same_unit(
    x: float, y: float, screen: Screen
) -> None:
    action = Action("tap", (Box(x, y, x, y, "norm1000"),))
    assert judge(action, screen, Answer(0, (x, y)), "norm1000") == EXACT


@settings(deadline=None)
@given(targets(), st.sampled_from(list(NUMBERS)))
def test_another_primitive_matches_in_nothing(target: tuple[Action, Screen], label: str) -> None:
    action, screen = target
    assume(label != action.label)
    body = answer(action, screen)
    found = judge(action, screen, read({**body, "action_type": NUMBERS[label]}), "norm1000")
    assert (found.type, found.exact) == (False, False)


@settings(deadline=None)
@given(targets())
def test_no_answer_matches_in_nothing(target: tuple[Action, Screen]) -> None:
    action, screen = target
    assert judge(action, screen, None, "norm1000") == Match(False, False, placed(action))


@settings(deadline=None)
@given(targets())
def test_an_answer_without_its_parameters_matches_in_type_alone(
    target: tuple[Action, Screen],
) -> None:
    action, screen = target
    bare = judge(action, screen, Answer(NUMBERS[action.label]), "norm1000")
    needs = action.label in PLACED or action.label == "INPUT"
    assert (bare.type, bare.exact) == (True, not needs)


@st.composite
def pixel_boxes(draw: st.DrawFn) -> tuple[Box, Screen]:
    """A box of whole pixels with at least a pixel of screen around it."""
    width, height = draw(st.integers(3, 5_000)), draw(st.integers(3, 5_000))
    left, top = draw(st.integers(1, width - 2)), draw(st.integers(1, height - 2))
    right, bottom = draw(st.integers(left, width - 1)), draw(st.integers(top, height - 1))
    return Box(left, top, right, bottom, "px"), (width, height)


def around(box: Box, data: st.DataObject) -> tuple[list[list[float]], list[list[float]]]:
    """Points on the four edges, and points one pixel beyond them."""
    x = data.draw(st.integers(int(box.left), int(box.right)))
    y = data.draw(st.integers(int(box.top), int(box.bottom)))
    inside = [[box.left, y], [box.right, y], [x, box.top], [x, box.bottom], [float(x), y]]
    outside = [[box.left - 1, y], [box.right + 1, y], [x, box.top - 1], [x, box.bottom + 1]]
    return inside, outside


def placing(label: str, point: Sequence[float]) -> dict[str, Any]:
    body: dict[str, Any] = {"action_type": NUMBERS[label]}
    if label in SWIPES:
        return {**body, "start_coordinate": point, "end_coordinate": [0, 0]}
    return {**body, "coordinate": point}


@settings(deadline=None)
@given(pixel_boxes(), st.sampled_from(PLACED), st.data())
def test_a_pixel_beyond_an_edge_misses_and_the_edge_itself_hits(
    case: tuple[Box, Screen], label: str, data: st.DataObject
) -> None:
    box, screen = case
    inside, outside = around(box, data)
    action = Action.of(label, (box,))
    for point in inside:
        assert judge(action, screen, read(placing(label, point)), "px") == EXACT, point
    for point in outside:
        found = judge(action, screen, read(placing(label, point)), "px")
        assert found == TYPE_ONLY, point


@settings(deadline=None)
@given(pixel_boxes(), st.sampled_from(SWIPES), st.data())
def test_a_swipe_that_ends_beside_its_lift_target_is_not_exact(
    case: tuple[Box, Screen], label: str, data: st.DataObject
) -> None:
    box, screen = case
    start = Box(0, 0, screen[0], screen[1], "px")
    inside, outside = around(box, data)
    kind = NUMBERS[label]
    ends, starts = Action.of(label, (start,), (box,)), Action.of(label, (box,), (start,))
    for points_, wanted in ((inside, EXACT), (outside, TYPE_ONLY)):
        for point in points_:
            body = {"action_type": kind, "start_coordinate": [1, 1], "end_coordinate": point}
            assert judge(ends, screen, read(body), "px") == wanted
            assert judge(Action.of(label, (start,)), screen, read(body), "px") == EXACT
            turned = {"action_type": kind, "start_coordinate": point, "end_coordinate": [1, 1]}
            assert judge(starts, screen, read(turned), "px") == wanted


def test_a_swipe_without_an_end_is_exact_only_where_the_data_has_no_lift() -> None:
    box = Box(10, 10, 20, 20, "px")
    body = {"action_type": 3, "start_coordinate": [15, 15]}
    assert judge(Action.of("SWIPE_UP", (box,)), SCREEN, read(body), "px") == EXACT
    assert judge(Action.of("SWIPE_UP", (box,), (box,)), SCREEN, read(body), "px") == TYPE_ONLY


def test_each_of_several_boxes_will_do_and_the_gap_between_them_will_not() -> None:
    action = Action("tap", (Box(0, 0, 9, 9, "px"), Box(20, 0, 29, 9, "px")))
    hits = [
        judge(action, SCREEN, Answer(0, (x, 5)), "px").exact for x in (5, 9, 10, 15, 19, 20, 29, 30)
    ]
    assert hits == [True, True, False, False, False, True, True, False]


@pytest.mark.parametrize(
    ("pair", "exact"),
    [((1001, 90), True), ((1000, 90), False), ((501, 45), True), ((1200.5, 90), False)],
)
def test_auto_takes_coordinates_as_pixels_once_one_exceeds_1000(
    pair: tuple[float, float], exact: bool
) -> None:
    action = Action("tap", (Box(1001, 80, 1100, 100, "px"),))
    assert judge(action, (2000, 2000), Answer(0, pair), "auto").exact == exact


def test_a_tap_at_the_boxs_pixels_misses_where_the_unit_is_0_to_1000() -> None:
    action = Action("tap", (Box(210, 786, 351, 850, "px"),))
    assert judge(action, SCREEN, Answer(0, (280, 818)), "px") == EXACT
    assert judge(action, SCREEN, Answer(0, (280, 818)), "norm1000") == TYPE_ONLY
    assert judge(action, SCREEN, Answer(0, (487.5, 531.25)), "norm1000") == EXACT  # the corner
    assert judge(action, SCREEN, Answer(0, (487.6, 531.25)), "norm1000") == TYPE_ONLY


OFFSETS = [(140, 0), (-140, 0), (0, 140), (0, -140), (84, 112), (-112, 84), (-84, -112), (112, -84)]


@pytest.mark.parametrize("target", [Point(500, 500, "norm1000"), Point(360, 800, "px")])
@pytest.mark.parametrize(("dx", "dy"), OFFSETS)
def test_a_point_target_counts_at_140_units_exactly_and_not_beyond(
    target: Point, dx: int, dy: int
) -> None:
    for label in PLACED:
        action = Action.of(label, (target,))
        near = read(placing(label, [500 + dx, 500 + dy]))
        far = read(placing(label, [500 + dx * 140.1 / 140, 500 + dy * 140.1 / 140]))
        assert judge(action, SCREEN, near, "norm1000") == Match(True, True, True)
        assert judge(action, SCREEN, far, "norm1000") == Match(True, False, True)


@settings(deadline=None)
@given(screens, st.floats(0, math.tau), st.floats(0, 139.9), st.floats(140.1, 2000))
def test_the_radius_of_a_point_target_is_the_same_all_around_on_any_screen(
    screen: Screen, angle: float, near: float, far: float
) -> None:
    action = Action("tap", (Point(screen[0] / 2, screen[1] / 2, "px"),))
    for distance, exact in ((near, True), (far, False)):
        point = (500 + distance * math.cos(angle), 500 + distance * math.sin(angle))
        assert judge(action, screen, Answer(0, point), "norm1000") == Match(True, exact, True)


def test_a_lift_target_given_as_a_point_counts_within_140_units_too() -> None:
    action = Action.of("SWIPE_UP", (Box(0, 0, 720, 1600, "px"),), (Point(500, 500, "norm1000"),))
    for x, exact in ((640, True), (640.1, False)):
        assert judge(action, SCREEN, Answer(3, (1, 1), (x, 500)), "norm1000") == (True, exact, True)


def typed(wanted: str, written: str) -> Match:
    body = {"action_type": 7, "text": written}
    return judge(Action("type", text=wanted), SCREEN, read(body), "norm1000")


def composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


@settings(deadline=None)
@given(accented, st.data())
def test_one_character_off_is_not_the_text(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    other = data.draw(st.characters(exclude_categories=()))
    inserted = text[:place] + other + text[place:]
    for written in (inserted, text[:place] + other + text[place + 1 :], text[: place - 1]):
        if composed(written) != composed(text):
            assert typed(text, written) == TYPE_ONLY
            assert typed(written, text) == TYPE_ONLY


@settings(deadline=None)
@given(accented)
def test_composed_and_decomposed_text_are_the_same(text: str) -> None:
    forms = [text, composed(text), unicodedata.normalize("NFD", text)]
    for wanted in forms:
        for written in forms:
            assert typed(wanted, written) == EXACT


@settings(deadline=None)
@given(accented)
def test_text_in_another_case_is_another_text(text: str) -> None:
    for other in (text.swapcase(), text.lower(), text.upper(), text.title()):
        if composed(other) != composed(text):
            assert typed(text, other) == TYPE_ONLY


@pytest.mark.parametrize(
    "written", ["hello", "Hello World ", " Hello World", "Hello  World", "", "o"]
)
def test_text_that_only_contains_or_resembles_the_target_is_not_exact(written: str) -> None:
    assert typed("Hello World", written) == TYPE_ONLY


def test_compatibility_forms_are_different_texts() -> None:
    assert typed("file", "ﬁle") == TYPE_ONLY
    assert typed("A", "Ａ") == TYPE_ONLY


def test_no_text_is_not_the_text() -> None:
    assert judge(Action("type", text="A"), SCREEN, Answer(7), "norm1000") == TYPE_ONLY


def steps() -> list[Step]:
    """One step for each way in which a profile compares places and text."""
    box, point = Box(210, 786, 351, 850, "px"), Point(360, 800, "px")
    found = []
    for action in (
        *(Action("tap", (region,)) for region in (box, point)),
        *(Action.of("SWIPE_UP", (a,), (b,)) for a in (box, point) for b in (box, point)),
        Action("type", text="hello"),
    ):
        row: dict[str, Any] = {
            "result_action_type": NUMBERS[action.label],
            "result_action_text": action.text,
        }
        for name, places in (("touch", action.start), ("lift", action.end)):
            for place in places:
                corner = [[210, 786], [351, 850]] if isinstance(place, Box) else [360, 800]
                row[f"result_{name}_xy"] = json.dumps(corner)
        row |= {"image_width": SCREEN[0], "image_height": SCREEN[1]}
        found.append(Step("s", "e", 0, 1, "", SCREEN, {}, (), (), action, {"app": "ted"}, row))
    return found


LARGEST = f"17{'0' * 307}"
"""A whole number that is a float as well, but ten times it is not."""
HUGE = {
    "a call with 400 digits": f"click({'9' * 400}, 5)",
    "a call with 400 digits second": f"click(5, {'9' * 400})",
    "the largest whole number": f'{{"action_type": 0, "coordinate": [{LARGEST}, 5]}}',
    "the largest floats": '{"action_type": 0, "coordinate": [1.7e308, -1.7e308]}',
    "a swipe from the largest": f'{{"action_type": 3, "start_coordinate": [{LARGEST}, 5], '
    '"end_coordinate": [-1.7e308, 1e-320]}',
    "a swipe to the largest": '{"action_type": 3, "start_coordinate": [390, 511], '
    f'"end_coordinate": [5, {LARGEST}]}}',
}


@pytest.mark.parametrize("unit", ["norm1000", "px", "rel", "auto"])
@pytest.mark.parametrize("output", HUGE.values(), ids=HUGE.keys())
def test_a_huge_coordinate_is_a_miss_and_no_crash(unit: str, output: str) -> None:
    for profile in get_task("omnigui", {"coordinates": unit}).profiles.values():
        for step in steps():
            verdict = profile.judge(step, output)
            assert verdict.values[1] is False, (profile.name, step.source)
