"""ScreenSpot in its three releases: what the numbers of a box are is declared, never guessed."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnidata
from omnidata.actions import Box
from omnidata.errors import DataError, MediaError
from omnidata.loaders.load import recognise
from omnidata.media import read_bytes
from omnidata.tasks import get_task
from omnidata.tasks.screenspot.load import dump
from omnidata.types import LoadedDataset
from tests.loaders.agentstudio import pictures
from tests.loaders.desk import SCREEN, pro, screenspot, spot
from tests.trees import codes, write_lines

FORMS = {
    "screenspot": ("screenspot_mobile.json", spot, "screenspot_imgs", "mobile"),
    "screenspot-v2": ("screenspot_web_v2.json", spot, "screenspotv2_image", "web"),
    "screenspot-pro": ("photoshop_windows.json", pro, "images", "windows"),
}


def load(data: Path, **options: str) -> LoadedDataset:
    """The steps of a dataset."""
    return get_task("screenspot", options).load(data)


@pytest.mark.parametrize("form", FORMS)
def test_every_release_is_recognised_read_and_given_back(tmp_path: Path, form: str) -> None:
    name, make, images, platform = FORMS[form]
    data = screenspot(tmp_path / "data", make(), make(), name=name, images=images)
    source = load(data)
    assert recognise(data) == ["screenspot"]
    assert not source.findings
    step = source.steps[1]
    assert step.sample_id == f"{name[:-5]}/1"
    assert (step.screen, step.num_steps) == (SCREEN, 1)
    assert (step.tags["form"], step.tags["platform"]) == (form, platform)
    assert step.action and step.action.start == (Box(8, 9, 24, 18, "px"),)
    assert list(dump(source)) == [(name, make()), (name, make())]


def test_tags_are_the_rows_own_and_the_chinese_instruction_is_asked_for(tmp_path: Path) -> None:
    data = screenspot(tmp_path, pro(), name="photoshop.json")
    (step,) = load(data).steps
    assert step.tags == {
        "form": "screenspot-pro", "platform": "windows", "ui_type": "icon", "group": "Creative",
        "application": "photoshop", "language": "en",
    }  # fmt: skip
    assert load(data, language="cn").steps[0].instruction == "裁剪图层"
    other = screenspot(tmp_path / "v1", spot(), pro())
    tags = load(other).steps[0].tags
    assert (tags["ui_type"], tags["data_source"]) == ("text", "shop")
    source = load(other, language="cn")
    assert (codes(source), source.skipped) == ({"instruction-missing": 1}, 1)


@pytest.mark.parametrize(
    ("form", "bbox", "box"),
    [
        ("columns", [0, 0, 1, 1], Box(0, 0, 1, 1, "px")),  # small, and no shares
        ("xywh-px", [8, 9, 16, 9], Box(8, 9, 24, 18, "px")),
        ("xyxy-px", [8, 9, 24, 18], Box(8, 9, 24, 18, "px")),
    ],
)
def test_the_numbers_of_a_box_are_what_the_form_says(
    tmp_path: Path, form: str, bbox: list[int], box: Box
) -> None:
    (step,) = load(screenspot(tmp_path, spot(bbox=bbox)), boxes=form).steps
    assert step.action and step.action.start == (box,)


def test_boxes_that_cannot_be_are_found(tmp_path: Path) -> None:
    rows = [
        spot(bbox=[60, 30, 16, 9]),
        spot(bbox=[60, 30, -1, 9]),
        spot(bbox="8, 9, 16, 9"),
        pro(bbox=[24, 18, 8, 9]),
        pro(bbox=[1, 1, 3, 3], gt_type="negative"),
        pro(img_size=[128, 72], img_filename="2.png"),
        3,
    ]
    data = screenspot(tmp_path, *[row for row in rows if isinstance(row, dict)])
    path = data / "screenspot_web.json"
    path.write_text(json.dumps(rows))
    source = load(data)
    assert codes(source) == {
        "target-outside": 1, "box-unusable": 3, "size-differs": 1, "json-invalid": 1,
    }  # fmt: skip
    assert [step.action is not None for step in source.steps] == [
        True, False, False, False, False, True,
    ]  # fmt: skip
    assert source.row_ids[-1] == "screenspot_web/5"


@given(st.lists(st.one_of(st.none(), st.floats(), st.text(), st.booleans()), max_size=6))
def test_a_box_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    data = screenspot(tmp_path_factory.mktemp("box"), spot(bbox=values))
    for form in ("columns", "xywh-px", "xyxy-rel"):
        with suppress(DataError):
            for step in load(data, boxes=form).steps:
                if step.action is None:  # with a finding
                    continue
                (box,) = step.action.start
                assert isinstance(box, Box)
                assert box.left <= box.right
                assert box.top <= box.bottom


def test_files_that_differ_in_their_endings_have_ids_of_their_own(tmp_path: Path) -> None:
    screenspot(tmp_path, spot())
    write_lines(tmp_path / "screenspot_web.jsonl", [spot()])
    ids = [step.sample_id for step in load(tmp_path).steps]
    assert ids == ["screenspot_web.json/0", "screenspot_web.jsonl/0"]


def hub_parquet(path: Path, *rows: dict[str, Any]) -> Path:
    """Rows as rootsautomation/ScreenSpot has them, written by `datasets`."""
    import datasets

    path.parent.mkdir(parents=True, exist_ok=True)
    made = datasets.Dataset.from_list(list(rows)).cast_column("image", datasets.Image())
    made.to_parquet(str(path))
    return path


def hub_row(folder: Path, **changes: Any) -> dict[str, Any]:
    shot = folder / "shot.png"
    if not shot.exists():
        pictures(folder, [shot.name], size=SCREEN)
    row = {"file_name": "web_1.png", "bbox": [0.125, 0.25, 0.375, 0.5], "instruction": "Save"}
    row |= {"data_type": "text", "data_source": "macos"}
    held = {"bytes": shot.read_bytes(), "path": "/etc/hostname"}
    return {**row, "image": held, **changes}


def test_the_hubs_parquet_has_corners_from_0_to_1_and_its_pictures(tmp_path: Path) -> None:
    rows = [hub_row(tmp_path / "made"), hub_row(tmp_path / "made", data_source="tool")]
    data = tmp_path / "ScreenSpot" / "data"
    hub_parquet(data / "test-00000-of-00001.parquet", *rows)
    assert recognise(data.parent) == ["screenspot"]
    source = load(data.parent)
    assert not source.findings
    step = source.steps[0]
    assert step.sample_id == "data/test-00000-of-00001/0"
    assert step.screen == SCREEN
    assert [each.tags["platform"] for each in source.steps] == ["desktop", "web"]
    assert step.tags["form"] == "screenspot"
    assert step.action and step.action.start == (Box(0.125, 0.25, 0.375, 0.5, "rel"),)
    shot = step.media["screenshot"]
    assert shot
    assert read_bytes(shot) == rows[0]["image"]["bytes"]
    (opened,) = omnidata.load_dataset("screenspot", data, split="test").select([0])
    assert opened["screenshot"]["bytes"] == rows[0]["image"]["bytes"]
    hub_parquet(tmp_path / "ScreenSpot-v2" / "test.parquet", rows[0])
    assert load(tmp_path / "ScreenSpot-v2").steps[0].tags["form"] == "screenspot-v2"


def test_a_parquet_row_without_its_picture_opens_no_file_that_it_names(tmp_path: Path) -> None:
    row = hub_row(tmp_path / "made", image={"bytes": None, "path": "/etc/hostname"})
    other = hub_row(tmp_path / "made")
    data = hub_parquet(tmp_path / "data" / "test.parquet", other, row)
    step = load(data).steps[1]
    assert step.screen == (0, 0)
    shot = step.media["screenshot"]
    assert shot
    with pytest.raises(MediaError, match="the cell is empty"):
        read_bytes(shot)


def test_parquet_with_other_columns_has_to_be_told_what_its_boxes_are(tmp_path: Path) -> None:
    row = hub_row(tmp_path / "made")
    del row["file_name"]
    data = hub_parquet(tmp_path / "data" / "test.parquet", row)
    with pytest.raises(DataError, match="do not define bbox") as caught:
        load(data)
    assert "-T boxes=" in caught.value.remedy
    (step,) = load(data, boxes="xyxy-rel").steps
    assert step.action and step.action.start == (Box(0.125, 0.25, 0.375, 0.5, "rel"),)
