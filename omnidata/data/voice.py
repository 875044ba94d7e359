"""Instructions as speech: a folder of WAV files (16 kHz, mono, 16 bits) and the list of them."""

from __future__ import annotations

import hashlib
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from omnidata.data.voice_engines import MAX_BYTES, Command, VoiceError
from omnidata.errors import Finding, MediaError, RunError
from omnidata.files import read_file
from omnidata.jsontext import decode, encode
from omnidata.loaders.instructions import MIN_BYTES, Language, has_chinese, voice_file
from omnidata.media import AUDIO_RATE, SILENCE, Budget, encode_wav, samples
from omnidata.run.engines import Cluster, Lost, each
from omnidata.storage import atomic_write, open_own, take_lock, wrap_os_error
from omnidata.types import Progress, Step

_MAX_LETTERS = 2000
"""The longest text that is spoken, about two minutes; an instruction has a few sentences."""

_LIST = "voices.jsonl"
_BUDGET = Budget(max_bytes=MAX_BYTES, max_seconds=600)
_IN_A_ROW = 3
"""After so many failures in a row the engine is tried with an easy text."""

_EASY: Mapping[Language, str] = {"en": "One, two, three.", "zh": "一，二，三。"}


@dataclass(frozen=True, slots=True)
class Rendering:
    """The result of `render`.

    Attributes:
        texts: different texts of the steps.
        rendered: files made now.
        kept: files that were there and are right.
        findings: texts without a file, and the reasons.
    """

    texts: int
    rendered: int
    kept: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Utterance:
    """A text to be spoken.

    The text decides the language and not the app, because two apps with the same text share its
    file. A Chinese voice reads English words; an English voice does not read Chinese.
    """

    text: str
    spoken: str  # in one line, without control characters
    language: Language
    where: str  # the first step that has it

    @property
    def file(self) -> str:
        return voice_file(self.text)

    @property
    def md5(self) -> str:
        return Path(self.file).stem


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list: a text, its file `<md5>.wav`, and how it was made."""

    md5: str
    text: str
    language: Language
    engine: str
    voice: str
    sha256: str


def render(
    steps: Sequence[Step],
    out: Path,
    engine: Command,
    *,
    texts: Callable[[Step], Iterable[str]] = lambda step: (step.instruction,),
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> Rendering:
    """Render the files that are missing or changed; everything else stays as it is.

    Args:
        steps: with the texts.
        out: the folder, for `-T voice=`; it has one writer and holds one engine's speech.
        engine: speaks.
        texts: of a step, as `Benchmark.spoken` returns them.
        workers: processes, one per core if None; 1 = this one. The bytes are the same.
        cluster: speaks in place of this machine.
        progress: called with the number of texts done and of all to be done.

    Raises:
        RunError: the folder holds other files or speech of another engine, has another writer, or
            the disk is full. No file was changed in the first two cases.
        OmnidataError: as `run.engines.each`.
    """
    wanted, findings = _utterances(steps, texts)
    count, rendered, failures = len(wanted) + len(findings), 0, 0
    with wrap_os_error(out), ExitStack() as stack:
        out.mkdir(parents=True, exist_ok=True)
        others = sorted(entry.name for entry in out.iterdir() if entry.name[0] != ".")
        if others and not (out / _LIST).is_file():
            raise _refusal(out, f"the folder holds {', '.join(others[:3])} but no {_LIST}")
        busy = _refusal(out, "another process is writing into the folder")
        stack.callback(take_lock(out / ".lock", busy=busy).release)
        listed = _read_list(out, engine)
        missing = [text for text in wanted if not _is_rendered(out, text, listed.get(text.md5))]
        stack.callback(_write_list, out, listed)
        _write_list(out, listed)  # half a line at its end would spoil the next
        scratch = out.absolute() / ".scratch"
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        scratch.mkdir(exist_ok=True)
        speak = partial(_speak, engine, scratch)
        calls = each(speak, missing, workers=workers, cluster=cluster, sees=[out])
        stack.enter_context(closing(calls))
        for number, (utterance, wav) in enumerate(zip(missing, calls, strict=True), 1):
            if isinstance(wav, OSError):
                raise wav
            if isinstance(wav, bytes):
                listed[utterance.md5] = _add_file(out, engine, utterance, wav)
                rendered, failures = rendered + 1, 0
            else:
                (out / utterance.file).unlink(missing_ok=True)
                why = wav.why if isinstance(wav, Lost) else wav.what
                findings.append(_failure("voice-failed", utterance, f"could not be spoken: {why}"))
                failures += 1
                if failures % _IN_A_ROW == 0:
                    easy = replace(utterance, spoken=_EASY[utterance.language])
                    if not isinstance(speak(easy), bytes):
                        why = "was not tried: the engine fails on a simple text"
                        findings += [_failure("voice-untried", e, why) for e in missing[number:]]
                        break
            if progress:
                progress(number, len(missing))
    return Rendering(count, rendered, len(wanted) - len(missing), tuple(findings))


def _add_file(out: Path, engine: Command, utterance: _Utterance, wav: bytes) -> _Line:
    """List a file, and write it; one that is not listed is never overwritten."""
    line = _Line(
        md5=utterance.md5,
        text=utterance.text,
        language=utterance.language,
        engine=engine.name,
        voice=engine.voice(utterance.language),
        sha256=hashlib.sha256(wav).hexdigest(),
    )
    with open_own(out / _LIST, "ab") as file:
        file.write(encode(line) + b"\n")
    with atomic_write(out / utterance.file) as file:
        file.write(wav)
    return line


def _utterances(
    steps: Iterable[Step], texts: Callable[[Step], Iterable[str]]
) -> tuple[list[_Utterance], list[Finding]]:
    """Return every text once, in the order of the steps, and a finding per unspeakable text."""
    places: dict[str, str] = {}
    for step in steps:
        for text in texts(step):
            places.setdefault(text, step.sample_id)
    wanted, findings = [], []
    for text, where in places.items():
        # Ctrl-A is a command to espeak-ng, a NUL ends the text, a surrogate has no encoding.
        letters = (" " if unicodedata.category(sign)[0] == "C" else sign for sign in text)
        line = " ".join("".join(letters).split())
        if 0 < len(line) <= _MAX_LETTERS:
            wanted.append(_Utterance(text, line, "zh" if has_chinese(line) else "en", where))
            continue
        length = f"has {len(line)} characters" if line else "is empty"
        findings.append(
            Finding(
                "voice-long" if line else "voice-empty",
                "error",
                where,
                f"the instruction {length}",
                f"1 to {_MAX_LETTERS} characters that can be read",
                "correct the instruction; until then it has no spoken form",
            )
        )
    return wanted, findings


def _read_list(folder: Path, engine: Command) -> dict[str, _Line]:
    """Return the lines that have a file, by MD5; the last one counts, broken ones do not.

    Raises:
        RunError: another voice has spoken.
    """
    listed: dict[str, _Line] = {}
    path = folder / _LIST
    for line in read_file(path).splitlines() if path.exists() else []:
        try:
            entry = msgspec.convert(decode(line.decode("utf-8", "replace")), _Line)
        except (msgspec.ValidationError, RecursionError):
            continue
        if (folder / f"{entry.md5}.wav").exists():
            listed[entry.md5] = entry
    for entry in listed.values():
        voice = engine.voice(entry.language)
        if (entry.engine, entry.voice) != (engine.name, voice):
            raise _refusal(
                folder,
                f'the folder holds speech of "{entry.engine}", voice "{entry.voice}"; '
                f'asked for is "{engine.name}", voice "{voice}"',
            )
    return listed


def _write_list(folder: Path, listed: Mapping[str, _Line]) -> None:
    with atomic_write(folder / _LIST) as file:
        for md5, line in sorted(listed.items()):
            if (folder / f"{md5}.wav").exists():
                file.write(encode(line) + b"\n")


def _is_rendered(folder: Path, utterance: _Utterance, line: _Line | None) -> bool:
    path = folder / utterance.file
    if not path.exists():
        return False
    if line is None or not path.is_file():
        what = "a file" if path.is_file() else "something that is no file"
        raise _refusal(folder, f"there is {what} that {_LIST} does not list")
    same = (line.text, line.language) == (utterance.text, utterance.language)
    return same and hashlib.sha256(path.read_bytes()).hexdigest() == line.sha256


def _refusal(path: Path, what: str) -> RunError:
    return RunError(
        what,
        where=str(path),
        expected="a new folder, or one that the same voice was rendered into",
        remedy="name another OUT, or remove what is there",
    )


def _speak(
    engine: Command, scratch: Path, utterance: _Utterance
) -> bytes | VoiceError | MediaError | OSError:
    """Return the file's content or the error, in any process."""
    try:  # in a folder of a new name, which no late program of another text writes into
        with TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
            ref = engine.speak(utterance.spoken, utterance.language, Path(folder))
            wave = samples(ref, rate=AUDIO_RATE, budget=_BUDGET)
        if not np.isfinite(wave).all():
            raise VoiceError("some samples are not numbers")
        if np.abs(wave).max() < SILENCE:
            raise VoiceError("nothing can be heard")
        wav = encode_wav(wave.astype(np.float64))
        if len(wav) <= MIN_BYTES:
            raise VoiceError(f"the file has {len(wav)} bytes; the release passes it over")
        return wav
    except (VoiceError, MediaError, OSError) as error:
        return error


def _failure(code: str, utterance: _Utterance, what: str) -> Finding:
    is_failed = code == "voice-failed"
    return Finding(
        code,
        "error",
        utterance.where,
        f'"{utterance.spoken[:60]}" {what}',
        "a WAV file with audible sound, of more than 30 ms" if is_failed else "a working engine",
        f"{'correct the text or the engine' if is_failed else 'fix the engine'}, "
        "then run the command again",
    )
