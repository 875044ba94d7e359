"""Functions for other processes to call."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import parent_process
from pathlib import Path


def double(number: int) -> int:
    return 2 * number


def die_of_three(number: int) -> int:
    """As a process dies whose memory the system takes away."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def hang_at_three(number: int) -> int:
    while number == 3:
        time.sleep(1)
    return 2 * number


def exit_at_all(number: int) -> int:
    os._exit(number)


def is_elsewhere(number: int) -> bool:
    return parent_process() is not None


def die_once(path: str) -> str:
    """As a process that was ended from outside: the second time all is well."""
    mark = Path(path)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return mark.name


def large_after_slow(number: int) -> bytes:
    """The first is slow, and all others have 16 MB to say at once."""
    if number == 0:
        time.sleep(2)
    return bytes(16 * 1024**2)
