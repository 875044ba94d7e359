"""A folder of speech: made once, kept whole, never mixed."""

from __future__ import annotations

import os
import shutil
import wave
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from tests.cli.running import as_json, here
from tests.data.voice.speakers import codes, command, content, file_of, voice
from tests.limits import full_disk
from tests.trees import read_lines, row, write_rows

TEXTS = ("Tap Share", "Open the second talk", "打开第二个演讲")


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three texts by espeak-ng; nobody writes into it."""
    out = tmp_path_factory.mktemp("voice") / "out"
    done = voice(out, *TEXTS)
    assert (done["texts"], done["rendered"], done["kept"], done["findings"]) == (3, 3, 0, [])
    return out


@pytest.fixture
def copy(spoken: Path, tmp_path: Path) -> Path:
    return shutil.copytree(spoken, tmp_path / "out")


def listing(out: Path) -> bytes:
    return (out / "voices.jsonl").read_bytes()


def test_every_file_is_listed_with_its_voice(spoken: Path) -> None:
    listed = read_lines(spoken / "voices.jsonl")
    assert {line["md5"] + ".wav" for line in listed} == content(spoken).keys()
    for line in listed:
        assert file_of(spoken, line["text"]).stem == line["md5"]
        assert line["engine"].startswith("espeak-ng 1.")
        assert line["voice"] == {"en": "en-us", "zh": "cmn"}[line["language"]]


def test_damaged_and_missing_files_alone_are_rendered_again(spoken: Path, copy: Path) -> None:
    changed, gone, kept = (file_of(copy, text) for text in TEXTS)
    before = kept.stat().st_mtime_ns
    changed.write_bytes(changed.read_bytes()[:-2] + b"\x01\x02")
    gone.unlink()
    assert voice(copy, *TEXTS)["rendered"] == 2
    assert content(copy) == content(spoken)
    assert listing(copy) == listing(spoken)
    assert kept.stat().st_mtime_ns == before


def test_the_order_of_texts_does_not_change_a_file(spoken: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    voice(out, *TEXTS[2:])
    voice(out, *TEXTS[::-1])
    assert content(out) == content(spoken)
    assert listing(out) == listing(spoken)


def test_another_voice_needs_another_folder(copy: Path) -> None:
    before = content(copy)
    message = voice(copy, *TEXTS, by=command(), code=2)
    assert 'speech of "espeak-ng' in message
    assert 'asked for is "command"' in message
    assert content(copy) == before
    for path in copy.glob("*.wav"):
        path.unlink()
    assert voice(copy, *TEXTS, by=command())["rendered"] == 3


def test_files_of_others_are_never_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    own = file_of(out, TEXTS[0])
    own.write_bytes(b"a recording of my own")
    assert "but no voices.jsonl" in voice(out, *TEXTS, by=command(), code=2)
    half = b'{"md5":"half a line of'
    (out / "voices.jsonl").write_bytes(half)
    assert "does not list" in voice(out, *TEXTS, by=command(), code=2)
    assert listing(out) == half
    assert content(out) == {own.name: b"a recording of my own"}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_thing_that_is_no_file_is_refused(copy: Path, make: Callable[[Path], None]) -> None:
    make(file_of(copy, "Open"))
    assert "something that is no file" in voice(copy, "Open", code=2)


@pytest.mark.parametrize("out", ["/proc/voice", "steps.json"])
def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path, out: str) -> None:
    data = write_rows(tmp_path / "steps.json", [row(app="TED")])
    done = here("voice", "omnigui", data, tmp_path / out, "--command", command(), code=2)
    assert "cannot be read or written" in done.stderr


def test_a_folder_has_one_writer(copy: Path) -> None:
    with FileLock(copy / ".lock"):
        assert "another process" in voice(copy, *TEXTS, code=2)


def test_a_half_line_of_a_killed_process_is_replaced(spoken: Path, copy: Path) -> None:
    lines = listing(copy).splitlines(keepends=True)
    (copy / "voices.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    (copy / lines[-1].decode()[8:40]).with_suffix(".wav").unlink()
    assert voice(copy, *TEXTS)["rendered"] == 1
    assert listing(copy) == listing(spoken)


def test_a_full_disk_is_an_error_and_finished_files_are_kept(tmp_path: Path) -> None:
    out, tone = tmp_path / "out", tmp_path / "tone.wav"
    with wave.open(str(tone), "wb") as file:  # smaller than the limit, unlike what is made of it
        file.setparams((1, 1, 8000, 0, "NONE", ""))
        file.writeframes(bytes(128 + 100 * (n // 8 % 2) for n in range(3000)))
    by = f"sh -c 'cp {tone} \"$0\"' {{out}} {{text}}"
    voice(out, *TEXTS, by=by)
    file_of(out, TEXTS[1]).unlink()
    with full_disk(after=4096):
        assert "File too large" in voice(out, *TEXTS, by=by, code=2)
    done = voice(out, *TEXTS, by=by)
    assert (done["rendered"], done["kept"]) == (1, 2)


def test_a_text_that_cannot_be_spoken_is_a_finding_and_the_others_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    bad = ("Please fail", "\x00\x01", "a" * 2001, "silent", "garbage")
    done = voice(out, "Tap", *bad, "Open", "nothing", by=command(), code=1)
    assert sorted(codes(done)) == [
        ("voice-empty", "TED/E2/0"),
        ("voice-failed", "TED/E1/0"),
        ("voice-failed", "TED/E4/0"),
        ("voice-failed", "TED/E5/0"),
        ("voice-failed", "TED/E7/0"),
        ("voice-long", "TED/E3/0"),
    ]
    assert "no voice today" in str(done["findings"])
    assert (done["texts"], done["rendered"]) == (8, 2)
    assert content(out).keys() == {file_of(out, text).name for text in ("Tap", "Open")}
    assert {path.name for path in out.iterdir() if path.suffix != ".wav"} == {
        ".lock", "voices.jsonl",
    }  # fmt: skip


def test_a_broken_engine_is_not_asked_about_every_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    texts = (f"Tap {n}" for n in range(9))
    done = voice(tmp_path / "out", *texts, by=command(f"--mode fail --heard {log}"), code=1)
    assert len(log.read_text().splitlines()) == 3 + 1
    assert [code for code, _ in codes(done)] == ["voice-failed"] * 3 + ["voice-untried"] * 6


def test_bad_texts_in_a_row_do_not_keep_the_others_from_being_spoken(tmp_path: Path) -> None:
    done = voice(tmp_path / "out", *("." * n for n in range(1, 9)), "Tap", code=1)
    assert [code for code, _ in codes(done)] == ["voice-failed"] * 8
    assert "nothing can be heard" in done["findings"][0]["what"]
    assert done["rendered"] == 1


def test_a_damaged_file_that_cannot_be_made_again_does_not_stay(tmp_path: Path) -> None:
    out, gate = tmp_path / "out", tmp_path / "gate"
    by = command(f"--gate {gate}")
    voice(out, "Tap", "Open", by=by)
    file_of(out, "Tap").write_bytes(b"x" * 2000)
    gate.write_text("...")  # from now on the program never ends
    done = voice(out, "Tap", "Open", by=by, options=("--time-limit", "1"), code=1)
    assert codes(done) == [("voice-failed", "TED/E0/0")]
    assert content(out).keys() == {file_of(out, "Open").name}


def test_both_instructions_of_a_step_are_spoken(tmp_path: Path) -> None:
    """The released code asks in Chinese for an app that it does not list as `TED`."""
    rows = [row("A", app="TED", instruction="点击分享", instruction_en="Tap Share")]
    data = write_rows(tmp_path / "steps.json", rows)
    out = tmp_path / "out"
    assert as_json(here("voice", "omnigui", data, out, "--json", "--workers", "1"))["texts"] == 2
    assert content(out).keys() == {file_of(out, text).name for text in ("点击分享", "Tap Share")}
