"""One run in several processes on this machine, each with a GPU of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from omnidata.errors import RunError, UsageError
from omnidata.storage import open_own

_LOOK_S = 0.5
_DONE = (0, 1)
"""Exit codes of a part that has come to its end; 1 if steps have failed."""


def parts_of(out: Path, count: int) -> list[Path]:
    """The run folders of the parts, beside the whole run's.

    Examples:
        >>> parts_of(Path("runs/a"), 2)
        [PosixPath('runs/a.parts/1'), PosixPath('runs/a.parts/2')]
    """
    return [out.with_name(f"{out.name}.parts") / str(number) for number in range(1, count + 1)]


def part_arguments(arguments: Sequence[str], part: Path, number: int, count: int) -> list[str]:
    """A command line for one part in place of that for the whole.

    Args:
        arguments: of `omnidata`, with `--out` and `--gpus`.
        part: the part's run folder.
        number: which part, from 1.
        count: of how many.

    Examples:
        >>> whole = ["evaluate", "omnigui", "D", "--out", "r", "--gpus=2", "--json", "-M", "a=b"]
        >>> part_arguments(whole, Path("r.parts/1"), 1, 2)
        ['evaluate', 'omnigui', 'D', '-M', 'a=b', '--out', 'r.parts/1', '--shard', '1/2']
    """
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        flag, equals, _ = argument.partition("=")
        if flag in ("--out", "--gpus"):
            if not equals:
                next(rest, None)
        elif argument != "--json":
            kept.append(argument)
    return [*kept, "--out", str(part), "--shard", f"{number}/{count}"]


def visible_gpus(count: int) -> list[str]:
    """The GPU of each process, as CUDA_VISIBLE_DEVICES names it.

    Raises:
        UsageError: fewer are visible than asked for.
    """
    said = os.environ.get("CUDA_VISIBLE_DEVICES")
    if said is None:
        return [str(number) for number in range(count)]
    visible = [name for name in said.split(",") if name]
    if visible and len(visible) < count:
        raise UsageError(
            f"CUDA_VISIBLE_DEVICES names {len(visible)}",
            where=f"--gpus {count}",
            expected="as many GPUs as processes",
        )
    return visible[:count] or [""] * count


def run_parts(
    arguments: Sequence[str],
    out: Path,
    count: int,
    *,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """Run all parts at a time, to the end.

    What a process prints goes into a log beside its folder. When one fails, the others go on: what
    they do is kept, and the same command resumes.

    Args:
        arguments: of `omnidata` for the whole run.
        out: the whole run's folder; parts lie beside it.
        count: how many processes.
        progress: called with the number of lines that all parts have.

    Returns:
        The run folders of the parts.

    Raises:
        RunError: a part did not come to its end; has the last lines of its log.
        UsageError: fewer GPUs are visible than asked for.
    """
    parts = parts_of(out, count)
    gpus = visible_gpus(count)
    parts[0].parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        processes = []
        for number, (part, gpu) in enumerate(zip(parts, gpus, strict=True), 1):
            _log(part).unlink(missing_ok=True)
            log = stack.enter_context(_log(part).open("xb"))
            command = [sys.executable, "-m", "omnidata"]
            process = subprocess.Popen(
                [*command, *part_arguments(arguments, part, number, count)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": gpu},
                start_new_session=True,  # an interruption reaches it through us, and once
            )
            stack.enter_context(_ended(process))
            processes.append(process)
        while any(process.poll() is None for process in processes):
            time.sleep(_LOOK_S)
            if progress:
                progress(sum(map(_lines, parts)))
    for part, process in zip(parts, processes, strict=True):
        if process.returncode not in _DONE:
            said = _log(part).read_text("utf-8", "replace").strip().splitlines()[-5:]
            raise RunError(
                f"a part ended with exit code {process.returncode}: " + " | ".join(said),
                where=str(_log(part)),
                expected="all parts to come to their end",
                remedy="mend what it says and repeat the command, which resumes every part",
            )
    return parts


def _log(part: Path) -> Path:
    return part.with_name(f"{part.name}.log")


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Nobody goes on alone: whatever ends us interrupts the process, which keeps its work."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait()


def _lines(part: Path) -> int:
    try:
        with open_own(part / "predictions.jsonl", "rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except (OSError, RunError):  # as the process that writes it will say
        return 0
