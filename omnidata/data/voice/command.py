"""Any other engine: a command that the user gives."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from omnidata.data.voice.engine import VoiceError
from omnidata.errors import UsageError
from omnidata.loaders.omnigui_apps import Language
from omnidata.types import MediaRef

SECONDS = 120.0
_PLACE = re.compile(r"\{(text|out|language)\}")
_TAIL = 2000


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
        """Split and check."""
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
        out = scratch / "spoken.wav"
        values = {"text": text, "out": str(out), "language": language}
        self._run([_filled(argument, values) for argument in self._arguments], scratch / "log")
        return MediaRef("audio", scratch, out.name)

    def _run(self, arguments: list[str], log: Path) -> None:
        """Run the program to its end; it and its children are killed when time is up."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(self._seconds)
            except subprocess.TimeoutExpired:
                raise VoiceError(f"the command ran for more than {self._seconds:g} s") from None
            finally:
                _kill(process)
        if code:
            raise VoiceError(f"the command ended with {code}: {_last_words(log)}")


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
    if process.poll() is not None:
        return
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _last_words(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
