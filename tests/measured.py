"""Code in a process of its own, whose memory is limited and told."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

_LIMIT = 6 * 1024**3
"""Bytes of addresses, so that a test that fails does not take the machine with it."""

_AROUND = """
import resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
def peak():  # of this process alone: getrusage's begins with its parent's
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) >> 10
{before}
usual, began = peak(), time.process_time()
{code}
print("MEASURED", peak() - usual, time.process_time() - began)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What it took.

    Attributes:
        mebibytes: of memory at the most, above what was there before.
        seconds: of the processor.
        said: the output.
    """

    mebibytes: int
    seconds: float
    said: str


def cost(before: str, code: str, *arguments: str | Path) -> Cost:
    """Run code in a process of its own, which must end well.

    Args:
        before: the imports, whose memory and time do not count.
        code: what counts.
        arguments: are in `sys.argv[1:]`.
    """
    parts = {"before": textwrap.dedent(before), "code": textwrap.dedent(code)}
    whole = _AROUND.format(limit=_LIMIT, **parts)
    command = [sys.executable, "-c", whole, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    said, _, numbers = done.stdout.rpartition("MEASURED ")
    memory, seconds = numbers.split()
    return Cost(int(memory), float(seconds), said)
