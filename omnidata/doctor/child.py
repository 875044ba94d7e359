"""Running a probe, and what comes of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any

_LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a probe ended.

    Attributes:
        found: what the package can do; None if it cannot be used.
        error: what went wrong, in one line; empty if nothing did.
        trace: Python's lines on the way there.
        missing_module: whether a module that it imports is not installed.
    """

    found: dict[str, Any] | None
    error: str = ""
    trace: str = ""

    @property
    def missing_module(self) -> bool:
        """Whether a module that it imports is not installed."""
        return self.error.startswith("ModuleNotFoundError: No module named")


async def probe(name: str, time_limit: float) -> Outcome:
    """Load a package in a process of its own.

    Args:
        name: of the distribution.
        time_limit: in seconds, after which the process is killed.
    """
    command = [sys.executable, "-P", "-m", "omnidata.doctor.probe", name, str(time_limit * 0.9)]
    # Files, not pipes: what the package itself has started may hold a pipe open for ever.
    with TemporaryFile() as out, TemporaryFile() as told:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=told,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
        )
        try:
            code = await asyncio.wait_for(process.wait(), time_limit)
        except TimeoutError:
            return Outcome(None, f"it was still loading after {time_limit:g} s", _text(told))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _outcome(code, _text(out), _text(told))


def _outcome(code: int, out: str, told: str) -> Outcome:
    try:
        answer = json.loads(out)
    except ValueError:
        return Outcome(None, f"it ends the process: {_ended(code)}", told)
    if "error" in answer:
        return Outcome(None, answer["error"], answer["trace"])
    return Outcome(answer)


def _ended(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _text(file: IO[bytes]) -> str:
    """The end of what was written."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LONGEST))
    return file.read().decode("utf-8", "replace")
