"""OSWorld's actions in both action spaces, worked out by hand; nothing in them is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Point
from omnidata.dialects.pyautogui import Call, Code, code_of, read_turn
from omnidata.tasks.osworld.actions import Reading, calls_of
from omnidata.tasks.osworld.load import load
from tests.loaders.osworld import codes, line, rollout

TASKED: dict[str, Any] = {"instruction": "Open the menu"}


def read(*actions: Any, space: str = "computer_13") -> Reading:
    return calls_of({"action_space": space, "rows": [{"action": action} for action in actions]})


def code(*actions: Any, space: str = "computer_13") -> list[str]:
    """The calls written out; `Code` as its reason."""
    return [
        one.why if isinstance(one, Code) else code_of(one, _place(one))
        for one in read(*actions, space=space).calls
    ]


def _place(call: Call) -> str:
    return "" if call.x is None or call.y is None else f"{call.x:g}, {call.y:g}"


def act(kind: Any, **parameters: Any) -> dict[str, Any]:
    return {"action_type": kind, "parameters": parameters}


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        ("MOVE_TO", {"x": 5, "y": 6.5}, ["pyautogui.moveTo(5, 6.5)"]),
        ("CLICK", {}, ["pyautogui.click()"]),
        ("CLICK", {"x": 5, "y": 6}, ["pyautogui.click(5, 6)"]),
        ("CLICK", {"button": "right", "x": 5, "y": 6}, ["pyautogui.rightClick(5, 6)"]),
        ("CLICK", {"x": 5, "y": 6, "num_clicks": 3}, ["pyautogui.tripleClick(5, 6)"]),
        ("CLICK", {"button": "middle", "num_clicks": 2},
         ["pyautogui.click(clicks=2, button='middle')"]),
        ("CLICK", {"x": None, "y": None}, ["pyautogui.click()"]),
        ("MOUSE_DOWN", {}, ["pyautogui.mouseDown()"]),
        ("MOUSE_UP", {"button": "right"}, ["pyautogui.mouseUp(button='right')"]),
        ("RIGHT_CLICK", {"x": 1, "y": 2}, ["pyautogui.rightClick(1, 2)"]),
        ("DOUBLE_CLICK", {}, ["pyautogui.doubleClick()"]),
        ("DRAG_TO", {"x": 1, "y": 2}, ["pyautogui.dragTo(1, 2, button='left')"]),
        ("SCROLL", {"dx": 0, "dy": -5}, ["pyautogui.scroll(-5)"]),
        ("SCROLL", {"dx": 3, "dy": 1}, ["pyautogui.hscroll(3)", "pyautogui.scroll(1)"]),
        ("SCROLL", {"dx": 0, "dy": 0}, []),
        ("TYPING", {"text": "it's\n"}, ['pyautogui.write("it\'s\\n")']),
        ("PRESS", {"key": "enter"}, ["pyautogui.press('enter')"]),
        ("KEY_DOWN", {"key": "shift"}, ["pyautogui.keyDown('shift')"]),
        ("KEY_UP", {"key": "shift"}, ["pyautogui.keyUp('shift')"]),
        ("HOTKEY", {"keys": ["ctrl", "c"]}, ["pyautogui.hotkey('ctrl', 'c')"]),
        ("WAIT", {}, ["WAIT"]),
        ("FAIL", {}, ["FAIL"]),
        ("DONE", {}, ["DONE"]),
    ],
)  # fmt: skip
def test_every_type_of_computer_13_is_read_nested_and_flat(
    kind: str, parameters: dict[str, Any], expected: list[str]
) -> None:
    assert code(act(kind, **parameters)) == expected
    assert code({"action_type": kind, **parameters}) == expected
    assert code(json.dumps(act(kind, **parameters))) == expected
    assert read(act(kind, **parameters)).flags == {}


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ({"action_type": "MOUSE_MOVE", "x": 1, "y": 2}, ["pyautogui.moveTo(1, 2)"]),
        ({"action_type": "CLICK", "click_type": "LEFT"}, ["pyautogui.click()"]),
        ({"action_type": "CLICK", "click_type": "RIGHT", "x": 1, "y": 2},
         ["pyautogui.rightClick(1, 2)"]),
        ({"action_type": "CLICK", "click_type": "WHEEL_UP"}, ["pyautogui.scroll(1)"]),
        ({"action_type": "CLICK", "click_type": "WHEEL_DOWN"}, ["pyautogui.scroll(-1)"]),
        ({"action_type": "KEY", "key": "ctrl+c"}, ["pyautogui.hotkey('ctrl', 'c')"]),
        ({"action_type": "KEY", "key": "enter"}, ["pyautogui.press('enter')"]),
        ({"action_type": "KEY", "key": "+"}, ["pyautogui.press('+')"]),
        ({"action_type": "TYPE", "text": "hi"}, ["pyautogui.write('hi')"]),
        ({"action_type": "press", "key": "a"}, ["pyautogui.press('a')"]),
    ],
)  # fmt: skip
def test_what_the_prompts_own_examples_say_is_read_and_flagged(
    action: dict[str, Any], expected: list[str]
) -> None:
    assert code(action) == expected
    assert read(action).flags.keys() == {"action-alias"}


@pytest.mark.parametrize(
    "action",
    [
        act("MOVE_TO", x=1),
        act("SCROLL", dx=1),
        act("SCROLL", dx=1, dy="far"),
        act("CLICK", x="1", y="2"),
        act("CLICK", x=True, y=False),
        act("CLICK", x=10**400, y=0),
        act("CLICK", x=float("nan"), y=0),
        act("CLICK", x=1, y=2, z=3),
        act("CLICK", click_type="SIDEWAYS"),
        act("CLICK", x=[[1]], y=2),
        act("TYPING"),
        act("TYPING", text=5),
        act("HOTKEY", keys=[]),
        act("HOTKEY", keys=[1]),
        act("TELEPORT", x=1, y=2),
        {"action_type": None},
        {},
        [{}],
        True,
        "click the button",
        "[" * 100_000,
    ],
)
def test_what_is_no_action_of_computer_13_is_kept_as_code(action: Any) -> None:
    assert [type(one) for one in read(action).calls] == [Code]


@pytest.mark.parametrize("action", [4, 10, {"action_type": 4}, {"action_type": [3]}])
def test_a_number_of_another_datasets_actions_is_refused(tmp_path: Path, action: Any) -> None:
    assert [type(one) for one in read(action).calls] == [Code]
    rollout(tmp_path, line(1, action, **TASKED, screenshot_file_before_exec="b.png"))
    source = load(tmp_path, check_media=False)
    (foreign,) = (found for found in source.findings if found.code == "action-foreign")
    assert foreign.severity == "error"
    assert source.steps[0].action is None


def test_an_action_of_the_other_space_is_read_and_flagged() -> None:
    reading = read(act("DONE"), space="pyautogui")
    assert [type(one) for one in reading.calls] == [Call]
    assert reading.flags.keys() == {"action-space-differs"}


@pytest.mark.parametrize("word", ["WAIT", "DONE", "FAIL", " DONE\n"])
@pytest.mark.parametrize("space", ["pyautogui", "computer_13", ""])
def test_the_special_words_are_read_in_every_space(word: str, space: str) -> None:
    assert code(word, space=space) == [word.strip()]


def test_code_that_ends_with_a_word_is_two_actions() -> None:
    text = "pyautogui.press('enter')\nDONE"
    assert code(text, space="pyautogui") == ["pyautogui.press('enter')", "DONE"]


def test_lists_and_the_call_of_a_tool_are_read() -> None:
    rows = [{"actions": ["pyautogui.click(1, 2)", "DONE"]}, {"phase": "thinking"}]
    found = calls_of({"action_space": "pyautogui", "rows": rows}).calls
    assert [one.raw for one in found] == ["pyautogui.click(1, 2)", "DONE"]
    tool = {"name": "computer", "input": {}, "command": "pyautogui.click(1, 2)\n"}
    assert code(tool, space="pyautogui") == ["pyautogui.click(1, 2)"]
    nested: Any = "DONE"
    for _ in range(100):
        nested = [nested]
    assert [type(one) for one in read(nested).calls] == [Code]


def test_marks_are_read_with_the_lines_that_place_them(tmp_path: Path) -> None:
    text = "tag_1=(10, 20)\ntag_2=(30, 40)\npyautogui.moveTo(tag_1)\npyautogui.click(tag_2)"
    rollout(tmp_path, line(1, text, **TASKED), place="pyautogui/som/agent/os/e1")
    (step,) = load(tmp_path).steps
    assert step.action is not None
    assert step.action.start == (Point(30, 40, "px"),)
    assert step.tags["observation_type"] == "som"


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("for i in range(3):\n    pyautogui.press('down')", "action-code"),
        ("pyautogui.locateOnScreen('a.png')", "action-code"),
        ("computer.terminate('perhaps')", "action-inexpressible"),
        ("", "action-inexpressible"),
    ],
)
def test_what_cannot_be_read_is_no_action_and_a_finding(
    tmp_path: Path, action: str, code: str
) -> None:
    rollout(tmp_path, line(1, action, **TASKED), line(2, "DONE", **TASKED))
    source = load(tmp_path)
    assert source.steps[0].action is None
    assert source.steps[1].history == (None,)
    assert code in codes(source)


def test_code_in_an_action_is_never_run(tmp_path: Path) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("still here")
    text = f"import os\nos.remove({str(kept)!r})\npyautogui.click(os.remove({str(kept)!r}), 1)"
    rows = [
        line(1, text, **TASKED),
        line(2, {"action_type": "TYPING", "text": text}, **TASKED),
        line(3, f"__import__('os').remove({str(kept)!r})", **TASKED),
    ]
    rollout(tmp_path / "tree", *rows, result=f"__import__('os').remove({str(kept)!r})")
    source = load(tmp_path / "tree")
    assert len(source.steps) == 3
    assert source.steps[0].action is None
    assert kept.read_text() == "still here"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
_keys = st.sampled_from(["x", "y", "button", "key", "keys", "text", "dx", "dy", "click_type", "p"])
_types = st.sampled_from(
    ["MOVE_TO", "CLICK", "SCROLL", "TYPING", "PRESS", "HOTKEY", "KEY", "DRAG_TO", "WAIT", "?"]
)


@given(
    _json
    | st.builds(lambda kind, given: {"action_type": kind, **given}, _types,
                st.dictionaries(_keys, _json, max_size=4)),
    st.sampled_from(["pyautogui", "computer_13", ""]),
)  # fmt: skip
def test_any_value_in_the_place_of_an_action_is_read_without_an_error(
    action: Any, space: str
) -> None:
    assert all(isinstance(one, Call | Code) for one in read(action, space=space).calls)


@given(
    st.sampled_from(["click", "doubleClick", "tripleClick", "rightClick", "middleClick", "moveTo",
                     "mouseDown", "mouseUp", "dragTo"]),
    st.integers(0, 4000), st.integers(0, 4000),
)  # fmt: skip
def test_what_is_spelled_out_is_read_the_same(name: str, x: int, y: int) -> None:
    (call,) = read_turn(f"pyautogui.{name}({x}, {y})")
    assert isinstance(call, Call)
    (again,) = read_turn(code_of(call, f"{x}, {y}"))
    assert isinstance(again, Call)
    fields = ("kind", "x", "y", "button", "times")
    assert [getattr(call, field) for field in fields] == [getattr(again, field) for field in fields]


@given(st.text(max_size=20), st.lists(st.sampled_from(["ctrl", "a", "+"]), min_size=1, max_size=3))
def test_what_is_typed_is_spelled_and_read_the_same(text: str, keys: list[str]) -> None:
    for made in (f"pyautogui.write({text!r})", f"pyautogui.press({keys!r}, presses=2)",
                 f"pyautogui.hotkey(*{keys!r})", f"pyautogui.typewrite({keys!r})"):  # fmt: skip
        (call,) = read_turn(made)
        assert isinstance(call, Call)
        (again,) = read_turn(code_of(call))
        assert isinstance(again, Call)
        assert (call.text, call.keys, call.times) == (again.text, again.keys, again.times)
