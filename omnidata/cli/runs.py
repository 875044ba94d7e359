"""What the verbs say of a run: its table, what it lacks, and how to go on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from omnidata.cli import terminal
from omnidata.errors import counted

if TYPE_CHECKING:
    from omnidata.types import Profile, Task


@contextmanager
def resumable() -> Iterator[None]:
    """When interrupted, print the command that goes on."""
    try:
        yield
    except KeyboardInterrupt:
        terminal.note(f"interrupted; the same command resumes: {_command()}")
        raise


def _command() -> str:
    return shlex.join(["omnidata", *sys.argv[1:]])


def lacking(results: Mapping[str, Any]) -> tuple[int, int]:
    """How many steps got no answer, and how many an answer to less than all of their media."""
    answered = ("ok", "unparsed")
    failed = sum(n for outcome, n in results["outcomes"].items() if outcome not in answered)
    return failed, results["counts"].get("degraded", 0)


def legend_of(profile: Profile) -> Mapping[str, str]:
    """What the names of a profile's columns stand for, where it says so."""
    return getattr(profile, "legend", {})


def print_results(results: Mapping[str, Any], task: Task, as_json: bool) -> None:
    """The results, as a table or as JSON."""
    if as_json:
        terminal.print_json(results)
    else:
        profile = task.profiles[results["profile"]]
        terminal.print_results(results, profile.columns, legend_of(profile))


def print_run(results: Mapping[str, Any], task: Task, out: Path, as_json: bool) -> None:
    """The results of a run, where they lie, and how to go on if it stopped."""
    print_results(results, task, as_json)
    terminal.note(f"run folder: {out}")
    if failed := lacking(results)[0]:
        wrong = "counts as wrong" if failed == 1 else "count as wrong"
        steps = counted(failed, "step")
        terminal.note(f"{steps} got no answer and {wrong}; the same command asks again")
    if stopped := results.get("stopped"):
        terminal.note(f"the run stopped: {stopped}")
        terminal.note(f"the same command resumes: {_command()}")


def in_processes(out: Path, count: int, *, profile: str | None, whole: bool, as_json: bool) -> None:
    """Run this command in several processes and join what they did.

    Once joined, the same command goes on in one process: with the steps that have failed.
    """
    import shutil

    from omnidata.errors import UsageError
    from omnidata.run.merge import merge
    from omnidata.run.processes import run_parts
    from omnidata.run.recorded import recorded_task
    from omnidata.run.run_files import read_info

    if not whole:
        raise UsageError(
            "a part of a run is not cut into parts",
            where=f"--gpus {count}",
            expected="--gpus or --shard, not both",
        )
    with resumable(), terminal.counter("steps") as progress:
        parts = run_parts(sys.argv[1:], out, count, progress=progress)
    results = merge(parts, out, profile=profile)
    shutil.rmtree(parts[0].parent)
    print_run(results, recorded_task(read_info(out)), out, as_json)
    if any(lacking(results)):
        raise typer.Exit(1)
