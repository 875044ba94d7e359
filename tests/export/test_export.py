"""What an export leaves on the disk, whatever happens."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from omnidata import media
from omnidata.actions import Action, Screen, Space
from omnidata.data.convert import convert
from omnidata.errors import DataError, UsageError
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.omnigui.task import OmniGui
from omnidata.training.media_store import Sizing
from omnidata.types import MediaRef, Step, Target
from tests.data.tiny import SIZE, png
from tests.export.small import (
    ACTIONS,
    BACK,
    TAP,
    answer,
    codes,
    folder,
    load,
    rows,
    stop_at_the_end,
    studio,
    tree,
    written,
)
from tests.trees import row, write_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tree(tmp_path / "data")


def files(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }


def pictures(out: Path) -> list[tuple[int, int]]:
    found = [one["images"][-1] for one in rows(out)]
    return [media.image_size(MediaRef("image", out, path)) for path in found]


def test_media_are_hard_links_to_their_files_under_names_of_our_own(
    data: Path, tmp_path: Path
) -> None:
    written(data, tmp_path / "out")
    sources = {path.stat().st_ino for path in folder(data).glob("[1-4].*")}
    found = list((tmp_path / "out" / "media").iterdir())
    assert {path.stat().st_ino for path in found} == sources
    assert all(len(path.stem) == 32 and int(path.stem, 16) >= 0 for path in found)


def test_copies_share_nothing_with_the_data(data: Path, tmp_path: Path) -> None:
    written(data, tmp_path / "linked")
    written(data, tmp_path / "copied", copy=True)
    linked, copied = (files(tmp_path / name) for name in ("linked", "copied"))
    del linked["export.json"], copied["export.json"]
    assert linked == copied
    found = (tmp_path / "copied" / "media").iterdir()
    assert all(path.stat().st_nlink == 1 for path in found)


def test_media_that_are_the_same_are_one_file(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", actions=ACTIONS)
    shutil.copy(folder(data) / "1.wav", folder(data) / "2.wav")
    done = written(data, tmp_path / "out")
    assert done.report["media"] == 11
    assert len(list((tmp_path / "out" / "media").iterdir())) == 11


def test_two_cuts_of_one_clip_are_two_files_for_the_next_call_too(
    data: Path, tmp_path: Path
) -> None:
    """Of a clip in a row of Parquet, whose file says nothing of the cut."""
    convert(load(data), tmp_path / "parquet", embed=True)
    source = load(tmp_path / "parquet")
    clip = source.steps[0].media["video"]
    assert clip
    cuts = [
        replace(step, media={**step.media, "video": replace(clip, until=share)})
        for step, share in zip(source.steps, (1.0, 0.7, 0.4), strict=False)
    ]
    changed = replace(source, steps=cuts)
    with pytest.raises(KeyboardInterrupt):
        written(changed, tmp_path / "out", format="swift", progress=stop_at_the_end)
    written(changed, tmp_path / "out", format="swift")
    names = [name for row in rows(tmp_path / "out") for name in row["videos"]]
    assert len(names) == len(set(names)) == 3
    found = (media.examine(MediaRef("video", tmp_path / "out", name)) for name in names)
    lengths = [each.frames or 0 for each in found]
    assert lengths == sorted(set(lengths), reverse=True)


@pytest.mark.parametrize(
    ("sizing", "size"),
    [
        (Sizing(), SIZE),
        (Sizing(longest=100), (45, 100)),
        (Sizing(factor=28), (84, 168)),
        (Sizing(factor=32, max_pixels=8 * 1024), (32, 128)),
    ],
)
@pytest.mark.parametrize("form", ["llamafactory", "swift"])
def test_pixels_are_those_of_the_picture_in_the_export(
    form: str, sizing: Sizing, size: tuple[int, int], data: Path, tmp_path: Path
) -> None:
    """Held against the source's boxes as evaluation holds a model's answer."""
    out = tmp_path / "out"
    done = written(data, out, format=form, coordinates="px", sizing=sizing)
    assert codes(done) == ["unit-differs"]
    assert pictures(out) == [size] * 4
    task = get_task("omnigui", {"coordinates": "px"})
    profile = task.profiles["omnigui-paper"]
    line = {"role": "screenshot", "width": size[0], "height": size[1], "original": list(SIZE)}
    for step, one in zip(load(data).steps, rows(out), strict=True):
        assert profile.judge(step, answer(one), {"parts": [line]}).values[1] is True
    (x, y) = json.loads(answer(rows(out)[0]))["coordinate"]
    assert (x / size[0], y / size[1]) == pytest.approx((20 / 72, 32 / 160), abs=0.02)


class Unscaled(OmniGui):
    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        return super().target(step, space=space)


def test_a_target_that_does_not_follow_the_size_of_its_picture_is_no_row(
    data: Path, tmp_path: Path
) -> None:
    task = Asking(Unscaled("omnigui", {"coordinates": "px", "modalities": "I"}))
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"(?s)E00/0.* near \(10, 16\)") as caught:
        written(data, out, task=task, format="trl", sizing=Sizing(longest=80))
    assert "correct `target`" in str(caught.value)
    assert not out.exists()
    written(data, out, task=task, format="trl")
    assert len(rows(out)) == len(ACTIONS)


def test_a_picture_that_is_resized_shows_the_whole_screen(data: Path, tmp_path: Path) -> None:
    written(data, tmp_path / "out", sizing=Sizing(factor=28))
    shown = MediaRef("image", tmp_path / "out", rows(tmp_path / "out")[0]["images"][0])
    before = media.image(MediaRef("image", folder(data), "1.png")).pixels
    pixels = media.image(shown).pixels
    assert np.abs(media.resize(before, (84, 168)).astype(int) - pixels).max() == 0


def test_a_picture_that_asks_to_be_turned_is_written_upright_without_the_tag(
    tmp_path: Path,
) -> None:
    """Trainers that obey the tag and those that do not see one picture."""
    data = tree(tmp_path / "data", actions=[TAP])
    path = folder(data) / "1.png"
    with Image.open(path) as picture:
        upright = np.asarray(picture.convert("RGB"))
        exif = picture.getexif()
        exif[0x0112] = 6
        picture.transpose(Image.Transpose.ROTATE_90).save(path, exif=exif)
    written(data, tmp_path / "out")
    with Image.open(tmp_path / "out" / rows(tmp_path / "out")[0]["images"][0]) as picture:
        assert picture.getexif().get(0x0112, 1) == 1
        assert np.array_equal(np.asarray(picture), upright)


@pytest.mark.parametrize("name", ["2.png", "2.mp4", "2.wav"])
@pytest.mark.parametrize("damage", ["cut", "gone", "noise"])
def test_a_step_with_a_medium_that_does_not_decode_is_left_out_and_named(
    name: str, damage: str, data: Path, tmp_path: Path
) -> None:
    path = folder(data) / name
    whole = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"noise" * 100)
    done = written(data, tmp_path / "out")
    left = ["App/E00/1", "App/E00/3"] if name == "2.png" else ["App/E00/1"]
    assert [(found.code, found.where) for found in done.findings] == [
        ("media-broken", sample) for sample in left
    ]
    assert len(rows(tmp_path / "out")) == 4 - len(left)


def test_a_medium_that_is_not_exported_may_be_broken(data: Path, tmp_path: Path) -> None:
    (folder(data) / "2.wav").write_bytes(b"noise")
    assert codes(written(data, tmp_path / "out", drop_audio=True)) == ["media-dropped"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"action": None}, "target-missing"),
        ({"action": Action("type", text=None)}, "target-missing"),
        ({"media": {"screenshot": None}}, "picture-missing"),
        ({"instruction": "half a pair: \ud800"}, "text-unwritable"),
    ],
)
def test_a_step_that_makes_no_row_is_left_out_and_named(
    change: dict[str, Any], code: str, data: Path, tmp_path: Path
) -> None:
    source = load(data)
    first = source.steps[0]
    if "media" in change:
        change = {"media": {**first.media, **change["media"]}}
    steps = [replace(first, **change), *source.steps[1:]]
    done = written(replace(source, steps=steps), tmp_path / "out")
    assert [(found.code, found.where) for found in done.findings] == [(code, "App/E00/0")]
    assert len(rows(tmp_path / "out")) == 3


def test_in_pixels_a_screenshot_of_another_size_than_its_row_says_is_named(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", actions=[TAP, BACK])
    (folder(data) / "1.png").write_bytes(png(1, (36, 80)))
    done = written(data, tmp_path / "out", coordinates="px")
    assert codes(done) == ["size-differs", "unit-differs"]
    assert not written(data, tmp_path / "relative").findings


def test_paths_that_leave_the_data_are_never_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png(0))
    bad = [
        row(image_path="../secret.png", video_path=None, audio_path=None),
        row("T2", image_path=str(tmp_path / "secret.png"), video_path=None, audio_path=None),
    ]
    path = write_rows(tmp_path / "data" / "steps.json", bad)
    with pytest.raises(DataError, match="none of 2 steps can be exported"):
        written(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_interrupted_export_goes_on_and_equals_an_uninterrupted_one(
    data: Path, tmp_path: Path
) -> None:
    def stop_early(done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    small = Sizing(longest=100)
    with pytest.raises(KeyboardInterrupt):
        written(data, tmp_path / "out", sizing=small, progress=stop_early)
    assert not (tmp_path / "out").exists()
    unfinished = tmp_path / ".out.unfinished"
    left = {path: path.stat().st_mtime_ns for path in (unfinished / "media").iterdir()}
    assert len(left) >= 7
    written(data, tmp_path / "out", sizing=small)
    written(data, tmp_path / "other", sizing=small)
    assert files(tmp_path / "out") == files(tmp_path / "other")
    kept = [
        path
        for path, time in left.items()
        if (tmp_path / "out" / "media" / path.name).stat().st_mtime_ns == time
    ]
    assert len(kept) >= 7
    assert not unfinished.exists()


def test_what_changed_since_the_interruption_is_made_again(data: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        written(data, tmp_path / "out", progress=stop_at_the_end)
    path = folder(data) / "1.png"
    path.unlink()
    path.write_bytes(png(77))
    written(data, tmp_path / "out")
    written(data, tmp_path / "other")
    assert files(tmp_path / "out") == files(tmp_path / "other")


def test_other_settings_begin_anew(data: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        written(data, tmp_path / "out", sizing=Sizing(longest=50), progress=stop_at_the_end)
    written(data, tmp_path / "out")
    assert pictures(tmp_path / "out") == [SIZE] * 4


def test_an_export_is_replaced_only_when_asked_and_nothing_else_ever(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    written(data, out)
    with pytest.raises(UsageError, match="there is an export here already") as error:
        written(data, out)
    assert "--overwrite" in error.value.remedy
    written(data, out, format="swift", overwrite=True)
    assert "dataset_info.json" not in files(out)
    assert sorted(tmp_path.glob(".out*")) == [tmp_path / ".out.lock"]
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="there is something here already"):
        written(data, out, overwrite=True)
    assert (out / "notes.txt").read_text() == "mine"


def test_an_export_into_the_data_is_refused(data: Path, tmp_path: Path) -> None:
    for out in (data, data.parent, data / "App"):
        with pytest.raises(UsageError, match=r"here already|lies in there"):
            written(data, out, overwrite=True)


def test_a_parquet_repository_gives_the_same_rows(data: Path, tmp_path: Path) -> None:
    convert(load(data), tmp_path / "parquet", embed=True)
    written(data, tmp_path / "a")
    written(tmp_path / "parquet", tmp_path / "b")
    a, b = files(tmp_path / "a"), files(tmp_path / "b")
    del a["export.json"], b["export.json"]
    assert a == b


def test_sound_that_a_row_holds_is_written_as_wav(tmp_path: Path) -> None:
    held = {"array": [0.0, 0.25, -0.25] * 4000, "sampling_rate": 16_000}
    one = row(audio_path=None, audio=held, video_path=None)
    path = write_rows(tmp_path / "data" / "steps.json", [one])
    (tmp_path / "data" / "T1").mkdir()
    (tmp_path / "data" / "T1" / "1.png").write_bytes(png(0, (720, 1600)))
    source = load(path)
    step = source.steps[0]
    ref = MediaRef("audio", path.parent, "", inline=held)
    steps = [replace(step, media={**step.media, "audio": ref})]
    assert not written(replace(source, steps=steps), tmp_path / "out").findings
    (name,) = rows(tmp_path / "out")[0]["audios"]
    samples = media.samples(MediaRef("audio", tmp_path / "out", name))
    assert samples[:3].tolist() == [0.0, 0.25, -0.25]


def test_rows_that_have_something_in_a_column_come_first(tmp_path: Path) -> None:
    """`datasets` takes the columns' types from the beginning of a file."""
    data = tree(tmp_path / "data")
    source = load(data)
    steps = [
        replace(step, media={**step.media, **(dict.fromkeys(("video", "audio")) if n < 3 else {})})
        for n, step in enumerate(source.steps)
    ]
    written(replace(source, steps=steps), tmp_path / "out", format="swift", objects="norm1")
    order = [one["sample_id"][-1] for one in rows(tmp_path / "out")]
    assert order == ["0", "3", "1", "2"]


def test_splits_are_whole_episodes_and_seen_lists_what_is_not_for_testing(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", episodes=20, actions=[TAP])
    shares = {"train": 0.4, "validation": 0.2, "test": 0.4}
    done = written(data, tmp_path / "out", shares=shares)
    found = {
        split: {one["sample_id"] for one in rows(tmp_path / "out", split)}
        for split in done.report["splits"]
    }
    assert len(found) == 3
    episodes = [{sample.split("/")[1] for sample in samples} for samples in found.values()]
    assert sum(map(len, episodes)) == len(set.union(*episodes)) == 20
    seen = (tmp_path / "out" / "seen.txt").read_text().splitlines()
    assert set(seen[1:]) == found["train"] | found["validation"]
    assert seen[0].startswith("# ")


def test_a_split_that_nothing_falls_into_is_said(data: Path, tmp_path: Path) -> None:
    done = written(data, tmp_path / "out", shares={"train": 0.5, "validation": 0.25, "test": 0.25})
    assert codes(done) == ["split-empty", "split-empty"]
    assert all(found.severity == "warning" for found in done.findings)


def test_a_spoken_instruction_is_not_dropped(data: Path, tmp_path: Path) -> None:
    (tmp_path / "voices").mkdir()
    task = get_task("omnigui", {"voice": str(tmp_path / "voices")})
    with pytest.raises(UsageError, match="the spoken instruction is lost"):
        written(data, tmp_path / "out", task=task, format="trl", drop_audio=True)
    with pytest.raises(DataError, match="no spoken form"):
        written(data, tmp_path / "out", task=task, format="swift")
    assert not (tmp_path / "out").exists()


def labelled(root: Path, *levels: str | None) -> Path:
    """Episodes of two steps whose dependency on sound and motion is labelled, or not."""
    tree(root, episodes=len(levels), actions=[TAP, BACK])
    lines = [
        {"app": "App", "ID": f"E0{number}", "dependency": level}
        for number, level in enumerate(levels)
        if level
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (root / "dependency.jsonl").write_text(text, encoding="utf-8")
    return root


def spoken_of(row: dict[str, Any]) -> str:
    """What the system prompt says that there is."""
    text = json.dumps(row).split("action history, with ")[1]
    return text.split(". You need")[0]


@pytest.mark.parametrize("form", ["trl", "llamafactory", "swift", "qwen-vl", "trl-grpo"])
@pytest.mark.parametrize(
    ("before", "after"), [("IAV", "screenshots and video"), ("IA", "screenshots")]
)
def test_a_prompt_without_sound_does_not_speak_of_it(
    form: str, before: str, after: str, data: Path, tmp_path: Path
) -> None:
    """`--drop-audio` gives the prompts of `-T modalities` without the sound."""
    options: dict[str, Any] = {"format": form, "video": "frames"}
    task = get_task("omnigui", {"modalities": before})
    done = written(data, tmp_path / "out", task=task, drop_audio=True, **options)
    assert {spoken_of(row) for row in rows(tmp_path / "out")} == {after}
    fewer = get_task("omnigui", {"modalities": before.replace("A", "")})
    assert done.report["prompt_hash"] == fewer.prompt_hash
    assert done.report["task_options"] == fewer.options
    written(data, tmp_path / "fewer", task=fewer, **options)
    assert rows(tmp_path / "out") == rows(tmp_path / "fewer")


def test_labels_that_only_the_dropped_sound_explains_are_counted(tmp_path: Path) -> None:
    data = labelled(tmp_path / "data", "critical", "supportive", "present", None, "critical")
    cases: tuple[tuple[Asking, dict[str, Any], str], ...] = (
        (get_task("omnigui"), {"drop_audio": True}, "--drop-audio"),
        (get_task("omnigui", {"modalities": "I"}), {}, "-T modalities=I"),
    )
    for task, options, where in cases:
        out = tmp_path / where.strip("-")
        done = written(data, out, task=task, **options)
        (found,) = done.findings
        assert (found.code, found.severity, found.where) == ("media-dropped", "warning", where)
        assert found.sample_ids == tuple(f"App/E0{e}/{s}" for e in (0, 4) for s in (0, 1))
        assert "4 steps of episodes with dependency=critical" in found.what
        assert ("2 steps without a label" in found.what) == ("drop_audio" in options)
        assert len(rows(out)) == 10
    assert not written(data, tmp_path / "whole").findings


def test_a_benchmark_whose_prompts_have_no_sound_drops_none(tmp_path: Path) -> None:
    data = studio(tmp_path / "data", "groundui")
    done = written(data, tmp_path / "out", task="groundui", drop_audio=True)
    assert "media-dropped" not in codes(done)


def test_a_folder_that_datasets_cannot_open_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be opened"):
        written(data, tmp_path / "out[1]")
