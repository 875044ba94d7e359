"""`omnidata validate` as a person or a script meets it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cli.running import Started, as_json, omnidata
from tests.data.test_validate import write
from tests.data.tiny import endless, mp4
from tests.full import in_gate
from tests.trees import row, write_rows


def validate(data: Path, *options: str | Path, code: int = 0) -> CompletedProcess[str]:
    return omnidata("validate", "omnigui", data, "--workers", "1", *options, code=code)


def test_data_without_an_error_exit_with_0(tmp_path: Path) -> None:
    media, data, bad = write(tmp_path / "data"), tmp_path / "data", tmp_path / "bad.txt"
    assert validate(data, "--timeout", "inf", "--quarantine", bad).stdout == (
        "0 errors, 0 warnings, 0 unusable steps; checked 3 steps of 1 episode and their media: "
        "3 image, 3 video, 3 audio\n"
    )
    model = ("--model", "baseline:oracle", "--out", tmp_path / "run", "--json")
    evaluated = as_json(omnidata("evaluate", "omnigui", data, "--exclude", bad, *model))
    assert evaluated["counts"]["steps"] == 3, "a quarantine of nothing leaves nothing out"
    (media / "3.mp4").write_bytes(mp4(1, moves=False))
    assert "clip-frozen" in validate(data, "--timeout", "1e9").stdout
    for path in media.glob("*.[pmw]*"):
        path.unlink()
    assert "0 image, 0 video, 0 audio" in validate(data).stdout


def test_a_finding_is_a_line_with_code_severity_place_and_remedy(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    (media / "2.wav").unlink()
    (media / "3.mp4").write_bytes(mp4(1, moves=False))
    done = validate(tmp_path / "data", code=1)
    first, second, *summary = done.stdout.splitlines()
    assert first.startswith("error [media-missing] App/E/1: audio: audio is missing: ")
    assert str(media / "2.wav") in first
    assert "; fix: restore the file" in first
    assert second.startswith("warning [clip-frozen] App/E/2: video: all 9 frames are the same")
    assert summary[0].startswith("1 error, 1 warning, 1 unusable step; ")
    assert summary[1:] == ["  1 media-missing", "  1 clip-frozen"]


def test_json_has_findings_summary_and_what_was_checked(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    (media / "1.png").write_bytes(b"")
    done = as_json(validate(tmp_path / "data", "--json", code=1))
    (finding,) = done["findings"]
    assert finding["code"] == "media-empty"
    assert finding["severity"] == "error"
    assert finding["where"] == "App/E/0"
    names = {"code", "severity", "where", "what", "expected", "remedy", "sample_ids"}
    assert finding.keys() == names
    assert done["summary"] == {
        "errors": 1, "warnings": 0, "codes": {"media-empty": 1}, "quarantined": 2,
    }  # fmt: skip
    assert done["checked"]["media"] == {"image": 3, "video": 3, "audio": 3}


def test_what_is_in_quarantine_is_left_out_by_evaluate(tmp_path: Path) -> None:
    media, bad = write(tmp_path / "data"), tmp_path / "bad.txt"
    (media / "2.mp4").write_bytes((media / "2.mp4").read_bytes()[:900])
    data = tmp_path / "data"
    validate(data, "--quarantine", bad, code=1)
    assert [line for line in bad.read_text().splitlines() if line[0] != "#"] == ["App/E/1"]
    model = ("--model", "baseline:oracle", "--out", tmp_path / "run", "--json")
    results = as_json(omnidata("evaluate", "omnigui", data, "--exclude", bad, *model))
    assert results["outcomes"] == {"ok": 2}
    validate(data, "--quarantine", bad, code=1)  # its own file, again


def test_a_quarantine_never_replaces_other_files(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    for place in (media / "E.json", tmp_path, tmp_path / "nowhere" / "bad.txt"):
        before = place.read_bytes() if place.is_file() else b""
        done = validate(tmp_path / "data", "--quarantine", place, code=2)
        assert "cannot be written here" in done.stderr
        assert before == (place.read_bytes() if place.is_file() else b"")


def test_an_id_that_the_file_cannot_hold_is_named(tmp_path: Path) -> None:
    data = write_rows(
        tmp_path / "steps.json",
        [row("a\nb", result_action_type=99), row("c", result_action_type=99)],
    )
    bad = tmp_path / "bad.txt"
    done = validate(data, "--quarantine", bad, code=1)
    assert "such a file cannot hold it: unknown/a" in done.stderr
    assert bad.read_text().splitlines()[1:] == ["unknown/c/0"]


def test_an_id_with_a_hash_is_left_out_like_any_other(tmp_path: Path) -> None:
    data = write_rows(
        tmp_path / "steps.json", [row("a #b", result_action_type=99), row("a"), row()]
    )
    bad = tmp_path / "bad.txt"
    validate(data, "--quarantine", bad, code=1)
    assert bad.read_text().splitlines()[1:] == ["unknown/a #b/0"]
    bad.write_text(bad.read_text() + "unknown/a/0 # and one with a comment\n")
    model = ("--model", "baseline:oracle", "--out", tmp_path / "run", "--json")
    command = ("evaluate", "omnigui", data, "--exclude", bad, *model)
    assert as_json(omnidata(*command))["counts"]["steps"] == 1


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder without files")
def test_a_quarantine_that_cannot_be_written_is_told_before_media_are_looked_at(
    tmp_path: Path,
) -> None:
    write(tmp_path / "data")
    done = validate(tmp_path / "data", "--quarantine", "/proc/q", code=2)
    assert "cannot be written here" in done.stderr
    assert done.stdout == ""


def test_control_characters_and_line_breaks_stay_inside_their_line(tmp_path: Path) -> None:
    data = write_rows(
        tmp_path / "steps.json",
        [row("\x1b[31m\nE", app="\ud800", image_path="x\x07.png"), row("B", result_action_type=99)],
    )
    media = write(tmp_path / "tree")
    (media / "1.png").unlink()
    for place in (data, tmp_path / "tree"):
        text = validate(place, code=1).stdout
        assert "\x1b" not in text
        assert "\x07" not in text
        begins = ("error [", "warning [", "  ")
        assert all(line.startswith(begins) or " unusable " in line for line in text.splitlines())
    validate(data, "--json", code=1)


def test_a_place_without_data_exits_with_2(tmp_path: Path) -> None:
    assert "no such file" in omnidata("validate", "omnigui", tmp_path / "x", code=2).stderr
    write(tmp_path / "data")
    omnidata("validate", "omnigui", tmp_path / "data", "--workers", "0", code=2)
    omnidata("validate", "nothing", tmp_path / "data", code=2)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="needs /proc to see open files"
)


@needs_proc
@pytest.mark.parametrize("form", in_gate([(), ("--json",)], 1, "seconds each"))
def test_an_interrupt_prints_what_was_found_and_exits_with_130(
    tmp_path: Path, form: tuple[str, ...]
) -> None:
    media, bad = write(tmp_path / "data"), tmp_path / "bad.txt"
    (media / "1.png").unlink()
    (media / "1.mp4").write_bytes(endless())
    process = _started(tmp_path / "data", "--quarantine", str(bad), *form)
    _decoder(process.pid, media / "1.mp4")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "media-missing" in output
    assert "interrupted after 1 of 9 media" in errors
    assert "Traceback" not in errors
    assert not bad.exists()


@needs_proc
def test_a_decoder_that_is_killed_costs_its_medium_and_not_the_run(tmp_path: Path) -> None:
    media = write(tmp_path / "data")
    (media / "2.mp4").write_bytes(endless())
    (media / "3.wav").unlink()
    process = _started(tmp_path / "data")
    first_try = _decoder(process.pid, media / "2.mp4")
    os.kill(first_try, signal.SIGKILL)
    os.kill(_decoder(process.pid, media / "2.mp4", but=first_try), signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    first, second, summary, *_ = output.splitlines()
    assert first.startswith("error [media-crash] App/E/1: video: the worker process ended")
    assert second.startswith("error [media-missing] App/E/2: audio")
    assert summary.startswith("2 errors, 0 warnings, 2 unusable steps")


@needs_proc
def test_workers_that_are_just_starting_pass_over_an_interrupt(tmp_path: Path) -> None:
    """The terminal sends it to them as well; the parent alone decides what becomes of them."""
    write(tmp_path / "data")
    process = Started("validate", "omnigui", tmp_path / "data", "--workers", "2")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    told = set()
    while process.poll() is None:
        with suppress(OSError):  # whoever has ended meanwhile
            for child in children.read_text().split():
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(int(child), signal.SIGINT)
                    told.add(child)
        time.sleep(0.01)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(told) == 2
    assert "Traceback" not in errors


def _started(data: Path, *options: str) -> Started:
    return Started("validate", "omnigui", data, "--workers", "1", *options)


def _decoder(parent: int, path: Path, *, but: int = 0) -> int:
    """The child process that has the file open, as soon as there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if int(child) == but:
                continue
            with suppress(OSError):
                for link in Path(f"/proc/{child}/fd").iterdir():
                    with suppress(OSError):
                        if link.readlink() == path:
                            return int(child)
        time.sleep(0.01)
    raise AssertionError("nobody opened the file")
