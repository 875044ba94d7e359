"""Ctrl-C ends a run at once, whatever it waits for, and loses no line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from omnidata.run.engines import Cluster
from tests.adapters.servers import FINE, ChatCompletions, Fault, Server, running
from tests.cli.running import Started
from tests.run.conftest import workers_of
from tests.run.test_kill import make_data
from tests.trees import read_lines

SLOW = Fault(delay_s=300)
SOON_S = 20.0
"""It takes less than a second on a machine that has nothing else to do."""


def interrupt(process: Started, server: Server, after: int) -> str:
    """Interrupt a command once so many requests came, and return what it said."""
    deadline = time.monotonic() + 90
    while server.count < after:
        assert process.poll() is None and time.monotonic() < deadline, process.said()
        time.sleep(0.01)
    time.sleep(0.2)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert time.monotonic() - began < SOON_S
    assert process.returncode == 130
    assert "the same command resumes" in said
    assert "Traceback" not in said
    return said


def command(data: Path, run: Path, server: Server, *more: str) -> list[str]:
    return [
        *("evaluate", "omnigui", str(data), "--model", "openai:m", "--out", str(run)),
        *("--base-url", f"{server.url}/v1", "-T", "modalities=I", "--concurrency", "4", *more),
    ]


WAITS: dict[str, tuple[Callable[[int], Fault], int, list[str]]] = {
    "an answer": (lambda number: SLOW, 4, []),
    "Retry-After": (
        lambda number: Fault(status=429, headers={"Retry-After": "500"}),
        1,
        [],
    ),
    "the next attempt": (lambda number: Fault(status=500), 6, ["--attempts", "50"]),
    "a rate": (lambda number: FINE, 1, ["--rpm", "1"]),
    "the first answer under a budget": (lambda number: SLOW, 1, ["--max-tokens", "1000000"]),
}


@pytest.mark.parametrize("what", WAITS)
def test_a_run_that_waits_ends_at_once(tmp_path: Path, what: str) -> None:
    script, after, more = WAITS[what]
    data = make_data(tmp_path, 40)
    with (
        running(ChatCompletions(), script) as server,
        Started(*command(data, tmp_path / "run", server, *more)) as process,
    ):
        interrupt(process, server, after)


def test_workers_of_a_cluster_cancel_what_nobody_answers_and_keep_every_line(
    tmp_path: Path, machines: Any, cluster: Cluster
) -> None:
    data, run = make_data(tmp_path, 120), tmp_path / "run"
    ray = ("--engine", "ray", "--address", cluster.address, "--workers", "2")
    with (
        running(ChatCompletions(), lambda number: FINE if number < 30 else SLOW) as server,
        Started(*command(data, run, server, *ray)) as process,
    ):
        interrupt(process, server, 31)
    assert len(read_lines(run / "predictions.jsonl")) == 30
    while workers_of(machines, "AskingWorker"):
        time.sleep(0.1)


@pytest.mark.full("two starts of Ray")
@pytest.mark.parametrize("after_s", [1.0, 3.0])
def test_ray_that_still_starts_is_not_waited_for_and_leaves_no_process(
    tmp_path: Path, after_s: float
) -> None:
    """Its processes have the run's variables, by which they are found."""
    data, mark = make_data(tmp_path, 4), f"{tmp_path}/marked"
    started = Started(
        *("evaluate", "omnigui", data, "--model", "baseline:center", "--engine", "ray"),
        *("-T", "modalities=I", "--out", tmp_path / "run"),
        env={**dict(os.environ), "OMNIDATA_MARK": mark},
    )
    with started as process:
        while "findings" not in process.said()[1]:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(after_s)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert time.monotonic() - began < SOON_S
        assert process.returncode == 130
    deadline = time.monotonic() + SOON_S
    while marked(mark):
        assert time.monotonic() < deadline
        time.sleep(0.1)


NOTEBOOK = """
import os, signal, sys, threading
from pathlib import Path
import omnidata
from omnidata.run.engines import Cluster

task = omnidata.get_task("omnigui", {"modalities": "I"})
source = task.load(Path(sys.argv[1]))


def evaluate():
    run = Path(sys.argv[1]).with_name("run")
    return omnidata.evaluate(task, source, "baseline:center", run, cluster=Cluster(workers=1))


for after_s in (0.5, 3.0):
    threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        evaluate()
    except KeyboardInterrupt:
        print("interrupted")
print(evaluate()["counts"]["steps"])
"""


@pytest.mark.full("two starts of Ray")
def test_after_an_interrupted_start_of_ray_the_next_call_runs(tmp_path: Path) -> None:
    """The first is interrupted while Ray is imported, the second while it starts."""
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, str(make_data(tmp_path, 4))],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split() == ["interrupted", "interrupted", "4"], done.stderr


def marked(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ends
            if mark.encode() in (place / "environ").read_bytes():
                found.append(place.name)
    return found


def test_a_command_that_is_being_imported_ends_without_a_traceback(tmp_path: Path) -> None:
    # A package that Ctrl-C interrupts, in the place of one that takes long to import.
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    ended = subprocess.run(
        [sys.executable, "-m", "omnidata", "info"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
