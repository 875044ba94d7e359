"""Text-to-speech engines: programs that write a WAV file. espeak-ng is one of them."""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from omnidata.data.voice_speaker import VOICES
from omnidata.errors import OmnidataError, PlatformError, UsageError
from omnidata.loaders.instructions import Language
from omnidata.types import MediaRef

MAX_BYTES: Final = 256 * 1024**2
"""The largest file that an engine may write for one text; an hour at 24 kHz takes less."""

SECONDS: Final = 120.0
"""The time limit of a program per text."""

_PLACE = re.compile(r"\{(text|out|language)\}")
_TAIL = 2000  # bytes of the program's output that are kept


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
        try:
            tail = self._wait(process, out)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # no process is left
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        if code:
            lines = tail.decode("utf-8", "replace").strip().splitlines()
            last = lines[-1] if lines else "it said nothing"
            raise VoiceError(f"the command ended with {code}: {last}")
        return MediaRef("audio", scratch, out.name)

    def _wait(self, process: subprocess.Popen[bytes], out: Path) -> bytes:
        """Return the end of the program's output."""
        assert process.stdout is not None
        deadline = time.monotonic() + self._seconds
        tail, is_open = b"", True
        with process.stdout as pipe:
            while True:
                has_ended = process.poll() is not None
                if is_open and select.select([pipe], [], [], 0 if has_ended else 0.1)[0]:
                    block = os.read(pipe.fileno(), 1 << 16)
                    tail, is_open = (tail + block)[-_TAIL:], bool(block)
                elif has_ended:  # a child may hold the pipe forever
                    return tail
                elif not is_open:
                    time.sleep(0.002)
                if time.monotonic() > deadline:
                    raise VoiceError(f"the command ran for more than {self._seconds:g} s")
                with suppress(OSError):  # not yet written
                    if out.lstat().st_size > MAX_BYTES:
                        raise VoiceError(f"the command wrote more than {MAX_BYTES} bytes")


class Espeak(Command):
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
        library = espeakng_loader.get_library_path()
        script = Path(__file__).with_name("voice_speaker.py")
        program = [sys.executable, "-I", "-S", str(script), str(library)]
        done = subprocess.run(program, capture_output=True, text=True, errors="replace")
        if done.returncode:
            why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise PlatformError(
                f"espeak-ng does not work here: {why}",
                where=str(library),
                expected="a library with its voices",
                remedy="pip install --force-reinstall espeakng-loader, or use --command",
            )
        # With the version, because another one makes other sound.
        self.name = f"espeak-ng {done.stdout.strip()}"
        super().__init__(shlex.join([*program, "{language}", "{text}", "{out}"]))

    def voice(self, language: Language) -> str:
        """Return the name of the American English or Mandarin voice."""
        return VOICES[language]


def _unusable(command: str, what: str) -> UsageError:
    return UsageError(
        what,
        where=f"--command {command}",
        expected="a program and its arguments, with {text} and {out} among them",
        remedy="e.g. --command 'tool --text {text} --out {out} --lang {language}'",
    )
