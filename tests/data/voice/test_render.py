"""A folder of speech: made once, kept whole, never mixed."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from omnidata.data.voice import Rendering, render
from omnidata.data.voice_engines import Command, Espeak
from omnidata.errors import RunError
from omnidata.loaders.instructions import voice_file
from omnidata.media import check, probe, samples
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from omnidata.types import MediaRef
from tests.data.voice.speakers import PROGRAM, command, steps
from tests.trees import load_rows, read_lines, row

TEXTS = ("Tap Share", "Open the second talk", "打开第二个演讲")


@pytest.fixture(scope="module")
def spoken(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's instructions, rendered once; nobody writes into it."""
    out = tmp_path_factory.mktemp("voice") / "out"
    done = render(load(sample).steps, out, Espeak())
    assert done.rendered == done.texts > 20
    assert (done.kept, done.findings) == (0, ())
    return out


def content(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("*.wav")}


def test_every_file_is_audible_16_khz_mono_and_listed(sample: Path, spoken: Path) -> None:
    listed = read_lines(spoken / "voices.jsonl")
    assert {line["md5"] + ".wav" for line in listed} == content(spoken).keys()
    engine = Espeak()
    for line in listed:
        assert voice_file(line["text"]) == line["md5"] + ".wav"
        found = probe(MediaRef("audio", spoken, line["md5"] + ".wav"))
        assert (found.audio, found.rate, found.channels) == ("present", 16_000, 1)
        assert found.codec == "pcm_s16le"
        assert found.rms is not None and found.rms > 0.01
        assert line["engine"] == engine.name
        assert line["voice"] == {"en": "en-us", "zh": "cmn"}[line["language"]]
    languages = {step.instruction: step.tags["language"] for step in load(sample).steps}
    assert {line["text"]: line["language"] for line in listed} == languages
    assert len(set(content(spoken).values())) == len(listed)


def test_a_file_is_what_the_voice_of_its_language_says(spoken: Path) -> None:
    for line in read_lines(spoken / "voices.jsonl")[::8]:
        written = samples(MediaRef("audio", spoken, line["md5"] + ".wav"))
        said = samples(Espeak().speak(line["text"], line["language"], spoken))
        assert abs(written - said.clip(-1, 1)).max() < 2 / 32767


@pytest.mark.parametrize("form", ["paper", "release"])
def test_the_prompt_finds_every_file(sample: Path, spoken: Path, form: str) -> None:
    task = get_task("omnigui", {"voice": str(spoken), "voice_form": form})
    for step in task.load(sample).steps:
        parts = [part for message in task.prompt(step) for part in message.parts]
        (voice,) = [part.media for part in parts if part.role == "voice"]
        assert voice is not None
        check(voice)


def test_a_second_call_renders_nothing(sample: Path, spoken: Path, tmp_path: Path) -> None:
    out = shutil.copytree(spoken, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.wav")}
    listed = (out / "voices.jsonl").read_bytes()
    done = render(load(sample).steps, out, Espeak())
    assert (done.rendered, done.kept) == (0, len(before))
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.wav")} == before
    assert (out / "voices.jsonl").read_bytes() == listed


def test_a_damaged_or_missing_file_is_rendered_again(
    sample: Path, spoken: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(spoken, tmp_path / "out")
    changed, cut, gone = sorted(out.glob("*.wav"))[:3]
    changed.write_bytes(changed.read_bytes()[:-2] + b"\x01\x02")
    cut.write_bytes(cut.read_bytes()[:2000])
    gone.unlink()
    done = render(load(sample).steps, out, Espeak())
    assert done.rendered == 3
    assert content(out) == content(spoken)


def test_the_order_of_texts_does_not_change_a_file(tmp_path: Path) -> None:
    wanted = steps(tmp_path, *TEXTS)
    render(wanted, tmp_path / "a", Espeak())
    render(wanted[2:], tmp_path / "b", Espeak())
    render(wanted[::-1], tmp_path / "b", Espeak())
    assert content(tmp_path / "a") == content(tmp_path / "b")
    lists = [(tmp_path / name / "voices.jsonl").read_bytes() for name in "ab"]
    assert lists[0] == lists[1]


def test_another_voice_needs_another_folder(tmp_path: Path) -> None:
    wanted, out = steps(tmp_path, *TEXTS), tmp_path / "out"
    render(wanted, out, Espeak())
    before = content(out)
    with pytest.raises(RunError, match=r"speech of \"espeak-ng .*\"; asked for is \"command\""):
        render(wanted, out, Command(command()))
    assert content(out) == before
    assert render(wanted, out, Espeak()).kept == 3
    for path in out.glob("*.wav"):
        path.unlink()
    assert render(wanted, out, Command(command())).rendered == 3


def test_files_of_others_are_never_overwritten(tmp_path: Path) -> None:
    wanted, out = steps(tmp_path, *TEXTS), tmp_path / "out"
    out.mkdir()
    own = out / voice_file(TEXTS[0])
    own.write_bytes(b"a recording of my own")
    with pytest.raises(RunError, match=r"but no voices\.jsonl"):
        render(wanted, out, Espeak())
    half = b'{"md5":"half a line of'
    (out / "voices.jsonl").write_bytes(half)
    with pytest.raises(RunError, match="does not list"):
        render(wanted, out, Espeak())
    assert (out / "voices.jsonl").read_bytes() == half
    assert content(out) == {own.name: b"a recording of my own"}
    with pytest.raises(RunError, match="cannot be made"):
        render(wanted, own, Espeak())


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    out = tmp_path / "out"
    render(steps(tmp_path, *TEXTS), out, Espeak())
    (out / voice_file("Open")).unlink(missing_ok=True)
    make(out / voice_file("Open"))
    with pytest.raises(RunError, match="something that is no file"):
        render(steps(tmp_path, "Open"), out, Espeak())
    with pytest.raises(RunError, match="cannot be"):
        render(steps(tmp_path, "Open"), Path("/proc/voice"), Espeak())


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    out = tmp_path / "out"
    render(steps(tmp_path, "Tap"), out, Espeak())
    with FileLock(out / ".lock"), pytest.raises(RunError, match="another process"):
        render(steps(tmp_path, "Tap"), out, Espeak())


def test_a_half_line_of_a_killed_process_is_mended(tmp_path: Path) -> None:
    wanted, out = steps(tmp_path, *TEXTS), tmp_path / "out"
    render(wanted, out, Espeak())
    whole = (out / "voices.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    (out / "voices.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    (out / lines[-1].decode()[8:40]).with_suffix(".wav").unlink()
    assert render(wanted, out, Espeak()).rendered == 1
    assert (out / "voices.jsonl").read_bytes() == whole


def test_a_full_disk_is_said_and_what_was_spoken_is_kept(tmp_path: Path) -> None:
    wanted, out = steps(tmp_path, *TEXTS), tmp_path / "out"
    render(wanted[:1], out, Espeak())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(RunError, match="File too large"):
            render(wanted, out, Espeak())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (done := render(wanted, out, Espeak())).rendered == 2
    assert done.kept == 1


def codes(done: Rendering) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in done.findings]


def test_a_text_that_cannot_be_spoken_is_a_finding_and_the_others_are_kept(tmp_path: Path) -> None:
    wanted = steps(tmp_path, "Tap", "Please refuse", "Open", "\x00\x01", "a" * 2001)
    done = render(wanted, tmp_path / "out", Command(command("--mode picky")))
    assert sorted(codes(done)) == [
        ("voice-empty", "TED/E3/0"),
        ("voice-failed", "TED/E1/0"),
        ("voice-long", "TED/E4/0"),
    ]
    assert "no voice today" in str(done.findings[-1])
    assert (done.texts, done.rendered) == (5, 2)
    assert content(tmp_path / "out").keys() == {voice_file("Tap"), voice_file("Open")}


@pytest.mark.parametrize("mode", ["silent", "garbage", "nothing", "hang"])
def test_what_is_no_speech_becomes_no_file(tmp_path: Path, mode: str) -> None:
    out = tmp_path / "out"
    engine = Command(command(f"--mode {mode}"), seconds=2)
    done = render(steps(tmp_path, "Tap"), out, engine)
    assert codes(done) == [("voice-failed", "TED/E0/0")]
    assert [path.name for path in out.iterdir() if path.name != ".lock"] == ["voices.jsonl"]


def test_no_text_gets_the_speech_of_another(tmp_path: Path) -> None:
    """The first text's program ends, and what it left behind writes when the second one speaks."""
    program = tmp_path / "late.sh"
    late = f"touch {tmp_path}/begun; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done"
    tone = f"{sys.executable} {PROGRAM} --text tone --out"
    program.write_text(
        f'if [ "$1" = late ]; then setsid sh -c "{late}; {tone} $2; touch {tmp_path}/done" '
        f">/dev/null 2>&1 &\n"
        # What is not yet in a session of its own would be killed with its parent.
        f"while [ ! -e {tmp_path}/begun ]; do sleep 0.01; done\n"
        f"else touch {tmp_path}/go; while [ ! -e {tmp_path}/done ]; do sleep 0.01; done; fi\n"
    )
    done = render(
        steps(tmp_path, "late", "Tap"), tmp_path / "out", Command(f"sh {program} {{text}} {{out}}")
    )
    assert codes(done) == [("voice-failed", "TED/E0/0"), ("voice-failed", "TED/E1/0")]
    assert content(tmp_path / "out") == {}


def test_a_program_may_work_elsewhere_and_remove_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tone = f'cd / && {sys.executable} {PROGRAM} --text "$1" --out "$0"'
    done = render(steps(tmp_path, "Tap"), Path("out"), Command(f"sh -c '{tone}' {{out}} {{text}}"))
    assert (done.rendered, done.findings) == (1, ())
    rude = 'sh -c \'rm -r "$(dirname "$0")"\' {out} {text}'
    done = render(steps(tmp_path, "Tap", "Open"), tmp_path / "rude", Command(rude))
    assert codes(done) == [("voice-failed", "TED/E0/0"), ("voice-failed", "TED/E1/0")]


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    out, engine = tmp_path / "out", Command(command())
    render(
        steps(tmp_path, "Tap", "Open"),
        out,
        engine,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_a_broken_engine_is_not_asked_about_every_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    wanted = steps(tmp_path, *(f"Tap {n}" for n in range(9)))
    done = render(wanted, tmp_path / "out", Command(command(f"--mode fail --heard {log}")))
    assert len(log.read_text().splitlines()) == 3 + 1
    assert [code for code, _ in codes(done)] == ["voice-failed"] * 3 + ["voice-untried"] * 6


def test_bad_texts_in_a_row_do_not_keep_the_others_from_being_spoken(tmp_path: Path) -> None:
    done = render(
        steps(tmp_path, *("." * n for n in range(1, 9)), "Tap"), tmp_path / "out", Espeak()
    )
    assert [code for code, _ in codes(done)] == ["voice-failed"] * 8
    assert "nothing can be heard" in done.findings[0].what
    assert done.rendered == 1


def test_a_damaged_file_that_cannot_be_made_again_does_not_stay(tmp_path: Path) -> None:
    out, program = tmp_path / "out", tmp_path / "refuses"
    program.mkdir()
    picky = Command(command(f"--gate {program / 'gate'} --mode picky"))
    wanted = steps(tmp_path, "Tap", "Open")
    render(wanted, out, picky)
    damaged = out / voice_file("Tap")
    damaged.write_bytes(b"x" * 2000)
    (program / "gate").write_text("...")  # from now on the program never ends
    slow = Command(command(f"--gate {program / 'gate'} --mode picky"), seconds=1)
    done = render(wanted, out, slow)
    assert codes(done) == [("voice-failed", "TED/E0/0")]
    assert content(out).keys() == {voice_file("Open")}


def test_control_characters_are_not_commands(tmp_path: Path) -> None:
    """To espeak-ng, Ctrl-A and 400s set the speed."""
    texts = ("Tap \x01400s Share", "Tap  400s\x00 Share", "Tap 400s Share", "Tap \ud800 400s Share")
    out = tmp_path / "out"
    done = render(steps(tmp_path, *texts), out, Espeak())
    assert (done.rendered, done.findings) == (4, ())
    assert len(set(content(out).values())) == 1
    assert {line["text"] for line in read_lines(out / "voices.jsonl")} == set(texts)


def test_both_forms_of_the_prompt_find_their_instruction(tmp_path: Path) -> None:
    """The released code asks in Chinese for an app that it does not list as `TED`."""
    released = row("A", 0, app="TED", instruction="点击分享", instruction_en="Tap Share")
    source = load_rows(tmp_path, released)
    out = tmp_path / "out"
    assert render(source.steps, out, Espeak(), texts=get_task("omnigui").spoken).texts == 2
    for form, text in (("paper", "Tap Share"), ("release", "点击分享")):
        task = get_task("omnigui", {"voice": str(out), "prompt_form": form})
        (voice,) = [part.media for part in task.prompt(source.steps[0])[1].parts if part.media
                    and part.role == "voice"]  # fmt: skip
        assert voice.path == voice_file(text)
