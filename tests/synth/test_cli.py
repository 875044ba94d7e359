"""`omnidata synth episodes` as a person or a script meets it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from filelock import FileLock

from tests.cli.running import Started, as_json, here
from tests.full import in_gate
from tests.synth.composing import full_disk
from tests.synth.making import OPTIONS, digests

MAKE = ("synth", "episodes")


def test_a_table_says_what_was_made(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = here(*MAKE, out, "--episodes", "10", *OPTIONS, "--workers", "1")
    for word in ("10 episodes", "audio", "40.0", "TAP", "bytes per step"):
        assert word in done.stdout
    assert str(out / "synth.json") in done.stderr
    assert "is incomplete" in done.stderr
    told = as_json(here(*MAKE, out, "--episodes", "10", *OPTIONS, "--json"))
    assert told == json.loads((out / "synth.json").read_text("utf-8"))


def test_only_one_medium_can_be_asked_for(tmp_path: Path) -> None:
    chosen = (
        "--only video --cue lamp --answers tap --in-order --apps 1 --max-steps 1 --distractors 0 "
        "--episodes 8 --workers 1 --json"
    )
    told = as_json(here(*MAKE, tmp_path / "out", *OPTIONS, *chosen.split()))
    assert told["made"]["cues"] == {"lamp": 8}
    assert told["made"]["primitives"] == {"TAP": 8}
    assert told["made"]["distractors"] == {}


@pytest.mark.parametrize(
    "size", in_gate(["67x64", "33x35", "32x300", "720x1600", "48x64"], 3, "seconds each")
)
def test_clips_have_the_shape_of_the_screen(tmp_path: Path, size: str) -> None:
    short = ("--fps", "4", "--seconds", "1", "--episodes", "4", "--max-steps", "1")
    told = as_json(here(*MAKE, tmp_path / "out", "--size", size, *short, "--json"))
    (wide, high), (clip_wide, clip_high) = told["settings"]["size"], told["settings"]["clip_size"]
    assert clip_wide / clip_high == pytest.approx(wide / high, rel=0.05)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--size", "wide"), "--size wide"),
        (("--size", "9" * 5000 + "x3"), "is no size"),
        (("--size", "10x10"), "32 to 4096"),
        (("--only", "audio", "--audio-share", "0.5"), "--only or shares, not both"),
        (("--cue", "whistle"), "whistle"),
        (("--cue", "lamp", "--cue", "blink", "--fps", "4"), "blink needs 16 frames"),
        (("--first", "3"), "multiple of 4"),
        (("--audio-share", "nan"), "--audio-share"),
        (("--episodes", "0"), "--episodes"),
    ],
)
def test_bad_usage_is_said_and_nothing_is_written(
    tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    assert told in here(*MAKE, tmp_path / "out", *options, code=2).stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.full("seconds each"))]
)
def test_a_stopped_command_goes_on(tmp_path: Path, how: signal.Signals) -> None:
    out, count = tmp_path / "out", 48
    options = [*MAKE, str(out), "--episodes", str(count), *OPTIONS, "--workers", "2"]
    parts = tmp_path / ".out.unfinished" / ".parts"
    with Started(*options) as process:
        end = time.monotonic() + 90
        while not list(parts.glob("???????")):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(how)
        process.wait()  # and not for its workers: after SIGKILL they are still at it
        _, stderr = process.said()
    kept = {
        path.relative_to(part): path.stat().st_ino
        for part in parts.glob("???????")
        for path in part.glob("tree/*/media/E*/*")
    }
    assert kept
    assert not out.exists()
    here(*options)
    made = {Path("tree") / path.relative_to(out): path.stat().st_ino for path in out.rglob("*.*")}
    assert kept.items() <= made.items()
    alone = ("--episodes", str(count), *OPTIONS, "--workers", "1")
    here(*MAKE, tmp_path / "whole", *alone)
    assert digests(out) == digests(tmp_path / "whole")
    assert "Traceback" not in stderr
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert "the same command resumes: omnidata synth episodes" in stderr


@pytest.mark.parametrize("workers", in_gate(["2", "1"], 1, "seconds each"))
def test_a_full_disk_is_said_and_the_same_command_goes_on(tmp_path: Path, workers: str) -> None:
    options = [*MAKE, str(tmp_path / "out"), "--episodes", "20", *OPTIONS, "--workers", workers]
    with full_disk(8192):
        done = here(*options, code=2)
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    here(*options)
    assert (tmp_path / "out" / "synth.json").is_file()


def test_two_commands_do_not_write_to_one_place(tmp_path: Path) -> None:
    with FileLock(tmp_path / ".out.lock"):
        done = here(*MAKE, tmp_path / "out", "--episodes", "4", *OPTIONS, code=2)
    assert "another process" in done.stderr
    assert not (tmp_path / "out").exists()
