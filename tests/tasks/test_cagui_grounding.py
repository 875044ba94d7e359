"""CAGUI-Grounding: a point for a function or a text, a text for a box."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Box
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step, VerdictColumns
from tests.data.tiny import SIZE
from tests.loaders.published_forms import function, grounding, label
from tests.tasks.verbs import every_verb
from tests.trees import codes

NAMES = ["cap/0", "ocr/0/text2point", "ocr/0/bbox2text"]


def load(data: Path) -> LoadedDataset:
    return get_task("cagui-grounding").load(data)


def one(form: str, **changes: Any) -> Step:
    row = {**label(**changes), "form": form}
    return Step("a", "a", 0, 1, "", SIZE, {}, (), (), None, {"form": form}, row)


def right(step: Step, text: str, profile: str = "cagui-grounding", **options: str) -> Any:
    return get_task("cagui-grounding", options).profiles[profile].judge(step, text).values[0]


def test_both_files_are_read_in_their_three_forms(tmp_path: Path) -> None:
    source = load(grounding(tmp_path, [function()], [label()]))
    assert recognise(tmp_path) == ["cagui-grounding"]
    assert not source.findings
    assert [step.sample_id.removeprefix("code/") for step in source.steps] == NAMES
    assert [step.tags["form"] for step in source.steps] == ["fun2point", "text2point", "bbox2text"]
    first, second, third = source.steps
    assert (first.screen, first.instruction) == (SIZE, "该按钮打开菜单。")
    assert first.action and first.action.start == (Box(9, 20, 27, 40, "px"),)
    assert third.action is None
    assert (first.group, second.group, third.group) == ("cap/0.jpeg", "ocr/0.jpeg", "ocr/0.jpeg")


def test_without_pictures_the_row_tells_their_size(tmp_path: Path) -> None:
    source = load(grounding(tmp_path, [function()], [label()], pictures=False))
    assert not codes(source)
    assert {step.screen for step in source.steps} == {SIZE}


@pytest.mark.parametrize(
    ("changes", "code", "steps"),
    [
        ({"task": "bbox2colour"}, "task-unknown", 2),
        ({"text": " "}, "text-missing", 2),
        ({"abs_position": "<9, 20, 27>"}, "box-unusable", 2),
        ({"abs_position": "<27, 20, 9, 40>"}, "box-unusable", 2),
        ({"abs_position": [9, 20, 27, 40]}, "box-unusable", 2),
        ({"abs_position": "<9, 20, 73, 40>"}, "target-outside", 4),
    ],
)
def test_a_bad_row_is_a_finding(
    tmp_path: Path, changes: dict[str, Any], code: str, steps: int
) -> None:
    source = load(grounding(tmp_path, [], [label(), label(1, **changes)]))
    assert codes(source) == {code: 1}
    assert len(source.steps) == steps
    assert source.skipped == (steps == 2)


@pytest.mark.parametrize(
    ("x", "y", "hit"),
    [
        (125, 125, True),  # the corner (9, 20)
        (124, 125, False),
        (375, 250, True),
        (375, 251, False),
        (376, 250, False),
    ],
)
def test_a_point_on_the_edge_is_inside(x: int, y: int, hit: bool) -> None:
    step, text = one("text2point"), json.dumps({"POINT": [x, y]})
    for profile in ("cagui-grounding", "cagui-grounding-fixed"):
        assert right(step, text, profile) is hit
    shares = json.dumps({"POINT": [x / 1000, y / 1000]})
    assert right(step, shares, coordinates="rel") is hit


def test_one_pixel_outside_fails() -> None:
    step = one("fun2point")
    assert right(step, '{"POINT": [27, 40]}', coordinates="px")
    assert right(step, '{"POINT": [28, 40]}', coordinates="px") is False
    assert right(step, '{"POINT": [27, 41]}', coordinates="px") is False


def test_the_release_reads_json_alone_and_the_mended_profile_more() -> None:
    step = one("text2point")
    for text in ('It is {"POINT": [200, 200]}.', "at (200, 200)"):
        assert right(step, text) is False
        assert right(step, text, "cagui-grounding-fixed") is True


def test_a_text_with_a_space_is_never_right_as_released() -> None:
    plain, spaced = one("bbox2text"), one("bbox2text", text="1 微信")
    assert right(plain, "分 享\n") and right(plain, "分享")
    assert right(plain, "分享按钮") is False
    assert right(spaced, "1 微信") is False
    assert right(spaced, "1 微信", "cagui-grounding-fixed") is True
    assert right(spaced, "1\t微 信\n", "cagui-grounding-fixed") is True


def test_the_prompt_has_the_box_in_thousandths(tmp_path: Path) -> None:
    task = get_task("cagui-grounding")
    steps = task.load(grounding(tmp_path, [function()], [label()])).steps
    asked = [str(task.conversation(step)[-1].parts[-1].text) for step in steps]
    assert "该按钮打开菜单。" in asked[0]
    assert "分享" in asked[1]
    assert '{"bbox": [[125,125],[375,250]]}' in asked[2]
    assert "分享" not in asked[2]


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_what_the_release_reads_both_read(x: float, y: float) -> None:
    rules = get_task("cagui-grounding").profiles.values()
    text = json.dumps({"POINT": [x, y]})
    found = [rule.judge(one("text2point"), text).parsed for rule in rules]
    assert [tuple(parsed["point"]) for parsed in found if parsed] == [(x, y)] * 2


def test_every_verb_serves_it(tmp_path: Path) -> None:
    middle = function(1, abs_position="<30, 70, 42, 90>")
    data = grounding(tmp_path / "data", [function(), middle], [label()])
    found = every_verb("cagui-grounding", data, tmp_path, subset="bbox2text")
    assert found["center"]["by"]["form"]["fun2point"]["accuracy"] == 0.5
    assert found["oracle"]["by"]["form"]["bbox2text"]["accuracy"] == 1.0


def test_a_dialect_asks_for_places_and_leaves_texts_in_the_tasks_own_words(tmp_path: Path) -> None:
    data = grounding(tmp_path, [function()], [label()])
    own, spoken = (get_task("cagui-grounding", o) for o in ({}, {"dialect": "qwen2.5"}))
    steps = spoken.load(data).steps
    assert spoken.conversation(steps[2]) == own.conversation(steps[2])
    assert "该按钮打开菜单。" in str(spoken.conversation(steps[0]))
    profile = spoken.profiles["cagui-grounding"]
    arguments = {"action": "click", "coordinate": [18, 30]}
    call = f"<tool_call>{json.dumps({'name': 'mobile_use', 'arguments': arguments})}</tool_call>"
    texts = (call, "?", "分享")
    verdicts = [profile.judge(step, text) for step, text in zip(steps, texts, strict=True)]
    assert [verdict.values[0] for verdict in verdicts] == [True, False, True]
    assert verdicts[2].values[1:] == (None,) * 5
    assert profile.without_answer(steps[2], "api_error").values[1:] == (None,) * 5
    columns = np.array([verdict.values for verdict in verdicts], dtype=np.float64).T
    values = dict(zip(profile.values, columns, strict=True))
    rows = VerdictColumns(np.zeros(3, dtype=np.uint8), values, np.ones(3, dtype=np.bool_))
    counts = profile.total(steps, rows)["dialect"]
    assert (counts["answers"], counts["steps"], counts["in_own_words"]) == (2, 2, 1)
