"""The command line in the environment of a harness, which lacks what our own has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def omnidata(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own.

    Args:
        arguments: after `omnidata`.
        code: that it is to end with.
    """
    command = [sys.executable, "-m", "omnidata", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done
