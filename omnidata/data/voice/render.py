"""Every instruction of some steps as a WAV file: 16 kHz, mono, 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from omnidata.data.encode import AUDIO_RATE, encode_wav
from omnidata.data.voice.engine import MAX_BYTES, Voice, VoiceError
from omnidata.data.voice.folder import VoiceFolder
from omnidata.data.voice.texts import Utterance, utterances
from omnidata.errors import Finding, MediaError
from omnidata.loaders.omnigui_apps import Language
from omnidata.media import Budget, samples
from omnidata.media.probing import SILENCE
from omnidata.tasks.omnigui_prompt import MIN_VOICE_BYTES
from omnidata.types import Step

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
    progress: Callable[[int, int], None] | None = None,
) -> Rendering:
    """Render what is missing or not what it should be; everything else stays as it is.

    One text after the other, because engines are rarely safe to use from several threads.

    Args:
        steps: whose instructions are wanted, in both forms of the prompt.
        out: the folder, for `-T voice=`.
        engine: what speaks; the folder holds one engine's speech only.
        progress: called with the number of texts done and of all to be done.

    Raises:
        RunError: as `VoiceFolder`.
    """
    wanted, findings = utterances(steps)
    texts = len(wanted) + len(findings)
    with VoiceFolder(out, engine, wanted) as folder:
        missing = folder.missing
        report = progress or (lambda done, total: None)
        report(0, len(missing))
        rendered = failures = 0
        for number, utterance in enumerate(missing, 1):
            try:
                with folder.scratch() as scratch:
                    wav = _wav(utterance.spoken, utterance.language, engine, Path(scratch))
                folder.put(utterance, wav)
            except (VoiceError, MediaError) as error:
                folder.drop(utterance)
                findings.append(_failed(utterance, error))
                failures += 1
                if failures % _IN_A_ROW == 0 and not _works(engine, utterance, folder):
                    findings += [_untried(other) for other in missing[number:]]
                    break
            else:
                rendered += 1
                failures = 0
            report(number, len(missing))
    return Rendering(texts, rendered, len(wanted) - len(missing), tuple(findings))


def _works(engine: Voice, failed: Utterance, folder: VoiceFolder) -> bool:
    """Whether it was the texts that the engine failed at, and not the engine."""
    try:
        with folder.scratch() as scratch:
            _wav(_EASY[failed.language], failed.language, engine, Path(scratch))
    except (VoiceError, MediaError):
        return False
    return True


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
    if len(wav) <= MIN_VOICE_BYTES:
        raise VoiceError(f"the file has {len(wav)} bytes; the release passes it over")
    return wav


def _failed(utterance: Utterance, error: VoiceError | MediaError) -> Finding:
    return Finding(
        "voice-failed",
        "error",
        utterance.where,
        f'"{utterance.spoken[:60]}" could not be spoken: {error.what}',
        "a WAV file with audible sound, of more than 30 ms",
        "mend the text or the engine, then run the same command again",
    )


def _untried(utterance: Utterance) -> Finding:
    return Finding(
        "voice-untried",
        "error",
        utterance.where,
        f'"{utterance.spoken[:60]}" was not tried: the engine cannot even say an easy text',
        "an engine that works",
        "mend the engine, then run the same command again",
    )
