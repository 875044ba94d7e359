"""The loader passes over nothing in silence."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from omnidata.actions import Action, Box
from omnidata.errors import DataError
from omnidata.tasks.omnigui.load import load
from tests.trees import (
    ABSENT,
    NO_SHARED,
    SHARED,
    codes,
    load_rows,
    row,
    write_app,
    write_lines,
    write_rows,
)

RECT = Box(210, 786, 351, 850, "px")


def test_a_repeated_step_is_counted_and_the_first_is_used(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(), row(result_action_type=8))
    assert [step.action for step in source.steps] == [Action("tap", (RECT,))]
    assert source.skipped == 1
    assert codes(source) == {"step-repeated": 1}
    assert "unknown/T1/0" in source.findings[0].where


def test_a_gap_in_the_steps_is_a_finding_and_leaves_a_hole_in_the_history(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(step=0), row(step=3))
    assert codes(source) == {"step-gap": 1}
    assert source.findings[0].what == "the episode lacks the steps 1, 2"
    assert source.steps[1].history == (Action("tap", (RECT,)), None, None)


def test_a_wrong_episode_length_is_a_finding(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(episode_length=2))
    assert codes(source) == {"length-differs": 1}


@pytest.mark.parametrize(
    "changes",
    [{"step_id": value} for value in (ABSENT, "a", -1, 10**9)] + [{"episode_id": None}],
)
def test_a_row_without_its_place_is_skipped_and_counted(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    source = load_rows(tmp_path, row("B"), row(**changes))
    assert source.skipped == 1
    assert codes(source) == {"step-without-place": 1}


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../../etc/passwd", "T1/../../x.png", "C:\\x.png", "file:///etc/passwd",
             "http://a/b.png", "a\0b.png", "..\\x.png"]
)  # fmt: skip
def test_a_path_that_leaves_the_dataset_is_a_finding(tmp_path: Path, path: str) -> None:
    source = load_rows(tmp_path, row(image_path=path))
    assert codes(source) == {"path-unsafe": 1}
    assert "unknown/T1/0" in source.findings[0].where


def lose(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def shrink(path: Path) -> None:
    Image.new("RGB", (360, 800)).save(path)


@pytest.mark.parametrize(
    ("name", "harm", "code", "says"),
    [
        ("1.mp4", lose, "media-broken", "{path}"),
        ("1.png", cut, "media-broken", "end marker: {path}"),
        ("1.png", shrink, "size-differs", "360 x 800"),
    ],
)
def test_a_medium_that_is_not_as_it_should_be_is_a_finding(
    few: Path, tmp_path: Path, name: str, harm: Callable[[Path], None], code: str, says: str
) -> None:
    copy = shutil.copytree(few / "Chirp", tmp_path / "Chirp")
    path = min(copy.glob(f"media/*/{name}"))
    harm(path)
    (finding,) = load(copy).findings
    assert (finding.code, finding.where) == (code, f"Chirp/{path.parent.name}/0")
    assert says.format(path=path) in finding.what
    assert (finding.severity == "error") is (code == "media-broken")


def test_invalid_json_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "steps.json"
    path.write_text('[\n{"episode_id": "T1"},\n{"episode_id": }\n]')
    with pytest.raises(DataError, match=r"steps\.json: it is no JSON \(line 3"):
        load(path)


def test_an_invalid_metadata_line_is_a_finding_and_costs_only_itself(tmp_path: Path) -> None:
    app = write_app(tmp_path / "TED", [row("A"), row("B")])
    metadata = app / "localization.jsonl"
    first, second = metadata.read_bytes().splitlines()
    lines = (first[:-3], b"", b"\xff" + first, second, b"[" * 90_000)
    metadata.write_bytes(b"\n".join(lines))
    source = load(app)
    assert codes(source) == {"json-invalid": 3, "episode-without-metadata": 1}
    where = [found.where.rpartition("/")[2] for found in source.findings[:3]]
    assert where == [f"localization.jsonl:{number}" for number in (1, 3, 5)]
    assert [step.tags.get("dimension") for step in source.steps] == [None, "localization"]


def test_an_episode_without_steps_and_copies_that_differ_are_findings(
    few: Path, tmp_path: Path
) -> None:
    app = shutil.copytree(few / "Chirp", tmp_path / "copy" / "Chirp")
    index = app / "dataset_Chirp.json"
    rows = [each for path in app.glob("media/*/*.json") for each in json.loads(path.read_text())]
    gone, changed = rows[0]["episode_id"], rows[-1]["episode_id"]
    rows[-1]["instruction_en"] = "another"
    write_rows(index, [item for item in rows if item["episode_id"] != gone])
    shutil.rmtree(app / "media" / gone)
    source = load(app.parent)
    found = {finding.code: finding for finding in source.findings}
    assert set(found) == {"episode-without-steps", "copies-differ"}
    without, differ = found["episode-without-steps"], found["copies-differ"]
    assert (without.where, without.sample_ids) == (f"Chirp/{gone}", ())
    assert changed in differ.what
    own = [step.sample_id for step in source.steps if step.episode_id == changed]
    assert [*differ.sample_ids] == own


def test_an_episode_that_is_listed_twice_names_its_steps(tmp_path: Path) -> None:
    app = write_app(tmp_path / "TED", [row("A"), row("A", 1), row("B")])
    metadata = app / "localization.jsonl"
    first, second = metadata.read_text().splitlines()
    metadata.write_text("\n".join([first, second, first, first.replace('"A"', '"C"')] * 2))
    found = [one for one in load(app).findings if one.code == "episode-repeated"]
    told = [(), *[("TED/A/0", "TED/A/1")] * 3, ("TED/B/0",)]
    assert sorted(one.sample_ids for one in found) == told


def test_a_place_without_data_is_an_error_that_says_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "readme").mkdir()
    (tmp_path / "readme" / "README.md").write_text("hello")
    for folder in (tmp_path / "none", folder_of(tmp_path, "empty"), tmp_path / "readme"):
        with pytest.raises(DataError, match=r"dataset_<APP>\.json") as error:
            load(folder)
        assert str(folder) in str(error.value)


@pytest.mark.parametrize("text", ["{}", "[]", "[1]", '"x"', "[{}]", "", "\ufeff[]", "[" * 90_000])
def test_a_file_that_is_no_array_of_steps_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "steps.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"steps\.json"):
        load(path)


def test_strict_makes_the_first_finding_an_error(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "steps.json", [row(result_action_type=12)])
    with pytest.raises(DataError, match="result_action_type is 12"):
        load(path, strict=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"image_path": "\ud800.png"},
        {"image_path": "x" * 5000},
        {"image_width": 10**400},
        {"result_touch_xy": f"[[{'9' * 400},1],[5,6]]"},
        {"result_touch_xy": "[1e308, 5]"},
        {"instruction_en": "\ud800"},
        {"episode_id": "\ud800"},
    ],
)
def test_values_that_no_honest_row_has_end_in_findings_and_never_in_a_crash(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    from omnidata.run.evaluate import evaluate
    from omnidata.tasks import get_task

    rows = [row("T", 0, **changes), row("T", 1, result_action_type=10), row("U", 0)]
    if "episode_id" in changes:
        rows[1]["episode_id"] = changes["episode_id"]
    task = get_task("omnigui")
    source = task.load(write_rows(tmp_path / "steps.json", rows))
    assert len(source.steps) == 3
    for profile in task.profiles:
        evaluate(task, source, "baseline:oracle", tmp_path / profile, profile=profile)
    for step in source.steps:
        assert task.conversation(step)[1].parts


def test_an_episode_listed_in_one_app_is_not_found_in_another(tmp_path: Path) -> None:
    write_app(tmp_path / "TED", [row("A"), row("B")])
    write_app(tmp_path / "IMDb", [row("A"), row("B")])
    index = tmp_path / "IMDb" / "dataset_IMDb.json"
    write_rows(index, [item for item in json.loads(index.read_text()) if item["episode_id"] == "A"])
    source = load(tmp_path)
    assert [f.where for f in source.findings if f.code == "episode-without-steps"] == ["IMDb/B"]


def test_a_slash_in_a_name_never_makes_two_steps_one(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row("b/c", app="a"), row("c", app="a/b"))
    assert [step.sample_id for step in source.steps] == ["a/b%2Fc/0", "a%2Fb/c/0"]


def test_the_side_file_knows_aliases_and_says_what_it_cannot_place(tmp_path: Path) -> None:
    write_app(tmp_path / "GTrans", [row("A"), row("B")])
    write_lines(
        tmp_path / "dependency.jsonl",
        [
            {"app": "googletranslate", "ID": "A", "dependency": "critical"},
            {"app": "GTrans", "ID": "A", "dependency": "present"},
            {"app": "GTrans", "ID": "Z", "dependency": "present"},
            {"app": "IMDb", "ID": "A", "dependency": "present"},
        ],
    )
    source = load(tmp_path)
    assert source.steps[0].tags["dependency"] == "critical"
    assert codes(source) == {"dependency-contradicts": 1, "dependency-unmatched": 1}


def test_an_unknown_label_is_a_finding(tmp_path: Path) -> None:
    source = load_rows(tmp_path, row(dependency="high", dimension="speed"))
    assert codes(source) == {"label-unknown": 2}


def test_a_size_that_the_row_lacks_is_taken_from_the_screenshot_or_is_the_releases(
    tmp_path: Path,
) -> None:
    Image.new("RGB", (300, 500)).save(folder_of(tmp_path, "T1") / "1.png")
    unsized: dict[str, Any] = {"image_width": None, "image_height": None}
    source = load_rows(tmp_path, row(**unsized), row("T2", **unsized))
    assert [step.screen for step in source.steps] == [(300, 500), (1080, 2400)]
    found = [finding for finding in source.findings if finding.code == "size-unknown"]
    assert ["300 x 500" in finding.remedy for finding in found] == [True, False]


def folder_of(root: Path, name: str) -> Path:
    (root / name).mkdir()
    return root / name


def test_a_lone_broken_screenshot_is_broken_and_not_absent(tmp_path: Path) -> None:
    shot = folder_of(tmp_path, "T1") / "1.png"
    Image.effect_noise((300, 500), 50).save(shot)
    shot.write_bytes(shot.read_bytes()[:-50])
    found = Counter(finding.code for finding in load_rows(tmp_path, row()).findings)
    assert (found["media-broken"], found["media-absent"]) == (3, 0)


def test_a_released_folder_is_known_beside_the_hubs_own_files(tmp_path: Path) -> None:
    write_rows(tmp_path / "merged_sorted.json", [row(app="ted")])
    (tmp_path / "dataset_infos.json").write_text("{}")
    assert load(tmp_path).steps[0].sample_id == "ted/T1/0"


@pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)
def test_android_in_the_wild_is_refused_with_the_reason() -> None:
    with pytest.raises(DataError, match="another enum"):
        load(SHARED / "data" / "aitz_google_apps")
