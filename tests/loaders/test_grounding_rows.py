"""Rows of grounding as GUI-R1, UGround and OS-Atlas prepare them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnidata.actions import Box
from omnidata.errors import DataError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.data.tiny import SIZE, png
from tests.trees import write_lines


def load(task: str, data: Path, **options: str) -> LoadedDataset:
    """The steps of a dataset."""
    assert recognise(data) == [task]
    return get_task(task, options).load(data, check_media=False)


def right(task: str, source: LoadedDataset, text: str, profile: str, **options: str) -> Any:
    """Whether an answer to the first step is right."""
    return get_task(task, options).profiles[profile].judge(source.steps[0], text).values[0]


# GUI-R1: corners in pixels of the screenshot; `image_size` is the picture as it was fed.


def graded(**changes: Any) -> dict[str, Any]:
    """A row that GUI-R1's inference has written, without its picture."""
    return {
        "image": "",
        "instruction": "the home tab in word",
        "gt_bbox": [434, 159, 479, 182],
        "group": "Office",
        "ui_type": "text",
        "orig_w": 2560,
        "orig_h": 1440,
        "scale": [0.8421875, 0.8361111111111111],
        "image_size": [2156, 1204],
        "pred": "<answer>[{'action': 'click', 'point': [383, 138]}]</answer>",
        **changes,
    }


def test_gui_r1s_rows_have_corners_and_the_size_of_the_screenshot(tmp_path: Path) -> None:
    write_lines(tmp_path / "pro.json", [graded(), graded(group="web", ui_type="icon")])
    source = load("screenspot", tmp_path)
    first, second = source.steps
    assert not source.findings
    assert first.screen == (2560, 1440)
    assert first.action and first.action.start == (Box(434, 159, 479, 182, "px"),)
    assert first.tags == {
        "form": "screenspot-pro", "group": "Office", "ui_type": "text", "language": "en",
    }  # fmt: skip
    assert (second.tags["form"], second.tags["platform"]) == ("screenspot", "web")
    assert "group" not in second.tags
    task: Any = get_task("screenspot")
    assert task.target(first).text == "(0.1783, 0.1184)"
    assert right("screenspot", source, "(456, 170)", "screenspot", coordinates="px")
    assert not right("screenspot", source, "(383, 138)", "screenspot", coordinates="px")


def test_without_its_own_size_a_row_has_that_of_the_fed_picture(tmp_path: Path) -> None:
    row = graded(scale=[], image_size=[2548, 1428])
    del row["orig_w"], row["orig_h"]
    write_lines(tmp_path / "screenspot_test.json", [row, row | {"scale": [0.5, 0.5]}])
    source = load("screenspot", tmp_path)
    assert [step.screen for step in source.steps] == [(2548, 1428), (5096, 2856)]
    assert [found.code for found in source.findings] == ["size-fed"]
    task: Any = get_task("screenspot")
    assert task.benchmark.speech.fed_size(source.steps[0]) == (2548, 1428)


def test_gui_r1s_parquet_has_the_picture_inside(tmp_path: Path) -> None:
    row = {
        "image": {"bytes": png(1), "path": None},
        "instruction": "open",
        "ui_type": "icon",
        "gt_bbox": [8.0, 9.0, 24.0, 18.0],
        "group": "mobile",
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "screenspot_test.parquet")
    source = load("screenspot", tmp_path)
    (step,) = source.steps
    assert not source.findings
    assert step.screen == SIZE
    assert step.action and step.action.start == (Box(8, 9, 24, 18, "px"),)


# UGround: a planner's words for an element, and where the element is.


def described(**changes: Any) -> dict[str, Any]:
    """A row of UGround's `re_gpt-4o.jsonl`."""
    return {
        "bbox": [910, 78, 44, 34],
        "instruction": "close",
        "data_type": "icon",
        "data_source": "windows",
        "platform": "desktop",
        "scale": 1.4,
        "description": 'The "X" button at the top-right corner of the window.',
        "image": "pc_1.png",
        **changes,
    }


def test_ugrounds_rows_ask_for_what_the_planner_describes(tmp_path: Path) -> None:
    write_lines(tmp_path / "re_gpt-4o.jsonl", [described()])
    (step,) = load("screenspot", tmp_path).steps
    assert step.instruction == 'The "X" button at the top-right corner of the window.'
    assert step.action and step.action.start == (Box(910, 78, 954, 112, "px"),)
    assert (step.tags["form"], step.tags["platform"], step.tags["ui_type"]) == (
        "screenspot", "desktop", "icon",
    )  # fmt: skip
    assert step.media["screenshot"]


def test_each_box_of_a_query_is_right(tmp_path: Path) -> None:
    (tmp_path / "images" / "t1_u1").mkdir(parents=True)
    (tmp_path / "images" / "t1_u1" / "0.png").write_bytes(png(1))
    row = {"id": "t1_u1", "image": "t1_u1/0.png", "description": "Input field", "scale": 1.05}
    write_lines(
        tmp_path / "cross_task_query.jsonl", [row | {"bbox": [[1, 2, 5, 5], [40, 50, 9, 9]]}]
    )
    source = load("screenspot", tmp_path)
    (step,) = source.steps
    assert step.action and step.action.start == (Box(1, 2, 6, 7, "px"), Box(40, 50, 49, 59, "px"))
    assert "form" not in step.tags
    for point, is_right in {"(3, 4)": True, "(45, 55)": True, "(20, 20)": False}.items():
        assert right("screenspot", source, point, "screenspot", coordinates="px") is is_right


def planned(step: int = 0, **changes: Any) -> dict[str, Any]:
    """A row of UGround's `cross_task_plan.jsonl`."""
    return {
        "annotation_id": "t1",
        "action_uid": f"u{step}",
        "task": "Book a flight",
        "website": "united",
        "domain": "Travel",
        "subdomain": "Airlines",
        "operation": "CLICK",
        "value": "",
        "bbox": [[8.0, 90.0, 16.0, 9.0]],
        "previous_actions": ["[button]  Search -> CLICK"][:step],
        "step": step,
        "total_steps": 2,
        "split": "task",
        "blocks_path": f"t1_u{step}",
        "target_blocks": {"0": [], "1": [[8.0, 9.0, 16.0, 9.0]]},
        "ans_block": 0,
        "gpt_action": "CLICK",
        "gpt_value": "None",
        "description": "Search",
        "response": "ACTION: CLICK",
        **changes,
    }


def test_ugrounds_plans_are_steps_on_the_block_with_the_target(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "cross_task_plan.jsonl",
        [planned(1, operation="TYPE", value="Rome"), planned()],
    )
    for step in range(2):
        (tmp_path / "images" / f"t1_u{step}").mkdir(parents=True)
        (tmp_path / "images" / f"t1_u{step}" / "1.png").write_bytes(png(step))
    source = load("mind2web", tmp_path)
    first, second = source.steps
    assert not source.findings
    assert (first.sample_id, second.sample_id) == ("t1/u0", "t1/u1")
    assert first.action and first.action.start == (Box(8, 9, 24, 18, "px"),)
    assert (first.screen, first.tags["split"]) == (SIZE, "test_task")
    assert second.action and (second.action.kind, second.action.text) == ("type", "Rome")
    assert second.history == (first.action,)


def test_before_pages_are_cut_their_pictures_are_read(tmp_path: Path) -> None:
    row = planned(image="t1_u0.png")
    del row["blocks_path"], row["target_blocks"]
    write_lines(tmp_path / "sample.jsonl", [row])
    (step,) = load("mind2web", tmp_path).steps
    assert step.action and step.action.start == (Box(8, 90, 24, 99, "px"),)
    shot = step.media["screenshot"]
    assert shot and shot.path == "t1_u0.png"


def test_plans_for_androidcontrol_are_no_data(tmp_path: Path) -> None:
    said = {"action_type": "click", "element": "the menu"}
    row = {"episode_id": 7, "step": 2, "instruction": "Open", "image": "7/screenshot_2.png"}
    write_lines(tmp_path / "plan.jsonl", [row | {"reason": "It is there.", "action": said}])
    with pytest.raises(DataError, match=r"episode 7, step 2: these rows are a model's plans"):
        get_task("androidcontrol").load(tmp_path)


# OS-Atlas: boxes from 0 to 1, and a conversation a row.


def test_os_atlass_boxes_are_shares_of_the_picture(tmp_path: Path) -> None:
    own = {"img_filename": "a.png", "instruction": "open"}
    whole = ([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0], [0, 0.0, 1, 1])
    boxes = [[0.25, 0.5, 0.5, 1]] * 2 + [*whole]
    rows = [{**own, "bbox": box} for box in boxes]
    rows[1]["data_type"] = "text"
    write_lines(tmp_path / "amex_raw.json", rows)
    source = load("screenspot", tmp_path)
    found = [step.action and step.action.start for step in source.steps]
    assert found == [(Box(0.25, 0.5, 0.5, 1, "rel"),)] * 2 + [(Box(0, 0, 1, 1, "rel"),)] * 3
    assert not any("form" in step.tags for step in source.steps)
    assert right("screenspot", source, "(0.3, 0.75)", "screenspot")


def spoken(image: str, task: str, action: str, custom: str) -> dict[str, Any]:
    """A row of OS-Atlas's test files."""
    asked = (
        f"...\nCustom Action 3: {custom}\n...\nScreenshot: <image>\nTask: {task}\nHistory: \nNone\n"
    )
    turns = [{"from": "human", "value": asked}, {"from": "gpt", "value": action}]
    return {"id": 1, "image": f"/a/b/screenshots/{image}", "conversations": turns}


def test_os_atlass_conversations_are_steps_of_episodes(tmp_path: Path) -> None:
    (tmp_path / "screenshots").mkdir()
    for number in range(2):
        (tmp_path / "screenshots" / f"episode_140_screenshot_{number}.png").write_bytes(png(number))
    goal = "Share my book. You need to: "
    told = "thoughts:\n{}\nactions:\n{}"
    rows = [
        spoken(
            "episode_140_screenshot_0.png", f"{goal}open the app.",
            told.format("open the app.", "OPEN_APP [PocketBook]"), "OPEN_APP",
        ),
        spoken(
            "episode_140_screenshot_1.png", f"{goal}press the book.",
            told.format("press it", "LONG_PRESS <point>[[500,250]]</point>"), "OPEN_APP",
        ),
    ]  # fmt: skip
    write_lines(tmp_path / "ac_test.jsonl", rows)
    source = load("androidcontrol", tmp_path)
    first, second = source.steps
    assert not source.findings
    assert [step.sample_id for step in source.steps] == ["140/0", "140/1"]
    assert first.instruction == "Share my book."
    assert first.action and (first.action.label, first.action.app) == ("OPEN_APP", "PocketBook")
    assert second.action and second.action.label == "LONG_PRESS"
    assert second.history == (first.action,)
    low = get_task("androidcontrol", {"level": "low"}).load(tmp_path, check_media=False).steps[0]
    assert low.source["step_instructions"] == ["open the app."]


@pytest.mark.parametrize("roles", [False, True])
def test_os_atlass_rows_of_gui_odyssey_are_gui_odysseys(roles: bool, tmp_path: Path) -> None:
    """The turns may have roles, and a system."""
    row = spoken("9187_0.png", "Post it.", "actions:\nSCROLL [UP]", "IMPOSSIBLE")
    if roles:
        said = [turn["value"] for turn in row["conversations"]]
        pairs = zip(("system", "user", "assistant"), ("You are helpful.", *said), strict=True)
        row["conversations"] = [{"role": role, "content": text} for role, text in pairs]
    write_lines(tmp_path / ("rows.jsonl" if roles else "gui_odyssey_test.jsonl"), [row])
    (step,) = load("gui-odyssey", tmp_path).steps
    assert (step.sample_id, step.instruction) == ("9187/0", "Post it.")
    assert step.action and step.action.label == "SWIPE_UP"
