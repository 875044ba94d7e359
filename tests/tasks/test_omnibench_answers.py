"""How OmniBench's answers are read and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.tasks import get_task
from omnidata.tasks.omnibench.load import load
from omnidata.types import Step, Verdict
from tests.loaders.omnibench import act, pictures, plain, trajectory, write

WRITTEN = {
    "Status": "CONTINUE",
    "Observation": "A window.",
    "Thought": "I save.",
    "coordinates": [20, 30],
    "Function": "click_input",
    "Args": {"button": "left", "double": False},
}


def said(**changes: Any) -> str:
    """An answer as the prompt asks for it: a left click inside the rect, unless changed."""
    return json.dumps({**WRITTEN, **changes})


def typed(keys: str) -> str:
    return said(Function="keyboard_input", Args={"keys": keys}, coordinates=[])


def turned(notches: Any) -> str:
    return said(Function="wheel_mouse_input", Args={"wheel_dist": notches}, coordinates=[])


DONE = said(Status="FINISH", Function="", Args={}, coordinates=[])


def step_of(tmp_path: Path, action: dict[str, Any], *, size: tuple[int, int] | None = None) -> Step:
    if size:
        pictures(tmp_path, ["shots/0.png"], size=size)
    return load(write(tmp_path / "t.jsonl", trajectory(action)), check_media=False).steps[0]


def judged(step: Step, text: str, receipt: Any = None, **options: str) -> Verdict:
    return get_task("omnibench", options).profiles["omnibench-step"].judge(step, text, receipt)


@pytest.mark.parametrize(
    ("changes", "exact"),
    [
        ({}, True),
        ({"coordinates": [10, 20]}, True),
        ({"coordinates": [30.0, 40.0]}, True),
        ({"coordinates": [30.01, 40]}, False),
        ({"coordinates": [9.99, 30]}, False),
        ({"coordinates": "[20, 30]"}, True),
        ({"coordinates": "(20, 30)"}, True),
        ({"coordinates": {"x": 20, "y": "30"}}, True),
        ({"coordinates": []}, False),
        ({"coordinates": None}, False),
        ({"coordinates": [float("inf"), 3]}, False),
        ({"coordinates": [10**400, 3]}, False),
        ({"Args": {}}, True),
        ({"Args": {"button": "LEFT", "double": "false"}}, True),
        ({"Args": '{"button": "left"}'}, True),
        ({"Args": {"button": "right"}}, False),
        ({"Args": {"double": True}}, False),
        ({"Args": {"button": "thumb"}}, False),
        ({"Args": [1]}, False),
        ({"Function": "click_input()"}, True),
        ({"Status": "whatever"}, True),
    ],
)
def test_a_click_is_right_by_button_count_and_place(
    tmp_path: Path, changes: dict[str, Any], exact: bool
) -> None:
    verdict = judged(step_of(tmp_path, act()), said(**changes))
    assert (verdict.outcome, verdict.values[:2]) == ("ok", (True, exact))


@pytest.mark.parametrize(
    ("notches", "exact"),
    [
        *((-4, True), (-2, True), (-8, True), (-1, False), (-9, False), (4, False), ("-4", True)),
        *((-4.0, True), (0, False), (-4.5, False), (None, False), (10**400, False), (True, False)),
    ],
)
def test_the_wheel_is_right_by_direction_and_roughly_by_distance(
    tmp_path: Path, notches: Any, exact: bool
) -> None:
    step = step_of(tmp_path, act("wheel_mouse_input", args={"wheel_dist": -4}))
    assert judged(step, turned(notches)).values[:2] == (True, exact)


@pytest.mark.parametrize(
    ("keys", "exact"),
    [
        ("^s{ENTER 2}", True),
        ("^s{enter}{ENTER}", True),
        ("^s~~", True),
        ("^s{ENTER}", False),
        ("^S{ENTER 2}", False),
        ("{^}s{ENTER 2}", False),
        ("", False),
    ],
)
def test_keys_are_right_if_the_same_are_pressed(tmp_path: Path, keys: str, exact: bool) -> None:
    step = step_of(tmp_path, plain("keyboard_input", keys="^s{ENTER 2}"))
    assert judged(step, typed(keys)).values[:2] == (True, exact)


def test_text_is_compared_in_one_form_of_unicode(tmp_path: Path) -> None:
    step = step_of(tmp_path, plain("keyboard_input", keys="Zo\u00eb"))
    assert judged(step, typed("Zoe\u0308")).values[1] is True
    assert judged(step, typed("Zoe")).values[1] is False


def test_the_end_is_right_unless_the_status_says_otherwise(tmp_path: Path) -> None:
    step = step_of(tmp_path, plain(""))
    assert judged(step, DONE).values == (True, True, True)
    assert judged(step, '{"Status": "FINISH"}').values == (True, True, False)
    assert judged(step, '{"Function": ""}').values == (True, True, False)
    assert judged(step, said(Function="", Args={})).values == (True, False, False)
    assert judged(step, said()).values == (False, False, True)


def test_another_function_is_wrong(tmp_path: Path) -> None:
    step = step_of(tmp_path, act())
    for text in (typed("x"), turned(3), DONE):
        assert judged(step, text).values == (False, False, True)


def test_a_step_that_says_too_little_is_not_judged(tmp_path: Path) -> None:
    too_little = [plain("click_input", button="left"), plain("jump"), plain("wheel_mouse_input")]
    jump = plain("jump")
    too_little += [{**jump, "function": 3}, {k: v for k, v in jump.items() if k != "function"}]
    for action in too_little:
        assert judged(step_of(tmp_path, action), said()).values == (None, None, True)
        failed = get_task("omnibench").profiles["omnibench-step"].without_answer
        assert failed(step_of(tmp_path, action), "missing").values == (None, None, False)


@pytest.mark.parametrize(("space", "point"), [("norm1000", [100, 300]), ("rel", [0.1, 0.3])])
def test_other_units_need_the_size_of_the_screen(
    tmp_path: Path, space: str, point: list[float]
) -> None:
    step = step_of(tmp_path, act(), size=(200, 100))
    assert judged(step, said(coordinates=point), coordinates=space).values[1] is True
    assert judged(step, said(coordinates=[20, 30]), coordinates=space).values[1] is False
    bare = step_of(tmp_path / "bare", act())
    assert judged(bare, said(coordinates=point), coordinates=space).values[:2] == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        said(),
        f"```json{said()}```",
        f"```json\n{said()}\n```",
        f"`12345 {said()}   ",
        f"Sure.\n```\n{said()}\n```\nDone {{}}.",
        'First {"a": {"b": 1}} then ' + said(),
        f"{{not json {said()}",
        '{"Function": "jump"} no: ' + said(),
        json.dumps({key.lower(): value for key, value in WRITTEN.items()}),
    ],
)
def test_answers_are_found_however_they_are_dressed(tmp_path: Path, text: str) -> None:
    verdict = judged(step_of(tmp_path, act()), text)
    assert verdict.values == (True, True, text == said())
    assert verdict.parsed == {
        "function": "click_input", "status": "CONTINUE", "coordinates": (20, 30),
        "args": {"button": "left", "double": False},
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        *("", "I click.", "[]", "{}", '{"Function": "jump"}', '{"Function": 7}', "`" * 9),
        *("{" * 100_000, '{"a":' * 100_000, "[" * 100_000, '{"Status": "CONTINUE"}'),
    ],
)
def test_what_is_no_answer_is_unparsed_and_wrong(tmp_path: Path, text: str) -> None:
    verdict = judged(step_of(tmp_path, act()), text)
    assert (verdict.outcome, verdict.values) == ("unparsed", (False, False, False))
    assert verdict.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"More": 1},
        {"Status": "continue"},
        {"Status": "FINISH"},
        {"Function": "click_input()"},
        {"Args": "{}"},
        {"coordinates": "20, 30"},
        {"coordinates": []},
        {"Args": {"button": "thumb"}},
    ],
)
def test_the_prompts_form_is_taken_to_the_letter(tmp_path: Path, changes: dict[str, Any]) -> None:
    step = step_of(tmp_path, act())
    assert judged(step, said()).values[2] is True
    assert judged(step, said(**changes)).values[2] is False
    lacking = {key: value for key, value in WRITTEN.items() if key != "Thought"}
    assert judged(step, json.dumps(lacking)).values[2] is False


@given(st.text(min_size=1))
def test_every_text_presses_the_same_keys_as_itself(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    step = step_of(tmp_path_factory.mktemp("keys"), plain("keyboard_input", keys=text))
    for same in (text, text.replace("~", "{ENTER}")):
        assert judged(step, typed(same)).values[1]
