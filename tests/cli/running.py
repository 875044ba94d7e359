"""Runs the command line in processes of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

OMNIDATA = [sys.executable, "-c", "from omnidata.cli import main; main()"]
TIMEOUT_S = 120.0


@cache
def _nursery() -> subprocess.Popen[str]:
    """One for each process of tests; it ends with its standard input."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cli.nursery"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def omnidata(
    *arguments: str | Path, code: int = 0, anew: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command and expect its exit code, and no traceback.

    Args:
        arguments: after `omnidata`.
        code: what it ends with.
        anew: start an interpreter; for tests of what depends on how one starts, as PYTHONPATH.
    """
    argv = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        env = {**os.environ, "COLUMNS": "60"}
        if anew:
            with out.open("wb") as stdout, err.open("wb") as stderr:
                returncode = subprocess.run(
                    [*OMNIDATA, *argv], env=env, stdout=stdout, stderr=stderr, timeout=TIMEOUT_S
                ).returncode
        else:
            place = {"out": str(out), "err": str(err), "cwd": str(Path.cwd())}
            returncode = _ordered({"argv": argv, "env": env, **place})
        done = subprocess.CompletedProcess(argv, returncode, out.read_text(), err.read_text())
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def _ordered(order: dict[str, Any]) -> int:
    """The exit code of a command; what takes too long is killed."""
    nursery = _nursery()
    assert nursery.stdin
    assert nursery.stdout
    nursery.stdin.write(json.dumps(order) + "\n")
    child = int(nursery.stdout.readline())
    if not select.select([nursery.stdout], [], [], TIMEOUT_S)[0]:
        os.kill(child, signal.SIGKILL)
        nursery.stdout.readline()
        raise TimeoutError(f"omnidata {' '.join(order['argv'])} takes over {TIMEOUT_S:g} s")
    return int(nursery.stdout.readline())


def as_json(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)
