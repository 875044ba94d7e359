"""AndroidControl's episodes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnidata
from omnidata import media
from omnidata.actions import Action, Point
from omnidata.data.convert import convert
from omnidata.errors import DataError, MediaError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.tasks.androidcontrol.load import dump
from omnidata.types import Step
from tests.loaders import phones
from tests.loaders.omnibench import codes
from tests.loaders.phones import CLICK, SCREEN, SCROLL, episode, forest, records

TASK: Any = omnidata.get_task("androidcontrol")
load = TASK.load
WHOLE = (0, 0, *SCREEN)
EPISODES = (episode(), episode(CLICK, number=4, note=["kept"]))


def truth(step: Step) -> Any:
    return TASK.benchmark.truth(step.source, step.screen)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    records(folder / "android_control-00000-of-00002", EPISODES[0])
    records(folder / "android_control-00001-of-00002", EPISODES[1])
    (folder / "splits.json").write_text(json.dumps({"train": [3], "test": [4]}))
    return folder


def test_a_record_is_an_episode_with_a_screen_after_the_last_action(data: Path) -> None:
    source = load(data)
    assert recognise(data) == ["androidcontrol"]
    assert not source.findings
    assert [(s.sample_id, dict(s.tags)) for s in source.steps] == [
        ("3/0", {"split": "train"}), ("3/1", {"split": "train"}), ("4/0", {"split": "test"}),
    ]  # fmt: skip
    first, last, _ = source.steps
    assert (first.num_steps, first.screen, first.instruction) == (2, SCREEN, "Set an alarm")
    assert first.media.keys() == {"screenshot"}
    shots = [first.media["screenshot"], last.media["screenshot"], last.media["final_screenshot"]]
    assert [media.read_bytes(shot) for shot in shots if shot] == EPISODES[0]["screenshots"]
    assert last.history == (first.action,)
    assert first.action == Action("tap", (Point(45, 100, "px"),))
    assert last.action == Action.of("SWIPE_UP", words="scroll down")
    assert last.source["step_instructions"] == ["Do 0", "Do 1"]
    assert list(dump(source)) == [dict(each) for each in EPISODES]


def test_datasets_get_it_by_split(data: Path) -> None:
    found = omnidata.load_dataset("androidcontrol", data, "TRAIN", split="test")
    assert found["sample_id"][:] == ["3/0", "3/1"]
    assert found[1]["final_screenshot"]["bytes"] == EPISODES[0]["screenshots"][2]


def test_boxes_come_from_the_forest_of_the_same_screen(tmp_path: Path) -> None:
    trees = [forest((WHOLE, [(9, 20, 45, 60)])), forest((WHOLE, [])), b""]
    data = records(tmp_path / "a", episode(CLICK, CLICK, accessibility_trees=trees))
    first, second = (truth(step) for step in load(data).steps)
    assert first.rects == ((0.0, 0.0, 1.0, 1.0), (0.1, 0.1, 0.2, 0.4))
    assert first.action == Action("tap", (Point(0.5, 0.5, "rel"),))
    assert second.rects == ((0.0, 0.0, 1.0, 1.0),)


@pytest.mark.parametrize(
    ("action", "kind", "label", "words"),
    [
        (CLICK, "tap", "TAP", None),
        ({"action_type": "long_press", "x": 1, "y": 2}, "long_press", "LONG_PRESS", None),
        ({"action_type": "scroll", "direction": "up"}, "swipe", "SWIPE_DOWN", "scroll up"),
        ({"action_type": "scroll", "direction": "left"}, "swipe", "SWIPE_RIGHT", "scroll left"),
        ({"action_type": "open_app", "app_name": "Zoho"}, "open_app", "OPEN_APP",
         'OPEN_APP app: "Zoho"'),
        ({"action_type": "type", "x": 1, "y": 2, "text": "a"}, "type", "INPUT",
         'INPUT text: "a", then ENTER'),
        ({"action_type": "input_text", "text": "a"}, "type", "INPUT", None),
        ({"action_type": "navigate_home"}, "home", "HOME", None),
        ({"action_type": "navigate_back"}, "back", "BACK", None),
        ({"action_type": "wait"}, "wait", "WAIT", "NONE"),
    ],
)  # fmt: skip
def test_all_nine_actions_are_read(
    tmp_path: Path, action: dict[str, Any], kind: str, label: str, words: str | None
) -> None:
    source = load(records(tmp_path / "a", episode(action)))
    (step,) = source.steps
    assert not source.findings
    assert truth(step).action.kind == kind
    assert step.action and (step.action.label, step.action.words) == (label, words)


@pytest.mark.parametrize(
    "action",
    [
        "{", "[]", "4", '{"action_type": 4}', '{"action_type": "swipe"}', "[" * 9000,
        {"action_type": "click", "x": 1}, {"action_type": "click", "x": "1", "y": 2},
        {"action_type": "click", "x": True, "y": 2}, '{"action_type": "click", "x": NaN, "y": 1}',
        {"action_type": "scroll", "direction": "sideways"}, {"action_type": "open_app"},
        {"action_type": "input_text", "text": 3},
        "__import__('os').remove('x')",
    ],
)  # fmt: skip
def test_an_action_that_is_none_is_a_finding_and_stays_as_it_is(
    tmp_path: Path, action: Any
) -> None:
    source = load(records(tmp_path / "a", episode(action, SCROLL)))
    assert codes(source.findings) == {"action-unusable": 1}
    assert source.findings[0].where == "3/0"
    assert source.steps[0].action is None
    assert source.steps[1].history == (None,)
    text = action if isinstance(action, str) else json.dumps(action)
    assert source.steps[0].source["actions"][0] == text


def test_a_click_off_the_screen_is_doubtful(tmp_path: Path) -> None:
    edge = {"action_type": "click", "x": SCREEN[0], "y": SCREEN[1]}
    off = {"action_type": "click", "x": SCREEN[0] + 1, "y": 0}
    source = load(records(tmp_path / "a", episode(edge, off)))
    assert [(f.code, f.where) for f in source.findings] == [("target-outside", "3/1")]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"screenshots": [phones.png(1)] * 2}, "2 screenshots"),
        ({"accessibility_trees": []}, "0 accessibility_trees"),
        ({"step_instructions": ["a"]}, "1 step_instructions"),
        ({"screenshot_widths": [SCREEN[0]] * 4}, "4 screenshot_widths"),
    ],
)
def test_lists_of_other_lengths_are_found_and_the_rest_is_read(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    source = load(records(tmp_path / "a", episode(**changes)))
    assert codes(source.findings) == {"lengths-differ": 1}
    assert f"2 actions, but {says}" in source.findings[0].what
    assert len(source.steps) == 2


def test_broken_forests_and_pictures_are_found(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "accessibility_trees": [forest((WHOLE, []))[:-1], b"\xff", b""],
        "screenshots": [phones.png(1)[:-9], phones.png(2, (80, 200)), b"x"],
    }
    source = load(records(tmp_path / "a", episode(**changes)))
    assert codes(source.findings) == {"forest-broken": 2, "media-broken": 3}
    named = [(f.where, f.sample_ids) for f in source.findings if f.code == "media-broken"]
    assert named == [("3/0", ("3/0",)), ("3/1", ("3/1",)), ("3/2", ("3/1",))], (
        "the last screenshot is the last step's"
    )
    assert truth(source.steps[0]).rects == ()
    quiet = load(tmp_path / "a", check_media=False)
    assert codes(quiet.findings) == {"forest-broken": 2}


@given(st.binary(max_size=80))
def test_no_bytes_of_a_forest_break_the_step(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    whole = episode(CLICK, accessibility_trees=[content, b""])
    (step,) = load(records(tmp_path_factory.mktemp("any") / "a", whole)).steps
    with suppress(MediaError):
        assert get_task("androidcontrol", {"observation": "a11y"}).conversation(step)


def test_a_forest_of_more_bytes_than_can_be_unpacked_again_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.tasks.androidcontrol.forest.MAX_BYTES", 10)
    trees = [forest((WHOLE, [])), b""]
    (found,) = load(records(tmp_path / "a", episode(CLICK, accessibility_trees=trees))).findings
    assert found.code == "forest-broken" and "more than 10 bytes" in found.what


def test_records_that_are_no_episodes_are_skipped(tmp_path: Path) -> None:
    data = records(
        tmp_path / "a", episode(), episode(), episode(number=5, actions=[]),
        episode(number=6, episode_id=["x"]), {"a": [1]}, episode(number=7),
    )  # fmt: skip
    source = load(data)
    assert codes(source.findings) == {"id-repeated": 1, "episode-empty": 3}
    assert source.skipped == 4
    assert [f.where for f in source.findings] == [f"{data}, record {n}" for n in range(1, 5)]
    assert {s.episode_id for s in source.steps} == {"3", "7"}


def test_a_broken_file_is_found_and_the_others_are_read(data: Path) -> None:
    broken = data / "android_control-00001-of-00002"
    broken.write_bytes(broken.read_bytes()[:-400])
    source = load(data)
    assert codes(source.findings) == {"record-broken": 1}
    assert source.findings[0].where == f"{broken}, record 0"
    assert (len(source.steps), source.skipped) == (2, 1)
    with pytest.raises(DataError, match="no row of androidcontrol could be read"):
        load(broken)
    with pytest.raises(DataError, match="1 finding,"):
        load(data, strict=True)


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "[3]", "[" * 9000, '{"train": 3}', '{"train": "34"}',
        '{"train": [3], "test": [3, 4]}',
    ],
)  # fmt: skip
def test_splits_that_cannot_be_read_are_passed_over(data: Path, text: str) -> None:
    before = load(data).fingerprint
    (data / "splits.json").write_text(text)
    source = load(data)
    assert codes(source.findings) == {"splits-unusable": 1}
    assert not any(step.tags for step in source.steps)
    assert source.fingerprint != before


@pytest.mark.parametrize("width", [-90, 0, 2**62])
def test_a_size_that_no_screen_has_is_unknown(tmp_path: Path, width: int) -> None:
    records(tmp_path / "data" / "a", episode(SCROLL, screenshot_widths=[width] * 2))
    source = load(tmp_path / "data")
    assert codes(source.findings) == {"size-unusable": 2, "media-broken": 2}
    assert source.steps[0].screen == (0, 0)
    convert(source, tmp_path / "parquet", embed=True)
    assert load(tmp_path / "parquet").steps[0].screen == (0, 0)
