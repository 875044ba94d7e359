"""Every instruction of some steps as a WAV file: 16 kHz, mono, 16 bits."""

from __future__ import annotations

import hashlib
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import msgspec
import numpy as np

from omnidata.data.voice_engines import MAX_BYTES, Voice, VoiceError
from omnidata.errors import Finding, MediaError, RunError
from omnidata.files import read_file
from omnidata.jsontext import decode, encode
from omnidata.loaders.instructions import MIN_BYTES, Language, has_chinese, voice_file
from omnidata.media import AUDIO_RATE, SILENCE, Budget, encode_wav, samples
from omnidata.run.engines import Cluster, Lost, each
from omnidata.storage import atomic_write, open_own, take_lock, wrap_os_error
from omnidata.types import Progress, Step

# Which texts of a dataset are spoken, and how they are read.

MAX_LETTERS = 2000
"""The longest text that is spoken, about two minutes; an instruction has a few sentences."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One text to be spoken.

    Attributes:
        text: the instruction as the data has it.
        spoken: what is read aloud of it.
        language: of the text, see `language_of`.
        where: the first step that has it.
    """

    text: str
    spoken: str
    language: Language
    where: str

    @property
    def file(self) -> str:
        """The file's name, as the prompt looks for it."""
        return voice_file(self.text)


def language_of(text: str) -> Language:
    """Chinese if there is a Chinese character in the text, else English.

    By the text and not by the app, because two apps with the same text share its file. A Chinese
    voice reads English words; an English voice does not read Chinese.

    Examples:
        >>> language_of("打开 TED"), language_of("Open TED")
        ('zh', 'en')
    """
    return "zh" if has_chinese(text) else "en"


def readable(text: str) -> str:
    r"""The text in one line, a blank for whatever is no character to be read.

    Control characters are commands to some engines (Ctrl-A to espeak-ng), a NUL ends the text, and
    lone surrogates have no encoding.

    Examples:
        >>> readable("Tap\x00 \x01200s\n<b>Share</b>")
        'Tap 200s <b>Share</b>'
    """
    letters = (" " if unicodedata.category(letter)[0] == "C" else letter for letter in text)
    return " ".join("".join(letters).split())


Texts = Callable[[Step], Iterable[str]]
"""The texts of a step that are to be spoken, as `Benchmark.spoken` says it."""


def instruction(step: Step) -> Iterable[str]:
    """The instruction alone."""
    return (step.instruction,)


def utterances(steps: Iterable[Step], texts: Texts) -> tuple[list[Utterance], list[Finding]]:
    """Every text once, in the order of the steps, and a finding for each that cannot be spoken."""
    found: dict[str, Utterance] = {}
    findings: dict[str, Finding] = {}
    for step in steps:
        for text in texts(step):
            if text in found or text in findings:
                continue
            read = readable(text)
            if read and len(read) <= MAX_LETTERS:
                found[text] = Utterance(text, read, language_of(read), step.sample_id)
            else:
                findings[text] = _unspeakable(step, read)
    return list(found.values()), list(findings.values())


def _unspeakable(step: Step, read: str) -> Finding:
    return Finding(
        "voice-long" if read else "voice-empty",
        "error",
        step.sample_id,
        f"the instruction has {len(read)} characters" if read else "the instruction is empty",
        f"1 to {MAX_LETTERS} characters that can be read",
        "correct the instruction; until then it has no spoken form",
    )


# A folder of spoken instructions: the WAV files and the list of what they say.
#
# `voices.jsonl` has a line per file. The line is written before the file appears, so every file
# that omnidata made is listed, and one that is not listed is somebody else's and is never
# overwritten.

LIST = "voices.jsonl"


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list.

    Attributes:
        md5: of the text; the file is `<md5>.wav`.
        text: the instruction.
        language: in which it is read.
        engine: name and version.
        voice: the engine's voice, or the command.
        sha256: of the file.
    """

    md5: str
    text: str
    language: Language
    engine: str
    voice: str
    sha256: str


class VoiceFolder:
    """One folder, one voice per language, one writer.

    Args:
        path: the folder; made if missing.
        engine: what is going to speak.
        wanted: what it shall hold.

    Attributes:
        missing: those that are wanted and have no file, or another one than is listed.

    Raises:
        RunError: the folder holds other things, speech of another engine, or has another writer.
            No file in it was changed then.
    """

    def __init__(self, path: Path, engine: Voice, wanted: Iterable[Utterance]) -> None:
        self.path = path
        self._engine = engine
        self._list = path / LIST
        try:
            path.mkdir(parents=True, exist_ok=True)
            others = [entry.name for entry in path.iterdir() if entry.name[0] != "."]
            if others and not self._list.is_file():
                held = ", ".join(sorted(others)[:3])
                raise _refused(path, f"the folder holds {held} but no {LIST}")
            busy = _refused(path, "another process is writing into the folder")
            self._lock = take_lock(path / ".lock", busy=busy)
        except OSError as error:
            what = f"the folder cannot be made or written ({error.strerror})"
            raise _refused(path, what) from None
        try:
            self._listed = self._read()
            self._check_voice()
            self.missing = [utterance for utterance in wanted if not self._has(utterance)]
            self._save()
        except BaseException:
            self._lock.release()
            raise

    def _read(self) -> dict[str, Spoken]:
        """The lines by MD5, the last one counts; what cannot be read is as if it were not there.

        Lines without a file do not count: nothing of that voice is left to be mixed with.
        """
        listed: dict[str, Spoken] = {}
        lines = read_file(self._list).splitlines() if self._list.exists() else []
        for line in lines:
            try:
                entry = msgspec.convert(decode(line.decode("utf-8", "replace")), Spoken)
            except (msgspec.ValidationError, RecursionError):
                continue
            listed[entry.md5] = entry
        return {md5: entry for md5, entry in listed.items() if self._file(md5).exists()}

    def _file(self, md5: str) -> Path:
        return self.path / f"{md5}.wav"

    def _check_voice(self) -> None:
        for entry in self._listed.values():
            there = (entry.engine, entry.voice)
            now = (self._engine.name, self._engine.voice(entry.language))
            if there != now:
                raise _refused(
                    self.path,
                    f'the folder holds speech of "{there[0]}", voice "{there[1]}"; '
                    f'asked for is "{now[0]}", voice "{now[1]}"',
                )

    def _has(self, utterance: Utterance) -> bool:
        path = self.path / utterance.file
        entry = self._listed.get(path.stem)
        if not path.exists():
            return False
        if entry is None or not path.is_file():
            what = "a file" if path.is_file() else "something that is no file"
            raise _refused(path, f"there is {what} that {LIST} does not list")
        same = (entry.text, entry.language) == (utterance.text, utterance.language)
        return same and hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256

    def put(self, utterance: Utterance, wav: bytes) -> None:
        """List a file, then write it in one move."""
        entry = Spoken(
            md5=Path(utterance.file).stem,
            text=utterance.text,
            language=utterance.language,
            engine=self._engine.name,
            voice=self._engine.voice(utterance.language),
            sha256=hashlib.sha256(wav).hexdigest(),
        )
        self._listed[entry.md5] = entry
        with open_own(self._list, "ab") as file:
            file.write(encode(entry) + b"\n")
        with atomic_write(self.path / utterance.file) as file:
            file.write(wav)

    def drop(self, utterance: Utterance) -> None:
        """Remove a file that is not what it should be and could not be made again."""
        (self.path / utterance.file).unlink(missing_ok=True)

    @property
    def scratch(self) -> Path:
        """A folder inside this one for what engines write on the way; gone with the block."""
        path = self.path.absolute() / ".scratch"
        path.mkdir(exist_ok=True)
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            shutil.rmtree(self.path / ".scratch", ignore_errors=True)
            self._save()
        finally:
            self._lock.release()

    def _save(self) -> None:
        """Write the list anew: sorted, without half lines and files that are not there."""
        with atomic_write(self._list) as file:
            for md5, entry in sorted(self._listed.items()):
                if self._file(md5).exists():
                    file.write(encode(entry) + b"\n")


def _refused(path: Path, what: str) -> RunError:
    return RunError(
        what,
        where=str(path),
        expected="a new folder, or one that the same voice was rendered into",
        remedy="name another OUT, or remove what is there",
    )


_BUDGET = Budget(max_bytes=MAX_BYTES, max_seconds=600)
_IN_A_ROW = 3
"""After so many failures without a success between them the engine is tried with an easy text."""

_EASY: Mapping[Language, str] = {"en": "One, two, three.", "zh": "一，二，三。"}


@dataclass(frozen=True, slots=True)
class Rendering:
    """What was done.

    Attributes:
        texts: different texts of the steps.
        rendered: files made now.
        kept: files that were there and are what they should be.
        findings: texts that have no file, and why.
    """

    texts: int
    rendered: int
    kept: int
    findings: tuple[Finding, ...]


def render(
    steps: Sequence[Step],
    out: Path,
    engine: Voice,
    *,
    texts: Texts = instruction,
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> Rendering:
    """Render what is missing or not what it should be; everything else stays as it is.

    A process says one text after the other, because engines are rarely safe to use from threads.

    Args:
        steps: whose texts are wanted.
        out: the folder, for `-T voice=`.
        engine: what speaks; the folder holds one engine's speech only.
        texts: of a step.
        workers: processes, one per core if None; 1 = this one. What is said is the same.
        cluster: whose workers speak; None for this machine.
        progress: called with the number of texts done and of all to be done.

    Raises:
        RunError: as `VoiceFolder`, or the disk takes no more.
        OmnidataError: as `run.engines.each`.
    """
    wanted, findings = utterances(steps, texts)
    count = len(wanted) + len(findings)
    with wrap_os_error(out), VoiceFolder(out, engine, wanted) as folder:
        missing = folder.missing
        report = progress or (lambda done, total: None)
        report(0, len(missing))
        rendered = failures = 0
        say = partial(_said, engine, folder.scratch)
        calls = each(say, missing, workers=workers, cluster=cluster, sees=[folder.path])
        with closing(calls) as answers:
            for number, (utterance, said) in enumerate(zip(missing, answers, strict=True), 1):
                if isinstance(said, bytes):
                    folder.put(utterance, said)
                    rendered += 1
                    failures = 0
                elif isinstance(said, OSError):
                    raise said
                else:
                    folder.drop(utterance)
                    findings.append(_failed(utterance, said))
                    failures += 1
                    if failures % _IN_A_ROW == 0 and not _works(engine, utterance, folder):
                        findings += [_untried(other) for other in missing[number:]]
                        break
                report(number, len(missing))
    return Rendering(count, rendered, len(wanted) - len(missing), tuple(findings))


def _works(engine: Voice, failed: Utterance, folder: VoiceFolder) -> bool:
    """Whether it was the texts that the engine failed at, and not the engine."""
    easy = replace(failed, spoken=_EASY[failed.language])
    return isinstance(_said(engine, folder.scratch, easy), bytes)


def _said(
    engine: Voice, scratch: Path, utterance: Utterance
) -> bytes | VoiceError | MediaError | OSError:
    """The file's content, made in any process; what goes wrong is told to whoever asked."""
    try:  # in a folder under a name that no other text had before
        with TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
            return _wav(utterance.spoken, utterance.language, engine, Path(folder))
    except (VoiceError, MediaError, OSError) as error:
        return error


def _wav(text: str, language: Language, engine: Voice, scratch: Path) -> bytes:
    """The file's content.

    Raises:
        VoiceError: nothing was said.
        MediaError: what came is no sound.
    """
    ref = engine.speak(text, language, scratch)
    wave = samples(ref, rate=AUDIO_RATE, budget=_BUDGET)
    if not np.isfinite(wave).all():
        raise VoiceError("some samples are not numbers")
    if np.abs(wave).max() < SILENCE:
        raise VoiceError("nothing can be heard")
    wav = encode_wav(wave.astype(np.float64))
    if len(wav) <= MIN_BYTES:
        raise VoiceError(f"the file has {len(wav)} bytes; the release passes it over")
    return wav


def _failed(utterance: Utterance, error: VoiceError | MediaError | Lost) -> Finding:
    why = error.why if isinstance(error, Lost) else error.what
    return Finding(
        "voice-failed",
        "error",
        utterance.where,
        f'"{utterance.spoken[:60]}" could not be spoken: {why}',
        "a WAV file with audible sound, of more than 30 ms",
        "correct the text or the engine, then run the command again",
    )


def _untried(utterance: Utterance) -> Finding:
    return Finding(
        "voice-untried",
        "error",
        utterance.where,
        f'"{utterance.spoken[:60]}" was not tried: the engine fails on a simple text',
        "a working engine",
        "fix the engine, then run the command again",
    )
