"""What `validate` makes of hostile files, of repositories, and of data that is as it should be."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidata import following
from omnidata.actions import Action
from omnidata.data.convert import convert
from omnidata.data.validate import Report, validate
from omnidata.loaders.tree_writer import TreeEpisode, TreeStep, TreeWriter
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.data.planted import STEPS
from tests.data.tiny import SIZE, endless, mp4, png, wav
from tests.full import in_gate
from tests.trees import write_rows

WAIT, TAP = Action("none"), Action("back")


def write(root: Path, *, steps: int = STEPS, action: Action = TAP, **extra: Any) -> Path:
    """An episode in which nothing is wrong; the folder of its media."""
    with TreeWriter(root) as tree:
        moments = [
            TreeStep(action, screen=SIZE, screenshot=png(n), video=mp4(n), audio=wav(n))
            for n in range(steps)
        ]
        tree.add(
            TreeEpisode(
                "E", app="App", dimension="localization", steps=moments, language="en",
                instruction_en="Tap Share", extra=extra,
            )
        )  # fmt: skip
    return root / "App" / "media" / "E"


def load(root: Path) -> LoadedDataset:
    return get_task("omnigui").load(root, check_media=False)


def found(report: Report) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in report.findings]


def look(root: Path, workers: int = 0, **options: Any) -> list[tuple[str, str]]:
    return found(validate(load(root), workers=workers, **options))


def test_data_as_it_should_be_give_no_finding(tmp_path: Path) -> None:
    write(tmp_path / "data")
    report = validate(load(tmp_path / "data"))
    assert found(report) == []
    assert report.quarantine == []
    assert report.checked == {
        "episodes": 1, "steps": 3, "skipped": 0, "media": {"image": 3, "video": 3, "audio": 3},
    }  # fmt: skip


@pytest.mark.parametrize("data", in_gate(["few", "sample"], 1, "ten seconds of decoding"))
def test_the_sample_dataset_gives_no_finding(data: str, request: pytest.FixtureRequest) -> None:
    """Its still clips follow a wait on the same screen, and every room has its noise."""
    done: list[tuple[int, int]] = []
    report = validate(
        load(request.getfixturevalue(data)),
        workers=0,
        progress=lambda count, total: done.append((count, total)),
    )
    assert found(report) == []
    total = sum(report.checked["media"].values())
    assert done == [(number, total) for number in range(1, total + 1)]


def test_a_still_clip_after_a_wait_or_before_the_first_action_is_as_it_should_be(
    tmp_path: Path,
) -> None:
    for action, codes in ((WAIT, []), (TAP, ["screenshot-repeated", "clip-frozen"])):
        media = write(tmp_path / action.label, action=action)
        for name in ("1.mp4", "2.mp4"):
            (media / name).write_bytes(mp4(0, moves=False))
        (media / "2.png").write_bytes((media / "1.png").read_bytes())
        assert look(tmp_path / action.label) == [(code, "App/E/1") for code in codes]


def test_a_clip_that_freezes_where_the_screen_changed_is_found_after_a_wait(tmp_path: Path) -> None:
    media = write(tmp_path / "data", action=WAIT)
    (media / "2.mp4").write_bytes(mp4(0, moves=False))
    assert look(tmp_path / "data") == [("clip-frozen", "App/E/1")]


def test_a_broken_screenshot_puts_every_step_that_shows_it_into_quarantine(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    (media / "1.png").unlink()
    report = validate(load(tmp_path / "data"), workers=0)
    assert found(report) == [("media-missing", "App/E/0")]
    assert "used by 2 steps" in report.findings[0].what
    assert report.quarantine == ["App/E/0", "App/E/2"]  # the second as its history screenshot


def test_a_gap_puts_the_episode_into_quarantine(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    rows = json.loads((media / "E.json").read_text())
    for path in (media / "E.json", tmp_path / "data" / "App" / "dataset_App.json"):
        write_rows(path, [rows[0], rows[2]])
    report = validate(load(tmp_path / "data"), workers=0)
    assert [finding.code for finding in report.findings] == ["step-gap"]
    assert report.quarantine == ["App/E/0", "App/E/2"]


def test_annotations_alone_are_one_finding(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    for path in media.glob("*.[pmw]*"):
        path.unlink()
    report = validate(load(tmp_path / "data"), workers=0)
    assert [finding.code for finding in report.findings] == ["media-absent"]
    assert report.errors == 0


def test_a_decode_that_takes_too_long_is_a_finding_and_the_others_go_on(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    (media / "1.mp4").write_bytes(endless())
    (media / "3.wav").unlink()
    assert look(tmp_path / "data", workers=1, limit_s=1) == [
        ("media-timeout", "App/E/0"),
        ("media-missing", "App/E/2"),
    ]


@pytest.mark.parametrize("said", [1.5, 4.0])
def test_a_track_whose_header_promises_more_samples_is_truncated(
    tmp_path: Path, said: float
) -> None:
    media = write(tmp_path / "data")
    whole = bytearray((media / "2.wav").read_bytes())
    whole[40:44] = struct.pack("<I", int(said * (len(whole) - 44)))
    (media / "2.wav").write_bytes(whole)
    assert look(tmp_path / "data") == [("media-truncated", "App/E/1")]


def test_a_broken_medium_is_found_inside_a_parquet_repository(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    (media / "1.wav").write_bytes((media / "1.wav").read_bytes()[:9000])
    (media / "2.mp4").write_bytes(b"no clip" * 900)
    (media / "3.wav").write_bytes(wav(0, volume=0))
    convert(load(tmp_path / "data"), tmp_path / "repository", embed=True)
    for place in ("data", "repository"):
        assert look(tmp_path / place) == [
            ("media-truncated", "App/E/0"),
            ("media-unreadable", "App/E/1"),
            ("audio-silent", "App/E/2"),
        ]


def test_a_screenshot_that_is_embedded_twice_is_looked_at_and_reported_once(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    (media / "1.png").write_bytes((media / "1.png").read_bytes()[:-40])
    (media / "3.png").write_bytes((media / "2.png").read_bytes())
    convert(load(tmp_path / "data"), tmp_path / "repository", embed=True)
    reports = [validate(load(tmp_path / name), workers=0) for name in ("data", "repository")]
    assert found(reports[0]) == found(reports[1])
    assert found(reports[1])[0] == ("media-truncated", "App/E/0")
    assert "used by 2 steps" in reports[1].findings[0].what
    assert reports[0].checked == reports[1].checked


def test_an_embedded_file_that_an_earlier_step_has_named_is_found(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    for path in (media / "E.json", tmp_path / "data" / "App" / "dataset_App.json"):
        rows = json.loads(path.read_text())
        rows[2]["image_path"] = rows[0]["image_path"]
        write_rows(path, rows)
    convert(load(tmp_path / "data"), tmp_path / "repository", embed=True)
    for name in ("data", "repository"):
        assert look(tmp_path / name) == [("screenshot-repeated", "App/E/2")]


def test_a_linked_file_that_changed_is_found(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    convert(load(tmp_path / "data"), tmp_path / "repository", embed=False)
    (media / "2.mp4").write_bytes(mp4(77))
    with following([tmp_path / "data"]):
        assert look(tmp_path / "repository") == [("media-changed", "App/E/1")]
    assert look(tmp_path / "data") == []


@pytest.mark.parametrize(
    ("number", "changes", "wrong"),
    [
        (1, {"history": (None,)}, ""),
        (1, {"history": ()}, "history-differs"),
        (1, {"history": (Action("home"),)}, "history-differs"),
        (0, {"instruction": "点击分享"}, "language-differs"),
    ],
)
def test_a_history_of_other_actions_or_another_language_is_found(
    tmp_path: Path, number: int, changes: dict[str, Any], wrong: str
) -> None:
    write(tmp_path / "data")
    source = load(tmp_path / "data")
    steps = [*source.steps]
    steps[number] = replace(steps[number], **changes)
    report = validate(replace(source, steps=steps), workers=0)
    assert found(report) == ([(wrong, f"App/E/{number}")] if wrong else [])


def test_episodes_without_any_history_contradict_no_target(tmp_path: Path) -> None:
    write(tmp_path / "data")
    source = load(tmp_path / "data")
    steps = [replace(step, history=(), history_screens=()) for step in source.steps]
    assert found(validate(replace(source, steps=steps), workers=0)) == []


def test_a_text_that_the_loader_has_reported_is_not_reported_again(tmp_path: Path) -> None:
    with TreeWriter(tmp_path / "data") as tree:
        for name in ("E", "E/1", "E1", "F"):
            step = TreeStep(TAP, screen=SIZE, screenshot=png(1))
            tree.add(
                TreeEpisode(
                    name.replace("/", "_"), app="App", dimension="localization", steps=[step],
                    language="en", instruction_en="点击分享" if name != "E1" else "Tap Share",
                )
            )  # fmt: skip
    report = validate(load(tmp_path / "data"), workers=0)
    where = [f.where.partition(" (")[0] for f in report.findings if f.code == "language-differs"]
    assert sorted(where) == ["App/E", "App/E_1", "App/F"]


def test_audio_that_rows_hold_themselves_is_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "data")
    source = load(tmp_path / "data")
    quiet: Mapping[str, Any] = {"array": [0.0] * 9600, "sampling_rate": 16_000}
    loud: Mapping[str, Any] = {"array": [0.1, -0.1] * 4800, "sampling_rate": 16_000}
    steps = []
    for step, held in zip(source.steps, (loud, quiet, {"array": "x"}), strict=True):
        ref = step.media["audio"]
        assert ref is not None
        steps.append(
            replace(step, media={**step.media, "audio": replace(ref, path="", inline=held)})
        )
    assert found(validate(replace(source, steps=steps), workers=0)) == [
        ("audio-silent", "App/E/1"),
        ("media-unreadable", "App/E/2"),
    ]


@pytest.mark.parametrize(("screen", "shown"), [((0, 0), False), ((0, 0), True), ((9, 0), True)])
def test_a_clip_on_a_screen_of_no_size_has_no_shape_to_differ_from(
    tmp_path: Path, screen: tuple[int, int], shown: bool
) -> None:
    """A recording alone has no screenshot that would tell the size."""
    write(tmp_path / "data")
    source = load(tmp_path / "data")
    steps = [
        replace(
            step, screen=screen,
            media=step.media if shown else {"screenshot": None, "video": step.media["video"]},
        )
        for step in source.steps
    ]  # fmt: skip
    report = validate(replace(source, steps=steps), workers=0)
    codes = {finding.code for finding in report.findings}
    assert "aspect-differs" not in codes
    assert ("size-differs" in codes) == any(screen)  # (0, 0) is unknown
    assert ("media-missing" in codes) != shown
    assert report.checked["media"]["video"] == STEPS
