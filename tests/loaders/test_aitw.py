"""Android in the Wild in its three forms."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnidata
from omnidata import media
from omnidata.actions import Point
from omnidata.data.convert import convert
from omnidata.errors import DataError
from omnidata.loaders.load import recognise
from omnidata.tasks import get_task
from omnidata.tasks.aitw.load import dump
from omnidata.types import LoadedDataset, Step
from tests.loaders import phones
from tests.loaders.omnibench import codes
from tests.loaders.phones import cagui, example, records, zoo, zoo_episode
from tests.trees import NO_SHARED, SHARED

REAL = SHARED / "data" / "aitz_google_apps"
real = pytest.mark.skipif(not REAL.is_dir(), reason=NO_SHARED)
Make = Callable[[Path], Path]


def wild(tmp_path: Path) -> Path:
    """Two episodes in two files, their steps out of order."""
    folder = tmp_path / "wild" / "google_apps"
    bare, file = example(1, results__action_type=[10]), example(0, "8", episode_length=[1])
    file["image/encoded"] = [phones.png(5)]
    records(folder / "google_apps-00000-of-00002", bare, file)
    records(folder / "google_apps-00001-of-00002", example(0), packed=False)
    return tmp_path / "wild"


def garden(tmp_path: Path) -> Path:
    """An episode of the Zoo, laid out as in its archive."""
    last = zoo(1, result_action_type=3, result_action_text="7:30")
    return zoo_episode(tmp_path / "zoo" / "test" / "general", zoo(0), last).parents[2]


def chinese(tmp_path: Path) -> Path:
    return zoo_episode(tmp_path / "cagui" / "domestic", cagui(), name="77").parents[1]


FORMS: dict[str, Make] = {"aitw": wild, "aitz": garden, "cagui": chinese}


TASK: Any = get_task("aitw")
load = TASK.load


def truth(step: Step) -> Any:
    return TASK.benchmark.truth(step.source, step.screen)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_recognised_read_kept_and_given_back(tmp_path: Path, form: str) -> None:
    data = FORMS[form](tmp_path)
    source = load(data)
    assert recognise(data) == ["aitw"]
    assert not source.findings
    assert {step.tags["form"] for step in source.steps} == {form}
    shots = [step.media["screenshot"] or pytest.fail(form) for step in source.steps]
    assert {media.image_size(shot) for shot in shots} == {phones.SCREEN}
    assert {step.screen for step in source.steps} == {phones.SCREEN}
    rows = list(dump(source))
    if form == "aitw":
        wanted = [example(1, results__action_type=[10]), example(0, "8", episode_length=[1])]
        wanted[1]["image/encoded"] = [phones.png(5)]
        assert rows == [*wanted, example(0)]
    else:
        files = sorted(data.rglob("*.json"))
        assert rows == [each for file in files for each in json.loads(file.read_text())]
    found = omnidata.load_dataset("aitw", data, form.upper(), split="test")
    assert found["sample_id"][:] == [step.sample_id for step in source.steps]
    assert all(each["bytes"] or each["path"] for each in found["screenshot"])
    convert(source, tmp_path / "out", embed=True)
    back = load(tmp_path / "out")
    assert list(dump(back)) == rows
    for step, again, shot in zip(source.steps, back.steps, shots, strict=True):
        assert (step.action, step.tags, truth(step)) == (again.action, again.tags, truth(again))
        held = again.media["screenshot"]
        assert held and np.array_equal(media.image(held).pixels, media.image(shot).pixels)


def test_steps_are_put_in_order_and_have_their_history(tmp_path: Path) -> None:
    steps = load(wild(tmp_path)).steps
    assert [step.sample_id for step in steps] == [
        "GOOGLE_APPS-7/0", "GOOGLE_APPS-7/1", "GOOGLE_APPS-8/0",
    ]  # fmt: skip
    first, second, _ = steps
    assert second.action and second.action.label == "TASK_COMPLETE"
    assert second.history == (first.action,)
    assert first.action and first.action.start == (Point(0.25, 0.5, "rel"),)  # y before x in rows
    assert first.tags == {
        "form": "aitw", "subset": "google_apps", "device": "pixel_4", "android": "33",
    }  # fmt: skip


def test_boxes_are_from_0_to_1_whatever_the_form_says(tmp_path: Path) -> None:
    steps = [load(make(tmp_path)).steps[0] for make in FORMS.values()]
    sized = zoo(image_width=90, image_height=200, ui_positions="[[0.1, 0.2, 0.3, 0.4]]")
    steps.append(load(zoo_episode(tmp_path / "sized", {**sized, "episode_length": 1})).steps[0])
    assert steps[-1].tags["form"] == "cagui"  # which alone states a size
    assert [truth(step).rects for step in steps] == [
        ((0.25, 0.25, 0.125, 0.5),),
        ((50 / 200, 18 / 90, 20 / 200, 36 / 90),),
        ((0.25, 0.2, 0.1, 0.4),),
        ((0.1, 0.2, 0.3, 0.4),),
    ]


@pytest.mark.parametrize(
    ("number", "kind", "label", "words"),
    [
        (3, "type", "INPUT", None),
        (4, "tap", "TAP", None),
        (5, "back", "BACK", None),
        (6, "home", "HOME", None),
        (7, "enter", "ENTER", "ENTER"),
        (10, "done", "TASK_COMPLETE", None),
        (11, "done", "TASK_IMPOSSIBLE", None),
    ],
)
def test_the_enum_is_android_in_the_wilds(
    tmp_path: Path, number: int, kind: str, label: str, words: str | None
) -> None:
    rows = zoo(result_action_type=number, result_action_text="a", episode_length=1)
    data = records(tmp_path / "x" / "a", example(results__action_type=[number], episode_length=[1]))
    for source in (load(zoo_episode(tmp_path / "zoo", rows)), load(data)):
        (step,) = source.steps
        assert truth(step).action.kind == kind
        assert step.action and (step.action.label, step.action.words) == (label, words)


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 8, 9, 12, 4.0, True, "4", None])
def test_a_number_of_another_enum_is_refused_and_not_reinterpreted(
    tmp_path: Path, number: Any
) -> None:
    source = load(zoo_episode(tmp_path, zoo(0), zoo(1, result_action_type=number)))
    assert codes(source.findings) == {"action-unusable": 1}
    (found,) = source.findings
    assert (found.severity, found.where.split()[0]) == ("error", "GENERAL-5/1")
    assert found.sample_ids == ("GENERAL-5/1",)
    assert "Android in the Wild's enum (3 TYPE, 4 DUAL_POINT," in found.what
    assert source.steps[1].action is None
    assert truth(source.steps[1]) is None


def test_cagui_alone_has_long_presses_and_waiting(tmp_path: Path) -> None:
    rows = [cagui(), cagui(1, result_action_type=1), cagui(2, result_action_type=2)]
    source = load(zoo_episode(tmp_path, *({**r, "episode_length": 3} for r in rows), name="77"))
    kinds = [truth(step) and truth(step).action.kind for step in source.steps]
    assert kinds == ["long_press", "wait", None]


@pytest.mark.parametrize(
    "broken",
    [
        {"result_touch_yx": "[0.5]"},
        {"result_touch_yx": "[0.5, NaN]"},
        {"result_lift_yx": '["a", 1]'},
        {"result_lift_yx": "[" * 5000},
        {"result_touch_yx": None},
        {"result_touch_yx": [1e300, 0]},
        {"result_action_type": 3, "result_action_text": None},
    ],
)
def test_an_action_that_cannot_be_read_is_a_finding_and_the_row_stays(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    source = load(zoo_episode(tmp_path, zoo(0), zoo(1, **broken)))
    assert codes(source.findings) == {"action-unusable": 1}
    assert source.steps[1].source == zoo(1, **broken)


def test_missing_and_repeated_steps_are_found(tmp_path: Path) -> None:
    rows = [zoo(0), zoo(3, result_action_type=5), zoo(3), zoo("x"), zoo(-1), zoo(10**6)]
    source = load(zoo_episode(tmp_path, *(r | {"episode_id": 5} for r in rows)))
    assert codes(source.findings) == {"id-repeated": 1, "id-missing": 3, "length-differs": 1}
    assert source.skipped == 4
    first, last = source.steps
    assert last.history == (first.action, None, None)
    assert source.row_ids == ["GENERAL-5/0", "GENERAL-5/3", None, None, None, None]


def test_pictures_are_found_beside_the_file_or_where_the_row_says(tmp_path: Path) -> None:
    folder = zoo_episode(tmp_path / "general", zoo(0, episode_length=1))
    rows = folder / "GENERAL-5.json"

    def shot(data: Path) -> str:
        found = load(data).steps[0].media["screenshot"]
        return found.path if found else ""

    assert shot(rows) == "GENERAL-5_0.png"
    rows.rename(tmp_path / "general" / "GENERAL-5.json")
    assert shot(tmp_path) == "general/GENERAL-5/GENERAL-5_0.png"


def test_boxes_in_pixels_of_a_missing_picture_are_no_boxes_and_that_is_said(
    tmp_path: Path,
) -> None:
    folder = zoo_episode(tmp_path, zoo(0, episode_length=1))
    (folder / "GENERAL-5_0.png").unlink()
    source = load(folder)
    assert Counter(f.code for f in source.findings) == {"boxes-unusable": 1, "media-absent": 1}
    assert truth(source.steps[0]).rects == ()


def test_a_hostile_path_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(phones.png())
    rows = [zoo(0, image_path="../secret.png", episode_length=1)]
    folder = zoo_episode(tmp_path / "data", *rows)
    (folder / "GENERAL-5_0.png").unlink()
    shot = load(folder).steps[0].media["screenshot"]
    assert shot and shot.path == "GENERAL-5_0.png"


def test_a_broken_record_ends_its_file_and_no_other(tmp_path: Path) -> None:
    data = wild(tmp_path)
    other, plain = sorted((data / "google_apps").iterdir())
    plain.write_bytes(plain.read_bytes()[:-3])
    source = load(data)
    assert codes(source.findings) == {"record-broken": 1, "length-differs": 1}
    assert len(source.steps) == 2
    other.unlink()
    with pytest.raises(DataError, match=f"{plain.name} is broken"):
        load(data)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image/encoded": [b"x" * 99]}, "99 bytes are no 90 x 200 x 3 pixels"),
        ({"image/encoded": [phones.png()[:-20]]}, "end marker"),
        ({"image/encoded": [phones.png(0, (80, 200))]}, "80 x 200"),
        ({"image/encoded": []}, "the record has none"),
        ({"image/channels": [4], "image/encoded": [bytes(90 * 200 * 4)]}, "no 90 x 200 x 4"),
    ],
)
def test_a_picture_that_nobody_can_take_is_found_when_it_is_read(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    data = records(tmp_path / "x" / "a", example(episode_length=[1]) | changes)
    (found,) = load(data).findings
    assert (found.code, found.where) == ("media-broken", "7/0")
    assert says in found.what


@pytest.mark.parametrize("content", ["", "[]", "{}", "[1]", "[" * 9000, '[{"a": 1}]'])
def test_files_without_a_row_are_refused(tmp_path: Path, content: str) -> None:
    for name in ("a.json", "a.tfrecord", "a-00000-of-00001"):
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError) as caught:
            load(tmp_path / name)
        assert caught.value.expected
    signs = '[{"result_touch_yx": "", "result_action_type": 4}, '
    (tmp_path / "b.json").write_text(signs)
    with pytest.raises(DataError, match="no row of aitw could be read: it is no JSON"):
        load(tmp_path / "b.json")


def check_real(source: LoadedDataset) -> None:
    assert not source.findings
    kinds = [step.action and step.action.label for step in source.steps]
    assert kinds == ["HOME", "SWIPE_UP", "TAP", "TASK_COMPLETE"]
    assert {step.screen for step in source.steps} == {(270, 600)}


@real
def test_the_real_episode_is_read_flat_and_given_back(tmp_path: Path) -> None:
    name = "GOOGLE_APPS-523638528775825151"
    rows = json.loads((REAL / f"{name}.json").read_text())
    for data in (REAL, REAL / f"{name}.json"):
        source = load(data)
        check_real(source)
        assert [step.sample_id for step in source.steps] == [f"{name}/{n}" for n in range(4)]
        assert list(dump(source)) == rows
    tap = truth(source.steps[2])
    # The tap is on the clock: one of the 42 elements, in (y, x, height, width) of 600 x 270.
    assert len(tap.rects) == 42
    assert tap.action.start == (Point(0.6069772839546204, 0.49836206436157227, "rel"),)
    out = tmp_path / "out"
    convert(source, out, embed=True)
    check_real(load(out))
    assert list(dump(load(out))) == rows


def test_links_that_lead_to_themselves_are_passed_over(tmp_path: Path) -> None:
    folder = zoo_episode(tmp_path, zoo(0, episode_length=1))
    for name in ("self", "self.tfrecord"):
        (folder / name).symlink_to(name)
    assert len(load(tmp_path).steps) == 1


@pytest.mark.parametrize(("width", "height"), [(2**62, 9), (-90, -200), (9.5, 200)])
def test_a_size_that_no_screen_has_is_unknown(tmp_path: Path, width: float, height: float) -> None:
    sizes: dict[str, list[Any]] = {"image/width": [width], "image/height": [height]}
    records(tmp_path / "data" / "general", example(0, episode_length=[1]) | sizes)
    zoo_episode(tmp_path / "zoo", cagui(0, image_width=width, image_height=height), name="77")
    wild, garden = load(tmp_path / "data"), load(tmp_path / "zoo")
    assert codes(wild.findings) == {"size-unusable": 1, "media-broken": 1}
    assert codes(garden.findings) == {"size-unusable": 1}
    assert [source.steps[0].screen for source in (wild, garden)] == [(0, 0), phones.SCREEN]
    convert(wild, tmp_path / "parquet", embed=True)
    assert load(tmp_path / "parquet").steps[0].screen == (0, 0)


def test_a_touch_outside_the_screen_is_a_finding(tmp_path: Path) -> None:
    zoo_episode(tmp_path, zoo(0, result_touch_yx="[500, 0.5]", episode_length=1))
    assert codes(load(tmp_path).findings) == {"target-outside": 1}


def splits(data: Path, **files: Any) -> Path:
    """The release's split files, beside the folders with the records."""
    (data / "splits").mkdir()
    for name, parts in files.items():
        (data / "splits" / f"{name}.json").write_text(json.dumps(parts))
    return data


def test_split_files_say_what_an_episode_is_for(tmp_path: Path) -> None:
    data = wild(tmp_path / "data")
    before = TASK.benchmark.fingerprint(data)
    standard = {"train": [], "validation": ["8"], "test": ["7"]}
    splits(data, standard=standard, unseen_verb={"train": ["7"], "validation": [], "test": []})
    source = load(data)
    assert not source.findings
    assert source.fingerprint != before
    assert source.tags[-2:] == ("split_standard", "split_unseen_verb")
    convert(source, tmp_path / "out", embed=True)
    for found in (source, load(tmp_path / "out")):
        assert found.tags == source.tags
        told = [[step.tags.get(name) for name in source.tags[-2:]] for step in found.steps]
        assert told == [["test", "train"], ["test", "train"], ["validation", None]]


@pytest.mark.parametrize("content", ['{"train": 1}', "[]", "{", '{"a": ["x"], "b": ["x"]}'])
def test_a_split_file_that_cannot_be_read_is_a_finding(tmp_path: Path, content: str) -> None:
    data = splits(wild(tmp_path / "data"))
    (data / "splits" / "standard.json").write_text(content)
    assert codes(load(data).findings) == {"splits-unusable": 1}
