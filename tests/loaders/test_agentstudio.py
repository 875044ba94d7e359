"""The real rows of AgentStudio become steps; so do rows written by hand, with images or without."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from omnidata.actions import Box, Region
from omnidata.errors import DataError
from omnidata.media import image
from omnidata.tasks import get_task
from omnidata.tasks.agentstudio.load import load
from omnidata.types import Step
from tests.loaders.agentstudio import (
    REAL,
    TaskName,
    act,
    ground,
    pictures,
    real_rows,
    real_source,
    single,
    trajectory,
    write,
)
from tests.trees import NO_SHARED, codes

real = pytest.mark.skipif(not REAL["groundui"].is_file(), reason=NO_SHARED)
FOUR = {"mind2web": 100, "aitw": 100, "vwa": 100}
TRAJECTORIES: tuple[TaskName, ...] = ("idm-multiple", "criticbench")


@real
@pytest.mark.parametrize(
    ("task", "platforms", "sources", "findings"),
    [
        (
            "groundui",
            {"web": 400, "desktop": 300, "mobile": 300},
            {"mind2web": 309, "omniact": 320, "screenspot": 82, "motif": 265, "agent_studio": 24},
            {"box-outside": 26, "box-flat": 1, "target-ambiguous": 4},
        ),
        (
            "idm-single",
            {"web": 200, "desktop": 50, "mobile": 100},
            {**FOUR, "agent_studio": 50},
            {"row-repeated": 15, "label-noise": 1},
        ),
        (
            "idm-multiple",
            {"web": 200, "desktop": 45, "mobile": 100},
            {**FOUR, "agent_studio": 45},
            {"label-noise": 17, "id-repeated": 1},
        ),
        (
            "criticbench",
            {"web": 200, "desktop": 50, "mobile": 100},
            {**FOUR, "agent_studio": 50},
            {"label-noise": 17, "id-repeated": 1},
        ),
    ],
)
def test_all_real_rows_are_steps_and_every_trap_is_told(
    task: TaskName, platforms: dict[str, int], sources: dict[str, int], findings: dict[str, int]
) -> None:
    source = real_source(task)
    assert (source.task, source.skipped) == (task, 0)
    assert [step.source for step in source.steps] == real_rows(task)
    names = [f"{REAL[task].stem}/{number}" for number in range(len(source.steps))]
    assert [step.sample_id for step in source.steps] == source.row_ids == names
    assert Counter(step.tags["platform"] for step in source.steps) == platforms
    assert Counter(step.tags["source"] for step in source.steps) == sources
    assert all(step.tags["subset"] == step.source["source"] for step in source.steps)
    assert codes(source) == findings
    assert [f.code for f in source.findings].count("media-absent") == 1


@real
def test_the_findings_of_real_rows_are_at_the_rows_of_the_specification() -> None:
    ground_ui = real_source("groundui")
    (flat,) = [finding for finding in ground_ui.findings if finding.code == "box-flat"]
    assert flat.where == f"groundui_1k/67 ({REAL['groundui']}:68)"
    assert ground_ui.steps[67].source["bbox"] == [336, 652, 466, 652]
    outside = {f.where.split(" ")[0] for f in ground_ui.findings if f.code == "box-outside"}
    assert {s.tags["source"] for s in ground_ui.steps if s.sample_id in outside} == {"motif"}
    noise = [f.what for f in real_source("criticbench").findings]
    assert sum("HOVER" in what for what in noise) == 16
    assert sum("words is ENTER" in what for what in noise) == 1
    raw = load(REAL["groundui"], "groundui", instructions="raw")
    assert codes(raw)["instruction-missing"] == 17
    assert sum(step.instruction == "NA" for step in raw.steps) == 17


@real
@pytest.mark.parametrize("task", TRAJECTORIES)
def test_a_trajectory_has_its_chain_of_observations(task: TaskName) -> None:
    source = real_source(task)
    for step in source.steps:
        actions = step.source["actions"]
        names = [a["obs_before"] for a in actions]
        names += [actions[-1]["obs_after"]] if actions[-1]["obs_after"] else []
        assert [ref.path for ref in step.media.values() if ref] == names
        assert list(step.media) == [f"observation_{n}" for n in range(len(names))]
    most = {"idm-multiple": 31, "criticbench": 39}[task]
    assert source.roles == {f"observation_{n}": "image" for n in range(most)}


def targets(task: TaskName, step: Step) -> list[Region]:
    """The places of a step's actions, in pixels."""
    told = get_task(task).explanation(step, None, "", profile=get_task(task).default_profile)
    return [region for drawn in told.overlays.values() for region in drawn.target]


@real
def test_windows_are_those_of_the_specification() -> None:
    """The last five actions; of idm-multiple each lies between two observations."""

    def images(name: str, step: Step) -> int:
        turns = get_task(name).conversation(step)
        return sum(part.media is not None for turn in turns for part in turn.parts)

    steps = real_source("idm-multiple").steps
    lengths = Counter(images("idm-multiple", step) - 1 for step in steps)
    assert lengths == {2: 62, 3: 40, 4: 36, 5: 207}
    for step in real_source("criticbench").steps:
        actions = step.source["actions"]
        seen = min(5, len(actions)) + bool(actions[-1]["obs_after"])
        assert images("criticbench", step) == seen


@real
def test_boxes_keep_their_three_meanings() -> None:
    kinds = Counter(
        (step.tags["source"], type(region).__name__)
        for step in real_source("idm-multiple").steps
        for region in targets("idm-multiple", step)
    )
    assert kinds == {
        ("mind2web", "Box"): 579,
        ("aitw", "Point"): 371,
        ("agent_studio", "Point"): 128,
    }


def test_numbers_of_a_box_stay_as_they_are(tmp_path: Path) -> None:
    bbox = {"x": 3, "y": 4.5, "width": 10, "height": 0.25}
    row = trajectory(act(bbox=bbox), act(1))
    (step,) = load(write(tmp_path / "a.jsonl", row), "idm-multiple").steps
    assert targets("idm-multiple", step)[0] == Box(3, 4.5, 13, 4.75, "px")
    (step,) = load(write(tmp_path / "b.jsonl", ground(bbox=[1, 2.5, 3, 4])), "groundui").steps
    assert targets("groundui", step) == [Box(1, 2.5, 3, 4, "px")]


def test_images_beside_the_file_are_the_media(tmp_path: Path) -> None:
    rows = [ground(), ground(image="b.jpg", instruction="Tap")]
    data = write(tmp_path / "metadata_1k.jsonl", *rows)
    pictures(tmp_path / "images", ["a.png", "b.jpg"])
    for named in (data, tmp_path):
        source = load(named, "groundui")
        assert source.findings == []
        step = source.steps[1]
        assert (step.sample_id, step.screen) == ("metadata_1k/1", (144, 90))
        shot = step.media["screenshot"]
        assert shot and image(shot).pixels.shape == (90, 144, 3)


def test_the_screen_is_that_of_the_first_image_where_the_row_has_none(tmp_path: Path) -> None:
    one, many = write(tmp_path / "1.jsonl", single()), write(tmp_path / "2.jsonl", trajectory())
    assert load(one, "idm-single").steps[0].screen == (0, 0)
    pictures(tmp_path / "images", [f"m2w/{n}.png" for n in range(3)], (30, 40))
    for source in (load(one, "idm-single"), load(many, "criticbench")):
        assert (source.steps[0].screen, source.findings) == ((30, 40), [])


def test_a_screenshot_of_another_size_than_the_row_says_is_told(tmp_path: Path) -> None:
    write(tmp_path / "m.jsonl", ground())
    pictures(tmp_path / "images", ["a.png"], (145, 90))
    (found,) = load(tmp_path, "groundui").findings
    assert (found.code, found.where) == ("size-differs", "m/0")


def test_some_missing_images_are_told_one_by_one(tmp_path: Path) -> None:
    write(tmp_path / "m.jsonl", trajectory())
    pictures(tmp_path / "images", ["m2w/0.png", "m2w/2.png"])
    (found,) = load(tmp_path, "idm-multiple").findings
    assert found.code == "media-broken"
    assert "observation 1" in found.what
    assert load(tmp_path, "idm-multiple", check_media=False).findings == []


def test_a_step_stands_alone(tmp_path: Path) -> None:
    (step,) = load(write(tmp_path / "m.jsonl", single()), "idm-single").steps
    assert (step.episode_id, step.step_index, step.num_steps) == ("0", 0, 1)
    assert (step.history, step.history_screens, step.action) == ((), (), None)
    assert list(step.media) == ["before", "after"]
    assert step.instruction == "Find a house"


def test_raw_instructions_are_given_as_they_are(tmp_path: Path) -> None:
    rows = [ground(), ground(raw_instruction="NA", image="b.png"), ground(raw_instruction=None)]
    data = write(tmp_path / "m.jsonl", *rows)
    assert [s.instruction for s in load(data, "groundui").steps] == ['Click on "Discounts".'] * 3
    source = load(data, "groundui", instructions="raw")
    assert [s.instruction for s in source.steps] == ["redirect_discounts", "NA"]
    assert [(f.code, f.severity) for f in source.findings][:2] == [
        ("instruction-missing", "warning"),
        ("instruction-missing", "error"),
    ]
    assert source.row_ids == ["m/0", "m/1", None]
    del rows[0]["raw_instruction"]  # as the 18k form is
    write(data, rows[0])
    assert load(data, "groundui").steps[0].instruction == 'Click on "Discounts".'
    with pytest.raises(DataError, match="no row could be read"):
        load(data, "groundui", instructions="raw")


def test_a_file_is_recognised_by_its_columns_not_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", single())
    write(tmp_path / "y.jsonl", ground())
    write(tmp_path / "z.jsonl", {"other": 1})
    assert load(tmp_path, "groundui").steps[0].sample_id == "y/0"
    assert load(tmp_path, "idm-single").steps[0].sample_id == "x/0"


def test_several_files_with_the_columns_are_named(tmp_path: Path) -> None:
    for stem in ("one", "two", "metadata_idmn2n"):
        write(tmp_path / f"{stem}.jsonl", trajectory())
    with pytest.raises(DataError, match=r"metadata_idmn2n.jsonl, one.jsonl, two.jsonl") as caught:
        load(tmp_path, "criticbench")
    assert "metadata_idmn2n" not in caught.value.remedy


def test_the_releases_two_files_with_the_same_columns_may_lie_together(tmp_path: Path) -> None:
    stems = {"idm-multiple": "metadata_idmn2n", "criticbench": "metadata_success_detection"}
    for stem in (*stems.values(), "another"):
        write(tmp_path / f"{stem}.jsonl", trajectory(instruction=stem))
    for task in TRAJECTORIES:
        (step,) = load(tmp_path, task).steps
        assert (step.sample_id, step.instruction) == (f"{stems[task]}/0", stems[task])


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    for data in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(DataError, match="a file of groundui"):
            load(data, "groundui")
    with pytest.raises(DataError, match="no row could be read"):
        load(write(tmp_path / "m.jsonl"), "groundui")


def test_rows_count_also_what_could_not_be_read(tmp_path: Path) -> None:
    data = tmp_path / "m.jsonl"
    lines = [json.dumps(ground()), "", "{broken", json.dumps(ground(instruction="Tap"))]
    data.write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    source = load(data, "groundui")
    assert source.row_ids == ["m/0", None, "m/2"]
    (found,) = [f for f in source.findings if f.code == "json-invalid"]
    assert found.where == f"{data}:3"
