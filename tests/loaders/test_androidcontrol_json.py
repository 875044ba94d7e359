"""AndroidControl as JSON: the forms that others prepare it in are the same steps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.data.tiny import SIZE, png
from tests.loaders import step_rows
from tests.loaders.phones import CLICK, SCREEN, SCROLL, episode, records
from tests.loaders.published_forms import PAMS, prepared
from tests.tasks.verbs import every_verb
from tests.trees import codes, write_lines

LABELS = ["TAP", "SWIPE_UP", "INPUT", "OPEN_APP", "HOME", "BACK", "WAIT", "LONG_PRESS"]


def load(data: Path, **options: str) -> LoadedDataset:
    return get_task("androidcontrol", options).load(data)


def rows(folder: Path, *lines: Any) -> Path:
    """JSON lines, with the pictures that they name."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for number in range(len(lines)):
        (folder / "images" / f"{number}.png").write_bytes(png(number))
    return write_lines(folder / "test.jsonl", lines)


def row(number: int = 0, action: Any = "CLICK <point>[[500, 250]]</point>", **more: Any) -> Any:
    """A step in the form that training repositories use."""
    return {"task": "Set an alarm", "image_path": f"images/{number}.png", "action": action, **more}


def graded(number: int = 0, gt_action: str = "click", **more: Any) -> Any:
    """A row of GUI-R1, whose picture alone says how large the screen is."""
    plain = step_rows.graded(gt_action, place=(36, 80), image=f"images/{number}.png")
    told = {key: value for key, value in plain.items() if key not in ("group", "orig_w", "orig_h")}
    return {**told, "task_type": "high", **more}


def printed(folder: Path, whole: dict[str, Any], tree: str) -> Path:
    """An episode with its screenshots as files, and a tree of each as text."""
    (folder / "shots").mkdir(parents=True)
    paths = [f"shots/{number}.png" for number in range(len(whole["screenshots"]))]
    for path, shot in zip(paths, whole["screenshots"], strict=True):
        (folder / path).write_bytes(shot)
    left = ("screenshots", "accessibility_trees")
    told = {key: value for key, value in whole.items() if key not in left}
    told |= {"screenshot_path": paths, "accessibility_tree": [tree] * len(paths)}
    return write_lines(folder / "data.jsonl", [told])


def test_the_prepared_test_set_is_read(tmp_path: Path) -> None:
    source = load(prepared(tmp_path))
    assert recognise(tmp_path) == ["androidcontrol"]
    assert not source.findings
    assert [step.sample_id for step in source.steps] == [f"3/{n}" for n in range(len(PAMS))]
    assert [step.action.label for step in source.steps if step.action] == LABELS
    step = source.steps[-1]
    assert (step.instruction, step.screen, len(step.history)) == ("Set an alarm", SIZE, 7)
    assert step.media.keys() == {"screenshot", "final_screenshot"}
    assert step.source["row"] == PAMS[-1]
    low = get_task("androidcontrol", {"level": "low"})
    assert "Goal: Do 7" in str(low.conversation(step)[-1].parts[-1].text)


def test_a_record_and_its_json_are_the_same_steps_and_judged_alike(tmp_path: Path) -> None:
    whole = episode(CLICK, SCROLL, {"action_type": "input_text", "text": "7:30"})
    truth = load(records(tmp_path / "tf" / "android_control", whole))
    screen = f"right: {SCREEN[0]} bottom: {SCREEN[1]}"
    edges = (screen, screen, "left: 40 top: 90 right: 60 bottom: 110")
    tree = "\n".join(f"bounds_in_screen {{ {each} }}" for each in edges)
    source = load(printed(tmp_path / "json", whole, tree))
    assert not source.findings
    assert [(a.sample_id, a.action, a.screen, a.history) for a in source.steps] == [
        (b.sample_id, b.action, b.screen, b.history) for b in truth.steps
    ]
    task = get_task("androidcontrol")
    answers = [f'{{"action_type": "click", "coordinate": [{x}, 500]}}' for x in range(0, 1001, 50)]
    for name in ("agentcpm-ac-fixed", "agentcpm-ac", "os-atlas-ac"):
        judge = task.profiles[name].judge
        for text in answers:
            assert judge(source.steps[0], text) == judge(truth.steps[0], text)


@pytest.mark.parametrize(
    ("line", "label"),
    [
        (row(), "TAP"),
        (row(action="CLICK [[500, 250]]"), "TAP"),
        (row(action="LONG_PRESS <point>[[500, 250]]</point>"), "LONG_PRESS"),
        (row(action="SCROLL [UP]"), "SWIPE_DOWN"),
        (row(action="TYPE [7:30 [am]]"), "INPUT"),
        (row(action="OPEN_APP [Clock]"), "OPEN_APP"),
        (row(action="PRESS_BACK"), "BACK"),
        (row(action="WAIT"), "WAIT"),
        (row(action=json.dumps(CLICK)), "TAP"),
        (row(action=SCROLL), "SWIPE_UP"),
        (row(action={"action": "swipe", "coordinate": [9, 90], "coordinate2": [9, 9]}), "SWIPE_UP"),
        ({"goal": "a", "image": "images/0.png", **CLICK}, "TAP"),
        (graded(), "TAP"),
        (graded(gt_action="scroll", gt_bbox=[-100, -100], gt_input_text="DOWN"), "SWIPE_UP"),
        (graded(gt_action="type", gt_input_text="7:30"), "INPUT"),
        (graded(gt_action="open_app", gt_input_text="Clock"), "OPEN_APP"),
        (graded(gt_action="press_back"), "BACK"),
    ],
)
def test_a_row_of_every_form_is_a_step(tmp_path: Path, line: Any, label: str) -> None:
    source = load(rows(tmp_path, line))
    assert not source.findings
    (step,) = source.steps
    assert step.action and step.action.label == label
    assert (step.sample_id, step.screen, step.num_steps) == ("test/0", SIZE, 1)
    assert step.media["screenshot"] and step.media["screenshot"].path == "images/0.png"


def test_rows_of_one_episode_belong_together(tmp_path: Path) -> None:
    told = [row(n, "WAIT", episode_id="7", step_id=n) for n in range(2)]
    source = load(rows(tmp_path, *told, row(2, "WAIT"), row(3, "WAIT")))
    assert [step.sample_id for step in source.steps] == ["7/0", "7/1", "test/2", "test/3"]
    assert [len(step.history) for step in source.steps] == [0, 1, 0, 0]
    assert [step.episode for step in source.steps] == ["7", "7", "test/2", "test/3"]
    # Nothing else tells which rows without an episode are of one.
    assert [step.group for step in source.steps] == ["7", "7", "Set an alarm", "Set an alarm"]


def test_a_box_of_a_row_is_its_element(tmp_path: Path) -> None:
    (step,) = load(rows(tmp_path, graded(gt_bbox=[0, 0, 72, 20]))).steps
    task = get_task("androidcontrol")
    text = '{"action_type": "click", "coordinate": [1000, %d]}'
    found = [task.profiles["uground-ac"].judge(step, text % y).values[:2] for y in (124, 125, 126)]
    assert found == [(True, True), (True, True), (True, False)]


@pytest.mark.parametrize(
    ("line", "code", "steps"),
    [
        (row(action="COMPLETE"), "action-unusable", 2),
        (row(action="CLICK the button"), "action-unusable", 2),
        (row(action={"action": "swipe"}), "action-unusable", 2),
        (row(action={"action": "system_button", "button": "Menu"}), "action-unusable", 2),
        (row(action=7), "action-unusable", 2),
        (graded(gt_bbox=[1]), "action-unusable", 2),
        (graded(gt_bbox=[0.5, 0.25]), "target-tiny", 2),
        (graded(gt_bbox=[300, 80]), "target-outside", 2),
        (row(task=""), "instruction-missing", 1),
        (row(action="WAIT", image_path="../0.png"), "path-unsafe", 2),
        (row(action="WAIT", image_path="images/9.png"), "media-broken", 2),
        (row(width=-1, height=7), "size-unusable", 2),
        ({"episode": {"episode_id": 4, "goal": "Go"}, "actions": []}, "row-unusable", 1),
        (3, "json-invalid", 1),
    ],
)
def test_a_bad_row_is_a_finding(tmp_path: Path, line: Any, code: str, steps: int) -> None:
    source = load(rows(tmp_path, row(), line))
    assert codes(source) == {code: 1}
    assert (len(source.steps), source.skipped) == (steps, 2 - steps)


def test_the_low_level_needs_an_instruction_of_the_step(tmp_path: Path) -> None:
    wait = row(0, "WAIT", step_instruction="Wait")
    tap = graded(1, task_type="low", instruction="Tap")
    source = load(rows(tmp_path, wait, tap, row(2, "WAIT")), level="low")
    assert codes(source) == {"instruction-missing": 1}
    task = get_task("androidcontrol", {"level": "low"})
    goals = [str(task.conversation(step)[-1].parts[-1].text) for step in source.steps]
    assert [goal.splitlines()[0] for goal in goals] == ["Goal: Wait", "Goal: Tap"]


def test_json_beside_its_records_is_passed_over(tmp_path: Path) -> None:
    records(tmp_path / "android_control", episode())
    prepared(tmp_path)
    assert [step.sample_id for step in load(tmp_path).steps] == ["3/0", "3/1"]


KEYS = (
    *("action", "action_type", "coordinate", "coordinate2", "direction", "gt_action"),
    *("gt_bbox", "gt_input_text", "text", "button", "x", "y"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=3),
            inner | st.sampled_from(["click", "swipe", "scroll", "system_button", "type", "down"]),
            max_size=5,
        )
    ),
    max_leaves=9,
)


@given(JSON | st.text(alphabet="CLIKTYPESRO_ []()<>0123456789.,-", max_size=40))
def test_an_action_of_any_shape_is_a_step_or_a_finding(
    tmp_path_factory: pytest.TempPathFactory, action: Any
) -> None:
    source = load(rows(tmp_path_factory.mktemp("any"), row(), row(1, action)))
    assert source.steps[0].action
    assert len(source.steps) + source.skipped == 2
    assert len(source.findings) == sum(step.action is None for step in source.steps)


@given(st.text(alphabet="bounds_in_screen{} left:top12-\n", max_size=200))
def test_no_printed_tree_is_too_odd(tmp_path_factory: pytest.TempPathFactory, tree: str) -> None:
    (step,) = load(printed(tmp_path_factory.mktemp("any"), episode(CLICK), tree)).steps
    assert step.action and step.action.label == "TAP"


def test_every_verb_serves_it(tmp_path: Path) -> None:
    data = prepared(tmp_path / "data", *PAMS[:4])
    other = prepared(tmp_path / "more", *PAMS[4:], own="4")
    data.write_text(json.dumps(json.loads(data.read_text()) + json.loads(other.read_text())))
    shutil.copytree(other.parent / "images", data.parent / "images", dirs_exist_ok=True)
    (data.parent / "splits.json").write_text(json.dumps({"train": [3], "test": [4]}))
    found = every_verb("androidcontrol", data.parent, tmp_path, subset="test")
    assert found["oracle"]["by"]["split"].keys() == {"train", "test"}


@pytest.mark.parametrize("box", [[30, 70, 40, 90], [[30, 70, 40, 90]]])
def test_a_box_alone_is_a_list_of_one(tmp_path: Path, box: list[Any]) -> None:
    action = {"action": "click", "coordinate": [36, 80]}
    [step] = load(rows(tmp_path, row(0, action, candidate_bbox=box))).steps
    assert step.source["boxes"] == [[30, 70, 40, 90]]
