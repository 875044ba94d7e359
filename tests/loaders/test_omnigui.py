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


def test_an_app_gives_the_same_steps_alone_and_without_its_index_or_its_media(
    sample: Path, tmp_path: Path
) -> None:
    app = sample / "Chirp"
    alone = load(app).steps
    assert alone == [step for step in load(sample).steps if step.tags["app"] == "Chirp"]
    for left_out, found in (("dataset_*", []), ("media", ["media-absent"])):
        copy = tmp_path / left_out / "Chirp"
        source = load(shutil.copytree(app, copy, ignore=shutil.ignore_patterns(left_out)))
        assert [finding.code for finding in source.findings] == found
        assert [(step.sample_id, step.action, step.history) for step in source.steps] == [
            (step.sample_id, step.action, step.history) for step in alone
        ]


def test_the_released_form_is_read_with_its_media(tmp_path: Path) -> None:
    more = {"app": "ted", "subset": "ted", "instruction": "点击", "instruction_en": "Tap"}
    shots = tmp_path / "data" / "benchmark" / "T1"
    shots.mkdir(parents=True)
    for index in range(3):
        Image.new("RGB", (720, 1600)).save(shots / f"{index + 1}.png")
    rows = [row("T1", index, **more) for index in range(3)]
    source = load(write_rows(tmp_path / "data" / "merged_sorted.json", rows).parents[1])
    first, _, last = source.steps
    assert (last.sample_id, last.instruction) == ("ted/T1/2", "Tap")
    shot = last.media["screenshot"]
    assert shot and shot.root == shots.parent
    assert last.media["history_screenshot"] == first.media["screenshot"]
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
    (step,) = load_rows(tmp_path, row(result_action_type=8.0, image_width=720.0)).steps
    assert (step.action, step.screen) == (Action("back"), (720, 1600))


def test_a_box_outside_the_image_is_doubtful_but_usable(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(result_touch_xy="[[210,786],[751,850]]"))
    assert source.steps[0].action is not None
    assert codes(source) == {"target-outside": 1}
    assert "[210, 786, 751, 850]" in source.findings[0].what
    assert "720 x 1600" in source.findings[0].what


def test_the_history_holds_the_experts_actions_and_its_own_words(tmp_path: Path) -> None:
    source = load_rows(
        tmp_path,
        row(step=1, result_action_type=7, result_action_text="hi", action_text="types hi"),
        row(step=0),
        row(step=2, result_touch_xy=""),  # unusable, and a tap nevertheless
        row(step=3, result_action_type=10),
    )
    assert [step.step_index for step in source.steps] == [0, 1, 2, 3]
    past = (Action("tap", (RECT,)), Action("type", text="hi", words="types hi"), Action("tap"))
    assert [step.history for step in source.steps] == [past[:n] for n in range(4)]


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
    assert [step.instruction for step in source.steps] == ["点击"]
    assert codes(source) == {"instruction-missing": 1}
