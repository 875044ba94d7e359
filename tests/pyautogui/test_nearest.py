"""The primitive that comes nearest to some calls, worked out by hand."""

from __future__ import annotations

import pytest

from omnidata.actions import Action, Point, Primitive
from omnidata.tasks.desktops import nearest, read_code


def near(text: str) -> Action | None:
    return nearest(read_code(text), space="px", said=text)


def px(x: float, y: float) -> tuple[Point, ...]:
    return (Point(x, y, "px"),)


@pytest.mark.parametrize(
    ("text", "kind", "start", "end"),
    [
        ("pyautogui.click(1, 2)", "TAP", px(1, 2), ()),
        ("pyautogui.click()", "TAP", (), ()),
        ("pyautogui.moveTo(1, 2); pyautogui.click()", "TAP", px(1, 2), ()),
        ("pyautogui.moveTo(1, 2); pyautogui.move(5, 5); pyautogui.click()", "TAP", px(6, 7), ()),
        ("pyautogui.moveTo(1, 2); pyautogui.click(x=9)", "TAP", (), ()),
        ("pyautogui.moveTo(1, 2); pyautogui.click(tag_1)", "TAP", (), ()),
        ("pyautogui.middleClick(1, 2)", "TAP", px(1, 2), ()),
        ("pyautogui.rightClick(1, 2)", "LONG_PRESS", px(1, 2), ()),
        ("pyautogui.doubleClick(1, 2)", "DOUBLE_TAP", px(1, 2), ()),
        ("pyautogui.tripleClick(1, 2)", "DOUBLE_TAP", px(1, 2), ()),
        ("pyautogui.click(1, 2); pyautogui.write('a')", "TAP", px(1, 2), ()),
        ("time.sleep(1); pyautogui.click(1, 2)", "TAP", px(1, 2), ()),
        ("pyautogui.moveTo(5, 5); pyautogui.dragTo(9, 6)", "SWIPE_RIGHT", px(5, 5), px(9, 6)),
        ("pyautogui.moveTo(5, 5); pyautogui.dragTo(1, 6)", "SWIPE_LEFT", px(5, 5), px(1, 6)),
        ("pyautogui.moveTo(5, 5); pyautogui.dragTo(9, 9)", "SWIPE_DOWN", px(5, 5), px(9, 9)),
        ("pyautogui.moveTo(5, 5); pyautogui.drag(0, -4)", "SWIPE_UP", px(5, 5), px(5, 1)),
        (
            "pyautogui.mouseDown(5, 5); pyautogui.moveTo(9, 5); pyautogui.mouseUp()",
            "SWIPE_RIGHT", px(5, 5), px(9, 5),
        ),
        ("pyautogui.scroll(3)", "SWIPE_DOWN", (), ()),
        ("pyautogui.scroll(-3, 1, 2)", "SWIPE_UP", px(1, 2), ()),
        ("pyautogui.hscroll(3)", "SWIPE_LEFT", (), ()),
        ("pyautogui.hscroll(-3)", "SWIPE_RIGHT", (), ()),
        ("time.sleep(1)", "NONE", (), ()),
        ("computer.wait()", "NONE", (), ()),
        ("computer.terminate(status='success')", "TASK_COMPLETE", (), ()),
        ("computer.terminate(status='failure')", "TASK_IMPOSSIBLE", (), ()),
    ],
)  # fmt: skip
def test_calls_have_the_nearest_primitive(
    text: str, kind: str, start: tuple[Point, ...], end: tuple[Point, ...]
) -> None:
    assert near(text) == Action(Primitive[kind], start, end, words=text)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("pyautogui.write('a b')", "a b"),
        ("pyautogui.press('enter')", "enter"),
        ("pyautogui.hotkey('ctrl', 'c')", "ctrl+c"),
        ("pyautogui.typewrite(['a', 'enter'])", "a+enter"),
    ],
)
def test_keys_are_an_input(text: str, typed: str) -> None:
    assert near(text) == Action(Primitive.INPUT, text=typed, words=text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pyautogui.moveTo(1, 2)",
        "pyautogui.dragTo(1, 2)",
        "pyautogui.moveTo(1, 2); pyautogui.dragTo(1, 2)",
        "pyautogui.mouseDown(1, 2)",
        "pyautogui.mouseDown(1, 2); pyautogui.write('a'); pyautogui.mouseUp(5, 5)",
        "pyautogui.mouseDown(); pyautogui.mouseUp(5, 5)",
        "pyautogui.mouseUp()",
        "pyautogui.keyDown('shift'); pyautogui.click(1, 2); pyautogui.keyUp('shift')",
        "pyautogui.scroll(0)",
        "computer.terminate(status='perhaps')",
        "pyautogui.click(1, 2)\nfor i in a: pass",
    ],
)
def test_what_no_primitive_comes_near_to_has_none(text: str) -> None:
    assert near(text) is None
