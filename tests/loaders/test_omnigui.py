"""The loader reads every form of OmniGUI."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

from omnidata.actions import Action, Box, Point
from omnidata.tasks.omnigui.load import load
from tests.trees import codes, load_rows, row, write_app, write_lines, write_rows

RECT = Box(210, 786, 351, 850, "px")


def test_the_papers_tree_gives_steps_with_every_label(sample: Path) -> None:
    source = load(sample)
    assert not source.findings
    assert len({step.sample_id for step in source.steps}) == len(source.steps) >= 100
    tags = {name: {step.tags[name] for step in source.steps} for name in source.steps[0].tags}
    assert len(tags["dimension"]) == 5
    assert tags["dependency"] == {"critical", "supportive", "present"}
    assert tags["language"] == {"en", "zh"}


def test_one_app_folder_gives_the_same_steps_as_the_folder_of_apps(few: Path) -> None:
    app = min(path.name for path in few.iterdir() if path.is_dir())
    alone = load(few / app).steps
    among = [step for step in load(few).steps if step.tags["app"] == app]
    assert alone == among


def test_an_app_without_its_index_gives_the_same_steps(sample: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(sample / "Chirp", tmp_path / "Chirp")
    (copy / "dataset_Chirp.json").unlink()
    without = [(step.sample_id, step.action) for step in load(copy).steps]
    assert without == [(step.sample_id, step.action) for step in load(sample / "Chirp").steps]


def test_an_app_without_media_is_read_from_its_index(sample: Path, tmp_path: Path) -> None:
    app, media = sample / "Chirp", shutil.ignore_patterns("media")
    copy = shutil.copytree(app, tmp_path / "Chirp", ignore=media)
    source = load(copy)
    assert [finding.code for finding in source.findings] == ["media-absent"]
    here = {step.sample_id: (step.action, step.history) for step in source.steps}
    assert here == {step.sample_id: (step.action, step.history) for step in load(app).steps}


def test_the_released_form_is_read_with_its_media(tmp_path: Path) -> None:
    rows = [
        row("T1", index, app="ted", subset="ted", instruction="点击", instruction_en="Tap")
        for index in range(3)
    ]
    for index in range(3):
        shot = tmp_path / "data" / "benchmark" / "T1" / f"{index + 1}.png"
        shot.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (720, 1600)).save(shot)
    write_rows(tmp_path / "data" / "merged_sorted.json", rows)
    source = load(tmp_path)
    last = source.steps[2]
    assert last.sample_id == "ted/T1/2"
    assert last.instruction == "Tap"
    assert last.media["screenshot"] is not None
    assert last.media["screenshot"].root == tmp_path / "data" / "benchmark"
    assert last.media["history_screenshot"] == source.steps[0].media["screenshot"]
    assert set(codes(source)) == {"media-broken"}  # clips and audio were not made
    assert source.row_ids == ["ted/T1/0", "ted/T1/1", "ted/T1/2"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[[210,786],[351,850]]", (RECT,)),
        ([[210, 786], [351, 850]], (RECT,)),
        ("[[351,850],[210,786]]", (RECT,)),
        ("[[210, 850], [351, 786]]", (RECT,)),
        ("[389,511]", (Point(389, 511, "px"),)),
        ([389, 511], (Point(389, 511, "px"),)),
        ("[[210.5,786],[351,850.25]]", (Box(210.5, 786, 351, 850.25, "px"),)),
        ("[[210,786],[351,850],[1,1]]", (RECT,)),
        ("[[[210,786],[351,850]]]", (RECT,)),
        ([[[210, 786], [351, 850]], [[1, 2], [3, 4]]], (RECT, Box(1, 2, 3, 4, "px"))),
    ],
)
def test_a_target_is_read_in_every_form(
    tmp_path: Path, value: object, expected: tuple[Box | Point, ...]
) -> None:
    source = load_rows(tmp_path, row(result_touch_xy=value))
    assert source.steps[0].action == Action("tap", expected)
    assert not codes(source)


def test_the_older_yx_columns_are_swapped_and_only_used_without_xy(tmp_path: Path) -> None:
    source = load_rows(
        tmp_path,
        row("A", result_touch_xy=None, result_touch_yx="[[786,210],[850,351]]"),
        row("B", result_touch_yx="[[1,2],[3,4]]"),
    )
    assert [step.action for step in source.steps] == [Action("tap", (RECT,))] * 2


@pytest.mark.parametrize(
    "value",
    ["", "   ", "null", None, "[]", "[[210,786]", "(41,97)", '{"x": 1, "y": 2}', "5", "[1,2,3]",
     "[1,2,3,4]", "[[399,666]]", "[[],[]]", [[493, 173, 0], [651, 259, 0]], "[true,false]",
     [["210", "786"], ["351", "850"]], "[NaN, 1]", "[[1,2],3]", "[" * 5000],
)  # fmt: skip
def test_a_step_with_an_unusable_target_stays_with_a_finding(tmp_path: Path, value: object) -> None:
    source = load_rows(tmp_path, row(result_touch_xy=value))
    assert source.steps[0].action is None
    assert len(source.findings) == 2  # the other is about the absent media
    finding = source.findings[0]
    assert finding.code in ("target-missing", "target-unreadable")
    assert "unknown/T1/0" in finding.where
    assert "steps.json" in finding.where


def test_a_swipe_has_its_lift_and_survives_an_unreadable_one(tmp_path: Path) -> None:
    source = load_rows(
        tmp_path,
        row("A", result_action_type=3, result_lift_xy="[[1,2],[3,4]]"),
        row("B", result_action_type=3, result_lift_xy="[1]"),
    )
    lift = (Box(1, 2, 3, 4, "px"),)
    assert source.steps[0].action == Action.of("SWIPE_UP", (RECT,), lift)
    assert source.steps[1].action == Action.of("SWIPE_UP", (RECT,))
    assert codes(source) == {"lift-unreadable": 1}


@pytest.mark.parametrize("number", [12, -2, 99, "0", None, True, 0.5, [0]])
def test_an_unknown_action_number_is_a_finding(tmp_path: Path, number: object) -> None:
    source = load_rows(tmp_path, row(result_action_type=number))
    assert source.steps[0].action is None
    assert codes(source) == {"action-unknown": 1}
    assert repr(number) in source.findings[0].what
    assert "11 TASK_IMPOSSIBLE" in source.findings[0].expected


def test_a_number_that_arrow_made_a_float_is_read(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(result_action_type=8.0, image_width=720.0))
    assert source.steps[0].action == Action("back")
    assert source.steps[0].screen == (720, 1600)


def test_a_box_outside_the_image_is_doubtful_but_usable(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(result_touch_xy="[[210,786],[751,850]]"))
    assert source.steps[0].action is not None
    assert codes(source) == {"target-outside": 1}
    assert "[210, 786, 751, 850]" in source.findings[0].what
    assert "720 x 1600" in source.findings[0].what


def test_a_row_without_a_size_gets_the_releases_and_a_finding(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(image_width=None))
    assert source.steps[0].screen == (1080, 2400)
    assert codes(source) == {"size-unknown": 1}


def test_the_history_holds_the_experts_actions_and_its_own_words(tmp_path: Path) -> None:
    source = load_rows(
        tmp_path,
        row(step=1, result_action_type=7, result_action_text="hi", action_text="types hi"),
        row(step=0),
        row(step=2, result_action_type=10),
    )
    assert [step.step_index for step in source.steps] == [0, 1, 2]
    tap, typed = (
        Action("tap", (RECT,)),
        Action("type", text="hi", words="types hi"),
    )
    assert [step.history for step in source.steps] == [(), (tap,), (tap, typed)]


def test_a_history_keeps_the_primitive_of_an_unusable_target(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(result_touch_xy=""), row(step=1))
    assert source.steps[1].history == (Action("tap"),)


def test_dependency_comes_from_a_column_or_the_side_file(tmp_path: Path) -> None:
    rows = [row("A", dependency="AV-Critical"), row("B"), row("C")]
    write_app(tmp_path / "TED", rows)
    write_lines(
        tmp_path / "dependency.jsonl",
        [
            {"app": "ted", "ID": "B", "dependency": "present"},
            {"app": "TED", "ID": "C", "dependency": "often"},
        ],
    )
    source = load(tmp_path)
    assert [step.tags.get("dependency") for step in source.steps] == ["critical", "present", None]
    assert codes(source) == {"dependency-unreadable": 1}
    assert source.findings[0].where.endswith("dependency.jsonl:2")


@pytest.mark.parametrize(
    ("app", "instruction"),
    [("TED", "Tap Share"), ("ted", "Tap Share"), ("GTrans", "Tap Share"), ("Insta", "Tap Share"),
     ("Google_Translate", "Tap Share"), ("RedBull", "Tap Share"), ("redbulltv", "Tap Share"),
     ("X", "Tap Share"), ("WeChat", "点击分享"), ("QQ Music", "点击分享"), ("PDD", "点击分享")],
)  # fmt: skip
def test_the_instruction_is_in_the_apps_language(
    tmp_path: Path, app: str, instruction: str
) -> None:
    source = load(write_app(tmp_path / app, [row()]))
    assert source.steps[0].instruction == instruction
    assert not codes(source)


def test_an_unknown_app_with_two_languages_is_asked_about_once(tmp_path: Path) -> None:
    source = load(write_app(tmp_path / "MyApp", [row("A"), row("B")]))
    assert {step.tags["language"] for step in source.steps} == {"zh"}
    assert codes(source) == {"language-unknown": 1}


def test_a_missing_instruction_is_a_finding(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(app="ted", instruction_en=None, instruction="点击"))
    assert source.steps[0].instruction == "点击"
    assert codes(source) == {"instruction-missing": 1}
