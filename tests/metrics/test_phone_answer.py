"""Model text -> a move on a phone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.tasks.json_answers import Unread
from omnidata.tasks.phones.actions import Kind, Move
from omnidata.tasks.phones.agentcpm import Reading
from omnidata.tasks.phones.answers import Answer, parse, read_prompted

POINT = (500, 250)


def read(text: Any, reading: Reading = "meant") -> Answer | Unread:
    text = text if isinstance(text, str) else json.dumps(text)
    return parse(text, read_prompted, reading=reading)


def move(text: Any, reading: Reading = "meant") -> Move:
    found = read(text, reading)
    assert isinstance(found, Answer), found
    return found.move


def reason(text: Any, reading: Reading = "meant") -> str:
    found = read(text, reading)
    assert isinstance(found, Unread), found
    return found.reason


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"action_type": "TAP", "coordinate": [500, 250]}, Move(Kind.GESTURE, POINT, POINT)),
        (
            {"action_type": "LONG_PRESS", "coordinate": [500, 250]},
            Move(Kind.LONG_PRESS, POINT, POINT),
        ),
        (
            {"action_type": "SWIPE_UP", "start_coordinate": [500, 250], "end_coordinate": [1, 2]},
            Move(Kind.SWIPE, POINT, (1, 2), "up"),
        ),
        ({"action_type": "INPUT", "text": "7:30"}, Move(Kind.TYPE, text="7:30")),
        ({"action_type": "BACK"}, Move(Kind.BACK)),
        ({"action_type": "HOME"}, Move(Kind.HOME)),
        ({"action_type": "ENTER"}, Move(Kind.ENTER)),
        ({"action_type": "NONE"}, Move(Kind.WAIT)),
        ({"action_type": "TASK_COMPLETE"}, Move(Kind.COMPLETE)),
        ({"action_type": "TASK_IMPOSSIBLE"}, Move(Kind.IMPOSSIBLE)),
    ],
)  # fmt: skip
def test_the_prompts_form_is_read_to_the_letter(body: dict[str, Any], wanted: Move) -> None:
    found = read(body)
    assert isinstance(found, Answer)
    assert (found.form, found.as_prompted, found.move.space) == ("prompted", True, "norm1000")
    assert found.move.as_dict() == wanted.as_dict()
    around = read(f"I say ```json\n{json.dumps(body)}\n``` so")
    assert isinstance(around, Answer)
    assert (around.move, around.as_prompted) == (found.move, False)
    extra = read({**body, "thought": "x"})
    assert isinstance(extra, Answer)
    assert (extra.move, extra.as_prompted) == (found.move, False)


def test_aliases_of_names_are_read_too() -> None:
    assert move({"action": "click", "point": "500, 250"}).touch == POINT
    assert move({"action_type": "press_enter"}).kind is Kind.ENTER
    assert move({"action_type": "scroll_down"}).direction == "down"
    assert move({"action_type": "double_tap", "x": 1, "y": 2}).kind is Kind.DOUBLE_TAP


@pytest.mark.parametrize("number", [-1, 0, 3, 4, 4.0, 10, 99])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_number_is_nobodys_action(number: float, as_text: bool) -> None:
    said = str(number) if as_text else number
    text = reason({"action_type": said, "coordinate": [1, 2]})
    assert "not a name" in text or "no action" in text


def test_a_coordinate_without_a_name_is_no_tap() -> None:
    assert reason({"coordinate": [1, 2]}) == "no JSON object with an action in the text"
    assert "no action 'fly'" in reason({"action_type": "fly", "coordinate": [1, 2]})


@pytest.mark.parametrize(
    ("body", "released", "meant"),
    [
        ({"POINT": [1, 2]}, Kind.GESTURE, Kind.GESTURE),
        ({"POINT": [1, 2], "duration": 200}, Kind.GESTURE, Kind.GESTURE),
        ({"POINT": [1, 2], "duration": 199}, Kind.STOP, Kind.GESTURE),
        ({"POINT": [1, 2], "duration": 201}, Kind.LONG_PRESS, Kind.LONG_PRESS),
        ({"POINT": [1, 2], "to": "up"}, Kind.SWIPE, Kind.SWIPE),
        ({"POINT": [1, 2], "to": [1, 500]}, Kind.SWIPE, Kind.SWIPE),
        ({"POINT": [1, 2], "to": "up", "duration": 201}, Kind.LONG_PRESS, Kind.SWIPE),
        ({"POINT": [1, 2], "to": "up", "duration": 199}, Kind.STOP, Kind.SWIPE),
        ({"TYPE": ""}, Kind.TYPE, Kind.TYPE),
        ({"PRESS": "HOME"}, Kind.HOME, Kind.HOME),
        ({"PRESS": "BACK"}, Kind.BACK, Kind.BACK),
        ({"PRESS": "ENTER"}, Kind.ENTER, Kind.ENTER),
        ({"PRESS": "APPSELECT"}, Kind.RECENTS, Kind.RECENTS),
        ({"duration": 3000}, Kind.WAIT, Kind.WAIT),
        ({"STATUS": "finish"}, Kind.COMPLETE, Kind.COMPLETE),
        ({"STATUS": "satisfied"}, Kind.COMPLETE, Kind.COMPLETE),
        ({"STATUS": "impossible"}, Kind.IMPOSSIBLE, Kind.IMPOSSIBLE),
        ({"STATUS": "interrupt"}, Kind.STOP, Kind.STOP),
        ({"STATUS": "need_feedback"}, Kind.STOP, Kind.STOP),
        ({"POINT": [1, 2], "STATUS": "finish"}, Kind.COMPLETE, Kind.COMPLETE),
        ({"POINT": [1.0, 2], "STATUS": "start", "thought": "x"}, Kind.GESTURE, Kind.GESTURE),
        ({"CLEAR": None}, Kind.WAIT, None),
        ({"DEEP_LINK": None}, Kind.WAIT, None),
    ],
)
def test_compact_json_is_read_as_released_and_as_meant(
    body: dict[str, Any], released: Kind, meant: Kind | None
) -> None:
    assert move(body, "released").kind is released
    if meant is None:
        assert "no actions of any data" in reason(body)
    else:
        assert move(body).kind is meant


@pytest.mark.parametrize(
    "body",
    [
        {"POINT": [1, 1001]}, {"POINT": [-1, 0]}, {"POINT": [1]}, {"POINT": [1, 2.5]},
        {"POINT": [True, 1]}, {"POINT": "1, 2"}, {"POINT": [1, 2], "TYPE": "a"},
        {"POINT": [1, 2], "to": "sideways"}, {"STATUS": "continue"},
        {"to": "up", "STATUS": "finish"},
        {"TYPE": 3}, {"PRESS": "MENU"}, {"STATUS": "done"}, {"POINT": [1, 2], "x": 1},
        {"duration": -1}, {"duration": "200"}, {"POINT": [1, 2], "thought": 1}, {"CLEAR": 1},
    ],
)  # fmt: skip
def test_what_the_schema_forbids_is_unread(body: dict[str, Any]) -> None:
    for reading in ("released", "meant"):
        assert reason(body, reading)


def test_as_released_compact_json_is_the_whole_text_or_nothing() -> None:
    fenced = '```json\n{"POINT": [500, 250]}\n```'
    assert reason(fenced, "released")
    assert move(fenced).touch == POINT


@pytest.mark.parametrize(
    ("call", "args", "wanted"),
    [
        ("click_element", {"bbox": [0, 100, 1000, 400]}, Move(Kind.GESTURE, POINT, POINT)),
        ("CLICK", {"bbox": ["0", "100", "1000", "400"]}, Move(Kind.GESTURE, POINT, POINT)),
        ("scroll", {"direction": "left"}, Move(Kind.SWIPE, direction="left")),
        ("scroll", {}, Move(Kind.SWIPE)),
        ("input", {"text": "a"}, Move(Kind.TYPE, text="a")),
        ("press_enter", {}, Move(Kind.ENTER)),
        ("press_home", None, Move(Kind.HOME)),
        ("press_menu", {}, Move(Kind.BUTTON, text="menu")),
        ("LONG_PRESS", {}, Move(Kind.LONG_PRESS)),
        ("LONG_PRESS", {"bbox": [0, 100, 1000, 400]}, Move(Kind.LONG_PRESS, POINT, POINT)),
        ("click", {}, Move(Kind.GESTURE)),
        ("click", {"idx": "3"}, Move(Kind.GESTURE, element=3)),
        ("click", {"idx": "x", "bbox": None}, Move(Kind.GESTURE)),
        ("click_type", {"text": "a"}, Move(Kind.GESTURE)),
        ("stop", {"task_status": "success"}, Move(Kind.COMPLETE)),
        ("stop", {"task_status": "failure"}, Move(Kind.IMPOSSIBLE)),
    ],
)
def test_calls_of_the_zoo_are_read(call: str, args: Any, wanted: Move) -> None:
    found = move({"ACTION": call, "ARGS": args}).as_dict()
    found.pop("box", None)
    assert found == wanted.as_dict()


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("", {}), (3, {}), ("fly", {}), ("press", {}), ("longpress", {}),
        ("click", {"bbox": [1, 2, 3]}), ("click", {"bbox": [1, 2, 3, "x"]}),
        ("click", {"bbox": [1, 2, 3, 1e300]}), ("input", {"text": 3}),
    ],
)  # fmt: skip
def test_calls_that_say_nothing_are_unread(call: Any, args: Any) -> None:
    assert reason({"ACTION": call, "ARGS": args})


@given(
    st.one_of(
        st.text(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=4) | st.integers(),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            *("action_type", "action", "coordinate", "text", "POINT", "to"),
                            *("TYPE", "PRESS", "STATUS", "duration", "ACTION", "ARGS", "bbox"),
                            *("idx", "direction"),
                        ]
                    ),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=8,
        ).map(json.dumps),
    )
)
def test_no_text_makes_it_raise(text: str) -> None:
    for reading in ("released", "meant"):
        found = parse(text, read_prompted, reading=reading)
        assert found.reason if isinstance(found, Unread) else found.move.kind in Kind


def test_deep_nesting_and_endless_braces_are_no_trouble() -> None:
    assert reason('{"a":' * 20_000)
    assert reason("[" * 100_000)
    assert reason("{" * 1_000_000)
