"""Any other engine: a command that the user gives."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from omnidata.data.voice.engine import MAX_BYTES, VoiceError
from omnidata.errors import UsageError
from omnidata.loaders.omnigui_apps import Language
from omnidata.types import MediaRef

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
