"""How espeak-ng sounds, and that no text and no program does harm."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.cli.running import here
from tests.data.voice.speakers import PROGRAM, codes, command, content, file_of, samples, voice
from tests.trees import read_lines

ENGLISH = "Open the settings and turn on the alarm."
CHINESE = "打开设置，然后打开闹钟。"
MIXED = "在 TED 里搜索 AI"
SHORT = "tap now"
MARKUP = (
    "tap <break time='9s'/> now",
    "tap <speak><prosody rate='x-slow'>tap</prosody></speak> now",
    "tap [[h@'loU]] now",
    "tap &amp; now",
)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("espeak") / "out"
    texts = (ENGLISH, ENGLISH.replace("alarm", "lamp"), CHINESE, MIXED, SHORT, *MARKUP)
    assert voice(out, *texts)["rendered"] == len(texts)
    return out


def seconds(out: Path, text: str) -> float:
    return len(samples(file_of(out, text))) / 16_000


def test_texts_sound_different_and_loud_enough(spoken: Path) -> None:
    assert len(set(content(spoken).values())) == len(content(spoken))
    for path in spoken.glob("*.wav"):
        assert (samples(path) ** 2).mean() > 0.01**2
    assert 1 < seconds(spoken, ENGLISH) < 6


def test_chinese_is_read_by_a_voice_that_knows_it(spoken: Path) -> None:
    """The English voice says "Chinese letter" for each of the ten characters: 11 seconds."""
    languages = {line["text"]: line["language"] for line in read_lines(spoken / "voices.jsonl")}
    assert [languages[text] for text in (CHINESE, MIXED, ENGLISH)] == ["zh", "zh", "en"]
    assert seconds(spoken, CHINESE) < 5


@pytest.mark.parametrize("text", MARKUP)
def test_markup_is_read_as_text(spoken: Path, text: str) -> None:
    assert 0.3 < seconds(spoken, text) - seconds(spoken, SHORT) < 8


def test_control_characters_are_not_commands(tmp_path: Path) -> None:
    """To espeak-ng, Ctrl-A and 400s set the speed."""
    texts = ("Tap \x01400s Share", "Tap  400s\x00 Share", "Tap 400s Share", "Tap \ud800 400s Share")
    out = tmp_path / "out"
    assert voice(out, *texts)["rendered"] == 4
    assert len(set(content(out).values())) == 1
    assert {line["text"] for line in read_lines(out / "voices.jsonl")} == set(texts)


def test_a_long_place_of_installation_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's own buffer for the path of its data takes 160 bytes."""
    import espeakng_loader

    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    (deep / "espeakng_loader").symlink_to(Path(espeakng_loader.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(deep))
    assert voice(tmp_path / "out", SHORT, anew=True)["rendered"] == 1


@pytest.mark.parametrize(
    ("package", "what"),
    [
        ("raise ImportError('gone')", "espeak-ng is not installed"),
        ("get_library_path = lambda: '/no/such/folder/library.so'", "espeak-ng does not work here"),
        ("get_library_path = lambda: __file__", "espeak-ng does not work here"),
    ],
)
def test_an_engine_that_is_absent_or_broken_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, what: str
) -> None:
    (tmp_path / "espeakng_loader.py").write_text(package, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)  # the usual one comes back
    monkeypatch.delitem(sys.modules, "espeakng_loader")
    done = here("voice", "omnigui", tmp_path, tmp_path / "out", code=2)
    assert what in done.stderr and "pip install" in done.stderr


def test_a_text_reaches_the_program_as_one_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = (
        "$(touch hacked)",
        "; touch hacked #",
        "' \" \\ `touch hacked`",
        "{out} {language} {text}",
        "--mode=fail",
        "-x",
        "tap \u2028 now",
    )
    log = tmp_path / "heard texts"
    assert voice(tmp_path / "out", *texts, by=command(f"--heard '{log}'"))["rendered"] == 7
    lines = log.read_text(encoding="utf-8").split("\n")[:-1]
    one_line = [" ".join(text.split()) for text in texts]
    assert lines == [f"en|{' ' * text.startswith('-')}{text}" for text in one_line]
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("say --out {out}", "{text}"),
        (f"{sys.executable} {{text}}", "{out}"),
        (f"{sys.executable} '{{text}} {{out}}", "cannot be split"),
        ("no-such-program-here {text} {out}", "there is no program"),
        ("", "{text}"),
        ("{text} {out}", "{text}"),
    ],
)
def test_a_command_that_cannot_work_is_refused_at_once(tmp_path: Path, bad: str, why: str) -> None:
    assert why in voice(tmp_path / "out", "tap", by=bad, code=2)


MISBEHAVIOUR = {
    "hang": ("sleep 600 & echo $! >> pids; wait", "more than 5 s"),
    "leave": ("sleep 600 & echo $! >> pids", "audio is missing"),
    "talk": ("yes | head -c 9999999; exec sleep 600", "more than 5 s"),
    "end": ("head -c 9999999 /dev/zero; echo; echo no voice; exit 3", "ended with 3: no voice"),
    "write": ('truncate -s 300M "$2"; sleep 600', "more than 268435456 bytes"),
    "remove": ('rm -r "$(dirname "$2")"', "audio is missing"),
}


def test_a_program_that_misbehaves_is_ended_with_its_children_and_fills_no_disk(
    tmp_path: Path,
) -> None:
    script = tmp_path / "program.sh"
    cases = "\n".join(f"{text}) {what};;" for text, (what, _) in MISBEHAVIOUR.items())
    tone = f'{sys.executable} {PROGRAM} --text "$1" --out "$2"'
    script.write_text(f'cd {tmp_path}\ncase "$1" in\n{cases}\n*) {tone};;\nesac\n')
    by = f"sh {script} {{text}} {{out}}"
    out = tmp_path / "out"
    done = voice(out, *MISBEHAVIOUR, "Tap", by=by, options=("--time-limit", "5"), code=1)
    assert done["rendered"] == 1
    for finding, (_, why) in zip(done["findings"], MISBEHAVIOUR.values(), strict=True):
        assert finding["code"] == "voice-failed"
        assert why in finding["what"].lower()
    assert content(out).keys() == {file_of(out, "Tap").name}
    children = list(map(int, (tmp_path / "pids").read_text().split()))
    deadline = time.monotonic() + 30
    while any(map(_runs, children)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(children) == 2
    assert not any(map(_runs, children))


@pytest.mark.parametrize("first", ["", "#!/no/such/interpreter\n"])
def test_a_program_that_cannot_be_started_is_an_error_of_the_text(
    tmp_path: Path, first: str
) -> None:
    program = tmp_path / "program"
    program.write_text(f"{first}exit 0\n")
    program.chmod(0o755)
    done = voice(tmp_path / "out", "tap", by=f"{program} {{text}} {{out}}", code=1)
    assert "cannot be started" in done["findings"][0]["what"]


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
    out = tmp_path / "out"
    done = voice(out, "late", "Tap", by=f"sh {program} {{text}} {{out}}", code=1)
    assert codes(done) == [("voice-failed", "TED/E0/0"), ("voice-failed", "TED/E1/0")]
    assert content(out) == {}


def test_a_program_may_work_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tone = f'cd / && {sys.executable} {PROGRAM} --text "$1" --out "$0"'
    assert voice(Path("out"), "Tap", by=f"sh -c '{tone}' {{out}} {{text}}")["rendered"] == 1


def _runs(pid: int) -> bool:
    """Whether the process does anything: an orphan is a zombie until it is reaped."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
