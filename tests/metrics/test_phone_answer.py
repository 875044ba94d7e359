"""Model text -> an action on a phone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import omnidata
from omnidata.actions import Point
from omnidata.types import Step, Verdict
from tests.metrics.phones import phone, tap

POINT = (Point(500, 250, "norm1000"),)
PLACE = {"touch": (500, 250), "lift": (500, 250)}
RELATIVE = omnidata.get_task("aitw", {"coordinates": "rel"})
"""Its verdicts spell out every answer that is not in the prompt's own form."""
ROW = {"results/action_type": [4], "results/yx_touch": [0.5, 0.5], "results/yx_lift": [0.5, 0.5]}
STEP = Step("a", "e", 0, 1, "open", (100, 200), {}, (), (), tap(0.5), {}, ROW)


def judge(text: Any, profile: str = "aitw", task: Any = RELATIVE) -> Verdict:
    """`aitw` reads every form as it is meant, `agentcpm` and `aitz` their own as released."""
    text = text if isinstance(text, str) else json.dumps(text)
    found: Verdict = task.profiles[profile].judge(STEP, text)
    return found


def action(text: Any, profile: str = "aitw") -> dict[str, Any]:
    found = judge(text, profile)
    assert found.outcome == "ok", found.reason
    return {key: value for key, value in (found.parsed or {}).items() if key not in ("form", "box")}


def reason(text: Any, profile: str = "aitw") -> str:
    found = judge(text, profile)
    assert found.outcome == "unparsed", found.parsed
    return found.reason


@pytest.mark.parametrize(
    ("body", "label"),
    [
        ({"action_type": "TAP", "coordinate": [500, 250]}, "TAP"),
        ({"action_type": "LONG_PRESS", "coordinate": [500, 250]}, "LONG_PRESS"),
        (
            {"action_type": "SWIPE_UP", "start_coordinate": [500, 250], "end_coordinate": [1, 2]},
            "SWIPE_UP",
        ),
        ({"action_type": "INPUT", "text": "7:30"}, "INPUT"),
        ({"action_type": "BACK"}, "BACK"),
        ({"action_type": "HOME"}, "HOME"),
        ({"action_type": "ENTER"}, "ENTER"),
        ({"action_type": "NONE"}, "WAIT"),
        ({"action_type": "TASK_COMPLETE"}, "TASK_COMPLETE"),
        ({"action_type": "TASK_IMPOSSIBLE"}, "TASK_IMPOSSIBLE"),
    ],
)  # fmt: skip
def test_the_prompts_form_is_read_to_the_letter(body: dict[str, Any], label: str) -> None:
    fence = f"I say ```json\n{json.dumps(body)}\n``` so"
    for text, as_prompted in ((body, True), (fence, False), ({**body, "thought": "x"}, False)):
        found = judge(text, task=phone("aitw"))
        assert (found.parsed, found.values[2]) == (body, as_prompted)
    read = phone("aitw").history_action(STEP, json.dumps(body))
    assert read.label == label
    assert read.start == (POINT if len(body) > 1 and label != "INPUT" else ())


def test_aliases_of_names_are_read_too() -> None:
    def parsed(body: Mapping[str, Any]) -> Any:
        return judge(body, task=phone("aitw")).parsed

    tap = {"action_type": "TAP", "coordinate": [500, 250]}
    assert parsed({"action": "click", "point": "500, 250"}) == tap
    assert parsed({"action_type": "press_enter"}) == {"action_type": "ENTER"}
    assert parsed({"action_type": "scroll_down"})["action_type"] == "SWIPE_DOWN"
    assert parsed({"action_type": "double_tap", "x": 1, "y": 2})["action_type"] == "DOUBLE_TAP"


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
        ({"POINT": [1, 2]}, "gesture", "gesture"),
        ({"POINT": [1, 2], "duration": 200}, "gesture", "gesture"),
        ({"POINT": [1, 2], "duration": 199}, "stop", "gesture"),
        ({"POINT": [1, 2], "duration": 201}, "long_press", "long_press"),
        ({"POINT": [1, 2], "to": "up"}, "swipe", "swipe"),
        ({"POINT": [1, 2], "to": [1, 500]}, "swipe", "swipe"),
        ({"POINT": [1, 2], "to": "up", "duration": 201}, "long_press", "swipe"),
        ({"POINT": [1, 2], "to": "up", "duration": 199}, "stop", "swipe"),
        ({"TYPE": ""}, "type", "type"),
        ({"PRESS": "HOME"}, "home", "home"),
        ({"PRESS": "BACK"}, "back", "back"),
        ({"PRESS": "ENTER"}, "enter", "enter"),
        ({"PRESS": "APPSELECT"}, "recents", "recents"),
        ({"duration": 3000}, "wait", "wait"),
        ({"STATUS": "finish"}, "complete", "complete"),
        ({"STATUS": "satisfied"}, "complete", "complete"),
        ({"STATUS": "impossible"}, "impossible", "impossible"),
        ({"STATUS": "interrupt"}, "stop", "stop"),
        ({"STATUS": "need_feedback"}, "stop", "stop"),
        ({"POINT": [1, 2], "STATUS": "finish"}, "complete", "complete"),
        ({"POINT": [1.0, 2], "STATUS": "start", "thought": "x"}, "gesture", "gesture"),
        ({"CLEAR": None}, "wait", None),
        ({"DEEP_LINK": None}, "wait", None),
    ],
)
def test_compact_json_is_read_as_released_and_as_meant(
    body: dict[str, Any], released: str, meant: str | None
) -> None:
    assert action(body, "agentcpm")["kind"] == released
    if meant is None:
        assert "no actions of any data" in reason(body)
    else:
        assert action(body)["kind"] == meant


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
    assert reason(body, "agentcpm")
    assert reason(body)


def test_as_released_compact_json_is_the_whole_text_or_nothing() -> None:
    fenced = '```json\n{"POINT": [500, 250]}\n```'
    assert reason(fenced, "agentcpm")
    assert action(fenced) == action(fenced, "aitz") == {"kind": "gesture", **PLACE}


@pytest.mark.parametrize(
    ("call", "args", "wanted"),
    [
        ("click_element", {"bbox": [0, 100, 1000, 400]}, {"kind": "gesture", **PLACE}),
        ("CLICK", {"bbox": ["0", "100", "1000", "400"]}, {"kind": "gesture", **PLACE}),
        ("scroll", {"direction": "left"}, {"kind": "swipe", "direction": "left"}),
        ("scroll", {}, {"kind": "swipe"}),
        ("input", {"text": "a"}, {"kind": "type", "text": "a"}),
        ("press_enter", {}, {"kind": "enter"}),
        ("press_home", None, {"kind": "home"}),
        ("press_menu", {}, {"kind": "button", "text": "menu"}),
        ("LONG_PRESS", {}, {"kind": "long_press"}),
        ("LONG_PRESS", {"bbox": [0, 100, 1000, 400]}, {"kind": "long_press", **PLACE}),
        ("click", {}, {"kind": "gesture"}),
        ("click", {"idx": "3"}, {"kind": "gesture", "element": 3}),
        ("click", {"idx": "x", "bbox": None}, {"kind": "gesture"}),
        ("click_type", {"text": "a"}, {"kind": "gesture"}),
        ("stop", {"task_status": "success"}, {"kind": "complete"}),
        ("stop", {"task_status": "failure"}, {"kind": "impossible"}),
    ],
)
def test_calls_of_the_zoo_are_read(call: str, args: Any, wanted: Any) -> None:
    assert action({"ACTION": call, "ARGS": args}) == wanted


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


@pytest.mark.parametrize(
    ("call", "args", "released", "meant"),
    [
        # The released code reads the box of every call; one that is not of numbers ends it.
        ("scroll", {"direction": "up", "bbox": ""}, None, {"kind": "swipe", "direction": "up"}),
        ("press_home", {"bbox": [1, 2, 3]}, None, {"kind": "home"}),
        ("stop", {"bbox": [1, 2, 3, None]}, None, {"kind": "complete"}),
        ("press_home", {"bbox": [1, 2, 3, 4, "x"]}, {"kind": "home"}, {"kind": "home"}),
        ("click", {"bbox": ["0", "100", "1000", "400"]}, None, {"kind": "gesture", **PLACE}),
        (
            "click",
            {"bbox": [False, 100, 1000, 400]},
            {"kind": "gesture", **PLACE},
            {"kind": "gesture", **PLACE},
        ),
        ("click", {"idx": True}, {"kind": "gesture", "element": 1}, {"kind": "gesture"}),
        ("click", {"idx": False}, {"kind": "gesture"}, {"kind": "gesture"}),
        (
            "click",
            {"idx": 2.7},
            {"kind": "gesture", "element": 2},
            {"kind": "gesture", "element": 2},
        ),
        ("longpress_back", {}, {"kind": "back"}, {"kind": "long_press"}),
        ("LONG_PRESS", {}, {"kind": "long_press"}, {"kind": "long_press"}),
        ("press_", {}, {"kind": "button"}, None),
        ("press", {}, None, None),
    ],
)
def test_calls_of_the_zoo_are_read_as_released_and_as_meant(
    call: str, args: Any, released: Any, meant: Any
) -> None:
    for profile, wanted in (("aitz", released), ("aitw", meant)):
        if wanted is None:
            assert reason({"ACTION": call, "ARGS": args}, profile)
        else:
            assert action({"ACTION": call, "ARGS": args}, profile) == wanted


@pytest.mark.parametrize(
    ("said", "label", "has_place"),
    [
        ({"POINT": [500, 250]}, "TAP", True),
        ({"POINT": [500, 250], "duration": 900}, "LONG_PRESS", True),
        ({"POINT": [500, 250], "to": "up"}, "SWIPE_UP", True),
        ({"POINT": [500, 250], "to": [500, 900]}, "SWIPE_DOWN", True),
        ({"TYPE": "7:30"}, "INPUT", False),
        ({"TYPE": ""}, "INPUT", False),
        ({"ACTION": "press_menu", "ARGS": {}}, "KEYS", False),
        ({"STATUS": "finish"}, "TASK_COMPLETE", False),
        ({"duration": 900}, "WAIT", False),
    ],
)
def test_an_answer_in_another_form_is_explained_by_its_action(
    said: dict[str, Any], label: str, has_place: bool
) -> None:
    found = RELATIVE.explanation(STEP, judge(said), json.dumps(said), profile="aitw")
    assert found.answer_label == label
    assert found.overlays["screenshot"].answer == (Point(50, 50, "px") if has_place else None)


@pytest.mark.parametrize(
    "held",
    [{}, {"kind": "fly"}, {"kind": ["wait"]}, {"kind": "gesture", "touch": ["1", 2]},
     {"kind": "swipe", "touch": [1]}, {"kind": "swipe", "lift": 3}],
)  # fmt: skip
def test_scores_that_hold_something_else_are_no_action(held: dict[str, Any]) -> None:
    verdict = Verdict("ok", (False, False, False), {"form": "agentcpm", **held})
    found = RELATIVE.explanation(STEP, verdict, "", profile="aitw")
    assert found.overlays["screenshot"].answer is None
    assert found.answer_label not in ("TAP", "SWIPE", "WAIT")
