"""GUI-Odyssey: its annotations, its commands, and the action matching score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Point
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step
from tests.data.tiny import SIZE, png
from tests.loaders.published_forms import ACTS, TAP, act, odyssey
from tests.tasks.verbs import every_verb
from tests.trees import codes

TASK: Any = get_task("gui-odyssey")


def load(data: Path, **options: str) -> LoadedDataset:
    return get_task("gui-odyssey", options).load(data)


def one(row: dict[str, Any]) -> Step:
    return Step("E1/0", "E1", 0, 1, "Buy tea", SIZE, {}, (), (), None, {}, row)


def judged(row: dict[str, Any], text: str, profile: str = "odyssey-ams") -> tuple[Any, ...]:
    """Type match and exact match."""
    return get_task("gui-odyssey").profiles[profile].judge(one(row), text).values[:2]


def test_an_episode_is_read_with_its_splits_and_its_sharded_screenshots(tmp_path: Path) -> None:
    data = odyssey(odyssey(tmp_path), TAP, own="E2")
    parts = {"train": ["E1.json"], "test": ["E2.json"]}
    (data / "splits" / "random_split.json").write_text(json.dumps(parts))
    source = load(data)
    assert recognise(data) == ["gui-odyssey"]
    assert not source.findings
    step = source.steps[3]
    assert (step.sample_id, step.episode, step.group) == ("E1/3", "E1", "buy {}")
    assert (step.screen, step.num_steps, len(step.history)) == (SIZE, len(ACTS), 3)
    assert step.tags == {
        "category": "Web_Shopping", "device": "Pixel Fold", "random_split": "random_train",
    }  # fmt: skip
    assert source.steps[-1].tags["random_split"] == "random_test"
    shot = step.media["screenshot"]
    assert shot and shot.path == "shard_0/E1_3.png"
    assert [each.action.label for each in source.steps[: len(ACTS)] if each.action] == [
        "TAP", "RECENT", "SWIPE_UP", "INPUT", "LONG_PRESS", "BACK", "HOME", "TASK_COMPLETE",
    ]  # fmt: skip


def test_the_screen_is_the_pictures_where_a_device_is_turned(tmp_path: Path) -> None:
    data = odyssey(tmp_path, TAP, TAP)
    turned = data / "screenshots" / "shard_0" / "E1_0.png"
    turned.write_bytes(png(0, SIZE[::-1]))
    turned.with_name("E1_1.png").unlink()
    first, second = load(data).steps
    assert (first.screen, second.screen) == (SIZE[::-1], SIZE)
    assert second.history_screens == (SIZE[::-1],)


def test_a_file_of_all_episodes_is_read_where_there_is_no_other(tmp_path: Path) -> None:
    data = odyssey(tmp_path, TAP)
    path = data / "annotations" / "E1.json"
    whole = json.dumps([json.loads(path.read_text())])
    (data / "all_anno.json").write_text(whole)
    assert [step.sample_id for step in load(data).steps] == ["E1/0"]
    path.unlink()
    assert [step.sample_id for step in load(data).steps] == ["E1/0"]


def test_the_low_level_tells_the_instruction_of_the_step(tmp_path: Path) -> None:
    data = odyssey(tmp_path, TAP, {**TAP, "low_level_instruction": ""})
    source = load(data, level="low")
    assert codes(source) == {"instruction-missing": 1}
    assert source.skipped == 1
    told = get_task("gui-odyssey", {"level": "low"}).conversation(source.steps[0])[-1]
    assert "Goal: Now CLICK" in str(told.parts[-1].text)


@pytest.mark.parametrize(
    ("row", "code", "usable"),
    [
        (act("CLICK", [500, 480]), "action-unusable", False),
        (act("CLICK", "KEY_MENU"), "action-unusable", False),
        (act("SCROLL", [[1, 2]]), "action-unusable", False),
        (act("TEXT", 7), "action-unusable", False),
        (act("KNOCK"), "action-unusable", False),
        (act("CLICK", [[float("nan"), 3]]), "action-unusable", False),
        (act("CLICK", [[1200, 480]]), "target-outside", True),
        (act("CLICK", [[500, 480]], [9, 9, 3, 3]), "box-unusable", True),
    ],
)
def test_a_bad_row_is_a_finding(
    tmp_path: Path, row: dict[str, Any], code: str, usable: bool
) -> None:
    source = load(odyssey(tmp_path, TAP, row))
    assert codes(source) == {code: 1}
    assert [step.action is not None for step in source.steps] == [True, usable]
    (finding,) = source.findings
    assert finding.sample_ids == ("E1/1",)


def test_a_bad_episode_is_a_finding(tmp_path: Path) -> None:
    data = odyssey(tmp_path, TAP)
    odyssey(data, TAP, own="E2", steps=None)
    odyssey(data, TAP, own="E3", task_info={"category": "a"})
    odyssey(data, TAP, own="E4", step_length=9)
    (data / "splits" / "app_split.json").write_text('{"train": 7, "test": []}')
    source = load(data)
    assert codes(source) == {
        "episode-unusable": 1, "instruction-missing": 1, "lengths-differ": 1, "splits-unusable": 1,
    }  # fmt: skip
    assert (source.skipped, len(source.steps)) == (2, 2)


@pytest.mark.parametrize(
    ("row", "text", "verdict"),
    [
        (TAP, "CLICK: (450, 500)", (True, True)),  # the element's corner
        (TAP, "CLICK: (500, 340)", (True, True)),  # 140 thousandths above
        (TAP, "CLICK: (500, 339)", (True, False)),
        (TAP, "LONG_PRESS: (500, 480)", (False, False)),
        (act("CLICK", [[100, 100]], [100, 100, 400, 400]), "CLICK: (400, 400)", (True, True)),
        (act("CLICK", [[100, 100]], [100, 100, 400, 400]), "CLICK: (401, 400)", (True, False)),
        (TAP, "CLICK: the button", (False, False)),
        (TAP, '{"action_type": "CLICK", "coordinate": [500, 480]}', (True, True)),
        (TAP, '{"POINT": [500, 480]}', (True, True)),
        (act("SCROLL", [[500, 800], [480, 200]]), "SCROLL: up", (True, True)),
        (act("SCROLL", [[500, 800], [480, 200]]), "SCROLL: DOWN", (True, False)),
        (act("TEXT", "tea"), "TYPE: green tea", (True, True)),
        (act("TEXT", "abcd"), "TYPE: abxy", (True, True)),  # half of it
        (act("TEXT", "abcd"), "TYPE: axyz", (True, False)),
        (act("CLICK", "KEY_HOME"), "PRESS_HOME", (True, True)),
        (act("CLICK", "KEY_HOME"), "PRESS_RECENT", (False, False)),
        (act("INCOMPLETE"), "IMPOSSIBLE", (True, True)),
        (act("INCOMPLETE"), "COMPLETE", (False, False)),
    ],
)
def test_the_score_is_that_of_the_paper(
    row: dict[str, Any], text: str, verdict: tuple[bool, bool]
) -> None:
    assert judged(row, text) == verdict
    assert judged(row, text, "odyssey-ams-fixed") == verdict


def test_what_is_broken_is_mended() -> None:
    late = act("TEXT", "12:30")
    assert judged(late, "TYPE: 12:99") == judged(late, "TYPE: ") == (True, True)
    assert judged(late, "TYPE: ", "odyssey-ams-fixed") == (True, False)
    named = act("TEXT", "Note: buy tea")
    assert judged(named, "TYPE: Note: sell the car now") == (True, True)
    assert judged(named, "TYPE: Note: sell the car now", "odyssey-ams-fixed") == (True, False)


def test_agentcpm_has_its_own_preparation() -> None:
    recent = act("CLICK", "KEY_APPSELECT")
    assert judged(recent, "PRESS_HOME", "agentcpm") == (True, True)
    assert judged(recent, "PRESS_HOME", "agentcpm-fixed") == (True, False)
    wide = act("CLICK", [[100, 100]], [100, 100, 400, 400])
    assert judged(wide, '{"POINT": [400, 400]}', "agentcpm") == (True, False)
    assert judged(wide, '{"POINT": [400, 400]}', "agentcpm-fixed") == (True, True)


@given(st.integers(-9, 1010), st.integers(-9, 1010))
def test_a_command_and_json_name_the_same_place(x: int, y: int) -> None:
    named = TASK.history_action(one(TAP), f"CLICK: ({x}, {y})")
    assert named == Action("tap", (Point(x, y, "norm1000"),))
    said = json.dumps({"action_type": "CLICK", "coordinate": [x, y]})
    assert judged(TAP, f"CLICK: ({x}, {y})") == judged(TAP, said)


def test_every_verb_serves_it(tmp_path: Path) -> None:
    data = odyssey(odyssey(tmp_path / "data"), *ACTS[:3], ACTS[-1], own="E2")
    found = every_verb("gui-odyssey", data, tmp_path, subset="Web_Shopping")
    assert found["oracle"]["overall"]["SR"] == 1.0
    assert found["center"]["overall"]["EM"] == 2 / 12  # both taps are near the middle
