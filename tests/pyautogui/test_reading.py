"""Calls of pyautogui are read from a text, whatever the text is, and nothing in it is run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnidata.dialects.pyautogui import LONGEST, Call, Code, read_code, read_turn


def one(text: str) -> Call:
    (found,) = read_code(text)
    assert isinstance(found, Call), found
    return found


def why(text: str) -> str:
    (found,) = read_code(text)
    assert isinstance(found, Code), found
    return found.why


@pytest.mark.parametrize(
    ("text", "kind", "place", "button", "times"),
    [
        ("pyautogui.click(100, 200)", "click", (100, 200), "left", 1),
        (
            "pyautogui.click(x=100, y=200, clicks=2, button='right')",
            "click",
            (100, 200),
            "right",
            2,
        ),
        ("pyautogui.click(100, 200, 3)", "click", (100, 200), "left", 3),
        ("pyautogui.click()", "click", (None, None), "left", 1),
        ("pyautogui.click((7, 8))", "click", (7, 8), "left", 1),
        ("pyautogui.click(*(7, 8))", "click", (7, 8), "left", 1),
        ("pyautogui.click(button=pyautogui.MIDDLE)", "click", (None, None), "middle", 1),
        ("pyautogui.click(5, 6, button=3)", "click", (5, 6), "right", 1),
        ("pyautogui.leftClick(1, 2)", "click", (1, 2), "left", 1),
        ("pyautogui.rightClick(0.5, 1)", "click", (0.5, 1), "right", 1),
        ("pyautogui.middleClick(x=1, y=2)", "click", (1, 2), "middle", 1),
        ("pyautogui.doubleClick(1, 2)", "click", (1, 2), "left", 2),
        ("pyautogui.tripleClick(1, 2)", "click", (1, 2), "left", 3),
        ("computer.triple_click(x=0.1, y=0.2)", "click", (0.1, 0.2), "left", 3),
        ("pyautogui.moveTo(-1, -2, duration=1)", "move", (-1, -2), "", 1),
        ("pyautogui.move(-5, None)", "move_by", (-5, None), "", 1),
        ("pyautogui.moveRel(0, 9)", "move_by", (0, 9), "", 1),
        ("pyautogui.dragTo(3, 4, 0.5, button='left')", "drag", (3, 4), "left", 1),
        ("pyautogui.dragTo(3, 4, 1, pyautogui.easeInQuad, 'right')", "drag", (3, 4), "right", 1),
        ("pyautogui.drag(3, 4)", "drag_by", (3, 4), "left", 1),
        ("pyautogui.mouseDown()", "mouse_down", (None, None), "left", 1),
        ("pyautogui.mouseUp(button='right')", "mouse_up", (None, None), "right", 1),
    ],
)
def test_the_mouse_is_read(
    text: str, kind: str, place: tuple[float | None, ...], button: str, times: int
) -> None:
    call = one(text)
    assert (call.kind, (call.x, call.y), call.button, call.times) == (kind, place, button, times)
    assert call.raw == text


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [
        ("pyautogui.scroll(-3)", "scroll", -3),
        ("pyautogui.scroll(clicks=10, x=5, y=6)", "scroll", 10),
        ("pyautogui.vscroll(2)", "scroll", 2),
        ("pyautogui.hscroll(-1)", "hscroll", -1),
        ("pyautogui.scroll(-(2 + 3) * 100)", "scroll", -500),
    ],
)
def test_the_wheel_is_read(text: str, kind: str, amount: int) -> None:
    call = one(text)
    assert (call.kind, call.amount, call.times) == (kind, amount, 1)


@pytest.mark.parametrize(
    ("text", "kind", "typed", "keys"),
    [
        ("pyautogui.write('a;b', interval=0.1)", "write", "a;b", ()),
        ("pyautogui.typewrite(message='x')", "write", "x", ()),
        ("pyautogui.typewrite('')", "write", "", ()),
        ("pyautogui.typewrite(['a', 'enter'])", "write", None, ("a", "enter")),
        ("pyautogui.press('enter')", "press", None, ("enter",)),
        ("pyautogui.press(['up', 'down'])", "press", None, ("up", "down")),
        ("pyautogui.keyDown('shift')", "key_down", None, ("shift",)),
        ("pyautogui.keyUp(key='shift')", "key_up", None, ("shift",)),
        ("pyautogui.hotkey('ctrl', 'c', interval=1)", "hotkey", None, ("ctrl", "c")),
        ("pyautogui.hotkey(['ctrl', 'c'])", "hotkey", None, ("ctrl", "c")),
    ],
)
def test_the_keyboard_is_read(
    text: str, kind: str, typed: str | None, keys: tuple[str, ...]
) -> None:
    call = one(text)
    assert (call.kind, call.text, call.keys) == (kind, typed, keys)


def test_how_often_a_key_is_pressed_is_read() -> None:
    assert one("pyautogui.press('down', presses=3)").times == 3
    assert one("pyautogui.press('down', 2)").times == 2
    assert why("pyautogui.press('down', presses=0)").startswith("repeated not once")


def test_waiting_and_ending_are_read() -> None:
    assert one("time.sleep(0.5)").seconds == 0.5
    assert one("pyautogui.sleep(2)").seconds == 2
    assert one("computer.wait()").seconds is None
    assert one("computer.terminate(status='failure')").status == "failure"


def test_imports_comments_and_settings_are_no_actions() -> None:
    text = (
        '"""Opens the menu."""\nimport pyautogui as gui\nfrom time import sleep\n'
        "gui.PAUSE = 0.5  # slow\nx, y = 1793 + 60, 920 + 17\ngui.doubleClick(x, y); sleep(1)\npass"
    )
    assert [call.raw for call in read_code(text)] == ["gui.doubleClick(x, y)", "sleep(1)"]
    click, _ = read_code(text)
    assert isinstance(click, Call)
    assert (click.x, click.y) == (1853, 937)


def test_a_mark_keeps_its_name_beside_its_place() -> None:
    told = "tag_3=(10, 20)\npyautogui.click(tag_3)"
    assert (one(told).x, one(told).y, one(told).tag) == (10, 20, "tag_3")
    given = read_code("pyautogui.click(*tag_3)", names={"tag_3": (1, 2)})[0]
    assert isinstance(given, Call)
    assert (given.x, given.y, given.tag) == (1, 2, "tag_3")
    items = read_code("pyautogui.click(tag_3[0], tag_3[1] + 5)", names={"tag_3": (1, 2)})[0]
    assert isinstance(items, Call)
    assert (items.x, items.y, items.tag) == (1, 7, "tag_3")


def test_a_mark_whose_place_nobody_told_is_a_call_without_a_place() -> None:
    call = one("pyautogui.click(tag_9, button='right')")
    assert (call.x, call.y, call.tag, call.button) == (None, None, "tag_9", "right")


@pytest.mark.parametrize(
    "text",
    [
        "for _ in range(3):\n    pyautogui.press('down')", "if True: pyautogui.click(1, 2)",
        "x, y = pyautogui.locateCenterOnScreen('icon.png')",
        "pyautogui.click(pyautogui.locateOnScreen('icon.png'))", "pyautogui.click('icon.png')",
        "pyautogui.click(x)", "pyautogui.click(1, 2, color='red')", "pyautogui.click(1, 2, x=3)",
        "pyautogui.click((1, 2, 3))", "pyautogui.click(True, False)", "pyautogui.click(1e999, 2)",
        "pyautogui.click(1, 2, button='fourth')", "pyautogui.click(1, 2, clicks=10**9)",
        "pyautogui.click(1, 2, **options)", "pyautogui.click(duration=print('x'))",
        "pyautogui.write(f'{1}')", "pyautogui.write(5)",
        "pyautogui.write(open('/etc/passwd').read())", "pyautogui.press([])",
        "pyautogui.press(['a', 1])", "pyautogui.keyDown(['a', 'b'])", "pyautogui.hotkey()",
        "pyautogui.hotkey('ctrl', tag_1)", "pyautogui.scroll()", "pyautogui.scroll('down')",
        "pyautogui.screenshot()", "pyautogui.nothing()", "pyautogui.alert.show()", "click(1, 2)",
        "WAIT", "lambda: 1", "import os", "from pyautogui import *", "from . import pyautogui",
        "del pyautogui", "pyautogui.click(1/0, 2)", "pyautogui.click(('a',)[3], 2)",
        "pyautogui.click = print", "a = b = 3", "computer.terminate(status=1)",
        f"pyautogui.click({'1+' * 60}1, 2)",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_kept_as_code(text: str) -> None:
    assert [type(found) for found in read_code(text)] == [Code]
    assert read_code(text)[0].raw == text


def test_one_statement_that_is_not_understood_leaves_the_others() -> None:
    text = "pyautogui.click(1, 2)\nfor i in range(2):\n    pyautogui.press('é')\ntime.sleep(1)"
    first, loop, last = read_code(text)
    assert isinstance(first, Call)
    assert isinstance(last, Call)
    assert loop == Code("for i in range(2):\n    pyautogui.press('é')", "For is not run")


@pytest.mark.parametrize(
    "change",
    [
        "x = unknown()", "for x in range(3): pass", "if a: x = 3", "import os as x", "x += 1",
        "def x(): pass", "class x: pass", "with a() as x: pass", "from os import *", "del x",
    ],
)  # fmt: skip
def test_a_name_that_may_have_changed_is_not_believed(change: str) -> None:
    assert isinstance(read_code("x = 1\npyautogui.moveTo(x, x)")[0], Call)
    assert isinstance(read_code(f"x = 1\n{change}\npyautogui.moveTo(x, x)")[-1], Code)


def test_a_name_that_a_function_may_change_is_not_believed() -> None:
    text = "x = 1\ndef f():\n    global x\n    x = 2\nf()\npyautogui.moveTo(x, x)"
    assert [type(found) for found in read_code(text)] == [Code] * 4


def test_a_module_under_another_name_is_not_believed() -> None:
    assert isinstance(read_code("pyautogui = 3\npyautogui.click(1, 2)")[-1], Code)


@pytest.mark.parametrize(
    "text",
    [
        "pyautogui.click(1, 2",
        "pyautogui.write('it's')",
        "```python\npyautogui.click(1, 2)\n```",
        "I click the button.",
        "a\x00b",
        "\ud800",
        "(" * 5000,
        "[" * 150 + "]" * 150 + " " + ")",
        "9" * 5000,
        "x" * (LONGEST + 1),
    ],
)
def test_a_text_that_is_no_python_is_code_as_a_whole(text: str) -> None:
    assert [(type(found), found.raw) for found in read_code(text)] == [(Code, text)]


@pytest.mark.parametrize(
    "text",
    [
        "-" * 50_000 + "1",
        "not " * 20_000 + "1",
        "1" + "+1" * 40_000,
        "pyautogui.click(" + "-" * 3000 + "1)",
        "pyautogui.click(1" + "+1" * 3000 + ")",
        "a" + ".a" * 40_000,
        "a" + "[0]" * 30_000,
        "lambda: " * 10_000 + "1",
        "x" + "()" * 30_000,
        "x = (1,)\n" + "x = (x, x)\n" * 5000,
        "x = 'aaaaaaaaaaaaaaaa'\n" + "x = x + x\n" * 5000 + "pyautogui.write(x)",
        "x = 9\n" + "x = x * x\n" * 5000,
        "f();" * 20_000,
        "if 1:\n" + "".join(" " * n + "if 1:\n" for n in range(1, 150)) + " " * 150 + "f()",
    ],
    ids=lambda text: f"{text[:12]!r}",
)
def test_a_hostile_text_neither_stops_nor_hangs_the_reader(text: str) -> None:
    assert all(isinstance(found, Code) for found in read_code(text))


def test_nothing_in_a_text_is_executed(tmp_path: Path) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("still here")
    path = repr(str(kept))
    texts = [
        f"import os\nos.remove({path})",
        f"__import__('os').remove({path})",
        f"pyautogui.click(__import__('os').remove({path}), 2)",
        f"pyautogui.write(open({path}, 'w').write(''))",
        f"x = [__import__('os').remove({path}) for _ in 'a'][0]\npyautogui.click(x, x)",
        f"pyautogui.click(tween=__import__('os').remove({path}))",
    ]
    assert all(isinstance(found, Code) for text in texts for found in read_code(text))
    assert kept.read_text() == "still here"


def test_an_odd_escape_in_a_text_is_no_warning() -> None:
    assert one(r"pyautogui.write('C:\dir')").text == "C:\\dir"


@given(st.text())
@example("import")
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(isinstance(found, Call | Code) for found in read_code(text))


_calls = st.sampled_from(
    ["pyautogui.click", "pyautogui.write", "time.sleep", "pyautogui.hotkey", "computer.wait",
     "pyautogui.scroll", "pyautogui.dragTo", "pyautogui.press", "os.remove", "click"]
)  # fmt: skip
_arguments = st.recursive(
    st.one_of(
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.booleans(),
        st.none(),
        st.binary(max_size=3),
    ).map(repr)
    | st.sampled_from(["tag_1", "x", "*x", "x=1", "y=-2", "button='left'", "**{}", "f()", "..."]),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    max_leaves=4,
)


@given(st.lists(st.tuples(_calls, st.lists(_arguments, max_size=4)), max_size=5), st.booleans())
def test_any_calls_are_read_each_as_one_statement(
    calls: list[tuple[str, list[str]]], known: bool
) -> None:
    lines = [f"{name}({', '.join(arguments)})" for name, arguments in calls]
    text = "\n".join(lines)
    found = read_code(text, names={"x": (1, 2)} if known else None)
    try:
        ast.parse(text)
    except SyntaxError:
        assert [type(one) for one in found] == [Code]
    else:
        assert [one.raw for one in found] == lines


@given(st.integers(-(10**6), 10**6), st.floats(0, 1), st.text(max_size=30))
def test_what_is_written_is_what_is_read(x: int, y: float, text: str) -> None:
    click, typed = read_code(f"pyautogui.click({x}, {y!r})\npyautogui.write({text!r})")
    assert isinstance(click, Call)
    assert isinstance(typed, Call)
    assert (click.x, click.y, typed.text) == (x, y, text)


def test_a_constant_that_is_typed_again_and_again_is_cut() -> None:
    keys = "x = [" + "'a', " * 9000 + "]\n"
    found = read_code(keys + "pyautogui.press(x, 10)\n" * 3 + "pyautogui.click()")
    assert [type(one).__name__ for one in found] == ["Call", "Code", "Code", "Code"]
    assert isinstance(found[1], Code)
    assert found[1].why == f"more than {LONGEST} keys are typed"


def test_line_ends_within_a_text_stay_what_they_are() -> None:
    typed, done = read_turn('pyautogui.write("a\x0bb\u2028c")\r\nDONE')
    assert isinstance(typed, Call)
    assert isinstance(done, Call)
    assert (typed.text, done.status) == ("a\x0bb\u2028c", "success")


@pytest.mark.parametrize(
    "text", ["try: pass\nexcept OSError as x: pass", "match 1:\n  case x: pass"]
)
def test_a_name_that_a_handler_or_a_pattern_sets_is_forgotten(text: str) -> None:
    found = read_code(f"x = 5\n{text}\npyautogui.click(x, 1)")
    assert [one.why for one in found if isinstance(one, Code)][1:] == ["x is not known"]
