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

from omnidata.data.voice_engines import MAX_BYTES, Voice, VoiceError
from omnidata.errors import Finding, MediaError, RunError
from omnidata.files import read_file
from omnidata.jsontext import decode, encode
from omnidata.loaders.instructions import MIN_BYTES, Language, has_chinese, voice_file
from omnidata.media import AUDIO_RATE, SILENCE, Budget, encode_wav, samples
from omnidata.run.engines import Cluster, Lost, each
from omnidata.storage import atomic_write, open_own, take_lock, wrap_os_error
from omnidata.types import Progress, Step

MAX_LETTERS = 2000
"""The longest text that is spoken, about two minutes; an instruction has a few sentences."""

_LIST = "voices.jsonl"
_BUDGET = Budget(max_bytes=MAX_BYTES, max_seconds=600)
_IN_A_ROW = 3
"""After so many failures in a row the engine is tried with an easy text."""

_EASY: Mapping[Language, str] = {"en": "One, two, three.", "zh": "一，二，三。"}

Texts = Callable[[Step], Iterable[str]]
"""The texts of a step to be spoken, as `Benchmark.spoken` returns them."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One text to be spoken.

    Attributes:
        text: the instruction as the data has it.
        spoken: the text in one line, without control characters.
        language: Chinese if there is a Chinese character in the text, else English. By the text and
            not by the app, because two apps with the same text share its file. A Chinese voice
            reads English words; an English voice does not read Chinese.
        where: the first step that has it.
    """

    text: str
    spoken: str
    language: Language
    where: str


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


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list: a text, its file `<md5>.wav`, and how it was made."""

    md5: str
    text: str
    language: Language
    engine: str
    voice: str
    sha256: str


def utterances(steps: Iterable[Step], texts: Texts) -> tuple[list[Utterance], list[Finding]]:
    """Return every text once, in the order of the steps, and a finding per unspeakable text."""
    found: dict[str, Utterance] = {}
    findings: dict[str, Finding] = {}
    for step in steps:
        for text in texts(step):
            if text in found or text in findings:
                continue
            # Ctrl-A is a command to espeak-ng, a NUL ends the text, a surrogate has no encoding.
            letters = (" " if unicodedata.category(sign)[0] == "C" else sign for sign in text)
            line = " ".join("".join(letters).split())
            if line and len(line) <= MAX_LETTERS:
                language: Language = "zh" if has_chinese(line) else "en"
                found[text] = Utterance(text, line, language, step.sample_id)
                continue
            many = f"the instruction has {len(line)} characters"
            findings[text] = Finding(
                "voice-long" if line else "voice-empty",
                "error",
                step.sample_id,
                many if line else "the instruction is empty",
                f"1 to {MAX_LETTERS} characters that can be read",
                "correct the instruction; until then it has no spoken form",
            )
    return list(found.values()), list(findings.values())


def render(
    steps: Sequence[Step],
    out: Path,
    engine: Voice,
    *,
    texts: Texts = lambda step: (step.instruction,),
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> Rendering:
    """Render the files that are missing or changed; everything else stays as it is.

    A process speaks one text after the other, because engines are rarely safe to use from threads.

    Args:
        steps: with the texts.
        out: the folder, for `-T voice=`; it has one writer and holds one engine's speech.
        engine: speaks.
        texts: of a step.
        workers: processes, one per core if None; 1 = this one. The bytes are the same.
        cluster: speaks in place of this machine.
        progress: called with the number of texts done and of all to be done.

    Raises:
        RunError: the folder holds other files or speech of another engine, has another writer, or
            the disk is full. No file was changed in the first two cases.
        OmnidataError: as `run.engines.each`.
    """
    wanted, findings = utterances(steps, texts)
    count, rendered, failures = len(wanted) + len(findings), 0, 0
    report = progress or (lambda done, total: None)
    with wrap_os_error(out), ExitStack() as stack:
        out.mkdir(parents=True, exist_ok=True)
        others = sorted(entry.name for entry in out.iterdir() if entry.name[0] != ".")
        if others and not (out / _LIST).is_file():
            raise _refusal(out, f"the folder holds {', '.join(others[:3])} but no {_LIST}")
        busy = _refusal(out, "another process is writing into the folder")
        stack.callback(take_lock(out / ".lock", busy=busy).release)
        listed = _read_list(out, engine)
        missing = [text for text in wanted if not _is_rendered(out, text, listed)]
        stack.callback(_write_list, out, listed)
        _write_list(out, listed)  # half a line at its end would spoil the next
        scratch = out.absolute() / ".scratch"
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        scratch.mkdir(exist_ok=True)
        report(0, len(missing))
        speak = partial(_speak, engine, scratch)
        calls = each(speak, missing, workers=workers, cluster=cluster, sees=[out])
        stack.enter_context(closing(calls))
        for number, (utterance, wav) in enumerate(zip(missing, calls, strict=True), 1):
            if isinstance(wav, bytes):
                _write(out, utterance, wav, engine, listed)
                rendered, failures = rendered + 1, 0
            elif isinstance(wav, OSError):
                raise wav
            else:
                (out / voice_file(utterance.text)).unlink(missing_ok=True)
                findings.append(_failure(utterance, wav))
                failures += 1
                if failures % _IN_A_ROW == 0:
                    easy = replace(utterance, spoken=_EASY[utterance.language])
                    if not isinstance(speak(easy), bytes):
                        findings += map(_skipped_text, missing[number:])
                        break
            report(number, len(missing))
    return Rendering(count, rendered, len(wanted) - len(missing), tuple(findings))


def _read_list(folder: Path, engine: Voice) -> dict[str, _Line]:
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


def _is_rendered(folder: Path, utterance: Utterance, listed: Mapping[str, _Line]) -> bool:
    path = folder / voice_file(utterance.text)
    if not path.exists():
        return False
    line = listed.get(path.stem)
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


def _write(
    folder: Path, utterance: Utterance, wav: bytes, engine: Voice, listed: dict[str, _Line]
) -> None:
    """List a file before it appears: a file that is not listed is never overwritten."""
    path = folder / voice_file(utterance.text)
    listed[path.stem] = line = _Line(
        md5=path.stem,
        text=utterance.text,
        language=utterance.language,
        engine=engine.name,
        voice=engine.voice(utterance.language),
        sha256=hashlib.sha256(wav).hexdigest(),
    )
    with open_own(folder / _LIST, "ab") as file:
        file.write(encode(line) + b"\n")
    with atomic_write(path) as file:
        file.write(wav)


def _speak(
    engine: Voice, scratch: Path, utterance: Utterance
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


def _failure(utterance: Utterance, error: VoiceError | MediaError | Lost) -> Finding:
    why = error.why if isinstance(error, Lost) else error.what
    return Finding(
        "voice-failed",
        "error",
        utterance.where,
        f'"{utterance.spoken[:60]}" could not be spoken: {why}',
        "a WAV file with audible sound, of more than 30 ms",
        "correct the text or the engine, then run the command again",
    )


def _skipped_text(utterance: Utterance) -> Finding:
    return Finding(
        "voice-untried",
        "error",
        utterance.where,
        f'"{utterance.spoken[:60]}" was not tried: the engine fails on a simple text',
        "a working engine",
        "fix the engine, then run the command again",
    )
