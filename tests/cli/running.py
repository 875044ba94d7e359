"""Runs the command line in this process, or in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from omnidata.cli import main, make_app
from tests.cli import nursery

OMNIDATA = [sys.executable, "-c", "from omnidata.cli import main; main()"]
EXPORT = ("export", "--workers", "1")
"""The verb in one process; by default it starts one for each core."""
TIMEOUT_S = 120.0


_NURSERIES: list[nursery.Nursery] = []


def begin() -> None:
    """Start what commands are forked from; tests/conftest.py does when tests are collected."""
    _NURSERIES.append(nursery.start())


def end() -> None:
    while _NURSERIES:
        for pipe in _NURSERIES.pop():
            pipe.close()


class Started:
    """A command that runs, as `subprocess.Popen` has it.

    Attributes:
        pid: of its process.
        returncode: when it has ended and was waited for.
    """

    def __init__(
        self,
        *arguments: str | Path,
        terminal: int | None = None,
        notes: bool = True,
        env: dict[str, str] | None = None,
    ) -> None:
        """Fork it.

        Args:
            arguments: after `omnidata`.
            terminal: takes its output, and its notes, in place of files.
            notes: whether it may print any.
            env: of the command.
        """
        self.returncode: int | None = None
        self._folder = tempfile.TemporaryDirectory()
        self._said = [Path(self._folder.name, name) for name in ("out", "err")]
        for path in self._said:
            path.touch()
        places = list(map(str, self._said))
        if terminal is not None:
            places = [f"/proc/{os.getpid()}/fd/{terminal}"] * 2
        self._end, end = os.pipe()
        order: dict[str, Any] = {"argv": list(map(str, arguments)), "cwd": str(Path.cwd())}
        order |= {"env": dict(env or os.environ), "end": f"/proc/{os.getpid()}/fd/{end}"}
        order |= {"out": places[0], "err": places[1] if notes else os.devnull}
        [asked] = _NURSERIES
        print(json.dumps(order), file=asked.orders)
        self.pid = int(asked.answers.readline())
        os.close(end)

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        if self.returncode is None:
            self.kill()
            self.wait()
        self._folder.cleanup()

    def poll(self) -> int | None:
        """What it ended with, or that it still runs."""
        return self._ended(0)

    def _ended(self, timeout: float) -> int | None:
        if self.returncode is None and select.select([self._end], [], [], timeout)[0]:
            self.returncode = int(os.read(self._end, 9))
            os.close(self._end)
        return self.returncode

    def wait(self, timeout: float = TIMEOUT_S) -> int:
        """What it ends with; what takes too long is killed."""
        code = self._ended(timeout)
        if code is None:
            self.kill()
            self._ended(TIMEOUT_S)
            raise TimeoutError(f"omnidata takes over {timeout:g} s: {self.said()}")
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def said(self) -> tuple[str, str]:
        out, err = (path.read_text() for path in self._said)
        return out, err

    def communicate(self, timeout: float = TIMEOUT_S) -> tuple[str, str]:
        self.wait(timeout)
        said = self.said()
        self._folder.cleanup()
        return said


def omnidata(
    *arguments: object, code: int | None = 0, anew: bool = False, columns: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command and expect its exit code, and no traceback.

    Args:
        arguments: after `omnidata`.
        code: what it ends with; None = anything.
        anew: start an interpreter; for tests of what depends on how one starts, as PYTHONPATH.
            Other commands run in this process, where they meet what a test has patched.
        columns: the width of the output; None = that of `COLUMNS`, which is wide in tests.
    """
    argv = [str(argument) for argument in arguments]
    with pytest.MonkeyPatch.context() as patch:
        if columns:
            patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "argv", ["omnidata", *argv])  # messages repeat the command
        done = _in_an_interpreter(argv) if anew else _in_this_process(argv)
    assert code in (None, done.returncode), done.stderr
    assert "Traceback" not in done.stderr or os.environ.get("OMNIDATA_DEBUG")
    return done


def _in_an_interpreter(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OMNIDATA, *argv], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def _in_this_process(argv: list[str]) -> subprocess.CompletedProcess[str]:
    raw = io.BytesIO(), io.BytesIO()
    out = io.TextIOWrapper(raw[0], "utf-8", newline="", write_through=True)
    err = io.TextIOWrapper(raw[1], "utf-8", "backslashreplace", newline="", write_through=True)
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main(argv)
    said = [each.getvalue().decode() for each in raw]
    return subprocess.CompletedProcess(argv, int(ended.value.code or 0), *said)


here = omnidata


def omnidata_apart(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own: Ray changes the one that it connects."""
    argv = [str(argument) for argument in arguments]
    with Started(*argv) as command:
        out, err = command.communicate()
        done = subprocess.CompletedProcess(argv, command.wait(), out, err)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def command_group() -> Any:
    return typer.main.get_command(make_app())


def help_text(*verb: str, width: int) -> str:
    """Return the help of a verb in a terminal of so many columns."""
    env = {"COLUMNS": str(width)}
    done = CliRunner().invoke(make_app(verb), [*verb, "--help"], env=env, terminal_width=width)
    assert done.exit_code == 0
    return done.stdout


def as_json(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)
