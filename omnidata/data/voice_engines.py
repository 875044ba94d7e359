"""What speaks: the contract of the engines."""

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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from omnidata.errors import OmnidataError, PlatformError, UsageError
from omnidata.loaders.instructions import Language
from omnidata.types import MediaRef

MAX_BYTES: Final = 256 * 1024**2
"""Of what an engine writes for one text; an hour at 24 kHz takes less."""


class VoiceError(OmnidataError):
    """An engine could not speak a text."""


class Voice(Protocol):
    """An engine with a voice per language."""

    @property
    def name(self) -> str:
        """The engine and its version; another one makes other sound."""

    def voice(self, language: Language) -> str:
        """What the engine calls the voice of a language."""

    def speak(self, text: str, language: Language, scratch: Path) -> MediaRef:
        """Speak one text.

        Args:
            text: without control characters.
            language: of the text.
            scratch: an empty folder for files on the way.

        Returns:
            The sound, at any rate; whoever called decodes and checks it.

        Raises:
            VoiceError: it cannot be spoken.
        """


# Any other engine: a command that the user gives.

SECONDS = 120.0
_PLACE = re.compile(r"\{(text|out|language)\}")
_TAIL = 2000  # bytes of what the program says
_LOOK_S = 0.2  # between looks at the size of what it writes
_PATIENCE_S = 1.0


class Command:
    """A program that writes one WAV file per call.

    The command is split once, as a shell would split it, and each placeholder is then filled within
    its argument; no shell is ever run, so a text is never more than a text.

    Args:
        command: with the placeholders {text} and {out}, and {language} (en, zh) if it is wanted.
        seconds: how long one text may take.

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
        places = set(_PLACE.findall(" ".join(self._arguments[1:])))
        for place in ("text", "out"):
            if place not in places:
                raise _unusable(command, f"none of its arguments has {{{place}}}")
        if shutil.which(self._arguments[0]) is None:
            raise _unusable(command, f"there is no program {self._arguments[0]}")

    def voice(self, language: Language) -> str:
        """The command as given, for every language."""
        return self._command

    def speak(self, text: str, language: Language, scratch: Path) -> MediaRef:
        """As `Voice.speak`; what the program wrote, unread."""
        out = scratch.absolute() / "spoken.wav"  # the program may work in another folder
        values = {"text": text, "out": str(out), "language": language}
        self._run([_filled(argument, values) for argument in self._arguments], out)
        return MediaRef("audio", scratch, out.name)

    def _run(self, arguments: list[str], out: Path) -> None:
        """Run the program to its end, and end whatever it has started and left running."""
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
        said = bytearray()
        listener = threading.Thread(target=_listen, args=(process, said), daemon=True)
        listener.start()
        try:
            code = self._wait(process, out)
        finally:
            _kill(process)
        listener.join(_PATIENCE_S)  # a process that left the group may hold the pipe for ever
        if code:
            raise VoiceError(f"the command ended with {code}: {_last_words(said)}")

    def _wait(self, process: subprocess.Popen[bytes], out: Path) -> int:
        """The program's exit code."""
        deadline = time.monotonic() + self._seconds
        while (left := deadline - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(left, _LOOK_S))
            if _size(out) > MAX_BYTES:
                raise VoiceError(f"the command wrote more than {MAX_BYTES} bytes")
        raise VoiceError(f"the command ran for more than {self._seconds:g} s")


def _unusable(command: str, what: str) -> UsageError:
    return UsageError(
        what,
        where=f"--command {command}",
        expected="a program and its arguments, with {text} and {out} among them",
        remedy="e.g. --command 'tool --text {text} --out {out} --lang {language}'",
    )


def _filled(argument: str, values: dict[str, str]) -> str:
    filled = _PLACE.sub(lambda place: values[place[1]], argument)
    # A text that is a whole argument must not be taken for an option; a blank is not heard.
    return f" {filled}" if argument == "{text}" and filled.startswith("-") else filled


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the program's group, also where the program itself has ended and left it behind."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):  # nobody is left
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _listen(process: subprocess.Popen[bytes], said: bytearray) -> None:
    """Keep the end of what the program says; the rest goes nowhere."""
    assert process.stdout is not None
    with process.stdout as pipe:
        while block := os.read(pipe.fileno(), 1 << 16):
            said += block
            del said[:-_TAIL]


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _last_words(said: bytearray) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


# The offline engine: espeak-ng, as `espeakng-loader` ships it.

VOICES: Mapping[Language, str] = {"en": "en-us", "zh": "cmn"}
_SECONDS = 60.0


class Espeak:
    """espeak-ng; the same text gives the same samples, in every order and on every run.

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
            (version,) = {self._say("a", language)[0] for language in VOICES}
        except VoiceError as error:
            raise PlatformError(
                f"espeak-ng does not work here: {error.what}",
                where=str(self._library),
                expected="a library with English and Chinese voices",
                remedy="pip install --force-reinstall espeakng-loader, or use --command",
            ) from None
        self.name = f"espeak-ng {version}"

    def voice(self, language: Language) -> str:
        """American English and Mandarin."""
        return VOICES[language]

    def speak(self, text: str, language: Language, scratch: Path) -> MediaRef:
        """As `Voice.speak`; the sound comes inline, at espeak-ng's own rate (22,050 Hz)."""
        _, rate, wave = self._say(text, language)
        return MediaRef("audio", scratch, "", inline={"array": wave, "sampling_rate": rate})

    def _say(self, text: str, language: Language) -> tuple[str, int, npt.NDArray[np.float32]]:
        script = Path(__file__).with_name("voice_speaker.py")
        command = [sys.executable, "-I", "-S", str(script), str(self._library), VOICES[language]]
        try:
            done = subprocess.run(
                command,
                input=text.encode(),
                capture_output=True,
                cwd=self._library.parent,
                timeout=_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise VoiceError(f"espeak-ng was still speaking after {_SECONDS:.0f} s") from None
        except subprocess.CalledProcessError as error:
            told = error.stderr.decode("utf-8", "replace").strip().splitlines()
            raise VoiceError(told[-1] if told else f"exit code {error.returncode}") from None
        header, _, samples = done.stdout.partition(b"\n")
        told = json.loads(header)
        if not samples:
            raise VoiceError("espeak-ng finds no text to speak")
        wave = np.frombuffer(samples, np.int16).astype(np.float32)
        return told["version"], told["rate"], wave / np.float32(32768)
