"""`omnidata segment` as a command, and what it does with hostile or broken recordings."""

from __future__ import annotations

import io
import json
import signal
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from filelock import FileLock
from PIL import Image

from omnidata.data.segment import segment
from omnidata.data.segment.plan import Cut
from omnidata.errors import DataError, MediaError
from omnidata.tasks.omnigui.load import load
from tests.cli.running import Started, as_json, here
from tests.data.segment.films import film, noise, tap, write_log
from tests.trees import write_lines


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return film(tmp_path_factory.mktemp("film") / "T0540.mkv", sound=noise(5))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    end = {"time": 4.0, "action": "TASK_COMPLETE"}
    return write_log(tmp_path / "log.jsonl", tap(1.0, 1.2), tap(2.5), end)


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_recording_becomes_an_episode_that_the_oracle_solves(
    recording: Path, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "data"
    summary = as_json(here("segment", recording, log, out, "--json"))
    assert summary == {
        "out": str(out),
        "app": "TED",
        "episode": "T0540",
        "steps": 3,
        "clips": 3,
        "clip_seconds": 3.8,
        "recording_seconds": pytest.approx(5.0, abs=0.002),
        "trimmed": 0,
        "findings": [],
    }
    assert load(out, strict=True).steps[2].action is not None
    model = ("--model", "baseline:oracle", "--out", tmp_path / "run", "--json")
    assert as_json(here("evaluate", "omnigui", out, *model))["overall"]["SR"] == 1.0


def test_options_beat_the_log(recording: Path, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = here(
        *("segment", recording, log, out, "--app", "GTrans", "--episode", "G1"),
        *("--instruction-en", "Say it", "--instruction-zh", "说", "--language", "zh"),
        *("--dimension", "temporal_reasoning", "--dependency", "critical"),
        *("--offset", "-0.5", "--lead", "0.1", "--max-clip", "0.4", "--trim", "0.2:3"),
    )
    assert done.stdout.strip().endswith(
        "GTrans/G1: 2 steps, 0.7 s of clips from a recording of 5.0 s; 1 action outside --trim"
    )
    step = load(out, strict=True).steps[0]
    assert step.instruction == "说"
    assert dict(step.tags) == {
        "app": "GTrans",
        "language": "zh",
        "dimension": "temporal_reasoning",
        "dependency": "critical",
    }
    assert (step.source["clip_start_s"], step.source["screenshot_s"]) == (0.2, 0.4)


def test_actions_outside_the_recording_are_findings_and_exit_code_1(
    recording: Path, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "log.jsonl", tap(-0.5), tap(1.0), tap(9.0))
    done = here("segment", recording, log, tmp_path / "out", code=1)
    assert done.stderr.count("error [event-outside]") == 2
    assert f"{log}:4: TAP begins at 9.00 s" in done.stderr.replace("\n", "")
    assert len(load(tmp_path / "out").steps) == 1
    _, *remedies = done.stderr.split("[event-outside]")
    assert ["--until last-action" in " ".join(text.split()) for text in remedies] == [False, True]


def test_a_still_end_is_held_for_one_recording_and_for_a_list(
    recording: Path, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "log.jsonl", tap(1.0), tap(9.0))
    done = here("segment", recording, log, tmp_path / "out", "--until", "last-action")
    assert "warning [frame-held]" in done.stderr
    assert len(load(tmp_path / "out").steps) == 2
    own: list[dict[str, Any]] = [{"until": "last-action"}, {"until": 9}, {}]
    named = {"recording": str(recording), "events": str(log)}
    lines = [{**named, "episode": name, **line} for name, line in zip("ABC", own, strict=True)]
    many = ("segment", "--workers", "1", "--list", write_lines(tmp_path / "list.jsonl", lines))
    done = here(*many, tmp_path / "many", "--json", code=1)
    assert [episode["steps"] for episode in json.loads(done.stdout)["episodes"]] == [2, 2, 1]
    here(*many, tmp_path / "held", "--until", "9")
    assert len(load(tmp_path / "held").steps) == 6


def test_a_wrong_clock_gives_no_endless_findings(recording: Path, tmp_path: Path) -> None:
    rows = [tap(1.0), *(tap(9.0 + number) for number in range(100))]
    made = segment(recording, write_log(tmp_path / "log.jsonl", *rows), tmp_path / "out")
    assert [finding.code for finding in made.findings] == ["event-outside"] * 21
    assert "and 79 more lie outside" in made.findings[-1].what
    assert made.trimmed == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--trim", "5"), "the part cannot be read"),
        (("--trim", "3:2"), "the part cannot be read"),
        (("--trim", "nan:"), "the part cannot be read"),
        (("--until", "0"), "the time cannot be read"),
        (("--until", "nan"), "the time cannot be read"),
        (("--until", "the end"), "or last-action"),
        (("--lead", "-1"), "the number is out of range"),
        (("--max-clip", "nan"), "the number is out of range"),
        (("--max-clip", "0"), "the number is out of range"),
        (("--app", "Mine", "--instruction-zh", "说"), "give --language"),
        (("--offset", "inf"), "the number is out of range"),
        (("--offset", "100"), "0 of 3 actions are in the used part"),
        (("--app", "../x"), "cannot name a folder"),
        (("--episode", "a/b"), "cannot name a folder"),
        (("--dimension", "space"), "Invalid value for '--dimension'"),
    ],
)
def test_bad_options_are_refused_and_leave_nothing(
    recording: Path, log: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = here("segment", recording, log, tmp_path / "out", *arguments, code=2)
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert left_in(tmp_path) == {"log.jsonl"}


def test_a_log_without_app_or_instruction_says_what_to_give(
    recording: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"time": 1, "action": "HOME"}\n')
    for given, missing in (((), "app"), (("--app", "TED"), "instruction")):
        done = here("segment", recording, log, tmp_path / "out", *given, code=2)
        assert f"the log states no {missing}" in done.stderr
    done = here(
        *("segment", recording, log, tmp_path / "out"),
        *("--app", "TED", "--instruction-en", "Go home"),
    )
    assert "[dimension-assumed]" in done.stderr


def test_a_folder_with_content_is_refused_before_the_work(
    recording: Path, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    segment(recording, log, tmp_path / "out")
    with pytest.raises(DataError, match="something here already"):
        segment(tmp_path / "not looked at", log, tmp_path / "out")


@pytest.mark.parametrize("kind", ["loop", "below a file", "no such system folder", "long"])
def test_an_out_that_cannot_be_made_is_bad_usage(
    recording: Path, log: Path, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    outs = {"below a file": log / "out", "no such system folder": Path("/proc/out")}
    out = outs.get(kind, tmp_path / ("loop" if kind == "loop" else "x" * 250))
    done = here("segment", recording, log, out, code=2)
    assert "the folder cannot be made" in done.stderr
    assert "Fix: choose another OUT" in done.stderr
    assert left_in(tmp_path) == {"log.jsonl", "loop"}


def test_a_name_with_a_colon_is_no_url(recording: Path, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "T0540:1.mkv"
    path.symlink_to(recording)
    copy = tmp_path / "Screencast 12:30:00.mkv"
    copy.write_bytes(recording.read_bytes())
    for named in (path, copy):
        done = here("segment", named, log, tmp_path / "out", code=2)
        assert "Fix: give --episode" in done.stderr
    here("segment", copy, log, tmp_path / "out", "--episode", "T1")


def test_one_process_cuts_to_a_place(recording: Path, log: Path, tmp_path: Path) -> None:
    (tmp_path / ".out.unfinished").mkdir()
    with (
        FileLock(tmp_path / ".out.unfinished" / ".lock"),
        pytest.raises(DataError, match="another process"),
    ):
        segment(recording, log, tmp_path / "out")


def test_a_damaged_recording_leaves_nothing(log: Path, tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", size=(320, 200))
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 3, len(data) * 2 // 3, 50):
        data[place : place + 8] = b"\xff" * 8
    path.write_bytes(bytes(data))
    with pytest.raises(MediaError):
        segment(path, log, tmp_path / "out")
    assert left_in(tmp_path) == {"a.mp4", "log.jsonl"}


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_recording_that_was_cut_off_is_found(tmp_path: Path, suffix: str) -> None:
    options = {"movflags": "faststart"} if suffix == "mp4" else {}
    path = film(tmp_path / f"a.{suffix}", options=options)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 5])
    made = segment(path, write_log(tmp_path / "log.jsonl", tap(1.0), tap(4.9)), tmp_path / "out")
    codes = [finding.code for finding in made.findings]
    assert codes == ["recording-short", "sound-missing", "event-outside"]
    assert len(made.spans) == 1


@pytest.mark.parametrize(
    "content", ["#EXTM3U\n#EXTINF:5,\n{}\n", "ffconcat version 1.0\nfile {}\n", "", "nothing"]
)
def test_a_playlist_or_a_text_is_no_recording(
    recording: Path, log: Path, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "list.mp4"
    path.write_text(content.format(recording))
    with pytest.raises(MediaError):
        segment(path, log, tmp_path / "out")
    assert left_in(tmp_path) == {"list.mp4", "log.jsonl"}


def test_a_missing_recording_a_folder_and_a_device_are_errors(log: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "none.mp4", tmp_path, Path("/dev/zero")):
        with pytest.raises(MediaError):
            segment(path, log, tmp_path / "out")
    assert left_in(tmp_path) == {"log.jsonl"}


def test_a_link_to_a_recording_is_followed(recording: Path, log: Path, tmp_path: Path) -> None:
    link = tmp_path / "here.mkv"
    link.symlink_to(recording)
    assert segment(link, log, tmp_path / "out").labels.episode == "here"


def jpegs(path: Path, *sizes: tuple[int, int]) -> Path:
    """A recording whose frames have these sizes."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=Fraction(10))
        stream.width, stream.height = sizes[0]
        stream.pix_fmt = "yuvj420p"
        for number, size in enumerate(sizes):
            coded = io.BytesIO()
            Image.new("RGB", size).save(coded, "JPEG")
            packet = av.Packet(coded.getvalue())
            packet.pts = packet.dts = number
            packet.time_base, packet.stream = Fraction(1, 10), stream
            container.mux(packet)
    return path


def test_a_picture_that_changes_its_size_is_an_error_unless_trimmed(tmp_path: Path) -> None:
    path = jpegs(tmp_path / "a.mkv", *[(64, 48)] * 20, *[(48, 64)] * 20)
    log = write_log(tmp_path / "log.jsonl", tap(1.5), tap(3.0))
    with pytest.raises(MediaError, match=r"changes to 48 x 64 pixels at 2\.00 s"):
        segment(path, log, tmp_path / "out")
    assert len(segment(path, log, tmp_path / "out", cut=Cut(trim=(0, 1.9))).spans) == 1


def test_frames_beyond_the_pixel_budget_are_refused(log: Path, tmp_path: Path) -> None:
    path = jpegs(tmp_path / "bomb.mkv", (7200, 7200))
    with pytest.raises(MediaError, match="7200 x 7200 pixels"):
        segment(path, log, tmp_path / "out")


def test_a_killed_run_leaves_no_data_and_the_next_one_works(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mkv", count=90, size=(480, 270))
    rows = [tap(0.4 + number / 5) for number in range(12)]
    log = write_log(tmp_path / "log.jsonl", *rows)
    out = tmp_path / "out"
    with Started("segment", path, log, out) as run:
        while not any(tmp_path.glob(".out.*/*/TED/media/a/3.png")):
            assert run.poll() is None
            time.sleep(0.005)
        run.kill()
        assert run.wait() == -signal.SIGKILL
    assert not out.exists()
    (unfinished,) = tmp_path.glob(".out.*")
    with pytest.raises(DataError):
        load(unfinished)
    assert len(segment(path, log, out).spans) == 12
    assert left_in(tmp_path) == {"a.mkv", "log.jsonl", "out"}
