"""The actions of some calls, worked out by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from omnidata.actions import Action, Point
from omnidata.dialects.pyautogui import as_action, read_code


def done(text: str) -> Action | None:
    return as_action(read_code(text), space="px", said=text)


def px(x: float, y: float) -> tuple[Point, ...]:
    return (Point(x, y, "px"),)


@pytest.mark.parametrize(
    ("text", "label", "start", "end"),
    [
        ("pyautogui.click(1, 2)", "TAP", px(1, 2), ()),
        ("pyautogui.click()", "TAP", (), ()),
        ("pyautogui.moveTo(1, 2); pyautogui.click()", "TAP", px(1, 2), ()),
        ("pyautogui.moveTo(1, 2); pyautogui.move(5, 5); pyautogui.click()", "TAP", px(6, 7), ()),
        ("pyautogui.moveTo(1, 2); pyautogui.click(x=9)", "TAP", (), ()),
        ("pyautogui.moveTo(1, 2); pyautogui.click(tag_1)", "TAP", (), ()),
        ("pyautogui.middleClick(1, 2)", "MIDDLE_CLICK", px(1, 2), ()),
        ("pyautogui.rightClick(1, 2)", "RIGHT_CLICK", px(1, 2), ()),
        ("pyautogui.doubleClick(1, 2)", "DOUBLE_TAP", px(1, 2), ()),
        ("pyautogui.tripleClick(1, 2)", "TRIPLE_TAP", px(1, 2), ()),
        ("time.sleep(1); pyautogui.click(1, 2)", "TAP", px(1, 2), ()),
        ("pyautogui.moveTo(5, 5); pyautogui.dragTo(9, 6)", "DRAG", px(5, 5), px(9, 6)),
        ("pyautogui.moveTo(5, 5); pyautogui.drag(0, -4)", "DRAG", px(5, 5), px(5, 1)),
        (
            "pyautogui.mouseDown(5, 5); pyautogui.moveTo(9, 5); pyautogui.mouseUp()",
            "DRAG", px(5, 5), px(9, 5),
        ),
        ("pyautogui.mouseDown(1, 2)", "HOLD", px(1, 2), ()),
        ("pyautogui.mouseUp()", "RELEASE", (), ()),
        ("pyautogui.moveTo(1, 2)", "MOVE", px(1, 2), ()),
        ("pyautogui.dragTo(1, 2)", "DRAG", (), px(1, 2)),
        ("pyautogui.scroll(0)", "SCROLL", (), ()),
        ("time.sleep(1)", "WAIT", (), ()),
        ("computer.wait()", "WAIT", (), ()),
        ("computer.terminate(status='success')", "TASK_COMPLETE", (), ()),
        ("computer.terminate(status='failure')", "TASK_IMPOSSIBLE", (), ()),
    ],
)  # fmt: skip
def test_one_thing_is_done_at_its_place(
    text: str, label: str, start: tuple[Point, ...], end: tuple[Point, ...]
) -> None:
    found = done(text)
    assert found is not None
    assert (found.label, found.start, found.end, found.words) == (label, start, end, text)
    assert not found.then


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("pyautogui.scroll(3)", Action("scroll", direction="up", amount=3)),
        ("pyautogui.scroll(-3, 1, 2)", Action("scroll", px(1, 2), direction="down", amount=3)),
        ("pyautogui.hscroll(3)", Action("scroll", direction="right", amount=3)),
        ("pyautogui.hscroll(-3)", Action("scroll", direction="left", amount=3)),
        ("pyautogui.write('a b')", Action("type", text="a b")),
        ("pyautogui.press('enter', presses=2)", Action("keys", keys=("enter", "enter"))),
        ("pyautogui.hotkey('ctrl', 'c')", Action("hotkey", keys=("ctrl", "c"))),
        ("pyautogui.typewrite(['a', 'enter'])", Action("keys", keys=("a", "enter"))),
        (
            "pyautogui.keyDown('shift'); pyautogui.click(1, 2); pyautogui.keyUp('shift')",
            Action(
                "hold",
                keys=("shift",),
                then=(Action("tap", px(1, 2)), Action("release", keys=("shift",))),
            ),
        ),
        (
            "pyautogui.mouseDown(1, 2); pyautogui.write('a'); pyautogui.mouseUp(5, 5)",
            Action("hold", px(1, 2), then=(Action("type", text="a"), Action("release", px(5, 5)))),
        ),
        (
            "pyautogui.click(1, 2); pyautogui.write('a')",
            Action("tap", px(1, 2), then=(Action("type", text="a"),)),
        ),
    ],
)
def test_nothing_of_what_is_done_is_lost(text: str, wanted: Action) -> None:
    assert done(text) == replace(wanted, words=text)


@pytest.mark.parametrize(
    "text", ["", "computer.terminate(status='perhaps')", "pyautogui.click(1, 2)\nfor i in a: pass"]
)
def test_what_cannot_be_read_is_no_action(text: str) -> None:
    assert done(text) is None
