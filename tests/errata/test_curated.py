"""AndroidControl-Curated's files, as its released code reads them, made into errata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import as_json, omnidata
from tests.errata import made
from tests.loaders import phones
from tests.trees import read_lines, write_lines

WAIT, BACK = {"action_type": "wait"}, {"action_type": "navigate_back"}
OPEN = {"action_type": "open_app", "app_name": "Clock"}
TYPE = {"action_type": "input_text", "text": "7:30"}
BOX = [30, 80, 70, 120]


def past(*steps: int) -> str:
    """The instructions of earlier steps, as `phones.episode` names them."""
    lines = (f"Step {number}: Do {step}\n" for number, step in enumerate(steps, 1))
    return " \n" + "".join(lines) + "\n"


def curated(action: str, before: str | None = None, **more: Any) -> dict[str, Any]:
    """A row of high level; without a history one of low level."""
    told = {"image": "android_control_high/image_1.jpg", "instruction": "Set an alarm"}
    told |= {"gt_action": action, "group": "android", "ui_type": action}
    return {**told, **({} if before is None else {"history": before}), **more}


def click(before: str | None = None, **more: Any) -> dict[str, Any]:
    return curated("click", before, **{"gt_coordinate": [45, 100], "gt_max_bbox": BOX, **more})


def converted(data: Path, out: Path, *rows: Any, code: int = 0) -> tuple[list[Any], list[Any]]:
    """The lines of the errata, and what was found."""
    file = out.with_name("android_control_high_bbox.json")
    file.write_text(json.dumps(rows))
    convert = ("convert", "androidcontrol", data, out, "--errata", file, "--json")
    found = as_json(omnidata(*convert, code=code))
    return read_lines(out), found["findings"]


def test_rows_correct_the_steps_with_their_instruction_history_and_action(tmp_path: Path) -> None:
    data = made.control(tmp_path / "data", phones.CLICK, OPEN, phones.CLICK, TYPE, phones.SCROLL)
    other = {"action_type": "scroll:up"}, {"action_type": "click", "action_bounds": [0, 0, 9, 9]}
    (head, *lines), findings = converted(
        data,
        tmp_path / "e.jsonl",
        curated("scroll", past(0, 1, 2, 3), gt_input_text="DOWN"),
        click(past(0, 1), gt_max_bbox=[40, 90, 50, 110]),
        curated("open_app", past(0), gt_input_text="clock", candidate_actions=other),
        click(past(), revised_task="Set an alarm for 7:30"),
        curated("type:7:45", past(0, 1, 2)),
    )
    assert (head["errata"], head["benchmark"]) == (
        "AndroidControl-Curated android_control_high_bbox",
        "androidcontrol",
    )
    assert head["fingerprint"] == made.loaded("androidcontrol", data).fingerprint
    assert findings == []
    assert [(one["sample_id"], one["kind"], one["value"]) for one in lines] == [
        ("3/0", "replace", {"kind": "TAP", "start": [made.box(*BOX)]}),
        ("3/0", "instruction", "Set an alarm for 7:30"),
        ("3/1", "also_right", {"kind": "SWIPE_DOWN"}),
        ("3/1", "also_right", {"kind": "TAP", "start": [made.box(0, 0, 9, 9)]}),
        ("3/2", "replace", {"kind": "TAP", "start": [made.box(40, 90, 50, 110)]}),
        ("3/3", "replace", {"kind": "INPUT", "text": "7:45"}),
    ]
    sources = {one["source"].partition(" ")[2] for one in lines}
    assert all(one.startswith("2510.18488, android_control_high_bbox.json") for one in sources)


def test_points_that_were_recorded_correct_nothing_and_steps_without_a_row_are_dropped(
    tmp_path: Path,
) -> None:
    data = made.control(tmp_path / "data", phones.CLICK, WAIT, BACK)
    point = {"gt_max_bbox": None, "gt_coordinate": None, "gt_bbox": [45, 100]}
    rows = [click(past(), **point), curated("press_back", past(0, 1), gt_bbox=[-100, -100])]
    (_, *lines), findings = converted(data, tmp_path / "e.jsonl", *rows)
    assert [(one["sample_id"], one["kind"]) for one in lines] == [("3/1", "drop")]
    assert findings == []
    (_, *lines), findings = converted(
        data, tmp_path / "f.jsonl", *rows, click(past(9), gt_bbox=[1, 1])
    )
    assert lines == [], "a row of the goal is no step: it may be the one that is missing"
    assert [one["code"] for one in findings] == ["errata-row-skipped"]


def test_a_row_without_a_history_needs_an_action_of_its_own(tmp_path: Path) -> None:
    data = made.control(tmp_path / "data", phones.CLICK, {**phones.CLICK, "x": 9}, WAIT, WAIT)
    low = [click(gt_coordinate=[9, 100], gt_max_bbox=[0, 90, 20, 110]), curated("wait")]
    low.append(click(instruction="Do 0"))
    low += [click(instruction="Do 7"), click(gt_max_bbox=[9, 9, 1, 1])]
    low.append(click(gt_coordinate=None, gt_max_bbox=[0, 80, 89, 120]))
    (_, *lines), findings = converted(data, tmp_path / "e.jsonl", *low)
    assert [(one["sample_id"], one["kind"]) for one in lines] == [
        ("3/0", "replace"),
        ("3/1", "replace"),
    ]
    assert [one["what"].partition(":")[0] for one in findings] == [
        "no step has this instruction and history",
        "the place is [9.0, 9.0, 1.0, 1.0], neither a point nor a box",
        "2 steps may be meant",
    ]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("[{}]", "missing required field `image`"),
        ('[{"image": "a"', "not JSON|no JSON"),
        (json.dumps([click(gt_max_bbox="[1, 2]")]), "Expected `array | null`, got `str`"),
        (json.dumps([curated("click", candidate_actions=[1])]), "Expected `object`, got `int`"),
    ],
)
def test_another_file_is_refused_and_nothing_is_written(
    content: str, what: str, tmp_path: Path
) -> None:
    data, out = made.control(tmp_path / "data", phones.CLICK), tmp_path / "e.jsonl"
    (tmp_path / "rows.json").write_text(content)
    convert = ("convert", "androidcontrol", data, out, "--errata", tmp_path / "rows.json")
    assert (
        what.split("|")[0] in (said := omnidata(*convert, code=2).stderr)
        or what.split("|")[-1] in said
    )
    assert not out.exists()
    for task, place in (("omnigui", made.taps(tmp_path / "gui", [[1, 2], [3, 4]])),):
        refused = omnidata("convert", task, place, out, "--errata", tmp_path / "rows.json", code=2)
        assert "no other project's corrections of omnigui are known" in refused.stderr


def test_an_answer_in_the_box_is_right_with_the_errata_alone(tmp_path: Path) -> None:
    """Rules that know elements take the box for the element."""
    data = made.control(tmp_path / "data", phones.CLICK, phones.CLICK)
    wide = (
        click(past(), gt_max_bbox=[0, 80, 89, 120]),
        click(past(0), gt_max_bbox=[44, 99, 46, 101]),
    )
    converted(data, tmp_path / "e.jsonl", *wide)
    answer = json.dumps({"action_type": "click", "coordinate": [890, 500]})
    answers = [{"sample_id": name, "output": answer} for name in ("3/0", "3/1")]
    file = write_lines(tmp_path / "a.jsonl", answers)
    score = ("score", "androidcontrol", data, file, "--errata", tmp_path / "e.jsonl", "--json")
    every = as_json(omnidata(*score, "--profile", "all"))
    for name in ("agentcpm-ac-fixed", "curated"):
        found = every[name]
        assert (found["overall"]["EM"], found["with_errata"]["overall"]["EM"]) == (0, 1 / 2)
        (effect,) = found["errata"]
        assert (effect["steps"], effect["now_right"], effect["now_wrong"]) == (2, 1, 0)
    assert every["os-atlas-ac"]["with_errata"]["overall"]["EM"] == 0, "its distance knows no boxes"


@pytest.mark.parametrize("option", ["--embed", "--link", "--overwrite", "--workers=2"])
def test_an_option_of_repositories_is_refused_beside_errata(option: str, tmp_path: Path) -> None:
    convert = ("convert", "androidcontrol", tmp_path, tmp_path / "e.jsonl", "--errata", "rows.json")
    refused = omnidata(*convert, option, code=2).stderr
    assert "errata are one file without media" in refused
    assert f"Fix: drop {option.partition('=')[0]}" in refused
