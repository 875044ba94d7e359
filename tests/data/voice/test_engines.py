"""What the engines say, and what no text can make them do."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from omnidata.data.voice import language_of
from omnidata.data.voice_engines import Command, Espeak, Voice, VoiceError
from omnidata.errors import UsageError
from omnidata.loaders.instructions import Language
from omnidata.media import samples
from tests.data.voice.speakers import command

ENGLISH = "Open the settings and turn on the alarm."
CHINESE = "打开设置，然后打开闹钟。"


def heard(engine: Voice, text: str, language: Language = "en") -> npt.NDArray[np.float32]:
    return samples(engine.speak(text, language, Path("unused")))


@pytest.fixture(scope="module")
def espeak() -> Espeak:
    return Espeak()


def test_a_text_sounds_the_same_whatever_was_said_before(espeak: Espeak) -> None:
    first = heard(espeak, ENGLISH)
    heard(espeak, CHINESE, "zh")
    assert np.array_equal(heard(espeak, ENGLISH), first)
    assert np.array_equal(heard(Espeak(), ENGLISH), first)
    assert np.sqrt(np.mean(first**2)) > 0.01
    assert 1 < len(first) / 16_000 < 6


def test_other_texts_and_voices_sound_different(espeak: Espeak) -> None:
    waves = [
        heard(espeak, ENGLISH),
        heard(espeak, ENGLISH.replace("alarm", "lamp")),
        heard(espeak, ENGLISH, "zh"),
        heard(espeak, CHINESE, "zh"),
        heard(espeak, CHINESE, "en"),
    ]
    assert len({wave.tobytes() for wave in waves}) == len(waves)


def test_chinese_is_read_by_a_voice_that_knows_it(espeak: Espeak) -> None:
    """The English voice says "Chinese letter" for each of the ten characters."""
    assert len(heard(espeak, CHINESE, "en")) > 2 * len(heard(espeak, CHINESE, "zh"))
    assert [language_of(text) for text in (CHINESE, "在 TED 里搜索 AI", ENGLISH)] == [
        "zh", "zh", "en",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "markup",
    [
        "<break time='9s'/>",
        "<speak><prosody rate='x-slow'>tap</prosody></speak>",
        "[[h@'loU]]",
        "&amp;",
    ],
)
def test_markup_is_read_as_text(espeak: Espeak, markup: str) -> None:
    seconds = [len(heard(espeak, text)) / 16_000 for text in ("tap now", f"tap {markup} now")]
    assert seconds[0] + 0.3 < seconds[1] < seconds[0] + 8


def test_a_long_place_of_installation_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's own buffer for the path of its data takes 160 bytes."""
    import espeakng_loader

    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    (deep / "espeakng_loader").symlink_to(Path(espeakng_loader.__file__).parent)
    monkeypatch.syspath_prepend(deep)
    monkeypatch.delitem(sys.modules, "espeakng_loader")
    assert len(heard(Espeak(), ENGLISH)) > 16_000


HOSTILE = (
    "$(touch hacked)",
    "; touch hacked #",
    "' \" \\ `touch hacked`",
    "{out} {language} {text}",
    "--mode=fail",
    "-x",
    "tap \u2028 打开",
)


def test_a_text_reaches_the_program_as_one_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "heard texts"
    engine = Command(command(f"--heard '{log}'"))
    for text in HOSTILE:
        engine.speak(text, "zh", tmp_path)
    lines = log.read_text(encoding="utf-8").split("\n")[:-1]
    assert lines == [f"zh|{' ' * text.startswith('-')}{text}" for text in HOSTILE]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heard texts", "spoken.wav"]


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
def test_a_command_that_cannot_work_is_refused_at_once(bad: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        Command(bad)
    assert why in caught.value.what


def test_a_failing_program_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(VoiceError, match="ended with 1: no voice today"):
        Command(command("--mode fail")).speak("tap", "en", tmp_path)


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    shell = "sh -c 'sleep 600 & echo $! > \"$0\"; wait' {out} {text}"
    with pytest.raises(VoiceError, match="more than 1 s"):
        Command(shell, seconds=1).speak("tap", "en", tmp_path)
    child = int((tmp_path / "spoken.wav").read_text())
    deadline = time.monotonic() + 30
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(child)


def test_what_a_program_leaves_running_is_killed(tmp_path: Path) -> None:
    shell = "sh -c 'sleep 600 & echo $! > \"$0\"' {out} {text}"
    Command(shell).speak("tap", "en", tmp_path)
    child = int((tmp_path / "spoken.wav").read_text())
    deadline = time.monotonic() + 30
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(child)


def test_a_program_that_talks_without_end_fills_no_disk(tmp_path: Path) -> None:
    with pytest.raises(VoiceError, match="more than 1 s"):
        Command("sh -c 'exec yes' {text} {out}", seconds=1).speak("tap", "en", tmp_path)
    assert list(tmp_path.iterdir()) == []
    talk = "sh -c 'head -c 9999999 /dev/zero; echo; echo no voice; exit 3' {text} {out}"
    with pytest.raises(VoiceError, match="ended with 3: no voice"):
        Command(talk).speak("tap", "en", tmp_path)


def test_a_program_that_writes_without_end_is_stopped(tmp_path: Path) -> None:
    """The file has a hole of 300 MiB, which takes no room."""
    shell = "sh -c 'truncate -s 300M \"$0\"; exec sleep 600' {out} {text}"
    with pytest.raises(VoiceError, match="more than 268435456 bytes"):
        Command(shell).speak("tap", "en", tmp_path)


@pytest.mark.parametrize("first", ["", "#!/no/such/interpreter\n"])
def test_a_program_that_cannot_be_started_is_an_error_of_the_text(
    tmp_path: Path, first: str
) -> None:
    program = tmp_path / "program"
    program.write_text(f"{first}exit 0\n")
    program.chmod(0o755)
    with pytest.raises(VoiceError, match="cannot be started"):
        Command(f"{program} {{text}} {{out}}").speak("tap", "en", tmp_path)


def _runs(pid: int) -> bool:
    """Whether the process does anything: an orphan that nobody reaps is a zombie for a while."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
