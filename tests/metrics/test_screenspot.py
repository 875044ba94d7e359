"""ScreenSpot's rule: what is a point, and whether it lies in the box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

import omnidata
from omnidata.actions import Action, Box, Space
from omnidata.types import Step, Verdict

SCREEN = (1280, 720)
BOX = [320, 180, 640, 360]  # a quarter to a half of the screen, either way
RULES = {
    space: omnidata.get_task("screenspot", {"coordinates": space}).profiles
    for space in ("rel", "px", "norm1000")
}


def judge(
    text: str,
    reading: str = "released",
    *,
    space: str = "rel",
    box: Sequence[float] = BOX,
    unit: Space = "px",
    screen: tuple[int, int] = SCREEN,
    sent: tuple[int, int] | None = None,
) -> Verdict:
    left, top, right, bottom = box
    target = Action("tap", (Box(left, top, right, bottom, unit),))
    step = Step("a", "a", 0, 1, "i", screen, {}, (), (), target, {}, {"row": {}})
    size = {"width": sent[0], "height": sent[1], "original": [*screen]} if sent else None
    receipt = {"parts": [{"role": "screenshot", **size}]} if size else None
    name = "screenspot" if reading == "released" else "screenspot-fixed"
    return RULES[space][name].judge(step, text, receipt)


def hit(text: str, **options: Any) -> Any:
    return judge(text, **options).values[0]


@pytest.mark.parametrize(
    ("point", "right"),
    [
        ((0.25, 0.25), True),
        ((0.5, 0.5), True),
        ((0.375, 0.25), True),
        ((math.nextafter(0.25, 0), 0.3), False),
        ((0.3, math.nextafter(0.5, 1)), False),
    ],
)
def test_edges_belong_to_the_box(point: tuple[float, float], right: bool) -> None:
    assert hit(f"({point[0]!r}, {point[1]!r})") is right


def test_a_number_beyond_any_float_hits_nothing() -> None:
    assert hit(f"({'9' * 400}.0, 0.3)") is False


def test_every_unit_means_the_same_place() -> None:
    for space, text in (("rel", "(0.5, 0.5)"), ("px", "(640, 360)"), ("norm1000", "(500, 500)")):
        assert hit(text, space=space) is True
    assert hit("(641, 360)", space="px") is False
    assert hit("(320, 180)", space="px", sent=(640, 360)) is True
    assert hit("(0.5, 0.5)", box=[0.25, 0.25, 0.5, 0.5], unit="rel", screen=(0, 0)) is True


def test_pixels_of_an_unknown_screen_are_not_judged() -> None:
    assert hit("(0.3, 0.3)", screen=(0, 0)) is None
    assert hit("negative", screen=(0, 0)) is None
    assert hit("(3, 3)", space="px", box=[0, 0, 1, 1], unit="rel", screen=(0, 0)) is None


@pytest.mark.parametrize(
    ("text", "released", "fixed"),
    [
        ("(0.5, 0.25)", (0.5, 0.25), (0.5, 0.25)),
        ("0.5,0.25", (0.5, 0.25), (0.5, 0.25)),
        ("[0.2, 0.4, 0.4, 0.6]", (0.3, 0.5), (0.3, 0.5)),
        ("(0.2, 0.4), (0.4, 0.6)", (0.3, 0.5), (0.3, 0.5)),
        ('{"bbox_2d": [2, 4, 4, 6]}', None, (3, 5)),
        ("the box is at (0.5, 0.25)", None, (0.5, 0.25)),
        ("element 2 is at (0.5, 0.25)", None, (0.5, 0.25)),
        ("from 1 to 2", (1, 2), None),
        ("<box>(200,400),(400,600)</box>", (300, 500), (300, 500)),
        ("<|box_start|>(200,400),(400,600)<|box_end|>", None, (300, 500)),
        ("<box>(0,0),(2,4)</box> <box>(200,400),(400,600)</box>", (1, 2), (300, 500)),
        ("<box>(0,0),(2,4)</ref>", None, (1, 2)),
        ("<box>(0, 0),(2, 4)</box>", None, (1, 2)),
        ("<point>300 80</point>", (300, 80), (300, 80)),
        ("Click 1: <point>300, 80</point>.", None, (300, 80)),
        ('<point x="30.1" y="8" alt="icon 3">icon 3</point>', (16.55, 5.5), (30.1, 8)),
        ("<point x=30.1 y=8>", (30.1, 8), (30.1, 8)),
        ('{"x": 0.5, "y": 25e-2}', None, (0.5, 0.25)),
        ('```json\n{"id": 1, "x": 0.5, "y": 0.25}\n```', None, (0.5, 0.25)),
        ("{'x': 1, 'y': 2} and {x: 3, y: 4}", (2, 3), (3, 4)),
        ('{"x": 1, "y": 2, "width": 3, "height": 4}', (2, 3), None),
        ('{"y": 80, "x": 300}', (80, 300), (300, 80)),
        ('{"x": "300", "y": "80"}', (300, 80), (300, 80)),
        ('{"x": 0.5, "y": 0.25, "label": "OK"}', (0.5, 0.25), (0.5, 0.25)),
        ('[{"x": 1, "y": 2, "id": "b"}, {"id": "a", "y": 4, "x": 3}]', (2.5, 2.5), (3, 4)),
        ('{"x": null, "y": 2}', None, None),
        ("<point></point> (1, 2)", (1, 2), (1, 2)),
        ("(0.5)", None, None),
        ("", None, None),
        ("at (50%, 25%)", (50, 25), None),
    ],
)
def test_points_and_boxes_are_read_as_seeclick_does_and_as_they_are_meant(
    text: str, released: tuple[float, float] | None, fixed: tuple[float, float] | None
) -> None:
    for reading, wanted in (("released", released), ("fixed", fixed)):
        found = judge(text, reading).parsed
        point = found and found["point"]
        assert point == (wanted and pytest.approx([*wanted])), reading


def test_the_tokens_of_a_box_are_thousandths_whatever_the_prompt_asks_for() -> None:
    said = judge("<box>(250,250),(500,500)</box>")
    assert said.values[0] is True
    for text in (
        "<|box_start|>(250,250),(500,500)<|box_end|>",
        "<|box_start|>(250, 250), (500, 500)<|box_end|>",
        "<box> ( 250 , 250 ) , ( 500 , 500 ) </box>",
    ):
        assert judge(text).outcome == "unparsed"
        assert judge(text, "fixed") == said


def test_a_refusal_is_a_word() -> None:
    for text in ("negative", "**Negative**.", " `negative` "):
        for reading in ("released", "fixed"):
            assert judge(text, reading).parsed == {"negative": True}
            assert judge(text, reading).values[0] is False
    assert judge("it is negative", "fixed").outcome == "unparsed"
