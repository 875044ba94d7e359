"""Text-to-speech engines: espeak-ng, and any program that writes a WAV file."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from omnidata.errors import OmnidataError, PlatformError, UsageError
from omnidata.loaders.instructions import Language
from omnidata.types import MediaRef

MAX_BYTES: Final = 256 * 1024**2
"""The largest file that an engine may write for one text; an hour at 24 kHz takes less."""

SECONDS: Final = 120.0
"""The time limit of a program per text."""

_PLACE = re.compile(r"\{(text|out|language)\}")
_TAIL = 2000  # bytes of the program's output that are kept
_VOICES: Mapping[Language, str] = {"en": "en-us", "zh": "cmn"}
_ESPEAK_SECONDS = 60.0


class VoiceError(OmnidataError):
    """An engine could not speak a text."""


class Command:
    """A program that writes one WAV file per call.

    The command is split once, as a shell would split it, and each placeholder is then filled within
    its argument. No shell runs, so a text is never more than a text.

    Args:
        command: with the placeholders {text} and {out}, and optionally {language} (en, zh).
        seconds: time limit per text.

    Raises:
        UsageError: the command cannot be split, lacks a placeholder, or is not installed.
    """

    name = "command"

    def __init__(self, command: str, *, seconds: float = SECONDS) -> None:
        self._command = command
        self._seconds = seconds
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise _unusable(command, f"it cannot be split into arguments ({error})") from None
        places = _PLACE.findall(" ".join(self._arguments[1:]))
        for place in ("text", "out"):
            if place not in places:
                raise _unusable(command, f"none of its arguments has {{{place}}}")
        if shutil.which(self._arguments[0]) is None:
            raise _unusable(command, f"there is no program {self._arguments[0]}")

    def voice(self, language: Language) -> str:
        """Return the command, for every language."""
        return self._command

    def speak(self, text: str, language: Language, scratch: Path) -> MediaRef:
        """Run the program to its end, and end all processes that it has started.

        Args:
            text: without control characters.
            language: of the text.
            scratch: an empty folder for the file.

        Returns:
            The sound, at any rate, neither decoded nor checked.

        Raises:
            VoiceError: it cannot be spoken.
        """
        out = scratch.absolute() / "spoken.wav"  # the program may work in another folder
        values = {"text": text, "out": str(out), "language": language}
        arguments = [_PLACE.sub(lambda place: values[place[1]], each) for each in self._arguments]
        for number, argument in enumerate(self._arguments):
            if argument == "{text}" and text.startswith("-"):  # no option; a blank is not heard
                arguments[number] = f" {text}"
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:  # no interpreter, no executable, too long a text
            raise VoiceError(f"the command cannot be started ({error.strerror})") from None
        tail: deque[int] = deque(maxlen=_TAIL)
        reader = threading.Thread(target=_read, args=(process, tail), daemon=True)
        reader.start()
        try:
            self._wait(process, out)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # no process is left
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        reader.join(1)  # a process that left the group may hold the pipe forever
        if code:
            lines = bytes(tail).decode("utf-8", "replace").strip().splitlines()
            last = lines[-1] if lines else "it said nothing"
            raise VoiceError(f"the command ended with {code}: {last}")
        return MediaRef("audio", scratch, out.name)

    def _wait(self, process: subprocess.Popen[bytes], out: Path) -> None:
        deadline = time.monotonic() + self._seconds
        while (left := deadline - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                process.wait(min(left, 0.2))
                return
            with suppress(OSError):  # not yet written
                if out.lstat().st_size > MAX_BYTES:
                    raise VoiceError(f"the command wrote more than {MAX_BYTES} bytes")
        raise VoiceError(f"the command ran for more than {self._seconds:g} s")


def _read(process: subprocess.Popen[bytes], tail: deque[int]) -> None:
    assert process.stdout is not None
    with process.stdout as pipe:
        while block := os.read(pipe.fileno(), 1 << 16):
            tail.extend(block[-_TAIL:])


def _unusable(command: str, what: str) -> UsageError:
    return UsageError(
        what,
        where=f"--command {command}",
        expected="a program and its arguments, with {text} and {out} among them",
        remedy="e.g. --command 'tool --text {text} --out {out} --lang {language}'",
    )


class Espeak:
    """espeak-ng, as `espeakng-loader` ships it; equal texts give equal samples.

    Raises:
        PlatformError: the extra `voice` is not installed, or its library does not work here.
    """

    def __init__(self) -> None:
        try:
            import espeakng_loader
        except ImportError:
            raise PlatformError(
                "espeak-ng is not installed",
                expected="the extra `voice`",
                remedy="pip install 'omnidata[voice]', or name another engine with --command",
            ) from None
        self._library = Path(espeakng_loader.get_library_path())
        try:
            # With the version, because another one makes other sound.
            self.name = f"espeak-ng {self._run('a', 'en')[0]}"
        except (VoiceError, OSError) as error:  # of the system, where the library's folder is gone
            why = error.what if isinstance(error, VoiceError) else error
            raise PlatformError(
                f"espeak-ng does not work here: {why}",
                where=str(self._library),
                expected="a library with its voices",
                remedy="pip install --force-reinstall espeakng-loader, or use --command",
            ) from None

    def voice(self, language: Language) -> str:
        """Return the name of the American English or Mandarin voice."""
        return _VOICES[language]

    def speak(self, text: str, language: Language, scratch: Path) -> MediaRef:
        """Speak one text; the sound is inline, at espeak-ng's own rate (22,050 Hz)."""
        _, rate, wave = self._run(text, language)
        return MediaRef("audio", scratch, "", inline={"array": wave, "sampling_rate": rate})

    def _run(self, text: str, language: Language) -> tuple[str, int, npt.NDArray[np.float32]]:
        """Return version, rate in Hz, and samples."""
        script = Path(__file__).with_name("voice_speaker.py")
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", script, self._library, _VOICES[language]],
                input=text.encode(),
                capture_output=True,
                cwd=self._library.parent,
                timeout=_ESPEAK_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise VoiceError(f"espeak-ng ran for more than {_ESPEAK_SECONDS:.0f} s") from None
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode("utf-8", "replace").strip().splitlines()
            raise VoiceError(lines[-1] if lines else f"exit code {error.returncode}") from None
        header, _, samples = done.stdout.partition(b"\n")
        if not samples:
            raise VoiceError("espeak-ng finds no text to speak")
        about = json.loads(header)
        wave = np.frombuffer(samples, np.int16).astype(np.float32)
        return about["version"], about["rate"], wave / np.float32(32768)


Voice = Command | Espeak
"""An engine with a voice per language."""
